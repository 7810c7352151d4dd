//! Costs of compactions.

use std::sync::{Arc, Mutex, PoisonError};

use epitome_core::Usage;

/// The usage of the model calls for compactions. Each usage is recorded when it is paid for, whatever the outcome of
/// the compaction and of the future that waits for it. A clone shares the record.
///
/// ```
/// use epitome_core::Usage;
/// use epitome_std::compaction::Costs;
///
/// let costs = Costs::default();
/// costs.clone().tell(Usage::new(1_200, 80));
/// assert_eq!(costs.told(), [Usage::new(1_200, 80)]);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Costs(Arc<Mutex<Vec<Usage>>>);

impl Costs {
    /// Records the usage of one call.
    pub fn tell(&self, usage: Usage) {
        // After a panic of another thread, the recorded usage is still valid.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(usage);
    }

    /// The recorded usage that is not yet in a session's ledger.
    #[must_use]
    pub fn told(&self) -> Vec<Usage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes out the recorded usage.
    pub(crate) fn take(&self) -> Vec<Usage> {
        core::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
