//! Plans with all stand-ins for the removed content.

use core::fmt;
use core::ops::Range;
use core::slice::Iter;

use super::Plan;
use crate::Tokens;
use crate::draft::{Cell, Clamp, PartVerdict, Quoting, Replacement, Verdict, Writer, left_of};
use crate::index::{Group, Index, IndexedPart, PartKind};

/// A stand-in: the text in the place of hidden messages or of a shortened part, with its size.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct StandIn<'t> {
    /// The text.
    pub text: &'t str,
    /// The size of the text by the counter of the index; for a summary, the size of the whole message.
    pub tokens: Tokens,
}

impl<'t> StandIn<'t> {
    /// A stand-in with this text, which has `tokens` tokens.
    #[must_use]
    pub const fn new(text: &'t str, tokens: Tokens) -> Self {
        Self { text, tokens }
    }
}

/// Prints no text: the stand-ins of a plan do not leak into a log.
impl fmt::Debug for StandIn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StandIn").field("tokens", &self.tokens).finish_non_exhaustive()
    }
}

/// The notes in the place of elided parts, by kind. Reasoning needs no note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Placeholders<'t> {
    tool_result: Option<StandIn<'t>>,
    tool_input: Option<StandIn<'t>>,
    media: Option<StandIn<'t>>,
    text: Option<StandIn<'t>>,
}

impl<'t> Placeholders<'t> {
    /// No notes: enough for a plan that elides nothing but reasoning.
    #[must_use]
    pub const fn new() -> Self {
        Self { tool_result: None, tool_input: None, media: None, text: None }
    }

    /// Sets the note in the place of a tool result's content.
    #[must_use]
    pub const fn with_tool_result(mut self, note: StandIn<'t>) -> Self {
        self.tool_result = Some(note);
        self
    }

    /// Sets the note in the place of a call's arguments. Providers ask for JSON there: `{}`.
    #[must_use]
    pub const fn with_tool_input(mut self, note: StandIn<'t>) -> Self {
        self.tool_input = Some(note);
        self
    }

    /// Sets the note in the place of an image, a sound, a video or a document.
    #[must_use]
    pub const fn with_media(mut self, note: StandIn<'t>) -> Self {
        self.media = Some(note);
        self
    }

    /// Sets the note in the place of a huge text.
    #[must_use]
    pub const fn with_text(mut self, note: StandIn<'t>) -> Self {
        self.text = Some(note);
        self
    }

    const fn of(&self, kind: PartKind) -> Option<StandIn<'t>> {
        match kind {
            PartKind::ToolResult => self.tool_result,
            PartKind::ToolInput => self.tool_input,
            PartKind::Media => self.media,
            PartKind::Text => self.text,
            PartKind::Reasoning => None,
        }
    }
}

/// All stand-ins that a plan needs to be ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StandIns<'t> {
    placeholders: Placeholders<'t>,
    notes: &'t [StandIn<'t>],
    summaries: &'t [StandIn<'t>],
    clamps: &'t [StandIn<'t>],
}

impl<'t> StandIns<'t> {
    /// Stand-ins with notes for elided parts alone.
    #[must_use]
    pub const fn new(placeholders: Placeholders<'t>) -> Self {
        Self { placeholders, notes: &[], summaries: &[], clamps: &[] }
    }

    /// Sets one note for each of [`Plan::elisions`], in that order. If there is such a note, the notes by kind are not
    /// used.
    #[must_use]
    pub const fn with_notes(mut self, notes: &'t [StandIn<'t>]) -> Self {
        self.notes = notes;
        self
    }

    /// Sets one summary for each of [`Plan::summaries`], in that order.
    #[must_use]
    pub const fn with_summaries(mut self, summaries: &'t [StandIn<'t>]) -> Self {
        self.summaries = summaries;
        self
    }

    /// Sets the shortened text of each of [`Plan::clamps`], in that order.
    #[must_use]
    pub const fn with_clamps(mut self, clamps: &'t [StandIn<'t>]) -> Self {
        self.clamps = clamps;
        self
    }

    /// The note for the next elided part, which is of this kind. `notes` are the notes of the remaining parts.
    fn note(&self, kind: PartKind, notes: &mut Iter<'t, StandIn<'t>>) -> Option<StandIn<'t>> {
        match self.notes {
            [] => self.placeholders.of(kind),
            _ => notes.next().copied(),
        }
    }
}

/// A summary that is still to be written.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct SummaryGap<'a> {
    /// The first group that the summary replaces.
    pub first: Group<'a>,
    /// The largest size of the summary as a message.
    pub allowance: Tokens,
    /// The share of the allowance for the words of users in its span.
    pub quotes: Tokens,
    /// The share of the allowance for all other content.
    pub prose: Tokens,
    /// The writer of the summary.
    pub writer: Writer,
    covered: Covered<'a>,
    plan: Plan<'a>,
}

impl<'a> SummaryGap<'a> {
    /// The messages that the summary replaces, group by group, as ranges of positions: the input of its writer.
    pub fn covers(&self) -> impl Iterator<Item = Range<u32>> + use<'a> {
        self.covered.positions()
    }

    /// The groups that the summary replaces, in order.
    pub fn groups(&self) -> impl Iterator<Item = Group<'a>> + use<'a> {
        self.covered.groups()
    }

    /// The plan to which the gap belongs. A ledger records all content that the plan hides or shortens.
    #[must_use]
    pub const fn plan(&self) -> Plan<'a> {
        self.plan
    }
}

/// An elided part that needs a note.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ElisionGap<'a> {
    /// The part. It is never reasoning, which goes without a note.
    pub part: IndexedPart<'a>,
    /// The largest size of the note.
    pub allowance: Tokens,
}

/// A clamped part that is still to be cut.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ClampGap<'a> {
    /// The part.
    pub part: IndexedPart<'a>,
    /// The lengths of the two ends that stay.
    pub clamp: Clamp,
}

impl<'a> Plan<'a> {
    /// The summaries that have to be written before the plan can be committed, in the order of the replaced groups.
    pub fn summaries(&self) -> impl Iterator<Item = SummaryGap<'a>> + use<'a> {
        let plan = *self;
        self.verdicts.replacements.iter().filter_map(move |replacement| {
            let (index, cells) = (plan.index, plan.verdicts.cells);
            let covered = Covered { index, cells, replacement: *replacement };
            let Replacement { allowance, writer, .. } = *replacement;
            let quoting = plan.verdicts.quoting.filter(|_| writer == Writer::Summarizer);
            let Quoting { quotes, prose } =
                quoting.unwrap_or(Quoting { quotes: Tokens::ZERO, prose: allowance });
            Some(SummaryGap {
                first: plan.index.group(replacement.first)?,
                allowance,
                quotes: quotes.min(allowance),
                prose: prose.min(allowance),
                writer,
                covered,
                plan,
            })
        })
    }

    /// The elided parts that need a note, in the order of their messages: [`StandIns::with_notes`] takes one note for
    /// each.
    pub fn elisions(&self) -> impl Iterator<Item = ElisionGap<'a>> + use<'a> {
        self.shortened().filter_map(|(part, verdict)| match verdict {
            PartVerdict::Elide(allowance) if part.kind() != PartKind::Reasoning => {
                Some(ElisionGap { part, allowance })
            }
            _ => None,
        })
    }

    /// The parts that have to be cut before the plan can be committed, in the order of their messages.
    pub fn clamps(&self) -> impl Iterator<Item = ClampGap<'a>> + use<'a> {
        self.shortened().filter_map(|(part, verdict)| match verdict {
            PartVerdict::Clamp(clamp) => Some(ClampGap { part, clamp }),
            _ => None,
        })
    }

    /// Adds all stand-ins to the plan, and computes the exact size of the result.
    ///
    /// Only a ready plan can be committed.
    ///
    /// # Errors
    /// [`FillError`]: `Missing` or `Empty` if a stand-in is missing or has no text, `TooLarge` if it is larger than its
    /// allowance, `TooMany` if there are more stand-ins than the plan has places for.
    pub fn fill<'t>(self, stand_ins: StandIns<'t>) -> Result<ReadyPlan<'a, 't>, FillError> {
        let mut ready = ReadyPlan { plan: self, stand_ins, tokens_after: self.tokens_after };
        let mut written = stand_ins.summaries.iter();
        for (number, gap) in (0_u32..).zip(self.summaries()) {
            ready.count(Gap::Summary(number), written.next().copied(), gap.allowance)?;
        }
        let (mut notes, mut cut) = (stand_ins.notes.iter(), stand_ins.clamps.iter());
        let mut number = 0_u32;
        for (part, verdict) in self.shortened() {
            let (gap, stand_in) = match verdict {
                PartVerdict::Clamp(_) => {
                    number = number.saturating_add(1);
                    (Gap::Clamp(number.saturating_sub(1)), cut.next().copied())
                }
                _ if part.kind() == PartKind::Reasoning => continue,
                _ => (Gap::Placeholder(part.kind()), stand_ins.note(part.kind(), &mut notes)),
            };
            ready.count(gap, stand_in, left_of(verdict, part.tokens()))?;
        }
        match (written.next(), cut.next(), notes.next()) {
            (None, None, None) => Ok(ready),
            _ => Err(FillError::TooMany),
        }
    }
}

/// A plan that can be committed: all stand-ins are present, counted, and smaller than the content that they replace.
///
/// [`Plan::fill`] makes it; there is an example at [`plan_with`](crate::plan_with).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadyPlan<'a, 't> {
    plan: Plan<'a>,
    stand_ins: StandIns<'t>,
    tokens_after: u64,
}

impl<'a, 't> ReadyPlan<'a, 't> {
    /// The plan.
    #[must_use]
    pub const fn plan(&self) -> &Plan<'a> {
        &self.plan
    }

    /// The size of the projection after the compaction, in tokens: equal to a new count of the projection.
    #[must_use]
    pub const fn tokens_after(&self) -> u64 {
        self.tokens_after
    }

    /// The edits that a store writes, all in one step: first the messages to hide (those that summaries replace included),
    /// then the summaries, then the parts to change. Within each the order is that of the groups, or of the messages.
    pub fn edits(&self) -> impl Iterator<Item = PlannedEdit<'a, 't>> + use<'a, 't> {
        let (plan, stand_ins) = (self.plan, self.stand_ins);
        let hidden = plan.index.groups().filter(move |group| plan.verdict(group) != Verdict::Keep);
        let hides = hidden.flat_map(|group| group.positions()).map(PlannedEdit::Hide);
        let summaries = plan.summaries().zip(stand_ins.summaries).filter_map(|(gap, stand_in)| {
            let position = gap.covers().next()?.start;
            Some(PlannedEdit::Summary(SummaryEdit { position, stand_in: *stand_in, covered: gap.covered }))
        });
        let all = (stand_ins.notes.iter(), stand_ins.clamps.iter());
        let parts = plan.shortened().scan(all, move |(notes, cut), (part, verdict)| {
            let stand_in = match verdict {
                PartVerdict::Clamp(_) => cut.next().copied(),
                _ if part.kind() == PartKind::Reasoning => None,
                _ => stand_ins.note(part.kind(), notes),
            };
            let (position, ordinal, kind) = (part.position(), part.ordinal(), part.kind());
            Some(PlannedEdit::Part(PartEdit { position, ordinal, kind, stand_in }))
        });
        hides.chain(summaries).chain(parts)
    }

    /// Subtracts the unused part of the allowance of `gap` from the size of the plan.
    fn count(&mut self, gap: Gap, stand_in: Option<StandIn<'t>>, allowance: Tokens) -> Result<(), FillError> {
        let stand_in = stand_in.ok_or(FillError::Missing(gap))?;
        if stand_in.text.trim().is_empty() {
            return Err(FillError::Empty(gap));
        }
        let spare = allowance.0.checked_sub(stand_in.tokens.0);
        let spare = spare.ok_or(FillError::TooLarge { gap, tokens: stand_in.tokens, allowance })?;
        self.tokens_after = self.tokens_after.saturating_sub(u64::from(spare));
        Ok(())
    }
}

/// One change that a store has to write. Positions are those of the index from which the plan was made.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum PlannedEdit<'a, 't> {
    /// Hide the messages at these positions.
    Hide(Range<u32>),
    /// Put a summary in the place of hidden messages.
    Summary(SummaryEdit<'a, 't>),
    /// Change a part of a message that stays.
    Part(PartEdit<'t>),
}

/// A summary with its position.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct SummaryEdit<'a, 't> {
    /// The position of the first message that the summary replaces, which is the position of the summary.
    pub position: u32,
    /// The summary.
    pub stand_in: StandIn<'t>,
    covered: Covered<'a>,
}

impl<'a> SummaryEdit<'a, '_> {
    /// The messages that the summary replaces, group by group, as ranges of positions.
    pub fn covers(&self) -> impl Iterator<Item = Range<u32>> + use<'a> {
        self.covered.positions()
    }
}

/// A part to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartEdit<'t> {
    /// The position of the message of the part.
    pub position: u32,
    /// The position of the part among all parts of the message, from 0.
    pub ordinal: u32,
    /// The kind of the part. Of a call only the arguments change, of a result all its content.
    pub kind: PartKind,
    /// The stand-in; `None` for reasoning, which is removed.
    pub stand_in: Option<StandIn<'t>>,
}

/// The groups that one summary covers.
#[derive(Debug, Clone, Copy)]
struct Covered<'a> {
    index: Index<'a>,
    cells: &'a [Cell],
    replacement: Replacement,
}

impl<'a> Covered<'a> {
    fn positions(&self) -> impl Iterator<Item = Range<u32>> + use<'a> {
        self.groups().flat_map(|group| group.positions())
    }

    fn groups(&self) -> impl Iterator<Item = Group<'a>> + use<'a> {
        let Self { index, cells, replacement: Replacement { first, last, .. } } = *self;
        let groups = (first..=last).filter_map(move |at| index.group(at));
        let is_covered = move |group: &Group<'_>| {
            let cell = cells.get(group.leader() as usize);
            cell.is_some_and(|cell| cell.verdict() == Verdict::Replace)
        };
        groups.filter(is_covered)
    }
}

/// The place of a stand-in in a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Gap {
    /// The summary with this number, from 0.
    Summary(u32),
    /// The clamped part with this number, from 0.
    Clamp(u32),
    /// The note for elided parts of this kind.
    Placeholder(PartKind),
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Summary(number) => write!(f, "summary {number}"),
            Self::Clamp(number) => write!(f, "clamped part {number}"),
            Self::Placeholder(kind) => write!(f, "the note for an elided {}", kind.as_str()),
        }
    }
}

/// The reason why a plan is not ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FillError {
    /// A stand-in is missing.
    Missing(Gap),
    /// A stand-in has no text: providers refuse empty content.
    Empty(Gap),
    /// A stand-in is larger than its allowance: shorten it, or plan again with a larger allowance.
    TooLarge {
        /// The gap.
        gap: Gap,
        /// The size of the stand-in.
        tokens: Tokens,
        /// The allowed size.
        allowance: Tokens,
    },
    /// There are more summaries, notes or clamped parts than the plan has places for: they belong to another plan.
    TooMany,
}

impl fmt::Display for FillError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(gap) => write!(f, "{gap} is missing"),
            Self::Empty(gap) => write!(f, "{gap} is empty"),
            Self::TooLarge { gap, tokens, allowance } => {
                write!(f, "{gap} has {tokens} tokens and may have {allowance}: shorten it, or grant more")
            }
            Self::TooMany => f.write_str("there are more stand-ins than the plan has places for"),
        }
    }
}

impl core::error::Error for FillError {}
