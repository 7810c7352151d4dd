//! The writer of formats whose readers note the place of each part in its record.
//!
//! A reader returns [`RecordMessage`]s: the messages of a record. Each part has the slots for its changed content, and
//! the list from which it can be removed. Text outside of changed slots is copied. `pieces` has common functions of
//! readers, `write` the writer.

mod pieces;
mod write;

use std::sync::Arc;

use epitome_core::Usage;
use epitome_core::message::{CallKind, Role};
use epitome_message::{Attribution, Message, Part, Str, ToolCall, ToolResult, WireText};

use super::expect::share;
use super::json::{self, ValueKind};
use super::transcript::UsageEntry;
use super::{Format, WireError};

pub(crate) use pieces::{RecordMessages, blocks, list, read_list, read_system, system};
pub(crate) use write::{fresh, fresh_text, write};

/// One message of a record.
#[derive(Debug)]
pub struct RecordMessage<'a> {
    pub(crate) role: Role,
    /// The name of the speaker; empty if there is none.
    pub(crate) name: Str,
    /// The text of the message, for counting and display, if it is one of several messages of its record.
    text: &'a str,
    /// Origin of the message, if it does not come from the speaker of its role.
    pub(crate) attribution: Option<Attribution>,
    /// The usage, in a box because few messages have a report.
    usage: Option<Box<Usage>>,
    pub(crate) parts: Vec<RecordPart<'a>>,
}

/// A part of a message, and the places of its content in the record.
#[derive(Debug)]
pub struct RecordPart<'a> {
    pub(crate) part: Part,
    slots: Vec<Slot<'a>>,
    /// The list that contains the part as an element, and the element.
    element: Option<(&'a str, &'a str)>,
    /// Values that repeat the content of the part, and the text that replaces each value if the part is left out.
    absence: Vec<(&'a str, &'static str)>,
    /// The parts of a result, if its reader notes them too.
    inner: Vec<Self>,
}

/// A value of a record that the writer can replace.
#[derive(Debug, Clone, Copy)]
struct Slot<'a> {
    value: &'a str,
    form: SlotForm,
}

/// The form of a changed part in a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SlotForm {
    /// The text of the part or the arguments of a call, as a JSON string.
    Text,
    /// The first argument, the text of the part as a JSON string, the second argument. `Around("[{\"text\":", "}]")` writes
    /// `[{"text":".."}]`.
    Around(&'static str, &'static str),
    /// The arguments of a call as JSON.
    Arguments,
    /// The text of the part as JSON, if the old value was an array or an object and the text is JSON of that kind; otherwise as a JSON
    /// string.
    Value,
    /// This JSON value. For a second slot: a field that described the old part, such as its length.
    Constant(&'static str),
    /// This JSON value, if a changed result is a single text. For a second slot: a field that held other content of the result, such as
    /// pictures.
    Gone(&'static str),
}

/// A reader of one record. Its first argument is the whole input, which it passes to the functions of [`RecordPart`].
/// Its second argument is the JSON text of the record, a slice of the input. The values that the reader names are
/// slices of the record.
///
/// # Errors
/// Errors of the reader about the record, with a place in the record.
pub type ReadRecord = for<'a> fn(&Arc<str>, &'a str) -> Result<Vec<RecordMessage<'a>>, WireError>;

impl<'a> RecordMessage<'a> {
    /// Creates a message without parts. `slice` is the part of the record that holds the message: the record itself if
    /// it holds only one message.
    #[must_use]
    pub fn new(role: Role, slice: &'a str) -> Self {
        Self { role, name: Str::default(), text: slice, attribution: None, usage: None, parts: Vec::new() }
    }

    /// Adds parts.
    #[must_use]
    pub fn with_parts(mut self, parts: impl IntoIterator<Item = RecordPart<'a>>) -> Self {
        self.parts.extend(parts);
        self
    }

    /// Sets the name of the speaker.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<Str>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the origin of the message, if the user or the model has not written it: for example a reminder of the
    /// program in the user's place.
    #[must_use]
    pub fn with_attribution(mut self, attribution: Attribution) -> Self {
        self.attribution = Some(attribution);
        self
    }

    /// Sets the usage that the provider reported for the response that ends with this message.
    /// [`usage::of`](crate::usage::of) reads the reports of providers.
    #[must_use]
    pub fn with_usage(mut self, usage: Usage) -> Self {
        self.usage = Some(Box::new(usage));
        self
    }

    /// All slices of the record that the message names.
    fn slices(&self) -> impl Iterator<Item = &'a str> {
        let of = |part: &RecordPart<'a>| {
            let slots = part.slots.iter().map(|slot| slot.value);
            let element = part.element.into_iter().flat_map(|(list, element)| [list, element]);
            slots.chain(element).chain(part.absence.iter().map(|(value, _)| *value)).collect::<Vec<_>>()
        };
        let parts = self.parts.iter().flat_map(|part| core::iter::once(part).chain(&part.inner));
        core::iter::once(self.text).chain(parts.flat_map(of))
    }

    fn message(self, whole: &Arc<str>, record: Option<&str>, format: Format, at: usize) -> Message {
        let text = share(whole, record.unwrap_or(self.text));
        let wire = WireText::new(format.shared_name(), text).with_rejoin(at > 0);
        let parts = self.parts.into_iter().map(|noted| noted.part).collect();
        let mut message = Message::new(self.role, parts);
        if !self.name.is_empty() {
            message = message.with_name(self.name);
        }
        if let Some(attribution) = self.attribution {
            message = message.with_attribution(attribution);
        }
        message.with_wire(wire)
    }
}

impl<'a> RecordPart<'a> {
    /// Creates a part of any kind, such as [`Part::Reasoning`] or [`Part::Media`]. It cannot be changed unless it gets
    /// a slot.
    #[must_use]
    pub const fn new(part: Part) -> Self {
        Self { part, slots: Vec::new(), element: None, absence: Vec::new(), inner: Vec::new() }
    }

    /// Creates a text part from the JSON string `value`, which is its slot. `None` if the text is empty, or the value
    /// is no string. `source` is the first argument of the reader: the text of the part shares its memory.
    #[must_use]
    pub fn text(source: &Arc<str>, value: Option<&'a str>) -> Option<Self> {
        let raw = value.filter(|raw| ValueKind::of(raw) == ValueKind::Text && *raw != "\"\"")?;
        Some(Self::new(Part::Text(share(source, &json::decode(raw)))).with_slot(Some(raw), SlotForm::Text))
    }

    /// Creates a tool call with this id and name. `arguments`, its slot, is a JSON value, or a JSON string with the
    /// arguments as text. Without it the arguments are `{}`.
    #[must_use]
    pub fn tool_call(
        source: &Arc<str>,
        (id, name): (impl Into<Str>, impl Into<Str>),
        arguments: Option<&'a str>,
    ) -> Self {
        let arguments = arguments.filter(|arguments| *arguments != "null");
        let (said, form) = match arguments {
            Some(text) if ValueKind::of(text) == ValueKind::Text => {
                (share(source, &json::decode(text)), SlotForm::Text)
            }
            _ => (share(source, arguments.unwrap_or("{}")), SlotForm::Arguments),
        };
        Self::new(Part::ToolCall(ToolCall::new(id, name, said))).with_slot(arguments, form)
    }

    /// Creates the tool result for the call `call_id`. `value`, its slot, is a JSON string with the text of the result,
    /// or any other JSON value, whose JSON is then the text.
    #[must_use]
    pub fn tool_result(source: &Arc<str>, call_id: impl Into<Str>, value: Option<&'a str>) -> Self {
        let value = value.filter(|value| *value != "null");
        let said = value.map(|value| match ValueKind::of(value) {
            ValueKind::Text => share(source, &json::decode(value)),
            _ => share(source, value),
        });
        let parts = said.filter(|said| !said.is_empty()).map(Part::Text).into_iter().collect();
        Self::new(Part::ToolResult(ToolResult::new(call_id, parts))).with_slot(value, SlotForm::Value)
    }

    /// Sets the kind of a call.
    pub(crate) const fn with_kind(mut self, kind: CallKind) -> Self {
        if let Part::ToolCall(call) = &mut self.part {
            call.kind = kind;
        }
        self
    }

    /// Creates a result with these parts.
    pub(crate) fn result(mut result: ToolResult, inner: Vec<Self>) -> Self {
        result.parts = inner.iter().map(|noted| noted.part.clone()).collect();
        Self { inner, ..Self::new(Part::ToolResult(result)) }
    }

    /// Sets whether the tool has failed, if the part is a tool result. The writer cannot change this mark.
    #[must_use]
    pub const fn with_error(mut self, is_error: bool) -> Self {
        if let Part::ToolResult(result) = &mut self.part {
            result.is_error = is_error;
        }
        self
    }

    /// Adds a slot: if the part is changed, the writer replaces `value`, a JSON value of the record, by the new part in
    /// the given form. Without a value nothing is added.
    #[must_use]
    pub fn with_slot(mut self, value: Option<&'a str>, form: SlotForm) -> Self {
        self.slots.extend(value.map(|value| Slot { value, form }));
        self
    }

    /// Adds `value` as a slot of the part if it is the same text.
    pub(crate) fn repeat(&mut self, whole: &Arc<str>, value: Option<&'a str>) {
        if let Some(again) = RecordPart::text(whole, value).filter(|again| again.part == self.part) {
            self.slots.extend(again.slots);
        }
    }

    /// Adds `value`, which repeats the texts of several parts, as a slot that becomes empty if the part is changed.
    pub(crate) fn repeat_among(&mut self, value: Option<&'a str>) {
        let value = value.filter(|value| ValueKind::of(value) == ValueKind::Text);
        self.slots.extend(value.map(|value| Slot { value, form: SlotForm::Constant("\"\"") }));
    }

    /// Sets `element` of the JSON array `list` as the place of the part: the element is removed if the part is left
    /// out.
    #[must_use]
    pub const fn with_element(mut self, list: &'a str, element: &'a str) -> Self {
        self.element = Some((list, element));
        self
    }

    /// Sets `absent`, a JSON text, as the replacement of `value` if the part is left out. Use it for a part that is no
    /// element of a list. Without this and without an element, a message cannot be written without the part.
    #[must_use]
    pub fn with_absence(mut self, value: Option<&'a str>, absent: &'static str) -> Self {
        self.absence.extend(value.map(|value| (value, absent)));
        self
    }
}

/// The messages that `read` finds in the record `text`, a slice of `whole`.
pub(crate) fn messages(
    whole: &Arc<str>,
    text: &str,
    format: Format,
    read: ReadRecord,
) -> Result<Vec<Message>, WireError> {
    reported(whole, text, format, read).map(|(messages, _)| messages)
}

/// Works like [`messages`], and returns the reports of usage too. Each report has the index of its message.
pub(crate) fn reported(
    whole: &Arc<str>,
    text: &str,
    format: Format,
    read: ReadRecord,
) -> Result<(Vec<Message>, Vec<UsageEntry>), WireError> {
    let pieces = read(whole, text)?;
    if let Format::Custom(spec) = format {
        check_slices(spec.name(), text, &pieces)?;
    }
    let record = (pieces.len() == 1).then_some(text);
    let usages = pieces
        .iter()
        .enumerate()
        .filter_map(|(at, piece)| Some(UsageEntry::new(at, *piece.usage.as_deref()?)))
        .collect();
    let each = pieces.into_iter().enumerate();
    Ok((each.map(|(at, piece)| piece.message(whole, record, format, at)).collect(), usages))
}

/// Fails if a reader names values outside of the record: the writer cannot replace them.
fn check_slices(format: &str, record: &str, pieces: &[RecordMessage<'_>]) -> Result<(), WireError> {
    let whole = record.as_bytes().as_ptr_range();
    let is_in = |slice: &str| {
        let range = slice.as_bytes().as_ptr_range();
        whole.start <= range.start && range.end <= whole.end
    };
    match pieces.iter().flat_map(RecordMessage::slices).all(is_in) {
        true => Ok(()),
        false => Err(WireError::unsupported(format!(
            "the reader of {format} named a value that is not a slice of its record: take the text of a borrowed `RawValue`"
        ))),
    }
}

#[cfg(test)]
mod tests;
