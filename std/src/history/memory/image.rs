//! A session of the store as bytes, exactly as it is.

use std::borrow::Cow;

use epitome_core::{Revision, Seq, Turn};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::{Counters, Kept, KeptSummary, Place, Places, Session, Slot, rules};
use crate::history::jsonl::{MessageLine, raw};
use crate::history::{
    AppendToken, Appended, Committed, CompactionRecord, Entry, KeptState, LoggedAppend, Pruned, RecordId,
    SessionId, StateRevision, StoreError, StoreErrorKind, Summary, Timestamp, UnansweredCall,
};
use crate::message::Str;
use crate::wire::stored;

/// What every image begins with, and the version of what follows.
const MAGIC: &str = "epitome-session 1 ";

/// How many bytes the checksum has as text: it is a SHA-256.
const SUM_BYTES: usize = 64;

/// What stands behind the checksum and the end of its line.
#[derive(Serialize, Deserialize)]
struct Image<'a> {
    /// The session's name: an image that was saved under another one is none of this.
    id: Cow<'a, str>,
    revision: u64,
    #[serde(borrow)]
    log: Vec<MessageLine<'a>>,
    appends: Vec<AppendImage>,
    records: Vec<RecordImage<'a>>,
    prunes: Vec<PruneImage>,
    unanswered: Vec<CallImage>,
    /// Raises no version: an earlier release kept none, and leaves it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state: Option<StateImage>,
}

#[derive(Serialize, Deserialize)]
struct AppendImage {
    token: Box<str>,
    first: u64,
    head: u64,
    /// The revision after it.
    revision: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    time: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct RecordImage<'a> {
    revision: u64,
    /// Of the record as it was committed, in hexadecimal: what was pruned of it since counts all the same.
    id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    undone_by: Option<u64>,
    /// For each of its summaries, the revision that hid it.
    hidden_by: Vec<Option<u64>>,
    /// Its stored form.
    #[serde(borrow)]
    record: &'a RawValue,
}

#[derive(Serialize, Deserialize)]
struct PruneImage {
    revision: u64,
    through: u64,
    messages: u64,
    summaries: u64,
    /// The messages of which it deleted what they said.
    pruned: Vec<u64>,
}

#[derive(Serialize, Deserialize)]
struct CallImage {
    id: Str,
    anchor: u64,
    turn: u32,
    ordinal: u32,
}

#[derive(Serialize, Deserialize)]
struct StateImage {
    revision: u64,
    head: u64,
    text: Box<str>,
}

impl Session {
    /// The session as bytes.
    pub(in crate::history) fn image(&self, id: &SessionId) -> Result<Vec<u8>, StoreError> {
        let data = self.data(id)?;
        let sum = sum(&data);
        Ok([MAGIC, sum.as_str(), "\n", data.as_str()].concat().into_bytes())
    }

    /// The session that [`Session::image`] gave the bytes of.
    ///
    /// # Errors
    /// `Corrupt` if they are not that.
    pub(in crate::history) fn of_image(id: &SessionId, bytes: &[u8]) -> Result<Self, StoreError> {
        let data = sealed(bytes).ok_or_else(|| corrupt("they are not as they were written"))?;
        let image: Image<'_> =
            serde_json::from_str(data).map_err(|_| corrupt("they are written by a later release"))?;
        if image.id != id.as_str() {
            return Err(corrupt("they are those of another session"));
        }
        Self::of(image)
    }
}

/// What the bytes of an image say, if their checksum is right.
fn sealed(bytes: &[u8]) -> Option<&str> {
    let rest = core::str::from_utf8(bytes).ok()?.strip_prefix(MAGIC)?;
    let (said, rest) = rest.split_at_checked(SUM_BYTES)?;
    let data = rest.strip_prefix('\n')?;
    (sum(data) == said).then_some(data)
}

fn sum(data: &str) -> String {
    let digest: [u8; 32] = Sha256::digest(data.as_bytes()).into();
    let halves = digest.first_chunk::<16>().zip(digest.last_chunk::<16>());
    halves.map_or_else(String::new, |(first, last)| {
        format!("{}{}", RecordId::from_bytes(*first), RecordId::from_bytes(*last))
    })
}

fn corrupt(why: &str) -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, format!("the saved bytes of a session: {why}"))
}

fn unreadable(error: stored::StoredError) -> StoreError {
    corrupt("a message or a record cannot be read").with_source(error)
}

impl Session {
    fn data(&self, id: &SessionId) -> Result<String, StoreError> {
        let message = |slot: &Slot| raw(stored::encode(&slot.entry.message).map_err(rules::not_storable)?);
        let messages: Vec<Box<RawValue>> = self.log.iter().map(message).collect::<Result<_, _>>()?;
        let record =
            |kept: &Kept| raw(stored::encode_record(&kept.committed.record).map_err(rules::not_storable)?);
        let records: Vec<Box<RawValue>> = self.records.iter().map(record).collect::<Result<_, _>>()?;
        let log = (0..).zip(&self.log).zip(&messages).map(|((seq, slot), message)| {
            MessageLine::of(seq, &slot.entry, slot.hidden_by.map(|by| by.0), message)
        });
        let image = Image {
            id: Cow::Borrowed(id.as_str()),
            revision: self.counters.revision.0,
            log: log.collect(),
            appends: self.appends.iter().map(AppendImage::of).collect(),
            records: self
                .records
                .iter()
                .zip(&records)
                .map(|(kept, text)| RecordImage::of(kept, text))
                .collect(),
            prunes: (1..)
                .zip(&self.prunes)
                .map(|(number, it)| PruneImage::of(it, number, &self.log))
                .collect(),
            unanswered: self.unanswered.values().map(CallImage::of).collect(),
            state: self.state.as_ref().map(StateImage::of),
        };
        serde_json::to_string(&image).map_err(|error| corrupt("they have no text").with_source(error))
    }

    fn of(image: Image<'_>) -> Result<Self, StoreError> {
        let mut session = Self::default();
        for line in &image.log {
            let (entry, hidden_by) = (line.entry().map_err(unreadable)?, line.hidden_by.map(Revision));
            session.log.push(Slot { entry, hidden_by, shortened: None, pruned: 0 });
        }
        for (number, append) in (0..).zip(image.appends) {
            let logged = append.into_logged();
            session.receipts.insert(logged.token.clone(), number);
            session.appends.push(logged);
        }
        let through = image.prunes.iter().map(|prune| Revision(prune.through)).max();
        for record in &image.records {
            let kept = session.read_record(record, through)?;
            session.records.push(kept);
        }
        let calls = image.unanswered.into_iter().map(CallImage::into_call);
        session.unanswered = calls.map(|call| ((call.anchor, call.ordinal), call)).collect();
        session.state = image.state.map(StateImage::into_kept);
        session.shorten();
        for (number, prune) in (1..).zip(image.prunes) {
            for seq in &prune.pruned {
                let slot =
                    session.slot_mut(Seq(*seq)).ok_or_else(|| corrupt("a pruned message is missing"))?;
                slot.prune(number);
            }
            session.prunes.push(prune.into_pruned());
        }
        session.show_all();
        session.count(Revision(image.revision))?;
        Ok(session)
    }

    /// The record with its summaries as entries. `pruned` is the latest revision through which the session was pruned: what
    /// that or an earlier one hides was there then. What a summary says tells nothing of it: one that was imported may be
    /// empty, and is still to be pruned.
    fn read_record(&self, image: &RecordImage<'_>, pruned: Option<Revision>) -> Result<Kept, StoreError> {
        let record = stored::decode_record(image.record.get()).map_err(unreadable)?;
        let id = RecordId::parse(&image.id).ok_or_else(|| corrupt("a record has no id"))?;
        rules::check_id(&record, id)?;
        let shown = self.summary_entries(&record).map_err(|_| corrupt("a summary stands nowhere"))?;
        if shown.len() != image.hidden_by.len() {
            return Err(corrupt("a summary is missing"));
        }
        let summary = |(entry, hidden_by): (Entry, &Option<u64>)| {
            let hidden_by = hidden_by.map(Revision);
            KeptSummary { entry, hidden_by, pruned: hidden_by.is_some() && hidden_by <= pruned }
        };
        let summaries = shown.into_iter().zip(&image.hidden_by).map(summary).collect();
        let mut committed = Committed::new(Revision(image.revision), record);
        committed.undone_by = image.undone_by.map(Revision);
        Ok(Kept { committed, id, summaries })
    }

    /// A summary is a group of its own, in the turn of the first message that it covers.
    fn summary_entries(&self, record: &CompactionRecord) -> Result<Vec<Entry>, StoreError> {
        let entry = |summary: &Summary| {
            let turn: Turn = self.slot(summary.key)?.entry.turn;
            Ok(Entry::new(summary.message.clone(), summary.key, turn, summary.count.clone()))
        };
        record.summaries.iter().map(entry).collect()
    }

    /// Puts in place of messages' parts what the records say.
    fn shorten(&mut self) {
        let held = self.held().map(|kept| &kept.committed);
        let edits = held.flat_map(|it| it.record.edits.iter().map(|edit| (it.revision, edit)));
        let edits: Vec<_> = edits.map(|(by, edit)| (by, edit.clone())).collect();
        let wanted = edits.iter().map(|(_, edit)| edit.seq).collect();
        let restored = rules::restored_edits(&wanted, edits.iter().map(|(by, edit)| (*by, edit)));
        for (seq, restored) in restored {
            if let Some(slot) = self.slot_mut(seq) {
                slot.shortened = Some(Box::new(restored));
            }
        }
    }

    /// What is visible follows from what is hidden.
    fn show_all(&mut self) {
        let log = (0..).map(Seq).zip(&self.log);
        let shown = log.filter(|(_, slot)| slot.hidden_by.is_none() && !slot.entry.orphan);
        let mut live = Places::default();
        shown.for_each(|(seq, _)| live.insert(seq, Place::Log));
        for (record, kept) in (0..).zip(&self.records) {
            for (summary, it) in (0..).zip(&kept.summaries).filter(|(_, it)| it.hidden_by.is_none()) {
                live.insert(it.entry.anchor, Place::Summary { record, summary });
            }
        }
        self.live = live;
    }

    /// Counts anew.
    fn count(&mut self, revision: Revision) -> Result<(), StoreError> {
        let visible = self.visible()?;
        let (live_messages, live_tokens) = rules::live(&visible.messages, &visible.summaries);
        let created = self.appends.iter().find_map(|logged| logged.time);
        let appended = self.appends.last().and_then(|last| last.time);
        let head = self.head();
        self.counters = Counters { head, revision, live_messages, live_tokens, created, appended };
        Ok(())
    }
}

impl AppendImage {
    fn of(logged: &LoggedAppend) -> Self {
        let Appended { first, head, revision } = logged.appended;
        let (token, time) = (logged.token.as_str().into(), logged.time.map(|time| time.0));
        Self { token, first: first.0, head: head.0, revision: revision.0, time }
    }

    fn into_logged(self) -> LoggedAppend {
        let appended = Appended::new(Seq(self.first), Seq(self.head), Revision(self.revision));
        LoggedAppend::new(AppendToken::new(self.token), appended, self.time.map(Timestamp))
    }
}

impl<'a> RecordImage<'a> {
    fn of(kept: &Kept, record: &'a RawValue) -> Self {
        Self {
            revision: kept.committed.revision.0,
            id: kept.id.to_string(),
            undone_by: kept.committed.undone_by.map(|by| by.0),
            hidden_by: kept.summaries.iter().map(|it| it.hidden_by.map(|by| by.0)).collect(),
            record,
        }
    }
}

impl PruneImage {
    fn of(pruned: &Pruned, number: u32, log: &[Slot]) -> Self {
        let Pruned { revision, through, messages, summaries } = *pruned;
        let gone = (0..).zip(log).filter(|(_, slot)| slot.pruned == number).map(|(seq, _)| seq).collect();
        Self { revision: revision.0, through: through.0, messages, summaries, pruned: gone }
    }

    fn into_pruned(self) -> Pruned {
        let mut pruned = Pruned::new(Revision(self.revision), Revision(self.through));
        (pruned.messages, pruned.summaries) = (self.messages, self.summaries);
        pruned
    }
}

impl CallImage {
    fn of(call: &UnansweredCall) -> Self {
        Self { id: call.id.clone(), anchor: call.anchor.0, turn: call.turn.0, ordinal: call.ordinal }
    }

    fn into_call(self) -> UnansweredCall {
        UnansweredCall::new(self.id, Seq(self.anchor), Turn(self.turn), self.ordinal)
    }
}

impl StateImage {
    fn of(kept: &KeptState) -> Self {
        Self { revision: kept.revision.0, head: kept.head.0, text: kept.text.clone() }
    }

    fn into_kept(self) -> KeptState {
        KeptState::new(StateRevision(self.revision), Seq(self.head), self.text)
    }
}
