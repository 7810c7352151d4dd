//! A session of the store as a value, for whoever writes it elsewhere.

use super::{Kept, MemoryStore, Op, Session, check, run_now};
use crate::history::{Append, AppendToken, CompactionRecord, Entry, SessionId, StoreError, StoreErrorKind};

/// All of a session: its log, its compactions, and under which tokens the log was appended.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Snapshot {
    pub(crate) entries: Vec<Entry>,
    /// In order; each with how many messages it has appended.
    pub(crate) appends: Vec<(AppendToken, usize)>,
    /// In order.
    pub(crate) records: Vec<CompactionRecord>,
}

impl MemoryStore {
    /// All of a session; `None` if there is no such session.
    pub(crate) fn snapshot(&self, session: &SessionId) -> Option<Snapshot> {
        let sessions = self.0.sessions();
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
        })
    }

    /// Makes a session of what [`MemoryStore::snapshot`] gave: every append and every commit is done again, in an order in
    /// which they can have happened. A commit is done as soon as it can be: what came between it and then has neither
    /// moved the revision nor added to what it hides, or it would have been refused.
    ///
    /// # Errors
    /// `Corrupt` if they cannot have happened so. The store then has no such session.
    pub(crate) fn restore(&self, id: &SessionId, snapshot: &Snapshot) -> Result<(), StoreError> {
        let mut session = Session::default();
        let mut records = snapshot.records.iter().peekable();
        let mut rest = &snapshot.entries[..];
        for (token, length) in &snapshot.appends {
            let (entries, others) = rest.split_at_checked(*length).ok_or_else(|| inconsistent("appends"))?;
            let append = Op::Append(Append::new(token, session.head(), entries), None);
            check(&append)?;
            run_now(&append, &mut session).map_err(refused)?;
            while let Some(record) = records
                .next_if(|next| next.parent == session.counters.revision && next.head <= session.head())
            {
                run_now(&Op::commit(record)?, &mut session).map_err(refused)?;
            }
            rest = others;
        }
        if !rest.is_empty() || records.next().is_some() {
            return Err(inconsistent("records"));
        }
        self.0.sessions().insert(id.clone(), session);
        Ok(())
    }
}

fn inconsistent(what: &str) -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, format!("a kept history: its {what} do not fit its messages"))
}

fn refused(error: StoreError) -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, "a kept history contradicts itself").with_source(error)
}
