//! Reads a session: the visible messages, the log, records, prunes, appends and the state. It writes nothing, except to
//! finish an interrupted deletion.

use core::ops::Range;
use std::collections::{BTreeMap, BTreeSet};

use epitome_core::attribution::SeqRange;
use epitome_core::{Revision, Seq, Turn};
use epitome_history::kernel::{Extent, SummaryPlace, runs};
use epitome_history::rules::{self, Restored};
use epitome_history::tail::last_turn;
use epitome_history::{
    AppendToken, Appended, Committed, Entry, KeptState, Live, Loaded, LogPage, Logged, LoggedAppend, Pruned,
    RecordId, StateRevision, StoreError, Summary, UnansweredCall, bodies,
};

use crate::delete;
use crate::failure::{lost, unread};
use crate::ids::{SESSION_ID, STATE_ID, append_id, record_id, stand_ins_id};
use crate::items::{
    AppendItem, Found, LAYOUT, PruneItem, RecordItem, Row, Session, StandInRow, StandInsItem, StateItem,
    SummaryRow, read_calls, read_list,
};
use crate::members::Members;
use crate::requests::Partition;

/// A session as it was read, with its etag.
pub(crate) struct Opened {
    pub(crate) etag: String,
    pub(crate) session: Session,
}

/// Reads the session, if it exists. If a deletion of the session was interrupted, finishes the deletion first.
pub(crate) async fn open(partition: &Partition) -> Result<Option<Opened>, StoreError> {
    let found: Option<Found<serde_json::Value>> = partition.item(SESSION_ID).await?;
    let Some(Found { etag, fields, .. }) = found else { return Ok(None) };
    if fields.get("epitome").and_then(serde_json::Value::as_str) == Some("deleted") {
        delete::finish(partition, etag).await?;
        return Ok(None);
    }
    let session: Session = serde_json::from_value(fields).map_err(|_| unread("the session"))?;
    if session.layout != LAYOUT {
        let context = format!(
            "open: a newer version has written here (layout {}, this one has {LAYOUT})",
            session.layout
        );
        return Err(rules::invalid(context));
    }
    if session.name != partition.session.as_str() {
        return Err(unread("the name of the session"));
    }
    Ok(Some(Opened { etag, session }))
}

/// Reads the session; `NotFound` if it does not exist.
pub(crate) async fn opened(partition: &Partition) -> Result<Opened, StoreError> {
    open(partition).await?.ok_or_else(|| rules::not_found(partition.operation()))
}

impl Partition {
    pub(crate) async fn visible(&self, session: &Session) -> Result<Members, StoreError> {
        Members::parse(&self.text(&session.visible).await?)
    }

    pub(crate) async fn unanswered(&self, session: &Session) -> Result<Vec<UnansweredCall>, StoreError> {
        read_calls(&self.text(&session.unanswered).await?)
    }

    /// The messages of these ranges, with these fields. A staged message counts only if an append has its stage.
    pub(crate) async fn rows(
        &self,
        fields: &str,
        ranges: &[(Seq, Seq)],
    ) -> Result<BTreeMap<Seq, Found<Row>>, StoreError> {
        let condition =
            |first, last| format!("c.epitome = 'message' AND c.seq >= {first} AND c.seq <= {last}");
        let rows: Vec<Found<Row>> = self.in_ranges(fields, ranges, condition).await?;
        let stages: BTreeSet<&str> = rows.iter().filter_map(|row| row.fields.stage.as_deref()).collect();
        let mut known = BTreeSet::new();
        for stages in stages.into_iter().collect::<Vec<_>>().chunks(50) {
            let stages: Vec<String> = stages.iter().map(|stage| format!("'{stage}'")).collect();
            let query = format!(
                "SELECT VALUE c.stage FROM c WHERE c.epitome = 'append' AND c.stage IN ({})",
                stages.join(", ")
            );
            known.extend(self.query::<String>(&query, usize::MAX).await?);
        }
        let counts = |row: &Found<Row>| row.fields.stage.as_ref().is_none_or(|stage| known.contains(stage));
        Ok(rows.into_iter().filter(counts).map(|row| (Seq(row.fields.seq), row)).collect())
    }

    /// The records that hide one of these messages, in the order of their revisions, each with all its hidden and
    /// pruned members.
    pub(crate) async fn hiding(
        &self,
        ranges: &[(Seq, Seq)],
    ) -> Result<Vec<(Found<RecordItem>, Members)>, StoreError> {
        let condition =
            |first, last| format!("c.epitome = 'record' AND c.first_seq <= {last} AND c.last_seq >= {first}");
        let records: Vec<Found<RecordItem>> = self.in_ranges("*", ranges, condition).await?;
        // A record that matches several ranges was found several times.
        let records: BTreeMap<u64, Found<RecordItem>> =
            records.into_iter().map(|record| (record.fields.revision, record)).collect();
        let mut hiding = Vec::with_capacity(records.len());
        for record in records.into_values() {
            let mut members = Members::parse(&self.text(&record.fields.hidden).await?)?;
            members.merge(Members::parse(&self.text(&record.fields.pruned).await?)?);
            hiding.push((record, members));
        }
        Ok(hiding)
    }

    /// The stand-ins of the messages of `members` that are wanted.
    pub(crate) async fn stand_ins(
        &self,
        members: &Members,
        is_wanted: impl Fn(Seq) -> bool,
    ) -> Result<BTreeMap<Seq, Restored>, StoreError> {
        let wanted: Vec<_> = members.edited.iter().filter(|edited| is_wanted(edited.seq)).collect();
        let places: BTreeSet<Revision> = wanted.iter().map(|edited| edited.kept_by).collect();
        let mut found = BTreeMap::new();
        for place in places {
            let item: Option<Found<StandInsItem>> = self.item(&stand_ins_id(place)).await?;
            let item = item.ok_or_else(|| lost("what stands in messages"))?;
            let rows: Vec<StandInRow> =
                read_list(&self.text(&item.fields.rows).await?, "what stands in messages")?;
            for row in rows {
                let seq = Seq(row.seq);
                if is_wanted(seq) && members.shortened(seq).is_some_and(|edited| edited.kept_by == place) {
                    found.insert(seq, row.restored()?);
                }
            }
        }
        match wanted.iter().find(|edited| !found.contains_key(&edited.seq)) {
            Some(edited) => Err(lost(&format!("what stands in message {}", edited.seq))),
            None => Ok(found),
        }
    }

    pub(crate) async fn record(&self, revision: Revision) -> Result<Option<Found<RecordItem>>, StoreError> {
        self.item(&record_id(revision)).await
    }

    /// The summaries at these places, in their order.
    pub(crate) async fn summaries(
        &self,
        places: &[SummaryPlace],
    ) -> Result<Vec<(SummaryPlace, SummaryRow)>, StoreError> {
        let made: BTreeSet<Revision> = places.iter().map(|place| place.made).collect();
        let mut rows = Vec::new();
        for made in made {
            let record = self.record(made).await?.ok_or_else(|| lost(&format!("the record of {made}")))?;
            for row in self.summary_rows(&record.fields).await? {
                rows.push((SummaryPlace { made, key: Seq(row.key) }, row));
            }
        }
        let row = |place: &SummaryPlace| {
            let row = rows.iter().find(|(of, _)| of == place).cloned();
            row.ok_or_else(|| lost(&format!("the summary {}", place.key)))
        };
        places.iter().map(row).collect()
    }

    pub(crate) async fn summary_rows(&self, record: &RecordItem) -> Result<Vec<SummaryRow>, StoreError> {
        read_list(&self.text(&record.summaries).await?, "the summaries of a record")
    }
}

/// The ranges of the last `many` visible messages.
fn last_of(members: &Members, many: u64) -> Vec<(Seq, Seq)> {
    let mut left = many;
    let mut ranges = Vec::new();
    for (first, last) in members.runs().iter().rev() {
        let begin = Seq(last.0.saturating_sub(left.saturating_sub(1)).max(first.0));
        ranges.push((begin, *last));
        left = left.saturating_sub(last.0.saturating_sub(begin.0).saturating_add(1));
        if left == 0 {
            break;
        }
    }
    ranges.reverse();
    ranges
}

/// Reads the session and passes it to `read`. If `read` fails and the session has changed meanwhile, tries again.
async fn steady<T, F>(partition: &Partition, read: impl Fn(Session) -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    for _ in 0..ROUNDS_MAX {
        let found = opened(partition).await?;
        match read(found.session).await {
            Ok(answer) => return Ok(answer),
            Err(error) => match open(partition).await? {
                Some(now) if now.etag == found.etag => return Err(error),
                _ => {}
            },
        }
    }
    Err(partition.unavailable("the session changes all the time; try again"))
}

pub(crate) async fn load(partition: &Partition, extent: Extent) -> Result<Loaded, StoreError> {
    steady(partition, |session| async move { projection(partition, &session, extent).await }).await
}

/// The visible messages and summaries of a session.
pub(crate) async fn projection(
    partition: &Partition,
    session: &Session,
    extent: Extent,
) -> Result<Loaded, StoreError> {
    let visible = partition.visible(session).await?;
    let summaries = partition.summaries(&visible.summaries).await?;
    let mut many = match extent {
        Extent::All => u64::MAX,
        Extent::LastTurn => TAIL_MESSAGES,
    };
    let (ranges, rows) = loop {
        let ranges = if many >= visible.len() { visible.runs().to_vec() } else { last_of(&visible, many) };
        let rows = partition.rows("*", &ranges).await?;
        if many >= visible.len() || has_turn(&rows, &summaries, &ranges) {
            break (ranges, rows);
        }
        many = many.saturating_mul(8);
    };
    let begins = ranges.first().map_or(Seq(0), |(first, _)| *first);
    let is_whole = ranges == visible.runs();
    let stand_ins = partition.stand_ins(&visible, |seq| is_whole || seq >= begins).await?;
    let mut loaded = Loaded::new(Seq(session.head), Revision(session.revision));
    for seq in ranges.iter().flat_map(|(first, last)| first.0..=last.0).map(Seq) {
        let row =
            rows.get(&seq).filter(|row| row.fields.life == session.life && row.fields.pruned_by.is_none());
        let row = row.ok_or_else(|| lost(&format!("message {seq}")))?;
        let entry = row.fields.entry(&partition.text(&row.fields.text).await?)?;
        loaded.live.push(match stand_ins.get(&seq) {
            Some(restored) => Live::shortened(seq, entry, restored.stand_ins.clone(), restored.count.clone()),
            None => Live::new(seq, entry),
        });
    }
    for (place, row) in summaries.iter().filter(|(place, _)| is_whole || place.key >= begins) {
        let message = bodies::message(place.key, &row.text)?;
        let entry = Entry::new(message, place.key, Turn(row.turn), row.count.read());
        loaded.live.push(Live::summary(place.key, entry, covers(row)));
    }
    loaded.live.sort_by_key(|live| live.key);
    loaded.unanswered = partition.unanswered(session).await?;
    Ok(loaded)
}

/// Whether the last turn begins within these ranges, and not before them.
fn has_turn(
    rows: &BTreeMap<Seq, Found<Row>>,
    summaries: &[(SummaryPlace, SummaryRow)],
    ranges: &[(Seq, Seq)],
) -> bool {
    let begins = ranges.first().map_or(Seq(0), |(first, _)| *first);
    let message = |(seq, row): (&Seq, &Found<Row>)| (*seq, Turn(row.fields.turn), row.fields.late);
    let mut all: Vec<(Seq, Turn, bool)> = rows.iter().map(message).collect();
    let summaries = summaries.iter().filter(|(place, _)| place.key >= begins);
    all.extend(summaries.map(|(place, row)| (place.key, Turn(row.turn), false)));
    all.sort_unstable_by_key(|(key, ..)| core::cmp::Reverse(*key));
    let turns: BTreeSet<Turn> = all.iter().filter(|(.., late)| !late).map(|(_, turn, _)| *turn).collect();
    turns.len() > 1 && last_turn(all.into_iter()).is_some()
}

pub(crate) fn covers(row: &SummaryRow) -> Vec<SeqRange> {
    let range = |[first, last]: &[u64; 2]| SeqRange { first: Seq(*first), last: Seq(*last) };
    row.covers.iter().map(range).collect()
}

pub(crate) async fn log(partition: &Partition, range: Range<Seq>, limit: u32) -> Result<LogPage, StoreError> {
    let page = |session| {
        let range = range.clone();
        async move { page(partition, &session, range, limit).await }
    };
    steady(partition, page).await
}

async fn page(
    partition: &Partition,
    session: &Session,
    range: Range<Seq>,
    limit: u32,
) -> Result<LogPage, StoreError> {
    let end =
        range.end.0.min(session.head).min(range.start.0.saturating_add(limit.min(PAGE_MESSAGES_MAX).into()));
    if end <= range.start.0 {
        return Ok(LogPage::new(Vec::new(), rules::next_page(range.start, range.end, Seq(session.head))));
    }
    let ranges = [(range.start, Seq(end.saturating_sub(1)))];
    let rows = partition.rows("*", &ranges).await?;
    let (visible, hiding) = (partition.visible(session).await?, partition.hiding(&ranges).await?);
    let mut messages = Vec::with_capacity(rows.len());
    for seq in (range.start.0..end).map(Seq) {
        let row = rows.get(&seq).filter(|row| row.fields.life == session.life);
        let row = row.ok_or_else(|| lost(&format!("message {seq}")))?;
        let hidden_by = hiding.iter().find(|(_, members)| members.contains(seq));
        let entry = row.fields.entry(&partition.text(&row.fields.text).await?)?;
        let mut logged =
            Logged::new(seq, entry, hidden_by.map(|(record, _)| Revision(record.fields.revision)));
        let members = hidden_by.map_or(&visible, |(_, members)| members);
        logged.edited_by = members.shortened(seq).map(|edited| edited.by);
        logged.pruned_by = row.fields.pruned_by.map(Revision);
        messages.push(logged);
    }
    Ok(LogPage::new(messages, rules::next_page(Seq(end), range.end, Seq(session.head))))
}

pub(crate) async fn records(
    partition: &Partition,
    after: Option<Revision>,
    limit: u32,
) -> Result<Vec<Committed>, StoreError> {
    steady(partition, |_| committed(partition, after, limit)).await
}

async fn committed(
    partition: &Partition,
    after: Option<Revision>,
    limit: u32,
) -> Result<Vec<Committed>, StoreError> {
    let records: Vec<Found<RecordItem>> = after_revision(partition, "record", after, limit).await?;
    let mut committed = Vec::with_capacity(records.len());
    for Found { fields, .. } in records {
        let revision = Revision(fields.revision);
        let mut record = bodies::record(revision, &partition.text(&fields.body).await?)?;
        for row in partition.summary_rows(&fields).await? {
            let message = bodies::message(Seq(row.key), &row.text)?;
            record.summaries.push(Summary::new(Seq(row.key), message, row.count.read()));
        }
        rules::check_id(&record, read_record_id(&fields)?)?;
        committed.push(Committed::new(revision, record).undone(fields.undone_by.map(Revision)));
    }
    Ok(committed)
}

pub(crate) fn read_record_id(record: &RecordItem) -> Result<RecordId, StoreError> {
    RecordId::parse(&record.record_id).ok_or_else(|| unread("the id of a record"))
}

async fn after_revision<T: serde::de::DeserializeOwned + Send + 'static>(
    partition: &Partition,
    kind: &str,
    after: Option<Revision>,
    limit: u32,
) -> Result<Vec<Found<T>>, StoreError> {
    // No change has the revision 0. A number that is too large for the service is larger than any revision.
    let after = after.unwrap_or_default().0.min(NUMBER_MAX);
    let query =
        format!("SELECT * FROM c WHERE c.epitome = '{kind}' AND c.revision > {after} ORDER BY c.revision");
    partition.query(&query, usize::try_from(limit).unwrap_or(usize::MAX)).await
}

pub(crate) async fn prunes(
    partition: &Partition,
    after: Option<Revision>,
    limit: u32,
) -> Result<Vec<Pruned>, StoreError> {
    opened(partition).await?;
    let prunes: Vec<Found<PruneItem>> = after_revision(partition, "prune", after, limit).await?;
    Ok(prunes.iter().map(|prune| prune.fields.read()).collect())
}

pub(crate) async fn appends(
    partition: &Partition,
    from: Seq,
    limit: u32,
) -> Result<Vec<LoggedAppend>, StoreError> {
    opened(partition).await?;
    let from = from.0.min(NUMBER_MAX);
    let query =
        format!("SELECT * FROM c WHERE c.epitome = 'append' AND c.until > {from} ORDER BY c.first_seq");
    let appends: Vec<Found<AppendItem>> =
        partition.query(&query, usize::try_from(limit).unwrap_or(usize::MAX)).await?;
    let logged = |append: Found<AppendItem>| {
        let (appended, time) = (append.fields.appended(), append.fields.time()?);
        Ok(LoggedAppend::new(AppendToken::new(append.fields.token), appended, time))
    };
    appends.into_iter().map(logged).collect()
}

pub(crate) async fn appended(
    partition: &Partition,
    token: &AppendToken,
) -> Result<Option<Appended>, StoreError> {
    if open(partition).await?.is_none() {
        return Ok(None);
    }
    let found: Option<Found<AppendItem>> = partition.item(&append_id(token)).await?;
    Ok(found.map(|append| append.fields.appended()))
}

pub(crate) async fn state(partition: &Partition) -> Result<Option<KeptState>, StoreError> {
    let read = |_| async {
        let Some(state) = partition.item::<StateItem>(STATE_ID).await? else { return Ok(None) };
        let text = partition.text(&state.fields.text).await?;
        Ok(Some(KeptState::new(StateRevision(state.fields.revision), Seq(state.fields.head), text.into())))
    };
    steady(partition, read).await
}

/// Converts ascending sequence numbers to ranges.
pub(crate) fn ranges(seqs: &[Seq]) -> Vec<(Seq, Seq)> {
    runs(seqs).collect()
}

/// Maximum number of repeated reads of a session that changes.
const ROUNDS_MAX: u32 = 32;

/// Initial number of messages that are read to find the last turn.
const TAIL_MESSAGES: u64 = 32;

/// Maximum number of messages of a page of the log.
const PAGE_MESSAGES_MAX: u32 = 10_000;

/// Numbers up to this one are exact in the service.
pub(crate) const NUMBER_MAX: u64 = 1 << 52;
