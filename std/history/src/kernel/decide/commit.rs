//! The decision about a commit.

use epitome_core::{Revision, Seq};

use super::super::{Changes, Edited, Edits, Facts, Needs, NewRecord, Reply, SummaryPlace};
use super::{Decision, there};
use crate::rules::{self, Restored, corrupt};
use crate::{CompactionRecord, MessageEdit, RecordId, StoreError, Summary};

pub(super) fn needs(record: &CompactionRecord) -> Needs<'static> {
    Needs {
        record_id: Some(record.parent.next()),
        visible: true,
        edited: record.edits.iter().map(|edit| edit.seq).collect(),
        turns: record.summaries.iter().map(|summary| summary.key).collect(),
        ..Needs::default()
    }
}

pub(super) fn decide<'a>(
    record: &'a CompactionRecord,
    id: RecordId,
    facts: &'a Facts,
) -> Result<Decision<'a>, StoreError> {
    let before = there(facts, "commit")?;
    let known = facts.record_id.map(|known| (record.parent.next(), known));
    if let Some(made) = rules::check_commit(record, id, known, before.revision, before.head)? {
        return Ok(Decision::Answer(Reply::Made(made)));
    }
    let (messages, summaries) = (&facts.visible.messages, &facts.visible.summaries);
    let edit = rules::edit(record, messages, summaries)?;
    let mut changes = Changes::of(facts.session);
    changes.after.revision = before.revision.next();
    changes.edits = edits(record, facts, changes.after.revision)?;
    rules::check_groups(record, messages)?;

    changes.after.live_messages = edit.live_messages;
    changes.after.live_tokens = edit.live_tokens;
    let is_hidden = |key: &Seq| edit.summaries.binary_search(key).is_ok();
    let hidden = summaries.iter().filter(|summary| is_hidden(&summary.key));
    changes.hide_summaries =
        hidden.map(|summary| SummaryPlace { made: summary.made, key: summary.key }).collect();
    changes.hide = edit.messages;
    changes.unanswered = &record.unanswered;
    let turn = |summary: &Summary| {
        let lost = || corrupt(format!("commit: message {} is missing", summary.key));
        facts.turn(summary.key).ok_or_else(lost)
    };
    let turns = record.summaries.iter().map(turn).collect::<Result<_, _>>()?;
    changes.record = Some(NewRecord { record, id, turns });
    let made = changes.after.revision;
    Ok(Decision::Change(changes, Reply::Made(made)))
}

/// The stand-ins of messages after a record, which makes `revision`.
fn edits(record: &CompactionRecord, facts: &Facts, revision: Revision) -> Result<Edits, StoreError> {
    let shorten = |edit: &MessageEdit| {
        let lost = || corrupt(format!("commit: the text of message {} is missing", edit.seq));
        let Edited { message, whole, shortened, .. } = facts.edited(edit.seq).ok_or_else(lost)?;
        let (before, shown) = match shortened {
            Some(shortened) => (&shortened.stand_ins[..], &shortened.count),
            None => (&[][..], whole),
        };
        let stand_ins = rules::shorten(edit, message, before, shown)?;
        Ok((edit.seq, Some(Restored { by: revision, stand_ins, count: edit.count.clone() })))
    };
    record.edits.iter().map(shorten).collect()
}
