//! Clear old media.

use epitome_core::{Draft, IndexedPart, PartKind, Strategy, Verdict};

use crate::tool_result_clearing::PLACEHOLDER_TOKENS;

/// Replaces old images, sounds, videos and documents by a note. The texts in the same messages stay.
///
/// *Keeps*: all groups, and the media of the newest turns. *Clears*: all older media from users or the model. Media
/// in a tool result are cleared with the result, by [`ToolResultClearing`](crate::ToolResultClearing). *Cost*: one
/// pass over the parts. *Stable prefix*: up to the first message that loses media. Protected messages keep their
/// media, and so does the first user message if it is protected.
///
/// ```
/// use epitome_compactors::MediaClearing;
///
/// const CLEARING: MediaClearing = MediaClearing::new().keep_turns(1);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MediaClearing {
    keep_turns: u32,
}

/// An image is used when it is sent, and seldom later than in the next turn.
const KEEP_TURNS: u32 = 2;

impl Default for MediaClearing {
    fn default() -> Self {
        Self::new()
    }
}

impl MediaClearing {
    /// A stage that keeps the media of the newest two turns.
    #[must_use]
    pub const fn new() -> Self {
        Self { keep_turns: KEEP_TURNS }
    }

    /// Sets the number of the newest turns that keep their media.
    #[must_use]
    pub const fn keep_turns(mut self, turns: u32) -> Self {
        self.keep_turns = turns;
        self
    }

    fn is_old(self, draft: &Draft<'_>, part: &IndexedPart<'_>) -> bool {
        let newest = draft.index().turn().0;
        part.kind() == PartKind::Media
            && part.group().is_some_and(|group| {
                newest.saturating_sub(group.turn().0) >= self.keep_turns
                    && draft.verdict(&group) == Verdict::Keep
            })
    }
}

impl Strategy for MediaClearing {
    fn name(&self) -> &'static str {
        "clear_media"
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        for part in draft.index().parts() {
            if self.is_old(draft, &part) {
                // A protected part stays, and so does a part that is smaller than the note.
                let _ = draft.elide(&part, PLACEHOLDER_TOKENS);
            }
        }
    }
}
