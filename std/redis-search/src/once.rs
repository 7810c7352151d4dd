//! A task that several callers need and that runs once.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::Mutex;

/// State of the task. The first caller runs the task, and the others wait.
#[derive(Debug, Default)]
pub(crate) struct Once {
    is_done: AtomicBool,
    failures: AtomicU64,
    turn: Mutex<()>,
}

impl Once {
    /// Runs the task unless it is done.
    ///
    /// After a failed attempt, all waiting callers try at the same time. If they tried one after the other, the last
    /// caller would wait for the time limits of all.
    ///
    /// # Cancel safety
    /// If the future is dropped, the next waiting caller runs the task.
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

    /// Marks the task as not done, so that the next caller runs it again.
    pub(crate) fn forget(&self) {
        self.is_done.store(false, Ordering::Relaxed);
    }
}
