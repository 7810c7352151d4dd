//! Requests for a compaction.

use core::num::NonZeroU64;
use std::borrow::Cow;
use std::format;
use std::string::{String, ToString as _};
use std::vec::Vec;

use epitome_std::message::{CompactionPart, Message, Part, Str};
use epitome_std::session::Tool;
use epitome_std::wire::{Converted, Format, WireError, WireErrorKind, convert, convert_continued};
use serde_json::{Value, json};

use super::super::ServiceRequest;
use super::ResponsesVendor;

/// The options of `POST /responses/compact`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompactOptions {
    /// The key of the prompt cache. Requests with the same key share a cache.
    pub prompt_cache_key: Option<Str>,
    /// The lifetime of the cache.
    pub prompt_cache_retention: Option<CacheRetention>,
    /// The side that sets the cache's breakpoints.
    pub prompt_cache_mode: Option<CacheMode>,
    /// The lifetime of a breakpoint, as the service writes it: `30m`.
    pub prompt_cache_ttl: Option<Str>,
    /// The tier that the request is served in.
    pub service_tier: Option<Str>,
    /// The treatment of images.
    pub image_compression: Option<ImageCompression>,
}

/// The lifetime of a prompt cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CacheRetention {
    /// Until the memory is needed.
    InMemory,
    /// For a day.
    Day,
}

/// The side that sets the breakpoints of a prompt cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CacheMode {
    /// Both the service and the request.
    Implicit,
    /// Only the request.
    Explicit,
}

/// The treatment of images in compacted messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImageCompression {
    /// The service decides.
    Auto,
    /// Images are compressed.
    Enabled,
    /// Images stay as they are.
    Disabled,
}

impl CompactOptions {
    fn write(&self, body: &mut Body) {
        body.text("prompt_cache_key", self.prompt_cache_key.as_deref());
        let retention = self.prompt_cache_retention.map(|retention| match retention {
            CacheRetention::InMemory => "in_memory",
            CacheRetention::Day => "24h",
        });
        body.text("prompt_cache_retention", retention);
        let mode = self.prompt_cache_mode.map(|mode| match mode {
            CacheMode::Implicit => "implicit",
            CacheMode::Explicit => "explicit",
        });
        let fields = [("mode", mode), ("ttl", self.prompt_cache_ttl.as_deref())];
        let fields = fields.into_iter().filter_map(|(key, value)| Some((key.to_string(), value?.into())));
        let fields: serde_json::Map<String, Value> = fields.collect();
        body.value("prompt_cache_options", Some(Value::Object(fields)).filter(|fields| *fields != json!({})));
        body.text("service_tier", self.service_tier.as_deref());
        let images = self.image_compression.map(|images| match images {
            ImageCompression::Auto => "auto",
            ImageCompression::Enabled => "enabled",
            ImageCompression::Disabled => "disabled",
        });
        body.value("image", images.map(|images| json!({"context_compression": images})));
    }
}

/// The body of `POST /responses/compact` for a conversation that the client stores, with a list of the content that
/// the format has no form for.
///
/// # Errors
/// As [`convert`](epitome_std::wire::convert()).
pub fn compact_body(
    vendor: &ResponsesVendor,
    model: &str,
    request: &ServiceRequest<'_>,
    options: &CompactOptions,
) -> Result<Converted, WireError> {
    Body::with_conversation(vendor, request, None, |body| {
        body.text("model", Some(model));
        options.write(body);
    })
}

/// The body for the messages up to a response that the service has stored. The instructions of that response do not
/// apply: `instructions` replaces them.
#[must_use]
pub fn compact_previous_body(
    model: &str,
    previous_response_id: &str,
    instructions: Option<&str>,
    options: &CompactOptions,
) -> String {
    let mut body = Body(String::from("{"));
    body.text("previous_response_id", Some(previous_response_id));
    body.text("instructions", instructions);
    body.text("model", Some(model));
    options.write(&mut body);
    body.finish()
}

/// The body of `POST /responses` that requests a compaction instead of an answer. It has the conversation with its
/// tools, and `compaction_trigger` as the last item. The service does not store the response.
///
/// # Errors
/// As [`compact_body`].
pub fn trigger_body(
    vendor: &ResponsesVendor,
    model: &str,
    request: &ServiceRequest<'_>,
    options: &CompactOptions,
) -> Result<Converted, WireError> {
    Body::with_conversation(vendor, request, Some(r#"{"type":"compaction_trigger"}"#), |body| {
        body.text("model", Some(model));
        let tools: Vec<Value> = request.tools.iter().map(tool).collect();
        body.value("tools", Some(Value::Array(tools)).filter(|_| !request.tools.is_empty()));
        body.value("store", Some(Value::Bool(false)));
        CompactOptions { image_compression: None, ..options.clone() }.write(body);
    })
}

fn tool(tool: &Tool) -> Value {
    json!({
        "type": "function", "name": &*tool.name, "description": &*tool.description,
        "parameters": tool.parameters, "strict": false,
    })
}

/// The value of `context_management` in a request. The server compacts when its input exceeds `threshold` tokens;
/// without a threshold, the server decides. The result is an item of the response: see
/// [`ServerCompaction`](super::ServerCompaction).
///
/// ```
/// use std::num::NonZeroU64;
/// use epitome_compactors::managed::openai::context_management;
///
/// assert_eq!(context_management(NonZeroU64::new(150_000)), r#"[{"type":"compaction","compact_threshold":150000}]"#);
/// assert_eq!(context_management(None), r#"[{"type":"compaction"}]"#);
/// ```
#[must_use]
pub fn context_management(threshold: Option<NonZeroU64>) -> String {
    let threshold = threshold.map(|tokens| format!(r#","compact_threshold":{tokens}"#));
    format!(r#"[{{"type":"compaction"{}}}]"#, threshold.unwrap_or_default())
}

/// The messages as `{"input":[..]}`, in the form for the vendor. The vendor's own compactions are sent sealed,
/// those of other providers as their text. Use it for any request to the vendor.
///
/// ```
/// use epitome_compactors::managed::openai::{ResponsesVendor, input};
/// use epitome_core::message::Role;
/// use epitome_std::message::{CompactionPart, Message, Part};
///
/// let left = CompactionPart::new("openai", "They spoke of Oslo.", Some("gAAAA".into()));
/// let messages = [Message::user("Hi"), Message::new(Role::Assistant, vec![Part::Compaction(left)])];
/// assert!(input(&ResponsesVendor::openai(), &messages)?.text.contains(r#""encrypted_content":"gAAAA""#));
/// let elsewhere = input(&ResponsesVendor::azure(), &messages)?.text;
/// assert!(elsewhere.contains("They spoke of Oslo.") && !elsewhere.contains("gAAAA"));
/// # Ok::<(), epitome_std::wire::WireError>(())
/// ```
///
/// # Errors
/// As [`convert`](epitome_std::wire::convert()).
pub fn input<'m>(
    vendor: &ResponsesVendor,
    messages: impl IntoIterator<Item = &'m Message>,
) -> Result<Converted, WireError> {
    addressed(vendor, messages, |messages| convert(messages.iter().copied(), Format::OpenaiResponses))
}

/// The input of new messages behind a response that the service has stored, for a request with
/// `previous_response_id`. A result may answer a call of that response, so nothing is repaired.
///
/// # Errors
/// As [`input`].
pub fn continued_input<'m>(
    vendor: &ResponsesVendor,
    messages: impl IntoIterator<Item = &'m Message>,
) -> Result<Converted, WireError> {
    addressed(vendor, messages, |messages| {
        convert_continued(messages.iter().copied(), Format::OpenaiResponses)
    })
}

/// The provider of compactions in the format.
const FORMAT_VENDOR: &str = "openai";

/// Calls `write` with the messages in the form for the vendor.
fn addressed<'m, T>(
    vendor: &ResponsesVendor,
    messages: impl IntoIterator<Item = &'m Message>,
    write: impl FnOnce(&[&Message]) -> T,
) -> T {
    let messages = messages.into_iter();
    if vendor.provider() == FORMAT_VENDOR {
        return write(&messages.collect::<Vec<_>>());
    }
    let renamed: Vec<_> = messages.map(|message| renamed(vendor, message)).collect();
    write(&renamed.iter().map(|message| &**message).collect::<Vec<_>>())
}

/// The message with the vendor's own compactions under the provider name of the format. Compactions of the provider
/// with that name get another name.
fn renamed<'m>(vendor: &ResponsesVendor, message: &'m Message) -> Cow<'m, Message> {
    let concerns =
        |left: &CompactionPart| left.provider == vendor.provider() || left.provider == FORMAT_VENDOR;
    let is_concerned = |part: &Part| matches!(part, Part::Compaction(left) if concerns(left));
    if !message.parts().iter().any(is_concerned) {
        return Cow::Borrowed(message);
    }
    let renamed = message.parts().iter().cloned().map(|part| match part {
        Part::Compaction(mut left) => {
            left.provider = match left.provider == vendor.provider() {
                true => FORMAT_VENDOR.into(),
                false => "another endpoint".into(),
            };
            Part::Compaction(left)
        }
        part => part,
    });
    Cow::Owned(message.clone().with_parts(renamed.collect()))
}

/// An unfinished body: a JSON object that is not closed yet. The conversation is written once, and extended.
struct Body(String);

impl Body {
    /// The body with the conversation, the item `last` behind it, and the members that `add` writes.
    fn with_conversation(
        vendor: &ResponsesVendor,
        request: &ServiceRequest<'_>,
        last: Option<&str>,
        add: impl FnOnce(&mut Self),
    ) -> Result<Converted, WireError> {
        let (apart, within) = match vendor.has_instructions_apart() {
            true => (request.instructions, &[][..]),
            false => (&[][..], request.instructions),
        };
        let mut written = input(vendor, within.iter().chain(request.messages.iter().copied()))?;
        let mut text = core::mem::take(&mut written.text);
        if text.pop() != Some('}') || text.pop() != Some(']') {
            return Err(WireError::new(WireErrorKind::Unsupported, "a list of items was expected"));
        }
        let comma = if text.ends_with('[') { "" } else { "," };
        last.into_iter().for_each(|item| text.extend([comma, item]));
        text.push(']');
        let mut body = Self(text);
        let said = apart.iter().flat_map(Message::parts).filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            _ => None,
        });
        let instructions = said.collect::<Vec<_>>().join("\n\n");
        body.text("instructions", Some(instructions.as_str()).filter(|text| !text.is_empty()));
        add(&mut body);
        written.text = body.finish();
        Ok(written)
    }

    fn text(&mut self, key: &str, value: Option<&str>) {
        self.value(key, value.map(Value::from));
    }

    fn value(&mut self, key: &str, value: Option<Value>) {
        if let Some(value) = value {
            let comma = if self.0.ends_with('{') { "" } else { "," };
            self.0.push_str(&format!("{comma}\"{key}\":{value}"));
        }
    }

    fn finish(mut self) -> String {
        self.0.push('}');
        self.0
    }
}
