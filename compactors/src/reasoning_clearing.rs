//! Take out old reasoning.

use epitome_core::{Draft, GroupKind, IndexedPart, PartKind, PartVerdict, Profile, Strategy, Verdict};

/// Takes the reasoning of older turns out of the request; what it led to stays.
///
/// *Keeps*: all groups, and the reasoning of the newest turns; that of the current turn always. *Clears*: all older
/// reasoning, where the target's rules allow it. *Cost*: two passes over the parts. *Stable prefix*: up to the first
/// message that loses reasoning; put it before the clearing of tool results.
///
/// The target decides: `openai-responses` wants each reasoning item with the item that follows it, so that nothing is
/// cleared there. `deepseek` wants `reasoning_content` back with its call, so that steps with calls keep theirs there. For
/// `anthropic`, whose signatures bind all that stands before them, it is all of the older reasoning or none: if a pin holds
/// some of it, or some is all that its message holds (which [`Draft::elide`] refuses to take), nothing is cleared.
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
    /// For requests to this provider, with the reasoning of the current turn kept.
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

    /// Number of the newest turns that keep their reasoning: the current turn always does.
    pub(crate) const fn turns_kept(self) -> u32 {
        if self.keep_turns == 0 { 1 } else { self.keep_turns }
    }

    /// Whether a part is reasoning that is old enough, not wanted back, and seen: another stage may have taken it out.
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
                // What is protected stays.
                let _ = draft.elide(&part, none);
            }
        }
    }
}
