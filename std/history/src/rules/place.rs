//! Placement of appended messages.

use epitome_core::{Revision, Seq};
use epitome_message::Part;

use super::invalid;
use crate::{Entry, StoreError};

/// The stored facts about a message that an entry names as its anchor.
#[derive(Debug, Clone, Copy)]
pub struct Anchor {
    /// The first message of that message's group. Entries may name the message only if it is itself the first one.
    pub anchor: Seq,
    /// The revision that hid the group, if it is hidden.
    pub hidden_by: Option<Revision>,
}

/// The placement of appended entries.
#[derive(Debug)]
pub struct Placement {
    /// For each entry, the revision that hides it from the start, if there is one.
    pub hidden_by: Vec<Option<Revision>>,
    /// Whether the append changes the revision.
    pub moves_revision: bool,
    /// Number of the visible entries.
    pub live_messages: u64,
    /// Number of their tokens.
    pub live_tokens: u64,
}

/// Places `entries`. The first one gets the number `first`. `stored` returns the facts about an earlier message of the
/// log.
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
        // An orphan is in the log only: it is neither visible nor hidden.
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

/// Checks that a message answers at most one call. A reader splits a message that answers several.
fn check_answer(entry: &Entry) -> Result<(), StoreError> {
    let is_answer = |part: &&Part| matches!(part, Part::ToolResult(_) | Part::ApprovalResponse(_));
    let answers = entry.message.parts().iter().filter(is_answer).count();
    if answers > 1 && entry.answers().is_some() {
        return Err(invalid("append: a message answers more than one call; split it"));
    }
    Ok(())
}
