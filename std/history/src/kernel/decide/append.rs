//! The decision about an append.

use std::borrow::Cow;

use epitome_core::{Head, Seq};

use super::super::{Changes, Counters, Extent, Facts, Insert, Needs, Receipt, Reply, SaidBefore};
use super::{Decision, state};
use crate::rules::{self, corrupt};
use crate::visible::grouped_behind;
use crate::{
    Append, AppendPosition, Appended, Entry, Loaded, NewState, StateOutcome, StoreError, Timestamp,
    UnansweredCall,
};

pub(super) fn needs<'a>(append: Append<'a>, state: Option<NewState<'_>>) -> Needs<'a> {
    let receipt = Some((append.token, append.entries));
    let anchors = joined(append.head, append.entries);
    Needs { receipt, anchors, state: state.is_some(), ..Needs::default() }
}

/// The groups before `head` that the entries join, ascending.
fn joined(head: Head, entries: &[Entry]) -> Vec<Seq> {
    let mut anchors: Vec<Seq> =
        entries.iter().map(|entry| entry.anchor).filter(|anchor| *anchor < head).collect();
    anchors.sort_unstable();
    anchors.dedup();
    anchors
}

pub(super) fn decide<'a>(
    append: Append<'a>,
    new: Option<NewState<'a>>,
    facts: &'a Facts,
) -> Result<Decision<'a>, StoreError> {
    if let Some(receipt) = facts.receipt {
        return again(receipt, new, facts);
    }
    let before = facts.session.unwrap_or_default();
    let entries = match placed(append, before, facts)? {
        Placed::There(entries) => entries,
        Placed::Unknown(more) => return Ok(Decision::Ask(more)),
    };
    let placement = rules::place(before.head, &entries, |seq| {
        facts.anchor(seq).ok_or_else(|| corrupt("append: a message of the log is missing"))
    })?;
    let is_hidden = placement.hidden_by.iter().any(Option::is_some);
    let mut more = Needs { calls: is_hidden && facts.calls.is_none(), ..Needs::default() };
    let kept = match new {
        Some(new) => state::step(new, facts, &mut more),
        None => None,
    };
    if more.calls || more.state_text {
        return Ok(Decision::Ask(more));
    }

    let mut changes = Changes::of(facts.session);
    changes.after = after(before, entries.len(), &placement, append.time);
    let appended = Appended::new(before.head, changes.after.head, changes.after.revision);
    let outcome = kept.map(|step| step.outcome);
    changes.state = new.zip(kept).and_then(|(new, step)| step.written(new, appended.head));
    if is_hidden {
        let calls = facts.calls.as_deref().unwrap_or_default();
        let hidden = entries.iter().zip(&placement.hidden_by).filter(|(_, by)| by.is_some());
        changes.answered = answered(calls, hidden.map(|(entry, _)| entry));
    }
    let (hidden_by, time) = (placement.hidden_by, changes.after.appended);
    changes.insert = Some(Insert { token: append.token, entries, hidden_by, appended, time });
    Ok(Decision::Change(changes, Reply::Appended(appended, outcome)))
}

/// The entries of an append, grouped at the session's head.
enum Placed<'a> {
    There(Cow<'a, [Entry]>),
    /// The facts that are still needed to group the entries.
    Unknown(Needs<'static>),
}

fn placed<'a>(append: Append<'a>, before: Counters, facts: &Facts) -> Result<Placed<'a>, StoreError> {
    if append.head == before.head {
        return Ok(Placed::There(Cow::Borrowed(append.entries)));
    }
    if append.position != AppendPosition::End {
        return Err(rules::head_conflict(append.head, before.head));
    }
    let ask = |extent| Ok(Placed::Unknown(Needs { projection: Some(extent), ..Needs::default() }));
    let (extent, loaded) = match &facts.projection {
        Some((extent, loaded)) => (*extent, loaded.clone()),
        None if facts.session.is_none() => (Extent::All, Loaded::new(before.head, before.revision)),
        None => return ask(Extent::LastTurn),
    };
    let contradicts = |error| corrupt("append: the session cannot be put together").with_source(error);
    let entries = grouped_behind(loaded, append.entries).map_err(contradicts)?;
    // A result without a call in the last turn may answer a call of an earlier turn.
    if extent == Extent::LastTurn && entries.iter().any(|entry| entry.late || entry.orphan) {
        return ask(Extent::All);
    }
    let anchors = joined(before.head, &entries);
    if anchors.is_empty() || anchors == facts.anchors_asked {
        return Ok(Placed::There(Cow::Owned(entries)));
    }
    Ok(Placed::Unknown(Needs { anchors, ..Needs::default() }))
}

/// The answer to a token that the session already knows. The state of the append may still have to be saved.
fn again<'a>(
    receipt: Receipt,
    new: Option<NewState<'a>>,
    facts: &'a Facts,
) -> Result<Decision<'a>, StoreError> {
    if receipt.said == SaidBefore::Other {
        return Err(rules::token_reused());
    }
    let reply = |outcome: Option<StateOutcome>| Reply::Appended(receipt.appended, outcome);
    let Some(new) = new else { return Ok(Decision::Answer(reply(None))) };
    state::keep(new, facts, |outcome| Ok(reply(Some(outcome))))
}

fn after(before: Counters, count: usize, placement: &rules::Placement, time: Option<Timestamp>) -> Counters {
    let mut after = before;
    after.head = Seq(before.head.0.saturating_add(count as u64));
    after.live_messages = before.live_messages.saturating_add(placement.live_messages);
    after.live_tokens = before.live_tokens.saturating_add(placement.live_tokens);
    if placement.moves_revision {
        after.revision = before.revision.next();
    }
    after.appended = Timestamp::after(time, before.appended);
    after.created = before.created.or(after.appended);
    after
}

/// The hidden calls that these entries answer. An entry answers the first remaining call with its id.
fn answered<'a>(calls: &[UnansweredCall], entries: impl Iterator<Item = &'a Entry>) -> Vec<(Seq, u32)> {
    let mut open: Vec<&UnansweredCall> = calls.iter().collect();
    let answer = |entry: &Entry| {
        let at = open.iter().position(|call| call.is_answered_by(entry))?;
        let call = open.remove(at);
        Some((call.anchor, call.ordinal))
    };
    entries.filter_map(answer).collect()
}
