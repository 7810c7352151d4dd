//! The history kernel: every operation that changes a session is decided here, for all stores.
//!
//! A store of your own implements [`Tables`], and is a [`HistoryStore`](crate::HistoryStore) then. It reads rows and writes rows; it decides
//! nothing. An operation ([`Op`]) takes this way:
//!
//! 1. [`Tables::execute`] begins a transaction of the medium, and calls [`run`] on a [`Transaction`].
//! 2. [`Transaction::facts`] reads the facts that the operation needs ([`Needs`]) into [`Facts`].
//! 3. [`decide`] answers, refuses, asks for more facts, or says what to write. It reads nothing, writes nothing, and looks at no clock.
//! 4. [`Transaction::apply`] writes these [`Changes`] in one step.
//!
//! `docs/adding-a-store.md` in the repository goes through a whole store, and lists the rows that it keeps. A release that adds an operation
//! may add a fact and a change. Both are structs that a store takes apart, so that the compiler names what is missing.

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
