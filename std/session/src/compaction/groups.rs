//! A strategy that hides given groups.

use epitome_core::{Draft, Protection, Strategy};

/// Hides these groups as far as that is legal, and no other.
pub(crate) struct DropGroups {
    pub(crate) leaders: Vec<u32>,
    pub(crate) name: &'static str,
}

impl Strategy for DropGroups {
    fn name(&self) -> &'static str {
        self.name
    }

    /// The caller that chooses the groups knows which of the newest steps are needed. The newest step is always needed.
    fn protection(&self) -> Protection {
        Protection::default().with_keep_steps(1)
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        for leader in &self.leaders {
            // The plan shows the groups whose drop was refused.
            let _ = draft.drop_group(*leader);
        }
    }
}
