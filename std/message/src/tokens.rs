//! Token counters by name: the estimator of `epitome-core`, and exact counters for OpenAI's encodings.
//!
//! | feature | counter | memory for `o200k_base` | use |
//! |---|---|---|---|
//! | `tiktoken` | `tiktoken-rs`, the reference: [`Tiktoken`] | 46 MB | programs with it anyway, comparisons |
//! | `fast-tokens` | `tiktoken`: [`FastTiktoken`] | 24 MB | all other programs, for example `epitome` |
//!
//! Neither feature is on by default, and neither needs the other. Tables are built only when they are needed. Both
//! counters give equal counts, so both have the name of the encoding, and counts of one are valid for the other.
//! [`counter_by_name`] prefers the fast one; `o200k_base@tiktoken-rs` is the reference. The equality rests on these
//! facts:
//!
//! - They have the same tokens in the same order, which a test compares one by one, and merge by the same rule.
//! - They split text in the same way, with two exceptions. Only the reference takes a contraction with the long s
//!   (`it'ſ`) as one in every text: the fast counter cuts such text behind the contraction, where a piece ends, and
//!   counts both sides. White space with a newline at the end of a text is one piece to `cl100k_base` of the
//!   reference and two to the fast one. The amount is the same, because no token continues behind a newline in
//!   white space (a test reads this from the vocabularies).
//! - `counter_equality`, in the workspace's `benches`, compares them on every character of Unicode in 32 places, on
//!   texts of one kind, on all texts of a folder, and on generated ones.
//!
//! ```
//! use epitome_message::tokens::counter_by_name;
//!
//! let counter = counter_by_name("estimate")?;
//! assert_eq!(counter.name(), "estimate-v2");
//! assert!(counter_by_name("abacus").is_err());
//! # Ok::<(), epitome_message::tokens::UnknownCounter>(())
//! ```

use core::error::Error;
use core::fmt;

use epitome_core::{ClassEstimator, TokenCounter};

mod batch;
mod cache;
#[cfg(any(feature = "fast-tokens", feature = "tiktoken"))]
mod cut;
#[cfg(feature = "fast-tokens")]
mod fast;
mod lazy;
#[cfg(all(test, feature = "fast-tokens"))]
mod nasty;
mod parts;
mod stream;
#[cfg(feature = "tiktoken")]
mod tiktoken;

pub use batch::measure_all_with_parts;
pub use batch::measure_messages;
pub use cache::CachedCounter;
#[cfg(feature = "fast-tokens")]
pub use fast::FastTiktoken;
pub use lazy::{LazyIndex, message_bounds};
pub use parts::can_be_shortened;
pub use parts::measure_with_parts;
pub use stream::StreamCounter;
#[cfg(feature = "tiktoken")]
pub use tiktoken::Tiktoken;

#[cfg(feature = "fast-tokens")]
type Preferred = FastTiktoken;
#[cfg(all(feature = "tiktoken", not(feature = "fast-tokens")))]
type Preferred = Tiktoken;

/// The counter with this name, from settings or from a log. `estimate` is the current estimator; an encoding with
/// `@tiktoken-rs` is the reference. Other names are those of [`TokenCounter::name`].
///
/// ```
/// use epitome_message::tokens::counter_by_name;
///
/// assert!(counter_by_name("estimate")?.count("Hello, world").0 > 0);
/// // The name of a model is none of a counter: `Models::find` has the model, and `Model::counter` its counter.
/// assert!(counter_by_name("gpt-4o").is_err());
/// # Ok::<(), epitome_message::tokens::UnknownCounter>(())
/// ```
///
/// # Errors
/// [`UnknownCounter`] for an unknown name, and for an encoding that was not compiled in.
pub fn counter_by_name(name: &str) -> Result<Box<dyn TokenCounter + Send + Sync>, UnknownCounter> {
    match name {
        "estimate" | ClassEstimator::NAME => Ok(Box::new(ClassEstimator::new())),
        #[cfg(any(feature = "fast-tokens", feature = "tiktoken"))]
        "o200k_base" => Ok(Box::new(Preferred::o200k_base())),
        #[cfg(any(feature = "fast-tokens", feature = "tiktoken"))]
        "o200k_harmony" => Ok(Box::new(Preferred::o200k_harmony())),
        #[cfg(any(feature = "fast-tokens", feature = "tiktoken"))]
        "cl100k_base" => Ok(Box::new(Preferred::cl100k_base())),
        #[cfg(feature = "tiktoken")]
        "o200k_base@tiktoken-rs" => Ok(Box::new(Tiktoken::o200k_base())),
        #[cfg(feature = "tiktoken")]
        "o200k_harmony@tiktoken-rs" => Ok(Box::new(Tiktoken::o200k_harmony())),
        #[cfg(feature = "tiktoken")]
        "cl100k_base@tiktoken-rs" => Ok(Box::new(Tiktoken::cl100k_base())),
        _ => Err(UnknownCounter { name: name.to_owned() }),
    }
}

/// An unknown counter name. The error message lists the known names.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownCounter {
    /// The given name.
    pub name: String,
}

impl UnknownCounter {
    /// The names that [`counter_by_name`] accepts.
    pub const KNOWN: &'static [&'static str] = &[
        "estimate",
        ClassEstimator::NAME,
        #[cfg(any(feature = "fast-tokens", feature = "tiktoken"))]
        "o200k_base",
        #[cfg(any(feature = "fast-tokens", feature = "tiktoken"))]
        "o200k_harmony",
        #[cfg(any(feature = "fast-tokens", feature = "tiktoken"))]
        "cl100k_base",
        #[cfg(feature = "tiktoken")]
        "o200k_base@tiktoken-rs",
        #[cfg(feature = "tiktoken")]
        "o200k_harmony@tiktoken-rs",
        #[cfg(feature = "tiktoken")]
        "cl100k_base@tiktoken-rs",
    ];
}

impl fmt::Display for UnknownCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no token counter is called {:?}; known: {}", self.name, Self::KNOWN.join(", "))?;
        if cfg!(not(any(feature = "fast-tokens", feature = "tiktoken"))) {
            f.write_str(" (the features `fast-tokens` and `tiktoken` add OpenAI's encodings)")?;
        }
        Ok(())
    }
}

impl Error for UnknownCounter {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_name_gives_a_counter_that_answers_to_it() {
        for name in UnknownCounter::KNOWN {
            let counter = counter_by_name(name).unwrap();
            let encoding = name.split('@').next().unwrap();
            let expected = if *name == "estimate" { ClassEstimator::NAME } else { encoding };
            assert_eq!(counter.name(), expected);
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let error = counter_by_name("abacus").err().unwrap();
        assert_eq!(error.name, "abacus");
        for name in UnknownCounter::KNOWN {
            assert!(error.to_string().contains(name));
        }
    }
}
