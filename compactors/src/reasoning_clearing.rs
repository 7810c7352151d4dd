//! Remove old reasoning.

use epitome_core::{Draft, GroupKind, IndexedPart, PartKind, PartVerdict, Profile, Strategy, Verdict};

/// Removes the reasoning of older turns from the request. The answers and calls after it stay.
///
/// *Keeps*: all groups, and the reasoning of the newest turns, always including the current turn. *Clears*: all
/// older reasoning, as far as the rules of the target allow it. *Cost*: two passes over the parts. *Stable prefix*:
/// up to the first message that loses reasoning. Put it before the clearing of tool results.
///
/// The rules depend on the target. `openai-responses` requires each reasoning item together with the next item, so
/// nothing is cleared. `deepseek` requires `reasoning_content` with its call, so steps with calls keep it. For
/// `anthropic`, whose signatures bind all content before them, either all older reasoning is cleared or none. None
/// is cleared if a pin holds some of it, or if some of it is the only content of its message, which
/// [`Draft::elide`] refuses to clear.
///
/// ```
/// use epitome_compactors::ReasoningClearing;
/// use epitome_core::Profile;
///
/// const CLEARING: ReasoningClearing = ReasoningClearing::new(Profile::Anthropic).keep_turns(2);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReasoningClearing {
    target: Profile,
    keep_turns: u32,
}

impl ReasoningClearing {
    /// A stage for requests to this provider, which keeps the reasoning of the current turn.
    #[must_use]
    pub const fn new(target: Profile) -> Self {
        Self { target, keep_turns: 1 }
    }

    /// Sets the number of the newest turns that keep their reasoning.
    #[must_use]
    pub const fn keep_turns(mut self, turns: u32) -> Self {
        self.keep_turns = turns;
        self
    }

    /// Number of the newest turns that keep their reasoning, at least the current one.
    pub(crate) const fn turns_kept(self) -> u32 {
        if self.keep_turns == 0 { 1 } else { self.keep_turns }
    }

    /// Whether a part is visible reasoning that is old enough and that the provider does not require. Another stage
    /// may have cleared it.
    fn is_old(&self, draft: &Draft<'_>, part: &IndexedPart<'_>) -> bool {
        let newest = draft.index().turn().0;
        part.kind() == PartKind::Reasoning
            && draft.part_verdict(part) == PartVerdict::Keep
            && part.group().is_some_and(|group| {
                let age = newest.saturating_sub(group.turn().0);
                let wanted = self.target == Profile::Deepseek && group.kind() == GroupKind::Exchange;
                age >= self.turns_kept() && !wanted && draft.verdict(&group) == Verdict::Keep
            })
    }
}

impl Strategy for ReasoningClearing {
    fn name(&self) -> &'static str {
        "clear_reasoning"
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        let index = draft.index();
        let old = |draft: &Draft<'_>, part: &IndexedPart<'_>| self.is_old(draft, part);
        let none = epitome_core::Tokens::ZERO;
        let all_or_none = self.target == Profile::Anthropic;
        let held = |part: &IndexedPart<'_>| old(draft, part) && !draft.may_elide(part, none);
        if self.target == Profile::OpenaiResponses || all_or_none && index.parts().any(|part| held(&part)) {
            return;
        }
        for part in index.parts() {
            if old(draft, &part) {
                // A protected part stays.
                let _ = draft.elide(&part, none);
            }
        }
    }
}
