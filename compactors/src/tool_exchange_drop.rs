//! Drop old tool exchanges.

use epitome_core::{Draft, Group, GroupKind, Strategy, Verdict};

/// Drops exchanges with tools, calls and results together, oldest first.
///
/// *Keeps*: everything else, the newest exchanges, and protected groups. *Drops*: older exchanges, until the goal
/// is met; without a goal all of them. *Cost*: two passes over the groups. *Stable prefix*: up to the first
/// exchange that it drops.
///
/// A use of the provider's own tools is in one message with the model's text about it, and is no exchange.
///
/// The model no longer knows its old calls. To remove only the results, use
/// [`ToolResultClearing`](crate::ToolResultClearing).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolExchangeDrop {
    keep: u32,
}

/// Number of the newest exchanges that stay.
const KEEP: u32 = 1;

impl Default for ToolExchangeDrop {
    fn default() -> Self {
        Self::new()
    }
}

impl ToolExchangeDrop {
    /// A stage that keeps the newest exchange.
    #[must_use]
    pub const fn new() -> Self {
        Self { keep: KEEP }
    }

    /// Sets the number of the newest exchanges that stay.
    #[must_use]
    pub const fn keep(mut self, exchanges: u32) -> Self {
        self.keep = exchanges;
        self
    }
}

impl Strategy for ToolExchangeDrop {
    fn name(&self) -> &'static str {
        "drop_tool_exchanges"
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        let shown = draft.index().groups().filter(|group| is_exchange(draft, group)).count();
        let old = shown.saturating_sub(self.keep as usize);
        let mut seen = 0_usize;
        for group in draft.index().groups() {
            let goes_on = draft.budget().goal().is_none() || !draft.is_goal_met();
            if seen == old || !goes_on {
                return;
            }
            if is_exchange(draft, &group) {
                seen = seen.saturating_add(1);
                // A protected group stays.
                let _ = draft.drop_group(group.leader());
            }
        }
    }
}

/// Whether a group is a visible exchange.
pub(crate) fn is_exchange(draft: &Draft<'_>, group: &Group<'_>) -> bool {
    group.kind() == GroupKind::Exchange && draft.verdict(group) == Verdict::Keep
}
