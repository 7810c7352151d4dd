//! The places of records in a text.

use core::ops::Range;
use std::borrow::Cow;
use std::sync::Arc;

use epitome_core::Usage;
use epitome_message::Message;

use super::{Conversation, SourceRecordId, Transcript, UsageEntry};
use crate::WireError;
use crate::answers;
use crate::document;
use crate::json::known::Value;
use crate::json::{self, Spans};

/// A list in the text: an array, or lines.
#[derive(Debug, Clone)]
pub(crate) struct List {
    /// The text between the brackets; for lines, the whole text.
    pub(crate) inner: Range<usize>,
    /// The separator of two elements, if the text has no example of it.
    pub(crate) separator: &'static str,
    /// Whether the order of its elements is independent of the conversation's order, because the elements name their
    /// parents.
    pub(crate) free: bool,
    /// All elements, with and without messages.
    pub(crate) elements: Vec<Range<usize>>,
}

/// An array of the source whose elements are known.
#[derive(Debug, Clone)]
pub(crate) struct KnownArray {
    /// The range of the array, brackets included.
    pub(crate) outer: Range<usize>,
    pub(crate) elements: Vec<Range<usize>>,
}

/// A piece of the text that holds messages.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) place: Place,
    pub(crate) text: Range<usize>,
    /// Number of messages that were read from it.
    pub(crate) pieces: u32,
    /// Whether the record must stay even without messages, because the meaning of the text depends on it.
    pub(crate) stays: bool,
    /// The record that hides this one, which holds no message of a conversation: it is not sent while the other record
    /// is there.
    pub(crate) hidden_by: Option<SourceRecordId>,
    /// Whether the conversation begins with this record, independent of the records before it.
    pub(crate) begins: bool,
}

/// The place of a record in the text.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    /// An element of a list. Without messages it is left out.
    Element { list: u32, at: u32 },
    /// The value of a member of an object. Without messages the range `cut` is removed: the member and a comma.
    Field { cut: Range<usize> },
    /// A value that cannot be left out.
    Value,
    /// A part of a log that only grows: it stays.
    Logged,
}

impl Transcript {
    pub(crate) fn empty(source: Arc<str>) -> Self {
        Self {
            source,
            lists: Vec::new(),
            records: Vec::new(),
            conversations: Vec::new(),
            arrays: Vec::new(),
            spans: Spans::default(),
        }
    }

    /// Adds the array `text`, a slice of the source, and returns its number.
    pub(crate) fn array(&mut self, text: &str) -> Result<u32, WireError> {
        let outer = self.range(json::trim(text));
        let known = self.arrays.iter().position(|known| known.outer == outer);
        let mut elements = known.map(|at| self.arrays.swap_remove(at).elements).unwrap_or_default();
        if known.is_none() {
            json::items(text, |item| {
                elements.push(self.range(item));
                Ok(())
            })?;
        }
        let inner = outer.start.saturating_add(1)..outer.end.saturating_sub(1);
        Ok(self.push_list(List { inner, separator: ",", free: false, elements }))
    }

    /// Adds the lines of `text`, a slice of the source, and returns the number of the list.
    pub(crate) fn lines(&mut self, text: &str) -> u32 {
        let elements: Vec<_> = document::lines(text).map(|line| self.range(line.text())).collect();
        let inner = self.range(text);
        self.push_list(List { inner, separator: "\n", free: false, elements })
    }

    /// Adds the pieces of `text`, a slice of the source, with these ranges in `text`, and returns the number of the
    /// list. The text need not be JSON.
    pub(crate) fn texts(
        &mut self,
        text: &str,
        pieces: impl Iterator<Item = Range<usize>>,
        separator: &'static str,
    ) -> u32 {
        let inner = self.range(text);
        let of = |piece: Range<usize>| {
            inner.start.saturating_add(piece.start)..inner.start.saturating_add(piece.end)
        };
        let elements = pieces.map(of).collect();
        self.push_list(List { inner, separator, free: false, elements })
    }

    /// Adds an array whose order is independent of the conversation's order, like [`array`](Self::array).
    pub(crate) fn free_array(&mut self, text: &str) -> Result<u32, WireError> {
        let number = self.array(text)?;
        if let Some(list) = self.lists.get_mut(number as usize) {
            list.free = true;
        }
        Ok(number)
    }

    /// Adds lines that name their parents, like [`lines`](Self::lines).
    pub(crate) fn forest(&mut self, text: &str) -> u32 {
        let number = self.lines(text);
        if let Some(list) = self.lists.get_mut(number as usize) {
            list.free = true;
        }
        number
    }

    /// Number of elements of a list.
    pub(crate) fn count(&self, list: u32) -> usize {
        self.lists.get(list as usize).map_or(0, |list| list.elements.len())
    }

    /// The range of the element `at` of a list in the source.
    pub(crate) fn place(&self, list: u32, at: usize) -> Range<usize> {
        let elements = self.lists.get(list as usize).map(|list| list.elements.as_slice());
        elements.and_then(|elements| elements.get(at)).cloned().unwrap_or_default()
    }

    fn is_lines(&self, list: u32) -> bool {
        self.lists.get(list as usize).is_some_and(|list| list.separator == "\n")
    }

    /// The element `text` of a list. An array was checked when its elements were found, and `spans` are its notes. A
    /// line is checked here.
    pub(crate) fn look<'a>(
        &self,
        spans: &'a mut Spans,
        list: u32,
        text: &'a str,
    ) -> Result<Value<'a>, WireError> {
        if self.is_lines(list) {
            json::noted_check(spans, text)?;
            return Ok(Value::noted(text, spans, 0));
        }
        let start = json::offset_of(&self.source, text);
        spans.pass(start);
        Ok(Value::noted(text, spans, start))
    }

    /// Adds to `conversation` the messages that `read` returns for each element of a list, and their report, which
    /// belongs to the first of them. The list is at `path` in `whole`.
    pub(crate) fn extend<M>(
        &mut self,
        conversation: &mut Conversation,
        list: u32,
        (whole, path): (&str, &str),
        mut read: impl FnMut(&Arc<str>, Value<'_>) -> Result<(M, Option<Usage>), WireError>,
    ) -> Result<(), WireError>
    where
        M: IntoIterator<Item = Message, IntoIter: ExactSizeIterator>,
    {
        let source = Arc::clone(&self.source);
        let mut spans = core::mem::take(&mut self.spans);
        let is_lines = self.is_lines(list);
        conversation.entries.reserve_exact(self.count(list));
        self.records.reserve_exact(self.count(list));
        for at in 0..self.count(list) {
            let text = source.get(self.place(list, at)).unwrap_or_default();
            let value = self.look(&mut spans, list, text);
            let (messages, usage) = value.and_then(|value| read(&source, value)).map_err(|error| {
                let place = if is_lines { String::new() } else { format!("{path}/{at}") };
                error.inside(place, json::offset_of(whole, text))
            })?;
            let messages = messages.into_iter();
            if messages.len() == 0 {
                continue;
            }
            let first = conversation.entries.len();
            conversation.usage.extend(usage.map(|usage| UsageEntry::new(first, usage)));
            let record = self.element(list, at, messages.len());
            conversation.extend(record, messages);
        }
        if !is_lines {
            self.spans = spans;
        }
        answers::link(&mut conversation.entries);
        Ok(())
    }

    fn push_list(&mut self, mut list: List) -> u32 {
        list.elements.shrink_to_fit();
        let number = u32::try_from(self.lists.len()).unwrap_or(u32::MAX);
        self.lists.push(list);
        number
    }

    /// Adds the record of the element `at` of a list, with `pieces` messages.
    pub(crate) fn element(&mut self, list: u32, at: usize, pieces: usize) -> SourceRecordId {
        let text = self.place(list, at);
        let at = u32::try_from(at).unwrap_or(u32::MAX);
        self.push_record(Place::Element { list, at }, text, pieces)
    }

    /// Marks the element `at` of a list as hidden while the record `by` is there. Both are left out together.
    pub(crate) fn hide(&mut self, list: u32, at: usize, by: SourceRecordId) {
        let id = self.element(list, at, 0);
        if let Some(record) = self.records.get_mut(id.0 as usize) {
            record.hidden_by = Some(by);
        }
    }

    /// Marks a record as the beginning of the conversation.
    pub(crate) fn begin_with(&mut self, id: SourceRecordId) {
        if let Some(record) = self.records.get_mut(id.0 as usize) {
            record.begins = true;
        }
    }

    /// Adds the record of the value of the member `key` of an object. `members` are slices of the source.
    pub(crate) fn field(
        &mut self,
        members: &[(Cow<'_, str>, &str, &str)],
        key: &str,
        pieces: usize,
    ) -> SourceRecordId {
        let at = members.iter().position(|(name, ..)| name == key);
        let range = |at: usize| members.get(at).map(|(_, name, value)| (self.range(name), self.range(value)));
        let own = at.and_then(range);
        let before = at.and_then(|at| at.checked_sub(1)).and_then(range);
        let next = at.and_then(|at| at.checked_add(1)).and_then(range);
        // The range includes the comma before the member, or, for the first member, the comma after it.
        let cut = match (&own, before, next) {
            (Some((_, value)), Some((_, before)), _) => before.end..value.end,
            (Some((name, _)), None, Some((next, _))) => name.start..next.start,
            (Some((name, value)), None, None) => name.start..value.end,
            (None, ..) => 0..0,
        };
        let text = own.map_or(0..0, |(_, value)| value);
        self.push_record(Place::Field { cut }, text, pieces)
    }

    /// Adds the record of the value `text`, a slice of the source.
    pub(crate) fn value(&mut self, text: &str, pieces: usize) -> SourceRecordId {
        let range = self.range(text);
        self.push_record(Place::Value, range, pieces)
    }

    /// Adds the record `text` of a log, a slice of the source.
    pub(crate) fn logged(&mut self, text: &str, pieces: usize) -> SourceRecordId {
        let range = self.range(text);
        self.push_record(Place::Logged, range, pieces)
    }

    fn push_record(&mut self, place: Place, text: Range<usize>, pieces: usize) -> SourceRecordId {
        let id = SourceRecordId(u32::try_from(self.records.len()).unwrap_or(u32::MAX));
        let pieces = u32::try_from(pieces).unwrap_or(u32::MAX);
        self.records.push(Record { place, text, pieces, stays: false, hidden_by: None, begins: false });
        id
    }

    /// Marks a record that must not be left out, because it removes the messages before it.
    pub(crate) fn must_stay(&mut self, id: SourceRecordId) {
        if let Some(record) = self.records.get_mut(id.0 as usize) {
            record.stays = true;
        }
    }

    pub(crate) fn push(&mut self, conversation: Conversation) -> usize {
        self.conversations.push(conversation);
        self.conversations.len().saturating_sub(1)
    }

    /// Adds conversations without a copy of the list, because a file may have very many of them.
    pub(crate) fn push_all(&mut self, mut conversations: Vec<Conversation>) {
        match self.conversations.is_empty() {
            true => self.conversations = conversations,
            false => self.conversations.append(&mut conversations),
        }
    }

    /// The range of `part`, a slice of the source, in the source.
    pub(crate) fn range(&self, part: &str) -> Range<usize> {
        json::range_of(&self.source, part)
    }
}
