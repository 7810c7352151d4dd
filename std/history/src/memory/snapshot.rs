//! A session of the memory store as a value, to be written elsewhere.

use epitome_core::{Head, Revision, Seq};
use serde::{Deserialize, Serialize};

use super::{Kept, MemoryStore, Op, Session, check, run_now};
use crate::kernel::Extent;
use crate::{
    Append, AppendToken, CompactionRecord, Entry, Live, SessionId, StoreError, StoreErrorKind, VisibleIndex,
};

/// A whole session: its log, its compactions, and the tokens of its appends.
#[derive(Debug, Default, Clone, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "a session fills it")]
pub struct Snapshot {
    /// The messages, in order.
    pub entries: Vec<Entry>,
    /// The appends in order, each with its number of messages.
    pub appends: Vec<(AppendToken, usize)>,
    /// The records, in order.
    pub records: Vec<CompactionRecord>,
    /// The other operations that changed the revision, in order.
    pub steps: Vec<Step>,
}

/// An uncompact or a prune, its revision, and the head at which it was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step(StepKind, Revision, Head);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StepKind {
    /// The uncompact of the record of this revision.
    Undo(Revision),
    /// A prune of the messages that were hidden at this revision or before.
    Prune(Revision),
}

impl MemoryStore {
    /// The messages of the next request, in order; none if there is no such session.
    ///
    /// # Errors
    /// `Corrupt` if the stored session contradicts itself.
    #[doc(hidden)]
    pub fn sent(&self, session: &SessionId) -> Result<Vec<Live>, StoreError> {
        let sessions = self.sessions();
        let Some(session) = sessions.get(session) else { return Ok(Vec::new()) };
        let sent = VisibleIndex::sent(session.load(Extent::All)?);
        sent.map_err(|error| inconsistent("groups").with_source(error))
    }

    /// The whole session; `None` if there is no such session.
    #[doc(hidden)]
    pub fn snapshot(&self, session: &SessionId) -> Option<Snapshot> {
        let sessions = self.sessions();
        let session = sessions.get(session)?;
        let length = |from: u64, to: u64| usize::try_from(to.saturating_sub(from)).unwrap_or(usize::MAX);
        Some(Snapshot {
            entries: session.log.iter().map(|slot| slot.entry.clone()).collect(),
            appends: session
                .appends
                .iter()
                .map(|logged| (logged.token.clone(), length(logged.appended.first.0, logged.appended.head.0)))
                .collect(),
            records: session.records.iter().map(|kept: &Kept| kept.committed.record.clone()).collect(),
            steps: session.steps(),
        })
    }

    /// Makes a session from the value of [`MemoryStore::snapshot`]: repeats every append and every commit, in a
    /// possible order. A commit is repeated as early as possible. This is correct: if operations between that time and
    /// the original time had changed the revision or the messages that it hides, the commit would have been refused.
    ///
    /// # Errors
    /// `Corrupt` if there is no possible order. The store then has no such session.
    #[doc(hidden)]
    pub fn restore(&self, id: &SessionId, snapshot: &Snapshot) -> Result<(), StoreError> {
        let mut session = Session::default();
        let (mut records, mut steps) = (snapshot.records.iter().peekable(), snapshot.steps.iter().peekable());
        let mut rest = &snapshot.entries[..];
        for (token, length) in &snapshot.appends {
            let (entries, others) = rest.split_at_checked(*length).ok_or_else(|| inconsistent("appends"))?;
            let append = Op::Append(Append::new(token, session.head(), entries), None);
            check(&append)?;
            run_now(&append, &mut session).map_err(refused)?;
            loop {
                let (revision, head) = (session.counters.revision, session.head());
                if let Some(record) = records.next_if(|next| next.parent == revision && next.head <= head) {
                    run_now(&Op::commit(record)?, &mut session).map_err(refused)?;
                } else if let Some(Step(kind, ..)) =
                    steps.next_if(|Step(_, made, at)| *made == revision.next() && *at <= head)
                {
                    let op = match *kind {
                        StepKind::Undo(made) => Op::Uncompact(made),
                        StepKind::Prune(through) => Op::Prune(through),
                    };
                    run_now(&op, &mut session).map_err(refused)?;
                } else {
                    break;
                }
            }
            rest = others;
        }
        if !rest.is_empty() || records.next().is_some() || steps.next().is_some() {
            return Err(inconsistent("records"));
        }
        self.sessions().insert(id.clone(), session);
        Ok(())
    }
}

impl Session {
    /// The uncompacts and prunes, in order.
    fn steps(&self) -> Vec<Step> {
        let undone = self
            .records
            .iter()
            .filter_map(|kept| Some((StepKind::Undo(kept.committed.revision), kept.committed.undone_by?)));
        let pruned = self.prunes.iter().map(|pruned| (StepKind::Prune(pruned.through), pruned.revision));
        let mut steps: Vec<Step> = undone
            .chain(pruned)
            .map(|(kind, made)| {
                // An append has the revision after it.
                let before = self.appends.partition_point(|logged| logged.appended.revision < made);
                let last = before.checked_sub(1).and_then(|at| self.appends.get(at));
                Step(kind, made, last.map_or(Seq(0), |logged| logged.appended.head))
            })
            .collect();
        steps.sort_by_key(|Step(_, made, _)| *made);
        steps
    }
}

fn inconsistent(what: &str) -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, format!("a kept history: its {what} do not fit its messages"))
}

fn refused(error: StoreError) -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, "a kept history contradicts itself").with_source(error)
}
