//! Common parts of stores in tables: encoding and decoding of rows.

use epitome_core::attribution::SeqRange;
use epitome_core::{Basis, Head, Revision, Seq, Tokens, Turn};
use epitome_message::Str;

use super::bodies::{message, record};
use super::kernel::Counters;
use super::rules::{self, Restored, Standing, corrupt, not_storable};
use super::{
    Committed, Entry, Live, Loaded, LogPage, Logged, PartStandIn, RecordId, StoreError, Summary, Timestamp,
    TokenCount, UnansweredCall,
};
use crate::stored;

/// A row of the table of sessions.
#[derive(Debug, Clone, Copy)]
pub struct SessionRow {
    pub id: i64,
    pub counters: Counters,
}

/// A time as a database number.
pub fn stored_time(time: Option<Timestamp>) -> Option<i64> {
    time.map(|time| int(time.0))
}

/// A stored message or summary. It is decoded after the database operation, by the caller.
#[derive(Debug)]
pub struct MessageRow {
    pub key: Seq,
    pub hidden_by: Option<Revision>,
    pub anchor: Seq,
    pub turn: Turn,
    pub tokens: Tokens,
    pub basis: String,
    pub counter: String,
    pub late: bool,
    pub orphan: bool,
    pub body: Option<String>,
    /// Coverage of a summary; `None` for a message.
    pub covers: Option<String>,
    pub part_tokens: Option<String>,
    /// The revision of the latest record that shortened it.
    pub edited_by: Option<Revision>,
    pub edit: Option<EditRow>,
    /// The revision of the prune that deleted its text.
    pub pruned_by: Option<Revision>,
}

/// The stored stand-ins of a message.
#[derive(Debug)]
pub struct EditRow {
    pub tokens: Tokens,
    pub basis: String,
    pub counter: String,
    pub stand_ins: String,
}

impl EditRow {
    pub fn into_stand_ins(self) -> Result<(Vec<PartStandIn>, TokenCount), StoreError> {
        let unread = |error| corrupt("what stands in place of a part cannot be read").with_source(error);
        let stand_ins = stored::decode_stand_ins(&self.stand_ins).map_err(unread)?;
        Ok((stand_ins, count(self.tokens, &self.basis, self.counter)?))
    }

    /// Decodes the stand-ins, which the record of revision `by` set.
    pub fn into_restored(self, by: Revision) -> Result<Restored, StoreError> {
        let (stand_ins, count) = self.into_stand_ins()?;
        Ok(Restored { by, stand_ins, count })
    }
}

impl MessageRow {
    fn into_live(mut self) -> Result<Live, StoreError> {
        let (key, covered) = (self.key, self.covers.as_deref().map(covers).transpose()?);
        let edit = self.edit.take().map(EditRow::into_stand_ins).transpose()?;
        let entry = self.into_entry()?;
        Ok(match (covered, edit) {
            (Some(covers), _) => Live::summary(key, entry, covers),
            (None, Some((stand_ins, count))) => Live::shortened(key, entry, stand_ins, count),
            (None, None) => Live::new(key, entry),
        })
    }

    fn into_entry(self) -> Result<Entry, StoreError> {
        let place = self.key;
        let body = self.body.ok_or_else(|| corrupt(format!("the text of message {place} is missing")))?;
        let message = message(place, &body)?;
        let count = count(self.tokens, &self.basis, self.counter)?;
        let mut entry = Entry::new(message, self.anchor, self.turn, count);
        entry.late = self.late;
        entry.orphan = self.orphan;
        entry.part_tokens = self.part_tokens.as_deref().map(part_tokens).transpose()?.unwrap_or_default();
        Ok(entry)
    }
}

/// A live projection in stored form.
#[derive(Debug)]
pub struct StoredProjection {
    pub head: Head,
    pub revision: Revision,
    /// The rows, ordered by key.
    pub rows: Vec<MessageRow>,
    pub unanswered: Vec<UnansweredCall>,
}

impl StoredProjection {
    pub fn into_loaded(self) -> Result<Loaded, StoreError> {
        let mut loaded = Loaded::new(self.head, self.revision);
        loaded.unanswered = self.unanswered;
        loaded.live = self.rows.into_iter().map(MessageRow::into_live).collect::<Result<_, _>>()?;
        Ok(loaded)
    }
}

/// A page of the log in stored form.
#[derive(Debug)]
pub struct StoredPage {
    pub rows: Vec<MessageRow>,
    pub next: Option<Seq>,
}

impl StoredPage {
    pub fn into_page(self) -> Result<LogPage, StoreError> {
        let logged = |row: MessageRow| {
            let (seq, hidden_by) = (row.key, row.hidden_by);
            let (edited_by, pruned_by) = (row.edited_by, row.pruned_by);
            let mut logged = Logged::new(seq, row.into_entry()?, hidden_by);
            (logged.edited_by, logged.pruned_by) = (edited_by, pruned_by);
            Ok(logged)
        };
        let messages = self.rows.into_iter().map(logged).collect::<Result<_, StoreError>>()?;
        Ok(LogPage::new(messages, self.next))
    }
}

/// A record in stored form. Its summaries are in separate rows.
#[derive(Debug)]
pub struct StoredRecord {
    pub revision: Revision,
    pub id: RecordId,
    pub body: String,
    pub undone_by: Option<Revision>,
    pub summaries: Vec<StoredSummary>,
}

#[derive(Debug)]
pub struct StoredSummary {
    pub key: Seq,
    pub tokens: Tokens,
    pub basis: String,
    pub counter: String,
    pub body: String,
}

impl StoredRecord {
    pub fn into_committed(self) -> Result<Committed, StoreError> {
        let unread =
            |error| corrupt(format!("the record of {} cannot be read", self.revision)).with_source(error);
        let mut record = record(self.revision, &self.body)?;
        for summary in self.summaries {
            let message = stored::decode(&summary.body).map_err(unread)?;
            let count = count(summary.tokens, &summary.basis, summary.counter)?;
            record.summaries.push(Summary::new(summary.key, message, count));
        }
        rules::check_id(&record, self.id)?;
        Ok(Committed::new(self.revision, record).undone(self.undone_by))
    }
}

/// The stored form of a message after its text was pruned.
pub fn pruned(body: &str) -> Result<String, StoreError> {
    let unread = |error| corrupt("prune: a message cannot be read").with_source(error);
    let message = stored::decode(body).map_err(unread)?;
    stored::encode(&message.into_pruned()).map_err(not_storable)
}

/// The beginning of the last turn. `message` is the beginning of the last turn among the visible messages, `summary` is
/// that among the visible summaries.
pub fn last_turn_begins(message: Option<(Seq, Turn)>, summary: Option<(Seq, Turn)>, head: Head) -> Seq {
    match (message, summary) {
        // A summary has the turn of the messages that it covers, so the later turn of the two is the last one.
        (Some(message), Some(summary)) if message.1 == summary.1 => message.0.min(summary.0),
        (Some(message), Some(summary)) if message.1 > summary.1 => message.0,
        (_, Some(summary)) => summary.0,
        (Some(message), None) => message.0,
        (None, None) => head,
    }
}

/// Decodes a stored standing.
pub fn standing(number: i64) -> Result<Standing, StoreError> {
    let known = u64::try_from(number).ok().and_then(Standing::parse);
    known.ok_or_else(|| corrupt("the standing of a message is of an unknown kind"))
}

/// Decodes a stored token count.
pub fn count(tokens: Tokens, word: &str, counter: String) -> Result<TokenCount, StoreError> {
    let basis = basis(word).ok_or_else(|| corrupt("the count of a message is of an unknown kind"))?;
    Ok(TokenCount::new(tokens, basis, Str::from(counter)))
}

fn basis(word: &str) -> Option<Basis> {
    [Basis::Estimated, Basis::Counted, Basis::Reported].into_iter().find(|basis| basis.as_str() == word)
}

/// Encodes the sizes of a message's parts: `[1,2]`.
pub fn part_tokens_text(sizes: &[Tokens]) -> Option<String> {
    let sizes: Vec<String> = sizes.iter().map(|size| size.0.to_string()).collect();
    (!sizes.is_empty()).then(|| format!("[{}]", sizes.join(",")))
}

fn part_tokens(text: &str) -> Result<Vec<Tokens>, StoreError> {
    let sizes: Vec<u32> =
        serde_json::from_str(text).map_err(|_| corrupt("the sizes of a message's parts cannot be read"))?;
    Ok(sizes.into_iter().map(Tokens).collect())
}

/// Encodes the coverage of a summary: `[[first,last],..]`.
pub fn covers_text(ranges: &[SeqRange]) -> Result<String, StoreError> {
    let pairs: Vec<[u64; 2]> = ranges.iter().map(|range| [range.first.0, range.last.0]).collect();
    serde_json::to_string(&pairs).map_err(|_| rules::invalid("commit: the coverage cannot be written"))
}

/// Decodes the coverage of a summary.
pub fn covers(text: &str) -> Result<Vec<SeqRange>, StoreError> {
    let pairs: Vec<[u64; 2]> =
        serde_json::from_str(text).map_err(|_| corrupt("the coverage of a summary cannot be read"))?;
    Ok(pairs.into_iter().map(|[first, last]| SeqRange { first: Seq(first), last: Seq(last) }).collect())
}

/// A number as a database integer. A number that does not fit becomes the maximum, which no session reaches.
pub fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
