//! Shorten single huge parts.

use epitome_core::{Clamp, Draft, ELIDED_TOKENS_MAX, PartKind, Strategy, Tokens};

/// Cuts each tool result and each text that is larger than it may be.
///
/// *Keeps*: all groups, and of what is shortened both ends: the beginning says what it is, the end how it came out. Of a result in
/// lines half of the room is for lines between them that report an error or name what no other line names. *Shortens*: every such
/// part, old or new, also when less would do for the goal; but nothing of what is protected. *Cost*: one pass over the parts. *Stable prefix*: up to the first part that it shortens.
///
/// A shortened part has at most as much as is allowed, so that a second pass leaves it alone. Parts of at most
/// [`ELIDED_TOKENS_MAX`] stay, whatever is allowed: a note that stands in the place of a part may have as much, and is not
/// to be cut by the next pass. Texts below [`TEXT_PART_TOKENS_MIN`](epitome_core::TEXT_PART_TOKENS_MIN) have no row in an
/// index and stay too.
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
    /// Parts of at most this size stay as they are.
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
                // What is protected, or as small as the marker, stays.
                let _ = draft.clamp(&part, clamp);
            }
        }
    }
}
