//! What was written in this pass: nothing is paid for twice.

use std::borrow::ToOwned;
use std::string::String;
use std::sync::PoisonError;
use std::vec::Vec;

use epitome_core::{Tokens, Usage};

use super::again::Key;
use crate::summary::Costs;

/// What was written in a pass, and what that has cost.
#[derive(Default)]
pub(super) struct Written {
    /// Summaries by what they stand for. Messages never change, and so neither does what they mean.
    summaries: Vec<(Vec<Key>, String, Tokens)>,
    costs: Costs,
}

impl Written {
    pub(super) fn remember(&mut self, keys: Vec<Key>, text: &str, tokens: Tokens) {
        self.summaries.push((keys, text.to_owned(), tokens));
    }

    /// Where is told what it costs.
    pub(super) const fn costs(&self) -> &Costs {
        &self.costs
    }

    /// What it has cost.
    pub(super) fn into_usage(self) -> Vec<Usage> {
        self.costs.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// The summary of these, if it is no longer than it may be.
    pub(super) fn known(&self, keys: &[Key], allowance: Tokens) -> Option<(String, Tokens)> {
        let known = self.summaries.iter().find(|(known, _, tokens)| known == keys && *tokens <= allowance);
        known.map(|(_, text, tokens)| (text.clone(), *tokens))
    }
}
