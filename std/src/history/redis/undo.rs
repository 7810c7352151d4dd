//! Undoing compactions.

use std::collections::{BTreeMap, BTreeSet};

use epitome_core::{Revision, Seq, Tokens};

use super::Shared;
use super::change::{self, Counters, CountersReply, Decision};
use super::keys::{Key, SessionKeys};
use super::member::Member;
use super::record::{StoredRecord, read_pruned};
use super::row::{self, Row};
use super::script::{Args, Call, SCRIPTS};
use crate::history::rules::{self, Restored, Undoing};
use crate::history::{CompactionRecord, StoreError, UnansweredCall};

/// All that the undoing of a record is decided on, as it was at one moment.
struct Survey {
    counters: Counters,
    /// The record, and what it says.
    found: Option<(StoredRecord, CompactionRecord)>,
    /// The revision of the latest record that is not undone.
    latest: Option<Revision>,
    /// Up to which revision what is hidden was pruned.
    pruned_through: Option<Revision>,
    visible: Vec<Member>,
    /// What the record has hidden.
    hidden: Vec<Member>,
    /// The messages that it edits, as they were appended.
    edited: BTreeMap<Seq, Tokens>,
    /// What stands in them without it.
    restored: BTreeMap<Seq, Restored>,
    open: Vec<UnansweredCall>,
}

type Reply = (
    CountersReply,
    Vec<String>,
    u64,
    Vec<String>,
    Vec<String>,
    Vec<String>,
    Vec<Option<String>>,
    Vec<String>,
    Vec<(String, String)>,
);

/// Undoes the record that made `made`.
pub(super) async fn uncompact(
    store: &Shared,
    keys: &SessionKeys,
    made: Revision,
) -> Result<Revision, StoreError> {
    let mut edited = Vec::new();
    for _ in 0..change::ROUNDS_MAX {
        let survey = survey(store, keys, made, &edited).await?;
        // Which messages it edits is known when it was read.
        let edits = survey.found.iter().flat_map(|(_, record)| record.edits.iter().map(|edit| edit.seq));
        let edits: Vec<Seq> = edits.collect();
        if edits != edited {
            edited = edits;
            continue;
        }
        let decision = decide(store, made, &survey)?;
        if let Some(revision) = change::conclude(store, "uncompact", keys, decision).await? {
            return Ok(revision);
        }
    }
    Err(change::restless("uncompact"))
}

async fn survey(
    store: &Shared,
    keys: &SessionKeys,
    made: Revision,
    edited: &[Seq],
) -> Result<Survey, StoreError> {
    let mut args = Args::of([made.to_string()]);
    args.list(edited.iter().map(ToString::to_string));
    let found: Option<Reply> =
        store.connections.call("uncompact", &Call { script: &SCRIPTS.undo, keys, args }).await?;
    let (counters, record, latest, prunes, visible, hidden, log, records, open) =
        found.ok_or_else(|| rules::not_found("uncompact"))?;
    let counters = Counters::from(counters);
    let with_text = |text: &String| {
        let stored = StoredRecord::parse(text)?;
        let record = stored.record()?;
        Ok((stored, record))
    };
    let prunes = prunes.iter().map(|text| read_pruned(text)).collect::<Result<Vec<_>, _>>()?;
    let size =
        |(seq, value): (&Seq, &Option<String>)| Ok((*seq, Row::read(*seq, value.as_ref())?.count().tokens));
    let held = records.iter().map(with_text).collect::<Result<Vec<_>, StoreError>>()?;
    let held = held.iter().filter(|(stored, _)| stored.undone_by.is_none() && stored.revision != made);
    let edits = held.flat_map(|(stored, record)| record.edits.iter().map(|edit| (stored.revision, edit)));
    let wanted: BTreeSet<Seq> = edited.iter().copied().collect();
    Ok(Survey {
        found: record.first().map(with_text).transpose()?,
        latest: Some(Revision(latest)).filter(|latest| *latest != Revision(0)),
        pruned_through: prunes.iter().map(|pruned| pruned.through).max(),
        visible: counters.visible(&visible)?,
        hidden: hidden.iter().map(|member| Member::parse(member)).collect::<Result<_, _>>()?,
        edited: edited.iter().zip(&log).map(size).collect::<Result<_, StoreError>>()?,
        restored: rules::restored_edits(&wanted, edits),
        open: row::read_open(&open)?,
        counters,
    })
}

fn decide(store: &Shared, made: Revision, survey: &Survey) -> Result<Decision<Revision>, StoreError> {
    let found = survey.found.as_ref();
    let undoing = Undoing { found: found.map(|(stored, _)| stored.undone_by), latest: survey.latest };
    if let Some(undone_by) = rules::check_uncompact(made, undoing)? {
        return Ok(Decision::Answer(undone_by));
    }
    let Some((stored, record)) = found else { return Err(rules::not_found("uncompact")) };
    rules::nothing_pruned(record, made, survey.pruned_through.is_some_and(|through| through >= made))?;

    let revision = survey.counters.revision.next();
    let own = |member: &&Member| matches!(member, Member::Summary { revision, .. } if *revision == made);
    let own: Vec<&Member> = survey.visible.iter().filter(own).collect();
    let again: Vec<&Member> = survey.hidden.iter().collect();
    let mut args = survey.counters.change(store, &change::groups(&again), survey.live(&own));
    change::hide(&own, revision, &mut args);
    change::show(&again, &mut args);
    let edited = survey.edited.iter().map(|(seq, tokens)| {
        let restored = survey.restored.get(seq).cloned();
        (*seq, restored.as_ref().map_or(*tokens, |restored| restored.count.tokens), restored)
    });
    change::edit(&survey.visible, edited, &mut args)?;
    // The calls of what is shown are found there.
    let shown: BTreeSet<Seq> =
        survey.hidden.iter().filter_map(|member| Some(member.place(None)?.0)).collect();
    let found_there = survey.open.iter().filter(|call| shown.contains(&call.anchor));
    args.command(Key::Open, "HDEL", found_there.map(row::open_field));
    args.command(Key::Records, "ZREM", [stored.to_string()]);
    let undone = StoredRecord { undone_by: Some(revision), ..stored.clone() };
    args.command(Key::Records, "ZADD", [made.to_string(), undone.to_string()]);
    Ok(Decision::Change(args, revision))
}

impl Survey {
    /// How much is visible after it, when these summaries are not any more.
    fn live(&self, own: &[&Member]) -> (u64, u64) {
        let stays = self.visible.iter().filter(|member| !own.contains(member));
        let shown = stays.chain(&self.hidden).map(|member| {
            let bare = self.edited.get(&member.key()).filter(|_| member.place(None).is_some());
            let restored = self.restored.get(&member.key()).map(|restored| restored.count.tokens);
            bare.map_or(member.tokens(), |bare| restored.unwrap_or(*bare))
        });
        shown.fold((0, 0), |(messages, sum), tokens| {
            (u64::saturating_add(messages, 1), u64::saturating_add(sum, tokens.as_u64()))
        })
    }
}
