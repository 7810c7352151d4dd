//! Costs of compactions.

use std::sync::{Arc, Mutex, PoisonError};

use epitome_core::Usage;

/// The usage of the model calls for compactions, recorded as they are paid for: whatever becomes of the
/// compaction, and of the future that waits for it. A clone tells the same.
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
    /// Tells what one call has cost.
    pub fn tell(&self, usage: Usage) {
        // Where another thread has panicked, what it had told is still right.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(usage);
    }

    /// The recorded usage that is not yet in a session's ledger.
    #[must_use]
    pub fn told(&self) -> Vec<Usage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes out what was told.
    pub(crate) fn take(&self) -> Vec<Usage> {
        core::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
