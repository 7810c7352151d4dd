//! The text, or the part of a text, that one reader reads: its members, its lists and its place. Which format it is, `spec` tells.

use core::cell::{Cell, RefCell};
use std::borrow::Cow;
use std::sync::Arc;

use epitome_message::Str;

use super::WireError;
use super::document::{self, Document};
use super::expect::{optional_text, share};
use super::json::{self, Spans, ValueKind};
use super::transcript::KnownArray;

/// A text that is to be read: one JSON value, or lines of them.
#[derive(Debug, Clone)]
pub(crate) struct Body<'a> {
    /// The text that everything is a slice of.
    pub(crate) source: &'a Arc<str>,
    pub(crate) content: Content<'a>,
    /// The name of the leaf whose branch is asked for.
    leaf: Option<&'a str>,
    /// Whether the reader has looked at the leaf.
    is_leaf_seen: Cell<bool>,
    /// The members of its object, if it is one: each key, also as it is written, and its value.
    pub(crate) members: Vec<(Cow<'a, str>, &'a str, &'a str)>,
    /// The elements of the arrays in its object, or of the array that it is, where they were seen already.
    arrays: Vec<KnownArray>,
    /// The long values of its text, where they were seen already.
    spans: Spans,
}

#[derive(Debug, Clone)]
pub(crate) enum Content<'a> {
    Value(Document<'a>),
    Lines(&'a str),
}

impl<'a> Body<'a> {
    pub(crate) fn new(source: &'a Arc<str>, content: Content<'a>, leaf: Option<&'a str>) -> Self {
        let mut members = Vec::new();
        if let Content::Value(document) = &content
            && ValueKind::of(document.text()) == ValueKind::Object
        {
            // What is no object after all has no members; its reader says what is wrong with it.
            let _ = json::raw_members(document.text(), |key, value| {
                members.push((json::decode(key), key, value));
                Ok(())
            });
        }
        let (arrays, spans, is_leaf_seen) = (Vec::new(), Spans::default(), Cell::default());
        Self { source, content, leaf, is_leaf_seen, members, arrays, spans }
    }

    /// The one JSON value that `text` is, looked at once: a text may be large.
    ///
    /// # Errors
    /// As [`Document::parse`].
    pub(crate) fn parse(
        source: &'a Arc<str>,
        text: &'a str,
        leaf: Option<&'a str>,
    ) -> Result<Self, WireError> {
        let place = |error: WireError| error.positioned(text, 1);
        let (mut members, mut arrays, mut spans) =
            (Vec::new(), Vec::new(), Spans::of_text_at(json::offset_of(source, text)));
        let elements = RefCell::new(Vec::new());
        let note = |item| elements.borrow_mut().push(json::range_of(source, item));
        let mut end = |array| {
            arrays.push(KnownArray { outer: json::range_of(source, array), elements: elements.take() });
        };
        match ValueKind::of(text) {
            ValueKind::Object => json::members_and_items(&mut spans, text, note, |key, value| {
                if ValueKind::of(value) == ValueKind::Array {
                    end(value);
                }
                members.push((json::decode(key), key, value));
                Ok(())
            })
            .map_err(place)?,
            ValueKind::Array => {
                json::noted_items(&mut spans, text, |item| {
                    note(item);
                    Ok(())
                })
                .map_err(place)?;
                end(json::trim(text));
            }
            _ => return Ok(Self::new(source, Content::Value(Document::parse(text)?), leaf)),
        }
        let content = Content::Value(Document::known(text));
        Ok(Self { source, content, leaf, is_leaf_seen: Cell::default(), members, arrays, spans })
    }

    /// The name of the leaf whose branch is asked for.
    pub(crate) fn leaf(&self) -> Option<&'a str> {
        self.is_leaf_seen.set(true);
        self.leaf
    }

    /// Whether a leaf is asked for that the reader has not looked at: a text of its format has no branches.
    pub(crate) const fn ignores_leaf(&self) -> bool {
        self.leaf.is_some() && !self.is_leaf_seen.get()
    }

    /// Whether it is an object with `role`.
    pub(crate) fn is_message(&self) -> bool {
        self.members.iter().any(|(name, ..)| name == "role")
    }

    /// The arrays in it whose elements were seen already, for the one who reads it.
    pub(crate) fn take_arrays(&mut self) -> Vec<KnownArray> {
        core::mem::take(&mut self.arrays)
    }

    /// The long values in it, for its reader.
    pub(crate) fn take_spans(&mut self) -> Spans {
        core::mem::take(&mut self.spans)
    }

    /// Refuses it if its object has one of these keys twice.
    pub(crate) fn check_keys<'k>(
        &self,
        mut keys: impl Iterator<Item = &'k &'static str>,
    ) -> Result<(), WireError> {
        keys.try_for_each(|key| match self.members.iter().filter(|(name, ..)| name == key).nth(1) {
            Some((.., again)) => Err(json::duplicate(key).with_offset(json::offset_of(self.text(), again))),
            None => Ok(()),
        })
    }

    /// All of it.
    pub(crate) fn text(&self) -> &'a str {
        match &self.content {
            Content::Value(document) => document.text(),
            Content::Lines(text) => text,
        }
    }

    /// The one value that it is; `None` if it is lines.
    pub(crate) fn value(&self) -> Option<&'a str> {
        match &self.content {
            Content::Value(document) => Some(document.text()),
            Content::Lines(_) => None,
        }
    }

    /// Its place in the source, as a JSON pointer.
    pub(crate) fn path(&self) -> &str {
        match &self.content {
            Content::Value(document) => document.path().as_str(),
            Content::Lines(_) => "",
        }
    }

    /// All of it, if it is an object.
    pub(crate) fn object(&self) -> Option<&'a str> {
        self.value().filter(|value| ValueKind::of(value) == ValueKind::Object)
    }

    /// The value of `key`, if it is one object that has it once.
    pub(crate) fn field(&self, key: &'static str) -> Option<&'a str> {
        let mut values = self.members.iter().filter(|(name, ..)| name == key).map(|(.., value)| *value);
        let once = values.next().filter(|_| values.next().is_none());
        once.filter(|value| *value != "null")
    }

    /// The text under `key`, one of the format's keys, as [`field`](Self::field); empty, if there is none.
    ///
    /// # Errors
    /// `Shape` for what is no text.
    pub(crate) fn text_of(&self, key: &'static str) -> Result<Str, WireError> {
        let text = optional_text(self.text(), self.field(key), key)?;
        Ok(text.map(|text| share(self.source, &text)).unwrap_or_default())
    }

    /// The first elements of its list, enough to know them by: of the array under `key` in its object, of the array that
    /// it is, or of its lines. `None` if it has no such list.
    pub(crate) fn sample(&self, key: &'static str) -> Option<Vec<&'a str>> {
        let list = match (&self.content, self.field(key)) {
            (Content::Lines(text), _) => {
                return Some(document::lines(text).take(SAMPLE_MAX).map(|line| line.text()).collect());
            }
            (Content::Value(_), Some(list)) => list,
            (Content::Value(document), None) => document.text(),
        };
        first_of(list)
    }

    /// `error`, about the body's text, with its place in the source.
    pub(crate) fn place(&self, error: WireError) -> WireError {
        match &self.content {
            Content::Value(document) => document.place(error),
            Content::Lines(text) => error.positioned(text, 1),
        }
    }
}

/// The first elements of an array, enough to know them by; `None` if it is none.
pub(crate) fn first_of(list: &str) -> Option<Vec<&str>> {
    if ValueKind::of(list) != ValueKind::Array {
        return None;
    }
    let mut sample = Vec::new();
    // The error only ends the scan.
    let _ = json::items(list, |item| match sample.len() < SAMPLE_MAX {
        true => {
            sample.push(item);
            Ok(())
        }
        false => Err(WireError::shape("enough")),
    });
    Some(sample)
}

/// Maximum number of elements of a list that are looked at for signs of a format.
const SAMPLE_MAX: usize = 256;
