//! One conversation in a text. Writes the text with other messages in it.

use core::fmt;
use core::ops::Range;
use std::io::{self, Write};

use super::lines::{LineKind, lines};
use super::{Document, Origin, Pointer, route};
use crate::WireError;
use crate::json::{self, ElementPlaces, ValueKind};

/// A conversation in a text, with the places of its messages.
#[derive(Clone)]
pub struct DocumentConversation<'a> {
    whole: &'a str,
    origin: Origin,
    path: Pointer,
    layout: Layout,
    elements: Vec<Range<usize>>,
}

/// The layout of a conversation's messages.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// An array. The range is its bytes in the text, brackets included.
    Array(Range<usize>),
    /// One message per line of the text.
    Lines,
}

/// A message to write: a message of the conversation, or another message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Piece<'p> {
    /// The unchanged message with this index.
    Original(usize),
    /// This text, one JSON object.
    New(&'p str),
}

impl<'a> DocumentConversation<'a> {
    /// The conversation in `text`: JSONL with a message on every line that is not blank.
    ///
    /// # Errors
    /// As [`Line::kind`](super::Line::kind), and `Shape` if a line is a conversation of its own.
    pub fn from_lines(text: &'a str) -> Result<Self, WireError> {
        let mut elements = Vec::new();
        for line in lines(text) {
            match line.kind()? {
                LineKind::Message => elements.push(json::range_of(text, line.text())),
                LineKind::Conversation => {
                    let what = "the line is a conversation of its own; expected a message: try --each";
                    let error = WireError::shape(what).with_offset(line.offset());
                    return Err(error.positioned(text, 1));
                }
            }
        }
        let origin = Origin { offset: 0, line: 1 };
        Ok(Self { whole: text, origin, path: Pointer::default(), layout: Layout::Lines, elements })
    }

    pub(super) fn find(document: &Document<'a>) -> Result<Self, WireError> {
        let there = match ValueKind::of(document.text()) {
            ValueKind::Array => Some(document.clone()),
            ValueKind::Object => json::field(document.text(), MESSAGES)
                .map_err(|error| document.place(error))?
                .filter(|found| ValueKind::of(found) == ValueKind::Array)
                .map(|found| Document {
                    range: json::range_of(document.whole, found),
                    path: document.path.join(MESSAGES),
                    ..document.clone()
                }),
            _ => None,
        };
        let Some(there) = there else { return Err(route::refusal(document)) };
        let mut elements = Vec::new();
        let scan = json::items(there.text(), |item| match route::is_message(item) {
            true => {
                elements.push(json::range_of(there.whole, item));
                Ok(())
            }
            false => {
                let what =
                    format!("expected a message (an object with `role`), found {}", json::describe(item));
                let place = format!("/{}", elements.len());
                Err(WireError::shape(what).inside(place, json::offset_of(there.text(), item)))
            }
        });
        match scan {
            Ok(()) => {
                let (layout, Document { whole, origin, path, .. }) =
                    (Layout::Array(there.range.clone()), there);
                Ok(Self { whole, origin, path, layout, elements })
            }
            Err(_) if elements.is_empty() => Err(route::refusal(document)),
            Err(error) => Err(there.place(error)),
        }
    }

    /// Number of messages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.elements.len()
    }

    /// Whether the conversation has no messages.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// The text of the message with this index.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&'a str> {
        self.whole.get(self.elements.get(index)?.clone())
    }

    /// The texts of the messages, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a str> {
        let whole = self.whole;
        self.elements.iter().map(move |range| whole.get(range.clone()).unwrap_or_default())
    }

    /// The byte range of each message in [`whole`](Self::whole), in order.
    #[must_use]
    pub fn elements(&self) -> &[Range<usize>] {
        &self.elements
    }

    /// The layout of the messages.
    #[must_use]
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The text that contains the conversation.
    #[must_use]
    pub const fn whole(&self) -> &'a str {
        self.whole
    }

    /// The place of the messages in the whole text.
    #[must_use]
    pub const fn path(&self) -> &Pointer {
        &self.path
    }

    /// Adds the place in the whole text to `error`, which is about the text of the message with this index.
    #[must_use]
    pub fn place(&self, index: usize, error: WireError) -> WireError {
        let start = self.elements.get(index).map_or(0, |range| range.start);
        let error = match self.layout {
            Layout::Array(_) => error.inside(format_args!("{}/{index}", self.path), start),
            Layout::Lines => error.inside("", start),
        };
        error.positioned(self.whole, self.origin.line).shifted(self.origin.offset)
    }

    /// Writes the whole text with `keep` as the messages of the conversation. The text around the messages, and between
    /// two adjacent kept messages, is unchanged. All messages in order result in the original text.
    ///
    /// # Errors
    /// `InvalidInput` for an index without a message, after part of the text was written. Errors of `out`.
    pub fn splice<'p>(
        &self,
        keep: impl IntoIterator<Item = Piece<'p>>,
        out: &mut (impl Write + ?Sized),
    ) -> io::Result<()> {
        match &self.layout {
            Layout::Lines => self.write_messages(keep, out),
            Layout::Array(range) => {
                out.write_all(self.bytes(0, range.start))?;
                self.write_messages(keep, out)?;
                out.write_all(self.bytes(range.end, self.whole.len()))
            }
        }
    }

    /// Writes only the array or the lines, with `keep` as the messages. Use it for a text with several conversations.
    ///
    /// # Errors
    /// As [`splice`](Self::splice).
    pub fn write_messages<'p>(
        &self,
        keep: impl IntoIterator<Item = Piece<'p>>,
        out: &mut (impl Write + ?Sized),
    ) -> io::Result<()> {
        let (open, close, start, end, separator) = match &self.layout {
            Layout::Lines => ("", "", 0, self.whole.len(), "\n"),
            Layout::Array(range) => {
                ("[", "]", range.start.saturating_add(1), range.end.saturating_sub(1), ",")
            }
        };
        let places = ElementPlaces { text: self.whole, start, end, elements: &self.elements, separator };
        let mut unknown = None;
        let pieces = keep.into_iter().map_while(|piece| match piece {
            Piece::New(text) => Some((None, text)),
            Piece::Original(index) => match self.get(index) {
                Some(text) => Some((Some(index), text)),
                None => {
                    unknown = Some(index);
                    None
                }
            },
        });
        out.write_all(open.as_bytes())?;
        places.emit(pieces, &mut |text| out.write_all(text.as_bytes()))?;
        match unknown {
            Some(index) => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("there is no message {index}: the conversation has {}", self.len()),
            )),
            None => out.write_all(close.as_bytes()),
        }
    }

    fn bytes(&self, start: usize, end: usize) -> &'a [u8] {
        self.whole.as_bytes().get(start..end).unwrap_or_default()
    }
}

impl fmt::Debug for DocumentConversation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DocumentConversation")
            .field("path", &self.path.as_str())
            .field("layout", &self.layout)
            .field("messages", &self.elements.len())
            .finish_non_exhaustive()
    }
}

/// The key of the messages in a request, and in most stored transcripts.
pub(super) const MESSAGES: &str = "messages";
