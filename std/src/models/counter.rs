//! A counter with a model's framing and rules.

use core::fmt;

use epitome_core::{Amount, Basis, Framing, MediaRules, TokenBounds, TokenCounter, Tokens};

use super::Model;
use crate::tokens::{UnknownCounter, counter_by_name};

/// Counts for one model: its tokenizer, its provider's framing, its rules for media.
///
/// ```
/// use epitome_core::{Basis, TokenCounter};
/// use epitome_std::models::Models;
///
/// let counter = Models::builtin().find("claude-sonnet-4-5")?.counter()?;
/// assert!(counter.name().ends_with("@claude-sonnet-4-5"));
/// assert_eq!(counter.basis(), Basis::Estimated);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ModelCounter {
    name: String,
    inner: Box<dyn TokenCounter + Send + Sync>,
    framing: Framing,
    media: MediaRules,
}

impl ModelCounter {
    pub(super) fn new(model: &Model) -> Result<Self, UnknownCounter> {
        Ok(Self::over(counter_by_name(&model.encoding)?, model))
    }

    /// The texts counted by `inner`, all else as for `model`.
    #[must_use]
    pub fn over(inner: Box<dyn TokenCounter + Send + Sync>, model: &Model) -> Self {
        let (framing, media) = (model.framing(), model.media_rules());
        // A name stands for all of a count: only one that counts alike may share it.
        let name = match (framing, media) == (inner.framing(), inner.media_rules()) {
            true => inner.name().to_owned(),
            false => format!("{}@{}", inner.name(), model.name),
        };
        Self { name, inner, framing, media }
    }
}

#[deny(clippy::missing_trait_methods, reason = "what the counter knows must not get lost")]
impl TokenCounter for ModelCounter {
    fn name(&self) -> &str {
        &self.name
    }

    fn basis(&self) -> Basis {
        self.inner.basis()
    }

    fn count(&self, text: &str) -> Tokens {
        self.inner.count(text)
    }

    fn measure(&self, text: &str) -> Amount {
        self.inner.measure(text)
    }

    fn count_up_to(&self, text: &str, limit: Tokens) -> Option<Tokens> {
        self.inner.count_up_to(text, limit)
    }

    fn framing(&self) -> Framing {
        self.framing
    }

    fn media_rules(&self) -> MediaRules {
        self.media
    }

    fn bounds(&self, text: &str) -> TokenBounds {
        self.inner.bounds(text)
    }

    fn last_cut(&self, text: &str, from: usize) -> Option<usize> {
        self.inner.last_cut(text, from)
    }
}

impl fmt::Debug for ModelCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ModelCounter").field(&self.name).finish()
    }
}
