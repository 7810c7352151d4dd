//! `epitome compact --repair`.

use epitome::core::message::{PartView, Parts as _};
use epitome::core::{ABORTED, Pending, Profile, Repair, Repairer, TokenCounter, Tokens, count_message};
use epitome::std::message::Message;
use epitome::std::wire::openai_chat;

use super::OwnedPiece;
use crate::failure::{Failure, Result};
use crate::report::{RepairCounts, Report};
use crate::transcript::{Transcript, View};

/// Brings the report up to date with what a repair did. `None` if the transcript is written as it is.
pub(super) fn account(
    (pieces, counts): (Vec<OwnedPiece>, RepairCounts),
    sizes: &[Tokens],
    counter: &dyn TokenCounter,
    report: &mut Report,
) -> Result<Option<Vec<OwnedPiece>>> {
    report.repair = Some(counts);
    report.messages_after = pieces.len() as u64;
    report.tokens_after = 0;
    for piece in &pieces {
        report.tokens_after += match piece {
            OwnedPiece::Original(at) => sizes.get(*at).map_or(0, |size| size.as_u64()),
            OwnedPiece::Shortened { tokens, .. } => *tokens,
            OwnedPiece::New(text) => {
                let message = openai_chat::read(text).map_err(|error| Failure::input(error.to_string()))?;
                count_message(&message, counter).as_u64()
            }
        };
    }
    let same = |(at, piece): &(usize, &OwnedPiece)| matches!(piece, OwnedPiece::Original(from) if from == at);
    let stable = pieces.iter().enumerate().take_while(same).count();
    report.set_stable_prefix(stable, sizes);
    report.set_goal_missed();
    Ok(Some(pieces).filter(|pieces| stable < pieces.len() || pieces.len() < sizes.len()))
}

/// The messages of `kept`, made legal.
pub(super) fn repair(
    kept: &[OwnedPiece],
    transcript: &mut Transcript<'_>,
    profile: Profile,
) -> Result<(Vec<OwnedPiece>, RepairCounts)> {
    let order: Vec<usize> = kept.iter().filter_map(OwnedPiece::original).collect();
    let mut counts = RepairCounts { left_out: order.len() as u64, ..RepairCounts::default() };
    let mut newest = 0;
    let mut pieces = Vec::with_capacity(order.len());
    for step in repair_steps(&order, transcript, profile)? {
        match step {
            Repair::Abort { position, call } => {
                let at = order.get(position as usize).copied().unwrap_or(0);
                pieces.push(OwnedPiece::New(aborted(transcript, at, call)?));
                counts.aborted += 1;
            }
            Repair::Keep(at) => {
                counts.left_out -= 1;
                counts.moved += u64::from(at < newest);
                newest = newest.max(at);
                pieces.extend(kept.get(at as usize).cloned());
            }
            other => {
                return Err(Failure::input(format!("the repair {other:?} has no form in Chat Completions")));
            }
        }
    }
    Ok((pieces, counts))
}

fn repair_steps(order: &[usize], transcript: &mut Transcript<'_>, profile: Profile) -> Result<Vec<Repair>> {
    let mut repairer = Repairer::default();
    for at in order {
        transcript.with_message(*at, |message| repairer.push(message))?;
    }
    // A file is at rest: nothing of it is still running.
    Ok(repairer.finish(profile, Pending::Over))
}

/// The text of an aborted result for a call of the message at `at`.
fn aborted(transcript: &mut Transcript<'_>, at: usize, call: u32) -> Result<String> {
    let id = transcript.with_message(at, |message| call_id(message, call))?;
    let message = Message::tool(id, ABORTED);
    let text = openai_chat::write(&message).map_err(|error| Failure::input(error.to_string()))?;
    Ok(text.into_owned())
}

fn call_id(message: &View<'_>, wanted: u32) -> String {
    let (mut seen, mut id) = (0, String::new());
    message.for_each_part(&mut |part| {
        if let PartView::ToolCall(call) = part {
            if seen == wanted {
                call.id.clone_into(&mut id);
            }
            seen += 1;
        }
    });
    id
}
