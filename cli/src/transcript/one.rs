//! One conversation, in memory or in a file.

use core::ops::Range;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use epitome::history::PartStandIn;
use epitome::message::Message;
use epitome::wire::Format;
use epitome::wire::document::{DocumentConversation, Layout, Piece};
use epitome::wire::openai_chat::ChatView;

use super::View;
use super::lines::LineFile;
use super::read::ReadConversation;
use super::session::SessionFile;
use crate::failure::{Failure, Result};
use crate::progress::Progress;

/// One conversation of an input.
#[derive(Debug)]
pub(crate) enum Transcript<'a> {
    Memory {
        path: &'a Path,
        conversation: DocumentConversation<'a>,
    },
    Lines(LineFile<'a>),
    Read(ReadConversation<'a>),
    /// Only for reading, not for writing.
    Session(Box<SessionFile<'a>>),
}

impl Transcript<'_> {
    /// Its place in the document, as a JSON pointer.
    pub(crate) fn pointer(&self) -> &str {
        match self {
            Self::Memory { conversation, .. } => conversation.path().as_str(),
            Self::Lines(_) | Self::Session(_) => "",
            Self::Read(conversation) => conversation.pointer(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Memory { conversation, .. } => conversation.len(),
            Self::Lines(file) => file.lines.len(),
            Self::Read(conversation) => conversation.len(),
            Self::Session(session) => session.len(),
        }
    }

    /// Reads every message, in order.
    pub(crate) fn for_each(&mut self, mut visit: impl FnMut(&View<'_>) -> Result<()>) -> Result<()> {
        match self {
            Self::Memory { path, conversation } => {
                let bytes = conversation.elements().last().map_or(0, |last| last.end) as u64;
                let mut progress = Progress::new("reading", bytes);
                for (at, text) in conversation.iter().enumerate() {
                    let view = ChatView::parse(text);
                    let view = view.map_err(|error| Failure::wire(path, &conversation.place(at, error)))?;
                    visit(&View::Chat(view))?;
                    progress.advance(text.len() as u64);
                }
                Ok(())
            }
            Self::Lines(file) => file.for_each(|view| visit(&View::Chat(view))),
            Self::Read(conversation) => conversation.messages().try_for_each(|one| visit(&View::Owned(one))),
            Self::Session(session) => session.for_each(|one| visit(&View::Owned(one))),
        }
    }

    /// Reads the message with this index.
    pub(crate) fn with_message<T>(&mut self, at: usize, read: impl FnOnce(&View<'_>) -> T) -> Result<T> {
        match self {
            Self::Memory { path, conversation } => {
                let view = ChatView::parse(conversation.get(at).unwrap_or_default());
                let view = view.map_err(|error| Failure::wire(path, &conversation.place(at, error)))?;
                Ok(read(&View::Chat(view)))
            }
            Self::Lines(file) => {
                let text = file.line(at).map_err(|error| Failure::io(file.path, &error))?;
                Ok(read(&View::Chat(
                    ChatView::parse(&text).map_err(|error| Failure::wire(file.path, &error))?,
                )))
            }
            Self::Read(conversation) => match conversation.message(at) {
                Some(message) => Ok(read(&View::Owned(message))),
                None => Err(Failure::input(format!("there is no message {at}"))),
            },
            Self::Session(session) => session.with_message(at, |message| read(&View::Owned(message))),
        }
    }

    /// The format of its source text.
    pub(crate) fn format(&self) -> Format {
        match self {
            Self::Memory { .. } | Self::Lines(_) => Format::OpenaiChat,
            Self::Read(conversation) => conversation.format(),
            Self::Session(session) => session.format(),
        }
    }

    /// Sets the stand-ins that are written in the place of parts of messages, and removes all other replacements.
    /// Applies to formats in which messages are not separate texts.
    pub(crate) fn shorten(&mut self, edits: &BTreeMap<u32, Vec<PartStandIn>>) {
        if let Self::Read(conversation) = self {
            conversation.shorten(edits);
        }
    }

    /// Replaces a message when the conversation is written. Returns false and does nothing for a format in which
    /// messages are separate texts.
    pub(crate) fn replace(&mut self, at: usize, message: &Message) -> bool {
        match self {
            Self::Read(conversation) => {
                conversation.replace(at, message.clone());
                true
            }
            Self::Memory { .. } | Self::Lines(_) | Self::Session(_) => false,
        }
    }

    /// The replacement of a message, in a format in which messages are not separate texts.
    pub(crate) fn edited(&self, at: usize) -> Option<Message> {
        match self {
            Self::Read(conversation) => conversation.edited(at),
            Self::Memory { .. } | Self::Lines(_) | Self::Session(_) => None,
        }
    }

    /// Writes the conversation's place in the document, with `pieces` as its messages: an array, or lines.
    pub(crate) fn write(&mut self, pieces: &[Piece<'_>], out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Memory { conversation, .. } => conversation.write_messages(pieces.iter().copied(), out),
            Self::Lines(file) => file.write(pieces, out),
            Self::Read(conversation) => conversation.keep(pieces),
            Self::Session(_) => Err(only_looked_at()),
        }
    }

    /// Checks that the conversation can be written with these pieces. A format in which messages are separate texts
    /// accepts all.
    pub(crate) fn rehearse(&mut self, pieces: &[Piece<'_>]) -> io::Result<()> {
        match self {
            Self::Memory { .. } | Self::Lines(_) => Ok(()),
            Self::Read(conversation) => conversation.rehearse(pieces),
            Self::Session(_) => Err(only_looked_at()),
        }
    }

    /// Writes the conversation's place in the document, unchanged.
    pub(crate) fn copy(&mut self, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Memory { conversation, .. } => {
                let all: Vec<_> = (0..conversation.len()).map(Piece::Original).collect();
                conversation.write_messages(all, out)
            }
            Self::Lines(file) => file.copy(out),
            // Written together with all other conversations.
            Self::Read(_) => Ok(()),
            Self::Session(_) => Err(only_looked_at()),
        }
    }

    /// The bytes of `text`, the source of the conversation, that [`Transcript::write`] replaces.
    pub(super) fn place_in(&self, text: &str) -> Range<usize> {
        let Self::Memory { conversation, .. } = self else { return 0..text.len() };
        let start = (conversation.whole().as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
        match conversation.layout() {
            Layout::Array(range) => start + range.start..start + range.end,
            _ => start..start + conversation.whole().len(),
        }
    }
}

fn only_looked_at() -> io::Error {
    io::Error::other("the file was opened to be looked at")
}
