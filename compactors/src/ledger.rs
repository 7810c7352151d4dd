//! Leave the identifiers of what goes.

use epitome_core::{Draft, Group, GroupKind, Strategy, Tokens, Verdict};

use crate::newest_first::always;

/// Lets one message stand for all that the stages before it hide or shorten: it lists the identifiers in that, and nothing else.
///
/// *Keeps*: everything else. *Replaces*: an earlier ledger, so that there is one, with the hidden groups beside it; else the oldest run
/// of hidden groups behind the first message that stays. *Cost*: four passes over the groups, and two more each time that its share is
/// asked for. *Stable prefix*: up to what it replaces.
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

/// Divisor of the tokens that go for the first time: a ledger has at most a tenth of them. Recorded work of agents has no larger share of
/// identifiers. Tokens that a ledger does not need are lost to the stages before it.
const GONE_SHARE: u64 = 10;

/// A ledger has at most half of what it stands for.
const SHRINKS_TO: u64 = 2;

/// A ledger has at most twice its share, where the stages before it leave room.
const WITH_UNUSED_ROOM: u64 = 2;

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

    /// The share of the goal that the stages before it leave free for it, in percent. It may have twice that where these stages leave more.
    /// Without a goal, it is a share of what these stages leave.
    #[must_use]
    pub const fn share(mut self, percent: u32) -> Self {
        self.share = if percent > 100 { 100 } else { percent };
        self
    }

    /// Number of tokens that the stages before the ledger leave free for it.
    fn share_of(&self, draft: &Draft<'_>) -> u64 {
        let all = draft.index().tokens();
        let goal = draft.budget().goal().unwrap_or(draft.tokens());
        let share = goal.saturating_mul(u64::from(self.share)) / 100;
        // A summary stands for more than there is now.
        let was_compacted = draft.index().groups().any(|group| group.kind() == GroupKind::Summary);
        if was_compacted { share } else { share.min(all.saturating_sub(goal) / GONE_SHARE) }
    }
}

/// Tokens of the summaries that may go: the stages before the ledger leave their place to it.
fn summaries(draft: &Draft<'_>) -> u64 {
    let mut tokens = 0_u64;
    for group in draft.index().groups() {
        if group.kind() == GroupKind::Summary && draft.is_candidate(&group) {
            tokens = tokens.saturating_add(draft.tokens_left(&group));
        }
    }
    tokens
}

/// Groups that follow each other, or would without those that are never seen: what the ledger replaces.
#[derive(Debug, Clone, Copy, Default)]
struct Run {
    first: u32,
    last: u32,
    /// Whether a summary in it is shown.
    has_summary: bool,
    /// Whether a message that is no instruction stays before it.
    is_behind: bool,
    /// Tokens of these summaries.
    summaries: u64,
    /// Tokens of all groups in it that are shown.
    shown: u64,
}

impl Run {
    /// This group alone, or behind those of a run.
    fn with(run: Option<Self>, draft: &Draft<'_>, group: &Group<'_>, is_behind: bool) -> Self {
        let mut run = run.unwrap_or(Self { first: group.leader(), is_behind, ..Self::default() });
        run.last = group.leader();
        if draft.verdict(group) == Verdict::Keep {
            let shown = draft.tokens_left(group);
            run.shown = run.shown.saturating_add(shown);
            if group.kind() == GroupKind::Summary {
                run.has_summary = true;
                run.summaries = run.summaries.saturating_add(shown);
            }
        }
        run
    }

    /// The one with a summary in it, so that there are not two; else the oldest of hidden groups; else the oldest group of which
    /// parts are shortened. Those before the first message that stays come last: some providers refuse a conversation that the model
    /// begins. None where a summary is written in the same pass.
    fn choose(draft: &Draft<'_>) -> Option<Self> {
        let (mut best, mut shortened, mut run) = (None, None, None);
        let mut is_behind = false;
        for group in draft.index().groups() {
            let never_seen = matches!(group.kind(), GroupKind::Orphan | GroupKind::System);
            match draft.verdict(&group) {
                Verdict::Replace => return None,
                Verdict::Drop if never_seen => {}
                Verdict::Keep if group.kind() != GroupKind::Summary || !draft.is_candidate(&group) => {
                    best = Self::better(best, run.take());
                    let may_go = draft.is_candidate(&group) && draft.is_shortened(&group);
                    if may_go && shortened.is_none() {
                        shortened = Some(Self::with(None, draft, &group, is_behind));
                    }
                    is_behind |= !never_seen;
                }
                _ => run = Some(Self::with(run, draft, &group, is_behind)),
            }
        }
        Self::better(Self::better(best, run), shortened)
    }

    /// The older of two, unless the other ranks higher.
    fn better(older: Option<Self>, newer: Option<Self>) -> Option<Self> {
        match (older, newer) {
            (Some(older), Some(newer)) if older.rank() >= newer.rank() => Some(older),
            (older, newer) => newer.or(older),
        }
    }

    const fn rank(&self) -> u8 {
        match (self.has_summary, self.is_behind) {
            (true, _) => 2,
            (false, true) => 1,
            (false, false) => 0,
        }
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
        let (Some(goal), share) = (draft.budget().goal(), self.share_of(draft)) else { return 0 };
        if share < LEDGER_TOKENS_MIN {
            return 0;
        }
        // At least 1: a pipeline does not run a stage that reserves nothing if the goal is met.
        let beside = share.saturating_sub(summaries(draft)).max(1);
        // An earlier ledger that does not fit the goal is dropped, so that the whole share has to be free.
        if always(draft).saturating_add(beside) > goal { share } else { beside }
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        let goal = draft.budget().goal().unwrap_or(draft.budget().limit());
        let taken = draft.index().tokens().saturating_sub(draft.tokens());
        let share = self.share_of(draft);
        if share < LEDGER_TOKENS_MIN {
            return;
        }
        let Some(run) = Run::choose(draft) else { return };
        let free = goal.saturating_sub(draft.tokens()).saturating_add(run.shown);
        let most = draft.budget().goal().map_or(share, |_| share.saturating_mul(WITH_UNUSED_ROOM));
        // What a summary in the run says stays.
        let allowance = most.min(free).min(taken / SHRINKS_TO).max(run.summaries);
        if allowance >= LEDGER_TOKENS_MIN {
            // Where there is no room for it, what goes leaves nothing.
            let _ = draft.record(run.first, run.last, Tokens::from_u64(allowance));
        }
    }
}
