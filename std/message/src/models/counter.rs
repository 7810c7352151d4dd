//! A token counter with a model's framing and media rules.

use core::fmt;

use epitome_core::{Amount, Basis, Framing, MediaRules, TokenBounds, TokenCounter, Tokens};
use sha2::{Digest, Sha256};

use super::{Model, Models};
use crate::tokens::{UnknownCounter, counter_by_name};

/// The token counter of one model: its tokenizer, its provider's framing, and its rules for media.
///
/// Its name is that of the tokenizer, followed by that of the model if framing or rules differ from the
/// tokenizer's. Rules that differ from the built-in table add a digest.
///
/// ```
/// use epitome_core::{Basis, TokenCounter};
/// use epitome_message::models::Models;
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

    /// A counter that counts texts with `inner`, and all else by the rules of `model`.
    #[must_use]
    pub fn over(inner: Box<dyn TokenCounter + Send + Sync>, model: &Model) -> Self {
        let (framing, media) = (model.framing(), model.media_rules());
        // Equal names promise equal counts.
        let mut name = inner.name().to_owned();
        if (framing, media) != (inner.framing(), inner.media_rules()) {
            name += &format!("@{}", model.name);
            let builtin = Models::builtin().find(&model.name).ok();
            if builtin.is_none_or(|row| (row.framing(), row.media_rules()) != (framing, media)) {
                name += &digest(framing, media);
            }
        }
        Self { name, inner, framing, media }
    }
}

/// A digest that distinguishes given rules from the built-in rules of the model, and from each other.
fn digest(framing: Framing, media: MediaRules) -> String {
    let [a, b, c, d, ..] = <[u8; 32]>::from(Sha256::digest(format!("{framing:?} {media:?}")));
    format!("#{:08x}", u32::from_be_bytes([a, b, c, d]))
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
