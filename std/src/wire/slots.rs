//! The writer of formats whose readers note where each part stands in its record.
//!
//! A reader returns [`Piece`]s: the messages of a record, and for each part the [`Slot`] in which a changed part is written, and the
//! list of which the part can be left out. The text outside of changed slots is copied.

use core::ops::Range;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use epitome_core::message::Role;

use super::expect::share;
use super::json::{self, Kind, quote};
use super::rewrite::{form, only_text};
use super::spec::{Body, Content};
use super::transcript::{Conversation, Transcript};
use super::{Format, WireError};
use crate::message::{Attribution, Message, Part, Str, ToolResult, WireText};

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

    /// The change of a record after which the part is `new`.
    fn change(&self, record: &str, new: &Part, edits: &mut Edits<'_>) -> Result<(), WireError> {
        if self.part == *new {
            return Ok(());
        }
        let mut slots = self.slots.iter();
        match new {
            Part::ToolResult(result) if self.takes_inner(result) => {
                for (inner, new) in self.inner.iter().zip(&result.parts) {
                    inner.change(record, new, edits)?;
                }
                slots.try_for_each(|slot| match slot.form {
                    Form::Constant(_) => edits.replace(record, slot, new),
                    _ => Ok(()),
                })
            }
            _ if self.takes(new) => slots.try_for_each(|slot| edits.replace(record, slot, new)),
            _ => Err(form("this change")),
        }
    }

    /// Whether the parts of a result have a form in the slots of the parts that it had.
    fn takes_inner(&self, new: &ToolResult) -> bool {
        let takes = |(inner, new): (&Self, &Part)| inner.part == *new || inner.takes(new);
        let is_it = matches!(&self.part, Part::ToolResult(was) if was.call_id == new.call_id);
        is_it && new.parts.len() == self.inner.len() && self.inner.iter().zip(&new.parts).all(takes)
    }

    /// Whether `new` has a form in the slots.
    fn takes(&self, new: &Part) -> bool {
        let is_call = matches!(new, Part::ToolCall(_));
        let is_same_kind = core::mem::discriminant(&self.part) == core::mem::discriminant(new);
        // A note takes the place of media.
        let is_note = matches!((&self.part, new), (Part::Media(_), Part::Text(_)));
        let mut forms = self.slots.iter().map(|slot| slot.form).peekable();
        forms.peek().is_some()
            && (is_same_kind || is_note)
            && match (&self.part, new) {
                (Part::ToolCall(was), Part::ToolCall(new)) => was.id == new.id && was.name == new.name,
                (Part::ToolResult(was), Part::ToolResult(new)) => was.call_id == new.call_id,
                _ => true,
            }
            && forms.all(|form| {
                matches!(form, Form::Constant(_) | Form::Gone(_) | Form::Text)
                    || (form == Form::Arguments) == is_call
            })
    }
}

impl Form {
    fn written(self, was: &str, part: &Part) -> Result<String, WireError> {
        Ok(match (self, part) {
            (Self::Value, part) => {
                let said = said(part)?;
                let is_tree = matches!(Kind::of(was), Kind::Array | Kind::Object);
                let is_same = is_tree && Kind::of(&said) == Kind::of(was) && json::check(&said).is_ok();
                if is_same { said.into_owned() } else { quote(&said) }
            }
            (Self::Constant(value) | Self::Gone(value), _) => value.to_owned(),
            (Self::Text, Part::ToolCall(call)) => quote(&call.arguments),
            (Self::Text, part) => quote(&said(part)?),
            (Self::Around(before, behind), part) => format!("{before}{}{behind}", quote(&said(part)?)),
            (Self::Arguments, Part::ToolCall(call)) => {
                json::check(&call.arguments).map_err(|_| form("a call whose arguments are no JSON"))?;
                call.arguments.to_string()
            }
            (Self::Arguments, _) => return Err(form("this change")),
        })
    }
}

/// The text that a part says: of a result all of its texts, one on a line.
fn said(part: &Part) -> Result<Cow<'_, str>, WireError> {
    match part {
        Part::Text(text) => Ok(Cow::Borrowed(text)),
        Part::Reasoning(thought) if thought.opaque.is_none() => Ok(Cow::Borrowed(&thought.text)),
        Part::ToolResult(result) => match result.parts.as_slice() {
            [] => Ok(Cow::Borrowed("")),
            [one] => said(one),
            several => Ok(several.iter().map(said).collect::<Result<Vec<_>, _>>()?.join("\n").into()),
        },
        _ => Err(form("this change")),
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

/// The record when it holds the messages `now`, of those that `read` finds in it; `None`, if it holds none.
pub(crate) fn write(
    record: Option<&str>,
    now: &[&Message],
    read: ReadPieces,
) -> Result<Option<String>, WireError> {
    let text = record.ok_or_else(|| form("a new message"))?;
    if now.is_empty() {
        return Ok(None);
    }
    let whole: Arc<str> = Arc::from(text);
    let pieces = read(&whole, &whole)?;
    let (mut edits, mut now) = (Edits::default(), now.iter().peekable());
    let is_alone = pieces.len() == 1;
    for piece in &pieces {
        let at = json::offset_of(&whole, piece.text);
        let is_it = |message: &Message| {
            // Several messages of a record may begin with the same text: the place decides, where it is known.
            let is_there = match place_in(text, message) {
                Some(place) => place == at,
                None => message.wire().is_some_and(|wire| *wire.text == *piece.text),
            };
            message.role() == piece.role && (is_alone || is_there)
        };
        match now.next_if(|message| is_it(message)) {
            Some(message) => edits.piece(&whole, piece, message.parts())?,
            None => edits.piece(&whole, piece, &[])?,
        }
    }
    match now.next() {
        None => edits.apply(&whole).map(Some),
        Some(_) => Err(form("a message that its record did not have")),
    }
}

/// Where the text of a message stands in its record, if it is a part of this very text.
fn place_in(record: &str, message: &Message) -> Option<usize> {
    let text = message.wire()?.text.as_bytes();
    let is_in = record.as_bytes().as_ptr_range().contains(&text.as_ptr());
    is_in.then(|| (text.as_ptr() as usize).saturating_sub(record.as_ptr() as usize))
}

/// The record `like` with other values for some keys, or without it a record of those that have one.
pub(crate) fn fresh(like: Option<&str>, members: &[(&str, Option<String>)]) -> Result<String, WireError> {
    json::patch(like.unwrap_or("{}"), members)
}

/// The role and the text of a new message, which is a text of one of these roles.
pub(crate) fn fresh_text(message: &Message, roles: &[Role]) -> Result<(String, String), WireError> {
    let (message, text) = only_text(&[message])?;
    match roles.contains(&message.role()) {
        true => Ok((quote(message.role().as_str()), quote(text))),
        false => Err(form("a new message of this role")),
    }
}

/// What is replaced in a record.
#[derive(Debug, Default)]
struct Edits<'a> {
    values: Vec<(Range<usize>, String)>,
    /// Elements that are left out, each after its list.
    left_out: Vec<(&'a str, &'a str)>,
    /// Where elements begin of which a part stays.
    staying: HashSet<usize>,
}

impl<'a> Edits<'a> {
    fn replace(&mut self, record: &str, slot: &Slot<'_>, new: &Part) -> Result<(), WireError> {
        self.values.push((json::range_of(record, slot.value), slot.form.written(slot.value, new)?));
        Ok(())
    }

    /// Lets a piece hold the parts `now`: each is one of its own, in their order; those without a counterpart are left out.
    fn piece(&mut self, record: &str, piece: &Piece<'a>, now: &[Part]) -> Result<(), WireError> {
        let mut left_out = piece.parts.len().checked_sub(now.len()).ok_or_else(|| form("a new part"))?;
        let mut now = now.iter().peekable();
        for (at, noted) in piece.parts.iter().enumerate() {
            // What a later part says already, it goes on saying.
            let later = || piece.parts.iter().skip(at.saturating_add(1)).take(left_out.min(LATER_MAX));
            let is_later = |new: &Part| later().any(|later| later.part == *new);
            let stays = now.peek().is_some_and(|new| {
                left_out == 0 || noted.part == **new || (noted.takes(new) && !is_later(new))
            });
            match now.next_if(|_| stays) {
                Some(new) => {
                    self.staying.extend(noted.element.map(|(_, element)| json::offset_of(record, element)));
                    noted.change(record, new, self)?;
                }
                None => {
                    if noted.element.is_none() && noted.absence.is_empty() {
                        return Err(form("a message without one of its parts"));
                    }
                    self.left_out.extend(noted.element);
                    let absent = |(value, absent): &(&str, &str)| {
                        (json::range_of(record, value), (*absent).to_owned())
                    };
                    self.values.extend(noted.absence.iter().map(absent));
                    left_out = left_out.saturating_sub(1);
                }
            }
        }
        Ok(())
    }

    fn apply(mut self, record: &str) -> Result<String, WireError> {
        let mut left_out = BTreeMap::<usize, (&str, Vec<usize>)>::new();
        for (list, element) in self.left_out {
            let of_list = left_out.entry(json::offset_of(record, list)).or_insert((list, Vec::new()));
            let start = json::offset_of(record, element);
            if self.staying.contains(&start) {
                return Err(form("a call without its result, or a result without its call"));
            }
            of_list.1.push(start);
        }
        for (list, mut elements) in left_out.into_values() {
            // A call and its result may be one element.
            elements.sort_unstable();
            let cuts = cuts(record, list, &elements)?;
            self.values.extend(cuts.into_iter().map(|cut| (cut, String::new())));
        }
        self.values.sort_by_key(|(range, _)| (range.start, core::cmp::Reverse(range.end)));
        let (mut out, mut done) = (String::with_capacity(record.len()), 0);
        for (range, new) in &self.values {
            // A value in an element that is left out goes with it.
            if range.start < done {
                continue;
            }
            out.push_str(record.get(done..range.start).unwrap_or_default());
            out.push_str(new);
            done = range.end;
        }
        out.push_str(record.get(done..).unwrap_or_default());
        Ok(out)
    }
}

/// The ranges of `record` without which the array `list` has none of these elements, each with one separator.
fn cuts(record: &str, list: &str, left_out: &[usize]) -> Result<Vec<Range<usize>>, WireError> {
    let mut elements = Vec::new();
    json::items(list, |element| {
        elements.push(json::range_of(record, element));
        Ok(())
    })?;
    let stays = |element: &Range<usize>| left_out.binary_search(&element.start).is_err();
    // The elements before the first one that stays go with the separator behind them, all others with the one before.
    let kept = elements.iter().position(stays).unwrap_or(elements.len());
    let (before, behind) = elements.split_at(kept);
    let end = behind.first().map(|next| next.start).or(before.last().map(|last| last.end));
    let first = before.first().zip(end).map(|(first, end)| first.start..end);
    let later = behind.windows(2).filter_map(|pair| match pair {
        [before, own] if !stays(own) => Some(before.end..own.end),
        _ => None,
    });
    Ok(first.into_iter().chain(later).collect())
}

/// The pieces of a message of blocks, of which each result is a tool's message of its own.
#[derive(Debug)]
pub(crate) struct Pieces<'a> {
    role: Role,
    list: Vec<Piece<'a>>,
}

impl<'a> Pieces<'a> {
    /// Those of a message of this role.
    pub(crate) const fn new(role: Role) -> Self {
        Self { role, list: Vec::new() }
    }

    /// Adds the parts that `block` is: a result as a message of its own.
    pub(crate) fn extend(&mut self, block: &'a str, parts: impl IntoIterator<Item = Noted<'a>>) {
        for noted in parts {
            let is_result = matches!(noted.part, Part::ToolResult(_));
            self.push(if is_result { Role::Tool } else { self.role }, block, noted);
        }
    }

    /// Adds the parts that `block` is to the message that goes on, whatever they are: the provider ran the tool.
    pub(crate) fn extend_own(&mut self, block: &'a str, parts: impl IntoIterator<Item = Noted<'a>>) {
        parts.into_iter().for_each(|noted| self.push(self.role, block, noted));
    }

    /// Adds a part of `block` that is said in this role.
    pub(crate) fn push(&mut self, role: Role, block: &'a str, noted: Noted<'a>) {
        let is_new = self.list.last().is_none_or(|last| last.role != role || last.attribution.is_some());
        if is_new || matches!(noted.part, Part::ToolResult(_)) && role == Role::Tool {
            self.list.push(Piece::new(role, block));
        }
        if let Some(piece) = self.list.last_mut() {
            piece.parts.push(noted);
        }
    }

    /// Adds a part of `block` as a message of its own, which comes from elsewhere than the speaker of this role.
    pub(crate) fn push_from(&mut self, role: Role, block: &'a str, noted: Noted<'a>, from: Attribution) {
        let mut piece = Piece::new(role, block);
        piece.attribution = Some(from);
        piece.parts.push(noted);
        self.list.push(piece);
    }

    /// The parts so far, to be changed.
    pub(crate) fn parts_mut(&mut self) -> impl Iterator<Item = &mut Noted<'a>> {
        self.list.iter_mut().flat_map(|piece| &mut piece.parts)
    }

    pub(crate) fn into_list(self) -> Vec<Piece<'a>> {
        self.list
    }
}

/// The pieces of a message of this role in `raw`, whose blocks stand at `path`. `part` gives the part that a block is, and whether the
/// provider ran its tool.
pub(crate) fn list<'a>(
    whole: &Arc<str>,
    (raw, content): (&'a str, &'a str),
    (path, role): (&str, Role),
    part: ReadPart<'a>,
) -> Result<Vec<Piece<'a>>, WireError> {
    let mut pieces = Pieces::new(role);
    json::nested(raw, content, path, |list| {
        blocks(list, |block| {
            let (noted, is_hosted) = part(whole, block)?;
            let noted = noted.map(|noted| noted.with_element(list, block));
            match is_hosted {
                true => pieces.extend_own(block, noted),
                false => pieces.extend(block, noted),
            }
            Ok(())
        })
    })?;
    Ok(pieces.into_list())
}

/// See [`list`].
type ReadPart<'a> = fn(&Arc<str>, &'a str) -> Result<(Option<Noted<'a>>, bool), WireError>;

/// Calls `visit` with each element of the array `list`; an error says which one it is about.
pub(crate) fn blocks<'a>(
    list: &'a str,
    mut visit: impl FnMut(&'a str) -> Result<(), WireError>,
) -> Result<(), WireError> {
    let mut at = 0_usize;
    json::items(list, |block| {
        json::nested(list, block, format_args!("/{at}"), &mut visit)?;
        at = at.saturating_add(1);
        Ok(())
    })
}

/// The text that the JSON string `raw` is, which is written there; none, if it is empty or no string.
pub(crate) fn text<'a>(whole: &Arc<str>, raw: Option<&'a str>) -> Option<Noted<'a>> {
    let raw = raw.filter(|raw| Kind::of(raw) == Kind::Text && *raw != "\"\"")?;
    Some(Noted::new(Part::Text(share(whole, &json::decode(raw)))).with_slot(Some(raw), Form::Text))
}

/// The answer to the call `id`: a text, or the JSON of any other value.
pub(crate) fn output<'a>(whole: &Arc<str>, id: Str, value: Option<&'a str>) -> Noted<'a> {
    let value = value.filter(|value| *value != "null");
    let said = value.map(|value| match Kind::of(value) {
        Kind::Text => share(whole, &json::decode(value)),
        _ => share(whole, value),
    });
    let parts = said.filter(|said| !said.is_empty()).map(Part::Text).into_iter().collect();
    Noted::new(Part::ToolResult(ToolResult::new(id, parts))).with_slot(value, Form::Value)
}

/// Adds to `conversation` the messages of a list: of the array under `key` in the object that `body` is, of the array that it is, or of
/// its lines.
pub(crate) fn read_list(
    transcript: &mut Transcript,
    body: &Body<'_>,
    conversation: &mut Conversation,
    key: &'static str,
    read: ReadPieces,
) -> Result<(), WireError> {
    let format = conversation.format;
    let read_element = |source: &Arc<str>, text: &str| Ok((messages(source, text, format, read)?, None));
    let (whole, path, list) = match (&body.content, body.field(key)) {
        (Content::Lines(text), _) => (*text, String::new(), transcript.lines(text)),
        (Content::Value(document), Some(list)) => {
            let path = format!("/{key}");
            let number = json::nested(document.text(), list, &path, |list| array(transcript, list))?;
            (document.text(), path, number)
        }
        (Content::Value(document), None) => {
            (document.text(), String::new(), array(transcript, document.text())?)
        }
    };
    conversation.path = format!("{}{path}", body.path());
    transcript.extend(conversation, list, (whole, &path), read_element)
}

fn array(transcript: &mut Transcript, list: &str) -> Result<u32, WireError> {
    match Kind::of(list) {
        Kind::Array => transcript.array(list),
        _ => Err(WireError::shape(format!("expected a list of messages, found {}", json::describe(list)))),
    }
}

/// How many parts behind one are looked at for what a changed message says: a message may have very many.
const LATER_MAX: usize = 16;

#[cfg(test)]
mod tests;
