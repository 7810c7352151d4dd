//! What was written in this pass: nothing is paid for twice.

use std::string::String;
use std::sync::PoisonError;
use std::vec::Vec;

use epitome_core::{Tokens, Usage};
use epitome_std::message::Part;
use epitome_std::wire::Loss;

use super::again::Key;
use crate::summary::Costs;

/// What stands in the place of groups.
#[derive(Clone)]
pub(crate) struct StandsIn {
    /// What it says; of what is no text, for the plan only.
    pub(crate) text: String,
    /// What its message holds, if that is not the text.
    pub(crate) parts: Option<Vec<Part>>,
    /// The size of its message.
    pub(crate) tokens: Tokens,
    /// What whoever wrote it was not told.
    pub(crate) losses: Vec<Loss>,
}

/// What was written in a pass, and what that has cost.
#[derive(Default)]
pub(super) struct Written {
    /// Summaries by what they stand for. Messages never change, and so neither does what they mean.
    summaries: Vec<(Vec<Key>, StandsIn)>,
    costs: Costs,
}

impl Written {
    pub(super) fn remember(&mut self, keys: Vec<Key>, summary: &StandsIn) {
        self.summaries.push((keys, summary.clone()));
    }

    /// Where is told what it costs.
    pub(super) const fn costs(&self) -> &Costs {
        &self.costs
    }

    /// What those were not told who wrote in it.
    pub(super) fn losses(&self) -> impl Iterator<Item = &Loss> {
        self.summaries.iter().flat_map(|(_, summary)| &summary.losses)
    }

    /// What it has cost.
    pub(super) fn into_usage(self) -> Vec<Usage> {
        self.costs.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// The summary of these, if it is no longer than it may be.
    pub(super) fn known(&self, keys: &[Key], allowance: Tokens) -> Option<StandsIn> {
        let known = self.summaries.iter().find(|(known, it)| known == keys && it.tokens <= allowance);
        known.map(|(_, summary)| summary.clone())
    }
}
