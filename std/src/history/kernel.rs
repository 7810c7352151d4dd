//! The history kernel: every operation that changes a session is decided here, for all stores.
//!
//! An operation ([`Op`]) names the facts that its decision wants ([`Needs`]). A store reads these facts ([`Facts`]), and
//! [`decide`] makes of them an answer, an error, or the changes ([`Changes`]) that the store then writes in one step. Nothing in
//! `decide` reads or writes, waits, or looks at a clock.
//!
//! A store is a [`Tables`]: it runs an operation in its own kind of step, and reads what is asked for. [`run`] is the loop
//! between the two halves. [`Store`] makes a history store of any `Tables`.

mod changes;
mod decide;
mod facts;
mod op;
mod owned;
mod run;
mod store;

#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(super) use self::changes::runs;
pub(super) use self::changes::{Changes, Edits, Insert, KeptState as NewKeptState, NewRecord, Prune};
#[cfg(feature = "redis")]
pub(super) use self::decide::{Decision, decide};
pub(super) use self::facts::{
    Counters, Edited, Facts, Made, Needs, Prunable, Receipt, SaidBefore, SummaryPlace, Visible,
};
pub(super) use self::op::{Op, Reply};
pub(super) use self::owned::OwnedOp;
#[cfg(any(feature = "postgres", feature = "redis"))]
pub(super) use self::run::run;
pub(super) use self::run::{Attempt, Transaction, run_now};
pub use self::store::Store;
pub(super) use self::store::{Extent, Tables};
