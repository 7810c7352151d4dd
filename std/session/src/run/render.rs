//! From the visible messages to the messages of a request.

use core::convert::Infallible;
use std::borrow::Cow;

use epitome_core::{Pending, Profile, Repair, repair};

use crate::message::{Message, Repaired, apply_repairs, summary_of_user};
use crate::wire::openai_responses::CustomCalls;

/// Makes `messages` legal for `profile`, and returns the repairs. A part that a provider left for another model than
/// `model` is marked as not for this one.
pub(super) fn legal(profile: Profile, model: &str, messages: &[&Message]) -> (Vec<Message>, Vec<Repair>) {
    let (mut written, repairs) = repaired(profile, messages);
    for message in &mut written {
        if let Cow::Owned(sent) = message.for_model(model) {
            *message = sent;
        }
    }
    (written, repairs)
}

/// The messages that continue a conversation which a service keeps. The calls in `all`, the known messages, decide the
/// form of each result.
pub(super) fn continued(all: &[&Message], messages: &[&Message]) -> Vec<Message> {
    let mut calls = CustomCalls::default();
    all.iter().for_each(|message| calls.push(message));
    let answered = |message: &&Message| calls.answered(message).unwrap_or_else(|| (*message).clone());
    messages.iter().map(answered).collect()
}

fn repaired(profile: Profile, messages: &[&Message]) -> (Vec<Message>, Vec<Repair>) {
    let steps = repair(profile, messages.iter().copied(), Pending::Over);
    if let Some((position, summary)) = summary_of_user(&steps, |at| messages.get(at as usize).copied()) {
        let mut messages = messages.to_vec();
        if let Some(place) = messages.get_mut(position as usize) {
            *place = &summary;
        }
        return repaired(profile, &messages);
    }
    let untouched = (0_u32..).map(Repair::Keep);
    if steps.len() == messages.len() && steps.iter().copied().eq(untouched.take(steps.len())) {
        return (messages.iter().copied().cloned().collect(), Vec::new());
    }
    let at = |position: u32| messages.get(position as usize).copied();
    let mut written = Vec::with_capacity(steps.len());
    let read = |position| Ok::<_, Infallible>(at(position).map(Cow::Borrowed));
    let Ok(()) = apply_repairs(steps.iter().copied(), profile.names_results(), read, |repaired| {
        written.extend(match repaired {
            Repaired::Kept(position) => at(position).cloned(),
            Repaired::Changed(_, message) | Repaired::Invented(message) => Some(message),
        });
        Ok(())
    });
    (written, steps)
}
