//! Deleting for good what is hidden.

use std::collections::BTreeSet;

use epitome_core::{Revision, Seq};

use super::Shared;
use super::change::{self, Counters, CountersReply, Decision};
use super::keys::{Key, SessionKeys};
use super::member::{Member, Receipt};
use super::record::{StoredRecord, pruned_text, read_pruned};
use super::row::{self, Row};
use super::script::{Args, Call, SCRIPTS};
use crate::history::rules::{self, Restored};
use crate::history::{Pruned, StoreError};
use crate::wire::stored;

/// All that a prune is decided on, as it was at one moment.
struct Survey {
    counters: Counters,
    /// What goes, with what the store has of messages and of summaries, each in that order.
    members: Vec<String>,
    messages: Vec<Option<String>>,
    /// What stands in place of parts of those messages.
    edits: Vec<Option<String>>,
    summaries: Vec<Option<String>>,
    records: Vec<String>,
    prunes: Vec<Pruned>,
    /// The tokens of the appends that brought those messages, and what was answered.
    tokens: Vec<String>,
    receipts: Vec<Option<String>>,
}

type Reply = (
    CountersReply,
    Vec<String>,
    Vec<Option<String>>,
    Vec<Option<String>>,
    Vec<Option<String>>,
    Vec<String>,
    Vec<String>,
    Vec<String>,
    Vec<Option<String>>,
);

/// Deletes what was hidden at `through` or before.
pub(super) async fn prune(
    store: &Shared,
    keys: &SessionKeys,
    through: Revision,
) -> Result<Pruned, StoreError> {
    for _ in 0..change::ROUNDS_MAX {
        let survey = survey(store, keys, through).await?;
        let decision = survey.decide(store, through)?;
        if let Some(pruned) = change::conclude(store, "prune", keys, decision).await? {
            return Ok(pruned);
        }
    }
    Err(change::restless("prune"))
}

async fn survey(store: &Shared, keys: &SessionKeys, through: Revision) -> Result<Survey, StoreError> {
    let args = Args::of([through.to_string()]);
    let found: Option<Reply> =
        store.connections.call("prune", &Call { script: &SCRIPTS.prune, keys, args }).await?;
    let (counters, members, messages, edits, summaries, records, prunes, tokens, receipts) =
        found.ok_or_else(|| rules::not_found("prune"))?;
    let prunes = prunes.iter().map(|text| read_pruned(text)).collect::<Result<_, _>>()?;
    let counters = Counters::from(counters);
    Ok(Survey { counters, members, messages, edits, summaries, records, prunes, tokens, receipts })
}

impl Survey {
    fn decide(&self, store: &Shared, through: Revision) -> Result<Decision<Pruned>, StoreError> {
        rules::check_prune(through, self.counters.revision)?;
        if self.members.is_empty() {
            let prunes = self.prunes.iter().copied();
            let before = rules::pruned_before(prunes, through, self.counters.revision);
            return Ok(Decision::Answer(before));
        }
        let members = self.members.iter().map(|member| Member::parse(member));
        let members = members.collect::<Result<Vec<_>, _>>()?;
        let messages: Vec<Seq> = members.iter().filter_map(|member| Some(member.place(None)?.0)).collect();
        let mut pruned = Pruned::new(self.counters.revision.next(), through);
        pruned.messages = messages.len() as u64;
        pruned.summaries = members.len().saturating_sub(messages.len()) as u64;

        let groups = change::groups(&members.iter().collect::<Vec<_>>());
        let mut args = self.counters.change(store, &groups, self.counters.live());
        args.command(Key::Hidden, "ZREM", self.members.iter().cloned());
        self.empty_rows(pruned.revision, &members, &messages, &mut args)?;
        self.empty_records(&messages, &mut args)?;
        let receipts = self.tokens.iter().zip(&self.receipts);
        for (token, receipt) in receipts.filter_map(|(token, receipt)| Some((token, receipt.as_deref()?))) {
            let receipt = Receipt::parse(receipt)?.into_pruned();
            args.command(Key::Receipts, "HSET", [token.clone(), receipt.to_string()]);
        }
        args.command(Key::Prunes, "ZADD", [pruned.revision.to_string(), pruned_text(&pruned)]);
        Ok(Decision::Change(args, pruned))
    }

    /// Leaves of messages and summaries no more than their places, and nothing of what stood in them.
    fn empty_rows(
        &self,
        revision: Revision,
        members: &[Member],
        messages: &[Seq],
        args: &mut Args,
    ) -> Result<(), StoreError> {
        let (mut rows, mut edits) = (Vec::new(), Vec::new());
        for ((seq, value), edit) in messages.iter().zip(&self.messages).zip(&self.edits) {
            rows.extend([seq.to_string(), Row::read(*seq, value.as_ref())?.pruned(revision)?]);
            if let Some(edit) = edit {
                let bare = Restored { stand_ins: Vec::new(), ..row::read_edit(edit)? };
                edits.extend([seq.to_string(), row::edited(&bare)?]);
            }
        }
        args.command(Key::Log, "HSET", rows);
        args.command(Key::Edits, "HSET", edits);
        let fields = members.iter().filter_map(|member| match member {
            Member::Summary { key, revision, .. } => Some((*key, row::summary_field(key, *revision))),
            Member::Message { .. } => None,
        });
        let mut rows = Vec::new();
        for ((key, field), value) in fields.zip(&self.summaries) {
            rows.extend([field, Row::read(key, value.as_ref())?.pruned(revision)?]);
        }
        args.command(Key::Summaries, "HSET", rows);
        Ok(())
    }

    /// Takes the texts that stood in these messages out of the records.
    fn empty_records(&self, messages: &[Seq], args: &mut Args) -> Result<(), StoreError> {
        let gone: BTreeSet<Seq> = messages.iter().copied().collect();
        for text in &self.records {
            let stored = StoredRecord::parse(text)?;
            // Its summaries are elsewhere.
            let bare = rules::bare_record(&stored.record()?, |seq| gone.contains(&seq), |_| false);
            let Some(bare) = bare else { continue };
            let body = stored::encode_record(&bare).map_err(rules::not_storable)?;
            args.command(Key::Records, "ZREM", [text.clone()]);
            let bare = StoredRecord { body, ..stored };
            args.command(Key::Records, "ZADD", [bare.revision.to_string(), bare.to_string()]);
        }
        Ok(())
    }
}
