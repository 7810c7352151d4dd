//! Retries with growing delays.

use core::time::Duration;

use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::RemoteOptions;
use crate::{StoreError, StoreErrorKind};

/// Runs `operation` until an attempt has another result than `Unavailable`, or no retries are left. Each attempt has
/// the full time limit.
///
/// An attempt that exceeds its time limit is dropped. A dropped attempt must not leave partial changes.
pub async fn retry<T, F>(
    options: &RemoteOptions,
    operation: &str,
    mut attempt: impl FnMut() -> F,
) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut delays = delays(options);
    loop {
        let answer = timeout(options.timeout, attempt()).await.unwrap_or_else(|_| {
            Err(unavailable(format!("{operation}: no answer within {:?}", options.timeout)))
        });
        match answer {
            Err(error) if error.kind() == StoreErrorKind::Unavailable => match delays.next() {
                Some(delay) => sleep(jittered(delay, random())).await,
                None => return Err(error),
            },
            answer => return answer,
        }
    }
}

pub fn unavailable(context: impl Into<String>) -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, context)
}

fn delays(options: &RemoteOptions) -> impl Iterator<Item = Duration> + use<> {
    let retries = usize::try_from(options.retries).unwrap_or(usize::MAX);
    core::iter::successors(Some(options.retry_delay), |delay| Some(delay.saturating_mul(2))).take(retries)
}

/// A half of `delay`, and a random share of the other half. `random` is a uniformly distributed number.
fn jittered(delay: Duration, random: u32) -> Duration {
    let half = delay / 2;
    half.saturating_add(half.mul_f64(f64::from(random) / (f64::from(u32::MAX) + 1.0)))
}

fn random() -> u32 {
    // These bits of a random UUID are random.
    Uuid::new_v4().as_fields().0
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    use proptest::prelude::*;
    use tokio::runtime::{Builder, Runtime};
    use tokio::time::Instant;

    use super::*;

    /// A runtime with a paused clock: time advances only when every task waits for it.
    fn runtime() -> Runtime {
        Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
    }

    /// The result after attempts with these errors, the number of attempts, and the elapsed time.
    fn tried(
        options: RemoteOptions,
        kinds: &[StoreErrorKind],
    ) -> (Result<(), StoreErrorKind>, usize, Duration) {
        let attempts = Cell::new(0);
        let attempt = || {
            let at = attempts.replace(attempts.get() + 1);
            let answer = kinds.get(at).map_or(Ok(()), |kind| Err(StoreError::new(*kind, "failed")));
            async move { answer }
        };
        runtime().block_on(async {
            let begin = Instant::now();
            let answer = retry(&options, "load", attempt).await;
            (answer.map_err(|error| error.kind()), attempts.get(), begin.elapsed())
        })
    }

    #[test]
    fn only_what_is_unavailable_is_tried_again_and_so_often() {
        use StoreErrorKind::{Conflict, Corrupt, Invalid, NotFound, Unavailable};
        let options = RemoteOptions::default();
        for kind in [Conflict, Corrupt, Invalid, NotFound] {
            assert_eq!(tried(options, &[kind]), (Err(kind), 1, Duration::ZERO));
            let (answer, attempts, _) = tried(options, &[Unavailable, kind]);
            assert_eq!((answer, attempts), (Err(kind), 2));
        }
        for failures in 0..=3 {
            let (answer, attempts, _) = tried(options, &[Unavailable; 9][..failures]);
            assert_eq!((answer, attempts), (Ok(()), failures + 1));
        }
        let (answer, attempts, _) = tried(options, &[Unavailable; 4]);
        assert_eq!((answer, attempts), (Err(Unavailable), 4));
        let (answer, attempts, took) = tried(options.with_retries(0), &[Unavailable; 4]);
        assert_eq!((answer, attempts, took), (Err(Unavailable), 1, Duration::ZERO));
    }

    #[test]
    fn delays_double_and_are_at_least_their_half() {
        let (_, _, took) = tried(RemoteOptions::default(), &[StoreErrorKind::Unavailable; 3]);
        // 50, 100 and 200 ms; the clock of the runtime counts whole milliseconds.
        assert!((Duration::from_millis(175)..=Duration::from_millis(353)).contains(&took), "{took:?}");
        let doubled: Vec<_> = delays(&RemoteOptions::default()).map(|delay| delay.as_millis()).collect();
        assert_eq!(doubled, [50, 100, 200]);
        let endless = RemoteOptions::default().with_retries(u32::MAX).with_retry_delay(Duration::MAX);
        assert!(delays(&endless).take(99).all(|delay| delay == Duration::MAX));
    }

    #[test]
    fn an_attempt_that_takes_too_long_is_dropped_and_made_again() {
        let options = RemoteOptions::default().with_timeout(Duration::from_secs(7)).with_retries(1);
        runtime().block_on(async {
            let begin = Instant::now();
            let slow = || async {
                sleep(Duration::from_secs(8)).await;
                Ok(())
            };
            let error = retry(&options, "load", slow).await.unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Unavailable);
            assert_eq!(error.to_string(), "load: no answer within 7s");
            assert!(begin.elapsed() >= Duration::from_secs(14) && begin.elapsed() < Duration::from_secs(15));
            let fast = || async {
                sleep(Duration::from_secs(6)).await;
                Ok(())
            };
            assert!(retry(&options, "load", fast).await.is_ok());
        });
    }

    #[test]
    fn the_longest_delay_can_be_jittered() {
        assert!(jittered(Duration::MAX, u32::MAX) > Duration::MAX / 4 * 3);
        assert_eq!(jittered(Duration::ZERO, u32::MAX), Duration::ZERO);
    }

    proptest! {
        #[test]
        fn a_jittered_delay_is_between_a_half_and_the_whole(nanos in 0..10_000_000_000_u64, random: u32) {
            let delay = Duration::from_nanos(nanos);
            let jittered = jittered(delay, random);
            prop_assert!(jittered >= delay / 2 && jittered <= delay);
            let part = f64::from(random) / 4_294_967_296.0;
            let expected = (nanos / 2) as f64 * (1.0 + part);
            prop_assert!((jittered.as_nanos() as f64 - expected).abs() <= 2.0, "{jittered:?}");
        }
    }
}
