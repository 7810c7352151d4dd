//! The facts of a session, which a script reads at one moment. A change is written only if the session has not changed
//! meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use epitome_core::{Head, Revision, Seq, Tokens};
use epitome_history::kernel::{
    Attempt, Changes, Counters, Edited, Facts, Made, Needs, Op, Prunable, SummaryPlace, Transaction,
};
use epitome_history::rules::{Anchor, corrupt};
use epitome_history::{MessageEdit, StateRevision, StoreError};

use super::Shared;
use super::failure::LOST;
use super::job::Job;
use super::keys::Key;
use super::member::{Member, Place};
use super::record::{StoredRecord, read_pruned};
use super::row::{self, Row};
use super::script::{Args, Call, SCRIPTS};

/// A session while an operation on it is decided, with the data for the write of its changes.
pub(super) struct Survey<'a> {
    pub(super) store: &'a Shared,
    pub(super) job: &'a Job,
    /// Whether the facts were read from the server, and not assumed.
    pub(super) is_asked: bool,
    /// Whether the entries of an append have other groups than when they were sent.
    pub(super) is_placed_anew: bool,
    /// The answer to an append that was not written.
    pub(super) found: Option<super::append::Found>,
    pub(super) counters: Counters,
    /// The id of this life of the session: a deleted and recreated session has another one.
    pub(super) born: String,
    /// The stored groups that an append joins.
    pub(super) anchors: Vec<(Seq, Anchor)>,
    pub(super) state: StateRevision,
    /// The visible messages and summaries, ordered by key.
    pub(super) visible: Vec<Member>,
    /// The members that the record to undo has hidden, or that are to be pruned.
    pub(super) hidden: Vec<Member>,
    /// The original sizes of edited messages.
    pub(super) sizes: BTreeMap<Seq, Tokens>,
    pub(super) made: Option<StoredRecord>,
    pub(super) prunable: PrunableTexts,
}

/// The stored texts to prune.
#[derive(Default)]
pub(super) struct PrunableTexts {
    pub(super) members: Vec<String>,
    /// The values of messages, stand-ins and summaries, each in the order of the members.
    pub(super) messages: Vec<Option<String>>,
    pub(super) edits: Vec<Option<String>>,
    pub(super) summaries: Vec<Option<String>>,
    pub(super) records: Vec<String>,
    /// The tokens and the receipts of the appends of these messages.
    pub(super) tokens: Vec<String>,
    pub(super) receipts: Vec<Option<String>>,
}

/// Counters in the form of the scripts' answers: head, revision, life, visible messages and their tokens.
type CountersReply = (u64, u64, String, u64, u64);

type CommitReply =
    (CountersReply, Vec<String>, Vec<String>, Vec<Option<String>>, Vec<Option<String>>, Vec<Option<String>>);

type UndoReply = (
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

type PruneReply = (
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

impl<'a> Survey<'a> {
    pub(super) fn new(store: &'a Shared, job: &'a Job) -> Self {
        Self {
            store,
            job,
            is_asked: false,
            is_placed_anew: false,
            found: None,
            counters: Counters::default(),
            born: String::new(),
            anchors: Vec::new(),
            state: StateRevision::default(),
            visible: Vec::new(),
            hidden: Vec::new(),
            sizes: BTreeMap::new(),
            made: None,
            prunable: PrunableTexts::default(),
        }
    }
}

impl Transaction for Survey<'_> {
    type Error = StoreError;

    async fn facts(&mut self, needs: &Needs<'_>, facts: &mut Facts) -> Result<Attempt, StoreError> {
        let is_first = !core::mem::replace(&mut self.is_asked, true);
        if needs.receipt.is_some() {
            self.is_placed_anew = false;
            self.append_facts(needs, facts, is_first).await?;
        } else if needs.projection.is_some() || !needs.anchors.is_empty() {
            self.is_placed_anew = true;
            return self.place_facts(needs, facts).await;
        } else if needs.record_id.is_some() {
            self.commit_facts(needs, facts).await?;
        } else if let Some(made) = needs.made {
            self.undo_facts(made, facts).await?;
        } else if let Some((before, seqs)) = &needs.earlier_edits {
            return self.edit_facts(*before, seqs, facts).await;
        } else if let Some(through) = needs.prunable {
            self.prune_facts(through, facts).await?;
        } else {
            return self.state_facts(needs, facts, is_first).await;
        }
        Ok(Attempt::Done)
    }

    async fn apply(&mut self, changes: &Changes<'_>) -> Result<Attempt, StoreError> {
        match (&changes.insert, changes.state) {
            (Some(insert), _) => self.append(changes, insert).await,
            (None, Some(state)) => self.save_state(state).await,
            (None, None) => self.change(changes).await,
        }
    }
}

impl Survey<'_> {
    /// The answer of a script; `None` if there is no such session.
    async fn ask<T: ::redis::FromRedisValue>(
        &self,
        script: &'static ::redis::Script,
        args: Args,
    ) -> Result<Option<T>, StoreError> {
        let call = Call { script, keys: &self.job.keys, args };
        self.store.connections.call(self.job.op().name(), &call).await
    }

    fn count(&mut self, (head, revision, born, live_messages, live_tokens): CountersReply) -> Counters {
        let (head, revision): (Head, Revision) = (Seq(head), Revision(revision));
        self.counters = Counters { head, revision, live_messages, live_tokens, ..Counters::default() };
        self.born = born;
        self.counters
    }

    async fn commit_facts(&mut self, needs: &Needs<'_>, facts: &mut Facts) -> Result<(), StoreError> {
        let mut args = Args::of([needs.record_id.unwrap_or_default().to_string()]);
        args.list(needs.edited.iter().map(ToString::to_string));
        args.list(needs.turns.iter().map(ToString::to_string));
        let found: Option<CommitReply> = self.ask(&SCRIPTS.survey, args).await?;
        let Some((counters, records, members, log, edits, places)) = found else { return Ok(()) };
        facts.session = Some(self.count(counters));
        let known = records.first().map(|record| StoredRecord::parse(record)).transpose()?;
        facts.record_id = known.map(|record| record.id);
        self.see(&members, facts)?;
        for ((seq, value), edit) in needs.edited.iter().zip(&log).zip(&edits) {
            if value.is_some() {
                let shortened = edit.as_deref().map(row::read_edit).transpose()?;
                facts.edited.push(Edited { shortened, ..self.whole(*seq, value.as_ref())? });
            }
        }
        for (seq, place) in needs.turns.iter().zip(&places) {
            let place = place.as_deref().map(Place::parse).transpose()?;
            facts.turns.extend(place.map(|place| (*seq, place.turn)));
        }
        Ok(())
    }

    /// Decodes a message in its appended form.
    fn whole(&mut self, seq: Seq, value: Option<&String>) -> Result<Edited, StoreError> {
        let row = Row::read(seq, value)?;
        let whole = row.count();
        self.sizes.insert(seq, whole.tokens);
        Ok(Edited { seq, message: row.message()?, whole, shortened: None })
    }

    /// Decodes the visible messages and summaries.
    fn see(&mut self, members: &[String], facts: &mut Facts) -> Result<(), StoreError> {
        if members.len() as u64 != self.counters.live_messages {
            return Err(corrupt(LOST));
        }
        self.visible = members.iter().map(|member| Member::parse(member)).collect::<Result<_, _>>()?;
        facts.visible = Member::visible(&self.visible);
        Ok(())
    }

    async fn survey_undo(&self, made: Revision, edited: &[Seq]) -> Result<Option<UndoReply>, StoreError> {
        let mut args = Args::of([made.to_string()]);
        args.list(edited.iter().map(ToString::to_string));
        self.ask(&SCRIPTS.undo, args).await
    }

    async fn undo_facts(&mut self, made: Revision, facts: &mut Facts) -> Result<(), StoreError> {
        let found = self.survey_undo(made, &[]).await?;
        let Some((counters, record, latest, prunes, visible, hidden, _, _, open)) = found else {
            return Ok(());
        };
        facts.session = Some(self.count(counters));
        self.see(&visible, facts)?;
        self.hidden = hidden.iter().map(|member| Member::parse(member)).collect::<Result<_, _>>()?;
        self.made = record.first().map(|record| StoredRecord::parse(record)).transpose()?;
        facts.latest_held = Some(Revision(latest)).filter(|latest| *latest != Revision(0));
        facts.calls = Some(row::read_open(&open)?);
        let prunes = prunes.iter().map(|text| read_pruned(text)).collect::<Result<Vec<_>, _>>()?;
        if let Some(stored) = &self.made {
            facts.made = Some(Made {
                record: stored.record()?,
                undone_by: stored.undone_by,
                pruned_since: prunes.iter().any(|pruned| pruned.revision > made && pruned.through >= made),
                hidden: Member::visible(&self.hidden),
            });
        }
        Ok(())
    }

    /// Reads the messages that the record to undo has edited, and their earlier edits.
    async fn edit_facts(
        &mut self,
        before: Revision,
        seqs: &[Seq],
        facts: &mut Facts,
    ) -> Result<Attempt, StoreError> {
        let (born, counters) = (self.born.clone(), self.counters);
        let found = self.survey_undo(before, seqs).await?;
        let Some((now, .., log, records, _)) = found else { return Ok(Attempt::Moved) };
        if self.count(now) != counters || self.born != born {
            return Ok(Attempt::Moved);
        }
        for (seq, value) in seqs.iter().zip(&log).filter(|(_, value)| value.is_some()) {
            let whole = self.whole(*seq, value.as_ref())?;
            facts.edited.push(whole);
        }
        let wanted: BTreeSet<Seq> = seqs.iter().copied().collect();
        let mut earlier: Vec<(Revision, MessageEdit)> = Vec::new();
        for text in &records {
            let stored = StoredRecord::parse(text)?;
            if stored.undone_by.is_none() && stored.revision < before {
                let edits = stored.record()?.edits.into_iter().filter(|edit| wanted.contains(&edit.seq));
                earlier.extend(edits.map(|edit| (stored.revision, edit)));
            }
        }
        facts.earlier_edits = Some(earlier);
        Ok(Attempt::Done)
    }

    async fn prune_facts(&mut self, through: Revision, facts: &mut Facts) -> Result<(), StoreError> {
        let found: Option<PruneReply> = self.ask(&SCRIPTS.prune, Args::of([through.to_string()])).await?;
        let Some((counters, members, messages, edits, summaries, records, prunes, tokens, receipts)) = found
        else {
            return Ok(());
        };
        facts.session = Some(self.count(counters));
        self.hidden = members.iter().map(|member| Member::parse(member)).collect::<Result<_, _>>()?;
        self.prunable = PrunableTexts { members, messages, edits, summaries, records, tokens, receipts };
        let mut prunable = Prunable::default();
        for member in &self.hidden {
            match *member {
                Member::Message { seq, .. } => prunable.messages.push(seq),
                Member::Summary { key, revision: made, .. } => {
                    prunable.summaries.push(SummaryPlace { made, key });
                }
            }
        }
        let prunes = prunes.iter().map(|text| read_pruned(text)).collect::<Result<Vec<_>, _>>()?;
        prunable.before = prunes.into_iter().rev().find(|pruned| pruned.through == through);
        facts.prunable = prunable;
        Ok(())
    }

    async fn state_facts(
        &mut self,
        needs: &Needs<'_>,
        facts: &mut Facts,
        is_first: bool,
    ) -> Result<Attempt, StoreError> {
        if let Op::SaveState(new) = self.job.op()
            && is_first
        {
            // The state was usually made from the saved one. The script checks it.
            (facts.session, facts.state, self.state) =
                (Some(Counters::default()), new.made_from, new.made_from);
            return Ok(Attempt::Done);
        }
        let mut command = ::redis::cmd("HMGET");
        command.arg(self.job.keys.one(Key::Session)).arg(&["head", "state_revision", "state"]);
        let fields: (Option<u64>, Option<u64>, Option<String>) =
            self.store.connections.ask(self.job.op().name(), &command).await?;
        let (Some(head), revision, text) = fields else { return Ok(Attempt::Done) };
        let revision = StateRevision(revision.unwrap_or_default());
        if needs.state_text {
            facts.state_text = Some(text.unwrap_or_default().into());
            return Ok(if facts.state == revision { Attempt::Done } else { Attempt::Moved });
        }
        self.counters.head = Seq(head);
        (facts.session, facts.state, self.state) = (Some(self.counters), revision, revision);
        Ok(Attempt::Done)
    }
}
