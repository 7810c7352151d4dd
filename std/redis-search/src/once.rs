//! A task that is done once, by one of those that need it.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::Mutex;

/// Whether a task is done. The first that needs it does it, and the others wait.
#[derive(Debug, Default)]
pub(crate) struct Once {
    is_done: AtomicBool,
    failures: AtomicU64,
    turn: Mutex<()>,
}

impl Once {
    /// Does the task unless it is done.
    ///
    /// Those that waited for an attempt that failed try all at once: one after the other, the last would wait for the time limits of all.
    ///
    /// # Cancel safety
    /// If the future is dropped, the next in line does the task.
    pub(crate) async fn ensure<E>(&self, task: impl AsyncFnOnce() -> Result<(), E>) -> Result<(), E> {
        if self.is_done.load(Ordering::Relaxed) {
            return Ok(());
        }
        let failures = self.failures.load(Ordering::Relaxed);
        let turn = self.turn.lock().await;
        if self.is_done.load(Ordering::Relaxed) {
            return Ok(());
        }
        let has_failed = self.failures.load(Ordering::Relaxed) != failures;
        let turn = (!has_failed).then_some(turn);
        let done = task().await;
        match &done {
            Ok(()) => self.is_done.store(true, Ordering::Relaxed),
            Err(_) => _ = self.failures.fetch_add(1, Ordering::Relaxed),
        }
        drop(turn);
        done
    }

    /// Lets the task be done again.
    pub(crate) fn forget(&self) {
        self.is_done.store(false, Ordering::Relaxed);
    }
}
