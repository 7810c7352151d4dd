//! A strategy with summaries of a fixed size. No model writes them: their text does not matter in these tests.

use epitome_core::{Draft, GroupKind, Strategy, Tokens, Verdict};

/// Puts one summary in the place of the oldest run of groups that may go, up to the newest turns.
///
/// It replaces one run in a pass. The next pass finds the summary in the place of the run, and no group beside it that
/// may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summarize {
    /// The number of the newest turns that are spared.
    pub recent: u32,
    /// The tokens of the summary.
    pub tokens: u32,
}

impl Strategy for Summarize {
    fn name(&self) -> &'static str {
        "summarize"
    }

    fn replaces(&self) -> bool {
        true
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        let index = draft.index();
        let spared = index.turn().0.saturating_add(1).saturating_sub(self.recent);
        let mut run = None;
        for group in index.groups() {
            match draft.verdict(&group) {
                Verdict::Drop => continue,
                // A pipeline that misses its goal runs its stages twice.
                Verdict::Replace => return,
                _ => {}
            }
            // A summary that follows must be part of the run, even if it is new.
            let old = group.turn().0 < spared || run.is_some() && group.kind() == GroupKind::Summary;
            let may = old && group.kind() != GroupKind::System && draft.is_candidate(&group);
            match (may, run) {
                (true, None) => run = Some((group.leader(), group.leader())),
                (true, Some((first, _))) => run = Some((first, group.leader())),
                (false, Some(_)) => break,
                (false, None) => {}
            }
        }
        if let Some((first, last)) = run {
            // A run that is no larger than its summary, or a summary alone, stays.
            let _ = draft.replace(first, last, Tokens(self.tokens));
        }
    }
}
