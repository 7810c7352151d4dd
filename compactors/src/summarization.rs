//! Replace the oldest messages by a summary.

use epitome_core::attribution::SourceKind;
use epitome_core::{Draft, Group, GroupKind, Protection, Strategy, Tokens, Turn, Verdict};

use crate::newest_first::USER_MESSAGES;
use crate::stretch::Stretch;

/// Replaces the oldest groups by one summary.
///
/// *Keeps*: protected groups ([`Protection`]), and the newest turns as long as the goal can be met without them.
/// *Replaces*: one span, the oldest that is large enough to meet the goal, or the largest there is. An earlier
/// summary is part of the span, so that summaries never nest. Ephemeral messages and context within the span are
/// dropped, because they are added again. Instructions are never summarized. *Cost*: two passes over the groups.
/// *Stable prefix*: up to the span, which usually begins behind the first user message.
///
/// Messages of users in the span are quoted word for word below the summary, within a share of the goal.
///
/// The strategy chooses the span and the largest size of the summary. The program that fills the plan writes the
/// summary, or requests it from a model. A plan needs memory for one replacement: see
/// [`plan_with`](epitome_core::plan_with). If pins and instructions divide the old groups into several spans, one
/// pass replaces one span.
///
/// Without a goal it replaces all groups before the newest turns, as far as they are one span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summarization {
    preserve_recent: u32,
    summary_tokens_max: Tokens,
    user_messages: u32,
    protection: Protection,
    demands: Demands,
    name: &'static str,
}

/// Further demands of services that write no text: see [`Summarization::demanding`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Demands {
    /// The messages of users in the span are repeated, before or behind the summary.
    pub(crate) users_stay: bool,
    /// The span ends with a turn.
    pub(crate) whole_turns: bool,
    /// No messages except instructions are before the span.
    pub(crate) from_first: bool,
}

/// Number of the newest turns that stay as long as the goal can be met without them.
const PRESERVE_RECENT: u32 = 3;

/// Maximum tokens of a summary. The structured summaries that agents publish have one to two thousand tokens, and
/// identifiers are added to these.
const SUMMARY_TOKENS_MAX: Tokens = Tokens(4_000);

/// Minimum tokens of a summary: a smaller one has no room for a sentence in each of its sections.
const SUMMARY_TOKENS_MIN: u64 = 48;

/// Divisor of the new content of a summary: a summary has at most this share of it. The text of an earlier summary
/// may be repeated at full length, so that it does not shrink with each pass.
const SHRINKS_TO: u64 = 2;

impl Default for Summarization {
    fn default() -> Self {
        Self::new()
    }
}

impl Summarization {
    /// A strategy with three recent turns preserved, summaries of at most 4,000 tokens, and quotes of users in a
    /// fifth of the goal.
    #[must_use]
    pub fn new() -> Self {
        Self {
            preserve_recent: PRESERVE_RECENT,
            summary_tokens_max: SUMMARY_TOKENS_MAX,
            user_messages: USER_MESSAGES,
            protection: Protection::default(),
            demands: Demands::default(),
            name: "summarize",
        }
    }

    /// Preserves this number of the newest turns, if the goal can be met without them.
    #[must_use]
    pub const fn preserve_recent(mut self, turns: u32) -> Self {
        self.preserve_recent = turns;
        self
    }

    /// Sets the largest size of a summary message in tokens, without the quotes of users. A summary also has at
    /// most half of the new messages that it replaces, plus the size of an earlier summary among them.
    #[must_use]
    pub const fn summary_tokens_max(mut self, tokens: Tokens) -> Self {
        self.summary_tokens_max = tokens;
        self
    }

    /// Sets the share of the goal for quotes of users in the span, in percent; without a goal, the share of the
    /// limit. The newest messages that fit are quoted word for word below the summary, and copied from one summary
    /// to the next.
    #[must_use]
    pub const fn keep_user_messages(mut self, percent: u32) -> Self {
        self.user_messages = if percent > 100 { 100 } else { percent };
        self
    }

    /// Sets whether the first user message is preserved.
    #[must_use]
    pub const fn preserve_first_user(mut self, stays: bool) -> Self {
        self.protection = self.protection.with_first_user(stays);
        self
    }

    /// Sets the further demands of a service.
    #[cfg(feature = "std")]
    pub(crate) const fn demanding(mut self, demands: Demands) -> Self {
        self.demands = demands;
        self.name = "managed";
        self.user_messages = 0;
        if demands.from_first {
            self.protection = self.protection.with_first_user(false);
        }
        self
    }

    /// The largest size of the summary of a stretch; `None` if the summary would save too little.
    fn allowance(&self, draft: &Draft<'_>, stretch: &Stretch) -> Option<Tokens> {
        let Stretch { work, summaries, users, user_items, .. } = stretch;
        let items = if self.demands.users_stay { *user_items } else { 0 };
        let quotes_max = self.quotes_max(draft);
        let quotes = quotes_max.min(*users);
        let shrinks = work.saturating_sub(items).saturating_sub(quotes);
        let stays = summaries.saturating_add(items);
        let prose = stays.saturating_add(shrinks / SHRINKS_TO);
        let most = self.summary_tokens_max.as_u64().saturating_add(quotes_max);
        let enough = shrinks > 0 && prose.min(self.summary_tokens_max.as_u64()) >= SUMMARY_TOKENS_MIN;
        enough.then(|| Tokens::from_u64(prose.saturating_add(quotes).min(most)))
    }

    /// Maximum tokens of the quotes of users.
    fn quotes_max(&self, draft: &Draft<'_>) -> u64 {
        let goal = draft.budget().goal().unwrap_or(draft.budget().limit());
        goal.saturating_mul(u64::from(self.user_messages)) / 100
    }

    /// Chooses the span to replace.
    fn choose(&self, draft: &Draft<'_>) -> Option<Stretch> {
        let Demands { whole_turns, from_first, .. } = self.demands;
        let first_spared =
            Turn(draft.index().turn().0.saturating_add(1).saturating_sub(self.preserve_recent));
        let spares_all = draft.budget().goal().is_none();
        let (mut stretch, mut best) = (None::<Stretch>, Best::default());
        for group in draft.index().groups() {
            let place = Place::of(draft, &group);
            if whole_turns
                && !matches!(place, Place::Unseen)
                && let Some(whole) = stretch.filter(|stretch| stretch.turn < group.turn())
            {
                self.weigh(draft, whole, &mut best);
            }
            match place {
                Place::Unseen => continue,
                Place::Summary if best.enough => {}
                _ if best.enough => return stretch,
                Place::Barred if from_first && (stretch.is_some() || group.kind() != GroupKind::System) => {
                    break;
                }
                Place::Barred => {
                    stretch = None;
                    continue;
                }
                _ if spares_all && group.turn() >= first_spared => break,
                Place::Summary | Place::Work => {}
            }
            let grown =
                stretch.map_or_else(|| Stretch::of(draft, &group), |stretch| stretch.with(draft, &group));
            stretch = Some(grown);
            if !whole_turns || best.enough {
                self.weigh(draft, grown, &mut best);
            }
        }
        if best.enough { stretch } else { best.largest }
    }

    /// Updates `best` with a stretch: whether it is the largest so far, and whether it meets the goal.
    fn weigh(&self, draft: &Draft<'_>, stretch: Stretch, best: &mut Best) {
        let Some(allowance) = self.allowance(draft, &stretch) else { return };
        if best.largest.is_none_or(|largest| stretch.tokens() > largest.tokens()) {
            best.largest = Some(stretch);
        }
        let freed = stretch.tokens().saturating_sub(allowance.as_u64());
        best.enough = draft.budget().goal().is_some() && freed >= draft.must_free();
    }

    /// Drops messages that are added again and must not stay around the span.
    fn clear_passing(&self, draft: &mut Draft<'_>, stretch: &Stretch) {
        let first = if self.demands.from_first { 0 } else { stretch.first };
        for at in first..=stretch.last {
            let group = draft.index().group(at);
            let before = at < stretch.first;
            if group.is_some_and(|group| is_passing(&group) && !(before && group.kind() == GroupKind::System))
            {
                // These groups may be dropped; therefore they are in the stretch.
                let _ = draft.drop_group(at);
            }
        }
    }
}

/// The best stretch so far.
#[derive(Default)]
struct Best {
    largest: Option<Stretch>,
    /// Whether the latest weighed stretch meets the goal.
    enough: bool,
}

impl Strategy for Summarization {
    fn name(&self) -> &'static str {
        self.name
    }

    fn protection(&self) -> Protection {
        self.protection
    }

    fn replaces(&self) -> bool {
        true
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        // One summary in a pass, even if a pipeline runs the stage twice: each summary costs a call.
        if draft.index().groups().any(|group| draft.verdict(&group) == Verdict::Replace) {
            return;
        }
        let Some(stretch) = self.choose(draft) else { return };
        let Some(allowance) = self.allowance(draft, &stretch) else { return };
        let quotes = Tokens::from_u64(self.quotes_max(draft));
        self.clear_passing(draft, &stretch);
        // If the replacement is refused, only the context in the span is lost, and the next run adds it again.
        if draft.replace(stretch.first, stretch.last, allowance).is_ok() {
            draft.quote(quotes, self.summary_tokens_max);
        }
    }
}

/// The place of a group in a span.
enum Place {
    /// Not visible, or not needed: it may be within a span.
    Unseen,
    /// Replaceable, but not reason enough for a span.
    Summary,
    /// Replaceable.
    Work,
    /// The end of a span.
    Barred,
}

impl Place {
    fn of(draft: &Draft<'_>, group: &Group<'_>) -> Self {
        match group.kind() {
            GroupKind::Orphan => Self::Unseen,
            _ if draft.verdict(group) == Verdict::Drop => Self::Unseen,
            _ if !draft.is_candidate(group) => Self::Barred,
            _ if is_passing(group) => Self::Unseen,
            GroupKind::Summary => Self::Summary,
            _ => Self::Work,
        }
    }
}

/// Whether a group is temporary: its content is added again in each run.
fn is_passing(group: &Group<'_>) -> bool {
    group.kind() == GroupKind::System || group.is_ephemeral() || group.source() == SourceKind::Context
}
