//! The pause of a writer before it retries after a conflict with another writer.

use core::future::poll_fn;
use core::hash::{BuildHasher as _, BuildHasherDefault};
use core::task::Poll;
use core::time::Duration;
use std::hash::DefaultHasher;

use futures_timer::Delay;

/// Waits before attempt `attempt + 1`, counted from 1. The first retry comes at once, because most conflicts are with
/// one writer that is already done. The next ones wait up to 1, 2, 4 .. `WAIT_MAX`. Each writer waits a different part
/// of that time. `writer` is a value that no other writer has, for example the token of its append.
///
/// # Cancel safety
/// Dropping the future ends the wait.
pub async fn pause(attempt: u32, writer: &impl core::hash::Hash) {
    let wait = wait(attempt, writer);
    if !wait.is_zero() {
        Delay::new(wait).await;
    }
}

/// Yields once to the other tasks of the executor.
///
/// # Cancel safety
/// Dropping the future ends the wait.
pub(crate) async fn give_way() {
    let mut has_waited = false;
    poll_fn(|cx| {
        if has_waited {
            return Poll::Ready(());
        }
        has_waited = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

fn wait(attempt: u32, writer: &impl core::hash::Hash) -> Duration {
    let Some(doublings) = attempt.checked_sub(2) else { return Duration::ZERO };
    let most = Duration::from_millis(1).saturating_mul(1 << doublings.min(16)).min(WAIT_MAX);
    let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one((attempt, writer));
    // At least one half of the longest wait, so that the wait is never too short.
    let part = u32::try_from(hash % 512).unwrap_or_default();
    (most / 1_024).saturating_mul(part.saturating_add(512))
}

/// The longest wait: the time of a few appends with their flushes. A longer wait would favour writers that do not wait.
const WAIT_MAX: Duration = Duration::from_millis(16);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_limit_and_differ_between_writers() {
        assert_eq!(wait(1, &"a"), Duration::ZERO);
        for attempt in 2..40 {
            let most = Duration::from_millis(1 << (attempt - 2).min(16)).min(WAIT_MAX);
            let waits: Vec<_> = (0..100).map(|writer| wait(attempt, &writer)).collect();
            assert!(
                waits.iter().all(|wait| *wait >= most / 2 - most / 64 && *wait <= most),
                "{attempt}: {waits:?}"
            );
            assert!(waits.iter().any(|wait| *wait != waits[0]));
        }
    }
}
