//! Shorten very large parts.

use epitome_core::{Clamp, Draft, ELIDED_TOKENS_MAX, PartKind, Strategy, Tokens};

/// Cuts each tool result and each text that exceeds a size.
///
/// *Keeps*: all groups, and both ends of each shortened part: its beginning shows the subject, its end the outcome.
/// For a result in lines, half of the size is for lines between the ends that report an error or contain a name
/// that no other line has. *Shortens*: every such part, old or new, even if the goal needs less; but no protected
/// part. *Cost*: one pass over the parts. *Stable prefix*: up to the first part that it shortens.
///
/// A shortened part has at most the allowed size, so that a second pass does not change it. Parts of at most
/// [`ELIDED_TOKENS_MAX`] stay at any allowed size: the note of a cleared part may have this size, and must not be
/// cut by the next pass. Texts below [`TEXT_PART_TOKENS_MIN`](epitome_core::TEXT_PART_TOKENS_MIN) have no row in an
/// index, and stay too.
///
/// ```
/// use epitome_compactors::OversizedClamp;
/// use epitome_core::Tokens;
///
/// const CLAMP: OversizedClamp = OversizedClamp::new(Tokens(8_000));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OversizedClamp {
    max_part_tokens: Tokens,
}

impl OversizedClamp {
    /// A stage with this size limit for parts.
    #[must_use]
    pub const fn new(max_part_tokens: Tokens) -> Self {
        Self { max_part_tokens }
    }
}

impl Strategy for OversizedClamp {
    fn name(&self) -> &'static str {
        "clamp_oversized"
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        let (clamp, stays) =
            (Clamp::within(self.max_part_tokens), self.max_part_tokens.max(ELIDED_TOKENS_MAX));
        for part in draft.index().parts() {
            let has_ends = matches!(part.kind(), PartKind::ToolResult | PartKind::Text);
            if has_ends && draft.part_tokens_left(&part) > stays {
                // A protected part stays, and so does a part that is not larger than the marker.
                let _ = draft.clamp(&part, clamp);
            }
        }
    }
}
