//! The lines of a session: in a JSONL file, in an export, and in the saved bytes of a session.

use core::fmt;

use epitome_core::{Basis, Head, Revision, Seq, Tokens, Turn};
use epitome_message::Str;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::stored::{self, StoredError};
use crate::{
    AppendToken, Appended, Entry, KeptState, LoggedAppend, Pruned, StateRevision, StoreError, StoreErrorKind,
    Timestamp, TokenCount,
};

/// The version of the lines. A new field that readers may ignore does not raise it. Version 1 has no uncompacts and no
/// prunes; version 2 has no lines of states.
pub(crate) const VERSION: u64 = 4;

/// The version of a file with encrypted lines, and the highest version that this release reads. Apart from the
/// encryption it equals [`VERSION`]. In the same way, version 3 is the encrypted version 2.
pub(crate) const SEALED_VERSION: u64 = 5;

/// The first version in which a compaction can be undone.
pub(crate) const UNDOING_VERSION: u64 = 2;

/// The first version that can save states.
pub(crate) const STATE_VERSION: u64 = 4;

/// Whether the lines of a file of this version are encrypted.
pub(crate) const fn is_sealed(version: u64) -> bool {
    matches!(version, 3 | SEALED_VERSION)
}

/// The data of a line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Line<'a> {
    /// The first line of a file.
    Session(SessionLine),
    /// A message. It belongs to the session only if the line of its append follows.
    #[serde(borrow)]
    Message(MessageLine<'a>),
    /// The end of an append.
    Append(AppendLine),
    /// A compaction.
    #[serde(borrow)]
    Commit(CommitLine<'a>),
    /// The uncompact of a compaction.
    Uncompact(UncompactLine),
    /// The end of a prune. The texts that it deleted are missing in the lines above.
    Prune(PruneLine),
    /// A state that was saved without an append.
    State(StateLine),
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SessionLine {
    pub(crate) v: u64,
    pub(crate) id: String,
    /// The id of the file. It differs from that of other files with the same name, earlier or elsewhere.
    pub(crate) file: String,
    /// The encryption of the other lines, if they are encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sealed: Option<SealedLine>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SealedLine {
    pub(crate) cipher: String,
    /// A text that only the right key decrypts.
    pub(crate) check: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct MessageLine<'a> {
    pub(crate) seq: u64,
    pub(crate) anchor: u64,
    pub(crate) turn: u32,
    pub(crate) tokens: u32,
    pub(crate) basis: Basis,
    pub(crate) counter: Str,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) part_tokens: Vec<u32>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) late: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) orphan: bool,
    /// The revision that had hidden its group before it was appended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hidden_by: Option<u64>,
    /// The standing of its attribution, which a commit needs. It allows reading a file without decoding its messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) standing: Option<u8>,
    /// The stored form of the message.
    #[serde(borrow)]
    pub(crate) message: &'a RawValue,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AppendLine {
    pub(crate) token: String,
    /// The number of the first message.
    pub(crate) first: u64,
    pub(crate) count: u64,
    /// The revision after the append.
    pub(crate) revision: u64,
    /// The time of the append, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) time: Option<u64>,
    /// The state that was saved with the append.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<StateLine>,
}

impl AppendLine {
    pub(crate) fn of(token: &AppendToken, appended: Appended, time: Option<Timestamp>) -> Self {
        let Appended { first, head, revision } = appended;
        let (token, count) = (token.as_str().to_owned(), head.0.saturating_sub(first.0));
        Self {
            token,
            first: first.0,
            count,
            revision: revision.0,
            time: time.map(|time| time.0),
            state: None,
        }
    }

    pub(crate) fn into_logged(self) -> LoggedAppend {
        let head = Seq(self.first.saturating_add(self.count));
        let appended = Appended::new(Seq(self.first), head, Revision(self.revision));
        LoggedAppend::new(AppendToken::new(self.token), appended, self.time.map(Timestamp))
    }
}

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct StateLine {
    /// The revision of the state.
    pub(crate) revision: u64,
    /// The head of the session at the time of the save.
    pub(crate) head: u64,
    /// The text of the state. Empty if a later state replaced it before the file was rewritten.
    pub(crate) text: Box<str>,
}

impl StateLine {
    pub(crate) fn of(revision: StateRevision, head: Head, text: &str) -> Self {
        Self { revision: revision.0, head: head.0, text: text.into() }
    }

    pub(crate) fn into_kept(self) -> KeptState {
        KeptState::new(StateRevision(self.revision), Seq(self.head), self.text)
    }
}

impl fmt::Debug for StateLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The text is omitted, because it may contain text of messages.
        f.debug_struct("StateLine").field("revision", &self.revision).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct UncompactLine {
    /// The revision of the uncompact.
    pub(crate) revision: u64,
    /// The revision of the undone record.
    pub(crate) made: u64,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct PruneLine {
    /// The revision of the prune.
    pub(crate) revision: u64,
    /// The last revision of the prune: messages that were hidden at this revision or before lose their texts.
    pub(crate) through: u64,
    /// Number of messages whose texts the prune deleted.
    pub(crate) messages: u64,
    /// Number of summaries whose texts the prune deleted.
    pub(crate) summaries: u64,
}

impl PruneLine {
    pub(crate) const fn of(pruned: Pruned) -> Self {
        let Pruned { revision, through, messages, summaries, .. } = pruned;
        Self { revision: revision.0, through: through.0, messages, summaries }
    }

    pub(crate) const fn pruned(self) -> Pruned {
        let mut pruned = Pruned::new(Revision(self.revision), Revision(self.through));
        (pruned.messages, pruned.summaries) = (self.messages, self.summaries);
        pruned
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CommitLine<'a> {
    /// The revision of the record.
    pub(crate) revision: u64,
    /// The record's id, in hexadecimal.
    pub(crate) id: String,
    /// The stored form of the record.
    #[serde(borrow)]
    pub(crate) record: &'a RawValue,
}

impl<'a> MessageLine<'a> {
    pub(crate) fn of(seq: u64, entry: &Entry, hidden_by: Option<u64>, message: &'a RawValue) -> Self {
        Self {
            seq,
            anchor: entry.anchor.0,
            turn: entry.turn.0,
            tokens: entry.count.tokens.0,
            basis: entry.count.basis,
            counter: entry.count.counter.clone(),
            part_tokens: entry.part_tokens.iter().map(|size| size.0).collect(),
            late: entry.late,
            orphan: entry.orphan,
            hidden_by,
            standing: None,
            message,
        }
    }

    /// Decodes the message, with its group and its size.
    pub(crate) fn entry(&self) -> Result<Entry, StoredError> {
        let message = stored::decode(self.message.get())?;
        let count = TokenCount::new(Tokens(self.tokens), self.basis, self.counter.clone());
        let mut entry = Entry::new(message, Seq(self.anchor), Turn(self.turn), count);
        (entry.late, entry.orphan) = (self.late, self.orphan);
        entry.part_tokens = self.part_tokens();
        Ok(entry)
    }

    fn part_tokens(&self) -> Vec<Tokens> {
        self.part_tokens.iter().copied().map(Tokens).collect()
    }
}

/// `line` as text.
pub(crate) fn encode(line: &Line<'_>) -> Result<String, StoreError> {
    serde_json::to_string(line).map_err(|_| unwritable())
}

/// A stored form as a part of a line.
pub(crate) fn raw(stored: String) -> Result<Box<RawValue>, StoreError> {
    RawValue::from_string(stored).map_err(|_| unwritable())
}

/// An internal error: every line has a JSON text.
fn unwritable() -> StoreError {
    StoreError::new(StoreErrorKind::Invalid, "what is to be stored has no text")
}

fn is_false(flag: &bool) -> bool {
    !flag
}
