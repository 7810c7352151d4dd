//! Counts of many messages on all cores.

use core::num::NonZero;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use epitome_core::message::MessageView;
use epitome_core::{Amount, TokenCounter, Tokens, measure_message};

use super::measure_with_parts;

/// The sizes of `messages`, in order: [`measure_message`] of each, on as many threads as there are cores.
///
/// The calling thread waits, and calls `progress` from time to time with the number of finished messages. It counts
/// few messages itself, because another thread costs more than they do. It also counts all messages that are left
/// if the system starts no threads.
///
/// ```
/// use epitome_core::ClassEstimator;
/// use epitome_core::message::SimpleMessage;
/// use epitome_message::tokens::measure_messages;
///
/// let messages = [SimpleMessage::user("Hello"), SimpleMessage::assistant("Hello! What is it?")];
/// let sizes = measure_messages(&messages, &ClassEstimator::new(), |done| assert!(done <= 2));
/// assert_eq!(sizes.len(), 2);
/// ```
pub fn measure_messages<M: MessageView + Sync>(
    messages: &[M],
    counter: &(dyn TokenCounter + Sync),
    progress: impl FnMut(usize),
) -> Vec<Amount> {
    for_all(messages, &|message| measure_message(message, counter), progress)
}

/// Measures messages, with the sizes of the parts of each.
pub fn measure_all_with_parts<M: MessageView + Sync>(
    messages: &[M],
    counter: &(dyn TokenCounter + Sync),
    progress: impl FnMut(usize),
) -> Vec<(Amount, Vec<Tokens>)> {
    for_all(messages, &|message| measure_with_parts(message, counter), progress)
}

fn for_all<M: Sync, T: Clone + Send>(
    messages: &[M],
    measure: &(impl Fn(&M) -> T + Sync),
    mut progress: impl FnMut(usize),
) -> Vec<T> {
    let mut sizes = vec![None; messages.len()];
    let chunks = messages.len().div_ceil(CHUNK_MESSAGES);
    // The query of the number of cores reads files, and takes longer than to count the few messages of a turn.
    let threads = match chunks {
        0 | 1 => 1,
        _ => thread::available_parallelism().map_or(1, NonZero::get).min(chunks),
    };
    if threads > 1 {
        count_chunks(messages, measure, threads, &mut sizes, &mut progress);
    }
    let left = sizes.into_iter().zip(messages).enumerate();
    let counted = left.map(|(at, (size, message))| {
        let was_counted = size.is_some();
        let size = size.unwrap_or_else(|| measure(message));
        if !was_counted && at.saturating_add(1).is_multiple_of(CHUNK_MESSAGES) {
            progress(at.saturating_add(1));
        }
        size
    });
    counted.collect()
}

/// Fills `sizes`, as far as threads can be started.
fn count_chunks<M: Sync, T: Send>(
    messages: &[M],
    measure: &(impl Fn(&M) -> T + Sync),
    threads: usize,
    sizes: &mut [Option<T>],
    progress: &mut impl FnMut(usize),
) {
    let next = AtomicUsize::new(0);
    let (send, receive) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..threads {
            let (next, send) = (&next, send.clone());
            let work = move || {
                // Each free thread takes the next chunk, because messages differ a thousandfold in size.
                while let Some((at, chunk)) = chunk(messages, next.fetch_add(1, Ordering::Relaxed)) {
                    let counted: Vec<_> = chunk.iter().map(measure).collect();
                    if send.send((at, counted)).is_err() {
                        return;
                    }
                }
            };
            // If a thread cannot be started, the caller counts the rest.
            let _ = thread::Builder::new().spawn_scoped(scope, work);
        }
        drop(send);
        let mut done = 0_usize;
        for (at, counted) in receive {
            done = done.saturating_add(counted.len());
            for (size, counted) in sizes.iter_mut().skip(at).zip(counted) {
                *size = Some(counted);
            }
            progress(done);
        }
    });
}

/// The messages of a chunk, with the position of the first.
fn chunk<M>(messages: &[M], number: usize) -> Option<(usize, &[M])> {
    let first = number.checked_mul(CHUNK_MESSAGES).filter(|first| *first < messages.len())?;
    let end = first.saturating_add(CHUNK_MESSAGES).min(messages.len());
    Some((first, messages.get(first..end)?))
}

/// Number of messages of a chunk: tens of kilobytes, a fraction of a millisecond.
const CHUNK_MESSAGES: usize = 64;

#[cfg(test)]
mod tests {
    use epitome_core::ClassEstimator;
    use epitome_core::message::SimpleMessage;

    use super::*;

    #[test]
    fn sizes_are_those_of_counting_one_by_one() {
        let texts: Vec<_> = (0..1_000_usize).map(|at| "word ".repeat(at * 37 % 101)).collect();
        for length in [0, 1, CHUNK_MESSAGES, CHUNK_MESSAGES + 1, 1_000] {
            let messages: Vec<_> = texts[..length].iter().map(|text| SimpleMessage::user(text)).collect();
            let counter = ClassEstimator::new();
            let one_by_one: Vec<_> =
                messages.iter().map(|message| measure_message(message, &counter)).collect();
            let mut last = 0;
            let sizes = measure_messages(&messages, &counter, |done| {
                assert!(done > last && done <= length);
                last = done;
            });
            assert_eq!(sizes, one_by_one);
            assert!(length - last < CHUNK_MESSAGES);
        }
    }
}
