//! A preset for agents that work with tools.

use epitome_core::{Draft, Protection, Strategy};

use crate::{Ledger, NewestFirst, Pipeline};

/// Keeps the newest work that fits, and a [`Ledger`] of the identifiers in hidden messages and shortened parts.
///
/// For agents that read, write and search with tools: such an agent writes mostly what it has named before, above
/// all in its calls. Calls therefore stay longer than their results. `docs/what-is-kept.md` has the measurements.
///
/// *Keeps*, *drops*, *stable prefix* and *cost*: those of its stages, [`NewestFirst`] and the ledger, with their
/// defaults. With a small goal, or if a compaction removes little, no ledger is written: see [`Ledger`].
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
    /// A preset with the defaults of its stages.
    #[must_use]
    pub fn new() -> Self {
        Self { newest: NewestFirst::new(), ledger: Ledger::new() }
    }

    /// Sets the ledger's share of the goal, in percent.
    #[must_use]
    pub const fn share(mut self, percent: u32) -> Self {
        self.ledger = self.ledger.share(percent);
        self
    }

    /// Sets the share of the room for requests of turns without a kept step, in percent:
    /// [`NewestFirst::keep_user_messages`].
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
