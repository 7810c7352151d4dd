//! A plan with everything in it that is to stand where something is taken away.

use core::fmt;
use core::ops::Range;
use core::slice::Iter;

use super::Plan;
use crate::Tokens;
use crate::draft::{Cell, Clamp, PartVerdict, Quoting, Replacement, Verdict, Writer, left_of};
use crate::index::{Group, Index, IndexedPart, PartKind};

/// A text that stands in the place of something, with its size.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct StandIn<'t> {
    /// The text.
    pub text: &'t str,
    /// Its size by the counter that the index was filled with; of a summary, that of the whole message.
    pub tokens: Tokens,
}

impl<'t> StandIn<'t> {
    /// This text, which has so many tokens.
    #[must_use]
    pub const fn new(text: &'t str, tokens: Tokens) -> Self {
        Self { text, tokens }
    }
}

/// No text: what stands in a plan does not leak into a log.
impl fmt::Debug for StandIn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StandIn").field("tokens", &self.tokens).finish_non_exhaustive()
    }
}

/// The notes that stand for elided parts, by kind. Reasoning needs none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Placeholders<'t> {
    tool_result: Option<StandIn<'t>>,
    tool_input: Option<StandIn<'t>>,
    media: Option<StandIn<'t>>,
    text: Option<StandIn<'t>>,
}

impl<'t> Placeholders<'t> {
    /// None yet: enough for a plan that elides nothing but reasoning.
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

    /// The text that stands for an image, a sound, a video or a document.
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

/// Everything that a plan needs to be ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StandIns<'t> {
    placeholders: Placeholders<'t>,
    notes: &'t [StandIn<'t>],
    summaries: &'t [StandIn<'t>],
    clamps: &'t [StandIn<'t>],
}

impl<'t> StandIns<'t> {
    /// Notes for elided parts, and nothing else.
    #[must_use]
    pub const fn new(placeholders: Placeholders<'t>) -> Self {
        Self { placeholders, notes: &[], summaries: &[], clamps: &[] }
    }

    /// Sets one note for each of [`Plan::elisions`], in that order. If there is one, the notes by kind are not used.
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

    /// Stand-in for the next elided part, which is of this kind. `notes` are those of the parts that are left.
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
    /// The first group that it replaces.
    pub first: Group<'a>,
    /// The largest size of its message.
    pub allowance: Tokens,
    /// The part of that for the words of users in its span.
    pub quotes: Tokens,
    /// The part of that for all else.
    pub prose: Tokens,
    /// The writer of the summary.
    pub writer: Writer,
    covered: Covered<'a>,
    plan: Plan<'a>,
}

impl<'a> SummaryGap<'a> {
    /// The messages that it replaces, group by group, as ranges of positions: the input of whoever writes it.
    pub fn covers(&self) -> impl Iterator<Item = Range<u32>> + use<'a> {
        self.covered.positions()
    }

    /// The groups that it replaces, in order.
    pub fn groups(&self) -> impl Iterator<Item = Group<'a>> + use<'a> {
        self.covered.groups()
    }

    /// The plan that it is a gap of. A ledger records all that it hides or shortens.
    #[must_use]
    pub const fn plan(&self) -> Plan<'a> {
        self.plan
    }
}

/// A part in whose place a note is to stand.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ElisionGap<'a> {
    /// The part. It is never reasoning, which goes without a note.
    pub part: IndexedPart<'a>,
    /// The largest size of its note.
    pub allowance: Tokens,
}

/// A part that is still to be cut.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ClampGap<'a> {
    /// The part.
    pub part: IndexedPart<'a>,
    /// The part of it that stays.
    pub clamp: Clamp,
}

impl<'a> Plan<'a> {
    /// The summaries that have to be written before the plan can be committed, in the order of what they replace.
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

    /// The parts in whose place notes are to stand, in the order in which they came: [`StandIns::with_notes`] takes one for each.
    pub fn elisions(&self) -> impl Iterator<Item = ElisionGap<'a>> + use<'a> {
        self.shortened().filter_map(|(part, verdict)| match verdict {
            PartVerdict::Elide(allowance) if part.kind() != PartKind::Reasoning => {
                Some(ElisionGap { part, allowance })
            }
            _ => None,
        })
    }

    /// The parts that have to be cut before the plan can be committed, in the order in which they came.
    pub fn clamps(&self) -> impl Iterator<Item = ClampGap<'a>> + use<'a> {
        self.shortened().filter_map(|(part, verdict)| match verdict {
            PartVerdict::Clamp(clamp) => Some(ClampGap { part, clamp }),
            _ => None,
        })
    }

    /// Puts everything in its place that the plan needs, and counts exactly what comes of it. Only what is ready can be
    /// committed.
    ///
    /// # Errors
    /// [`FillError`] if something is missing, empty, too many, or larger than its allowance.
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

/// A plan that can be committed: everything that stands in place of something is there, counted, and smaller than what it
/// replaces. [`Plan::fill`] makes it; there is an example at [`plan_with`](crate::plan_with).
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

    /// The size of the projection after, in tokens: what a fresh count of it gives.
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

    /// Takes back what the allowance of `gap` has over its stand-in.
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

/// One thing that a store has to write. Positions are those of the index that the plan was made from.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum PlannedEdit<'a, 't> {
    /// Hide the messages at these positions.
    Hide(Range<u32>),
    /// Let a summary stand in place of hidden messages.
    Summary(SummaryEdit<'a, 't>),
    /// Change a part of a message that stays.
    Part(PartEdit<'t>),
}

/// A summary, in its place.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct SummaryEdit<'a, 't> {
    /// The position of the first message that it replaces, where it stands.
    pub position: u32,
    /// The summary.
    pub stand_in: StandIn<'t>,
    covered: Covered<'a>,
}

impl<'a> SummaryEdit<'a, '_> {
    /// The messages that it replaces, group by group, as ranges of positions.
    pub fn covers(&self) -> impl Iterator<Item = Range<u32>> + use<'a> {
        self.covered.positions()
    }
}

/// A part to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartEdit<'t> {
    /// The position of its message.
    pub position: u32,
    /// Its place among all parts of the message, from 0.
    pub ordinal: u32,
    /// The kind of the part: of a call only the arguments change, of a result all its content.
    pub kind: PartKind,
    /// The stand-in; nothing for reasoning, which is taken out.
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

/// Which stand-in is meant.
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

/// A plan is not ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FillError {
    /// A stand-in is missing.
    Missing(Gap),
    /// Something has no text: providers refuse empty content.
    Empty(Gap),
    /// Something is larger than the plan granted: shorten it, or plan again with a larger allowance.
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
