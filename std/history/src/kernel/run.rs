//! The loop between a decision and the store that reads its facts and writes its changes.

use epitome_core::Revision;
use futures::FutureExt;

use super::decide::{Decision, decide, needs};
use super::{Changes, Facts, Needs, Op, Reply};
use crate::{StoreError, StoreErrorKind};

/// The result of a step: done, or not done because the session has changed since its facts were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Attempt {
    /// Done.
    Done,
    /// Done. The session is now at this revision, which was not among the facts, because the store wrote without
    /// reading it.
    DoneAt(Revision),
    /// Nothing was written. The operation is decided again.
    Moved,
}

/// Access to one session while an operation on it is decided: a transaction, a lock, or a check at the time of the
/// write.
///
/// *For implementers*: all facts of one decision must come from one moment. A medium that cannot lock the session
/// compares the counters of later facts with the first ones, and writes only if the session has not changed meanwhile.
#[expect(async_fn_in_trait, reason = "a medium that works on one thread need not be `Send`")]
pub trait Transaction {
    /// The error of the medium.
    type Error: From<StoreError>;

    /// Reads the facts that `needs` names into `facts`, which may already hold others. The counters of the session are
    /// always read. Without a session, `facts.session` stays `None` and nothing else is read.
    async fn facts(&mut self, needs: &Needs<'_>, facts: &mut Facts) -> Result<Attempt, Self::Error>;

    /// Writes all of `changes`, or nothing.
    async fn apply(&mut self, changes: &Changes<'_>) -> Result<Attempt, Self::Error>;

    /// Makes an earlier write durable, because it is acknowledged again.
    async fn confirm(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// Runs `op` on `session`: reads the facts, decides, and writes the changes.
///
/// # Errors
/// The errors of the decision and of the medium; `Unavailable` if the session has changed at every attempt.
pub async fn run<T: Transaction>(op: &Op<'_>, session: &mut T) -> Result<Reply, T::Error> {
    for _ in 0..ROUNDS_MAX {
        match attempt(op, session).await? {
            Some(reply) => return Ok(reply),
            None => continue,
        }
    }
    let context = format!("{}: the session changes all the time; try again", op.name());
    Err(StoreError::new(StoreErrorKind::Unavailable, context).into())
}

/// One attempt; `None` if the session has changed meanwhile.
async fn attempt<T: Transaction>(op: &Op<'_>, session: &mut T) -> Result<Option<Reply>, T::Error> {
    let mut facts = Facts::default();
    let needs = needs(op);
    facts.anchors_asked.clone_from(&needs.anchors);
    let mut wanted = session.facts(&needs, &mut facts).await?;
    for _ in 0..ASKS_MAX {
        if wanted == Attempt::Moved {
            return Ok(None);
        }
        // The decision is a large value: it is borrowed, not moved.
        let more = match &decide(op, &facts)? {
            Decision::Answer(reply) => {
                session.confirm().await?;
                return Ok(Some(*reply));
            }
            Decision::Change(changes, reply) => {
                return Ok(match session.apply(changes).await? {
                    Attempt::Done => Some(*reply),
                    Attempt::DoneAt(revision) => Some(reply.at(revision)),
                    Attempt::Moved => None,
                });
            }
            Decision::Ask(more) => more.clone(),
        };
        if !more.anchors.is_empty() {
            facts.anchors.clear();
            facts.anchors_asked.clone_from(&more.anchors);
        }
        wanted = session.facts(&more, &mut facts).await?;
    }
    Ok(None)
}

/// [`run`] on a medium whose futures never wait.
///
/// # Errors
/// The errors of [`run`]. `Unavailable` if a future waits.
pub fn run_now<T: Transaction>(op: &Op<'_>, session: &mut T) -> Result<Reply, T::Error> {
    run(op, session).now_or_never().unwrap_or_else(|| {
        let context = format!("{}: the store has not answered at once", op.name());
        Err(StoreError::new(StoreErrorKind::Unavailable, context).into())
    })
}

/// Maximum number of decisions about one operation. The operation is decided again if the session has changed. The
/// second decision is nearly always a conflict, or succeeds.
const ROUNDS_MAX: u32 = 32;

/// Maximum number of requests for facts in one decision. The most requests come from an append after which other
/// writers have appended: for the last turn, for all visible messages, for the groups that it joins, and for the text
/// of the state.
const ASKS_MAX: u32 = 6;
