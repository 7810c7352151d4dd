//! A token counter for a growing text.

use core::fmt;

use epitome_core::{TokenCounter, Tokens};

/// Counts a text that arrives in pieces: after each piece, the amount is that of a count of the whole text.
///
/// Counts add up at the places of [`TokenCounter::last_cut`]. The text before the last such place is counted once
/// and dropped. Only the text behind it, usually a word, is counted again with the next piece.
///
/// *Cost*: with a query after every piece, about three times one count of the whole by the same counter, because
/// every unfinished word is counted too. With `FastTiktoken` that is about half of one count by `tiktoken-rs`. With
/// one query at the end, hardly more than one count. The program `counters` in the workspace's `benches` measures
/// it.
///
/// A text without such a place (a megabyte of one letter) is held, and counted whole at every
/// [`StreamCounter::tokens`]. A query after every piece then has quadratic cost: make fewer queries. For a counter
/// that returns no places, every text is like that.
///
/// ```
/// use epitome_core::TokenCounter as _;
/// use epitome_message::tokens::{StreamCounter, counter_by_name};
///
/// # #[cfg(feature = "tiktoken")] {
/// let counter = counter_by_name("o200k_base")?;
/// let mut stream = StreamCounter::new(&*counter);
/// for delta in ["Count", "ing is", " addi", "tive."] {
///     stream.push(delta);
/// }
/// assert_eq!(stream.tokens(), counter.count("Counting is additive."));
/// # }
/// # Ok::<(), epitome_message::tokens::UnknownCounter>(())
/// ```
#[derive(Clone)]
pub struct StreamCounter<C> {
    counter: C,
    /// The amount of the dropped text.
    done: u64,
    /// The text behind the dropped text, from `start` on.
    tail: String,
    start: usize,
    /// Length of the beginning of the tail that is known to have no cut.
    scanned: usize,
    /// The end of the last count in the tail, and the amount from `start` to there.
    counted: (usize, Tokens),
}

impl<C: TokenCounter> StreamCounter<C> {
    /// A counter with an empty text.
    #[must_use]
    pub const fn new(counter: C) -> Self {
        Self { counter, done: 0, tail: String::new(), start: 0, scanned: 0, counted: (0, Tokens::ZERO) }
    }

    /// Adds text. It is counted at the next query, or after a few kilobytes.
    pub fn push(&mut self, delta: &str) {
        if self.tail.capacity() == 0 {
            // The usual final capacity.
            self.tail.reserve(2 * KEPT_BYTES_MAX);
        }
        self.tail.push_str(delta);
        if self.tail.len().saturating_sub(self.scanned) >= HELD_BYTES_MAX {
            self.settle_unasked();
        }
    }

    /// The amount of all text so far.
    pub fn tokens(&mut self) -> Tokens {
        if self.counted.0 < self.tail.len() {
            self.settle();
            self.counted = (self.tail.len(), self.counter.count(self.held()));
        }
        Tokens::from_u64(self.done.saturating_add(self.counted.1.as_u64()))
    }

    #[cold]
    fn settle_unasked(&mut self) {
        self.settle();
    }

    /// Counts the text before the last cut, and drops it.
    #[inline]
    fn settle(&mut self) {
        if let Some(end) = self.counter.last_cut(&self.tail, self.scanned.max(self.start)) {
            // Usually the text was already counted up to here.
            let finished =
                if end == self.counted.0 { self.counted.1.as_u64() } else { self.amount_until(end) };
            self.done = self.done.saturating_add(finished);
            self.start = end;
            self.counted = (end, Tokens::ZERO);
            if self.start >= KEPT_BYTES_MAX {
                self.forget();
            }
        }
        // The last two characters may still be next to a cut; all before them are checked. There is no cut within a
        // character, so two bytes are enough.
        self.scanned = self.tail.len().saturating_sub(2);
    }

    /// Removes the counted text from memory.
    #[cold]
    fn forget(&mut self) {
        self.tail.drain(..self.start);
        self.counted.0 = self.counted.0.saturating_sub(self.start);
        self.start = 0;
    }

    /// The amount of the held text before a cut, if the last count ended at another place.
    fn amount_until(&self, cut: usize) -> u64 {
        let Some(finished) = self.tail.get(self.start..cut) else { return 0 };
        let (end, known) = (self.counted.0.saturating_sub(self.start), self.counted.1.as_u64());
        // If the last count ended at a cut, as it mostly does between a model's words, only the text behind it is
        // counted.
        let after = finished.get(end..).filter(|after| end > 0 && after.starts_with(BLANK));
        let is_cut = |after: &str| {
            let here = finished.len().saturating_sub(after.len()).saturating_add(1);
            let here =
                finished.get(..here).and_then(|here| self.counter.last_cut(here, end.saturating_sub(1)));
            here.is_some()
        };
        match after.filter(|after| is_cut(after)) {
            Some(after) => known.saturating_add(self.counter.count(after).as_u64()),
            None => self.counter.count(finished).as_u64(),
        }
    }

    fn held(&self) -> &str {
        self.tail.get(self.start..).unwrap_or_default()
    }

    /// The token counter.
    pub const fn counter(&self) -> &C {
        &self.counter
    }
}

impl<C: TokenCounter> fmt::Debug for StreamCounter<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamCounter")
            .field("counter", &self.counter.name())
            .field("done", &self.done)
            .field("held_bytes", &self.held().len())
            .finish_non_exhaustive()
    }
}

/// Characters of one byte that begin a word.
const BLANK: [char; 2] = [' ', '\n'];
/// Maximum length of uncounted text, in bytes. Then it is counted without a query.
const HELD_BYTES_MAX: usize = 4_096;
/// Maximum length of counted text in memory, in bytes. Then it is removed.
const KEPT_BYTES_MAX: usize = 256;
