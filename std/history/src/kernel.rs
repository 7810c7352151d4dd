//! The history kernel: every operation that changes a session is decided here, for all stores.
//!
//! A custom store implements [`Tables`]; it is then a [`HistoryStore`](crate::HistoryStore). The store reads and writes
//! rows, and decides nothing. An operation ([`Op`]) has these steps:
//!
//! 1. [`Tables::execute`] begins a transaction of the medium, and calls [`run`] on a [`Transaction`].
//! 2. [`Transaction::facts`] reads the facts that the operation needs ([`Needs`]) into [`Facts`].
//! 3. [`decide`] returns an answer, an error, a request for more facts, or the changes to write. It reads nothing,
//!    writes nothing, and uses no clock.
//! 4. [`Transaction::apply`] writes these [`Changes`] in one step.
//!
//! `docs/adding-a-store.md` in the repository describes a whole store and its rows. A release that adds an operation
//! may add a fact and a change. A store destructures both structs, so that the compiler reports a missing field.

mod changes;
mod decide;
mod facts;
mod op;
mod owned;
mod run;
mod store;

pub use self::changes::{Changes, Edits, Insert, NewKeptState, NewRecord, Prune, runs};
pub use self::decide::{Decision, decide};
pub use self::facts::{
    Counters, Edited, Facts, Made, Needs, Prunable, Receipt, SaidBefore, SummaryPlace, Visible,
};
pub use self::op::{Op, Reply};
pub use self::owned::OwnedOp;
pub use self::run::{Attempt, Transaction, run, run_now};
pub use self::store::{Extent, Tables};
pub use crate::ext::scan;
pub use crate::rules::{
    Anchor, Restored, Standing, VisibleMessage, VisibleSummary, bare_record, corrupt, next_page, not_found,
    not_storable,
};
pub use crate::tail::last_turn;
