//! Reads the facts of a session, and writes changes only if the session has not changed since.

use std::collections::{BTreeMap, BTreeSet};

use epitome_core::{Revision, Seq, Tokens, Turn};
use epitome_history::bodies::RowTexts;
use epitome_history::files::hex;
use epitome_history::kernel::{
    self, Attempt, Changes, Edited, Facts, Made, Needs, OwnedOp, Prunable, Reply, SummaryPlace, Transaction,
    Visible,
};
use epitome_history::rules::{Anchor, Standing, VisibleMessage, VisibleSummary, corrupt};
use epitome_history::{MessageEdit, StateRevision, StoreError, bodies};

use crate::failure::lost;
use crate::ids::{STATE_ID, append_id};
use crate::items::{AppendItem, Found, PruneItem, RecordItem, Row, Session, StateItem};
use crate::members::Members;
use crate::prune;
use crate::read::{self, NUMBER_MAX, Opened, covers, open, ranges};
use crate::requests::{Partition, Written};

/// An operation, with everything that can be prepared before its first request.
pub(crate) struct Job {
    pub(crate) partition: Partition,
    op: OwnedOp,
    pub(crate) texts: RowTexts,
    /// The digest of the messages, in hexadecimal.
    pub(crate) digest: String,
}

impl Job {
    pub(crate) fn new(partition: Partition, op: kernel::Op<'_>) -> Result<Self, StoreError> {
        let texts = RowTexts::of(&op)?;
        let digest = hex(&texts.digest);
        Ok(Self { partition, op: OwnedOp::of(op), texts, digest })
    }

    pub(crate) async fn run(&self) -> Result<Reply, StoreError> {
        let mut survey = Survey {
            job: self,
            opened: None,
            visible: None,
            records: BTreeMap::new(),
            state: None,
            moved: 0,
        };
        kernel::run(&self.op.as_op(), &mut survey).await
    }
}

/// The facts of a session while an operation is decided.
pub(crate) struct Survey<'a> {
    pub(crate) job: &'a Job,
    /// The session as it was first read. Every change of the session replaces this item.
    pub(crate) opened: Option<Opened>,
    visible: Option<Members>,
    /// The records that hide a group of an append, and the record that is to be undone.
    pub(crate) records: BTreeMap<Revision, Found<RecordItem>>,
    pub(crate) state: Option<Found<StateItem>>,
    /// Number of failed writes because the session had changed.
    moved: u32,
}

impl Transaction for Survey<'_> {
    type Error = StoreError;

    async fn facts(&mut self, needs: &Needs<'_>, facts: &mut Facts) -> Result<Attempt, StoreError> {
        let partition = &self.job.partition;
        if facts.session.is_none() {
            // If the append token does not exist now but is created meanwhile, the batch fails.
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
            self.visible = None;
        }
        let Some(opened) = &self.opened else { return Ok(Attempt::Done) };
        facts.session = Some(opened.session.counters()?);
        match self.more(needs, facts).await {
            Ok(()) => Ok(Attempt::Done),
            Err(error) => self.moved_or(error).await,
        }
    }

    async fn apply(&mut self, changes: &Changes<'_>) -> Result<Attempt, StoreError> {
        let partition = &self.job.partition;
        let draft = match self.draft(changes).await {
            Ok(draft) => draft,
            Err(error) => return self.moved_or(error).await,
        };
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
}

impl Survey<'_> {
    pub(crate) fn session(&self) -> Option<&Session> {
        self.opened.as_ref().map(|opened| &opened.session)
    }

    /// `Moved` if the session has changed since its facts were read; otherwise the error.
    async fn moved_or(&self, error: StoreError) -> Result<Attempt, StoreError> {
        let now = open(&self.job.partition).await?.map(|now| now.etag);
        let is_same = now == self.opened.as_ref().map(|opened| opened.etag.clone());
        if is_same { Err(error) } else { Ok(Attempt::Moved) }
    }

    /// The visible messages and summaries of the session.
    pub(crate) async fn visible(&mut self) -> Result<Members, StoreError> {
        if self.visible.is_none()
            && let Some(session) = self.session()
        {
            self.visible = Some(self.job.partition.visible(session).await?);
        }
        Ok(self.visible.clone().unwrap_or_default())
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
            let visible = self.visible().await?;
            facts.visible = seen(partition, &visible).await?;
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
        let visible = self.visible().await?;
        let rows = partition.rows(NUMBERS, &ranges(seqs)).await?;
        let away = rows.values().filter(|row| !row.fields.orphan).map(|row| Seq(row.fields.anchor));
        let away: BTreeSet<Seq> = away.filter(|seq| !visible.contains(*seq)).collect();
        let hiding = partition.hiding(&ranges(&away.iter().copied().collect::<Vec<_>>())).await?;
        for (seq, row) in rows {
            let hidden_by = hiding.iter().find(|(_, members)| members.contains(seq));
            let hidden_by = hidden_by.map(|(record, _)| Revision(record.fields.revision));
            facts.anchors.push((seq, Anchor { anchor: Seq(row.fields.anchor), hidden_by }));
        }
        self.records.extend(hiding.into_iter().map(|(record, _)| (Revision(record.fields.revision), record)));
        Ok(())
    }

    /// The messages `seqs` as they were appended, with their current stand-ins.
    async fn edited(&mut self, seqs: &[Seq]) -> Result<Vec<Edited>, StoreError> {
        let partition = &self.job.partition;
        let visible = self.visible().await?;
        let rows = partition.rows("*", &ranges(seqs)).await?;
        let wanted: BTreeSet<Seq> = seqs.iter().copied().collect();
        let mut stand_ins = partition.stand_ins(&visible, |seq| wanted.contains(&seq)).await?;
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
}

/// The facts about these members that a commit needs.
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

/// The edits of these messages by records before a revision that are not undone.
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
