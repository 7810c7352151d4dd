//! The checks and decisions of every store. This module reads and writes no store.

mod authority;
mod place;
mod stand_in;
mod undo;

use core::cmp::Ordering;
use std::collections::BTreeSet;

use epitome_core::attribution::SeqRange;
use epitome_core::message::CallKind;
use epitome_core::{Head, Revision, Seq, Tokens};

pub use self::authority::Standing;
pub use self::place::{Anchor, Placement, place};
pub use self::undo::{
    Restored, Undoing, bare_record, check_prune, check_uncompact, is_pruned_record, live, nothing_pruned,
    restored_edits,
};
use epitome_message::{Message, Part};

use super::edit::merged;
use super::{
    CompactionRecord, MessageEdit, PartStandIn, RecordId, StoreError, StoreErrorKind, Summary, TokenCount,
};
use crate::stored::{self, StoredError};

/// A visible message, in the form that the checks of a commit use.
#[derive(Debug, Clone, Copy)]
pub struct VisibleMessage {
    /// Its number.
    pub seq: Seq,
    /// The first message of its group.
    pub anchor: Seq,
    /// Its size in its visible form.
    pub tokens: Tokens,
    /// The part of its attribution that a commit needs.
    pub standing: Standing,
}

/// A visible summary, in the form that the checks of a commit use.
#[derive(Debug, Clone)]
pub struct VisibleSummary {
    /// Its key: the lowest number that it covers.
    pub key: Seq,
    /// The revision of its record.
    pub made: Revision,
    /// The numbers that it covers: ascending.
    pub covers: Vec<SeqRange>,
    /// Its size.
    pub tokens: Tokens,
    /// The part of its attribution that a commit needs.
    pub standing: Standing,
}

/// The messages and summaries that a commit hides.
#[derive(Debug, Default)]
pub struct HiddenRows {
    /// The messages, ascending.
    pub messages: Vec<Seq>,
    /// The keys of the summaries, ascending.
    pub summaries: Vec<Seq>,
    /// Number of messages and summaries that are visible after the commit.
    pub live_messages: u64,
    /// Number of their tokens.
    pub live_tokens: u64,
}

/// Checks whether `record` may be committed now. Returns `Some` with the answer if the commit is a repetition. `known`
/// is the record of the revision after `record.parent`.
pub fn check_commit(
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
    check_edits(record)?;
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
        None if record.edits.is_empty() => Err(invalid("commit: the record hides nothing and edits nothing")),
        Some(range) if range.last >= record.head => Err(invalid(format!(
            "commit: hides up to {}, but was made from head {}",
            range.last, record.head
        ))),
        _ => Ok(()),
    }
}

fn check_edits(record: &CompactionRecord) -> Result<(), StoreError> {
    let mut free = Seq(0);
    for edit in &record.edits {
        let seq = edit.seq;
        if seq < free {
            return Err(invalid("commit: the edited messages are not in order, or one is named twice"));
        }
        if seq >= record.head {
            return Err(invalid(format!("commit: edits {seq}, but was made from head {}", record.head)));
        }
        if hides(&record.hides, seq) {
            return Err(invalid(format!("commit: edits message {seq}, and hides it")));
        }
        let ascends = |pair: &[PartStandIn]| matches!(pair, [one, next] if one.ordinal < next.ordinal);
        if edit.stand_ins.is_empty() || !edit.stand_ins.windows(2).all(ascends) {
            return Err(invalid(format!(
                "commit: the edited parts of message {seq} are not in order, or none"
            )));
        }
        free = seq.next();
    }
    Ok(())
}

/// Decides the stand-ins of a visible message after `edit`. `message` is the appended message, `before` are its present
/// stand-ins, and `shown` is its present size.
pub fn shorten(
    edit: &MessageEdit,
    message: &Message,
    before: &[PartStandIn],
    shown: &TokenCount,
) -> Result<Vec<PartStandIn>, StoreError> {
    let seq = edit.seq;
    // An imported message may have been pruned before, and then has no parts to check.
    let looked_at = if message.is_pruned() { &[][..] } else { &edit.stand_ins[..] };
    for PartStandIn { ordinal, text } in looked_at {
        let part = usize::try_from(*ordinal).ok().and_then(|at| message.parts().get(at));
        let part = part.ok_or_else(|| invalid(format!("commit: message {seq} has no part {ordinal}")))?;
        let fits = match (part, text) {
            (Part::Reasoning(_), None) => true,
            (Part::ToolCall(call), Some(text)) => call.kind == CallKind::Function && !text.is_empty(),
            (Part::Text(_) | Part::ToolResult(_) | Part::Media(_), Some(text)) => !text.trim().is_empty(),
            _ => false,
        };
        if !fits {
            return Err(invalid(format!("commit: part {ordinal} of message {seq} cannot become that")));
        }
        let shown = before.binary_search_by_key(ordinal, |it| it.ordinal).ok().and_then(|at| before.get(at));
        let shown = shown.and_then(|it| it.text.as_deref());
        if text.as_deref().is_some_and(|text| !stand_in::may_stand(message, part, shown, text)) {
            return Err(invalid(format!(
                "commit: part {ordinal} of message {seq} is of a user or an instruction, and would say something else; let \
                 its beginning and its end stand there around a word in brackets, or such a word alone"
            )));
        }
    }
    // Sealed reasoning counts as zero tokens. Sizes from two counters cannot be compared.
    let may_be_equal = edit.stand_ins.iter().all(|stand_in| stand_in.text.is_none());
    let smaller = match edit.count.tokens.cmp(&shown.tokens) {
        Ordering::Less => true,
        Ordering::Equal => may_be_equal,
        Ordering::Greater => false,
    };
    if edit.count.counter == shown.counter && !smaller {
        return Err(invalid(format!("commit: what stands in message {seq} is not smaller")));
    }
    Ok(merged(before, &edit.stand_ins))
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

/// Decides which visible messages and summaries a checked `record` hides. Both lists are ordered by key.
pub fn edit(
    record: &CompactionRecord,
    messages: &[VisibleMessage],
    summaries: &[VisibleSummary],
) -> Result<HiddenRows, StoreError> {
    let mut edit = HiddenRows::default();
    for message in messages {
        if hides(&record.hides, message.seq) {
            edit.messages.push(message.seq);
        } else {
            edit.shows(edited(record, message.seq).map_or(message.tokens, |edit| edit.count.tokens));
        }
    }
    if let Some(unseen) = record
        .edits
        .iter()
        .find(|edit| messages.binary_search_by_key(&edit.seq, |message| message.seq).is_err())
    {
        return Err(invalid(format!("commit: edits message {}, which is not visible", unseen.seq)));
    }
    let mut covered = Vec::new();
    for summary in summaries {
        if summary.covers.iter().all(|range| hides_all(&record.hides, *range)) {
            edit.summaries.push(summary.key);
            covered.extend_from_slice(&summary.covers);
        } else if summary.covers.iter().any(|range| hides_some(&record.hides, *range)) {
            return Err(invalid(format!("commit: hides a part of what the summary {} covers", summary.key)));
        } else {
            edit.shows(summary.tokens);
        }
    }
    for summary in &record.summaries {
        edit.shows(summary.count.tokens);
    }
    covered.sort_unstable();
    check_visible(&record.hides, &edit.messages, &covered)?;
    authority::check_authority(record, messages, summaries, &edit)?;
    match record.unanswered.iter().find(|call| edit.messages.binary_search(&call.anchor).is_err()) {
        Some(call) => {
            Err(invalid(format!("commit: the unanswered call of {} is hidden already", call.anchor)))
        }
        None => Ok(edit),
    }
}

fn edited(record: &CompactionRecord, seq: Seq) -> Option<&MessageEdit> {
    let at = record.edits.binary_search_by_key(&seq, |edit| edit.seq).ok()?;
    record.edits.get(at)
}

impl HiddenRows {
    fn shows(&mut self, tokens: Tokens) {
        self.live_messages = self.live_messages.saturating_add(1);
        self.live_tokens = self.live_tokens.saturating_add(tokens.as_u64());
    }
}

/// Checks that groups are hidden whole. A group that has grown since the record was made is a conflict: the plan has
/// not seen its new message.
///
/// This check comes last, because its error may be a conflict. A record with an error of its own must not cause a
/// retry.
pub fn check_groups(record: &CompactionRecord, messages: &[VisibleMessage]) -> Result<(), StoreError> {
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

/// Checks that each range hides a visible message. `messages` are the hidden messages, `covered` is the coverage of the
/// hidden summaries, which may have gaps.
fn check_visible(ranges: &[SeqRange], messages: &[Seq], covered: &[SeqRange]) -> Result<(), StoreError> {
    let holds_one = |range: SeqRange| {
        let at = messages.partition_point(|seq| *seq < range.first);
        messages.get(at).is_some_and(|seq| range.contains(*seq))
    };
    match ranges.iter().find(|range| !holds_one(**range) && !hides_some(covered, **range)) {
        Some(range) => {
            Err(invalid(format!("commit: nothing from {} to {} is visible", range.first, range.last)))
        }
        None => Ok(()),
    }
}

/// Whether `ranges`, which are ascending and disjoint, contain `seq`.
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

/// The beginning of the next page after a page that ends before `end`. `wanted` is the end of the requested range.
pub fn next_page(end: Seq, wanted: Seq, head: Head) -> Option<Seq> {
    (end < wanted.min(head)).then_some(end)
}

pub fn head_conflict(expected: Head, head: Head) -> StoreError {
    let context = format!("append: expected head {expected}, the session is at {head}");
    StoreError::new(StoreErrorKind::Conflict, context)
}

pub fn token_reused() -> StoreError {
    invalid("append: the token was used for other messages")
}

/// The error of an operation on a session that does not exist.
pub fn not_found(operation: &str) -> StoreError {
    StoreError::new(StoreErrorKind::NotFound, format!("{operation}: there is no such session"))
}

pub fn unsupported(operation: &str) -> StoreError {
    StoreError::new(StoreErrorKind::Unsupported, format!("{operation}: this store cannot do that"))
}

/// Checks that a stored record matches its id. A record with pruned texts keeps the id of the whole record, and is not
/// checked.
pub fn check_id(record: &CompactionRecord, id: RecordId) -> Result<(), StoreError> {
    if is_pruned_record(record) || stored::record_id(record).map_err(not_storable)? == id {
        return Ok(());
    }
    Err(corrupt(format!("the record made from {} is not the one that its id names", record.parent)))
}

/// The error for a message that has no stored form.
pub fn not_storable(error: StoredError) -> StoreError {
    invalid("a message has no stored form").with_source(error)
}

/// The error for a stored text that differs from the text that the store wrote.
pub fn corrupt(context: impl Into<String>) -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, context)
}

pub fn invalid(context: impl Into<String>) -> StoreError {
    StoreError::new(StoreErrorKind::Invalid, context)
}
