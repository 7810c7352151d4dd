//! Commits, uncompacts and prunes: the commands that write the decided changes.

use std::collections::BTreeSet;

use epitome_core::{Revision, Seq};
use epitome_history::StoreError;
use epitome_history::kernel::{Attempt, Changes, NewRecord, Prune, SummaryPlace};
use epitome_history::rules::{self, Restored, Standing, corrupt};
use epitome_history::stored;
use epitome_history::words::blocks_of;

use super::failure::LOST;
use super::keys::Key;
use super::member::{Member, Receipt};
use super::record::{StoredRecord, pruned_text};
use super::row::{self, Row};
use super::script::{Args, Call, SCRIPTS};
use super::survey::Survey;
use super::words;

impl Survey<'_> {
    /// Writes the changes, unless the session has changed in a way that could lead to another decision.
    pub(super) async fn change(&self, changes: &Changes<'_>) -> Result<Attempt, StoreError> {
        let args = self.commands(changes)?;
        let operation = self.job.op().name();
        let call = Call { script: &SCRIPTS.change, keys: &self.job.keys, args };
        let done: String = self.store.connections.call(operation, &call).await?;
        match done.as_str() {
            "done" => Ok(Attempt::Done),
            "moved" => Ok(Attempt::Moved),
            _ => Err(corrupt(format!("{operation}: {LOST}"))),
        }
    }

    fn commands(&self, changes: &Changes<'_>) -> Result<Args, StoreError> {
        let by = changes.after.revision;
        let hidden: Vec<&Member> = self.visible.iter().filter(|member| hides(changes, member)).collect();
        // Members of the hidden set are shown again, or pruned.
        let found: Vec<&Member> = self.hidden.iter().collect();
        let mut args = self.begin(changes, &groups(hidden.iter().chain(&found)));
        args.command(Key::Live, "ZREM", texts(&hidden));
        let scored = hidden.iter().flat_map(|member| [by.to_string(), member.to_string()]);
        args.command(Key::Hidden, "ZADD", scored);
        args.command(Key::Places, "HSET", places(&hidden, Some(by)));
        if let Some(made) = changes.undone {
            args.command(Key::Hidden, "ZREM", texts(&found));
            let scored = found.iter().flat_map(|member| [member.key().to_string(), member.to_string()]);
            args.command(Key::Live, "ZADD", scored);
            args.command(Key::Places, "HSET", places(&found, None));
            self.undo(made, by, &mut args)?;
        }
        self.edit(changes, &mut args)?;
        if let Some(new) = &changes.record {
            self.show(new, by, &mut args)?;
        }
        args.command(Key::Open, "HDEL", changes.answered.iter().map(|place| row::open_field(*place)));
        let open = changes.unanswered.iter().map(row::open_call).collect::<Result<Vec<_>, _>>()?;
        args.command(Key::Open, "HSET", open.into_iter().flatten());
        if let Some(prune) = &changes.pruned {
            self.prune(prune, &mut args)?;
        }
        Ok(args)
    }

    /// The first arguments: the expected counters, with the condition that none of these groups has grown.
    fn begin(&self, changes: &Changes<'_>, groups: &[Seq]) -> Args {
        let (before, after) = (self.counters, changes.after);
        let mut args = Args::of([
            self.born.clone(),
            self.store.ttl.clone(),
            before.revision.to_string(),
            before.head.to_string(),
        ]);
        args.list(groups.iter().map(ToString::to_string));
        let pruned = changes.pruned.as_ref().map_or(&[][..], |prune| prune.messages);
        args.list(blocks_of(pruned).into_iter().map(words::name));
        // Messages may have been appended since, so the arguments contain differences. The counters come first, because
        // only they can fail on the stored values.
        let more = |name: &str, after: u64, before: u64| {
            [name.to_owned(), (i128::from(after) - i128::from(before)).to_string()]
        };
        let messages = more("live_messages", after.live_messages, before.live_messages);
        args.command(Key::Session, "HINCRBY", messages);
        args.command(Key::Session, "HINCRBY", more("live_tokens", after.live_tokens, before.live_tokens));
        args.command(Key::Session, "HSET", ["revision".to_owned(), after.revision.to_string()]);
        args
    }

    /// Sets the stand-ins of visible messages. `None` removes the stand-ins of a message.
    fn edit(&self, changes: &Changes<'_>, args: &mut Args) -> Result<(), StoreError> {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let (mut rows, mut bare) = (Vec::new(), Vec::new());
        for (seq, restored) in &changes.edits {
            let lost = || corrupt(format!("message {seq} is not visible any more"));
            let at = self.visible.binary_search_by_key(seq, Member::key).ok();
            let member = at.and_then(|at| self.visible.get(at)).ok_or_else(lost)?;
            let whole = self.sizes.get(seq).copied().ok_or_else(lost)?;
            let tokens = restored.as_ref().map_or(whole, |restored| restored.count.tokens);
            before.push(member);
            after.extend([seq.to_string(), member.shown(tokens, restored.is_some()).to_string()]);
            match restored {
                Some(restored) => rows.extend([seq.to_string(), row::edited(restored)?]),
                None => bare.push(seq.to_string()),
            }
        }
        args.command(Key::Live, "ZREM", texts(&before));
        args.command(Key::Live, "ZADD", after);
        args.command(Key::Edits, "HSET", rows);
        args.command(Key::Edits, "HDEL", bare);
        Ok(())
    }

    /// Inserts a record and its summaries.
    fn show(&self, new: &NewRecord<'_>, revision: Revision, args: &mut Args) -> Result<(), StoreError> {
        let summaries = &new.record.summaries;
        let (mut rows, mut members) = (Vec::new(), Vec::new());
        for ((summary, turn), body) in summaries.iter().zip(&new.turns).zip(&self.job.texts.summaries) {
            let (key, turn, tokens) = (summary.key, *turn, summary.count.tokens);
            let covers = summary.message.attribution().derived_from.clone();
            let standing = Standing::of(&summary.message);
            let member = Member::Summary { key, revision, turn, tokens, covers, standing };
            members.extend([key.to_string(), member.to_string()]);
            rows.extend([row::summary_field(key, revision), row::summary(summary, turn, body)?]);
        }
        args.command(Key::Summaries, "HSET", rows);
        args.command(Key::Live, "ZADD", members);
        let keys = summaries.iter().map(|summary| summary.key).collect();
        let body = self.job.texts.record.clone();
        let record = StoredRecord { revision, undone_by: None, id: new.id, keys, body };
        args.command(Key::Records, "ZADD", [revision.to_string(), record.to_string()]);
        Ok(())
    }

    fn undo(&self, made: Revision, by: Revision, args: &mut Args) -> Result<(), StoreError> {
        let lost = || corrupt(format!("the record of {made} is missing"));
        let stored = self.made.as_ref().ok_or_else(lost)?;
        args.command(Key::Records, "ZREM", [stored.to_string()]);
        let undone = StoredRecord { undone_by: Some(by), ..stored.clone() };
        args.command(Key::Records, "ZADD", [made.to_string(), undone.to_string()]);
        Ok(())
    }

    fn prune(&self, prune: &Prune<'_>, args: &mut Args) -> Result<(), StoreError> {
        let (pruned, texts) = (prune.pruned, &self.prunable);
        args.command(Key::Hidden, "ZREM", texts.members.iter().cloned());
        self.empty_rows(prune, args)?;
        self.empty_records(prune.messages, args)?;
        let receipts = texts.tokens.iter().zip(&texts.receipts);
        for (token, receipt) in receipts.filter_map(|(token, receipt)| Some((token, receipt.as_deref()?))) {
            let receipt = Receipt::parse(receipt)?.into_pruned();
            args.command(Key::Receipts, "HSET", [token.clone(), receipt.to_string()]);
        }
        args.command(Key::Prunes, "ZADD", [pruned.revision.to_string(), pruned_text(&pruned)]);
        Ok(())
    }

    /// Deletes the texts and the stand-ins of messages and summaries. Their places stay.
    fn empty_rows(&self, prune: &Prune<'_>, args: &mut Args) -> Result<(), StoreError> {
        let (by, texts) = (prune.pruned.revision, &self.prunable);
        let (mut rows, mut edits) = (Vec::new(), Vec::new());
        for ((seq, value), edit) in prune.messages.iter().zip(&texts.messages).zip(&texts.edits) {
            rows.extend([seq.to_string(), Row::read(*seq, value.as_ref())?.pruned(by)?]);
            if let Some(edit) = edit {
                let bare = Restored { stand_ins: Vec::new(), ..row::read_edit(edit)? };
                edits.extend([seq.to_string(), row::edited(&bare)?]);
            }
        }
        args.command(Key::Log, "HSET", rows);
        args.command(Key::Edits, "HSET", edits);
        let mut rows = Vec::new();
        for (SummaryPlace { made, key }, value) in prune.summaries.iter().zip(&texts.summaries) {
            rows.extend([row::summary_field(key, *made), Row::read(*key, value.as_ref())?.pruned(by)?]);
        }
        args.command(Key::Summaries, "HSET", rows);
        Ok(())
    }

    /// Deletes the stand-in texts of these messages from the records.
    fn empty_records(&self, messages: &[Seq], args: &mut Args) -> Result<(), StoreError> {
        let gone: BTreeSet<Seq> = messages.iter().copied().collect();
        for text in &self.prunable.records {
            let stored = StoredRecord::parse(text)?;
            // The summaries of the record are stored elsewhere.
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

fn hides(changes: &Changes<'_>, member: &Member) -> bool {
    match *member {
        Member::Message { seq, .. } => changes.hide.binary_search(&seq).is_ok(),
        Member::Summary { key, revision: made, .. } => {
            changes.hide_summaries.contains(&SummaryPlace { made, key })
        }
    }
}

fn texts(members: &[&Member]) -> impl Iterator<Item = String> {
    members.iter().map(ToString::to_string)
}

fn places(members: &[&Member], hidden_by: Option<Revision>) -> impl Iterator<Item = String> {
    members
        .iter()
        .filter_map(move |member| member.place(hidden_by))
        .flat_map(|(seq, place)| [seq.to_string(), place.to_string()])
}

/// The groups of the messages among these members.
fn groups<'a>(members: impl Iterator<Item = &'a &'a Member>) -> Vec<Seq> {
    let groups: BTreeSet<Seq> = members.filter_map(|member| Some(member.place(None)?.1.anchor)).collect();
    groups.into_iter().collect()
}
