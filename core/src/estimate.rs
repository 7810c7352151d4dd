//! An estimate of the tokens of a text without a tokenizer: one pass, integers only, 768 bytes of tables.

mod classes;
#[cfg(test)]
mod tests;
mod weights;

use crate::tokens::{Basis, TokenCounter, Tokens};

use classes::{CELLS, Window};
use weights::WEIGHTS;

/// Estimates how many tokens OpenAI's `o200k_base` would make of a text. Not a bound: use it where being off by a few
/// percent costs nothing, and a real tokenizer where it does.
///
/// ```
/// use epitome_core::{ClassEstimator, TokenCounter, Tokens};
///
/// let estimator = ClassEstimator::new();
/// assert_eq!(estimator.count(""), Tokens::ZERO);
/// let tokens = estimator.count("The quick brown fox jumps over the lazy dog."); // 10, counted
/// assert!((8..=12).contains(&tokens.0));
/// assert_eq!(estimator.count_up_to("four words, no more", Tokens(1)), None);
/// ```
///
/// # Formula
/// Every byte belongs to one of 32 classes: groups of letters by how common they are, digits, groups of punctuation,
/// scripts by their first byte in UTF-8, quarters of the continuation bytes. The class of the byte before and the class
/// of the byte itself select one of 512 weights of less than a token each; the third and later of equal bytes have a
/// class of their own, since tokenizers have tokens for long runs. The estimate is the sum, rounded to the nearest, at
/// least 1 for a text that is not empty, and so never less for more text and never more than the bytes.
///
/// # Table
/// Fitted by `fit_estimator` (in the workspace's `benches`) to counts of `o200k_base`, by bounded least squares over
/// texts and whole files: recorded agent transcripts, the sources of a few hundred crates, two dozen languages, and
/// generated base64, hex, numbers, runs and emoji. Change the table or the classes, and [`ClassEstimator::NAME`] changes.
///
/// # Error
/// Estimate against count, in percent. *File*: of the total of a file, its size (median, 95th percentile) and its range.
/// *Text*: of one text of 30 tokens or more (5th, 95th percentile). Real files by tables fitted without their source
/// (four folds), generated texts on another seed than the fitted one. Beside it the range of the usual rule, characters
/// divided by four.
///
/// | texts | file | range | text | chars/4 |
/// |---|---|---|---|---|
/// | strings of transcripts | 1.3, 5.6 | -27 (next -6) to +14 | -13 to +12 | -67 to +36 |
/// | transcripts as JSON | 0.8, 3.4 | -12 (next -6) to +14 | -7 to +4 | -60 to +50 |
/// | Markdown, text | 2.0, 6.9 | -40 (next -11) to +10 | -6 to +6 | -69 to +32 |
/// | Rust, C | 1.7, 6.3 | -18 to +20 | -6 to +6 | -69 to +37 |
/// | TOML | 1.9, 5.2 | -6 to +5 | -10 to +4 | -45 to -2 |
/// | base64 | | 0 | -9 to +7 | -63 |
/// | hex | | +2 | -1 to +8 | -56 |
/// | numbers, long digits | | -1, -7 | -9 to +10 | -52, -26 |
/// | emoji | | -17 | -28 to -9 | -88 |
///
/// # Weak spots
/// - Languages in plain Latin letters look like English but have fewer whole words in the vocabulary: Indonesian -36,
///   Finnish -29, Italian -23, Dutch and Turkish -12, German -6 (French, Spanish, Polish within 3); Vietnamese +27.
/// - Random lower-case letters -49, randomly chosen (so mostly rare) ideographs -55, random box-drawing characters -40.
///   Running Chinese, Japanese and Korean is within 15.
/// - Runs of one character of every length: -38 to +65 each.
/// - A short text is rounded, so one short text repeated a thousand times is off a thousand times the same way: that is
///   the file at -27, and a demonstration of all of Unicode the one at -40.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct ClassEstimator;

impl ClassEstimator {
    /// The name stored beside its counts. It changes with every change of the table.
    pub const NAME: &'static str = "estimate-v1";

    /// The estimator; it has no state.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}

impl TokenCounter for ClassEstimator {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn basis(&self) -> Basis {
        Basis::Estimated
    }

    fn count(&self, text: &str) -> Tokens {
        let mut window = Window::START;
        let weight = text
            .as_bytes()
            .chunks(CHUNK_BYTES)
            .fold(0, |sum: u64, chunk| sum.saturating_add(u64::from(weight_of(&mut window, chunk))));
        tokens_of(weight, text)
    }

    fn count_up_to(&self, text: &str, limit: Tokens) -> Option<Tokens> {
        let mut window = Window::START;
        let mut weight = 0_u64;
        for chunk in text.as_bytes().chunks(CHUNK_BYTES) {
            weight = weight.saturating_add(u64::from(weight_of(&mut window, chunk)));
            // Weights are not negative: once over the limit, always over it.
            if tokens_of(weight, text) > limit {
                return None;
            }
        }
        let tokens = tokens_of(weight, text);
        (tokens <= limit).then_some(tokens)
    }
}

/// Calls `visit` with the cell of the table that each byte of `text` adds to the sum: what the table is fitted on.
#[doc(hidden)]
pub fn visit_cells(text: &str, mut visit: impl FnMut(usize)) {
    let mut window = Window::START;
    text.bytes().for_each(|byte| visit(window.push(byte)));
}

/// How many cells the table has.
#[doc(hidden)]
pub const CELLS_COUNT: usize = CELLS;

/// One token as a sum of weights: a byte weighs less than one token, as in every byte-pair encoding.
#[doc(hidden)]
pub const WEIGHT_OF_ONE: u32 = 256;

/// The sum of the weights of `chunk`, at most [`CHUNK_BYTES`] long: cannot overflow.
fn weight_of(window: &mut Window, chunk: &[u8]) -> u32 {
    let mut running = *window;
    let sum = chunk.iter().fold(0_u32, |sum, &byte| {
        let weight = WEIGHTS.get(running.push(byte)).copied().unwrap_or(0);
        sum.wrapping_add(u32::from(weight))
    });
    *window = running;
    sum
}

/// Rounded to the nearest; a text that is not empty is at least one token.
fn tokens_of(weight: u64, text: &str) -> Tokens {
    let rounded = weight.saturating_add(ONE / 2) / ONE;
    Tokens::from_u64(rounded.max(u64::from(!text.is_empty())))
}

/// [`WEIGHT_OF_ONE`] as a term of a sum.
const ONE: u64 = WEIGHT_OF_ONE as u64;
/// Bytes between two looks at the limit.
const CHUNK_BYTES: usize = 4096;
