//! The decision about an uncompact.

use std::collections::BTreeSet;

use epitome_core::{Revision, Seq, Tokens};

use super::super::{Changes, Facts, Made, Needs, Reply, SummaryPlace};
use super::{Decision, there};
use crate::StoreError;
use crate::rules::{self, Undoing};

pub(super) fn needs(made: Revision) -> Needs<'static> {
    Needs { made: Some(made), visible: true, calls: true, ..Needs::default() }
}

pub(super) fn decide(made: Revision, facts: &Facts) -> Result<Decision<'_>, StoreError> {
    let before = there(facts, "uncompact")?;
    let found = facts.made.as_ref();
    let undoing = Undoing { found: found.map(|made| made.undone_by), latest: facts.latest_held };
    if let Some(undone_by) = rules::check_uncompact(made, undoing)? {
        return Ok(Decision::Answer(Reply::Made(undone_by)));
    }
    let lost = || rules::corrupt(format!("uncompact: the record of {made} is missing"));
    let Made { record, pruned_since, hidden, .. } = found.ok_or_else(lost)?;
    rules::nothing_pruned(record, made, *pruned_since)?;
    let edited: Vec<Seq> = record.edits.iter().map(|edit| edit.seq).collect();
    if !edited.is_empty() && facts.earlier_edits.is_none() {
        let earlier_edits = Some((made, edited.clone()));
        return Ok(Decision::Ask(Needs { edited, earlier_edits, ..Needs::default() }));
    }

    let mut changes = Changes::of(facts.session);
    changes.after.revision = before.revision.next();
    changes.undone = Some(made);
    let own = facts.visible.summaries.iter().filter(|summary| summary.made == made);
    changes.hide_summaries = own.map(|own| SummaryPlace { made, key: own.key }).collect();
    changes.show = hidden.messages.iter().map(|message| message.seq).collect();
    let shown = hidden.summaries.iter();
    changes.show_summaries = shown.map(|it| SummaryPlace { made: it.made, key: it.key }).collect();
    let earlier = facts.earlier_edits.iter().flatten().map(|(by, edit)| (*by, edit));
    let mut restored = rules::restored_edits(&edited.iter().copied().collect(), earlier);
    changes.edits = edited.into_iter().map(|seq| (seq, restored.remove(&seq))).collect();
    // A visible call is found through its visible message.
    let shown: BTreeSet<Seq> = changes.show.iter().copied().collect();
    let calls = facts.calls.iter().flatten().filter(|call| shown.contains(&call.anchor));
    changes.answered = calls.map(|call| (call.anchor, call.ordinal)).collect();
    (changes.after.live_messages, changes.after.live_tokens) = live(made, hidden, &changes, facts)?;
    let revision = changes.after.revision;
    Ok(Decision::Change(changes, Reply::Made(revision)))
}

/// The number of visible messages and their tokens after the uncompact.
fn live(
    made: Revision,
    hidden: &super::super::Visible,
    changes: &Changes<'_>,
    facts: &Facts,
) -> Result<(u64, u64), StoreError> {
    let tokens = |seq: Seq, now: Tokens| match changes.edits.binary_search_by_key(&seq, |(seq, _)| *seq) {
        Err(_) => Ok(now),
        Ok(at) => match changes.edits.get(at) {
            Some((_, Some(restored))) => Ok(restored.count.tokens),
            _ => {
                let lost = || rules::corrupt(format!("uncompact: message {seq} is missing"));
                facts.edited(seq).map(|edited| edited.whole.tokens).ok_or_else(lost)
            }
        },
    };
    let messages = facts.visible.messages.iter().chain(&hidden.messages);
    let mut sizes = messages.map(|it| tokens(it.seq, it.tokens)).collect::<Result<Vec<_>, _>>()?;
    let stays = facts.visible.summaries.iter().filter(|summary| summary.made != made);
    sizes.extend(stays.chain(&hidden.summaries).map(|summary| summary.tokens));
    let total = sizes.iter().map(|tokens| tokens.as_u64()).fold(0, u64::saturating_add);
    Ok((sizes.len() as u64, total))
}
