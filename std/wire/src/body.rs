//! The text, or the part of a text, that one reader reads: its members, its lists and its place. The format is in
//! `spec`.

use core::cell::{Cell, RefCell};
use std::borrow::Cow;
use std::sync::Arc;

use epitome_message::Str;

use super::WireError;
use super::document::{self, Document};
use super::expect::{optional_text, share};
use super::json::{self, Spans, ValueKind};
use super::transcript::KnownArray;

/// A text to read: one JSON value, or lines of JSON values.
#[derive(Debug, Clone)]
pub(crate) struct Body<'a> {
    /// The whole text. All slices point into it.
    pub(crate) source: &'a Arc<str>,
    pub(crate) content: Content<'a>,
    /// The name of the leaf of the requested branch.
    leaf: Option<&'a str>,
    /// Whether the reader has asked for the leaf.
    is_leaf_seen: Cell<bool>,
    /// The members of the object, if the value is an object: the decoded key, the key as written, and the value.
    pub(crate) members: Vec<(Cow<'a, str>, &'a str, &'a str)>,
    /// The elements of the arrays in the object, or of the array itself, if they are known already.
    arrays: Vec<KnownArray>,
    /// The long values of the text, if they are known already.
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
            // A value that is no object has no members. Its reader reports the error.
            let _ = json::raw_members(document.text(), |key, value| {
                members.push((json::decode(key), key, value));
                Ok(())
            });
        }
        let (arrays, spans, is_leaf_seen) = (Vec::new(), Spans::default(), Cell::default());
        Self { source, content, leaf, is_leaf_seen, members, arrays, spans }
    }

    /// Parses `text`, one JSON value, in a single pass, because a text may be large.
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

    /// The name of the leaf of the requested branch.
    pub(crate) fn leaf(&self) -> Option<&'a str> {
        self.is_leaf_seen.set(true);
        self.leaf
    }

    /// Whether a leaf is requested and the reader has not asked for it, because its format has no branches.
    pub(crate) const fn ignores_leaf(&self) -> bool {
        self.leaf.is_some() && !self.is_leaf_seen.get()
    }

    /// Whether the value is an object with `role`.
    pub(crate) fn is_message(&self) -> bool {
        self.members.iter().any(|(name, ..)| name == "role")
    }

    /// Takes the arrays whose elements are known already, for the reader.
    pub(crate) fn take_arrays(&mut self) -> Vec<KnownArray> {
        core::mem::take(&mut self.arrays)
    }

    /// Takes the long values, for the reader.
    pub(crate) fn take_spans(&mut self) -> Spans {
        core::mem::take(&mut self.spans)
    }

    /// Fails if the object has one of these keys twice.
    pub(crate) fn check_keys<'k>(
        &self,
        mut keys: impl Iterator<Item = &'k &'static str>,
    ) -> Result<(), WireError> {
        keys.try_for_each(|key| match self.members.iter().filter(|(name, ..)| name == key).nth(1) {
            Some((.., again)) => Err(json::duplicate(key).with_offset(json::offset_of(self.text(), again))),
            None => Ok(()),
        })
    }

    /// The whole text of the body.
    pub(crate) fn text(&self) -> &'a str {
        match &self.content {
            Content::Value(document) => document.text(),
            Content::Lines(text) => text,
        }
    }

    /// The value; `None` for lines.
    pub(crate) fn value(&self) -> Option<&'a str> {
        match &self.content {
            Content::Value(document) => Some(document.text()),
            Content::Lines(_) => None,
        }
    }

    /// The place of the value in the source, as a JSON pointer.
    pub(crate) fn path(&self) -> &str {
        match &self.content {
            Content::Value(document) => document.path().as_str(),
            Content::Lines(_) => "",
        }
    }

    /// The text of the value, if it is an object.
    pub(crate) fn object(&self) -> Option<&'a str> {
        self.value().filter(|value| ValueKind::of(value) == ValueKind::Object)
    }

    /// The value of `key`, if the value is an object with this key exactly once.
    pub(crate) fn field(&self, key: &'static str) -> Option<&'a str> {
        let mut values = self.members.iter().filter(|(name, ..)| name == key).map(|(.., value)| *value);
        let once = values.next().filter(|_| values.next().is_none());
        once.filter(|value| *value != "null")
    }

    /// The text under `key`, one of the format's keys, as [`field`](Self::field). It is empty if the key is missing.
    ///
    /// # Errors
    /// `Shape` for a value that is no text.
    pub(crate) fn text_of(&self, key: &'static str) -> Result<Str, WireError> {
        let text = optional_text(self.text(), self.field(key), key)?;
        Ok(text.map(|text| share(self.source, &text)).unwrap_or_default())
    }

    /// The first elements of the list, enough to recognize the format: of the array under `key`, of the array itself,
    /// or of the lines. `None` if there is no such list.
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

    /// Adds the place in the source to `error`, which is about the text of the body.
    pub(crate) fn place(&self, error: WireError) -> WireError {
        match &self.content {
            Content::Value(document) => document.place(error),
            Content::Lines(text) => error.positioned(text, 1),
        }
    }
}

/// The first elements of an array, enough to recognize the format. `None` if `list` is no array.
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

/// Maximum number of elements of a list that a format's `sign` looks at.
const SAMPLE_MAX: usize = 256;
