//! Writes a record with other values in its slots, and without omitted parts.

use core::ops::Range;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use epitome_core::message::Role;
use epitome_message::{Message, Part, ToolResult};

use super::{ReadRecord, RecordMessage, RecordPart, Slot, SlotForm};
use crate::WireError;
use crate::json::{self, ValueKind, quote};
use crate::rewrite::{form, only_text};

/// Returns the record with the messages `now`, which come from the messages that `read` finds in it. `None` if there
/// are no messages.
pub(crate) fn write(
    record: Option<&str>,
    now: &[&Message],
    read: ReadRecord,
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
            // Several messages of a record may begin with the same text: the place decides, if it is known.
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

/// The offset of the text of a message in its record, if the text is a slice of this very record.
fn place_in(record: &str, message: &Message) -> Option<usize> {
    let text = message.wire()?.text.as_bytes();
    let is_in = record.as_bytes().as_ptr_range().contains(&text.as_ptr());
    is_in.then(|| (text.as_ptr() as usize).saturating_sub(record.as_ptr() as usize))
}

/// The record `like` with other values for some keys. Without `like`, a record of the keys with a value.
pub(crate) fn fresh(like: Option<&str>, members: &[(&str, Option<String>)]) -> Result<String, WireError> {
    json::patch(like.unwrap_or("{}"), members)
}

/// The role and the text of a new message. It has to be a text of one of these roles.
pub(crate) fn fresh_text(message: &Message, roles: &[Role]) -> Result<(String, String), WireError> {
    let (message, text) = only_text(&[message])?;
    match roles.contains(&message.role()) {
        true => Ok((quote(message.role().as_str()), quote(text))),
        false => Err(form("a new message of this role")),
    }
}

/// The edits of a record.
#[derive(Debug, Default)]
struct Edits<'a> {
    values: Vec<(Range<usize>, String)>,
    /// Omitted elements, each with its list before it.
    left_out: Vec<(&'a str, &'a str)>,
    /// Offsets of the elements with at least one kept part.
    staying: HashSet<usize>,
}

impl<'a> Edits<'a> {
    fn replace(&mut self, record: &str, slot: &Slot<'_>, new: &Part) -> Result<(), WireError> {
        self.values.push((json::range_of(record, slot.value), slot.form.written(slot.value, new)?));
        Ok(())
    }

    /// Changes a piece to the parts `now`. Each of them has to be one of its own parts, in order. Parts without a
    /// counterpart are left out.
    fn piece(&mut self, record: &str, piece: &RecordMessage<'a>, now: &[Part]) -> Result<(), WireError> {
        let mut left_out = piece.parts.len().checked_sub(now.len()).ok_or_else(|| form("a new part"))?;
        let mut now = now.iter().peekable();
        for (at, noted) in piece.parts.iter().enumerate() {
            // If a later part already has this content, the later part stays.
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
            elements.dedup();
            let cuts = cuts(record, list, &elements)?;
            self.values.extend(cuts.into_iter().map(|cut| (cut, String::new())));
        }
        self.values.sort_by_key(|(range, _)| (range.start, core::cmp::Reverse(range.end)));
        // Several parts may empty the same value.
        self.values.dedup();
        let (mut out, mut done, mut is_cut) = (String::with_capacity(record.len()), 0, false);
        for (range, new) in &self.values {
            if range.start < done {
                // A value in an omitted element is removed with the element.
                if is_cut {
                    continue;
                }
                return Err(form("two changes, of which one holds the other"));
            }
            is_cut = new.is_empty();
            out.push_str(record.get(done..range.start).unwrap_or_default());
            out.push_str(new);
            done = range.end;
        }
        out.push_str(record.get(done..).unwrap_or_default());
        Ok(out)
    }
}

/// The ranges to cut from `record`, so that the array `list` loses these elements, each with one separator.
fn cuts(record: &str, list: &str, left_out: &[usize]) -> Result<Vec<Range<usize>>, WireError> {
    let mut elements = Vec::new();
    json::items(list, |element| {
        elements.push(json::range_of(record, element));
        Ok(())
    })?;
    let stays = |element: &Range<usize>| left_out.binary_search(&element.start).is_err();
    if elements.iter().filter(|element| !stays(element)).count() != left_out.len() {
        return Err(form("a message without one of its parts: the part is no element of its list"));
    }
    // Elements before the first kept element are cut with the separator behind them, all others with the one before
    // them.
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

impl RecordPart<'_> {
    /// Adds the edits of a record that change the part to `new`.
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
                    SlotForm::Constant(_) => edits.replace(record, slot, new),
                    _ => Ok(()),
                })
            }
            _ if self.takes(new) => slots.try_for_each(|slot| edits.replace(record, slot, new)),
            _ => Err(form("this change")),
        }
    }

    /// Whether the new parts of a result have a form in the slots of its old parts.
    fn takes_inner(&self, new: &ToolResult) -> bool {
        let takes = |(inner, new): (&Self, &Part)| inner.part == *new || inner.takes(new);
        let same = |was: &ToolResult| was.call_id == new.call_id && was.is_error == new.is_error;
        let is_it = matches!(&self.part, Part::ToolResult(was) if same(was));
        let has_all = !self.inner.is_empty() && new.parts.len() == self.inner.len();
        is_it && has_all && self.inner.iter().zip(&new.parts).all(takes)
    }

    /// Whether `new` has a form in the slots.
    fn takes(&self, new: &Part) -> bool {
        let is_call = matches!(new, Part::ToolCall(_));
        let is_same_kind = core::mem::discriminant(&self.part) == core::mem::discriminant(new);
        // A note takes the place of media.
        let is_note = matches!((&self.part, new), (Part::Media(_), Part::Text(_)));
        let mut forms = self.slots.iter().map(|slot| slot.form);
        // A value that is the same for all contents does not hold the content of the part.
        let says_it = |form| !matches!(form, SlotForm::Constant(_) | SlotForm::Gone(_));
        forms.clone().any(says_it)
            && (is_same_kind || is_note)
            && match (&self.part, new) {
                (Part::ToolCall(was), Part::ToolCall(new)) => was.id == new.id && was.name == new.name,
                (Part::ToolResult(was), Part::ToolResult(new)) => {
                    was.call_id == new.call_id && was.is_error == new.is_error
                }
                _ => true,
            }
            && forms.all(|form| {
                matches!(form, SlotForm::Constant(_) | SlotForm::Gone(_) | SlotForm::Text)
                    || (form == SlotForm::Arguments) == is_call
            })
    }
}

impl SlotForm {
    fn written(self, was: &str, part: &Part) -> Result<String, WireError> {
        Ok(match (self, part) {
            (Self::Value, part) => {
                let said = said(part)?;
                let is_tree = matches!(ValueKind::of(was), ValueKind::Array | ValueKind::Object);
                let is_same =
                    is_tree && ValueKind::of(&said) == ValueKind::of(was) && json::check(&said).is_ok();
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

/// The text of a part. A result has all of its texts, one per line.
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

/// Maximum number of later parts to search for the text of a changed message, because a message may have very many
/// parts.
const LATER_MAX: usize = 16;
