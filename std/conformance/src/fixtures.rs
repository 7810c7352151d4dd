//! Messages, summaries and records for the scenarios, under short names. Tests of other stores may use them too.
//!
//! Every message has ten tokens by a counter named `test`, a summary three. A message's text is derived from its
//! number, so that a test can check its position.

use epitome_core::attribution::{Authority, SeqRange, SourceKind};
use epitome_core::message::Role;
use epitome_core::{Basis, Revision, Seq, Tokens, Turn};
use epitome_message::{Attribution, Message, Part, ToolCall};

use epitome_history::{
    CompactionRecord, Entry, MessageEdit, PartStandIn, Summary, TokenCount, UnansweredCall,
};

/// A count of `tokens` by the counter `test`.
#[must_use]
pub fn count(tokens: u32) -> TokenCount {
    TokenCount::new(Tokens(tokens), Basis::Estimated, "test".into())
}

/// A message of ten tokens in the group at `anchor`.
#[must_use]
pub fn entry(message: Message, anchor: u64, turn: u32) -> Entry {
    Entry::new(message, Seq(anchor), Turn(turn), count(10))
}

/// A user message that is a group of its own.
#[must_use]
pub fn user(seq: u64) -> Entry {
    entry(Message::user(format!("question {seq}")), seq, 1)
}

/// An assistant message with these calls, the first of its group.
#[must_use]
pub fn calls(seq: u64, ids: &[&str]) -> Entry {
    let parts = ids.iter().map(|id| Part::ToolCall(ToolCall::new(*id, "read", "{}"))).collect();
    entry(Message::new(Role::Assistant, parts), seq, 1)
}

/// The answer to a call of the group at `anchor`.
#[must_use]
pub fn answer(anchor: u64, id: &str) -> Entry {
    entry(Message::tool(id, format!("answer to {id}")), anchor, 1)
}

/// Makes an entry the answer to a call of an earlier turn.
#[must_use]
pub const fn late(mut entry: Entry) -> Entry {
    entry.late = true;
    entry
}

/// Makes an entry the answer to no call.
#[must_use]
pub const fn orphan(mut entry: Entry) -> Entry {
    entry.orphan = true;
    entry
}

/// The numbers from `first` to `last`, inclusive.
#[must_use]
pub const fn range(first: u64, last: u64) -> SeqRange {
    SeqRange { first: Seq(first), last: Seq(last) }
}

/// A record made from revision `parent` and from `head` that hides these ranges.
#[must_use]
pub fn record(parent: u64, head: u64, hides: &[(u64, u64)]) -> CompactionRecord {
    let mut record = CompactionRecord::new(Revision(parent), Seq(head));
    record.hides = hides.iter().map(|(first, last)| range(*first, *last)).collect();
    record
}

/// A summary of `covers`, at its first number; at 0 if `covers` is empty.
#[must_use]
pub fn summary(covers: &[(u64, u64)]) -> Summary {
    let ranges: Vec<SeqRange> = covers.iter().map(|(first, last)| range(*first, *last)).collect();
    let key = ranges.first().map_or(Seq(0), |range| range.first);
    let attribution = Attribution::new("summarizer", SourceKind::Compaction, Authority::Retrieved);
    let message = Message::assistant(format!("summary of {covers:?}"));
    Summary::new(key, message.with_attribution(attribution.with_derived_from(ranges)), count(3))
}

/// Adds a summary of each of these ranges to a record.
#[must_use]
pub fn summarized(mut record: CompactionRecord, summaries: &[&[(u64, u64)]]) -> CompactionRecord {
    record.summaries = summaries.iter().map(|covers| summary(covers)).collect();
    record
}

/// An edit of message `seq`: these stand-ins for its parts, and `tokens` as its new size.
#[must_use]
pub fn edit(seq: u64, stand_ins: &[(u32, Option<&str>)], tokens: u32) -> MessageEdit {
    let stand_ins = stand_ins.iter().map(|(ordinal, text)| PartStandIn::new(*ordinal, text.map(Into::into)));
    MessageEdit::new(Seq(seq), stand_ins.collect(), count(tokens))
}

/// Adds these edits to a record.
#[must_use]
pub fn edited(mut record: CompactionRecord, edits: &[MessageEdit]) -> CompactionRecord {
    record.edits = edits.to_vec();
    record
}

/// The call `id` of the group at `anchor`, at this place among its calls, without an answer.
#[must_use]
pub fn unanswered(id: &str, anchor: u64, ordinal: u32) -> UnansweredCall {
    UnansweredCall::new(id.into(), Seq(anchor), Turn(1), ordinal)
}
