//! Leave the identifiers of what goes.

use epitome_core::{Draft, Group, GroupKind, Strategy, Tokens, Verdict};

/// Lets one message stand for all that the stages before it hide or shorten: it lists the identifiers in that, and nothing else.
///
/// *Keeps*: everything else. *Replaces*: the oldest run of hidden groups, and an earlier ledger with it, so that there is one. *Cost*: one pass over
/// the groups. *Stable prefix*: up to what it replaces.
///
/// Identifiers are what a model must write letter by letter, and needs to find anything again: paths, addresses, ids, names
/// in code, amounts. No model is asked. The stages before it in a [`Pipeline`](crate::Pipeline) leave its share of the goal free.
///
/// ```
/// use epitome_compactors::{Ledger, NewestFirst, Pipeline};
///
/// let (newest, ledger) = (NewestFirst::new(), Ledger::new().share(20));
/// assert!(Pipeline::new(&[&newest, &ledger]).is_ok());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ledger {
    share: u32,
}

/// The share of the goal that measured best on recorded work of agents (docs/benchmarks).
const SHARE: u32 = 15;

/// Below this there is no room for a name besides what every ledger says, whatever the tokenizer.
const LEDGER_TOKENS_MIN: u64 = 80;

/// Of what goes, a ledger has at most a tenth: identifiers are no more of recorded work of agents, and what it does not need is
/// lost to the stages before it.
const GONE_SHARE: u64 = 10;

/// A ledger has at most this share of what it replaces.
const SHRINKS_TO: u64 = 2;

impl Default for Ledger {
    fn default() -> Self {
        Self::new()
    }
}

impl Ledger {
    /// With 15 % of the goal.
    #[must_use]
    pub const fn new() -> Self {
        Self { share: SHARE }
    }

    /// The share of the goal that it may have, in percent; without a goal, of what the stages before it leave.
    #[must_use]
    pub const fn share(mut self, percent: u32) -> Self {
        self.share = if percent > 100 { 100 } else { percent };
        self
    }

    /// What it may have.
    fn most(&self, draft: &Draft<'_>) -> u64 {
        let all = draft.index().tokens();
        let goal = draft.budget().goal().unwrap_or(draft.tokens());
        let gone = all.saturating_sub(goal);
        (goal.saturating_mul(u64::from(self.share)) / 100).min(gone / GONE_SHARE)
    }

    /// What the ledger of a run may have, of at most so many tokens; nothing if it is not worth it.
    fn allowance(most: Most, run: &Run) -> Option<u64> {
        // What a summary in the run says stays.
        let most = most.share.min(most.free.saturating_add(run.shown));
        let allowance = most.min(run.work / SHRINKS_TO).max(run.summaries);
        let is_worth_it = run.news && allowance >= LEDGER_TOKENS_MIN;
        (is_worth_it && allowance < run.work.saturating_add(run.summaries)).then_some(allowance)
    }

    /// The better of two runs: one with a summary in it, so that there are not two; else the one with more room.
    fn better(most: Most, best: Option<Run>, run: Option<Run>) -> Option<Run> {
        let worth = |run: &Run| Self::allowance(most, run).map(|allowance| (run.summaries > 0, allowance));
        let run = run.filter(|run| worth(run).is_some());
        match (best, run) {
            (Some(best), Some(run)) if worth(&run) <= worth(&best) => Some(best),
            (best, run) => run.or(best),
        }
    }
}

/// What a ledger may have.
#[derive(Debug, Clone, Copy)]
struct Most {
    /// Of the goal.
    share: u64,
    /// What the goal has room for, beside what the ledger replaces.
    free: u64,
}

/// Groups from a hidden one to a hidden one: what one ledger replaces.
#[derive(Debug, Clone, Copy)]
struct Run {
    first: u32,
    last: u32,
    /// Of summaries that are shown, in tokens.
    summaries: u64,
    /// Of everything else.
    work: u64,
    /// Of all in it that is shown.
    shown: u64,
    /// Whether something in it is new to a ledger.
    news: bool,
    /// Of the groups behind it that stay unless the run reaches further: all that they have, and what is shown of it.
    between: Option<[u64; 2]>,
}

impl Run {
    fn of(group: &Group<'_>) -> Self {
        Self {
            first: group.leader(),
            last: group.leader(),
            summaries: 0,
            work: 0,
            shown: 0,
            news: false,
            between: None,
        }
    }

    /// The run up to this group, of which so much is shown.
    fn with(mut self, group: &Group<'_>, shown: u64, news: bool) -> Self {
        self.news |= news && group.kind() != GroupKind::Summary;
        self.last = group.leader();
        let [work, before] = self.between.take().unwrap_or_default();
        self.shown = self.shown.saturating_add(before).saturating_add(shown);
        self.work = self.work.saturating_add(work);
        match group.kind() {
            GroupKind::Summary => self.summaries = self.summaries.saturating_add(shown),
            _ => self.work = self.work.saturating_add(group.tokens().as_u64()),
        }
        self
    }
}

impl Strategy for Ledger {
    fn name(&self) -> &'static str {
        "ledger"
    }

    fn replaces(&self) -> bool {
        true
    }

    fn reserve(&self, draft: &Draft<'_>) -> u64 {
        if draft.budget().goal().is_some() { self.most(draft) } else { 0 }
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        let goal = draft.budget().goal().unwrap_or(draft.budget().limit());
        let most = Most { share: self.most(draft), free: goal.saturating_sub(draft.tokens()) };
        if most.share < LEDGER_TOKENS_MIN {
            return;
        }
        let is_shortened = || draft.index().groups().any(|group| draft.is_shortened(&group));
        let run = Self::run(draft, most, false);
        let run = if run.is_none() && is_shortened() { Self::run(draft, most, true) } else { run };
        if let Some(run) = run {
            let allowance = Self::allowance(most, &run).map(Tokens::from_u64);
            // Where there is no room for it, what goes leaves nothing.
            let _ = draft.record(run.first, run.last, allowance.unwrap_or_default());
        }
    }
}

impl Ledger {
    /// The groups that the ledger is to replace; with `also_kept` those that stay now, the oldest first: where results were cleared and
    /// no group is hidden.
    fn run(draft: &Draft<'_>, most: Most, also_kept: bool) -> Option<Run> {
        let enough = most.share.saturating_mul(SHRINKS_TO);
        let (mut best, mut run) = (None, None::<Run>);
        for group in draft.index().groups() {
            let is_summary = group.kind() == GroupKind::Summary;
            match draft.verdict(&group) {
                // One who replaces in a pass.
                Verdict::Replace => return None,
                Verdict::Drop if matches!(group.kind(), GroupKind::Orphan | GroupKind::System) => {}
                Verdict::Drop => {
                    // It does not reach over what stays for more than it can list.
                    let is_near = run.is_none_or(|run| run.between.is_none() || run.work < enough);
                    if is_near {
                        run = Some(run.unwrap_or(Run::of(&group)).with(&group, 0, true));
                    }
                }
                _ if !draft.is_candidate(&group) || group.kind() == GroupKind::System => {
                    best = Self::better(most, best, run.take());
                }
                _ if is_summary => {
                    run = Some(run.unwrap_or(Run::of(&group)).with(
                        &group,
                        draft.tokens_left(&group),
                        also_kept,
                    ))
                }
                _ if also_kept && run.is_none_or(|run| run.work < enough) => {
                    run = Some(run.unwrap_or(Run::of(&group)).with(
                        &group,
                        draft.tokens_left(&group),
                        also_kept,
                    ));
                }
                _ => {
                    if let Some(run) = &mut run {
                        let [work, shown] = run.between.unwrap_or_default();
                        let has = [group.tokens().as_u64(), draft.tokens_left(&group)];
                        run.between = Some([work.saturating_add(has[0]), shown.saturating_add(has[1])]);
                    }
                }
            }
        }
        Self::better(most, best, run)
    }
}
