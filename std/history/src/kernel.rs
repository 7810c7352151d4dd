//! The history kernel: every operation that changes a session is decided here, for all stores.
//!
//! An operation ([`Op`]) names the facts that its decision wants ([`Needs`]). A store reads these facts ([`Facts`]), and
//! `decide` makes of them an answer, an error, or the changes ([`Changes`]) that the store then writes in one step. Nothing in
//! `decide` reads or writes, waits, or looks at a clock.
//!
//! A store is a [`Tables`]: it runs an operation in its own kind of step, and reads what is asked for. `run` is the loop
//! between the two halves. Whatever has `Tables` is a [`HistoryStore`](crate::HistoryStore).
//!
//! It is for the stores of this project, and may change with any release. A store of somebody else implements `HistoryStore`.

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
