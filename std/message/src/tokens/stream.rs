//! The amount of a text that is still growing.

use core::fmt;

use epitome_core::{TokenCounter, Tokens};

/// Counts a text that comes piece by piece: after each piece, the amount that a count of all of it would give.
///
/// Counts add up where the counter says so ([`TokenCounter::last_cut`]). The text before the last such place is counted once and forgotten;
/// only the text after it, mostly a word, is counted again with the next piece.
///
/// *Cost*: asked after every piece, about three times one count of the whole by the same counter, because every unfinished
/// word is counted too; with `FastTiktoken` that is about half of one count by `tiktoken-rs`. Asked once at the end, hardly
/// more than one count. The program `counters` in the workspace's `benches` measures it.
///
/// A text without any such place (a megabyte of one letter) is held, and counted whole at every
/// [`StreamCounter::tokens`], so that asking after every piece is quadratic: ask less often. For a counter that names no
/// place, every text is like that.
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
    /// The amount of what has been forgotten.
    done: u64,
    /// The text after it, from `start` on.
    tail: String,
    start: usize,
    /// Length of the beginning of the tail that is known to hold no cut.
    scanned: usize,
    /// End in the tail of the last count, and the amount from `start` to there.
    counted: (usize, Tokens),
}

impl<C: TokenCounter> StreamCounter<C> {
    /// A count of an empty text.
    #[must_use]
    pub const fn new(counter: C) -> Self {
        Self { counter, done: 0, tail: String::new(), start: 0, scanned: 0, counted: (0, Tokens::ZERO) }
    }

    /// More text comes. It is counted when somebody asks, or a few kilobytes at a time.
    pub fn push(&mut self, delta: &str) {
        if self.tail.capacity() == 0 {
            // What it grows to in the end.
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

    /// Counts what comes before the last cut, and forgets it.
    #[inline]
    fn settle(&mut self) {
        if let Some(end) = self.counter.last_cut(&self.tail, self.scanned.max(self.start)) {
            // Mostly the text was counted up to here.
            let finished =
                if end == self.counted.0 { self.counted.1.as_u64() } else { self.amount_until(end) };
            self.done = self.done.saturating_add(finished);
            self.start = end;
            self.counted = (end, Tokens::ZERO);
            if self.start >= KEPT_BYTES_MAX {
                self.forget();
            }
        }
        // The last two characters may still come to stand beside a cut; what is before them has been looked at. Within a
        // character there is none, so that two bytes are enough.
        self.scanned = self.tail.len().saturating_sub(2);
    }

    /// Makes room.
    #[cold]
    fn forget(&mut self) {
        self.tail.drain(..self.start);
        self.counted.0 = self.counted.0.saturating_sub(self.start);
        self.start = 0;
    }

    /// The amount of what is held before a cut, where less or more of it than that was counted.
    fn amount_until(&self, cut: usize) -> u64 {
        let Some(finished) = self.tail.get(self.start..cut) else { return 0 };
        let (end, known) = (self.counted.0.saturating_sub(self.start), self.counted.1.as_u64());
        // Where what was counted ended at a cut, as a model's words mostly do, only what came after it is counted.
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

    /// With what it counts.
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

/// Characters that begin a word, and have one byte.
const BLANK: [char; 2] = [' ', '\n'];
/// Maximum length of the text that is held before it is counted unasked, in bytes.
const HELD_BYTES_MAX: usize = 4_096;
/// Maximum length of the counted text that is kept before memory is moved, in bytes.
const KEPT_BYTES_MAX: usize = 256;
