//! What a store checks and decides, the same for every store. Nothing here reads or writes one.

use std::collections::BTreeSet;

use epitome_core::attribution::SeqRange;
use epitome_core::{Head, Revision, Seq, Tokens};

use super::{CompactionRecord, Entry, RecordId, StoreError, StoreErrorKind, Summary};
use crate::message::Part;
use crate::wire::stored::StoredError;

/// What a store knows of a stored message that an entry names as its anchor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Anchor {
    /// The first message of that message's own group: itself, if entries may name it.
    pub(super) anchor: Seq,
    /// The revision that hid it.
    pub(super) hidden_by: Option<Revision>,
}

/// Where appended entries go.
#[derive(Debug)]
pub(super) struct Placement {
    /// For each entry the revision that hides it from the start.
    pub(super) hidden_by: Vec<Option<Revision>>,
    /// Whether the append moves the revision.
    pub(super) moves_revision: bool,
    /// How many of the entries are visible.
    pub(super) live_messages: u64,
    /// How many tokens those have.
    pub(super) live_tokens: u64,
}

/// A visible message, as a commit sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct VisibleMessage {
    pub(super) seq: Seq,
    pub(super) anchor: Seq,
    pub(super) tokens: Tokens,
}

/// A visible summary, as a commit sees it.
#[derive(Debug, Clone)]
pub(super) struct VisibleSummary {
    pub(super) key: Seq,
    pub(super) covers: Vec<SeqRange>,
    pub(super) tokens: Tokens,
}

/// What a commit hides.
#[derive(Debug, Default)]
pub(super) struct Edit {
    /// The messages, ascending.
    pub(super) messages: Vec<Seq>,
    /// The keys of the summaries, ascending.
    pub(super) summaries: Vec<Seq>,
    /// How many messages and summaries are visible after the commit.
    pub(super) live_messages: u64,
    /// How many tokens those have.
    pub(super) live_tokens: u64,
}

/// Places `entries`, the first of which gets the number `first`. `stored` finds a message of the log before them.
pub(super) fn place(
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
    let is_result = |part: &&Part| matches!(part, Part::ToolResult(_));
    let results = entry.message.parts().iter().filter(is_result).count();
    if results > 1 && entry.call_id().is_some() {
        return Err(invalid("append: a message answers more than one call; split it"));
    }
    Ok(())
}

/// Decides whether `record` may be committed now. `Some` is the answer to a repetition. `known` is the record that made
/// the revision after `record.parent`.
pub(super) fn check_commit(
    record: &CompactionRecord,
    id: RecordId,
    known: Option<(Revision, RecordId)>,
    revision: Revision,
    head: Head,
) -> Result<Option<Revision>, StoreError> {
    match known {
        Some((made, known)) if known == id => return Ok(Some(made)),
        _ if record.parent != revision => {
            let context =
                format!("commit: made from revision {}, the session is at {revision}", record.parent);
            return Err(StoreError::new(StoreErrorKind::Conflict, context));
        }
        _ => {}
    }
    if record.head > head {
        return Err(invalid(format!("commit: made from head {}, the session is at {head}", record.head)));
    }
    check_hides(record)?;
    check_summaries(&record.hides, &record.summaries)?;
    match record.unanswered.iter().find(|call| !hides(&record.hides, call.anchor)) {
        Some(call) => Err(invalid(format!("commit: the unanswered call of {} is not hidden", call.anchor))),
        None => Ok(None),
    }
}

fn check_hides(record: &CompactionRecord) -> Result<(), StoreError> {
    let mut free = Seq(0);
    for range in &record.hides {
        if range.first < free || range.last < range.first {
            return Err(invalid("commit: the hidden ranges are not ascending and apart"));
        }
        free = range.last.next().next();
    }
    match record.hides.last() {
        None => Err(invalid("commit: the record hides nothing")),
        Some(range) if range.last >= record.head => Err(invalid(format!(
            "commit: hides up to {}, but was made from head {}",
            range.last, record.head
        ))),
        Some(_) => Ok(()),
    }
}

fn check_summaries(hidden: &[SeqRange], summaries: &[Summary]) -> Result<(), StoreError> {
    let mut covered = Vec::new();
    for pair in summaries.windows(2) {
        if let [one, next] = pair
            && one.key >= next.key
        {
            return Err(invalid("commit: the summaries are not in the order of their keys"));
        }
    }
    for summary in summaries {
        let covers = &summary.message.attribution().derived_from;
        if covers.first().map(|range| range.first) != Some(summary.key) {
            let context =
                format!("commit: the lowest number that the summary {} covers is another", summary.key);
            return Err(invalid(context));
        }
        if !covers.iter().all(|range| range.first <= range.last && hides_all(hidden, *range)) {
            return Err(invalid(format!("commit: the summary {} covers what is not hidden", summary.key)));
        }
        covered.extend_from_slice(covers);
        if !covers.is_sorted() {
            return Err(invalid(format!(
                "commit: the coverage of the summary {} is not ascending",
                summary.key
            )));
        }
    }
    covered.sort_unstable();
    let overlap = covered.windows(2).any(|pair| matches!(pair, [one, next] if one.last >= next.first));
    if overlap { Err(invalid("commit: a message is covered twice")) } else { Ok(()) }
}

/// Decides what a checked `record` hides of what is visible, both in the order of keys.
pub(super) fn edit(
    record: &CompactionRecord,
    messages: &[VisibleMessage],
    summaries: &[VisibleSummary],
) -> Result<Edit, StoreError> {
    let mut edit = Edit::default();
    for message in messages {
        if hides(&record.hides, message.seq) {
            edit.messages.push(message.seq);
        } else {
            edit.shows(message.tokens);
        }
    }
    for summary in summaries {
        if summary.covers.iter().all(|range| hides_all(&record.hides, *range)) {
            edit.summaries.push(summary.key);
        } else if summary.covers.iter().any(|range| hides_some(&record.hides, *range)) {
            return Err(invalid(format!("commit: hides a part of what the summary {} covers", summary.key)));
        } else {
            edit.shows(summary.tokens);
        }
    }
    for summary in &record.summaries {
        edit.shows(summary.count.tokens);
    }
    check_visible(&record.hides, &edit)?;
    // Last, as it may be a conflict: a record that is wrong in itself is not worth another try.
    check_groups(record, messages)?;
    Ok(edit)
}

impl Edit {
    fn shows(&mut self, tokens: Tokens) {
        self.live_messages = self.live_messages.saturating_add(1);
        self.live_tokens = self.live_tokens.saturating_add(tokens.as_u64());
    }
}

/// Groups are hidden whole. One that has grown since the record was made is a conflict: hiding the new message would
/// hide what nobody has looked at.
fn check_groups(record: &CompactionRecord, messages: &[VisibleMessage]) -> Result<(), StoreError> {
    let is_hidden = |message: &&VisibleMessage| hides(&record.hides, message.seq);
    let hidden: BTreeSet<Seq> = messages.iter().filter(is_hidden).map(|message| message.anchor).collect();
    let left = messages.iter().find(|message| !is_hidden(message) && hidden.contains(&message.anchor));
    match left {
        Some(message) if message.seq >= record.head => {
            let context = format!("commit: the group at {} has grown since", message.anchor);
            Err(StoreError::new(StoreErrorKind::Conflict, context))
        }
        Some(message) => Err(invalid(format!("commit: hides a part of the group at {}", message.anchor))),
        None => Ok(()),
    }
}

fn check_visible(ranges: &[SeqRange], edit: &Edit) -> Result<(), StoreError> {
    let lies_in = |keys: &[Seq], range: SeqRange| {
        let at = keys.partition_point(|key| *key < range.first);
        keys.get(at).is_some_and(|key| range.contains(*key))
    };
    match ranges.iter().find(|range| !lies_in(&edit.messages, **range) && !lies_in(&edit.summaries, **range))
    {
        Some(range) => {
            Err(invalid(format!("commit: nothing from {} to {} is visible", range.first, range.last)))
        }
        None => Ok(()),
    }
}

/// Whether `ranges`, ascending and apart, hold `seq`.
fn hides(ranges: &[SeqRange], seq: Seq) -> bool {
    hides_all(ranges, SeqRange { first: seq, last: seq })
}

fn hides_all(ranges: &[SeqRange], range: SeqRange) -> bool {
    let at = ranges.partition_point(|hidden| hidden.last < range.first);
    ranges.get(at).is_some_and(|hidden| hidden.contains(range.first) && hidden.contains(range.last))
}

fn hides_some(ranges: &[SeqRange], range: SeqRange) -> bool {
    let at = ranges.partition_point(|hidden| hidden.last < range.first);
    ranges.get(at).is_some_and(|hidden| hidden.first <= range.last)
}

/// Where the page after one that ends before `end` begins, in a log of which `range` was asked for.
pub(super) fn next_page(end: Seq, wanted: Seq, head: Head) -> Option<Seq> {
    (end < wanted.min(head)).then_some(end)
}

pub(super) fn head_conflict(expected: Head, head: Head) -> StoreError {
    let context = format!("append: expected head {expected}, the session is at {head}");
    StoreError::new(StoreErrorKind::Conflict, context)
}

pub(super) fn token_reused() -> StoreError {
    invalid("append: the token was used for other messages")
}

pub(super) fn not_found(operation: &str) -> StoreError {
    StoreError::new(StoreErrorKind::NotFound, format!("{operation}: there is no such session"))
}

pub(super) fn not_storable(error: StoredError) -> StoreError {
    invalid("a message has no stored form").with_source(error)
}

pub(super) fn invalid(context: impl Into<String>) -> StoreError {
    StoreError::new(StoreErrorKind::Invalid, context)
}
