//! The loop between a decision and the store that reads its facts and writes its changes.

use epitome_core::Revision;
use futures::FutureExt;

use super::decide::{Decision, decide, needs};
use super::{Changes, Facts, Needs, Op, Reply};
use crate::{StoreError, StoreErrorKind};

/// Whether a step was done, or the session was found to have moved since its facts were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Attempt {
    /// Done.
    Done,
    /// Done, and the session is at this revision: the facts were taken for granted, and had none.
    DoneAt(Revision),
    /// Nothing was written. The operation is decided anew.
    Moved,
}

/// One session while an operation on it is decided: in a transaction, under a lock, or with a check when it is written.
///
/// *For implementers*: the facts of one decision are of one moment. A medium that cannot hold the session still compares the
/// counters of later facts with those of the first, and writes only if nothing has come between.
#[expect(async_fn_in_trait, reason = "a medium that works on one thread need not be `Send`")]
pub trait Transaction {
    /// An error of the medium.
    type Error: From<StoreError>;

    /// Reads the facts that `needs` names into `facts`, which may hold more already. The counters of the session are always read; without a
    /// session, `facts.session` stays `None` and nothing else is read.
    async fn facts(&mut self, needs: &Needs<'_>, facts: &mut Facts) -> Result<Attempt, Self::Error>;

    /// Writes all of `changes`, or nothing.
    async fn apply(&mut self, changes: &Changes<'_>) -> Result<Attempt, Self::Error>;

    /// Makes durable what was written before and is acknowledged once more.
    async fn confirm(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// Decides `op` on the facts that `session` has, and lets it write the changes.
///
/// # Errors
/// Those of the decision and of the medium; `Unavailable` if the session has moved each time.
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

/// `None` if the session has moved.
async fn attempt<T: Transaction>(op: &Op<'_>, session: &mut T) -> Result<Option<Reply>, T::Error> {
    let mut facts = Facts::default();
    let needs = needs(op);
    facts.anchors_asked.clone_from(&needs.anchors);
    let mut wanted = session.facts(&needs, &mut facts).await?;
    for _ in 0..ASKS_MAX {
        if wanted == Attempt::Moved {
            return Ok(None);
        }
        // The decision is large, and stays where it is.
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

/// [`run`] on a medium that answers at once.
///
/// # Errors
/// As [`run`].
pub fn run_now<T: Transaction>(op: &Op<'_>, session: &mut T) -> Result<Reply, T::Error> {
    run(op, session).now_or_never().unwrap_or_else(|| {
        let context = format!("{}: the store has not answered at once", op.name());
        Err(StoreError::new(StoreErrorKind::Unavailable, context).into())
    })
}

/// Maximum number of decisions about one operation: it is decided anew if the session has moved. Nearly always the second
/// decision is a conflict, or done.
const ROUNDS_MAX: u32 = 32;

/// Maximum number of requests for facts in one decision. An append that others have overtaken asks most: for the last turn, for
/// all that is visible, for the groups that it joins then, and for the text of the state.
const ASKS_MAX: u32 = 6;
