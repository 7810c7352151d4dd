//! Token counters by name: the estimator of `epitome-core` and OpenAI's encodings, exactly.
//!
//! | feature | counts with | of `o200k_base` | for |
//! |---|---|---|---|
//! | `tiktoken` | `tiktoken-rs`, the reference: [`Tiktoken`] | 46 MB | who has it anyway, and comparisons |
//! | `fast-tokens` | `tiktoken`: [`FastTiktoken`] | 24 MB | everybody else; what the program `epitome` uses |
//!
//! Neither is on by default, and neither needs the other; tables are built only when they are asked for.
//! Both count alike, so both answer to the encoding's name, and a count by one is good for the other. [`counter_by_name`]
//! prefers the fast one; `o200k_base@tiktoken-rs` is the reference. That they count alike rests on this:
//!
//! - They have the same tokens in the same order, which a test compares one by one, and merge by the same rule.
//! - They split alike, but for two things. A contraction with the long s (`it'ſ`) is one in every text only to the reference: the
//!   fast counter cuts such text behind the contraction, where a piece ends, and counts both sides. White space with a newline at the end of a text is one piece to `cl100k_base` of the
//!   reference and two to the fast one, which is the same amount, because no token goes on behind a newline in white space
//!   (a test reads that from the vocabularies).
//! - `counter_equality`, in the workspace's `benches`, compares them on every character of Unicode in 32 places, on texts of
//!   one kind, on all texts of a folder, and on made-up ones.
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

/// The counter called `name`, for settings and for logs that say with what a count was made. `estimate` stands for the
/// current estimator, `@tiktoken-rs` after an encoding for the reference; else a name is what [`TokenCounter::name`] says.
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
/// [`UnknownCounter`], also for an encoding that was not compiled in.
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

/// No counter has this name. The message lists those that exist.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownCounter {
    /// The name that was asked for.
    pub name: String,
}

impl UnknownCounter {
    /// The names that [`counter_by_name`] knows.
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
