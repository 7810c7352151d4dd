//! Clear old tool results.

use epitome_core::{Draft, Group, IndexedPart, PartKind, Strategy, Tokens, ToolName, Verdict};

/// Replaces old tool results by a note. The calls stay, so that the model knows what it has done.
///
/// *Keeps*: all groups, and the results of the newest tool uses. *Clears*: the results of all older tool uses, and
/// with `clear_inputs` their arguments. The unit is one tool use: of five parallel uses the two oldest may be
/// cleared, and their group stays. *Cost*: one pass over the parts, two with `clear_at_least`. *Stable prefix*: up
/// to the first result that it clears.
///
/// Results of the provider's own tools count as uses too, as far as they are text: see
/// [`GroupKind::Hosted`](epitome_core::GroupKind::Hosted).
///
/// It clears the same tool uses as the documented context editing of Anthropic's API (`clear_tool_uses_20250919`):
/// all but the newest `keep`, never those of excluded tools, and none if all of them together would free less than
/// `clear_at_least`. Uses of excluded tools count among the newest. There are three differences: protected parts
/// stay (the newest step, pins, groups with unanswered calls); a result that is not larger than the note stays,
/// because clearing it would free nothing; arguments are cleared when all results of their group are old.
///
/// ```
/// use epitome_compactors::ToolResultClearing;
/// use epitome_core::{Tokens, ToolName};
///
/// const NEVER: &[ToolName] = &[ToolName::new("web_search")];
/// const CLEARING: ToolResultClearing =
///     ToolResultClearing::new().keep(5).clear_at_least(5_000).exclude_tools(NEVER).clear_inputs(true);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolResultClearing<'a> {
    pub(crate) keep: u32,
    pub(crate) clear_at_least: u64,
    pub(crate) exclude_tools: &'a [ToolName],
    pub(crate) clear_inputs: bool,
    placeholder: Tokens,
}

/// Number of the newest tool uses that keep their results, as in the documented rules.
const KEEP: u32 = 3;

/// The default note in the place of a cleared result.
pub const CLEARED: &str = "[cleared]";

/// Default number of tokens of a note: enough for [`CLEARED`] with any tokenizer, because none makes more tokens
/// than there are bytes.
pub(crate) const PLACEHOLDER_TOKENS: Tokens = Tokens(CLEARED.len() as u32);

/// Number of tokens of cleared arguments: `{}`.
pub(crate) const INPUT_TOKENS: Tokens = Tokens(2);

impl Default for ToolResultClearing<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a> ToolResultClearing<'a> {
    /// A stage that keeps the three newest tool uses and all arguments, without a least amount and excluded tools.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            keep: KEEP,
            clear_at_least: 0,
            exclude_tools: &[],
            clear_inputs: false,
            placeholder: PLACEHOLDER_TOKENS,
        }
    }

    /// Sets the number of the newest tool uses that keep their results.
    #[must_use]
    pub const fn keep(mut self, tool_uses: u32) -> Self {
        self.keep = tool_uses;
        self
    }

    /// Sets the least number of tokens that a clearing must free: each clearing voids the provider's cache from the
    /// first cleared result on. A `PaybackRule` of `epitome-std` computes this amount for each plan from the prices
    /// of the model, and replaces this setting.
    #[must_use]
    pub const fn clear_at_least(mut self, tokens: u64) -> Self {
        self.clear_at_least = tokens;
        self
    }

    /// Sets the tools whose results are never cleared.
    #[must_use]
    pub const fn exclude_tools(mut self, tools: &'a [ToolName]) -> Self {
        self.exclude_tools = tools;
        self
    }

    /// Sets whether the arguments of the calls are cleared too.
    #[must_use]
    pub const fn clear_inputs(mut self, too: bool) -> Self {
        self.clear_inputs = too;
        self
    }

    /// Sets the largest size of the note for a result; at most [`ELIDED_TOKENS_MAX`](epitome_core::ELIDED_TOKENS_MAX).
    #[must_use]
    pub const fn placeholder(mut self, tokens: Tokens) -> Self {
        self.placeholder = tokens;
        self
    }

    /// The number of the first part of the newest tool uses; `None` if no use is older.
    fn first_kept(&self, draft: &Draft<'_>) -> Option<u32> {
        let (index, mut kept, mut first) = (draft.index(), 0, u32::MAX);
        // From the newest part on, because only few parts are read.
        for at in (0..u32::try_from(index.part_count()).unwrap_or(u32::MAX)).rev() {
            if !index.part(at).is_some_and(|part| is_use(draft, &part)) {
                continue;
            }
            if kept == self.keep {
                return Some(first);
            }
            (kept, first) = (kept.saturating_add(1), at);
        }
        None
    }

    /// Calls `visit` for each old part whose tool may be cleared, with the size of its stand-in.
    ///
    /// Loops instead of chained iterators, which make the code three times as large: it has to fit a device.
    fn for_each_old(
        &self,
        draft: &mut Draft<'_>,
        first_kept: u32,
        visit: &mut dyn FnMut(&mut Draft<'_>, &IndexedPart<'_>, Tokens),
    ) {
        let index = draft.index();
        for part in index.parts() {
            if part.at() >= first_kept {
                break;
            }
            if part.kind() == PartKind::ToolResult && self.may_clear(&part) {
                visit(draft, &part, self.placeholder);
            }
        }
        if !self.clear_inputs {
            return;
        }
        for group in index.groups() {
            if are_old(&group, first_kept) {
                for_each_part(&group, &mut |part| {
                    if part.kind() == PartKind::ToolInput && self.may_clear(part) {
                        visit(draft, part, INPUT_TOKENS);
                    }
                });
            }
        }
    }

    fn may_clear(&self, part: &IndexedPart<'_>) -> bool {
        part.tool().is_none_or(|tool| !self.exclude_tools.contains(&tool))
    }
}

impl Strategy for ToolResultClearing<'_> {
    fn name(&self) -> &'static str {
        "clear_tool_results"
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        let Some(first_kept) = self.first_kept(draft) else { return };
        if self.clear_at_least > 0 {
            let mut freed = 0_u64;
            self.for_each_old(draft, first_kept, &mut |draft, part, allowance| {
                if draft.may_elide(part, allowance) {
                    let left = draft.part_tokens_left(part).as_u64();
                    let less = left.saturating_sub(allowance.as_u64());
                    freed = freed.saturating_add(less);
                }
            });
            if freed < self.clear_at_least {
                return;
            }
        }
        self.for_each_old(draft, first_kept, &mut |draft, part, allowance| {
            // A protected part stays, and so does a part that is not larger than its note.
            let _ = draft.elide(part, allowance);
        });
    }
}

/// Whether all results of a group are older than the newest tool uses. The parts do not show which call a result
/// answers, so a group's calls are old when all its results are.
fn are_old(group: &Group<'_>, first_kept: u32) -> bool {
    let (mut old, mut new) = (false, false);
    for_each_part(group, &mut |part| {
        if part.kind() == PartKind::ToolResult {
            (old, new) = (old || part.at() < first_kept, new || part.at() >= first_kept);
        }
    });
    old && !new
}

fn for_each_part<'i>(group: &Group<'i>, visit: &mut dyn FnMut(&IndexedPart<'i>)) {
    for part in group.parts() {
        visit(&part);
    }
}

/// Whether a part is the visible result of a tool use.
fn is_use(draft: &Draft<'_>, part: &IndexedPart<'_>) -> bool {
    part.kind() == PartKind::ToolResult
        && part.group().is_some_and(|group| draft.verdict(&group) == Verdict::Keep)
}
