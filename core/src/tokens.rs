//! Amounts of tokens, and their basis.

use core::fmt;

use crate::count::{Amount, Framing, MediaRules};

/// An amount of tokens of one message or part. Sums of many are `u64`, because a saturated sum cannot be subtracted from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[expect(clippy::exhaustive_structs, reason = "a number with a name: its one field is its meaning")]
pub struct Tokens(pub u32);

impl Tokens {
    /// No tokens.
    pub const ZERO: Self = Self(0);
    /// The largest amount; additions stop here.
    pub const MAX: Self = Self(u32::MAX);

    /// This amount as a term of a sum.
    #[must_use]
    pub const fn as_u64(self) -> u64 {
        self.0 as u64
    }

    /// An amount from a count of any size; a count that does not fit becomes [`Tokens::MAX`].
    #[must_use]
    pub const fn from_u64(count: u64) -> Self {
        if count > u32::MAX as u64 { Self::MAX } else { Self(count as u32) }
    }

    /// The sum, at most [`Tokens::MAX`].
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The basis of an amount of tokens. It travels with the amount; the basis of a sum is the least certain of its terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum Basis {
    /// By a formula over the text: close, never exact.
    Estimated,
    /// By the model's own tokenizer, run here.
    Counted,
    /// By the provider, for a request that it received.
    Reported,
}

impl Basis {
    /// The name of the basis: `estimated`, `counted` or `reported`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Estimated => "estimated",
            Self::Counted => "counted",
            Self::Reported => "reported",
        }
    }
}

/// The range of an amount of tokens, both ends included.
///
/// ```
/// use epitome_core::{TokenBounds, Tokens};
///
/// let bounds = TokenBounds::new(Tokens(3), Tokens(9));
/// assert!(!bounds.is_exact());
/// assert!(TokenBounds::exact(Tokens(5)).is_exact());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct TokenBounds {
    /// The amount is at least this.
    pub lower: Tokens,
    /// The amount is at most this.
    pub upper: Tokens,
}

impl TokenBounds {
    /// At least `lower` and at most `upper`, which is raised to `lower` if it is less.
    #[must_use]
    pub const fn new(lower: Tokens, upper: Tokens) -> Self {
        Self { lower, upper: if upper.0 < lower.0 { lower } else { upper } }
    }

    /// The bounds of a known amount.
    #[must_use]
    pub const fn exact(tokens: Tokens) -> Self {
        Self { lower: tokens, upper: tokens }
    }

    /// Whether only one amount is possible.
    #[must_use]
    pub const fn is_exact(self) -> bool {
        self.lower.0 == self.upper.0
    }
}

/// Token counter: turns text into an amount of tokens.
///
/// *For callers*: counting is additive by convention. Count each part on its own and add; joined text is never counted,
/// so a message's amount does not depend on its neighbours.
///
/// *For implementers*: the same text always gives the same amount, no text panics, and text that looks like a special
/// token (`<|endoftext|>`) is counted as ordinary text. If bounds of a text cost much less than its count, override
/// [`TokenCounter::bounds`]. If the counter knows positions at which counts add up, override
/// [`TokenCounter::last_cut`].
///
/// ```
/// use epitome_core::{Basis, TokenCounter, Tokens};
///
/// /// A token for every four bytes.
/// struct Quarters;
///
/// impl TokenCounter for Quarters {
///     fn name(&self) -> &str {
///         "quarters"
///     }
///
///     fn basis(&self) -> Basis {
///         Basis::Estimated
///     }
///
///     fn count(&self, text: &str) -> Tokens {
///         Tokens(u32::try_from(text.len().div_ceil(4)).unwrap_or(u32::MAX))
///     }
/// }
///
/// assert_eq!(Quarters.count("Hello"), Tokens(2));
/// ```
pub trait TokenCounter {
    /// A stable name, stored with every count: a count under another name is not trusted.
    fn name(&self) -> &str;

    /// The basis of the amounts.
    fn basis(&self) -> Basis;

    /// The amount of `text`.
    fn count(&self, text: &str) -> Tokens;

    /// The amount of `text` with its basis: that of [`TokenCounter::basis`], unless the counter cannot count this text
    /// and estimates it in another way.
    fn measure(&self, text: &str) -> Amount {
        Amount::new(self.count(text), self.basis())
    }

    /// The amount of `text` if it is at most `limit`. The counter may stop as soon as the amount is known to be larger.
    fn count_up_to(&self, text: &str, limit: Tokens) -> Option<Tokens> {
        let tokens = self.count(text);
        (tokens <= limit).then_some(tokens)
    }

    /// The tokens that the provider adds around messages: [`Framing::OPENAI`] unless the counter has other figures.
    fn framing(&self) -> Framing {
        Framing::OPENAI
    }

    /// The tokens that the provider counts for media: [`MediaRules::OPENAI`] unless the counter has other rules.
    ///
    /// *For implementers*: counters with different framing or rules have different names, because a name identifies the
    /// complete count. A counter that wraps another one passes both on.
    fn media_rules(&self) -> MediaRules {
        MediaRules::OPENAI
    }

    /// Bounds of the amount of `text`. By default the amount itself, which costs a count.
    fn bounds(&self, text: &str) -> TokenBounds {
        TokenBounds::exact(self.count(text))
    }

    /// The last position in `text`, more than `from` bytes in, at which it can be cut: the counts of both sides add up
    /// to that of the whole, independent of any text that is appended to `text`. By default no such position is known.
    ///
    /// *For implementers*: `from` may lie within a character, or behind the end.
    fn last_cut(&self, text: &str, from: usize) -> Option<usize> {
        let _ = (text, from);
        None
    }
}

/// Implements the trait for a pointer to a counter, which counts as the counter does.
macro_rules! count_as_target {
    ($pointer:ty) => {
        #[deny(clippy::missing_trait_methods, reason = "what the counter knows must not get lost")]
        impl<C: TokenCounter + ?Sized> TokenCounter for $pointer {
            fn name(&self) -> &str {
                (**self).name()
            }

            fn basis(&self) -> Basis {
                (**self).basis()
            }

            fn count(&self, text: &str) -> Tokens {
                (**self).count(text)
            }

            fn measure(&self, text: &str) -> Amount {
                (**self).measure(text)
            }

            fn count_up_to(&self, text: &str, limit: Tokens) -> Option<Tokens> {
                (**self).count_up_to(text, limit)
            }

            fn framing(&self) -> Framing {
                (**self).framing()
            }

            fn media_rules(&self) -> MediaRules {
                (**self).media_rules()
            }

            fn bounds(&self, text: &str) -> TokenBounds {
                (**self).bounds(text)
            }

            fn last_cut(&self, text: &str, from: usize) -> Option<usize> {
                (**self).last_cut(text, from)
            }
        }
    };
}

count_as_target!(&C);
#[cfg(feature = "alloc")]
count_as_target!(alloc::boxed::Box<C>);
// Some small processors have no atomic counters.
#[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
count_as_target!(alloc::sync::Arc<C>);
