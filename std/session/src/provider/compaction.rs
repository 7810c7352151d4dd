//! Compaction as a provider.

use crate::compaction::AutoCompaction;
use crate::message::Str;

use super::{ContextProvider, source_id};

/// A provider that sets the compaction of an agent's runs, for agents that are assembled from providers.
///
/// It has the effect of [`RunSettings::with_compaction`](crate::run::RunSettings::with_compaction): a run compacts the
/// history that loads, at the points that the compaction names. Its place among the providers changes nothing. The
/// settings and the options of the run take precedence. Of several such providers, the first counts.
///
/// ```
/// use std::sync::Arc;
///
/// use epitome_std::compaction::{AutoCompaction, CompactionOptions, Held, MessagesCompactor};
/// use epitome_std::provider::{CompactionProvider, InMemoryHistoryProvider, Providers};
/// use epitome_std::run::RunSettings;
///
/// let keep_all = MessagesCompactor::new("none", |held: Vec<Held>, _: CompactionOptions| async { Ok(held) });
/// let mut providers = Providers::default();
/// providers.push(InMemoryHistoryProvider::default())?;
/// providers.push(CompactionProvider::new(AutoCompaction::new(keep_all)))?;
/// let settings = RunSettings::new("helper").with_providers(providers);
/// # Ok::<(), epitome_std::session::SessionError>(())
/// ```
#[derive(Debug, Clone)]
pub struct CompactionProvider {
    source_id: Str,
    compaction: AutoCompaction,
}

impl CompactionProvider {
    /// A provider of this compaction.
    #[must_use]
    pub fn new(compaction: AutoCompaction) -> Self {
        Self { source_id: source_id::COMPACTION.into(), compaction }
    }

    /// Sets the source id.
    #[must_use]
    pub fn with_source_id(mut self, source_id: impl Into<Str>) -> Self {
        self.source_id = source_id.into();
        self
    }
}

impl ContextProvider for CompactionProvider {
    fn source_id(&self) -> &str {
        &self.source_id
    }

    fn as_compaction(&self) -> Option<&AutoCompaction> {
        Some(&self.compaction)
    }
}
