//! Token counters by name: the estimator of `epitome-core` and, with the feature `tiktoken`, OpenAI's encodings.
//!
//! ```
//! use epitome_std::tokens::counter_by_name;
//!
//! let counter = counter_by_name("estimate")?;
//! assert_eq!(counter.name(), "estimate-v1");
//! assert!(counter_by_name("abacus").is_err());
//! # Ok::<(), epitome_std::tokens::UnknownCounter>(())
//! ```

use core::error::Error;
use core::fmt;

use epitome_core::{ClassEstimator, TokenCounter};

#[cfg(feature = "tiktoken")]
mod tiktoken;

#[cfg(feature = "tiktoken")]
pub use tiktoken::Tiktoken;

/// The counter called `name`, for settings and for logs that say with what a count was made. `estimate` stands for the
/// current estimator, every other name is what [`TokenCounter::name`] says.
///
/// # Errors
/// [`UnknownCounter`], also for an encoding that was not compiled in.
pub fn counter_by_name(name: &str) -> Result<Box<dyn TokenCounter + Send + Sync>, UnknownCounter> {
    match name {
        "estimate" | ClassEstimator::NAME => Ok(Box::new(ClassEstimator::new())),
        #[cfg(feature = "tiktoken")]
        "o200k_base" => Ok(Box::new(Tiktoken::o200k_base())),
        #[cfg(feature = "tiktoken")]
        "o200k_harmony" => Ok(Box::new(Tiktoken::o200k_harmony())),
        #[cfg(feature = "tiktoken")]
        "cl100k_base" => Ok(Box::new(Tiktoken::cl100k_base())),
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
        #[cfg(feature = "tiktoken")]
        "o200k_base",
        #[cfg(feature = "tiktoken")]
        "o200k_harmony",
        #[cfg(feature = "tiktoken")]
        "cl100k_base",
    ];
}

impl fmt::Display for UnknownCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no token counter is called {:?}; known: {}", self.name, Self::KNOWN.join(", "))?;
        if cfg!(not(feature = "tiktoken")) {
            f.write_str(" (the feature `tiktoken` adds OpenAI's encodings)")?;
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
            let expected = if *name == "estimate" { ClassEstimator::NAME } else { name };
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
