//! Keeping a session's state in a table of its own, under the lock of the session's row.

use epitome_core::{Head, Seq};
use futures::future::try_join;

use super::failure::Failure;
use super::job::Job;
use super::lease::{Access, Lease};
use super::row::{self, digest, number, text};
use super::sql;
use crate::history::rows::int;
use crate::history::rules;
use crate::history::{KeptState, OwnedState, SessionId, StateOutcome, StateRevision};

/// Keeps a state of the session, whose row is locked.
pub(super) async fn keep(
    lease: &Lease<'_>,
    session: i64,
    head: Head,
    state: &OwnedState,
) -> Result<StateOutcome, Failure> {
    let next = state.made_from.next();
    let (made_from, made, head) = (int(state.made_from.0), int(next.0), int(head.0));
    let text = state.text.as_bytes();
    let [keep] = lease.prepare([sql::KEEP_STATE]).await?;
    if lease.row(&keep, &[&session, &made_from, &made, &head, &text]).await?.is_some() {
        return Ok(StateOutcome::Kept(next));
    }
    let [same] = lease.prepare([sql::SAME_STATE]).await?;
    Ok(match lease.row(&same, &[&session, &made, &text]).await? {
        Some(_) => StateOutcome::Kept(next),
        None => StateOutcome::Stale,
    })
}

/// Keeps a state without an append.
#[derive(Debug)]
pub(super) struct SaveStateJob {
    pub(super) session: SessionId,
    pub(super) state: OwnedState,
}

impl Job for SaveStateJob {
    const NAME: &'static str = "save_state";
    type Answer = StateOutcome;

    async fn run(&self, lease: &Lease<'_>) -> Result<StateOutcome, Failure> {
        let [lock] = lease.prepare([sql::LOCK_SESSION]).await?;
        let name = digest(self.session.as_str());
        let ((), found) = try_join(lease.begin(Access::Write), lease.row(&lock, &[&name.as_slice()])).await?;
        let row = row::session(&found.ok_or_else(|| rules::not_found(Self::NAME))?)?;
        let outcome = keep(lease, row.id, row.counters.head, &self.state).await?;
        lease.commit().await?;
        Ok(outcome)
    }
}

/// The state that is kept.
#[derive(Debug)]
pub(super) struct StateJob(pub(super) SessionId);

impl Job for StateJob {
    const NAME: &'static str = "state";
    type Answer = Option<KeptState>;

    async fn run(&self, lease: &Lease<'_>) -> Result<Option<KeptState>, Failure> {
        let [state] = lease.prepare([sql::STATE]).await?;
        let name = digest(self.0.as_str());
        let ((), found) = try_join(lease.begin(Access::Read), lease.row(&state, &[&name.as_slice()])).await?;
        lease.commit().await?;
        let found = found.ok_or_else(|| rules::not_found(Self::NAME))?;
        if found.try_get::<_, Option<i64>>(0)?.is_none() {
            return Ok(None);
        }
        let (revision, head) = (StateRevision(number(&found, 0)?), Seq(number(&found, 1)?));
        Ok(Some(KeptState::new(revision, head, text(&found, 2)?.into())))
    }
}
