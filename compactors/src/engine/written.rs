//! Summaries of one pass: none is paid for twice.

use std::vec::Vec;

use epitome_core::Tokens;
use epitome_std::compaction::FellBack;
use epitome_std::wire::ConversionLoss;

use super::again::Key;
use crate::gap::GapFilling;

/// Summaries that were written in a pass.
#[derive(Default)]
pub(super) struct Written {
    /// Summaries by their messages. Messages never change, so a summary stays valid.
    summaries: Vec<Known>,
    /// The fallback that replaced another compactor, if one did.
    pub(super) fell_back: Option<FellBack>,
}

/// The messages that a summary covers, and the summary.
pub(super) type Known = (Vec<Key>, GapFilling);

impl Written {
    /// The state of a pass with these summaries from before.
    pub(super) fn knowing(summaries: Vec<Known>) -> Self {
        Self { summaries, ..Self::default() }
    }

    pub(super) fn remember(&mut self, keys: Vec<Key>, summary: &GapFilling) {
        self.summaries.push((keys, summary.clone()));
    }

    /// Content that the writers of the summaries did not receive.
    pub(super) fn losses(&self) -> impl Iterator<Item = &ConversionLoss> {
        self.summaries.iter().flat_map(|(_, summary)| &summary.losses)
    }

    /// The written summaries.
    pub(super) fn into_summaries(self) -> Vec<Known> {
        self.summaries
    }

    /// The summary of these messages, if it fits `allowance`.
    pub(super) fn known(&self, keys: &[Key], allowance: Tokens) -> Option<GapFilling> {
        let known = self.summaries.iter().find(|(known, it)| known == keys && it.tokens <= allowance);
        known.map(|(_, summary)| summary.clone())
    }
}
