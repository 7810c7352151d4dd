//! The facts of a session, and the changes that are written only if it has not moved since.

use std::collections::{BTreeMap, BTreeSet};

use epitome_core::{Revision, Seq, Tokens, Turn};
use epitome_history::bodies::Texts;
use epitome_history::files::hex;
use epitome_history::kernel::{
    self, Attempt, Changes, Edited, Facts, Insert, Made, Needs, NewRecord, OwnedOp, Prunable, Prune, Reply,
    SummaryPlace, Transaction, Visible,
};
use epitome_history::rules::{Anchor, Standing, VisibleMessage, VisibleSummary, corrupt, invalid};
use epitome_history::{MessageEdit, StateRevision, StoreError, bodies};

use crate::failure::lost;
use crate::items::{
    AppendItem, Count, Found, Kind, PruneItem, RecordItem, Row, SESSION_ID, STATE_ID, Session, StandInRow,
    StandInsItem, StateItem, SummaryRow, append_id, calls_text, item, list_text, prune_id, record_id, row_id,
    stand_ins_id,
};
use crate::members::{Members, Shortened};
use crate::prune;
use crate::read::{self, NUMBER_MAX, Opened, covers, open, ranges};
use crate::requests::{Change, Partition, Written};
use crate::write::{BATCH_BYTES_MAX, CHANGES_MAX, Draft, TEXT_BYTES_MAX};

/// An operation with everything about it that can be made before it is sent.
pub(crate) struct Job {
    pub(crate) partition: Partition,
    op: OwnedOp,
    texts: Texts,
    digest: String,
}

impl Job {
    pub(crate) fn new(partition: Partition, op: kernel::Op<'_>) -> Result<Self, StoreError> {
        let texts = Texts::of(&op)?;
        let digest = hex(&texts.digest);
        Ok(Self { partition, op: OwnedOp::of(op), texts, digest })
    }

    pub(crate) async fn run(&self) -> Result<Reply, StoreError> {
        let mut survey = Survey {
            job: self,
            opened: None,
            visible: Members::default(),
            records: BTreeMap::new(),
            state: None,
            moved: 0,
        };
        kernel::run(&self.op.as_op(), &mut survey).await
    }
}

/// A session while an operation on it is decided.
struct Survey<'a> {
    job: &'a Job,
    /// As it was found first. Every change of the session is one of this item.
    opened: Option<Opened>,
    visible: Members,
    /// The records that hide a group of an append, or that is to be undone.
    records: BTreeMap<Revision, Found<RecordItem>>,
    state: Option<Found<StateItem>>,
    /// How often the session had moved when the changes were to be written.
    moved: u32,
}

impl Transaction for Survey<'_> {
    type Error = StoreError;

    async fn facts(&mut self, needs: &Needs<'_>, facts: &mut Facts) -> Result<Attempt, StoreError> {
        let partition = &self.job.partition;
        let is_first = facts.session.is_none();
        if is_first {
            // A token that is new when it is looked for is created by the batch, or the batch fails.
            let token = needs.receipt.map(|(token, _)| append_id(token));
            let receipt = async {
                match &token {
                    Some(id) => partition.item::<AppendItem>(id).await,
                    None => Ok(None),
                }
            };
            let (opened, found) = futures::future::try_join(prune::finished(partition), receipt).await?;
            facts.receipt = found.filter(|_| opened.is_some()).map(|append| kernel::Receipt {
                appended: append.fields.appended(),
                said: append.fields.compared(&self.job.digest),
            });
            self.opened = opened;
            self.records.clear();
            self.state = None;
            self.visible = match &self.opened {
                Some(opened) => partition.visible(&opened.session).await?,
                None => Members::default(),
            };
        }
        let Some(opened) = &self.opened else { return Ok(Attempt::Done) };
        facts.session = Some(opened.session.counters()?);
        match self.more(needs, facts).await {
            Ok(()) => Ok(Attempt::Done),
            // It has moved, or it is damaged.
            Err(error) => match open(&self.job.partition).await? {
                Some(now) if self.opened.as_ref().is_some_and(|opened| opened.etag == now.etag) => Err(error),
                _ => Ok(Attempt::Moved),
            },
        }
    }

    async fn apply(&mut self, changes: &Changes<'_>) -> Result<Attempt, StoreError> {
        let partition = &self.job.partition;
        let draft = self.draft(changes).await?;
        Ok(match draft.write(partition).await? {
            Written::Moved => {
                self.moved = self.moved.saturating_add(1);
                partition.step_aside(self.moved).await;
                Attempt::Moved
            }
            Written::Done(_) => {
                if changes.pruned.is_some() {
                    prune::finished(partition).await?;
                }
                Attempt::Done
            }
        })
    }

    async fn confirm(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

impl Survey<'_> {
    fn session(&self) -> Option<&Session> {
        self.opened.as_ref().map(|opened| &opened.session)
    }

    async fn more(&mut self, needs: &Needs<'_>, facts: &mut Facts) -> Result<(), StoreError> {
        let partition = &self.job.partition;
        if !needs.anchors.is_empty() {
            self.anchors(&needs.anchors, facts).await?;
        }
        if let (Some(extent), Some(session)) = (needs.projection, self.session()) {
            facts.projection = Some((extent, read::projection(partition, session, extent).await?.of(extent)));
        }
        if let (true, Some(session)) = (needs.calls, self.session()) {
            facts.calls = Some(partition.unanswered(session).await?);
        }
        if needs.state || needs.state_text {
            self.state = partition.item(STATE_ID).await?;
            facts.state = StateRevision(self.state.as_ref().map_or(0, |state| state.fields.revision));
        }
        if needs.state_text {
            facts.state_text = Some(match &self.state {
                Some(state) => partition.text(&state.fields.text).await?.into(),
                None => Box::default(),
            });
        }
        if let Some(revision) = needs.record_id {
            let record = partition.record(revision).await?;
            facts.record_id = record.map(|record| read::read_record_id(&record.fields)).transpose()?;
        }
        if needs.visible {
            facts.visible = seen(partition, &self.visible).await?;
        }
        if !needs.edited.is_empty() {
            facts.edited = self.edited(&needs.edited).await?;
        }
        if !needs.turns.is_empty() {
            let rows = partition.rows(NUMBERS, &ranges(&needs.turns)).await?;
            facts.turns = rows.iter().map(|(seq, row)| (*seq, Turn(row.fields.turn))).collect();
        }
        if let Some(made) = needs.made {
            self.made(made, facts).await?;
        }
        if let Some((before, seqs)) = &needs.earlier_edits {
            facts.earlier_edits = Some(earlier_edits(partition, *before, seqs).await?);
        }
        if let Some(through) = needs.prunable {
            facts.prunable = prunable(partition, through).await?;
        }
        Ok(())
    }

    async fn anchors(&mut self, seqs: &[Seq], facts: &mut Facts) -> Result<(), StoreError> {
        let partition = &self.job.partition;
        let rows = partition.rows(NUMBERS, &ranges(seqs)).await?;
        let away: Vec<Seq> =
            rows.values().filter(|row| !row.fields.orphan).map(|row| Seq(row.fields.anchor)).collect();
        let away: BTreeSet<Seq> = away.into_iter().filter(|seq| !self.visible.contains(*seq)).collect();
        let away: Vec<Seq> = away.into_iter().collect();
        let hiding = partition.hiding(&ranges(&away)).await?;
        for (revision, _) in
            hiding.iter().filter(|(_, members)| away.iter().any(|seq| members.contains(*seq)))
        {
            let record = partition
                .record(*revision)
                .await?
                .ok_or_else(|| lost(&format!("the record of {revision}")))?;
            self.records.insert(*revision, record);
        }
        for (seq, row) in rows {
            let hidden_by =
                hiding.iter().find(|(_, members)| members.contains(seq)).map(|(revision, _)| *revision);
            facts.anchors.push((seq, Anchor { anchor: Seq(row.fields.anchor), hidden_by }));
        }
        Ok(())
    }

    /// These messages as they were appended, and what stands in them.
    async fn edited(&self, seqs: &[Seq]) -> Result<Vec<Edited>, StoreError> {
        let partition = &self.job.partition;
        let rows = partition.rows("*", &ranges(seqs)).await?;
        let wanted: BTreeSet<Seq> = seqs.iter().copied().collect();
        let mut stand_ins = partition.stand_ins(&self.visible, |seq| wanted.contains(&seq)).await?;
        let mut edited = Vec::with_capacity(rows.len());
        for (seq, row) in rows {
            let message = bodies::message(seq, &partition.text(&row.fields.text).await?)?;
            let whole = row.fields.count.read();
            edited.push(Edited { seq, message, whole, shortened: stand_ins.remove(&seq) });
        }
        Ok(edited)
    }

    async fn made(&mut self, made: Revision, facts: &mut Facts) -> Result<(), StoreError> {
        let partition = &self.job.partition;
        let latest = self.session().map_or(0, |session| session.latest_held);
        facts.latest_held = Some(Revision(latest)).filter(|latest| latest.0 != 0);
        if made.0 > NUMBER_MAX {
            return Ok(());
        }
        let Some(found) = partition.record(made).await? else { return Ok(()) };
        let body = partition.text(&found.fields.body).await?;
        let query = format!(
            "SELECT * FROM c WHERE c.epitome = 'prune' AND c.revision > {made} AND c.through >= {made}"
        );
        let prunes: Vec<Found<PruneItem>> = partition.query(&query, 1).await?;
        let hidden = Members::parse(&partition.text(&found.fields.hidden).await?)?;
        facts.made = Some(Made {
            record: bodies::record(made, &body)?,
            undone_by: found.fields.undone_by.map(Revision),
            pruned_since: !prunes.is_empty(),
            hidden: seen(partition, &hidden).await?,
        });
        self.records.insert(made, found);
        Ok(())
    }

    /// The items that hold the session after these changes.
    async fn draft(&mut self, changes: &Changes<'_>) -> Result<Draft, StoreError> {
        let job = self.job;
        let partition = &job.partition;
        let mut draft = Draft::new();
        let mut session = self.session().cloned().unwrap_or_else(|| Session::new(&partition.session));
        let mut visible = self.visible.clone();
        let by = changes.after.revision;

        let mut hidden = visible.take(&changes.hide, &changes.hide_summaries);
        if let Some(made) = changes.undone {
            let mut record =
                self.records.remove(&made).ok_or_else(|| lost(&format!("the record of {made}")))?;
            visible.merge(Members::parse(&partition.text(&record.fields.hidden).await?)?);
            session.latest_held = record.fields.held_before;
            record.fields.undone_by = Some(by.0);
            // Its own summaries are hidden by the undoing.
            set_hidden(partition, &mut draft, &mut record, by, &core::mem::take(&mut hidden)).await?;
        }
        let mut stand_ins = Vec::new();
        for (seq, restored) in &changes.edits {
            match restored {
                Some(restored) => {
                    visible.shorten(Shortened { seq: *seq, kept_by: by, by: restored.by });
                    stand_ins.push(StandInRow::of(*seq, restored)?);
                }
                None => visible.show_whole(*seq),
            }
        }
        if !stand_ins.is_empty() {
            let rows = draft.text(partition, list_text(&stand_ins)?)?;
            let fields = StandInsItem { revision: by.0, rows };
            draft.push(Change::Create(item(&partition.key, &stand_ins_id(by), Kind::StandIns, &fields)?));
        }
        if let Some(insert) = &changes.insert {
            self.insert(insert, &session.life, &mut visible, &mut draft).await?;
        }
        if let Some(new) = &changes.record {
            job.record(new, by, session.latest_held, &hidden, &mut draft)?;
            session.latest_held = by.0;
            let places =
                new.record.summaries.iter().map(|summary| SummaryPlace { made: by, key: summary.key });
            visible.merge(Members::of_summaries(places.collect()));
        }
        if let Some(state) = changes.state {
            let text = draft.text(partition, state.text.to_owned())?;
            if let Some(before) = &self.state {
                draft.drop_text(&before.fields.text);
            }
            let fields = StateItem { revision: state.revision.0, head: state.head.0, text };
            draft.push(Change::Upsert(item(&partition.key, STATE_ID, Kind::State, &fields)?));
            session.state = state.revision.0;
        }
        if let Some(Prune { pruned, .. }) = &changes.pruned {
            let fields = PruneItem::of(pruned);
            draft.push(Change::Create(item(
                &partition.key,
                &prune_id(pruned.revision),
                Kind::Prune,
                &fields,
            )?));
            session.pruning = Some(pruned.revision.0);
        }
        self.put(session, &visible, changes, &mut draft).await?;
        Ok(draft)
    }

    /// The item of the session, which tells whether it has moved.
    async fn put(
        &self,
        mut session: Session,
        visible: &Members,
        changes: &Changes<'_>,
        draft: &mut Draft,
    ) -> Result<(), StoreError> {
        let partition = &self.job.partition;
        session.set_counters(&changes.after);
        draft.drop_text(&session.visible);
        session.visible = draft.text(partition, visible.text())?;
        if !changes.answered.is_empty() || !changes.unanswered.is_empty() {
            let mut calls = partition.unanswered(&session).await?;
            calls.retain(|call| !changes.answered.contains(&(call.anchor, call.ordinal)));
            calls.extend(changes.unanswered.iter().cloned());
            calls.sort_unstable_by_key(|call| (call.anchor, call.ordinal));
            draft.drop_text(&session.unanswered);
            session.unanswered = draft.text(partition, calls_text(&calls)?)?;
        }
        let fields = item(&partition.key, SESSION_ID, Kind::Session, &session)?;
        draft.push(match &self.opened {
            Some(opened) => Change::Replace(SESSION_ID.to_owned(), fields, opened.etag.clone()),
            None => Change::Create(fields),
        });
        Ok(())
    }

    async fn insert(
        &mut self,
        insert: &Insert<'_>,
        life: &str,
        visible: &mut Members,
        draft: &mut Draft,
    ) -> Result<(), StoreError> {
        let job = self.job;
        let partition = &job.partition;
        if insert.appended.head.0 > NUMBER_MAX {
            return Err(invalid("append: no session has so many messages"));
        }
        let bytes = job.texts.messages.iter().map(|text| text.len().min(TEXT_BYTES_MAX).saturating_mul(2));
        let bytes = bytes
            .fold(insert.token.as_str().len(), |sum, len| sum.saturating_add(len).saturating_add(ROW_BYTES));
        let is_large = insert.entries.len() > CHANGES_MAX / 4 || bytes > BATCH_BYTES_MAX / 2;
        let stage = is_large.then(|| draft.stage().to_owned());
        for ((seq, entry, _), body) in insert.placed().zip(&job.texts.messages) {
            let fields = Row {
                life: life.to_owned(),
                seq: seq.0,
                anchor: entry.anchor.0,
                turn: entry.turn.0,
                count: Count::of(&entry.count),
                standing: Standing::of(&entry.message).number().into(),
                part_tokens: entry.part_tokens.iter().map(|size| size.0).collect(),
                late: entry.late,
                orphan: entry.orphan,
                pruned_by: None,
                stage: stage.clone(),
                text: draft.text(partition, body.clone())?,
            };
            let row = item(&partition.key, &row_id(seq, stage.as_deref()), Kind::Message, &fields)?;
            match stage {
                Some(_) => draft.ahead(row),
                None => draft.push(Change::Create(row)),
            }
        }
        visible
            .add(insert.placed().filter(|(_, entry, by)| by.is_none() && !entry.orphan).map(|(seq, ..)| seq));
        let mut hidden: BTreeMap<Revision, Members> = BTreeMap::new();
        for (seq, _, by) in insert.placed() {
            if let Some(by) = by {
                hidden.entry(by).or_default().add([seq]);
            }
        }
        for (by, more) in hidden {
            let mut record = self.records.remove(&by).ok_or_else(|| lost(&format!("the record of {by}")))?;
            let mut members = Members::parse(&partition.text(&record.fields.hidden).await?)?;
            members.merge(more);
            set_hidden(partition, draft, &mut record, by, &members).await?;
        }
        let fields = AppendItem {
            first: insert.appended.first.0,
            until: insert.appended.head.0,
            revision: insert.appended.revision.0,
            token: insert.token.as_str().to_owned(),
            digest: job.digest.clone(),
            time: insert.time.map(|time| time.0.to_string()),
            stage,
        };
        draft.push(Change::Create(item(&partition.key, &append_id(insert.token), Kind::Append, &fields)?));
        Ok(())
    }
}

impl Job {
    fn record(
        &self,
        new: &NewRecord<'_>,
        by: Revision,
        held_before: u64,
        hidden: &Members,
        draft: &mut Draft,
    ) -> Result<(), StoreError> {
        let mut rows = Vec::new();
        for ((summary, turn), text) in new.record.summaries.iter().zip(&new.turns).zip(&self.texts.summaries)
        {
            let covers = summary.message.attribution().derived_from.iter();
            rows.push(SummaryRow {
                key: summary.key.0,
                turn: turn.0,
                count: Count::of(&summary.count),
                covers: covers.map(|range| [range.first.0, range.last.0]).collect(),
                standing: Standing::of(&summary.message).number().into(),
                text: text.clone(),
            });
        }
        let summaries = if rows.is_empty() { String::new() } else { list_text(&rows)? };
        let partition = &self.partition;
        let fields = RecordItem {
            revision: by.0,
            record_id: new.id.to_string(),
            undone_by: None,
            held_before,
            edits: !new.record.edits.is_empty(),
            body: draft.text(partition, self.texts.record.clone())?,
            summaries: draft.text(partition, summaries)?,
            hidden: draft.text(partition, hidden.text())?,
            hidden_at: (!hidden.is_empty()).then_some(by.0),
            pruned: crate::items::Text::Here(Members::default().text()),
            first: hidden.runs().first().map(|(first, _)| first.0),
            last: hidden.runs().last().map(|(_, last)| last.0),
        };
        draft.push(Change::Create(item(&partition.key, &record_id(by), Kind::Record, &fields)?));
        Ok(())
    }
}

/// Lets a record hide these members, beside what was pruned.
async fn set_hidden(
    partition: &Partition,
    draft: &mut Draft,
    record: &mut Found<RecordItem>,
    by: Revision,
    hidden: &Members,
) -> Result<(), StoreError> {
    let mut all = hidden.clone();
    all.merge(Members::parse(&partition.text(&record.fields.pruned).await?)?);
    draft.drop_text(&record.fields.hidden);
    record.fields.hidden = draft.text(partition, hidden.text())?;
    record.fields.hidden_at = (!hidden.is_empty()).then_some(by.0);
    record.fields.first = all.runs().first().map(|(first, _)| first.0);
    record.fields.last = all.runs().last().map(|(_, last)| last.0);
    let fields = item(&partition.key, &record.id, Kind::Record, &record.fields)?;
    draft.push(Change::Replace(record.id.clone(), fields, record.etag.clone()));
    Ok(())
}

/// What a commit needs of these members.
async fn seen(partition: &Partition, members: &Members) -> Result<Visible, StoreError> {
    let rows = partition.rows(NUMBERS, members.runs()).await?;
    let stand_ins = partition.stand_ins(members, |_| true).await?;
    let mut visible = Visible::default();
    for seq in members.seqs() {
        let Row { anchor, standing, ref count, .. } =
            rows.get(&seq).ok_or_else(|| lost(&format!("message {seq}")))?.fields;
        let tokens = stand_ins.get(&seq).map_or(Tokens(count.tokens), |restored| restored.count.tokens);
        visible.messages.push(VisibleMessage {
            seq,
            anchor: Seq(anchor),
            tokens,
            standing: read_standing(standing)?,
        });
    }
    for (SummaryPlace { made, key }, row) in partition.summaries(&members.summaries).await? {
        let (tokens, standing) = (Tokens(row.count.tokens), read_standing(row.standing)?);
        visible.summaries.push(VisibleSummary { key, made, covers: covers(&row), tokens, standing });
    }
    Ok(visible)
}

fn read_standing(number: u64) -> Result<Standing, StoreError> {
    Standing::parse(number).ok_or_else(|| corrupt("the standing of a message is of an unknown kind"))
}

/// The edits of these messages by the records that hold and came before a revision.
async fn earlier_edits(
    partition: &Partition,
    before: Revision,
    seqs: &[Seq],
) -> Result<Vec<(Revision, MessageEdit)>, StoreError> {
    let query = format!(
        "SELECT * FROM c WHERE c.epitome = 'record' AND c.edits = true AND c.revision < {before} \
         AND NOT IS_DEFINED(c.undone_by) ORDER BY c.revision"
    );
    let records: Vec<Found<RecordItem>> = partition.query(&query, usize::MAX).await?;
    let mut earlier = Vec::new();
    for Found { fields, .. } in records {
        let revision = Revision(fields.revision);
        let record = bodies::record(revision, &partition.text(&fields.body).await?)?;
        let edits = record.edits.into_iter().filter(|edit| seqs.binary_search(&edit.seq).is_ok());
        earlier.extend(edits.map(|edit| (revision, edit)));
    }
    Ok(earlier)
}

async fn prunable(partition: &Partition, through: Revision) -> Result<Prunable, StoreError> {
    let mut prunable = Prunable::default();
    for record in prune::hiding(partition, through).await? {
        let hidden = Members::parse(&partition.text(&record.fields.hidden).await?)?;
        prunable.messages.extend(hidden.seqs());
        prunable.summaries.extend(hidden.summaries);
    }
    let through = through.0.min(NUMBER_MAX);
    let query = format!(
        "SELECT TOP 1 * FROM c WHERE c.epitome = 'prune' AND c.through = {through} ORDER BY c.revision DESC"
    );
    let before: Vec<Found<PruneItem>> = partition.query(&query, 1).await?;
    prunable.before = before.first().map(|prune| prune.fields.read());
    Ok(prunable)
}

/// The fields of a message without its text.
const NUMBERS: &str = "c.id, c._etag, c.seq, c.anchor, c.turn, c.tokens, c.basis, c.counter, c.standing, c.late, c.orphan, \
                       c.stage";

/// What a message has beside its text, at most.
const ROW_BYTES: usize = 2048;
