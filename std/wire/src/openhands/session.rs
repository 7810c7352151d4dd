//! Reads the events of one run as a conversation.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use epitome_message::{Message, Part, Str};

use super::event::{Event, Fields};
use super::v1::{self, Numbers};
use crate::forest::narrow;
use crate::json;
use crate::json::known::Value;
use crate::rewrite::pinned;
use crate::transcript::{
    CompactionTree, Conversation, Insertion, NEVER, Relation, Report, SourceRecordId, Stage, Stages,
    Timeline, ToolCompaction, Transcript, TranscriptEntry,
};
use crate::{Format, WireError};

/// Adds the conversations of the list with this number. Its elements are in `whole` at `path`; `None` for lines.
pub(super) fn read(
    transcript: &mut Transcript,
    (whole, number, path): (&str, u32, Option<&str>),
    place: String,
    label: Str,
) -> Result<(), WireError> {
    let source = Arc::clone(&transcript.source);
    let mut run = Run::default();
    let mut spans = core::mem::take(&mut transcript.spans);
    for at in 0..transcript.count(number) {
        let raw = source.get(transcript.place(number, at)).unwrap_or_default();
        let event = transcript.look(&mut spans, number, raw);
        event.and_then(|event| run.push(transcript, (number, at), event)).map_err(|error| {
            let path = path.map(|path| format!("{path}/{at}")).unwrap_or_default();
            error.inside(path, json::offset_of(whole, raw))
        })?;
    }
    // A condensation of version 1 holds the number of events before its summary.
    let is_closed = !run.numbers.is_empty() && !run.before.is_empty();
    let insertion = if is_closed { Insertion::Nowhere } else { Insertion::Anywhere };
    let base = transcript.conversations.len();
    let (now, lists) = (run.ended(), run.compactions.lists());
    let file: Arc<dyn Stages> = Arc::new(run.timeline.finish(run.entries, run.reports));
    for (count, ended) in core::iter::once(now).chain(run.before).enumerate() {
        let stage = Stage { of: Arc::clone(&file), number: ended.stage };
        let mut found = Conversation::new(Format::OpenHands, place.clone());
        found = found.with_stage(&stage, ended.messages);
        found.compactions = lists(ended.stage.checked_sub(1));
        found.label = label.clone();
        found.insertion = insertion;
        if count > 0 {
            found.relation = Relation::Branch(base);
            found.active = false;
            found.label = Str::from(format!("before condensation {count}"));
        }
        transcript.push(found);
    }
    Ok(())
}

/// The events of a run. Each condensation begins a stage.
#[derive(Default)]
struct Run {
    timeline: Timeline,
    entries: Vec<TranscriptEntry>,
    reports: Vec<Report>,
    /// Number of messages at each place of the order.
    order: Counts,
    /// The visible messages by their events and lives, with their places in the order.
    named: BTreeMap<(u64, usize), u32>,
    /// The stages that condensations ended.
    before: Vec<Ended>,
    compactions: CompactionTree,
    /// The responses whose texts have been read.
    told: HashSet<String>,
    /// The numbers that were assigned to events with ids of their own.
    numbers: Numbers,
    /// The numbers of actions without a recorded call and without an effect so far.
    unanswered: HashSet<u64>,
}

/// A message that a condensation may remove.
#[derive(Clone, Copy)]
struct Named {
    slot: u32,
    life: usize,
}

/// A stage that has ended.
struct Ended {
    stage: u32,
    messages: usize,
}

impl Run {
    fn push(
        &mut self,
        transcript: &mut Transcript,
        (list, at): (u32, usize),
        value: Value<'_>,
    ) -> Result<(), WireError> {
        let (source, raw) = (Arc::clone(&transcript.source), value.text());
        let fields = Fields::of(value);
        let (id, event) = match &fields {
            Ok(fields) if !fields.are_of_v1() => (fields.number(), fields.read(&source)?),
            Err(_) if !v1::is_event(raw) => return fields.map(drop),
            _ => v1::event(&source, raw, &mut self.numbers)?,
        };
        let (message, usage) = match event {
            Event::Note => return Ok(()),
            Event::Message(message) => (message, None),
            Event::Caused { cause, result, said } => match (self.unanswered.remove(&cause), said) {
                (true, _) => (result, None),
                (false, Some(said)) => (said, None),
                (false, None) => return Ok(()),
            },
            Event::Call { call, said, usage, causes } => {
                self.unanswered.extend(causes);
                let is_first =
                    call.response_id().is_none_or(|response| self.told.insert(response.to_owned()));
                let said = said.filter(|_| is_first);
                (with_words(call, said), usage.filter(|_| is_first))
            }
            Event::Condensation { first, last, others, summary } => {
                let record = summary.as_ref().map(|_| transcript.element(list, at, 1));
                if let Some(record) = record {
                    transcript.must_stay(record);
                }
                let gone = self.take(first.zip(last), others);
                let summary = summary.and_then(|summary| pinned(vec![summary]).pop());
                self.condense(&gone, record.zip(summary), id);
                return Ok(());
            }
        };
        let record = transcript.element(list, at, 1);
        let slot = self.order.push();
        let entry = self.add((record, message), slot, id);
        let from = self.timeline.now();
        self.reports.extend(usage.map(|usage| Report { entry, from, until: NEVER, usage }));
        Ok(())
    }

    /// Adds a message at a place of the order, and returns its number.
    fn add(&mut self, (record, message): (SourceRecordId, Message), slot: u32, id: Option<u64>) -> u32 {
        let entry = narrow(self.entries.len());
        self.entries.push(TranscriptEntry::of(message, record, 0));
        let life = self.timeline.begin(entry, slot);
        self.order.change(slot, true);
        if let Some(id) = id {
            self.named.insert((id, life), slot);
        }
        entry
    }

    /// Removes the messages of these events from the visible messages, and returns them.
    fn take(&mut self, range: Option<(u64, u64)>, others: Vec<u64>) -> Vec<Named> {
        let mut gone = Vec::new();
        let ranges = range.into_iter().filter(|(first, last)| first <= last);
        for (first, last) in ranges.chain(others.into_iter().map(|id| (id, id))) {
            let own = self.named.range((first, 0)..=(last, usize::MAX));
            let own: Vec<_> = own.map(|(key, slot)| (*key, *slot)).collect();
            for ((id, life), slot) in own {
                self.named.remove(&(id, life));
                gone.push(Named { slot, life });
            }
        }
        gone
    }

    fn ended(&self) -> Ended {
        Ended { stage: self.timeline.now(), messages: self.order.all() as usize }
    }

    /// Begins a stage without these messages. The summary takes the place of the first of them.
    fn condense(&mut self, gone: &[Named], summary: Option<(SourceRecordId, Message)>, id: Option<u64>) {
        self.before.push(self.ended());
        self.timeline.advance();
        let first = gone.iter().map(|gone| gone.slot).min();
        let before = first.map_or_else(|| self.order.all(), |first| self.order.before(first));
        let mut compaction = ToolCompaction::new(before as usize);
        compaction.dropped = u64::try_from(gone.len()).ok();
        self.compactions.push(self.timeline.now().checked_sub(2), compaction);
        for gone in gone {
            self.timeline.end(gone.life);
            self.order.change(gone.slot, false);
        }
        if let Some(summary) = summary {
            let slot = first.unwrap_or_else(|| self.order.push());
            self.add(summary, slot, id);
        }
    }
}

/// Number of messages at each place, and before it, as a binary indexed tree.
#[derive(Default)]
struct Counts {
    tree: Vec<u32>,
    all: u32,
}

impl Counts {
    /// Adds a place behind the others, and returns its number.
    fn push(&mut self) -> u32 {
        let number = narrow(self.tree.len());
        let at = self.tree.len().saturating_add(1);
        // The number of messages at the places that the new node covers.
        let first = at.saturating_sub(at & at.wrapping_neg());
        let held = self.all.saturating_sub(self.before(narrow(first)));
        self.tree.push(held);
        number
    }

    /// Adds a message at a place, or removes one.
    fn change(&mut self, slot: u32, is_more: bool) {
        let by = |count: u32| if is_more { count.saturating_add(1) } else { count.saturating_sub(1) };
        self.all = by(self.all);
        let mut at = (slot as usize).saturating_add(1);
        while let Some(count) = self.tree.get_mut(at.saturating_sub(1)) {
            *count = by(*count);
            at = at.saturating_add(at & at.wrapping_neg());
        }
    }

    /// Number of messages before a place.
    fn before(&self, slot: u32) -> u32 {
        let (mut at, mut sum) = (slot as usize, 0_u32);
        while at > 0 {
            sum = sum.saturating_add(self.tree.get(at.saturating_sub(1)).copied().unwrap_or_default());
            at = at.saturating_sub(at & at.wrapping_neg());
        }
        sum
    }

    const fn all(&self) -> u32 {
        self.all
    }
}

/// The call, behind the text of the model.
fn with_words(call: Message, said: Option<Str>) -> Message {
    let (Some(said), Some(wire)) = (said, call.wire().cloned()) else { return call };
    let mut parts = vec![Part::Text(said)];
    parts.extend(call.parts().iter().cloned());
    call.with_parts(parts).with_wire(wire)
}
