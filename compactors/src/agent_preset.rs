//! A preset for the work of agents.

use epitome_core::{Draft, Protection, Strategy};

use crate::{Ledger, NewestFirst, Pipeline};

/// Keeps the newest work that fits, calls longer than their results, and a [`Ledger`] of the identifiers in all that goes.
///
/// *Keeps*, *drops* and *stable prefix*: as its stages, [`NewestFirst`] and the ledger, with their defaults. *Cost*: that of its stages. It is for agents that read, write and search with tools: most of what they write next they
/// have named before, in calls first of all. `docs/what-is-kept.md` has the measurements.
///
/// ```
/// # #[cfg(feature = "std")] {
/// use epitome_compactors::{AgentPreset, Engine};
///
/// let engine = Engine::new(AgentPreset::new());
/// # let _ = engine;
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentPreset {
    newest: NewestFirst,
    ledger: Ledger,
}

impl Default for AgentPreset {
    fn default() -> Self {
        Self::new()
    }
}

impl AgentPreset {
    /// With the defaults of its stages.
    #[must_use]
    pub fn new() -> Self {
        Self { newest: NewestFirst::new(), ledger: Ledger::new() }
    }

    /// The share of the goal that the ledger may have, in percent.
    #[must_use]
    pub const fn share(mut self, percent: u32) -> Self {
        self.ledger = self.ledger.share(percent);
        self
    }

    /// The share of the room for requests of which no step stays, in percent: [`NewestFirst::keep_user_messages`].
    #[must_use]
    pub const fn keep_user_messages(mut self, percent: u32) -> Self {
        self.newest = self.newest.keep_user_messages(percent);
        self
    }
}

impl Strategy for AgentPreset {
    fn name(&self) -> &'static str {
        "agent"
    }

    fn protection(&self) -> Protection {
        self.newest.protection()
    }

    fn replaces(&self) -> bool {
        true
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        Pipeline::of(&[&self.newest, &self.ledger]).plan(draft);
    }
}
