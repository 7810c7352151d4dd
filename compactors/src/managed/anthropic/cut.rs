//! Cuts of a conversation that the API accepts.

use std::collections::BTreeMap;
use std::vec::Vec;

use super::body::{Body, Raw};
use super::error::MappingError;

/// The number of messages to summarize so that the newest `keep_turns` turns stay. `None` if there is nothing to
/// summarize.
///
/// A turn begins with a message of the user that has content other than tool results. From there the cut moves back to
/// the nearest legal place: no call is open, each call is on the same side as its result, and the role changes at the
/// cut.
///
/// # Errors
/// If `request` is no request.
pub fn choose_cut(request: &str, keep_turns: usize) -> Result<Option<usize>, MappingError> {
    let messages = Body::of(request)?.messages()?;
    let newest = match keep_turns.checked_sub(1) {
        None => Some(messages.len()),
        Some(skip) => {
            let starts = messages.iter().enumerate().rev().filter(|(_, message)| message.begins_turn());
            starts.map(|(at, _)| at).nth(skip)
        }
    };
    let Some(newest) = newest else { return Ok(None) };
    let mut open = OpenCalls::default();
    let mut cut = None;
    for (at, message) in messages.iter().enumerate().take(newest) {
        open.pass(at, message);
        let next = at.saturating_add(1);
        if open.first().is_none() && is_joint(&messages, next) && has_news(&messages, next) {
            cut = Some(next);
        }
    }
    Ok(cut)
}

/// Checks that the first `cut` messages can be summarized and the others kept unchanged.
pub(super) fn check(messages: &[Raw<'_>], cut: usize) -> Result<(), MappingError> {
    if cut > messages.len() {
        return Err(MappingError::NoSuchMessage { message: cut, messages: messages.len() });
    }
    let mut open = OpenCalls::default();
    messages.iter().take(cut).enumerate().for_each(|(at, message)| open.pass(at, message));
    if let Some(message) = open.first() {
        return Err(MappingError::OpenCall { message });
    }
    if !has_news(messages, cut) {
        return Err(MappingError::NothingToSummarize);
    }
    match is_joint(messages, cut) {
        true => Ok(()),
        false => Err(MappingError::Joined { message: cut }),
    }
}

/// Whether the role changes at `cut`, or no message is kept.
fn is_joint(messages: &[Raw<'_>], cut: usize) -> bool {
    match (cut.checked_sub(1).and_then(|last| messages.get(last)), messages.get(cut)) {
        (Some(last), Some(first)) => last.role != first.role && first.role != "system",
        _ => true,
    }
}

/// Whether a message before `cut` is neither a summary nor a system message.
fn has_news(messages: &[Raw<'_>], cut: usize) -> bool {
    let is_old = |message: &Raw<'_>| {
        message.role == "system"
            || message.blocks.first().is_some_and(|block| block.is_summary()) && message.blocks.len() == 1
    };
    !messages.iter().take(cut).all(is_old)
}

/// The calls without a result so far, each with the position of its message.
#[derive(Default)]
struct OpenCalls<'a>(BTreeMap<&'a str, usize>);

impl<'a> OpenCalls<'a> {
    fn pass(&mut self, at: usize, message: &'a Raw<'_>) {
        for block in &message.blocks {
            match (&*block.head.kind, &block.head.id, &block.head.tool_use_id) {
                ("tool_use", Some(id), _) => drop(self.0.insert(id, at)),
                ("tool_result", _, Some(id)) => drop(self.0.remove(&**id)),
                _ => {}
            }
        }
    }

    fn first(&self) -> Option<usize> {
        self.0.values().min().copied()
    }
}

/// Checks that `messages`, which begin at position `first`, have no compaction block with content.
pub(super) fn no_summary(messages: &[Raw<'_>], first: usize) -> Result<(), MappingError> {
    let has = |message: &Raw<'_>| message.blocks.iter().any(|block| block.is_summary());
    match messages.iter().position(has) {
        Some(at) => Err(MappingError::Ambiguous { message: first.saturating_add(at) }),
        None => Ok(()),
    }
}

/// The messages; an error unless they have at most one compaction block with content, as the very first block.
pub(super) fn with_block_first<'a>(body: &Body<'a>) -> Result<Vec<Raw<'a>>, MappingError> {
    let messages = body.messages()?;
    let mut found = false;
    for (at, message) in messages.iter().enumerate() {
        for (place, _) in message.blocks.iter().enumerate().filter(|(_, block)| block.is_summary()) {
            match (found, at, place) {
                (true, ..) => return Err(MappingError::Ambiguous { message: at }),
                (false, 0, 0) => found = true,
                _ => return Err(MappingError::Misplaced { message: at }),
            }
        }
    }
    Ok(messages)
}
