//! A cache of counts by content.

use core::fmt;
use core::mem;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use epitome_core::{Amount, Basis, Framing, MediaRules, TokenBounds, TokenCounter, Tokens};
use sha2::{Digest as _, Sha256};

/// A counter with a cache, which counts a cached text only once. Use it for histories that are often loaded under
/// another counter than the stored one, and for files with repeated conversations.
///
/// It wraps one counter, and has its name. The key of a text is 128 bits of its SHA-256, so that a changed text is
/// counted again. It holds at most twice `entries_max` counts (about 40 bytes each), and drops the older half of
/// them at once. Texts under [`CachedCounter::BYTES_MIN`] are counted each time, which costs less than a look-up.
///
/// *Concurrency*: shared by threads; the lock is not held while a text is hashed or counted.
///
/// ```
/// use std::sync::Arc;
///
/// use epitome_core::{ClassEstimator, TokenCounter};
/// use epitome_message::tokens::CachedCounter;
///
/// let counter = CachedCounter::new(Arc::new(ClassEstimator::new()), 10_000);
/// let text = "The same file, read once more. ".repeat(100);
/// assert_eq!(counter.count(&text), ClassEstimator::new().count(&text));
/// assert_eq!(counter.count(&text), ClassEstimator::new().count(&text));
/// assert_eq!(counter.hits(), 1);
/// ```
pub struct CachedCounter {
    counter: Arc<dyn TokenCounter + Send + Sync>,
    entries_max: usize,
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    new: HashMap<Key, Amount>,
    old: HashMap<Key, Amount>,
    hits: u64,
}

type Key = [u8; 16];

impl CachedCounter {
    /// Minimum length of a cached text, in bytes. For shorter texts, the hash and the lock cost as much as a count.
    pub const BYTES_MIN: usize = 256;

    /// A cache of the counts of `counter`, of at most twice `entries_max` entries.
    #[must_use]
    pub fn new(counter: Arc<dyn TokenCounter + Send + Sync>, entries_max: usize) -> Self {
        Self { counter, entries_max: entries_max.max(1), counts: Mutex::default() }
    }

    /// Number of counts from the cache.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.locked(|counts| counts.hits)
    }

    fn locked<T>(&self, work: impl FnOnce(&mut Counts) -> T) -> T {
        // Every change is one assignment or insertion: the counts are still right after a panic elsewhere.
        work(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Counts {
    fn find(&mut self, key: &Key) -> Option<Amount> {
        let found = self.new.get(key).or_else(|| self.old.get(key)).copied();
        self.hits = self.hits.saturating_add(u64::from(found.is_some()));
        found
    }

    fn keep(&mut self, key: Key, amount: Amount, entries_max: usize) {
        if self.new.len() >= entries_max {
            self.old = mem::take(&mut self.new);
        }
        self.new.insert(key, amount);
    }
}

fn key(text: &str) -> Key {
    let mut key = Key::default();
    for (byte, digest) in key.iter_mut().zip(Sha256::digest(text.as_bytes())) {
        *byte = digest;
    }
    key
}

#[deny(clippy::missing_trait_methods, reason = "what the counter knows must not get lost")]
impl TokenCounter for CachedCounter {
    fn name(&self) -> &str {
        self.counter.name()
    }

    fn basis(&self) -> Basis {
        self.counter.basis()
    }

    fn count(&self, text: &str) -> Tokens {
        self.measure(text).tokens
    }

    fn measure(&self, text: &str) -> Amount {
        if text.len() < Self::BYTES_MIN {
            return self.counter.measure(text);
        }
        let key = key(text);
        if let Some(amount) = self.locked(|counts| counts.find(&key)) {
            return amount;
        }
        let amount = self.counter.measure(text);
        self.locked(|counts| counts.keep(key, amount, self.entries_max));
        amount
    }

    fn count_up_to(&self, text: &str, limit: Tokens) -> Option<Tokens> {
        // A count with a limit may stop early, and is not stored.
        self.counter.count_up_to(text, limit)
    }

    fn framing(&self) -> Framing {
        self.counter.framing()
    }

    fn media_rules(&self) -> MediaRules {
        self.counter.media_rules()
    }

    fn bounds(&self, text: &str) -> TokenBounds {
        self.counter.bounds(text)
    }

    fn last_cut(&self, text: &str, from: usize) -> Option<usize> {
        self.counter.last_cut(text, from)
    }
}

impl fmt::Debug for CachedCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachedCounter").field("counter", &self.counter.name()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use epitome_core::ClassEstimator;

    use super::*;

    #[test]
    fn a_changed_text_is_counted_again_and_memory_is_bounded() {
        let (plain, cached) = (ClassEstimator::new(), CachedCounter::new(Arc::new(ClassEstimator::new()), 8));
        let texts: Vec<_> = (0..100_usize).map(|at| format!("{at} words. ").repeat(40 + at)).collect();
        for text in texts.iter().chain(&texts) {
            assert_eq!(cached.count(text), plain.count(text));
        }
        assert_eq!(cached.hits(), 0, "they were forgotten before they came again");
        for text in &texts[95..] {
            assert_eq!(cached.count(text), plain.count(text));
        }
        assert_eq!(cached.hits(), 5);
        let held = cached.locked(|counts| counts.new.len() + counts.old.len());
        assert!(held <= 16, "{held}");
        let mut changed = texts[99].clone();
        changed.push('!');
        assert_eq!(cached.count(&changed), plain.count(&changed));
        assert_eq!(cached.hits(), 5);
    }

    #[test]
    fn short_texts_are_not_looked_up() {
        let cached = CachedCounter::new(Arc::new(ClassEstimator::new()), 8);
        assert_eq!((cached.count("short"), cached.count("short")), (Tokens(1), Tokens(1)));
        assert_eq!((cached.hits(), cached.locked(|counts| counts.new.len())), (0, 0));
    }
}
