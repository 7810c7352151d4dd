//! The lines of a file as conversations: one, and what compactions left behind.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use epitome_core::Usage;
use epitome_core::message::Role;

use super::room::item_of;
use crate::message::{Message, Part, Str, WireText};
use crate::wire::expect::{expect_object, member_text};
use crate::wire::json::{self, Kind};
use crate::wire::openai_responses;
use crate::wire::transcript::{
    Conversation, Entry, RecordId, Relation, ToolCompaction, Transcript, UsageEntry,
};
use crate::wire::{Format, WireError, usage};

/// What has been read of a file.
#[derive(Debug)]
pub(super) struct Session {
    source: Arc<str>,
    list: u32,
    current: Conversation,
    /// What the model no longer saw after a compaction.
    before: Vec<Conversation>,
    /// Reports, and how many entries there were when they came.
    reports: Vec<(usize, Usage)>,
    id: Str,
    /// The record of the instructions, which every conversation of the file begins with.
    instructions: Option<RecordId>,
}

impl Session {
    pub(super) fn read(transcript: &mut Transcript, text: &str) -> Result<Self, WireError> {
        let source = Arc::clone(&transcript.source);
        let list = transcript.lines(text);
        let current = Conversation::new(Format::Codex, "");
        let (before, reports, id) = (Vec::new(), Vec::new(), Str::default());
        let mut session = Self { source, list, current, before, reports, id, instructions: None };
        let source = Arc::clone(&session.source);
        for at in 0..transcript.count(list) {
            let line = source.get(transcript.place(list, at)).unwrap_or_default();
            json::nested(text, line, "", |line| session.push(transcript, at, line))?;
        }
        session.report();
        Ok(session)
    }

    fn push(&mut self, transcript: &mut Transcript, at: usize, line: &str) -> Result<(), WireError> {
        expect_object(line, "a line")?;
        if let Some(item) = item_of(line)? {
            let message = json::nested(line, item, payload_path(line, item), |item| {
                openai_responses::message(&self.source, item)
            })?;
            if let Some(message) = message {
                let record = transcript.element(self.list, at, 1);
                self.current.extend(record, [message]);
            }
            return Ok(());
        }
        let [kind, payload] = json::fields(line, &["type", "payload"])?;
        let Some(payload) = payload.filter(|payload| Kind::of(payload) == Kind::Object) else {
            return Ok(());
        };
        json::nested(line, payload, "/payload", |payload| match kind {
            Some("\"session_meta\"") => self.begun(transcript, at, payload),
            Some("\"compacted\"") => self.compacted(transcript, at, payload),
            Some("\"event_msg\"") => self.event(payload),
            _ => Ok(()),
        })
    }

    /// What a session begins with: its name, and the instructions that are sent beside the items.
    fn begun(&mut self, transcript: &mut Transcript, at: usize, payload: &str) -> Result<(), WireError> {
        self.id = member_text(&self.source, payload, "id")?.unwrap_or_default();
        // A resumed file may say it again.
        if let Some(message) =
            instructions(&self.source, payload)?.filter(|_| self.current.entries.is_empty())
        {
            let record = transcript.element(self.list, at, 1);
            transcript.must_stay(record);
            self.instructions = Some(record);
            self.current.extend(record, [message]);
        }
        Ok(())
    }

    fn event(&mut self, payload: &str) -> Result<(), WireError> {
        let [kind, info] = json::fields(payload, &["type", "info"])?;
        if kind == Some("\"thread_rolled_back\"") {
            return Err(WireError::unsupported(
                "turns were taken back in this session, and cannot be told apart",
            ));
        }
        let report = report(kind, info)?;
        self.reports.extend(report.map(|usage| (self.current.entries.len(), usage)));
        Ok(())
    }

    fn compacted(&mut self, transcript: &mut Transcript, at: usize, payload: &str) -> Result<(), WireError> {
        self.report();
        let messages = replacement(&self.source, payload)?;
        let record = transcript.element(self.list, at, messages.len());
        transcript.must_stay(record);
        let mut next = Conversation::new(Format::Codex, "");
        let has_history = history(payload)?.is_some();
        let stays = |entry: &&Entry| match self.instructions {
            Some(own) if entry.record() == Some(own) => true,
            _ => entry.message().role() == Role::User && !has_history,
        };
        next.entries = self.current.entries.iter().filter(stays).cloned().collect();
        next.partial = partial(&self.current.entries, &next.entries);
        let (kept, entries) = (next.entries.len(), self.current.entries.len());
        let mut compaction = ToolCompaction::new(kept);
        // Messages of the replacement that say what an earlier one said were kept.
        let known: HashSet<&[Part]> = self.current.messages().map(Message::parts).collect();
        let again = messages.iter().filter(|new| known.contains(new.parts())).count();
        let dropped = entries.saturating_sub(kept.saturating_add(again));
        compaction.dropped = u64::try_from(dropped).ok();
        compaction.tokens_before = self.current.usage.last().and_then(|entry| entry.usage.input_total);
        next.compactions = core::mem::take(&mut self.current.compactions);
        self.current.compactions.clone_from(&next.compactions);
        next.compactions.iter_mut().for_each(|earlier| earlier.at = 0);
        next.compactions.push(compaction);
        next.extend(record, messages);
        let before = core::mem::replace(&mut self.current, next);
        if !before.entries.is_empty() {
            self.before.push(before);
        }
        Ok(())
    }

    /// Gives the reports to their responses. A report stands behind the items of its response, or, in older files,
    /// before them.
    fn report(&mut self) {
        let entries = &self.current.entries;
        let is_model =
            |at: usize| entries.get(at).is_some_and(|entry| entry.message().role() == Role::Assistant);
        let mut reported = 0;
        for (at, usage) in core::mem::take(&mut self.reports) {
            let behind = at.checked_sub(1).filter(|last| *last >= reported && is_model(*last));
            let last = behind.or_else(|| (at..entries.len()).take_while(|next| is_model(*next)).last());
            if let Some(last) = last {
                self.current.usage.push(UsageEntry::new(last, usage));
                reported = last.saturating_add(1);
            }
        }
    }

    /// The conversation that goes on, and then what compactions left behind; the first stands at the place `base`.
    pub(super) fn into_conversations(mut self, base: usize) -> Vec<Conversation> {
        self.current.id = self.id;
        let mut all = vec![self.current];
        for (number, mut before) in (1_usize..).zip(self.before) {
            before.relation = Relation::Branch(base);
            before.active = false;
            before.label = Str::from(format!("before compaction {number}"));
            all.push(before);
        }
        all
    }
}

/// The records of which some messages are in `kept` and some are not, and which are.
fn partial(all: &[Entry], kept: &[Entry]) -> Vec<(RecordId, Vec<u32>)> {
    let mut counts: HashMap<RecordId, usize> = HashMap::new();
    for id in all.iter().filter_map(Entry::record) {
        let count = counts.entry(id).or_default();
        *count = count.saturating_add(1);
    }
    let runs = kept.chunk_by(|one, next| one.record() == next.record());
    let some = runs.filter_map(|run| {
        let id = run.first()?.record().filter(|id| counts.get(id).is_some_and(|all| *all > run.len()))?;
        Some((id, run.iter().map(|entry| entry.piece).collect()))
    });
    some.collect()
}

/// The report that an event is, if it is one. One that cannot be read is none: the messages are what counts.
fn report(kind: Option<&str>, info: Option<&str>) -> Result<Option<Usage>, WireError> {
    let info = info.filter(|info| kind == Some("\"token_count\"") && Kind::of(info) == Kind::Object);
    let Some(info) = info else { return Ok(None) };
    match json::field(info, "last_token_usage")?.filter(|last| *last != "null") {
        Some(last) => Ok(usage::of(&flat(last)?).ok()),
        None => Ok(None),
    }
}

/// The report that a line is.
pub(crate) fn reported(line: &str) -> Result<Option<Usage>, WireError> {
    let [kind, payload] = json::fields(line, &["type", "payload"])?;
    let payload = payload.filter(|payload| Kind::of(payload) == Kind::Object);
    match payload.filter(|_| kind == Some("\"event_msg\"")) {
        Some(payload) => {
            let [kind, info] = json::fields(payload, &["type", "info"])?;
            report(kind, info)
        }
        None => Ok(None),
    }
}

/// The report as Responses writes it, whose details stand in objects.
fn flat(last: &str) -> Result<String, WireError> {
    let names =
        &["input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens", "total_tokens"];
    let [input, cached, output, reasoning, total] =
        json::fields(last, names)?.map(|value| value.unwrap_or("null"));
    Ok(format!(
        r#"{{"input_tokens":{input},"input_tokens_details":{{"cached_tokens":{cached}}},"output_tokens":{output},"output_tokens_details":{{"reasoning_tokens":{reasoning}}},"total_tokens":{total}}}"#
    ))
}

fn payload_path(line: &str, item: &str) -> &'static str {
    if core::ptr::eq(line, item) { "" } else { "/payload" }
}

/// What a `compacted` line puts in the place of the messages, if it says.
pub(super) fn history(payload: &str) -> Result<Option<&str>, WireError> {
    Ok(json::field(payload, "replacement_history")?.filter(|history| Kind::of(history) == Kind::Array))
}

/// The instructions of a session, if its first line has them.
pub(super) fn instructions(whole: &Arc<str>, payload: &str) -> Result<Option<Message>, WireError> {
    let object = |value: &&str| Kind::of(value) == Kind::Object;
    let Some(base) = json::field(payload, "base_instructions")?.filter(object) else { return Ok(None) };
    let text = json::field(base, "text")?.filter(|text| Kind::of(text) == Kind::Text && *text != "\"\"");
    let Some(raw) = text else { return Ok(None) };
    let text = crate::wire::expect::share(whole, &json::decode(raw));
    let wire = WireText::new(Format::OpenaiResponses.shared_name(), crate::wire::expect::share(whole, raw));
    Ok(Some(Message::new(Role::System, vec![Part::Text(text)]).with_wire(wire)))
}

/// The messages that a `compacted` line is: its history, or the summary.
pub(super) fn replacement(whole: &Arc<str>, payload: &str) -> Result<Vec<Message>, WireError> {
    let Some(history) = history(payload)? else {
        let summary = json::field(payload, "message")?.filter(|message| *message != "\"\"");
        let Some(raw) = summary.filter(|summary| Kind::of(summary) == Kind::Text) else {
            return Ok(Vec::new());
        };
        let text = crate::wire::expect::share(whole, &json::decode(raw));
        let wire =
            WireText::new(Format::OpenaiResponses.shared_name(), crate::wire::expect::share(whole, raw));
        return Ok(vec![Message::new(Role::User, vec![Part::Text(text)]).with_wire(wire)]);
    };
    let mut messages: Vec<Message> = Vec::new();
    let mut at = 0_usize;
    json::items(history, |item| {
        let path = format_args!("/replacement_history/{at}");
        if let Some(message) =
            json::nested(history, item, path, |item| openai_responses::message(whole, item))?
        {
            let wire = message.wire().cloned().map(|wire| wire.with_rejoin(!messages.is_empty()));
            messages.push(match wire {
                Some(wire) => message.with_wire(wire),
                None => message,
            });
        }
        at = at.saturating_add(1);
        Ok(())
    })?;
    Ok(messages)
}
