//! Committing a compaction.

use epitome_core::Revision;

use super::Shared;
use super::change::{self, Counters, CountersReply, Decision};
use super::keys::{Key, SessionKeys};
use super::member::{Member, Place};
use super::record::StoredRecord;
use super::row::{self, Row};
use super::script::{Args, Call, SCRIPTS};
use crate::history::bodies::RecordBodies;
use crate::history::rules::{self, Restored, Standing, corrupt};
use crate::history::{CompactionRecord, MessageEdit, RecordId, SessionId, StoreError};

/// A commit with everything about it that can be made before it is sent.
#[derive(Debug)]
pub(super) struct CommitJob {
    keys: SessionKeys,
    record: CompactionRecord,
    bodies: RecordBodies,
}

/// All that a commit is decided on, as it was at one moment.
struct Survey {
    counters: Counters,
    /// The record that made the revision after the parent.
    known: Option<(Revision, RecordId)>,
    visible: Vec<Member>,
    /// For each edited message what the log has of it, and what stands in it.
    edited: Vec<(Option<String>, Option<String>)>,
    /// For each summary the place of the message at its key.
    places: Vec<Option<String>>,
}

type Reply =
    (CountersReply, Vec<String>, Vec<String>, Vec<Option<String>>, Vec<Option<String>>, Vec<Option<String>>);

impl CommitJob {
    pub(super) fn new(
        store: &Shared,
        session: &SessionId,
        record: &CompactionRecord,
    ) -> Result<Self, StoreError> {
        let bodies = RecordBodies::of(record)?;
        Ok(Self { keys: store.prefix.keys(session), record: record.clone(), bodies })
    }

    pub(super) async fn run(&self, store: &Shared) -> Result<Revision, StoreError> {
        for _ in 0..change::ROUNDS_MAX {
            let decision = self.decide(store, &self.survey(store).await?)?;
            if let Some(revision) = change::conclude(store, "commit", &self.keys, decision).await? {
                return Ok(revision);
            }
        }
        Err(change::restless("commit"))
    }

    async fn survey(&self, store: &Shared) -> Result<Survey, StoreError> {
        let mut args = Args::of([self.record.parent.next().to_string()]);
        args.list(self.record.edits.iter().map(|edit| edit.seq.to_string()));
        args.list(self.record.summaries.iter().map(|summary| summary.key.to_string()));
        let call = Call { script: &SCRIPTS.survey, keys: &self.keys, args };
        let found: Option<Reply> = store.connections.call("commit", &call).await?;
        let (counters, records, members, log, edits, places) =
            found.ok_or_else(|| rules::not_found("commit"))?;
        let counters = Counters::from(counters);
        let known = records.first().map(|record| StoredRecord::parse(record)).transpose()?;
        let known = known.map(|record| (record.revision, record.id));
        let visible = counters.visible(&members)?;
        Ok(Survey { counters, known, visible, edited: log.into_iter().zip(edits).collect(), places })
    }

    fn decide(&self, store: &Shared, survey: &Survey) -> Result<Decision<Revision>, StoreError> {
        let record = &self.record;
        let Counters { head, revision, .. } = survey.counters;
        if let Some(made) = rules::check_commit(record, self.bodies.id, survey.known, revision, head)? {
            return Ok(Decision::Answer(made));
        }
        let revision = revision.next();
        let (messages, summaries) = Member::visible(&survey.visible);
        let edit = rules::edit(record, &messages, &summaries)?;
        let edits = record.edits.iter().zip(&survey.edited);
        let shortened =
            edits.map(|(edit, (value, before))| shorten(revision, edit, value.as_ref(), before.as_deref()));
        let shortened = shortened.collect::<Result<Vec<_>, _>>()?;
        rules::check_groups(record, &messages)?;

        let is_hidden = |member: &&Member| match member {
            Member::Message { seq, .. } => edit.messages.binary_search(seq).is_ok(),
            Member::Summary { key, .. } => edit.summaries.binary_search(key).is_ok(),
        };
        let hidden: Vec<&Member> = survey.visible.iter().filter(is_hidden).collect();
        let live = (edit.live_messages, edit.live_tokens);
        let mut args = survey.counters.change(store, &change::groups(&hidden), live);
        change::hide(&hidden, revision, &mut args);
        let edited = record.edits.iter().zip(shortened);
        let edited = edited.map(|(edit, restored)| (edit.seq, edit.count.tokens, Some(restored)));
        change::edit(&survey.visible, edited, &mut args)?;
        self.show(revision, &survey.places, &mut args)?;
        Ok(Decision::Change(args, revision))
    }

    fn show(&self, revision: Revision, places: &[Option<String>], args: &mut Args) -> Result<(), StoreError> {
        let CompactionRecord { summaries, unanswered, .. } = &self.record;
        let (mut rows, mut members) = (Vec::new(), Vec::new());
        for ((summary, body), place) in summaries.iter().zip(&self.bodies.summaries).zip(places) {
            let key = summary.key;
            let lost = || corrupt(format!("commit: message {key} is missing"));
            // A summary is in the turn of the first message that it covers.
            let Place { turn, .. } = Place::parse(place.as_deref().ok_or_else(lost)?)?;
            let (tokens, covers) = (summary.count.tokens, summary.message.attribution().derived_from.clone());
            let standing = Standing::of(&summary.message);
            let member = Member::Summary { key, revision, turn, tokens, covers, standing };
            members.extend([key.to_string(), member.to_string()]);
            rows.extend([row::summary_field(key, revision), row::summary(summary, turn, body)?]);
        }
        args.command(Key::Summaries, "HSET", rows);
        args.command(Key::Live, "ZADD", members);
        let open = unanswered.iter().map(row::open_call).collect::<Result<Vec<_>, _>>()?;
        args.command(Key::Open, "HSET", open.into_iter().flatten());
        let keys = summaries.iter().map(|summary| summary.key).collect();
        let RecordBodies { id, text, .. } = &self.bodies;
        let record = StoredRecord { revision, undone_by: None, id: *id, keys, body: text.clone() };
        args.command(Key::Records, "ZADD", [revision.to_string(), record.to_string()]);
        Ok(())
    }
}

/// What stands in place of a message's parts after `edit`, by the record that makes `revision`, over what stands there
/// `before`.
fn shorten(
    revision: Revision,
    edit: &MessageEdit,
    value: Option<&String>,
    before: Option<&str>,
) -> Result<Restored, StoreError> {
    let row = Row::read(edit.seq, value)?;
    let (before, shown) = match before.map(row::read_edit).transpose()? {
        Some(Restored { stand_ins, count, .. }) => (stand_ins, count),
        None => (Vec::new(), row.count()),
    };
    let stand_ins = rules::shorten(edit, &row.message()?, &before, &shown)?;
    Ok(Restored { by: revision, stand_ins, count: edit.count.clone() })
}
