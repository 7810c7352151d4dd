//! A session file that is not held in memory. An outline has the lines of the conversation, and each line is read at
//! its access.

use std::fs::File;
use std::io::{BufReader, Seek as _, SeekFrom};
use std::path::Path;

use epitome::message::Message;
use epitome::wire::{Format, Outline, OutlinedConversation, SessionLines, UsageEntry, WireError};

use crate::failure::{Failure, Result};
use crate::progress::Progress;

/// Number of bytes per read.
const BUFFER_BYTES: usize = 1 << 20;

/// A session in a file of lines.
#[derive(Debug)]
pub(crate) struct SessionFile<'a> {
    path: &'a Path,
    lines: SessionLines<BufReader<&'a File>>,
    outline: Outline,
    format: Format,
}

impl<'a> SessionFile<'a> {
    pub(super) fn new(path: &'a Path, file: &'a File, format: Format, leaf: Option<&str>) -> Result<Self> {
        let wire = |error: WireError| Failure::wire(path, &error);
        (&*file).seek(SeekFrom::Start(0)).map_err(|error| Failure::io(path, &error))?;
        let reader = BufReader::with_capacity(BUFFER_BYTES, file);
        let mut lines = SessionLines::new(reader, format).map_err(wire)?;
        let outline = Outline::read(&mut lines, leaf).map_err(wire)?;
        Ok(Self { path, lines, outline, format })
    }

    /// Number of messages of the conversation.
    pub(super) fn len(&self) -> usize {
        self.outline.conversations().first().map_or(0, |one| one.messages)
    }

    pub(super) const fn format(&self) -> Format {
        self.format
    }

    pub(super) fn conversations(&self) -> &[OutlinedConversation] {
        self.outline.conversations()
    }

    pub(super) fn usage(&mut self) -> Result<Vec<UsageEntry>> {
        let usage = self.outline.usage(&mut self.lines).collect::<core::result::Result<_, WireError>>();
        usage.map_err(|error| Failure::wire(self.path, &error))
    }

    pub(super) fn with_message<T>(&mut self, at: usize, read: impl FnOnce(&Message) -> T) -> Result<T> {
        match self.outline.messages(&mut self.lines).nth(at) {
            Some(message) => {
                message.map(|message| read(&message)).map_err(|error| Failure::wire(self.path, &error))
            }
            None => Err(Failure::input(format!("there is no message {at}"))),
        }
    }

    pub(super) fn for_each(&mut self, mut visit: impl FnMut(&Message) -> Result<()>) -> Result<()> {
        let mut progress = Progress::of_messages("reading", self.len() as u64);
        for message in self.outline.messages(&mut self.lines) {
            visit(&message.map_err(|error| Failure::wire(self.path, &error))?)?;
            progress.advance(1);
        }
        Ok(())
    }
}
