//! Replace old tool exchanges by a few lines.

use epitome_core::{Draft, GroupKind, Strategy, Tokens, Verdict, Writer};

use crate::stretch::Stretch;
use crate::tool_exchange_drop::is_exchange;

/// Replaces older exchanges with tools by one message of the model, written without a call of the model.
///
/// At no cost, the model still knows what it has done and the beginnings of the results: a digest contains the
/// beginnings of calls and results.
///
/// *Keeps*: everything else, the newest exchanges, and protected groups. *Replaces*: older exchanges, calls and
/// results together, the oldest first, until the goal is met; without a goal all of them. Adjacent exchanges have
/// one digest. A summary next to them is part of it, so that two summaries are never adjacent. *Cost*: three passes
/// over the groups. *Stable prefix*: up to the first exchange that it replaces.
///
/// It needs memory for one replacement for each run of exchanges; a run without memory stays. In a
/// [`Pipeline`](crate::Pipeline) with [`Summarization`](crate::Summarization) only the first of the two stages
/// replaces groups in a pass.
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

/// Number of characters of a token in prose and code, by the published rule of thumb of OpenAI. In scripts with
/// more tokens a digest has fewer characters.
const CHARS_PER_TOKEN: u32 = 4;

/// Divisor of the new content of a digest: a digest has at most this share of it, so that it frees tokens.
const SHRINKS_TO: u64 = 2;

/// Minimum size of a digest: a smaller one could hold only its fixed text. No tokenizer makes more tokens than
/// there are bytes. By every counter there is room for the header, a message's framing and the note about missing
/// content, so that every planned digest can be written.
const DIGEST_TOKENS_MIN: u64 = 48;

impl Default for ToolExchangeDigest {
    fn default() -> Self {
        Self::new()
    }
}

impl ToolExchangeDigest {
    /// A stage that keeps the newest exchange, with digests of at most 4,096 characters.
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

    /// Sets the largest size of a digest in characters, at four characters a token. Below 192 characters there is
    /// no digest. A digest also has at most half of the exchanges that it replaces, plus the size of the summary
    /// among them.
    #[must_use]
    pub const fn chars_max(mut self, chars: u32) -> Self {
        self.chars_max = chars;
        self
    }

    /// The largest size of the digest of a stretch; `None` if the digest would save too little.
    fn allowance(&self, stretch: &Stretch) -> Option<Tokens> {
        let most = u64::from(self.chars_max / CHARS_PER_TOKEN);
        let allowance = stretch.summaries.saturating_add(stretch.work / SHRINKS_TO).min(most);
        let is_worth_it = stretch.work > 0 && allowance >= DIGEST_TOKENS_MIN && allowance < stretch.tokens();
        is_worth_it.then(|| Tokens::from_u64(allowance))
    }

    /// Replaces a run if its digest saves enough.
    fn close(&self, draft: &mut Draft<'_>, run: Option<Stretch>) {
        let Some(stretch) = run else { return };
        if let Some(allowance) = self.allowance(&stretch) {
            // Without memory for a replacement, the run stays.
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
        // Only one stage replaces groups in a pass. Otherwise its digests and the summaries of another stage would
        // be adjacent.
        if replaced {
            return;
        }
        let mut old = shown.saturating_sub(self.keep as usize);
        let mut run = None::<Stretch>;
        for group in draft.index().groups() {
            if group.kind() == GroupKind::Orphan || draft.verdict(&group) == Verdict::Drop {
                // A hidden group does not divide a run.
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
            // A summary directly behind the run becomes part of it.
            if self.is_enough(draft, &grown) {
                old = 0;
            }
        }
        self.close(draft, run);
    }
}
