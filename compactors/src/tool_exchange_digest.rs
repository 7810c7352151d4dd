//! Let a few lines stand in the place of what was done with tools long ago.

use epitome_core::{Draft, GroupKind, Strategy, Tokens, Verdict, Writer};

use crate::stretch::Stretch;
use crate::tool_exchange_drop::is_exchange;

/// Lets one message of the model, put together without asking one, stand in the place of older exchanges with tools.
///
/// *Keeps*: everything else, the newest exchanges, and what is protected. *Replaces*: older exchanges, calls and results
/// together, oldest first, until the goal is met; without a goal all of them. Exchanges that follow each other have one
/// digest together, and a summary beside them is part of it, so that summaries never stand side by side. *Cost*: three
/// passes over the groups. *Stable prefix*: up to the first exchange that it replaces.
///
/// The model still knows what it has done and how that began to come out, at no cost: the digest holds the beginnings of
/// calls and results. It needs memory for one replacement for each run of exchanges; what finds no room stays. In a
/// [`Pipeline`](crate::Pipeline) with [`Summarization`](crate::Summarization) whichever comes first replaces: the other one
/// leaves that pass alone.
///
/// ```
/// use epitome_compactors::ToolExchangeDigest;
///
/// let digest = ToolExchangeDigest::new().keep(2).chars_max(2_048);
/// assert_ne!(digest, ToolExchangeDigest::default());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolExchangeDigest {
    keep: u32,
    chars_max: u32,
}

/// Number of the newest exchanges that stay, as in Microsoft Agent Framework.
const KEEP: u32 = 1;

/// Maximum number of characters of a digest, as in Microsoft Agent Framework.
const CHARS_MAX: u32 = 4_096;

/// Number of characters of a token in prose and code, by the published rule of thumb of OpenAI. In scripts with more tokens a digest is
/// shorter.
const CHARS_PER_TOKEN: u32 = 4;

/// A digest has at most this share of what is new in it: there is something to gain.
const SHRINKS_TO: u64 = 2;

/// Below this a digest could hold nothing but what every digest begins with. No tokenizer makes more tokens than there are
/// bytes, so that by every counter there is room for its header, a message's framing and a word that something is left out: a
/// digest that is planned can be written.
const DIGEST_TOKENS_MIN: u64 = 48;

impl Default for ToolExchangeDigest {
    fn default() -> Self {
        Self::new()
    }
}

impl ToolExchangeDigest {
    /// With the newest exchange kept, and digests of at most 4,096 characters.
    #[must_use]
    pub const fn new() -> Self {
        Self { keep: KEEP, chars_max: CHARS_MAX }
    }

    /// Sets the number of the newest exchanges that stay.
    #[must_use]
    pub const fn keep(mut self, exchanges: u32) -> Self {
        self.keep = exchanges;
        self
    }

    /// Sets the largest size of a digest, in characters of which four make a token: with less than 192 there is none. It also has at
    /// most half of the exchanges that it replaces, and as much as the summary among them had.
    #[must_use]
    pub const fn chars_max(mut self, chars: u32) -> Self {
        self.chars_max = chars;
        self
    }

    /// Tokens that the digest of a stretch may have; `None` if it is not worth it.
    fn allowance(&self, stretch: &Stretch) -> Option<Tokens> {
        let most = u64::from(self.chars_max / CHARS_PER_TOKEN);
        let allowance = stretch.summaries.saturating_add(stretch.work / SHRINKS_TO).min(most);
        let is_worth_it = stretch.work > 0 && allowance >= DIGEST_TOKENS_MIN && allowance < stretch.tokens();
        is_worth_it.then(|| Tokens::from_u64(allowance))
    }

    /// Replaces a run, if it is worth it.
    fn close(&self, draft: &mut Draft<'_>, run: Option<Stretch>) {
        let Some(stretch) = run else { return };
        if let Some(allowance) = self.allowance(&stretch) {
            // Where there is no room it stays.
            let _ = draft.replace_by(Writer::Digest, stretch.first, stretch.last, allowance);
        }
    }

    /// Whether the run alone would meet the goal.
    fn is_enough(&self, draft: &Draft<'_>, stretch: &Stretch) -> bool {
        let freed = self.allowance(stretch).map(|left| stretch.tokens().saturating_sub(left.as_u64()));
        draft.budget().goal().is_some() && freed.is_some_and(|freed| freed >= draft.must_free())
    }
}

impl Strategy for ToolExchangeDigest {
    fn name(&self) -> &'static str {
        "digest_tool_exchanges"
    }

    fn replaces(&self) -> bool {
        true
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        let (mut shown, mut replaced) = (0_usize, false);
        for group in draft.index().groups() {
            shown = shown.saturating_add(usize::from(is_exchange(draft, &group)));
            replaced |= draft.verdict(&group) == Verdict::Replace;
        }
        // One who replaces in a pass: its digests and the summaries of another would stand side by side.
        if replaced {
            return;
        }
        let mut old = shown.saturating_sub(self.keep as usize);
        let mut run = None::<Stretch>;
        for group in draft.index().groups() {
            if group.kind() == GroupKind::Orphan || draft.verdict(&group) == Verdict::Drop {
                // What is not seen parts nothing.
                continue;
            }
            let exchange = is_exchange(draft, &group);
            let is_old = group.kind() == GroupKind::Summary || exchange && old > 0;
            let grows = is_old && draft.is_candidate(&group);
            old = old.saturating_sub(usize::from(exchange));
            if !grows {
                self.close(draft, run.take());
                if draft.budget().goal().is_some() && draft.is_goal_met() {
                    return;
                }
                continue;
            }
            let grown = run.map_or_else(|| Stretch::of(draft, &group), |run| run.with(draft, &group));
            run = Some(grown);
            // A summary that follows has to be part of it.
            if self.is_enough(draft, &grown) {
                old = 0;
            }
        }
        self.close(draft, run);
    }
}
