//! A session of the memory store as bytes, without any loss, in the lines of [`line`](crate::line).

use std::borrow::Cow;

use epitome_message::Str;

use epitome_core::{Revision, Seq, Turn};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::{Counters, Kept, KeptSummary, Place, Places, Session, Slot, rules};
use crate::files::hex;
use crate::line::{AppendLine, CommitLine, MessageLine, PruneLine, StateLine, raw};
use crate::stored;
use crate::{
    Committed, CompactionRecord, Entry, RecordId, SessionId, StoreError, StoreErrorKind, Summary,
    UnansweredCall,
};

/// Beginning of every image, with the version of the format.
const MAGIC: &str = "epitome-session 2 ";

/// Beginning of images of an earlier version, which this release does not read.
const EARLIER: &[u8] = b"epitome-session 1 ";

/// Length of the checksum as text, in bytes. It is a SHA-256.
const SUM_BYTES: usize = 64;

/// The content of an image, after the line of the checksum.
#[derive(Serialize, Deserialize)]
struct Image<'a> {
    /// The id of the session. An image that was saved for another session is refused.
    id: Cow<'a, str>,
    revision: u64,
    #[serde(borrow)]
    log: Vec<MessageLine<'a>>,
    appends: Vec<AppendLine>,
    #[serde(borrow)]
    records: Vec<RecordImage<'a>>,
    /// The prunes, each with the messages whose texts it deleted.
    prunes: Vec<(PruneLine, Vec<u64>)>,
    unanswered: Vec<CallImage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state: Option<StateLine>,
}

#[derive(Serialize, Deserialize)]
struct RecordImage<'a> {
    /// The current record. The id is that of the committed record: texts that were pruned since are still included in
    /// it.
    #[serde(borrow)]
    line: CommitLine<'a>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    undone_by: Option<u64>,
    /// For each of its summaries, the revision that hid it.
    hidden_by: Vec<Option<u64>>,
}

#[derive(Serialize, Deserialize)]
struct CallImage {
    id: Str,
    anchor: u64,
    turn: u32,
    ordinal: u32,
}

impl Session {
    /// Encodes the session as bytes.
    pub(crate) fn image(&self, id: &SessionId) -> Result<Vec<u8>, StoreError> {
        let data = self.data(id)?;
        let sum = hex(&Sha256::digest(data.as_bytes()));
        Ok([MAGIC, sum.as_str(), "\n", data.as_str()].concat().into_bytes())
    }

    /// Decodes the bytes of [`Session::image`].
    ///
    /// # Errors
    /// `Corrupt` if the bytes are not the image of this session.
    pub(crate) fn of_image(id: &SessionId, bytes: &[u8]) -> Result<Self, StoreError> {
        if bytes.starts_with(EARLIER) {
            return Err(corrupt("they are written by an earlier release"));
        }
        let data = sealed(bytes).ok_or_else(|| corrupt("they are not as they were written"))?;
        let image: Image<'_> =
            serde_json::from_str(data).map_err(|_| corrupt("they are written by a later release"))?;
        if image.id != id.as_str() {
            return Err(corrupt("they are those of another session"));
        }
        Self::of(image)
    }
}

/// The content of an image; `None` if its checksum is wrong.
fn sealed(bytes: &[u8]) -> Option<&str> {
    let rest = core::str::from_utf8(bytes).ok()?.strip_prefix(MAGIC)?;
    let (said, rest) = rest.split_at_checked(SUM_BYTES)?;
    let data = rest.strip_prefix('\n')?;
    (hex(&Sha256::digest(data.as_bytes())) == said).then_some(data)
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
            appends: self
                .appends
                .iter()
                .map(|logged| AppendLine::of(&logged.token, logged.appended, logged.time))
                .collect(),
            records: self
                .records
                .iter()
                .zip(&records)
                .map(|(kept, text)| RecordImage::of(kept, text))
                .collect(),
            prunes: (1..)
                .zip(&self.prunes)
                .map(|(number, pruned)| (PruneLine::of(*pruned), self.gone_by(number)))
                .collect(),
            unanswered: self.unanswered.values().map(CallImage::of).collect(),
            state: self.state.as_ref().map(|kept| StateLine::of(kept.revision, kept.head, &kept.text)),
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
        let through = image.prunes.iter().map(|(prune, _)| Revision(prune.through)).max();
        for record in &image.records {
            let kept = session.read_record(record, through)?;
            session.records.push(kept);
        }
        let calls = image.unanswered.into_iter().map(CallImage::into_call);
        session.unanswered = calls.map(|call| ((call.anchor, call.ordinal), call)).collect();
        session.state = image.state.map(StateLine::into_kept);
        session.shorten();
        for (number, (prune, gone)) in (1..).zip(image.prunes) {
            for seq in gone {
                let slot =
                    session.slot_mut(Seq(seq)).ok_or_else(|| corrupt("a pruned message is missing"))?;
                slot.prune(number);
            }
            session.prunes.push(prune.pruned());
        }
        session.show_all();
        session.count(Revision(image.revision))?;
        Ok(session)
    }

    /// The record with its summaries as entries. `pruned` is the latest revision through which the session was pruned.
    /// A summary that was hidden at this revision or before is pruned. The text of the summary does not show it,
    /// because an imported summary may be empty and not yet pruned.
    fn read_record(&self, image: &RecordImage<'_>, pruned: Option<Revision>) -> Result<Kept, StoreError> {
        let record = stored::decode_record(image.line.record.get()).map_err(unreadable)?;
        let id = RecordId::parse(&image.line.id).ok_or_else(|| corrupt("a record has no id"))?;
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
        let mut committed = Committed::new(Revision(image.line.revision), record);
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

    /// Applies the stand-ins of the records to the messages.
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

    /// Builds the list of visible messages and summaries from the ones that are not hidden.
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

    /// The messages whose texts the prune with this number deleted.
    fn gone_by(&self, number: u32) -> Vec<u64> {
        (0..).zip(&self.log).filter(|(_, slot)| slot.pruned == number).map(|(seq, _)| seq).collect()
    }

    /// Computes the counters.
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

impl<'a> RecordImage<'a> {
    fn of(kept: &Kept, record: &'a RawValue) -> Self {
        let (revision, id) = (kept.committed.revision.0, kept.id.to_string());
        Self {
            line: CommitLine { revision, id, record },
            undone_by: kept.committed.undone_by.map(|by| by.0),
            hidden_by: kept.summaries.iter().map(|it| it.hidden_by.map(|by| by.0)).collect(),
        }
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
