//! The store's knowledge about a session's file, and the reading of lines that were added since.

use epitome_core::{Revision, Seq, Tokens, Turn};
use uuid::Uuid;

use super::failure::Here;
use super::frame::{self, Origin, Sum};
use super::index::{Incoming, Index, Kept, Slot, Span};
use super::lines::{Lines, Next};
use super::undo;
use crate::encryption::{self, CIPHER, Place, Vault};
use crate::kernel::Visible;
use crate::line::{
    self, AppendLine, CommitLine, Line, MessageLine, PruneLine, SEALED_VERSION, SealedLine, SessionLine,
    StateLine, UncompactLine, VERSION, is_sealed,
};
use crate::rules::{self, Standing, invalid};
use crate::stored;
use crate::{CompactionRecord, RecordId, SessionId, StoreError, StoreErrorKind, Timestamp};

/// The knowledge about a file up to `end`. The next operation reads the later lines of other writers.
#[derive(Debug)]
pub(super) struct Known {
    /// The file's own id (zero before the first line is written), and the form of its lines.
    pub(super) file: Origin,
    /// End of the last append or commit, in bytes.
    pub(super) end: u64,
    /// Offset and checksum of the last line before `end`. While this checksum is still at this offset, the file is the
    /// same and nothing was removed: the checksum includes the id of the file.
    pub(super) last: (u64, Sum),
    pub(super) index: Index,
    /// The version of the lines; 0 for a file without lines.
    pub(super) version: u64,
    /// Whether the name of the file is known to be durable.
    pub(super) named: bool,
}

impl Known {
    /// The knowledge about a file without lines.
    pub(super) fn empty() -> Self {
        Self {
            file: Origin::default(),
            end: 0,
            last: (0, [0; frame::SUM_BYTES]),
            index: Index::default(),
            version: 0,
            named: false,
        }
    }

    /// Reads the first line of the file of `session`, and returns the knowledge about it.
    ///
    /// # Errors
    /// `Invalid` if a newer release wrote the file, or its form differs from that of `vault`; `Corrupt` if it is not
    /// the file of this session.
    pub(super) fn read(
        lines: &mut Lines<'_>,
        session: &SessionId,
        vault: &Vault,
        here: Here<'_>,
    ) -> Result<Self, StoreError> {
        let Some(line) = header(lines, here)? else { return Ok(Self::empty()) };
        if line.id != session.as_str() {
            return Err(here.corrupt(0, "it holds another session than its name says"));
        }
        let file = line.open(vault, here)?;
        let next = lines.next(&Origin::default(), 0).map_err(|error| here.failed(error))?;
        let Next::Line { len, sum, .. } = next else {
            return Ok(Self::empty());
        };
        Ok(Self { file, end: len, last: (0, sum), version: line.v, ..Self::empty() })
    }

    /// Whether the file has a first line.
    pub(super) const fn has_begun(&self) -> bool {
        self.end > 0
    }

    /// Whether the file that `lines` reads still begins with the known content.
    pub(super) fn is_of(&self, lines: &Lines<'_>) -> bool {
        let (at, sum) = &self.last;
        self.end <= lines.size() && self.has_begun() && lines.holds(*at, &frame::begin(sum)).unwrap_or(false)
    }

    /// Reads the lines that were added since. Any text after `end` is then the incomplete end of an interrupted write.
    ///
    /// # Errors
    /// `Corrupt` for any other text after `end`.
    pub(super) fn catch_up(&mut self, lines: &mut Lines<'_>, here: Here<'_>) -> Result<(), StoreError> {
        if !self.has_begun() {
            return Ok(());
        }
        let (mut at, mut incoming) = (self.end, Vec::new());
        loop {
            let next = lines.next(&self.file, at).map_err(|error| here.failed(error))?;
            let (len, sum, data) = match next {
                Next::Line { len, sum, data } => (len, sum, data),
                Next::End | Next::Torn => return Ok(()),
                Next::Damaged => return Err(here.corrupt(at, "a line is not as it was written")),
            };
            let line =
                serde_json::from_slice(data).map_err(|_| here.corrupt(at, "a line of an unknown kind"))?;
            let misfit = || here.corrupt(at, "a line does not fit those before it");
            let line_span = Span { at, len };
            let ends = match line {
                Line::Message(line) => {
                    let seq = self.index.head().0.saturating_add(incoming.len() as u64);
                    incoming.push(self.message(&line, seq, line_span).ok_or_else(misfit)?);
                    false
                }
                Line::Append(line) => {
                    let incoming = core::mem::take(&mut incoming);
                    self.append(&line, incoming, line_span).ok_or_else(misfit)?;
                    true
                }
                Line::Commit(line) if incoming.is_empty() => {
                    self.commit(&line, line_span, here)?.ok_or_else(misfit)?;
                    true
                }
                Line::Uncompact(line) if incoming.is_empty() => {
                    self.uncompact(line, lines, here)?.ok_or_else(misfit)?;
                    true
                }
                Line::Prune(line) if incoming.is_empty() => {
                    self.prune(line).ok_or_else(misfit)?;
                    true
                }
                Line::State(line) if incoming.is_empty() => {
                    self.state(&line, line_span).ok_or_else(misfit)?;
                    true
                }
                Line::Commit(_) | Line::Session(_) | Line::Uncompact(_) | Line::Prune(_) | Line::State(_) => {
                    return Err(misfit());
                }
            };
            at = at.saturating_add(len);
            if ends {
                (self.end, self.last) = (at, (line_span.at, sum));
            }
        }
    }

    fn message(&self, line: &MessageLine<'_>, seq: u64, span: Span) -> Option<Incoming> {
        if line.seq != seq || line.anchor > seq {
            return None;
        }
        let standing = match line.standing {
            Some(number) => Standing::parse(number.into())?,
            None => Standing::of(&line.entry().ok()?.message),
        };
        let slot = Slot {
            line: span,
            anchor: Seq(line.anchor),
            turn: Turn(line.turn),
            tokens: Tokens(line.tokens),
            standing,
            hidden_by: line.hidden_by.map(Revision),
            late: line.late,
            orphan: line.orphan,
            pruned: 0,
        };
        let answers = slot.hidden_by.map(|_| line.entry()).transpose().ok()?;
        Some(Incoming { slot, answers })
    }

    fn append(&mut self, line: &AppendLine, incoming: Vec<Incoming>, span: Span) -> Option<()> {
        let revision = self.index.revision();
        let moved = line.revision == revision.0 || line.revision == revision.next().0;
        let fits = line.first == self.index.head().0 && line.count == incoming.len() as u64;
        (fits && moved && !incoming.is_empty()).then(|| {
            let at = (span, line.time.map(Timestamp));
            self.index.append(&line.token, incoming, Revision(line.revision), at);
        })?;
        line.state.as_ref().map_or(Some(()), |state| self.state(state, span))
    }

    /// `None` if this state does not fit the lines before it.
    fn state(&mut self, line: &StateLine, span: Span) -> Option<()> {
        let index = &mut self.index;
        let revision = index.state_revision().next();
        let fits = line.revision == revision.0 && line.head == index.head().0 && line.head > 0;
        fits.then(|| index.keep_state(revision, span))
    }

    /// `None` if this record does not fit the lines before it.
    fn commit(
        &mut self,
        line: &CommitLine<'_>,
        span: Span,
        here: Here<'_>,
    ) -> Result<Option<()>, StoreError> {
        let record = record(line, span.at, here)?;
        let Some(id) = RecordId::parse(&line.id) else { return Ok(None) };
        let (index, revision) = (&mut self.index, Revision(line.revision));
        let check = |index: &Index| -> Result<(), StoreError> {
            rules::check_commit(&record, id, None, index.revision(), index.head())?;
            let Visible { messages, summaries } = index.visible()?;
            rules::edit(&record, &messages, &summaries)?;
            rules::check_id(&record, id)
        };
        if revision != record.parent.next() || check(index).is_err() {
            return Ok(None);
        }
        Ok(index.commit(&record, Kept { revision, id, line: span, undone_by: None }).ok())
    }

    /// `None` if this uncompact does not fit the lines before it.
    fn uncompact(
        &mut self,
        line: UncompactLine,
        lines: &mut Lines<'_>,
        here: Here<'_>,
    ) -> Result<Option<()>, StoreError> {
        let (made, revision) = (Revision(line.made), Revision(line.revision));
        if revision != self.index.revision().next() || !matches!(self.index.check_uncompact(made), Ok(None)) {
            return Ok(None);
        }
        let undone = match undo::undoing(self, lines, made, here) {
            Ok(undone) => undone,
            Err(error) if error.kind() == StoreErrorKind::Pruned => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(self.index.uncompact(undone, revision).ok())
    }

    /// `None` if this prune does not fit the lines before it.
    fn prune(&mut self, line: PruneLine) -> Option<()> {
        let pruned = line.pruned();
        let due = self.index.prunable(pruned.through);
        let due = (due.messages.len() as u64, due.summaries.len() as u64);
        let fits = (pruned.messages, pruned.summaries) == due && due != (0, 0);
        let revision = self.index.revision();
        (fits && pruned.through <= revision && pruned.revision == revision.next())
            .then(|| self.index.prune(pruned))
    }
}

/// The first line of a file; `None` if the line is incomplete.
pub(super) fn header(lines: &mut Lines<'_>, here: Here<'_>) -> Result<Option<SessionLine>, StoreError> {
    let data = match lines.next(&Origin::default(), 0).map_err(|error| here.failed(error))? {
        Next::Line { data, .. } => data,
        Next::End | Next::Torn => return Ok(None),
        Next::Damaged => {
            return Err(here.corrupt(0, "it does not begin as a session does; if it is none, move it away"));
        }
    };
    let version = serde_json::from_slice::<AnyLine>(data).map(|line| line.session.v);
    match version {
        Ok(v) if v > SEALED_VERSION => {
            let (operation, path) = (here.operation, here.path.display());
            Err(invalid(format!(
                "{operation}: {path} was written by a newer version: format {v}, this one reads up to {SEALED_VERSION}"
            )))
        }
        _ => match serde_json::from_slice(data) {
            Ok(Line::Session(line)) if line.v > 0 && line.sealed.is_some() == is_sealed(line.v) => {
                Ok(Some(line))
            }
            _ => Err(here.corrupt(0, "its first line is not that of a session")),
        },
    }
}

impl SessionLine {
    /// The identity of the file that begins with this line, under `vault`.
    ///
    /// # Errors
    /// `Invalid` if the form of the file differs from that of `vault`.
    pub(super) fn open(&self, vault: &Vault, here: Here<'_>) -> Result<Origin, StoreError> {
        let id = Uuid::try_parse(&self.file).map_err(|_| here.corrupt(0, "it has no id"))?;
        let what = || format!("{}: {}", here.operation, here.path.display());
        if let Some(sealed) = self.sealed.as_ref().filter(|sealed| sealed.cipher != CIPHER) {
            return Err(invalid(format!(
                "{} is encrypted with {:?}, this version knows {CIPHER}; open it with a newer one",
                what(),
                sealed.cipher
            )));
        }
        let seal = vault.seal(id, self.id.as_bytes());
        let check = self.sealed.as_ref().map(|sealed| &*sealed.check);
        encryption::check(vault, &seal, check, &what())?;
        Ok(Origin { id, seal })
    }
}

/// Writes the first line of a new file of `session`. Returns the identity of the file.
pub(super) fn begin(vault: &Vault, session: &SessionId, out: &mut Vec<u8>) -> Result<Origin, StoreError> {
    let id = Uuid::new_v4();
    let seal = vault.seal(id, session.as_str().as_bytes());
    let mut first = SessionLine {
        v: VERSION,
        id: session.as_str().to_owned(),
        file: id.simple().to_string(),
        sealed: None,
    };
    if !vault.is_plain() {
        let check = seal.close(Place::CHECK, String::new())?;
        (first.v, first.sealed) = (SEALED_VERSION, Some(SealedLine { cipher: CIPHER.to_owned(), check }));
    }
    frame::seal(&Origin::default(), 0, &line::encode(&Line::Session(first))?, out)?;
    Ok(Origin { id, seal })
}

/// The first line of a file of any version. It shows whether a newer release wrote the file.
#[derive(serde::Deserialize)]
struct AnyLine {
    session: AnySession,
}

#[derive(serde::Deserialize)]
struct AnySession {
    v: u64,
}

/// The record of a line.
pub(super) fn record(line: &CommitLine<'_>, at: u64, here: Here<'_>) -> Result<CompactionRecord, StoreError> {
    stored::decode_record(line.record.get())
        .map_err(|error| here.corrupt(at, "a record cannot be read").with_source(error))
}
