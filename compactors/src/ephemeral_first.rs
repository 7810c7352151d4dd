//! Drop messages that are for one run only.

use epitome_core::{Draft, Strategy};

/// Drops ephemeral groups, oldest first, until the goal is met; without a goal all of them.
///
/// For the first stage of a [`Pipeline`](crate::Pipeline). *Keeps*: everything that is not ephemeral, and protected
/// groups. *Cost*: one pass over the groups. *Stable prefix*: up to the first ephemeral group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::exhaustive_structs, reason = "it has no parameters")]
pub struct EphemeralFirst;

impl Strategy for EphemeralFirst {
    fn name(&self) -> &'static str {
        "ephemeral_first"
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        let toward_goal = draft.budget().goal().is_some();
        for group in draft.index().groups().filter(|group| group.is_ephemeral()) {
            if toward_goal && draft.is_goal_met() {
                return;
            }
            // A protected group stays.
            let _ = draft.drop_group(group.leader());
        }
    }
}
