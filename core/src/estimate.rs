//! An estimate of the tokens of a text without a tokenizer: one pass, integers only, less than 1,000 bytes of tables.

mod classes;
#[cfg(test)]
mod tests;
mod weights;

use crate::tokens::{Basis, TokenCounter, Tokens};

use classes::{CELLS, Window};
use weights::WEIGHTS;

/// Estimates the number of tokens of a text in OpenAI's `o200k_base`.
///
/// The estimate is not a bound. Use it where an error of a few percent costs nothing, and a real tokenizer elsewhere.
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
/// Every byte belongs to one of 32 classes: groups of letters by their frequency, digits, groups of punctuation,
/// scripts by their first byte in UTF-8, quarters of the continuation bytes. Three facts select one of 704 weights of
/// less than a token each: the class of the byte before, the number of lower-case letters that end there (under four,
/// under seven, more), and the class of the byte itself. The third and later of equal bytes or drawn characters have a
/// class of their own, since tokenizers have tokens for long runs. Ideographs after eight others of which none is
/// common, rare scripts, and emoji also have classes of their own. The estimate is the sum, rounded to the nearest, and
/// at least 1 for a text that is not empty. A longer text never has a smaller estimate, and the estimate never exceeds
/// the number of bytes.
///
/// # Table
/// The table is fitted and measured by `cargo run --release -p epitome-benches --bin fit_estimator -- FOLDER..`. It is
/// fitted to counts of `o200k_base` and one percent more, by bounded least squares over texts and whole files: recorded
/// agent transcripts, the sources of a few hundred crates, the messages of programs in 44 languages, and generated
/// base64, hex, numbers, runs, emoji and rare characters. [`ClassEstimator::NAME`] changes with every change of the
/// table or the classes.
///
/// # Error
/// Difference of the estimate from the count, in percent. *File*: for the total of a file, the size of the difference
/// (median, 95th percentile) and its range. *Text*: for one text of 30 tokens or more (5th, 95th percentile). Real
/// files have 300 tokens or more, and are measured by tables that were fitted without their source (four folds).
/// Generated texts have another seed than the fitted ones. The last column is the range of the usual rule, characters
/// divided by four.
///
/// | texts | file | range | text | chars/4 |
/// |---|---|---|---|---|
/// | strings of 41 recorded transcripts | 1.3, 5.5 | -4 to +8 | -11 to +12 | -67 to +36 |
/// | strings of 5 JSON files of crates' tests | | -13 to +20 | | |
/// | transcripts as JSON | 1.3, 4.3 | -7 to +8 | -5 to +7 | -60 to +50 |
/// | Markdown, text | 2.0, 7.0 | -25 to +12 | -8 to +6 | -69 to +32 |
/// | Rust, C | 1.9, 6.2 | -16 to +21 | -5 to +6 | -69 to +49 |
/// | TOML | 1.6, 4.6 | -8 to +14 | -7 to +5 | -71 to +6 |
/// | messages of programs in 44 languages | 4.8, 15.1 | -23 to +27 | -19 to +16 | -72 to +31 |
/// | base64, for URLs | | +1, -1 | -6 to +8, -8 to +2 | -63 |
/// | hex, UUIDs | | +4, +1 | +2 to +9, -3 to +4 | -56, -61 |
/// | numbers, long digits | | +1, -3 | -7 to +10, -5 to -2 | -52, -26 |
/// | emoji | | 0 | -11 to +3 | -89 |
/// | random ideographs, rare scripts | | -9, -15 | -26 to -6, -17 to -10 | -87, -92 |
///
/// The average error of one string of a transcript, of 10 tokens or more (in parentheses that of chars/4): prose 7.1
/// (45), code 8.8 (38), JSON 6.2 (25), Chinese, Japanese and Korean 10.2 (67), base64 1.8 (63), logs 5.4 (44).
///
/// By language, all files together: ar -1, bg -2, bn -4, ca -9, cs +2, da -8, de -1, el -3, es +4, et -12, eu -12, fa +4, fi
/// -12, fr +4, he -2, hi +3, hr -1, hu 0, id -2, it +1, ja +3, ka +1, ko 0, lt -15, lv -7, ms -9, nb -6, nl -2, pl +3, pt +5,
/// `pt_BR` +11, ro -5, ru +12, sk -3, sl -6, sr -5, sv -5, ta 0, th +4, tr +3, uk 0, vi +7, `zh_CN` +9, `zh_TW` -10.
///
/// # Weak spots
/// - Languages in plain Latin letters look like English but have fewer whole words in the vocabulary.
/// - Lists of names: Japanese and Thai -25. Random box-drawing characters -11, random lower-case letters -10.
/// - Runs of one character of every length: -38 to +25 each; long runs of one bracket -67 to -99, of `);` -86.
/// - Unusual texts, such as a file of punycode (-13) or of another encoding's bytes (-11).
/// - A short text is rounded, so one short text repeated thousands of times is off thousands of times the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct ClassEstimator;

impl ClassEstimator {
    /// The name that is stored with its counts. It changes with every change of the table.
    pub const NAME: &'static str = "estimate-v2";

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
        for chunk in text.as_bytes().chunks(LOOK_BYTES) {
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

/// Calls `visit` with the cell of the table that each byte of `text` adds to the sum. The table is fitted on these
/// cells.
#[doc(hidden)]
pub fn visit_cells(text: &str, mut visit: impl FnMut(usize)) {
    let mut window = Window::START;
    text.bytes().for_each(|byte| visit(window.push(byte)));
}

/// Number of cells of the table.
#[doc(hidden)]
pub const CELLS_COUNT: usize = CELLS;

/// One token as a sum of weights: a byte weighs less than one token, as in every byte-pair encoding.
#[doc(hidden)]
pub const WEIGHT_OF_ONE: u32 = 256;

/// The sum of the weights of `chunk`, at most [`CHUNK_BYTES`] long: cannot overflow.
fn weight_of(window: &mut Window, chunk: &[u8]) -> u32 {
    let weight = |cell: usize| u32::from(WEIGHTS.get(cell).copied().unwrap_or(0));
    let mut running = *window;
    let (words, rest) = chunk.as_chunks();
    let mut sum = 0_u32;
    for word in words {
        let cells = running.push_word(u64::from_be_bytes(*word));
        sum = cells.into_iter().fold(sum, |sum, cell| sum.wrapping_add(weight(cell)));
    }
    for byte in rest {
        sum = sum.wrapping_add(weight(running.push(*byte)));
    }
    *window = running;
    sum
}

/// Converts a sum of weights to tokens, rounded to the nearest; a text that is not empty is at least one token.
fn tokens_of(weight: u64, text: &str) -> Tokens {
    let rounded = weight.saturating_add(ONE / 2) / ONE;
    Tokens::from_u64(rounded.max(u64::from(!text.is_empty())))
}

/// [`WEIGHT_OF_ONE`] as a term of a sum.
const ONE: u64 = WEIGHT_OF_ONE as u64;
/// Bytes whose weights are summed in 32 bits.
const CHUNK_BYTES: usize = 4096;
/// Bytes between two checks of the limit: mostly the limit is a few hundred tokens.
const LOOK_BYTES: usize = 256;
