//! Placement of appended messages.

use epitome_core::{Revision, Seq};
use epitome_message::Part;

use super::invalid;
use crate::{Entry, StoreError};

/// A store's facts about a stored message that an entry names as its anchor.
#[derive(Debug, Clone, Copy)]
pub struct Anchor {
    /// The first message of that message's own group: itself, if entries may name it.
    pub anchor: Seq,
    /// The revision that hid it.
    pub hidden_by: Option<Revision>,
}

/// The placement of appended entries.
#[derive(Debug)]
pub struct Placement {
    /// For each entry the revision that hides it from the start.
    pub hidden_by: Vec<Option<Revision>>,
    /// Whether the append moves the revision.
    pub moves_revision: bool,
    /// Number of the entries that are visible.
    pub live_messages: u64,
    /// Number of tokens of those.
    pub live_tokens: u64,
}

/// Places `entries`, the first of which gets the number `first`. `stored` finds a message of the log before them.
pub fn place(
    first: Seq,
    entries: &[Entry],
    mut stored: impl FnMut(Seq) -> Result<Anchor, StoreError>,
) -> Result<Placement, StoreError> {
    if entries.is_empty() {
        return Err(invalid("append: there is nothing to append"));
    }
    let mut placement =
        Placement { hidden_by: Vec::new(), moves_revision: false, live_messages: 0, live_tokens: 0 };
    for (seq, entry) in (first.0..).map(Seq).zip(entries) {
        check_answer(entry)?;
        let group = anchor_of(first, seq, entry, entries, &mut stored)?;
        if group.anchor != entry.anchor {
            return Err(invalid(format!("append: {} is not the first message of a group", entry.anchor)));
        }
        // An orphan is in the log only: it is neither visible nor ever hidden.
        let hidden_by = group.hidden_by.filter(|_| !entry.orphan);
        if hidden_by.is_none() && !entry.orphan {
            placement.live_messages = placement.live_messages.saturating_add(1);
            placement.live_tokens = placement.live_tokens.saturating_add(entry.count.tokens.as_u64());
        }
        placement.hidden_by.push(hidden_by);
        placement.moves_revision |= entry.late && !entry.orphan;
    }
    Ok(placement)
}

fn anchor_of(
    first: Seq,
    seq: Seq,
    entry: &Entry,
    entries: &[Entry],
    stored: &mut impl FnMut(Seq) -> Result<Anchor, StoreError>,
) -> Result<Anchor, StoreError> {
    if entry.anchor > seq {
        return Err(invalid(format!("append: the anchor {} lies after its message {seq}", entry.anchor)));
    }
    let Some(offset) = entry.anchor.0.checked_sub(first.0) else { return stored(entry.anchor) };
    let leader = usize::try_from(offset).ok().and_then(|offset| entries.get(offset));
    Ok(Anchor { anchor: leader.map_or(seq, |leader| leader.anchor), hidden_by: None })
}

/// A message answers one call, and is in that call's group: a reader has split what answers several.
fn check_answer(entry: &Entry) -> Result<(), StoreError> {
    let is_answer = |part: &&Part| matches!(part, Part::ToolResult(_) | Part::ApprovalResponse(_));
    let answers = entry.message.parts().iter().filter(is_answer).count();
    if answers > 1 && entry.answers().is_some() {
        return Err(invalid("append: a message answers more than one call; split it"));
    }
    Ok(())
}
