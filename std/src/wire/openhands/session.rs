//! The events of one run as a conversation.

use std::collections::HashSet;
use std::sync::Arc;

use super::event::{Event, event};
use crate::message::{Message, Part, Str};
use crate::wire::json;
use crate::wire::transcript::{Compactions, Conversation, Relation, ToolCompaction, Transcript, UsageEntry};
use crate::wire::{Format, WireError};

/// Adds the conversations of the array `list`, at `path` in `whole`, a slice of the source.
pub(super) fn read(
    transcript: &mut Transcript,
    (whole, list, path): (&str, &str, &str),
    place: String,
    label: Str,
) -> Result<(), WireError> {
    let source = Arc::clone(&transcript.source);
    let number = json::nested(whole, list, path, |list| transcript.free_array(list))?;
    let mut run = Run::new(place, label);
    for at in 0..transcript.count(number) {
        let raw = source.get(transcript.place(number, at)).unwrap_or_default();
        let path = format_args!("{path}/{at}");
        json::nested(whole, raw, path, |raw| run.push(transcript, (number, at), raw))?;
    }
    let base = transcript.conversations.len();
    let compactions: Arc<[_]> = run.compactions.into();
    run.current.compactions = Compactions::first_of(&compactions, compactions.len());
    transcript.push(run.current);
    for (count, mut before) in (1_usize..).zip(run.before) {
        before.compactions = Compactions::first_of(&compactions, count.saturating_sub(1));
        before.relation = Relation::Branch(base);
        before.active = false;
        before.label = Str::from(format!("before condensation {count}"));
        transcript.push(before);
    }
    Ok(())
}

struct Run {
    current: Conversation,
    /// The event of each entry.
    ids: Vec<Option<u64>>,
    before: Vec<Conversation>,
    compactions: Vec<ToolCompaction>,
    /// The responses whose words have been told.
    told: HashSet<String>,
}

impl Run {
    fn new(place: String, label: Str) -> Self {
        let mut current = Conversation::new(Format::OpenHands, place);
        current.label = label;
        Self { current, ids: Vec::new(), before: Vec::new(), compactions: Vec::new(), told: HashSet::new() }
    }

    fn push(
        &mut self,
        transcript: &mut Transcript,
        (list, at): (u32, usize),
        raw: &str,
    ) -> Result<(), WireError> {
        let source = Arc::clone(&transcript.source);
        let (id, event) = event(&source, raw)?;
        let (message, usage) = match event {
            Event::Note => return Ok(()),
            Event::Message(message) => (message, None),
            Event::Call { call, said, usage } => {
                let is_first =
                    call.response_id().is_none_or(|response| self.told.insert(response.to_owned()));
                let said = said.filter(|_| is_first);
                (with_words(call, said), usage.filter(|_| is_first))
            }
            Event::Condensation { first, last, others, summary } => {
                let range = first.zip(last);
                let is_gone = |id: u64| range.is_some_and(|(first, last)| (first..=last).contains(&id));
                let others: HashSet<u64> = others.into_iter().collect();
                let gone = |id: &Option<u64>| id.is_some_and(|id| is_gone(id) || others.contains(&id));
                let record = summary.as_ref().map(|_| transcript.element(list, at, 1));
                if let Some(record) = record {
                    transcript.must_stay(record);
                }
                self.condense(gone, record.zip(summary), id);
                return Ok(());
            }
        };
        let record = transcript.element(list, at, 1);
        self.current.extend(record, [message]);
        self.ids.push(id);
        if let Some(usage) = usage {
            self.current.usage.push(UsageEntry::new(self.current.entries.len().saturating_sub(1), usage));
        }
        Ok(())
    }

    fn condense(
        &mut self,
        gone: impl Fn(&Option<u64>) -> bool,
        summary: Option<(crate::wire::RecordId, Message)>,
        id: Option<u64>,
    ) {
        let mut next = Conversation::new(Format::OpenHands, self.current.path.clone());
        next.label = self.current.label.clone();
        let first = self.ids.iter().position(&gone).unwrap_or(self.ids.len());
        let mut ids = Vec::new();
        let mut compaction = ToolCompaction::new(first);
        let mut dropped = 0_u64;
        let mut summary = summary;
        let mut new_place = vec![None; self.ids.len()];
        for (at, (entry, own)) in self.current.entries.iter().zip(&self.ids).enumerate() {
            if at == first {
                ids.extend(put(&mut next, &mut summary, id));
            }
            if gone(own) {
                dropped = dropped.saturating_add(1);
                continue;
            }
            if let Some(place) = new_place.get_mut(at) {
                *place = Some(next.entries.len());
            }
            next.entries.push(entry.clone());
            ids.push(*own);
        }
        ids.extend(put(&mut next, &mut summary, id));
        next.pieces = next.entries.len();
        compaction.dropped = Some(dropped);
        self.compactions.push(compaction);
        let place = |entry: &UsageEntry| Some(UsageEntry::new((*new_place.get(entry.at)?)?, entry.usage));
        next.usage = self.current.usage.iter().filter_map(place).collect();
        self.ids = ids;
        self.before.push(core::mem::replace(&mut self.current, next));
    }
}

/// Adds the summary, if it has not been added, and gives its event.
fn put(
    conversation: &mut Conversation,
    summary: &mut Option<(crate::wire::RecordId, Message)>,
    id: Option<u64>,
) -> Option<Option<u64>> {
    let (record, message) = summary.take()?;
    conversation.extend(record, [message]);
    Some(id)
}

/// The call, after what the model said beside it.
fn with_words(call: Message, said: Option<Str>) -> Message {
    let (Some(said), Some(wire)) = (said, call.wire().cloned()) else { return call };
    let mut parts = vec![Part::Text(said)];
    parts.extend(call.parts().iter().cloned());
    call.with_parts(parts).with_wire(wire)
}
