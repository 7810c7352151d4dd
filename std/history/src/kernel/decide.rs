//! Decisions about operations: a request for more facts, an answer, or changes.

mod append;
mod commit;
mod prune;
mod state;
mod uncompact;

#[cfg(test)]
mod tests;

use super::{Changes, Counters, Facts, Needs, Op, Reply};
use crate::StoreError;
use crate::rules;

/// The result of a decision.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "it is taken apart where it is made, and never kept")]
pub enum Decision<'a> {
    /// A request for more facts.
    Ask(Needs<'static>),
    /// An answer without changes.
    Answer(Reply),
    /// Changes to write, and the answer to return after the write.
    Change(Changes<'a>, Reply),
}

/// The facts that `op` needs first.
pub(super) fn needs<'a>(op: &Op<'a>) -> Needs<'a> {
    match *op {
        Op::Append(append, state) => append::needs(append, state),
        Op::Commit(record, _) => commit::needs(record),
        Op::Uncompact(made) => uncompact::needs(made),
        Op::Prune(through) => prune::needs(through),
        Op::SaveState(_) => state::needs(),
    }
}

/// Decides `op` on these facts.
///
/// # Errors
/// The errors that the contract names for the operation.
pub fn decide<'a>(op: &Op<'a>, facts: &'a Facts) -> Result<Decision<'a>, StoreError> {
    match *op {
        Op::Append(append, state) => append::decide(append, state, facts),
        Op::Commit(record, id) => commit::decide(record, id, facts),
        Op::Uncompact(made) => uncompact::decide(made, facts),
        Op::Prune(through) => prune::decide(through, facts),
        Op::SaveState(state) => state::decide(state, facts),
    }
}

/// The counters of a session, which must exist.
fn there(facts: &Facts, operation: &str) -> Result<Counters, StoreError> {
    facts.session.ok_or_else(|| rules::not_found(operation))
}
