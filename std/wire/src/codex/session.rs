//! Reads the lines of a file as conversations: the active one, and those that compactions left behind.

use std::sync::Arc;

use epitome_core::Usage;
use epitome_core::attribution::Retention;
use epitome_core::message::Role;
use epitome_message::{Message, Part, Str, WireText};

use super::spec::item_of;
use super::thread::{Left, Thread};
use crate::expect::{expect_object, member_text};
use crate::json::{self, Spans, ValueKind};
use crate::openai_responses;
use crate::transcript::{Conversation, Relation, Report, Stage, Stages, Transcript, TranscriptEntry};
use crate::{Format, WireError, injected, usage};

/// A session during the reading of its file. A report is stored as an `R`.
#[derive(Debug)]
pub(super) struct Session<R> {
    pub(super) thread: Thread<R>,
    /// The id of the session.
    pub(super) id: Str,
    /// Whether the model has already seen the rules of a project.
    has_rules: bool,
}

impl<R> Default for Session<R> {
    fn default() -> Self {
        Self { thread: Thread::default(), id: Str::default(), has_rules: false }
    }
}

/// The messages of a line.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) messages: Vec<Message>,
    /// Whether the line must stay without its messages, because the meaning of the text depends on it.
    stays: bool,
    /// Whether the messages replace all earlier messages except the user's.
    summarizes: bool,
}

/// Reads the lines `text`, a slice of the source of `transcript`, and adds their conversations: the active one, and
/// then those that compactions left behind.
pub(super) fn read(transcript: &mut Transcript, text: &str) -> Result<(), WireError> {
    let source = Arc::clone(&transcript.source);
    let base = transcript.conversations.len();
    let list = transcript.lines(text);
    let mut session = Session::default();
    let mut entries = Vec::new();
    for at in 0..transcript.count(list) {
        let line = source.get(transcript.place(list, at)).unwrap_or_default();
        let found =
            json::nested(text, line, "", |line| session.push(&source, line, Some(&entries), |usage| usage))?;
        let Some(found) = found else { continue };
        let record = transcript.element(list, at, found.messages.len());
        if found.stays {
            transcript.must_stay(record);
        }
        if found.summarizes {
            transcript.begin_with(record);
        }
        let pieces = found.messages.into_iter().zip(0..);
        entries.extend(pieces.map(|(message, piece)| TranscriptEntry::of(message, record, piece)));
    }
    let Session { mut thread, id, .. } = session;
    thread.settle();
    let compactions = thread.compactions();
    let now = Left { stage: thread.timeline.now(), messages: thread.len() };
    let reports = thread.reports.iter().map(|found| Report {
        entry: u32::try_from(found.at).unwrap_or(u32::MAX),
        from: found.stage,
        until: found.stage.saturating_add(1),
        usage: found.report,
    });
    let file: Arc<dyn Stages> = Arc::new(thread.timeline.finish(entries, reports.collect()));
    let conversation = |of: Left| {
        let stage = Stage { of: Arc::clone(&file), number: of.stage };
        let mut found = Conversation::new(Format::Codex, "").with_stage(&stage, of.messages);
        found.compactions = compactions(of.stage);
        found
    };
    transcript.conversations.reserve_exact(thread.left.len().saturating_add(1));
    let mut current = conversation(now);
    current.id = id;
    transcript.push(current);
    for (number, of) in (1_usize..).zip(thread.left) {
        let mut left = conversation(of);
        left.relation = Relation::Branch(base);
        left.active = false;
        left.label = label(number);
        transcript.push(left);
    }
    Ok(())
}

/// Label of the conversation before a compaction; compactions are counted from 1.
pub(super) fn label(compaction: usize) -> Str {
    Str::from(format!("before compaction {compaction}"))
}

impl<R: Copy> Session<R> {
    /// Adds the line `raw`, a slice of `source`, and returns its messages; `None` if it is no record of messages.
    /// `earlier` are all messages before it, if they are stored. `keep` makes the stored form of a report.
    pub(super) fn push(
        &mut self,
        source: &Arc<str>,
        raw: &str,
        earlier: Option<&[TranscriptEntry]>,
        keep: impl FnOnce(Usage) -> R,
    ) -> Result<Option<Said>, WireError> {
        expect_object(raw, "a line")?;
        if let Some(item) = item_of(&mut Spans::default(), raw)? {
            let message = json::nested(raw, item.object(), payload_path(raw, item.object()), |_| {
                openai_responses::message_of(source, &item)
            })?;
            let messages: Vec<_> =
                message.map(|message| told(message, &mut self.has_rules)).into_iter().collect();
            self.thread.push(&messages, earlier);
            return Ok(Some(Said { messages, ..Said::default() }).filter(|said| !said.messages.is_empty()));
        }
        let [kind, payload] = json::known::fields(raw, &["type", "payload"])?;
        let Some(payload) = payload.filter(|payload| ValueKind::of(payload) == ValueKind::Object) else {
            return Ok(None);
        };
        json::nested(raw, payload, "/payload", |payload| match kind {
            Some("\"session_meta\"") => self.begun(source, payload, earlier),
            Some("\"compacted\"") => {
                let messages = replacement(source, payload)?;
                let is_history = history(payload)?.is_some();
                if is_history {
                    self.has_rules = messages.iter().any(is_pinned);
                }
                self.thread.compact(&messages, is_history, earlier);
                Ok(Some(Said { messages, stays: true, summarizes: !is_history }))
            }
            Some("\"event_msg\"") => self.event(payload, keep).map(|()| None),
            _ => Ok(None),
        })
    }

    /// Reads the beginning of a session: its id, and the instructions, which are sent in a field next to the items.
    fn begun(
        &mut self,
        source: &Arc<str>,
        payload: &str,
        earlier: Option<&[TranscriptEntry]>,
    ) -> Result<Option<Said>, WireError> {
        self.id = member_text(source, payload, "id")?.unwrap_or_default();
        let instructions = instructions(source, payload)?;
        let first = instructions.filter(|instructions| self.thread.begin(instructions, earlier));
        Ok(first.map(|message| Said { messages: vec![message], stays: true, summarizes: false }))
    }

    fn event(&mut self, payload: &str, keep: impl FnOnce(Usage) -> R) -> Result<(), WireError> {
        let [kind, info] = json::known::fields(payload, &["type", "info"])?;
        if kind == Some("\"thread_rolled_back\"") {
            return Err(WireError::unsupported(
                "turns were taken back in this session, and cannot be told apart",
            ));
        }
        if let Some(usage) = report(kind, info)? {
            self.thread.reported(keep(usage), usage.input_total);
        }
        Ok(())
    }
}

/// The report in an event, if there is one. An unreadable report is ignored: the messages are more important.
fn report(kind: Option<&str>, info: Option<&str>) -> Result<Option<Usage>, WireError> {
    let info =
        info.filter(|info| kind == Some("\"token_count\"") && ValueKind::of(info) == ValueKind::Object);
    let Some(info) = info else { return Ok(None) };
    match json::known::field(info, "last_token_usage")?.filter(|last| *last != "null") {
        Some(last) => Ok(usage::of(&flat(last)?).ok()),
        None => Ok(None),
    }
}

/// The report in a line.
pub(crate) fn reported(line: &str) -> Result<Option<Usage>, WireError> {
    let [kind, payload] = json::known::fields(line, &["type", "payload"])?;
    let payload = payload.filter(|payload| ValueKind::of(payload) == ValueKind::Object);
    match payload.filter(|_| kind == Some("\"event_msg\"")) {
        Some(payload) => {
            let [kind, info] = json::known::fields(payload, &["type", "info"])?;
            report(kind, info)
        }
        None => Ok(None),
    }
}

/// The report in the form of Responses, with its details in objects.
fn flat(last: &str) -> Result<String, WireError> {
    let names =
        &["input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens", "total_tokens"];
    let [input, cached, output, reasoning, total] =
        json::known::fields(last, names)?.map(|value| value.unwrap_or("null"));
    Ok(format!(
        r#"{{"input_tokens":{input},"input_tokens_details":{{"cached_tokens":{cached}}},"output_tokens":{output},"output_tokens_details":{{"reasoning_tokens":{reasoning}}},"total_tokens":{total}}}"#
    ))
}

fn payload_path(line: &str, item: &str) -> &'static str {
    if core::ptr::eq(line, item) { "" } else { "/payload" }
}

/// The list in a `compacted` line that replaces the messages, if it has one.
pub(super) fn history(payload: &str) -> Result<Option<&str>, WireError> {
    Ok(json::known::field(payload, "replacement_history")?
        .filter(|history| ValueKind::of(history) == ValueKind::Array))
}

/// The instructions of a session, if its first line has them.
pub(super) fn instructions(whole: &Arc<str>, payload: &str) -> Result<Option<Message>, WireError> {
    let object = |value: &&str| ValueKind::of(value) == ValueKind::Object;
    let Some(base) = json::known::field(payload, "base_instructions")?.filter(object) else {
        return Ok(None);
    };
    let text = json::known::field(base, "text")?
        .filter(|text| ValueKind::of(text) == ValueKind::Text && *text != "\"\"");
    let Some(raw) = text else { return Ok(None) };
    let text = crate::expect::share(whole, &json::decode(raw));
    let wire = WireText::new(Format::OpenaiResponses.shared_name(), crate::expect::share(whole, raw));
    Ok(Some(Message::new(Role::System, vec![Part::Text(text)]).with_wire(wire)))
}

/// The messages of a `compacted` line: its history, or the summary.
pub(super) fn replacement(whole: &Arc<str>, payload: &str) -> Result<Vec<Message>, WireError> {
    let Some(history) = history(payload)? else {
        let summary = json::known::field(payload, "message")?.filter(|message| *message != "\"\"");
        let Some(raw) = summary.filter(|summary| ValueKind::of(summary) == ValueKind::Text) else {
            return Ok(Vec::new());
        };
        let text = crate::expect::share(whole, &json::decode(raw));
        let wire = WireText::new(Format::OpenaiResponses.shared_name(), crate::expect::share(whole, raw));
        return Ok(vec![Message::new(Role::User, vec![Part::Text(text)]).with_wire(wire)]);
    };
    let (mut messages, mut has_rules) = (Vec::<Message>::new(), false);
    let mut at = 0_usize;
    json::known::items(history, |item| {
        let path = format_args!("/replacement_history/{at}");
        if let Some(message) =
            json::nested(history, item, path, |item| openai_responses::message(whole, item))?
        {
            let wire = message.wire().cloned().map(|wire| wire.with_rejoin(!messages.is_empty()));
            let message = told(message, &mut has_rules);
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

/// Marks a message that Codex wrote in the user's place as no request. A resumed session repeats the project's rules:
/// only the first copy is pinned.
fn told(message: Message, has_rules: &mut bool) -> Message {
    let message = injected::marked(message, Format::Codex);
    if !is_pinned(&message) || !core::mem::replace(has_rules, true) {
        return message;
    }
    let attribution = message.attribution().clone().with_retention(Retention::Normal);
    message.with_attribution(attribution)
}

fn is_pinned(message: &Message) -> bool {
    message.attribution().retention == Retention::Pinned
}
