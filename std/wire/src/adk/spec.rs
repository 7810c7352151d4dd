//! Recognises, reads and writes sessions.

use std::sync::Arc;

use epitome_core::message::Role;
use epitome_message::Message;

use super::event::{Fate, Head, content, fates, reported};
use crate::body::Body;
use crate::gemini::{self, Ids};
use crate::json::{self, ValueKind};
use crate::rewrite::{form, only_text, pinned};
use crate::spec::{Fit, FormatSpec, Writer};
use crate::transcript::{Conversation, Insertion, ToolCompaction, Transcript, UsageEntry};
use crate::{Format, WireError};

/// The row of ADK in the table of formats.
pub(crate) const SPEC: FormatSpec = FormatSpec::built_in(
    Format::Adk,
    &["events", "id", "app_name", "appName"],
    (sign, read),
    Writer::Own(write_record),
)
.with_new_record(fresh);

fn sign(body: &Body<'_>) -> Fit {
    let Some(value) = body.value() else { return Fit::No };
    let is_bare = ValueKind::of(value) == ValueKind::Array;
    if !is_bare && body.field("events").is_none() {
        return Fit::No;
    }
    let sample = body.sample("events").unwrap_or_default();
    let (mut all, mut says) = (true, false);
    for event in sample {
        let found = match ValueKind::of(event) {
            ValueKind::Object => json::fields(event, &["content", "author", "role", "parts"]).ok(),
            _ => None,
        };
        let Some([content, author, None, None]) = found else { return Fit::No };
        all &= author.is_some();
        let content = content.filter(|content| ValueKind::of(content) == ValueKind::Object);
        says |= content.is_some_and(|content| matches!(json::field(content, "parts"), Ok(Some(_))));
    }
    match says && (all || !is_bare) {
        true => Fit::Certain("its events have a `content` with `parts`"),
        false => Fit::No,
    }
}

fn read(transcript: &mut Transcript, body: &Body<'_>) -> Result<(), WireError> {
    let source = Arc::clone(body.source);
    let whole = body.value().unwrap_or_default();
    let (list, path) = match body.field("events") {
        Some(list) => (list, "/events"),
        None if ValueKind::of(whole) == ValueKind::Array => (whole, ""),
        None => {
            let found = json::describe(body.text());
            return Err(WireError::shape(format!("expected `events`, found {found}")));
        }
    };
    let list = json::nested(whole, list, path, |list| transcript.array(list))?;
    let mut conversation = Conversation::new(Format::Adk, format!("{}{path}", body.path()));
    if !path.is_empty() {
        conversation.id = body.text_of("id")?;
        let name = body.text_of("appName")?;
        conversation.label = if name.is_empty() { body.text_of("app_name")? } else { name };
    }
    conversation.insertion = Insertion::BetweenRecords;
    let mut heads = Vec::new();
    for at in 0..transcript.count(list) {
        let raw = source.get(transcript.place(list, at)).unwrap_or_default();
        heads.push(json::nested(whole, raw, format_args!("{path}/{at}"), |raw| Head::of(&source, raw))?);
    }
    let (mut ids, mut hidden, mut compactions) = (Ids::default(), 0_u64, Vec::new());
    let is_hidden = |fate: &Fate| matches!(fate, Fate::Rewound | Fate::Compacted);
    let all = fates(&heads);
    for (at, (head, fate)) in heads.iter().zip(&all).enumerate() {
        let raw = source.get(transcript.place(list, at)).unwrap_or_default();
        let place = format!("{path}/{at}");
        let found = json::nested(whole, raw, place, |raw| messages(&source, raw, &mut ids))?;
        let Some(messages) = found.filter(|_| *fate != Fate::Rewound) else { continue };
        let first = conversation.entries.len();
        if *fate == Fate::Compacted {
            hidden = hidden.saturating_add(messages.len() as u64);
            continue;
        }
        let record = transcript.element(list, at, messages.len());
        if first == 0 && all.iter().take(at).any(is_hidden) {
            // A new message before it would be hidden too.
            transcript.begin_with(record);
        }
        if head.compacts.is_some() {
            let mut compaction = ToolCompaction::new(first);
            compaction.dropped = Some(core::mem::take(&mut hidden));
            compactions.push(compaction);
            transcript.must_stay(record);
        }
        let usage = json::nested(whole, raw, "", reported)?;
        conversation.usage.extend(usage.map(|usage| UsageEntry::new(first, usage)));
        conversation.extend(record, if head.compacts.is_some() { pinned(messages) } else { messages });
    }
    conversation.compactions = compactions.into();
    transcript.push(conversation);
    Ok(())
}

/// The messages of an event; none if the model sees none.
fn messages(source: &Arc<str>, raw: &str, ids: &mut Ids) -> Result<Option<Vec<Message>>, WireError> {
    let Some((path, content)) = content(raw)? else { return Ok(None) };
    let messages = json::nested(raw, content, path, |content| gemini::messages(source, content, ids))?;
    Ok(Some(messages).filter(|messages| !messages.is_empty()))
}

/// Writes the event of a new message, which is a text. ADK hides events by their time and their invocation, so the
/// event has those of the adjacent event. It has no id: ADK assigns one.
fn fresh(message: &Message, like: Option<&str>) -> Result<String, WireError> {
    only_text(&[message])?;
    let content =
        gemini::write_content(None, &[message])?.ok_or_else(|| form("a message without content"))?;
    let names = &["invocationId", "invocation_id", "branch", "timestamp", "author"];
    let [beside @ .., author] = like.map(|like| json::fields(like, names)).transpose()?.unwrap_or_default();
    let author = match message.role() {
        Role::User => "\"user\"",
        Role::Assistant => author.filter(|author| *author != "\"user\"").unwrap_or("\"model\""),
        _ => return Err(form("a new event of this role")),
    };
    let beside = names.iter().zip(beside).map(|(key, value)| (*key, value.map(str::to_owned)));
    let members: Vec<_> =
        beside.chain([("author", Some(author.to_owned())), ("content", Some(content))]).collect();
    json::patch("{}", &members)
}

fn write_record(record: Option<&str>, now: &[&Message]) -> Result<Option<String>, WireError> {
    let record = record.ok_or_else(|| form("a new event"))?;
    let Some((_, content)) = content(record)? else { return Err(form("a new event")) };
    let written = gemini::write_content(Some(content), now)?;
    Ok(written.map(|written| {
        let range = json::range_of(record, content);
        let (before, behind) = (record.get(..range.start), record.get(range.end..));
        [before.unwrap_or_default(), &written, behind.unwrap_or_default()].concat()
    }))
}
