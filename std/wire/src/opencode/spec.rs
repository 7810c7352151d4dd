//! Recognises, reads and writes exports.

use core::ops::Range;
use std::collections::HashSet;
use std::sync::Arc;

use epitome_core::attribution::SourceKind;
use epitome_core::message::Role;
use epitome_message::{Message, Str};

use super::message::{pieces, reported};
use crate::body::Body;
use crate::expect::{member_text, optional_text, share};
use crate::json::{self, ValueKind, quote};
use crate::rewrite::{form, pinned};
use crate::slots;
use crate::spec::{Fit, FormatSpec, Writer};
use crate::transcript::{Conversation, Insertion, ToolCompaction, Transcript, UsageEntry, fingerprint};
use crate::{Format, WireError};

/// The row of OpenCode in the table of formats.
pub(crate) const SPEC: FormatSpec =
    FormatSpec::built_in(Format::OpenCode, &["info", "messages"], (sign, read), Writer::Slots(pieces))
        .with_new_record(fresh);

fn sign(body: &Body<'_>) -> Fit {
    let sample = body.value().and_then(|_| body.sample("messages")).unwrap_or_default();
    let is_one = |message: &&str| {
        let found = match ValueKind::of(message) {
            ValueKind::Object => json::fields(message, &["info", "parts"]).ok(),
            _ => None,
        };
        matches!(found, Some([Some(info), Some(parts)])
            if ValueKind::of(info) == ValueKind::Object && ValueKind::of(parts) == ValueKind::Array
                && matches!(json::field(info, "role"), Ok(Some(_))))
    };
    match !sample.is_empty() && sample.iter().all(is_one) {
        true => Fit::Certain("its messages have a `role` in `info`, beside `parts`"),
        false => Fit::No,
    }
}

/// The members of a message that decide which messages the model sees.
#[derive(Debug, Default)]
struct Head {
    id: Str,
    /// The id of the message that it answers, if it is a complete summary.
    summarizes: Option<Str>,
    compaction: Option<CompactionHead>,
}

#[derive(Debug)]
struct CompactionHead {
    trigger: &'static str,
    /// The first message that stays, if messages before the compaction stay.
    tail: Option<Str>,
}

impl Head {
    fn of(whole: &Arc<str>, raw: &str) -> Result<Self, WireError> {
        let mut head = Self::default();
        if ValueKind::of(raw) != ValueKind::Object {
            return Ok(head);
        }
        let [info, parts] = json::fields(raw, &["info", "parts"])?;
        let Some(info) = info.filter(|info| ValueKind::of(info) == ValueKind::Object) else {
            return Ok(head);
        };
        let names = &["id", "role", "summary", "finish", "error", "parentID"];
        let [id, role, summary, finish, error, parent] = json::fields(info, names)?;
        let text = |value, key| {
            let text = optional_text(info, value, key)?;
            Ok::<_, WireError>(text.map(|text| share(whole, &text)).unwrap_or_default())
        };
        let is_there = |value: Option<&str>| value.is_some_and(|value| value != "null");
        head.id = text(id, "id")?;
        if role == Some("\"assistant\"") && summary == Some("true") && is_there(finish) && !is_there(error) {
            head.summarizes = Some(text(parent, "parentID")?);
        }
        let parts =
            parts.filter(|parts| role == Some("\"user\"") && ValueKind::of(parts) == ValueKind::Array);
        json::items(parts.unwrap_or("[]"), |part| {
            if head.compaction.is_none()
                && ValueKind::of(part) == ValueKind::Object
                && let [Some("\"compaction\""), auto, tail] =
                    json::fields(part, &["type", "auto", "tail_start_id"])?
            {
                let tail = optional_text(part, tail, "tail_start_id")?.map(|tail| share(whole, &tail));
                let trigger = if auto == Some("true") { "auto" } else { "manual" };
                head.compaction = Some(CompactionHead { trigger, tail });
            }
            Ok(())
        })?;
        Ok(head)
    }
}

/// The range of messages that the model sees, and the compaction that hides the messages before them, with its summary.
struct Window {
    seen: Range<usize>,
    compaction: Option<Compacted>,
}

struct Compacted {
    at: usize,
    summary: usize,
    trigger: &'static str,
}

impl Window {
    /// The window of the first `end` messages.
    fn of(heads: &[Head], end: usize) -> Self {
        let mut summarized: HashSet<&str> = HashSet::new();
        let mut summary = end;
        for (at, head) in heads.iter().enumerate().take(end).rev() {
            if let Some(compaction) = head.compaction.as_ref().filter(|_| summarized.contains(&*head.id)) {
                let is_tail = |head: &Head| compaction.tail.as_ref().is_some_and(|tail| head.id == *tail);
                let before = heads.get(..=at).unwrap_or_default();
                let first = match compaction.tail {
                    Some(_) => before.iter().rposition(is_tail).unwrap_or_default(),
                    None => at,
                };
                let compacted = Compacted { at, summary, trigger: compaction.trigger };
                return Self { seen: first..end, compaction: Some(compacted).filter(|_| first > 0) };
            }
            if let Some(parent) = &head.summarizes {
                summarized.insert(parent);
                summary = at;
            }
        }
        Self { seen: 0..end, compaction: None }
    }

    /// Adds the messages of a record, if the model sees them.
    fn add(
        &self,
        transcript: &mut Transcript,
        conversation: &mut Conversation,
        (list, at): (u32, usize),
        (raw, messages): (&str, Vec<Message>),
    ) -> Result<(), WireError> {
        let first = conversation.entries.len();
        if let Some(compacted) = self.compaction.as_ref().filter(|compacted| compacted.at == at) {
            let mut compaction = ToolCompaction::new(first);
            compaction.trigger = Str::from(compacted.trigger);
            conversation.compactions = vec![compaction].into();
        }
        if messages.is_empty() {
            return Ok(());
        }
        let info = json::field(raw, "info")?.filter(|info| ValueKind::of(info) == ValueKind::Object);
        let usage = info.map(|info| json::nested(raw, info, "/info", reported)).transpose()?.flatten();
        let last = messages.iter().rposition(|message| message.role() == Role::Assistant);
        let answer = last.zip(usage).map(|(last, usage)| UsageEntry::new(first.saturating_add(last), usage));
        conversation.usage.extend(answer);
        let record = transcript.element(list, at, messages.len());
        if first == 0 {
            // A new message before it would be hidden, or sorted behind it.
            transcript.begin_with(record);
        }
        // The compaction names the first message that stays.
        let is_first = at == self.seen.start;
        let is_needed = |compacted: &Compacted| is_first || compacted.at == at || compacted.summary == at;
        let is_needed = self.compaction.as_ref().is_some_and(is_needed);
        if is_needed {
            transcript.must_stay(record);
        }
        // Without these messages OpenCode would send the hidden messages again.
        conversation.extend(record, if is_needed { pinned(messages) } else { messages });
        Ok(())
    }
}

fn read(transcript: &mut Transcript, body: &Body<'_>) -> Result<(), WireError> {
    let source = Arc::clone(body.source);
    let whole = body.value().unwrap_or_default();
    let (list, path) = match body.field("messages") {
        Some(list) => (list, "/messages"),
        None if ValueKind::of(whole) == ValueKind::Array => (whole, ""),
        None => {
            let found = json::describe(body.text());
            return Err(WireError::shape(format!("expected `messages`, found {found}")));
        }
    };
    let list = json::nested(whole, list, path, |list| transcript.array(list))?;
    let mut conversation = Conversation::new(Format::OpenCode, format!("{}{path}", body.path()));
    conversation.insertion = Insertion::BetweenRecords;
    let mut heads = Vec::new();
    for at in 0..transcript.count(list) {
        let raw = source.get(transcript.place(list, at)).unwrap_or_default();
        heads.push(json::nested(whole, raw, format_args!("{path}/{at}"), |raw| Head::of(&source, raw))?);
    }
    let mut end = heads.len();
    if let Some(info) = body.field("info").filter(|info| ValueKind::of(info) == ValueKind::Object) {
        json::nested(whole, info, "/info", |info| {
            conversation.id = member_text(&source, info, "id")?.unwrap_or_default();
            conversation.label = member_text(&source, info, "title")?.unwrap_or_default();
            let kept = end_of(&heads, info)?;
            end = kept.end;
            if kept.is_cut {
                conversation.insertion = Insertion::Nowhere;
            }
            Ok(())
        })?;
    }
    let window = Window::of(&heads, end);
    let mut hidden = 0_u64;
    for at in 0..end {
        let raw = source.get(transcript.place(list, at)).unwrap_or_default();
        json::nested(whole, raw, format_args!("{path}/{at}"), |raw| {
            let messages = slots::messages(&source, raw, Format::OpenCode, pieces)?;
            match at < window.seen.start {
                true => hidden = hidden.saturating_add(messages.len() as u64),
                false => window.add(transcript, &mut conversation, (list, at), (raw, messages))?,
            }
            Ok(())
        })?;
    }
    if let Some(compaction) = conversation.compactions.last() {
        let mut compaction = compaction.clone();
        compaction.dropped = Some(hidden);
        conversation.compactions = vec![compaction].into();
    }
    transcript.push(conversation);
    Ok(())
}

/// The messages that are not reverted.
struct Kept {
    end: usize,
    /// Whether a part of the last message is reverted: the messages behind it are not shown.
    is_cut: bool,
}

/// Finds the messages that are not reverted. The message in which a revert begins is read whole: its first parts may
/// stay.
fn end_of(heads: &[Head], info: &str) -> Result<Kept, WireError> {
    let all = Kept { end: heads.len(), is_cut: false };
    let revert = json::field(info, "revert")?.filter(|revert| ValueKind::of(revert) == ValueKind::Object);
    let Some(revert) = revert else { return Ok(all) };
    let [message, part] = json::fields(revert, &["messageID", "partID"])?;
    let id = optional_text(revert, message, "messageID")?;
    let first = id.and_then(|id| heads.iter().position(|head| *head.id == *id));
    let is_cut = part.is_some_and(|part| part != "null");
    Ok(first.map_or(all, |first| Kept { end: first.saturating_add(usize::from(is_cut)), is_cut }))
}

/// Writes the message of a new text, with the members that OpenCode requires. OpenCode sorts messages by their time and
/// id: the time is that of the message before it, and the id is that message's id with an addition.
fn fresh(message: &Message, like: Option<&str>) -> Result<String, WireError> {
    let (role, text) = slots::fresh_text(message, &[Role::User, Role::Assistant])?;
    let info = object(like.map(|like| json::field(like, "info")).transpose()?.flatten());
    let [id, session, time] = json::fields(info, &["id", "sessionID", "time"])?;
    let Some(before) = id.filter(|id| ValueKind::of(id) == ValueKind::Text).map(json::decode) else {
        return Err(form("a new message beside one without an id"));
    };
    let own = [&*before, &format!("{:08x}", fingerprint(&text) >> 96)].concat();
    let raw = |value: Option<&str>| value.map(str::to_owned);
    let is_said = matches!(message.attribution().source, SourceKind::Caller | SourceKind::History);
    let part = json::patch(
        "{}",
        &[
            ("id", Some(quote(&["prt_", own.strip_prefix("msg_").unwrap_or(&own)].concat()))),
            ("sessionID", raw(session)),
            ("messageID", Some(quote(&own))),
            ("type", Some(quote("text"))),
            ("synthetic", (!is_said).then(|| "true".to_owned())),
            ("text", Some(text)),
        ],
    )?;
    let created = json::field(object(time), "created")?;
    let mut members = vec![
        ("id", Some(quote(&own))),
        ("sessionID", raw(session)),
        ("role", Some(role)),
        ("time", created.map(|created| format!(r#"{{"created":{created}}}"#))),
    ];
    members.extend(model_of(info, message.role())?);
    let info = json::patch("{}", &members)?;
    Ok(format!(r#"{{"info":{info},"parts":[{part}]}}"#))
}

/// The members of a new message for its agent and model, from the message with this `info`. A message of the user has
/// the requested model, a message of the model has its own model and its cost.
fn model_of(info: &str, role: Role) -> Result<Vec<(&'static str, Option<String>)>, WireError> {
    let names = &["id", "agent", "mode", "model", "providerID", "modelID", "parentID", "path"];
    let [id, agent, mode, asked, provider, name, parent, path] = json::fields(info, names)?;
    let [asked_provider, asked_name] = json::fields(object(asked), &["providerID", "modelID"])?;
    let (provider, name, agent) = (provider.or(asked_provider), name.or(asked_name), agent.or(mode));
    let raw = |value: Option<&str>| value.map(str::to_owned);
    if role == Role::User {
        let model = provider
            .zip(name)
            .map(|(provider, name)| format!(r#"{{"providerID":{provider},"modelID":{name}}}"#));
        return Ok(vec![("agent", raw(agent)), ("model", model)]);
    }
    Ok(vec![
        ("agent", raw(agent)),
        ("parentID", raw(parent.or(id))),
        ("mode", raw(agent)),
        ("providerID", raw(provider)),
        ("modelID", raw(name)),
        ("path", Some(path.unwrap_or(r#"{"cwd":"","root":""}"#).to_owned())),
        ("cost", Some("0".to_owned())),
        ("tokens", Some(NO_TOKENS.to_owned())),
        ("finish", Some(quote("stop"))),
    ])
}

/// The value, if it is an object; otherwise an empty one.
fn object(value: Option<&str>) -> &str {
    value.filter(|value| ValueKind::of(value) == ValueKind::Object).unwrap_or("{}")
}

/// The usage of a message that comes from no provider.
const NO_TOKENS: &str = r#"{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}}"#;
