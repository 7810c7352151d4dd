//! JSONL of messages in a file: read line by line, so that memory does not grow with the file.

use core::ops::Range;
use std::fs::File;
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom, Write};
use std::path::Path;
use std::time::SystemTime;

use epitome::wire::document::{LineKind, Lines, Piece};
use epitome::wire::openai_chat::ChatView;
use epitome::wire::{WireError, WireErrorKind};

use super::empty;
use crate::failure::{Failure, Result};
use crate::progress::Progress;

/// JSONL that is not held in memory: only the places of its lines are.
#[derive(Debug)]
pub(crate) struct LineFile<'a> {
    pub(super) path: &'a Path,
    file: &'a File,
    pub(super) lines: Vec<Range<u64>>,
    bytes: u64,
    /// Time of the last write, if the file system has it.
    modified: Option<SystemTime>,
}

impl<'a> LineFile<'a> {
    pub(super) fn new(path: &'a Path, file: &'a File) -> Result<Self> {
        let about = file.metadata().map_err(|error| Failure::io(path, &error))?;
        Ok(Self { path, file, lines: Vec::new(), bytes: about.len(), modified: about.modified().ok() })
    }

    pub(super) fn for_each(&mut self, mut visit: impl FnMut(ChatView<'_>) -> Result<()>) -> Result<()> {
        self.seek(0).map_err(|error| Failure::io(self.path, &error))?;
        let wire = |error: WireError| Failure::wire(self.path, &error);
        let mut progress = Progress::new("reading", self.bytes);
        let mut lines = Lines::new(BufReader::with_capacity(1 << 20, self.file));
        self.lines.clear();
        while let Some(line) = lines.next_line().map_err(wire)? {
            if line.kind().map_err(wire)? == LineKind::Conversation {
                let what = "the line is a conversation of its own; expected a message: try --each";
                let error = WireError::new(WireErrorKind::Shape, what).with_offset(0);
                return Err(wire(line.document().map_err(wire)?.place(error)));
            }
            let view = ChatView::parse(line.text());
            let view = view.or_else(|error| Err(wire(line.document().map_err(wire)?.place(error))))?;
            visit(view)?;
            progress.advance(line.text().len() as u64);
            let start = line.offset() as u64;
            self.lines.push(start..start + line.text().len() as u64);
        }
        if self.lines.is_empty() { Err(empty(self.path, "")) } else { Ok(()) }
    }

    pub(super) fn line(&self, at: usize) -> io::Result<String> {
        let range = self.lines.get(at).cloned().unwrap_or_default();
        self.seek(range.start)?;
        let mut text = String::new();
        (&mut &*self.file).take(range.end - range.start).read_to_string(&mut text)?;
        Ok(text)
    }

    pub(super) fn write(&self, pieces: &[Piece<'_>], out: &mut dyn Write) -> io::Result<()> {
        self.check_unchanged()?;
        let mut copy = Copy { reader: BufReader::with_capacity(1 << 20, self.file), here: 0 };
        copy.reader.seek(SeekFrom::Start(0))?;
        let mut first = true;
        for piece in pieces {
            let place = match piece {
                Piece::Original(at) => Some(*at),
                Piece::New(_) => None,
                other => return Err(io::Error::other(format!("{other:?} cannot be written"))),
            };
            // Copies the gap before the message; before the first piece, the beginning of the file.
            match first {
                true => copy.to(0..self.start(0), out)?,
                // A file of one line has no gap between two lines.
                false if self.lines.len() < 2 => out.write_all(b"\n")?,
                false => copy.to(self.gap(place), out)?,
            }
            match piece {
                Piece::New(text) => out.write_all(text.as_bytes())?,
                _ => copy.to(place.and_then(|at| self.lines.get(at)).cloned().unwrap_or_default(), out)?,
            }
            first = false;
        }
        copy.to(self.lines.last().map_or(0, |last| last.end)..self.bytes, out)?;
        self.check_unchanged()
    }

    fn start(&self, at: usize) -> u64 {
        self.lines.get(at).map_or(0, |line| line.start)
    }

    /// The gap before the message at `place`. For the first message, or for a new one, it is the first gap of the file.
    fn gap(&self, place: Option<usize>) -> Range<u64> {
        let after = place.filter(|at| *at > 0).unwrap_or(1);
        let end = self.lines.get(after.saturating_sub(1)).map_or(0, |before| before.end);
        end..self.lines.get(after).map_or(end, |line| line.start)
    }

    pub(super) fn copy(&self, out: &mut dyn Write) -> io::Result<()> {
        self.check_unchanged()?;
        self.seek(0)?;
        io::copy(&mut &*self.file, out)?;
        self.check_unchanged()
    }

    /// Fails if the file has changed between its two readings: part of a line could be written.
    fn check_unchanged(&self) -> io::Result<()> {
        let about = self.file.metadata()?;
        if about.len() == self.bytes && about.modified().ok() == self.modified {
            return Ok(());
        }
        Err(io::Error::other("the input has changed while it was read: try again when nothing writes it"))
    }

    fn seek(&self, to: u64) -> io::Result<()> {
        (&*self.file).seek(SeekFrom::Start(to)).map(|_| ())
    }
}

/// Copies parts of a file.
struct Copy<'a> {
    reader: BufReader<&'a File>,
    here: u64,
}

impl Copy<'_> {
    fn to(&mut self, range: Range<u64>, out: &mut dyn Write) -> io::Result<()> {
        let (start, here) = (i64::try_from(range.start), i64::try_from(self.here));
        let too_far = |_| io::Error::from(io::ErrorKind::InvalidInput);
        self.reader.seek_relative(start.map_err(too_far)? - here.map_err(too_far)?)?;
        io::copy(&mut self.reader.by_ref().take(range.end.saturating_sub(range.start)), out)?;
        self.here = range.end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    #[test]
    fn a_file_that_is_written_while_it_is_read_is_refused() {
        let path = Path::new("in.jsonl");
        for (text, later) in [("{\"role\":\"user\"}\n{}", 0), ("{\"role\":\"user\"}\n", 9)] {
            let file = tempfile::tempfile().unwrap();
            (&file).write_all(b"{\"role\":\"tool\"}\n").unwrap();
            let mut lines = LineFile::new(path, &file).unwrap();
            lines.for_each(|_| Ok(())).unwrap();
            let out = &mut Vec::new();
            lines.copy(out).unwrap();
            lines.write(&[Piece::Original(0)], out).unwrap();
            (&file).seek(SeekFrom::Start(0)).unwrap();
            (&file).write_all(text.as_bytes()).unwrap();
            // Even a coarse clock of the file system shows this change.
            file.set_modified(lines.modified.unwrap() + Duration::from_secs(later)).unwrap();
            for refused in [lines.copy(out), lines.write(&[Piece::Original(0)], out)] {
                assert!(refused.unwrap_err().to_string().contains("has changed"), "{text}");
            }
        }
    }
}
