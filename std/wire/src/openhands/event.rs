//! Reads one event as a message.

use std::sync::Arc;

use epitome_core::Usage;
use epitome_core::message::{MediaKind, Role};
use epitome_message::{Media, MediaSource, Message, Part, Str, ToolCall, ToolResult, WireText};

use crate::expect::{expect_object, member_text, number, optional_text, present, share};
use crate::json::known::Value;
use crate::json::{self, ValueKind};
use crate::{Format, WireError, usage};

/// The kind of an event.
#[derive(Debug)]
pub(super) enum Event {
    /// No message.
    Note,
    Message(Message),
    /// A call, the text of the model with it, and the usage that the provider reported for the response.
    Call {
        call: Message,
        said: Option<Str>,
        usage: Option<Usage>,
        /// The number of an action without a recorded call: the event that it causes is its result.
        causes: Option<u64>,
    },
    /// The effect of an action: the result of a call, or a message to the model, if there is any.
    Caused {
        cause: u64,
        result: Message,
        said: Option<Message>,
    },
    /// The events that the model no longer sees, and the message that replaces them.
    Condensation {
        first: Option<u64>,
        last: Option<u64>,
        others: Vec<u64>,
        summary: Option<Message>,
    },
}

/// The members of an event that are read, unchanged, in a single scan, because an event may be long.
pub(super) struct Fields<'a> {
    id: Option<&'a str>,
    cause: Option<&'a str>,
    source: Option<&'a str>,
    action: Option<&'a str>,
    observation: Option<&'a str>,
    args: Option<&'a str>,
    content: Option<&'a str>,
    call: Option<&'a str>,
    kind: Option<&'a str>,
    /// The event.
    event: Value<'a>,
}

impl<'a> Fields<'a> {
    pub(super) fn of(event: impl Into<Value<'a>>) -> Result<Self, WireError> {
        let event = event.into();
        expect_object(event.text(), "an event")?;
        let names = &[
            "id",
            "cause",
            "source",
            "action",
            "observation",
            "args",
            "content",
            "tool_call_metadata",
            "kind",
        ];
        let [id, cause, source, action, observation, args, content, call, kind] =
            json::known::fields(event, names)?;
        Ok(Self { id, cause, source, action, observation, args, content, call, kind, event })
    }

    /// Whether the fields belong to an event of version 1.
    pub(super) fn are_of_v1(&self) -> bool {
        [self.kind, self.id]
            .iter()
            .all(|value| value.is_some_and(|value| ValueKind::of(value) == ValueKind::Text))
    }

    /// The number of the event.
    pub(super) fn number(&self) -> Option<u64> {
        number(self.id)
    }

    /// Reads the event, a slice of `whole`.
    pub(super) fn read(&self, whole: &Arc<str>) -> Result<Event, WireError> {
        let raw = self.event.text();
        let wire = |message: Message| {
            message.with_wire(WireText::new(Format::OpenHands.shared_name(), share(whole, raw)))
        };
        if let Some(observation) = self.observation {
            return self.observed(whole, raw, observation, wire);
        }
        let Self { source, action, args, call, .. } = *self;
        let known =
            args.filter(|args| ValueKind::of(args) == ValueKind::Object).map(|args| self.event.within(args));
        let known = known.unwrap_or_else(|| Value::from("{}"));
        let args = known.text();
        let call = call.filter(|call| ValueKind::of(call) == ValueKind::Object);
        let said = |role, key: &'static str| -> Result<Event, WireError> {
            let [text, urls] = json::known::fields(known, &[key, "image_urls"])?;
            let text = optional_text(args, text, key)?.filter(|text| !text.is_empty());
            let mut parts: Vec<Part> = text.map(|text| Part::Text(share(whole, &text))).into_iter().collect();
            parts.extend(images(whole, urls)?);
            Ok(if parts.is_empty() { Event::Note } else { Event::Message(wire(Message::new(role, parts))) })
        };
        match (action, source) {
            (Some("\"message\""), Some("\"user\"")) => said(Role::User, "content"),
            (Some("\"message\""), Some("\"agent\"")) => said(Role::Assistant, "content"),
            (Some("\"system\""), _) => said(Role::System, "content"),
            (Some("\"finish\""), _) => match member_text(whole, args, "final_thought")? {
                Some(text) if !text.is_empty() => said(Role::Assistant, "final_thought"),
                _ => said(Role::Assistant, "thought"),
            },
            (Some("\"condensation\""), _) => condensation(whole, args, wire),
            (Some(action), Some("\"agent\"")) => match call {
                Some(call) => {
                    json::nested(raw, call, "/tool_call_metadata", |call| self::call(whole, call, wire))
                }
                None => match self.number().filter(|_| CALLS.contains(&action)) {
                    Some(id) => unrecorded(whole, (id, action), args, wire),
                    None => said(Role::Assistant, "thought"),
                },
            },
            _ => Ok(Event::Note),
        }
    }

    fn observed(
        &self,
        whole: &Arc<str>,
        raw: &str,
        observation: &str,
        wire: impl Fn(Message) -> Message,
    ) -> Result<Event, WireError> {
        let text = optional_text(raw, self.content, "content")?.unwrap_or_default();
        let parts = if text.is_empty() { Vec::new() } else { vec![Part::Text(share(whole, &text))] };
        let result = |id: Str, parts| {
            let mut result = ToolResult::new(id, parts);
            result.is_error = observation == "\"error\"";
            wire(Message::new(Role::Tool, vec![Part::ToolResult(result)]))
        };
        if let Some(call) = self.call.filter(|call| ValueKind::of(call) == ValueKind::Object) {
            let id = member_text(whole, call, "tool_call_id")?.unwrap_or_default();
            return Ok(Event::Message(result(id, parts)));
        }
        if SILENT.contains(&observation) {
            return Ok(Event::Note);
        }
        let said = Some(parts.clone()).filter(|parts| !parts.is_empty());
        let said = said.map(|parts| wire(Message::new(Role::User, parts)));
        Ok(match number(self.cause) {
            Some(cause) => Event::Caused { cause, result: result(call_id(cause), parts), said },
            None => said.map_or(Event::Note, Event::Message),
        })
    }
}

/// The call of an action without a recorded response: only its arguments are known.
fn unrecorded(
    whole: &Arc<str>,
    (id, action): (u64, &str),
    args: &str,
    wire: impl Fn(Message) -> Message,
) -> Result<Event, WireError> {
    let said = member_text(whole, args, "thought")?.filter(|text| !text.is_empty());
    let call = ToolCall::new(call_id(id), share(whole, &json::decode(action)), share(whole, args));
    let call = wire(Message::new(Role::Assistant, vec![Part::ToolCall(call)]));
    Ok(Event::Call { call, said, usage: None, causes: Some(id) })
}

/// The id of a call without one, by the number of its action.
fn call_id(action: u64) -> Str {
    Str::from(format!("event-{action}"))
}

/// The images of a message.
fn images(whole: &Arc<str>, urls: Option<&str>) -> Result<Vec<Part>, WireError> {
    let mut found = Vec::new();
    if let Some(urls) = urls.filter(|urls| ValueKind::of(urls) == ValueKind::Array) {
        json::known::items(urls, |url| {
            let source = MediaSource::Uri(share(whole, &json::decode(url)));
            found.push(Part::Media(Media::new(MediaKind::Image, Str::default(), source)));
            Ok(())
        })?;
    }
    Ok(found)
}

fn call(whole: &Arc<str>, raw: &str, wire: impl Fn(Message) -> Message) -> Result<Event, WireError> {
    let [id, name, response] =
        json::known::fields(raw, &["tool_call_id", "function_name", "model_response"])?;
    let text = |value, key| {
        Ok::<_, WireError>(
            optional_text(raw, value, key)?.map(|text| share(whole, &text)).unwrap_or_default(),
        )
    };
    let (id, name) = (text(id, "tool_call_id")?, text(name, "function_name")?);
    let response = response.filter(|response| ValueKind::of(response) == ValueKind::Object);
    let mut made = ToolCall::new(id.clone(), name, "{}");
    let (mut said, mut response_id, mut report) = (None, None, None);
    if let Some(response) = response {
        let [id_of_it, choices, usage] = json::known::fields(response, &["id", "choices", "usage"])?;
        response_id = optional_text(response, id_of_it, "id")?.map(|id| share(whole, &id));
        // An unreadable report is ignored: the messages are more important.
        report = usage.and_then(|usage| usage::of(usage).ok());
        if let Some(message) = choices.map(first_message).transpose()?.flatten() {
            let [content, calls] = json::known::fields(message, &["content", "tool_calls"])?;
            let content = optional_text(message, content, "content")?.filter(|text| !text.is_empty());
            said = content.map(|text| share(whole, &text));
            if let Some(arguments) = arguments(whole, calls, &id)? {
                made.arguments = arguments;
            }
        }
    }
    let mut call = Message::new(Role::Assistant, vec![Part::ToolCall(made)]);
    if let Some(id) = response_id {
        call = call.with_response_id(id);
    }
    Ok(Event::Call { call: wire(call), said, usage: report, causes: None })
}

fn first_message(choices: &str) -> Result<Option<&str>, WireError> {
    let mut found = None;
    if ValueKind::of(choices) == ValueKind::Array {
        json::known::items(choices, |choice| {
            if found.is_none() && ValueKind::of(choice) == ValueKind::Object {
                found = json::known::field(choice, "message")?
                    .filter(|message| ValueKind::of(message) == ValueKind::Object);
            }
            Ok(())
        })?;
    }
    Ok(found)
}

/// The arguments of the call `id` of a response.
fn arguments(whole: &Arc<str>, calls: Option<&str>, id: &str) -> Result<Option<Str>, WireError> {
    let mut found = None;
    if let Some(calls) = calls.filter(|calls| ValueKind::of(calls) == ValueKind::Array) {
        json::known::items(calls, |call| {
            let [own, function] = json::known::fields(call, &["id", "function"])?;
            if found.is_none() && own.is_some_and(|own| json::decode(own) == id) {
                found = present(call, function, "function", |function| {
                    member_text(whole, function, "arguments")
                })?;
            }
            Ok(())
        })?;
    }
    Ok(found.flatten())
}

fn condensation(whole: &Arc<str>, args: &str, wire: impl Fn(Message) -> Message) -> Result<Event, WireError> {
    let names = &["forgotten_events_start_id", "forgotten_events_end_id", "forgotten_event_ids"];
    let [first, last, ids] = json::known::fields(args, names)?;
    let mut others = Vec::new();
    if let Some(ids) = ids.filter(|ids| ValueKind::of(ids) == ValueKind::Array) {
        json::known::items(ids, |id| {
            others.extend(number(Some(id)));
            Ok(())
        })?;
    }
    let summary = member_text(whole, args, "summary")?.filter(|text| !text.is_empty());
    let summary = summary.map(|text| wire(Message::new(Role::User, vec![Part::Text(text)])));
    let (first, last) = (number(first), number(last));
    Ok(Event::Condensation { first, last, others, summary })
}

/// Observations that the model does not see.
const SILENT: &[&str] = &["\"agent_state_changed\"", "\"null\"", "\"recall\"", "\"agent_condensation\""];

/// Actions that run a tool and have an observation as their result, as JSON.
const CALLS: &[&str] = &[
    "\"run\"",
    "\"run_ipython\"",
    "\"read\"",
    "\"write\"",
    "\"edit\"",
    "\"browse\"",
    "\"browse_interactive\"",
    "\"call_tool_mcp\"",
    "\"delegate\"",
    "\"task_tracking\"",
];
