//! Messages in the order that the target's profile accepts.

use core::convert::Infallible;
use std::borrow::Cow;

use epitome_core::{Pending, Repair, repair};
use epitome_message::{Repaired, apply_repairs, summary_of_user};

use super::loss::{ConversionLoss, ConversionLossKind};
use super::parts::{Prepared, Told};
use super::target::Target;

/// Returns the messages that the target accepts. Messages that are left out, moved or inserted go to `losses`.
pub(super) fn repaired<'m>(
    mut prepared: Vec<Prepared<'m>>,
    target: &Target,
    losses: &mut Vec<ConversionLoss>,
) -> Vec<Told<'m>> {
    // A file is at rest: none of its calls is still running.
    let steps_of = |prepared: &[Prepared<'m>]| {
        repair(target.profile, prepared.iter().map(|prepared| &*prepared.message), Pending::Over)
    };
    let mut steps = steps_of(&prepared);
    let at = |at: u32| prepared.get(at as usize).map(|prepared| &*prepared.message);
    if let Some((position, summary)) = summary_of_user(&steps, at) {
        if let Some(place) = prepared.get_mut(position as usize) {
            place.message = summary.into();
        }
        steps = steps_of(&prepared);
    }
    tell(&steps, &prepared, target, losses);
    let at = |position: u32| prepared.get(position as usize).map(|prepared| &prepared.message);
    let mut made = Vec::with_capacity(steps.len());
    let read = |position| Ok::<_, Infallible>(at(position).map(|message| Cow::Borrowed(&**message)));
    let Ok(()) = apply_repairs(steps, target.names_results(), read, |repaired| {
        made.extend(match repaired {
            Repaired::Kept(position) => at(position).cloned(),
            Repaired::Changed(_, message) | Repaired::Invented(message) => Some(message.into()),
        });
        Ok(())
    });
    made
}

/// Adds the losses of the steps.
fn tell(steps: &[Repair], prepared: &[Prepared<'_>], target: &Target, losses: &mut Vec<ConversionLoss>) {
    let mut kept = vec![false; prepared.len()];
    let (mut newest, mut last) = (0, 0);
    let mut lose = |kind, message: usize| losses.push(ConversionLoss { message, kind, what: String::new() });
    for step in steps {
        match *step {
            Repair::Keep(position) | Repair::Merge { position } | Repair::DropReasoning { position } => {
                let at = position as usize;
                let message = prepared.get(at);
                last = message.map_or(last, |prepared| prepared.at);
                if let Some(kept) = kept.get_mut(at) {
                    *kept = true;
                }
                let apart = target.hoists() && message.is_some_and(Prepared::is_instruction);
                if !apart {
                    if at < newest {
                        lose(ConversionLossKind::Moved, last);
                    }
                    newest = newest.max(at);
                }
                if matches!(step, Repair::DropReasoning { .. }) {
                    lose(ConversionLossKind::Reasoning, last);
                }
            }
            Repair::Abort { position, .. } | Repair::Unrecorded { position, .. } => {
                lose(
                    ConversionLossKind::Invented,
                    prepared.get(position as usize).map_or(last, |called| called.at),
                );
            }
            Repair::BridgeUser | Repair::BridgeAssistant => lose(ConversionLossKind::Invented, last),
            _ => {}
        }
    }
    if target.hoists() {
        let late = prepared.iter().skip_while(|prepared| prepared.is_instruction());
        late.filter(|prepared| prepared.is_instruction())
            .for_each(|prepared| lose(ConversionLossKind::Moved, prepared.at));
    }
    for (_, prepared) in kept.iter().zip(prepared).filter(|(kept, _)| !**kept) {
        lose(ConversionLossKind::Message, prepared.at);
    }
}
