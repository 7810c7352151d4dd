//! The forms that each target accepts, and the texts that it writes.

use std::borrow::Cow;

use epitome_core::Profile;
use epitome_core::attribution::SourceKind;
use epitome_core::message::{MediaKind, Role};
use epitome_message::{Media, MediaSource, Message, Part, Str, UnknownPart};

use super::parts::Told;
use crate::gemini::is_assigned_id;
use crate::json::{self, ValueKind, quote, quoted_bytes};
use crate::limits::FieldLimits;
use crate::openai_responses::CustomCalls;
use crate::spec::{self, FormatSpec};
use crate::{Format, WireError, anthropic, openai_responses};

/// The target format of a conversion.
pub(super) struct Target {
    pub(super) format: Format,
    pub(super) profile: Profile,
    /// The limits of the provider's service. A framework has none.
    pub(super) limits: FieldLimits,
    spec: &'static FormatSpec,
}

impl Target {
    pub(super) fn of(format: Format) -> Result<Self, WireError> {
        if !TARGETS.contains(&format) {
            let names = TARGETS.map(Format::as_str).join(", ");
            let what = format!("{format} is no format to convert to: take one of {names}");
            return Err(WireError::unsupported(what));
        }
        let profile = format.profile();
        let limits = if is_framework(format) { FieldLimits::NONE } else { FieldLimits::of(profile) };
        Ok(Self { format, profile, limits, spec: spec::of(format)? })
    }

    /// Whether the message was read from this format, so that content of this format alone may go back.
    pub(super) fn is_origin(&self, message: &Message) -> bool {
        message.wire().is_some_and(|wire| wire.format == self.format.as_str())
    }

    /// Whether instructions are in a field next to the messages.
    pub(super) const fn hoists(&self) -> bool {
        matches!(self.format, Format::Anthropic | Format::Gemini)
    }

    /// Whether a result has the name of its tool.
    pub(super) const fn names_results(&self) -> bool {
        self.profile.names_results() || matches!(self.format, Format::LangChain | Format::SemanticKernel)
    }

    /// Whether the target does not write this id, because the reader of each answer assigns such ids anew.
    pub(super) fn leaves_out_id(&self, id: &str) -> bool {
        self.format == Format::Gemini && is_assigned_id(id)
    }

    /// Whether the target has approvals.
    pub(super) const fn takes_approvals(&self) -> bool {
        matches!(self.format, Format::AgentFramework)
    }

    /// Whether the target has an error mark for results.
    pub(super) const fn marks_errors(&self) -> bool {
        self.hoists() || matches!(self.format, Format::AgentFramework | Format::LangChain)
    }

    /// Whether the calls of a message stand behind its other parts.
    pub(super) const fn puts_calls_last(&self) -> bool {
        matches!(self.format, Format::OpenaiChat | Format::LangChain)
    }

    /// Whether the target has names of speakers.
    pub(super) const fn has_names(&self) -> bool {
        matches!(self.format, Format::OpenaiChat) || is_framework(self.format)
    }

    /// Whether the target can request a low detail for a picture.
    pub(super) const fn has_detail(&self) -> bool {
        matches!(self.format, Format::OpenaiChat | Format::OpenaiResponses)
    }

    /// Whether the target accepts readable reasoning that it did not seal.
    pub(super) const fn takes_reasoning(&self) -> bool {
        matches!(self.format, Format::OpenaiChat | Format::AgentFramework | Format::LangChain)
    }

    /// Whether the target accepts these media, in a message of this role or in a result.
    pub(super) fn takes_media(&self, media: &Media, role: Role, own: bool) -> bool {
        let (base64, elsewhere, file_id) = match &media.source {
            MediaSource::Base64(_) => (true, false, false),
            MediaSource::Uri(uri) => (false, uri.contains("://"), !uri.contains(':')),
        };
        let image = media.kind == MediaKind::Image;
        let document = media.kind == MediaKind::Document;
        // A file id belongs to one vendor only.
        if file_id && !own || role == Role::Assistant && self.format != Format::Gemini {
            return false;
        }
        match self.format {
            Format::OpenaiChat if role == Role::Tool => false,
            Format::OpenaiChat => match media.kind {
                MediaKind::Image => true,
                MediaKind::Audio => base64,
                MediaKind::Document => !elsewhere,
                _ => false,
            },
            Format::OpenaiResponses => image || document,
            Format::SemanticKernel => role != Role::Tool && (image || media.kind == MediaKind::Audio),
            Format::Anthropic if image => !base64 || IMAGES.contains(&&*media.mime),
            Format::Anthropic => document && (!base64 || media.mime == "application/pdf"),
            _ => !base64 || !media.mime.is_empty(),
        }
    }

    /// Whether an unknown part belongs to the target's format, and may be in a message of this role.
    pub(super) fn takes_unknown(&self, part: &UnknownPart, role: Role) -> bool {
        let own = part.format == self.format.as_str() && ValueKind::of(&part.raw) == ValueKind::Object;
        // An item of Responses stands alone, so it cannot be in a result.
        own && (self.format != Format::OpenaiResponses
            || role != Role::Tool
            || part.kind.starts_with("input_"))
    }

    /// Writes the conversation as an object. Its messages are legal, and hold only content that the format can
    /// represent.
    pub(super) fn write(&self, messages: &[Told<'_>]) -> Result<String, WireError> {
        let is_apart =
            |message: &&Message| self.hoists() && matches!(message.role(), Role::System | Role::Developer);
        let (system, rest): (Vec<&Message>, Vec<&Message>) =
            messages.iter().map(|message| &**message).partition(is_apart);
        let (before, behind) = match self.format {
            Format::OpenaiResponses => (r#"{"input":["#.to_owned(), "]}"),
            Format::Anthropic => (format!(r#"{{{}"messages":["#, anthropic_system(&system)), "]}"),
            Format::Gemini => (format!(r#"{{{}"contents":["#, gemini_system(&system)), "]}"),
            Format::OpenaiChat => (r#"{"messages":["#.to_owned(), "]}"),
            // A list is the input and output of the frameworks' own functions.
            _ => ("[".to_owned(), "]"),
        };
        // A conversation is long: only one copy exists while it is written.
        let mut out = before;
        out.reserve(self.written_bytes(&rest));
        // The items of Responses go directly to `out`, so that their content is copied only once.
        if self.format == Format::OpenaiResponses {
            let mut calls = CustomCalls::default();
            for message in rest {
                calls.push(message);
                push_items(&mut out, calls.answered(message).as_ref().unwrap_or(message))?;
            }
            out.push_str(behind);
            return Ok(out);
        }
        let mut first = true;
        for group in rest.chunk_by(|one, next| self.joins(one, next)) {
            // A message in a form of the target alone keeps its text.
            let source = group.first().and_then(|message| message.wire());
            let source = source.map(|wire| self.sent(&wire.text)).transpose()?;
            let Some(record) = self.spec.write(source.as_deref(), group)? else { continue };
            if !core::mem::take(&mut first) {
                out.push(',');
            }
            out.push_str(&record);
        }
        out.push_str(behind);
        Ok(out)
    }

    /// The message for a request, from the text of a message. A response has more fields, which a request must not
    /// have.
    fn sent<'t>(&self, text: &'t str) -> Result<Cow<'t, str>, WireError> {
        if self.format != Format::Anthropic {
            return Ok(Cow::Borrowed(text));
        }
        let [role, content] = json::fields(text, &["role", "content"])?;
        let (role, content) = (role.unwrap_or_default(), content.unwrap_or_default());
        Ok(Cow::Owned(format!(r#"{{"role":{role},"content":{content}}}"#)))
    }

    /// Whether two neighbours are one record: a turn of one role. A message that keeps its text is a record of its own.
    fn joins(&self, one: &Message, next: &Message) -> bool {
        let is_model = |message: &Message| message.role() == Role::Assistant;
        let is_fresh = one.wire().or(next.wire()).is_none();
        // A reader recognises a ledger only as a message of its own.
        let is_summary =
            |message: &Message| is_model(message) && message.attribution().source == SourceKind::Compaction;
        let are_said = !is_summary(one) && !is_summary(next);
        self.hoists() && is_model(one) == is_model(next) && is_fresh && are_said
    }

    /// Approximate size of these messages in a request, in bytes: their escaped content, and the text around it. If the
    /// actual size exceeds it, the text grows.
    fn written_bytes(&self, messages: &[&Message]) -> usize {
        let around = if self.format == Format::OpenaiResponses { AROUND_ITEM_BYTES } else { AROUND_BYTES };
        let parts = messages.iter().flat_map(|message| message.parts());
        let parts = parts.map(|part| match part {
            // An unknown part is written unchanged.
            Part::Unknown(unknown) => unknown.raw.len().saturating_add(1),
            part => said_bytes(part).saturating_add(around),
        });
        parts.fold(AROUND_BYTES, usize::saturating_add)
    }
}

/// Appends the items of a message. A message in a form of the format alone keeps its text.
fn push_items(out: &mut String, message: &Message) -> Result<(), WireError> {
    let Some(wire) = message.wire() else { return openai_responses::push_items(out, message) };
    if let Some(item) = openai_responses::write_record(Some(&wire.text), &[message])? {
        out.extend([if out.ends_with('[') { "" } else { "," }, &item]);
    }
    Ok(())
}

/// Size of the content of a part in bytes, ids and names included.
fn said_bytes(part: &Part) -> usize {
    let text = |text: &Option<Str>| text.as_deref().map_or(0, str::len);
    match part {
        Part::Text(text) => quoted_bytes(text),
        Part::ToolResult(result) => {
            let parts = match &*result.parts {
                [Part::Text(text)] => quoted_bytes(text),
                parts => parts
                    .iter()
                    .map(|part| said_bytes(part).saturating_add(AROUND_NESTED_BYTES))
                    .fold(0, usize::saturating_add),
            };
            parts.saturating_add(result.call_id.len())
        }
        Part::ToolCall(call) => {
            quoted_bytes(&call.arguments).saturating_add(call.id.len()).saturating_add(call.name.len())
        }
        Part::Reasoning(it) => {
            let parts = [quoted_bytes(&it.text), text(&it.opaque), text(&it.id), SUMMARY_BYTES];
            parts.into_iter().fold(0, usize::saturating_add)
        }
        Part::Compaction(it) => quoted_bytes(&it.text).saturating_add(text(&it.opaque)),
        Part::Media(Media { source: MediaSource::Base64(text) | MediaSource::Uri(text), mime, .. }) => {
            text.len().saturating_add(mime.len()).saturating_add(AROUND_NESTED_BYTES)
        }
        Part::Unknown(unknown) => unknown.raw.len(),
        _ => 0,
    }
}

/// Size of the text around a part, in bytes: names of fields. It is smallest in Responses, which has no wrapper around
/// a call.
const AROUND_BYTES: usize = 112;
const AROUND_ITEM_BYTES: usize = 88;
/// Size of the additional text around a medium, or a part of a result, in bytes.
const AROUND_NESTED_BYTES: usize = 48;
/// Size of the additional text around reasoning, in bytes.
const SUMMARY_BYTES: usize = 32;

/// The texts of instructions.
fn texts<'m>(system: &[&'m Message]) -> Vec<&'m str> {
    let parts = system.iter().flat_map(|message| message.parts());
    parts.filter_map(|part| if let Part::Text(text) = part { Some(text.as_str()) } else { None }).collect()
}

fn anthropic_system(system: &[&Message]) -> String {
    match texts(system).as_slice() {
        [] => String::new(),
        [one] => format!(r#""system":{},"#, quote(one)),
        several => {
            let block = |text: &&str| format!(r#"{{"type":"text","text":{}}}"#, quote(text));
            format!(r#""system":[{}],"#, several.iter().map(block).collect::<Vec<_>>().join(","))
        }
    }
}

fn gemini_system(system: &[&Message]) -> String {
    match texts(system).as_slice() {
        [] => String::new(),
        several => {
            let part = |text: &&str| format!(r#"{{"text":{}}}"#, quote(text));
            let parts = several.iter().map(part).collect::<Vec<_>>().join(",");
            format!(r#""systemInstruction":{{"parts":[{parts}]}},"#)
        }
    }
}

/// The provider whose compactions the format accepts.
pub(super) fn own_compactions(format: Format) -> &'static str {
    match format {
        Format::Anthropic => anthropic::PROVIDER,
        Format::OpenaiResponses => openai_responses::PROVIDER,
        _ => "",
    }
}

/// The target formats of a conversion.
pub(super) const TARGETS: [Format; 7] = [
    Format::OpenaiChat,
    Format::OpenaiResponses,
    Format::Anthropic,
    Format::Gemini,
    Format::AgentFramework,
    Format::LangChain,
    Format::SemanticKernel,
];

/// Whether a format is that of a framework, not of a provider.
const fn is_framework(format: Format) -> bool {
    matches!(format, Format::AgentFramework | Format::LangChain | Format::SemanticKernel)
}

/// The types of images that Anthropic documents.
const IMAGES: &[&str] = &["image/jpeg", "image/png", "image/gif", "image/webp"];
