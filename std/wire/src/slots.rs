//! The writer of formats whose readers note where each part stands in its record.
//!
//! A reader returns [`Piece`]s: the messages of a record, and for each part the slots in which a changed part is written, and the list
//! of which the part can be left out. The text outside of changed slots is copied. `pieces` has what readers share, `write` the writer.

mod pieces;
mod write;

use std::sync::Arc;

use epitome_core::message::Role;
use epitome_message::{Attribution, Message, Part, Str, ToolResult, WireText};

use super::expect::share;
use super::json::Kind;
use super::{Format, WireError};

pub(crate) use pieces::{Pieces, blocks, list, output, read_list, text};
pub(crate) use write::{fresh, fresh_text, write};

/// One message of a record.
#[derive(Debug)]
pub(crate) struct Piece<'a> {
    role: Role,
    /// The name of the speaker; empty where there is none.
    pub(crate) name: Str,
    /// The text that the message is counted and shown by where it is one of several of its record.
    text: &'a str,
    /// Where the message comes from, if it does not come from the speaker of its role.
    pub(crate) attribution: Option<Attribution>,
    pub(crate) parts: Vec<Noted<'a>>,
}

/// A part, and where its record can say something else.
#[derive(Debug)]
pub(crate) struct Noted<'a> {
    pub(crate) part: Part,
    slots: Vec<Slot<'a>>,
    /// The list that the part is an element of, and the element.
    element: Option<(&'a str, &'a str)>,
    /// Values that say what the part says, and what is written there where the part is left out.
    absence: Vec<(&'a str, &'static str)>,
    /// What a result holds, where its reader notes that too.
    inner: Vec<Self>,
}

/// A value of a record in whose place another one can stand.
#[derive(Debug, Clone, Copy)]
struct Slot<'a> {
    value: &'a str,
    form: Form,
}

/// How a changed part is written into its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// The text of the part, or the arguments of a call, as a JSON string.
    Text,
    /// The text of the part as a JSON string between two others.
    Around(&'static str, &'static str),
    /// The arguments of a call, which are JSON.
    Arguments,
    /// A text in the place of any JSON value: as JSON where the value was an array or an object and the text still is one.
    Value,
    /// This value, whatever the part says: it only repeated or explained what the part was.
    Constant(&'static str),
    /// This value, where a result is written as one text: it held what stood beside the text.
    Gone(&'static str),
}

/// A reader of one record, a slice of the first text.
pub(crate) type ReadPieces = for<'a> fn(&Arc<str>, &'a str) -> Result<Vec<Piece<'a>>, WireError>;

impl<'a> Piece<'a> {
    /// A message of `text`, a slice of the record.
    pub(crate) fn new(role: Role, text: &'a str) -> Self {
        Self { role, name: Str::default(), text, attribution: None, parts: Vec::new() }
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

impl<'a> Noted<'a> {
    /// A part that stays as it is.
    pub(crate) const fn new(part: Part) -> Self {
        Self { part, slots: Vec::new(), element: None, absence: Vec::new(), inner: Vec::new() }
    }

    /// A result that holds these parts.
    pub(crate) fn result(mut result: ToolResult, inner: Vec<Self>) -> Self {
        result.parts = inner.iter().map(|noted| noted.part.clone()).collect();
        Self { inner, ..Self::new(Part::ToolResult(result)) }
    }

    /// The same part, which is written into `value` too where it is changed; nowhere, where there is no such value.
    pub(crate) fn with_slot(mut self, value: Option<&'a str>, form: Form) -> Self {
        self.slots.extend(value.map(|value| Slot { value, form }));
        self
    }

    /// Takes `value` for a slot of the part too, if it is the same text.
    pub(crate) fn repeat(&mut self, whole: &Arc<str>, value: Option<&'a str>) {
        if let Some(again) = text(whole, value).filter(|again| again.part == self.part) {
            self.slots.extend(again.slots);
        }
    }

    /// Empties `value`, which repeats the texts of several parts, where the part is changed.
    pub(crate) fn repeat_among(&mut self, value: Option<&'a str>) {
        let value = value.filter(|value| Kind::of(value) == Kind::Text);
        self.slots.extend(value.map(|value| Slot { value, form: Form::Constant("\"\"") }));
    }

    /// The same part as `element` of `list`, of which it can be left out.
    pub(crate) const fn with_element(mut self, list: &'a str, element: &'a str) -> Self {
        self.element = Some((list, element));
        self
    }

    /// The same part, which is left out where `absent` is written in the place of `value`.
    pub(crate) fn with_absence(mut self, value: Option<&'a str>, absent: &'static str) -> Self {
        self.absence.extend(value.map(|value| (value, absent)));
        self
    }
}

/// The messages that `read` finds in the record `text`, a slice of `whole`.
pub(crate) fn messages(
    whole: &Arc<str>,
    text: &str,
    format: Format,
    read: ReadPieces,
) -> Result<Vec<Message>, WireError> {
    let pieces = read(whole, text)?;
    let record = (pieces.len() == 1).then_some(text);
    let each = pieces.into_iter().enumerate();
    Ok(each.map(|(at, piece)| piece.message(whole, record, format, at)).collect())
}

#[cfg(test)]
mod tests;
