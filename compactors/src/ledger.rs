//! Leave the identifiers of hidden messages.

use epitome_core::{Draft, Group, GroupKind, Strategy, Tokens, Verdict};

use crate::newest_first::always;

/// Adds one message with the identifiers from all messages that the stages before it hide or shorten.
///
/// Identifiers are the words that a model must write letter by letter and needs to find anything again: paths,
/// addresses, ids, names in code, amounts. No model is called. Use it as the last stage of a
/// [`Pipeline`](crate::Pipeline): the stages before it leave its share of the goal free.
///
/// No ledger is written if its share has less than 80 tokens: with the default share of 15 % at goals below 534 tokens,
/// and in a first compaction that removes less than 800.
///
/// *If the stages before it miss the goal*, because the protected groups and the newest steps are larger: the ledger
/// still has its share, as far as the request fits its limit, and an earlier ledger stays.
///
/// *Keeps*: everything else. *Replaces*: an earlier ledger together with the hidden groups next to it, so that
/// there is only one; otherwise the oldest run of hidden groups behind the first message that stays. *Cost*: four
/// passes over the groups, and two more for each query of its share. *Stable prefix*: up to the groups that it
/// replaces.
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

/// Minimum size of a ledger: with any tokenizer, a smaller one has no room for a name beside its fixed text.
const LEDGER_TOKENS_MIN: u64 = 80;

/// Divisor of the tokens that are hidden for the first time: a ledger has at most a tenth of them. Recorded work of
/// agents has no larger share of identifiers. The stages before the ledger cannot use tokens that it reserves and
/// does not need.
const GONE_SHARE: u64 = 10;

/// Divisor of the hidden tokens: a ledger has at most half of them.
const SHRINKS_TO: u64 = 2;

/// Factor of the ledger's share: it may have twice its share, if the stages before it leave room.
const WITH_UNUSED_ROOM: u64 = 2;

impl Default for Ledger {
    fn default() -> Self {
        Self::new()
    }
}

impl Ledger {
    /// A ledger with 15 % of the goal.
    #[must_use]
    pub const fn new() -> Self {
        Self { share: SHARE }
    }

    /// Sets the share of the goal that the stages before the ledger leave free for it, in percent. The ledger may
    /// have twice this share if these stages leave more. Without a goal, it is a share of the tokens that these
    /// stages leave.
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
        // A summary covers more messages than the current index has.
        let was_compacted = draft.index().groups().any(|group| group.kind() == GroupKind::Summary);
        if was_compacted { share } else { share.min(all.saturating_sub(goal) / GONE_SHARE) }
    }
}

/// Tokens of the summaries that may be replaced: their room is also free for the ledger.
fn summaries(draft: &Draft<'_>) -> u64 {
    let mut tokens = 0_u64;
    for group in draft.index().groups() {
        if group.kind() == GroupKind::Summary && draft.is_candidate(&group) {
            tokens = tokens.saturating_add(draft.tokens_left(&group));
        }
    }
    tokens
}

/// Whether the goal is missed, because the protected groups and the newest steps are larger.
fn is_out_of_reach(draft: &Draft<'_>) -> bool {
    draft.budget().goal().is_some_and(|goal| draft.tokens() > goal && draft.floors().goal > goal)
}

/// Adjacent groups that the ledger replaces. Groups that are never sent to a model do not count between them.
#[derive(Debug, Clone, Copy, Default)]
struct Run {
    first: u32,
    last: u32,
    /// Whether it contains a summary that counts.
    has_summary: bool,
    /// Whether a message that is no instruction stays before it.
    is_behind: bool,
    /// Tokens of these summaries.
    summaries: u64,
    /// Tokens of all visible groups in it.
    shown: u64,
}

impl Run {
    /// The run with this group added; a new run if there is none. Visible summaries count, and hidden ones if the goal
    /// is out of reach: to hide them was of no use.
    fn with(run: Option<Self>, draft: &Draft<'_>, group: &Group<'_>, is_behind: bool) -> Self {
        let mut run = run.unwrap_or(Self { first: group.leader(), is_behind, ..Self::default() });
        run.last = group.leader();
        let (tokens, is_shown) = (draft.tokens_left(group), draft.verdict(group) == Verdict::Keep);
        if is_shown {
            run.shown = run.shown.saturating_add(tokens);
        }
        if group.kind() == GroupKind::Summary && (is_shown || is_out_of_reach(draft)) {
            run.has_summary = true;
            run.summaries = run.summaries.saturating_add(tokens);
        }
        run
    }

    /// Chooses the run with a summary, so that there is only one summary; otherwise the oldest run of hidden
    /// groups; otherwise the oldest group with shortened parts. Runs before the first message that stays come last,
    /// because some providers refuse a conversation that begins with the model. `None` if the same pass writes a
    /// summary.
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

    /// The older of two runs, unless the newer one ranks higher.
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
        let share = self.share_of(draft);
        if share >= LEDGER_TOKENS_MIN && !is_recorded(draft, share) && is_out_of_reach(draft) {
            restore_summaries(draft);
        }
    }
}

/// Requests a ledger with this share. Returns whether there will be one.
fn is_recorded(draft: &mut Draft<'_>, share: u64) -> bool {
    let (budget, tokens) = (draft.budget(), draft.tokens());
    let Some(run) = Run::choose(draft) else { return false };
    let target = match budget.goal() {
        Some(_) if is_out_of_reach(draft) => tokens.saturating_add(share).min(budget.limit()),
        goal => goal.unwrap_or(budget.limit()),
    };
    let free = target.saturating_sub(tokens).saturating_add(run.shown);
    let most = budget.goal().map_or(share, |_| share.saturating_mul(WITH_UNUSED_ROOM));
    let taken = draft.index().tokens().saturating_sub(tokens);
    // The content of a summary in the run stays.
    let allowance = most.min(free).min(taken / SHRINKS_TO).max(run.summaries);
    let after = tokens.saturating_sub(run.shown).saturating_add(allowance);
    allowance >= LEDGER_TOKENS_MIN
        && (after <= tokens || after <= budget.limit())
        && draft.record(run.first, run.last, Tokens::from_u64(allowance)).is_ok()
}

/// Shows hidden summaries again, as far as the request fits its limit.
fn restore_summaries(draft: &mut Draft<'_>) {
    for group in draft.index().groups() {
        if draft.tokens().saturating_add(group.tokens().as_u64()) <= draft.budget().limit() {
            // Refused for all other groups.
            let _ = draft.restore_summary(group.leader());
        }
    }
}
