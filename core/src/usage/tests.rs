//! Usage: reports of each vendor, and the ledger against a naive twin.

#![expect(clippy::arithmetic_side_effects, reason = "a test that overflows fails, which is right")]

mod convergence;
mod ledger;
mod properties;
mod report;
#[cfg(feature = "serde")]
mod saved;

use std::string::String;

use crate::{
    Basis, Budget, ClassEstimator, Head, ModelKey, Revision, Seq, Stamp, TokenCounter, Tokens, UsageLedger,
};

/// A counter with a name and a basis only.
struct Named(&'static str, Basis);

impl TokenCounter for Named {
    fn name(&self) -> &str {
        self.0
    }

    fn basis(&self) -> Basis {
        self.1
    }

    fn count(&self, text: &str) -> Tokens {
        ClassEstimator.count(text)
    }
}

fn key(number: u64) -> ModelKey {
    ModelKey::new(&String::from_iter(core::iter::repeat_n('m', number as usize)), &ClassEstimator)
}

fn ledger() -> UsageLedger {
    UsageLedger::new(key(0), Budget::default())
}

fn stamp(revision: u64, head: u64) -> Stamp {
    Stamp::new(Revision(revision), Head::from(Seq(head)))
}
