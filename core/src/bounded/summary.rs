//! A summary in the place of many messages, written outside of this crate while messages are added.

mod ledger;

pub use ledger::{LEDGER_OPENING, is_ledger};

use core::fmt;
use core::ops::Range;

use crate::attribution::{AttributionView, Authority, SeqRange, SourceKind};
use crate::index::{Group, GroupKind};
use crate::message::{MessageView, SimpleMessage};
use crate::open_calls::OpenCall;
use crate::{TokenCounter, count_message};

use super::bytes::{Writer, move_down};
use super::compact::Calls;
use super::encode::{Form, write_message};
use super::{BoundedHistory, Compacted, Header};

/// The reason why a summary cannot replace these messages. The history is unchanged.
///
/// ```
/// use epitome_core::BoundedSummaryError;
///
/// assert_eq!(BoundedSummaryError::Blank.to_string(), "the summary is blank");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BoundedSummaryError {
    /// The range holds no message: its messages were removed in the meantime. Choose again.
    NoMessages,
    /// A group lies only partly in the range: a result has arrived since, or the range cuts the group. Choose again.
    NotWhole,
    /// A message in the range must stay: an instruction, a pin, an open call, the first or last user message, or the
    /// newest step.
    Protected,
    /// The range holds only an older summary.
    NothingNew,
    /// The text is empty or blank.
    Blank,
    /// The summary is not smaller than the messages that it replaces, in tokens and in bytes. Shorten it.
    TooLarge,
}

impl fmt::Display for BoundedSummaryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoMessages => "the messages to summarize are gone: choose again",
            Self::NotWhole => "the messages to summarize are not whole groups: choose again",
            Self::Protected => "a message to summarize must stay as it is: choose others",
            Self::NothingNew => "there is nothing to summarize but a summary",
            Self::Blank => "the summary is blank",
            Self::TooLarge => "the summary is not smaller than what it replaces: shorten it",
        })
    }
}

impl core::error::Error for BoundedSummaryError {}

impl<const MESSAGES: usize, const BYTES: usize, const PARTS: usize> BoundedHistory<MESSAGES, BYTES, PARTS> {
    /// The range of messages that the last [`plan`](Self::plan) would delete and that a summary could replace.
    ///
    /// Of the runs of neighbours it is the one with the most tokens, including an older summary next to it. `None`
    /// without a plan, or without such a run.
    ///
    /// The numbers stay valid while messages are added: read the run with [`messages_in`](Self::messages_in), let a
    /// model write the summary, and pass it to [`summarize`](Self::summarize).
    ///
    /// ```
    /// # use epitome_core::attribution::SourceKind;
    /// # use epitome_core::message::{MessageView, SimpleMessage};
    /// # use epitome_core::{BoundedHistory, Budget, ClassEstimator, Draft, Pass, Strategy};
    /// # #[derive(Debug)]
    /// # struct Oldest;
    /// # impl Strategy for Oldest {
    /// #     fn name(&self) -> &'static str { "oldest" }
    /// #     fn plan(&self, draft: &mut Draft<'_>) { draft.drop_oldest(); }
    /// # }
    /// let mut history = BoundedHistory::<32, 1024>::new();
    /// for _ in 0..8 {
    ///     history.push(&SimpleMessage::user("How warm is it in the greenhouse?"), &ClassEstimator::new())?;
    ///     history.push(&SimpleMessage::assistant("It is 21 degrees."), &ClassEstimator::new())?;
    /// }
    /// let budget = Budget::builder().window(200).trigger(120).goal(80).build()?;
    /// let _ = history.plan(&budget, Pass::Manual, &Oldest)?;
    /// let span = history.span_to_summarize().expect("most of it is old");
    /// // Another message comes while the summary is being written.
    /// history.push(&SimpleMessage::user("And outside?"), &ClassEstimator::new())?;
    /// history.summarize(span, "It was 21 degrees, several times.", &ClassEstimator::new())?;
    /// assert!(history.messages().any(|message| message.attribution().source == SourceKind::Compaction));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub fn span_to_summarize(&self) -> Option<SeqRange> {
        if !self.planned {
            return None;
        }
        let (mut best, mut run): (Option<(u64, SeqRange)>, Option<Range<usize>>) = (None, None);
        let index = self.index.view();
        // One step past the last span ends the last run.
        for span in 0..=index.span_count() {
            if span < index.span_count() && self.goes_or_is_summary(span) {
                let positions = index.positions(span);
                let start = run.map_or(positions.start as usize, |run| run.start);
                run = Some(start..positions.end as usize);
            } else if let Some(range) = run.take().and_then(|run| self.range_of(run)) {
                let tokens = self.covered_tokens(self.positions_in(range));
                if best.is_none_or(|(most, _)| most < tokens) && self.check_range(range).is_ok() {
                    best = Some((tokens, range));
                }
            }
        }
        best.map(|(_, range)| range)
    }

    /// Puts the summary `text` in the place of the messages in `range`, which are deleted.
    ///
    /// The source of the summary is [`SourceKind::Compaction`], its authority the lowest of the covered messages, its
    /// role that of the assistant, and its place that of the first covered message. Older summaries in the range are
    /// replaced, never nested: the new summary also covers their messages. The plan ends: other groups that it dropped
    /// stay until the next plan.
    ///
    /// # Errors
    /// [`BoundedSummaryError`] if the range holds no message, cuts a group, or holds a protected message or only an
    /// older summary; if the text is blank, or the summary not smaller than the messages. All checks come before the
    /// first change.
    ///
    /// ```
    /// use epitome_core::attribution::SeqRange;
    /// use epitome_core::{BoundedHistory, BoundedSummaryError, ClassEstimator, Seq};
    ///
    /// let mut history = BoundedHistory::<32, 1024>::new();
    /// let range = SeqRange { first: Seq(2), last: Seq(9) };
    /// assert_eq!(history.summarize(range, "Nothing.", &ClassEstimator::new()), Err(BoundedSummaryError::NoMessages));
    /// ```
    pub fn summarize(
        &mut self,
        range: SeqRange,
        text: &str,
        counter: &(impl TokenCounter + ?Sized),
    ) -> Result<Compacted, BoundedSummaryError> {
        let covered = self.check_range(range)?;
        if text.trim().is_empty() {
            return Err(BoundedSummaryError::Blank);
        }
        let first = *self.headers().get(covered.start).ok_or(BoundedSummaryError::NoMessages)?;
        let derived = [self.coverage(covered.clone()).ok_or(BoundedSummaryError::NoMessages)?];
        let authority = self.lowest_authority(covered.clone());
        let mut attribution = AttributionView::caller(authority);
        (attribution.source, attribution.derived_from) = (SourceKind::Compaction, &derived);
        let summary = SimpleMessage::assistant(text).with_attribution(attribution);
        let mut measure = Writer::new(&mut []);
        write_message(&summary, Form::PLAIN, &mut measure);
        let end = self.headers().get(covered.end).map_or(self.used, |next| next.start as usize);
        let bytes = end.saturating_sub(first.start as usize);
        let (tokens, freed) = (count_message(&summary, counter), self.covered_tokens(covered.clone()));
        if tokens.as_u64() >= freed || measure.written() >= bytes {
            return Err(BoundedSummaryError::TooLarge);
        }
        let header = Header { tokens, ..first };
        let mut calls = Calls::new();
        self.calls_without(&mut calls, |call| self.is_covered(call, &covered));
        let removed = self.replace(&covered, header, &summary);
        self.rebuild(&calls);
        Ok(Compacted {
            messages: covered.len().saturating_sub(1),
            tokens: freed.saturating_sub(tokens.as_u64()),
            bytes: removed,
            results: 0,
        })
    }

    /// The positions that a range covers, if a summary may replace them.
    fn check_range(&self, range: SeqRange) -> Result<Range<usize>, BoundedSummaryError> {
        let covered = self.positions_in(range);
        if covered.is_empty() {
            return Err(BoundedSummaryError::NoMessages);
        }
        let inside = |header: &Header| range.contains(header.anchor());
        let mut members = self.headers().iter().zip(0_usize..);
        if members.any(|(header, at)| inside(header) != covered.contains(&at)) {
            return Err(BoundedSummaryError::NotWhole);
        }
        let index = self.index.view();
        let newest_step = index.groups().rev().find(Group::is_step).map(|group| group.leader());
        let mut new = false;
        for group in index.groups() {
            let first = group.positions().next().map_or(0, |positions| positions.start as usize);
            if !covered.contains(&first) {
                continue;
            }
            new |= group.kind() != GroupKind::Summary;
            let at = Some(group.leader());
            let last = at == index.totals.first_user || at == index.totals.last_user || at == newest_step;
            if last || group.is_instruction() || group.is_pinned() || group.is_open() {
                return Err(BoundedSummaryError::Protected);
            }
        }
        if new { Ok(covered) } else { Err(BoundedSummaryError::NothingNew) }
    }

    fn goes_or_is_summary(&self, span: usize) -> bool {
        let index = self.index.view();
        let summary = index.spans.get(span).is_some_and(|span| {
            index
                .group(span.leader)
                .is_some_and(|group| group.kind() == GroupKind::Summary && !group.is_pinned())
        });
        summary || !self.keeps_span(span)
    }

    fn range_of(&self, positions: Range<usize>) -> Option<SeqRange> {
        let first = self.headers().get(positions.start)?.seq();
        Some(SeqRange { first, last: self.headers().get(positions.end.checked_sub(1)?)?.seq() })
    }

    fn covered(&self, positions: Range<usize>) -> &[Header] {
        self.headers().get(positions).unwrap_or_default()
    }

    fn covered_tokens(&self, positions: Range<usize>) -> u64 {
        self.covered(positions).iter().map(|header| header.tokens.as_u64()).sum()
    }

    /// The range of sequence numbers that a summary of these messages covers, with the numbers that older summaries
    /// cover.
    fn coverage(&self, positions: Range<usize>) -> Option<SeqRange> {
        let mut range = self.range_of(positions.clone())?;
        for message in positions.filter_map(|at| self.message(at)) {
            for older in message.attribution().derived_from {
                range.first = range.first.min(older.first);
                range.last = range.last.max(older.last);
            }
        }
        Some(range)
    }

    fn lowest_authority(&self, positions: Range<usize>) -> Authority {
        let authorities =
            positions.filter_map(|at| self.message(at)).map(|message| message.attribution().authority);
        authorities.min().unwrap_or(Authority::Retrieved)
    }

    /// Whether the group of a call lies at these positions.
    fn is_covered(&self, call: &OpenCall, positions: &Range<usize>) -> bool {
        self.covered(positions.clone()).iter().any(|header| header.anchor() == call.anchor)
    }

    /// Writes the summary at the start of the messages at `covered`, and moves the records behind them down. The
    /// summary has room there, because it is smaller. Returns the number of freed bytes.
    fn replace<M: MessageView>(&mut self, covered: &Range<usize>, header: Header, summary: &M) -> usize {
        let (from, used) = (header.start as usize, self.used);
        let end = self.headers().get(covered.end).map_or(used, |next| next.start as usize);
        let mut to = Writer::new(self.arena.get_mut(from..end).unwrap_or_default());
        write_message(summary, Form::PLAIN, &mut to);
        let behind = from.saturating_add(to.written());
        move_down(&mut self.arena, end..used, behind);
        let freed = end.saturating_sub(behind);
        self.used = used.saturating_sub(freed);
        let less = u32::try_from(freed).unwrap_or(0);
        if let Some(first) = self.headers.get_mut(covered.start) {
            *first = header;
        }
        let gap = covered.len().saturating_sub(1);
        for at in covered.end..self.len {
            let Some(mut header) = self.headers.get(at).copied() else { continue };
            header.start = header.start.saturating_sub(less);
            if let Some(place) = self.headers.get_mut(at.saturating_sub(gap)) {
                *place = header;
            }
        }
        self.len = self.len.saturating_sub(gap);
        freed
    }
}
