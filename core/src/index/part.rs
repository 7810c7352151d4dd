//! Rows of the table of parts: the parts that a plan may shorten without removing their group.

use core::ops::Range;

use super::facts::{Answer, Facts};
use super::{Flags, Group, Index, IndexBuf, Span, ToolName};
use crate::Tokens;
use crate::attribution::SourceKind;
use crate::message::{CallKind, MessageView, PartView, Role};
use crate::open_calls::{OpenCall, OpenCalls, OpenKind};
use crate::table::{Full, Table};

/// The size from which on a text counts as huge and has a row of its own. A shorter text is not worth shortening: its
/// head, its tail and the marker between them are about as long.
pub const TEXT_PART_TOKENS_MIN: Tokens = Tokens(512);

/// A text with fewer bytes need not be counted: no tokenizer makes more tokens than there are bytes.
pub(super) const TEXT_PART_BYTES_MIN: usize = TEXT_PART_TOKENS_MIN.0 as usize;

/// A part that a plan may elide or clamp.
///
/// Its fields are private: an index makes the row, and [`IndexedPart`] reads it. The type is public so that a caller
/// can provide the memory of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PartSpan {
    /// The position of its message.
    message: u32,
    /// Its own size, without the framing of the message.
    tokens: u32,
    /// The position in the message (12 bits), the kind (3 bits), whether a tool failed (1 bit), and the name of the
    /// tool (16 bits). For reasoning, the place of the name holds whether the message has no other content.
    packed: u32,
}

const _: () = assert!(size_of::<PartSpan>() <= 12, "an index has at most 12 bytes per elidable part");

const ORDINAL_MAX: u32 = 0xFFF;
const KIND_SHIFT: u32 = 12;
const ERROR: u32 = 1 << 15;
const TOOL_SHIFT: u32 = 16;
/// Mark of reasoning that stands alone in its message, in the place of a tool's name.
const ALONE: u32 = 1 << TOOL_SHIFT;

impl PartSpan {
    /// Value of the unused rows of a table.
    pub(crate) const EMPTY: Self = Self { message: 0, tokens: 0, packed: 0 };

    pub(crate) const fn tokens(&self) -> Tokens {
        Tokens(self.tokens)
    }

    pub(crate) const fn position(&self) -> u32 {
        self.message
    }

    pub(super) const fn ordinal(&self) -> u32 {
        self.packed & ORDINAL_MAX
    }

    pub(crate) const fn kind(&self) -> PartKind {
        PartKind::from_bits((self.packed >> KIND_SHIFT) & 7)
    }

    /// Sets the tool of a call's arguments, or of a hosted tool's result.
    pub(super) const fn set_tool(&mut self, tool: u16) {
        self.packed |= (tool as u32) << TOOL_SHIFT;
    }
}

/// The kind of a part that may be shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum PartKind {
    /// A tool result: all of its content.
    ToolResult,
    /// The arguments of a call, without the tool's name.
    ToolInput,
    /// Reasoning of the model.
    Reasoning,
    /// An image, a sound, a video or a document.
    Media,
    /// A text of at least [`TEXT_PART_TOKENS_MIN`].
    Text,
}

impl PartKind {
    const fn from_bits(bits: u32) -> Self {
        match bits {
            0 => Self::ToolResult,
            1 => Self::ToolInput,
            2 => Self::Reasoning,
            3 => Self::Media,
            _ => Self::Text,
        }
    }

    /// The name of the kind.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ToolResult => "tool_result",
            Self::ToolInput => "tool_input",
            Self::Reasoning => "reasoning",
            Self::Media => "media",
            Self::Text => "text",
        }
    }
}

/// No table of parts, for a history whose plans only keep or remove whole groups: it takes no memory.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "it is empty for good")]
pub struct NoParts;

impl Table<PartSpan> for NoParts {
    fn as_slice(&self) -> &[PartSpan] {
        &[]
    }

    fn as_mut_slice(&mut self) -> &mut [PartSpan] {
        &mut []
    }

    fn push(&mut self, _: PartSpan) -> Result<(), Full> {
        Ok(())
    }

    fn truncate(&mut self, _: usize) {}

    fn clear(&mut self) {}
}

/// A part that a plan may shorten, at its place in an index.
#[derive(Debug, Clone, Copy)]
pub struct IndexedPart<'a> {
    index: Index<'a>,
    at: u32,
    leader: u32,
    part: &'a PartSpan,
}

impl<'a> IndexedPart<'a> {
    /// The number of the part within the index, under which its verdict is written.
    #[must_use]
    pub const fn at(&self) -> u32 {
        self.at
    }

    /// The number of the group of the part.
    #[must_use]
    pub const fn leader(&self) -> u32 {
        self.leader
    }

    /// The group of the part.
    #[must_use]
    pub fn group(&self) -> Option<Group<'a>> {
        self.index.group(self.leader)
    }

    /// The position of the message of the part.
    #[must_use]
    pub const fn position(&self) -> u32 {
        self.part.message
    }

    /// The position of the part among all parts of its message, from 0.
    #[must_use]
    pub const fn ordinal(&self) -> u32 {
        self.part.ordinal()
    }

    /// The kind of the part.
    #[must_use]
    pub const fn kind(&self) -> PartKind {
        self.part.kind()
    }

    /// The size of the part, without the framing of its message.
    #[must_use]
    pub const fn tokens(&self) -> Tokens {
        Tokens(self.part.tokens)
    }

    /// Whether the part is the result of a tool that failed.
    #[must_use]
    pub const fn is_error(&self) -> bool {
        self.part.packed & ERROR != 0
    }

    /// The tool that was called.
    ///
    /// A result has the tool of its call. The answer to a call that was hidden when the history was loaded has none.
    #[must_use]
    pub const fn tool(&self) -> Option<ToolName> {
        match ((self.part.packed >> TOOL_SHIFT) as u16, self.kind()) {
            (0, _) | (_, PartKind::Reasoning) => None,
            (bits, _) => Some(ToolName::of_bits(bits)),
        }
    }

    /// Whether the part is reasoning in a message that holds nothing else.
    pub(crate) fn is_all_of_its_message(&self) -> bool {
        self.kind() == PartKind::Reasoning && self.part.packed & ALONE != 0
    }
}

/// The elidable parts of an index, in the order of their messages.
#[derive(Debug, Clone)]
pub struct IndexedParts<'a> {
    index: Index<'a>,
    parts: Range<usize>,
    /// The span of the part before.
    span: usize,
}

impl<'a> Iterator for IndexedParts<'a> {
    type Item = IndexedPart<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.parts.next()?;
        let part = self.index.parts.get(at)?;
        // Both tables ascend, so that spans are walked once for all parts.
        let begun = |span: &Span| span.first <= part.message;
        while self.index.spans.get(self.span.saturating_add(1)).is_some_and(begun) {
            self.span = self.span.saturating_add(1);
        }
        let leader = self.index.spans.get(self.span)?.leader;
        Some(IndexedPart { index: self.index, at: u32::try_from(at).ok()?, leader, part })
    }
}

impl<'a> Index<'a> {
    /// Number of parts that may be shortened, as far as the index knows them.
    #[must_use]
    pub const fn part_count(&self) -> usize {
        self.parts.len()
    }

    /// The parts that may be shortened, in the order of their messages. An iteration over all of them costs one step
    /// for each span and part.
    #[must_use]
    pub const fn parts(&self) -> IndexedParts<'a> {
        IndexedParts { index: *self, parts: 0..self.parts.len(), span: 0 }
    }

    /// The part at `at`. The method finds the span of the part by a binary search.
    #[must_use]
    pub fn part(self, at: u32) -> Option<IndexedPart<'a>> {
        let part = self.parts.get(at as usize)?;
        let span = self.spans.partition_point(|span| span.first <= part.message).checked_sub(1)?;
        Some(IndexedPart { index: self, at, leader: self.spans.get(span)?.leader, part })
    }

    /// The numbers of the parts of the messages at `positions`.
    pub(crate) fn parts_in(self, positions: Range<u32>) -> Range<usize> {
        let before = |position: u32| self.parts.partition_point(|part| part.message < position);
        before(positions.start)..before(positions.end)
    }
}

impl<'a> Group<'a> {
    /// The parts of the group that may be shortened, in projection order.
    pub fn parts(&self) -> impl Iterator<Item = IndexedPart<'a>> + use<'a> {
        let (index, leader) = (self.index(), self.leader());
        let numbers = self.positions().flat_map(move |positions| index.parts_in(positions));
        numbers.filter_map(move |at| {
            let part = index.parts.get(at)?;
            Some(IndexedPart { index, at: u32::try_from(at).ok()?, leader, part })
        })
    }
}

/// Function that returns the size of a part. It gets the position of the part in the message, and the part; for a call,
/// its arguments as a text.
pub(super) type Sizes<'s> = &'s mut dyn FnMut(u32, &PartView<'_>) -> Tokens;

/// The rows of one message's parts, made while its parts are read.
pub(super) struct Rows<'t, 's, P> {
    table: &'t mut P,
    sizes: Sizes<'s>,
    /// The position of the message.
    position: u32,
    /// Number of parts of the message that have been read.
    ordinal: u32,
    /// Number of these that were reasoning.
    reasoning: u32,
    result: Result<(), Full>,
}

impl<'t, 's, P: Table<PartSpan>> Rows<'t, 's, P> {
    /// The rows of a message at `position`; `None` if the parts of the message stay whole.
    fn of(facts: &Facts, position: u32, table: &'t mut P, sizes: Sizes<'s>) -> Option<Self> {
        if facts.is_instruction() || facts.source == SourceKind::Compaction {
            return None;
        }
        Some(Self { table, sizes, position, ordinal: 0, reasoning: 0, result: Ok(()) })
    }

    /// Adds the row of the next part, if it has one. `facts` has read this part; `answered` is true if an earlier part
    /// of the message was its answer.
    #[cfg_attr(feature = "alloc", inline(always))]
    pub(super) fn add(&mut self, facts: &Facts, part: &PartView<'_>, answered: bool) {
        let at = self.ordinal;
        self.ordinal = at.saturating_add(1);
        let (kind, marks, tokens) = match part {
            PartView::ToolResult(result) if P::READS_HOSTED && facts.role == Role::Assistant => {
                // Its tool is set after the message has been read, because its call is in the same message.
                (PartKind::ToolResult, if result.is_error { ERROR } else { 0 }, (self.sizes)(at, part))
            }
            PartView::ToolResult(answer) if !answered => {
                let Answer::To(call) = &facts.answer else { return };
                let error = if answer.is_error { ERROR } else { 0 };
                (PartKind::ToolResult, error | u32::from(call.tool) << TOOL_SHIFT, (self.sizes)(at, part))
            }
            PartView::ToolCall(call) if facts.role == Role::Assistant && call.kind == CallKind::Function => {
                // Its tool is set when the call is opened, so that a name is read once.
                (PartKind::ToolInput, 0, (self.sizes)(at, &PartView::Text(call.arguments)))
            }
            PartView::Reasoning(_) if facts.role == Role::Assistant => {
                self.reasoning = self.reasoning.saturating_add(1);
                (PartKind::Reasoning, 0, (self.sizes)(at, part))
            }
            PartView::Media(_) => (PartKind::Media, 0, (self.sizes)(at, part)),
            PartView::Text(text) if text.len() >= TEXT_PART_BYTES_MIN => {
                let tokens = (self.sizes)(at, part);
                if tokens < TEXT_PART_TOKENS_MIN {
                    return;
                }
                (PartKind::Text, 0, tokens)
            }
            _ => return,
        };
        if at <= ORDINAL_MAX {
            let packed = at | (kind as u32) << KIND_SHIFT | marks;
            let row = PartSpan { message: self.position, tokens: tokens.0, packed };
            self.result = self.result.and_then(|()| self.table.push(row));
        }
    }

    /// Ends the message: marks its rows if it holds nothing but reasoning.
    fn end(self) -> Result<(), Full> {
        if self.reasoning > 0 && self.reasoning == self.ordinal {
            let own =
                self.table.as_mut_slice().iter_mut().rev().take_while(|part| part.message == self.position);
            own.for_each(|part| part.packed |= ALONE);
        }
        self.result
    }
}

impl<S: Table<Span>, C: OpenCalls, P: Table<PartSpan>> IndexBuf<S, C, P> {
    /// Reads the parts of a message, and adds their rows: all of them, or none if there is no room. `find` returns the
    /// open call or request for approval that an answer belongs to.
    #[cfg_attr(feature = "alloc", inline(always))]
    pub(super) fn read<M: MessageView + ?Sized>(
        &mut self,
        message: &M,
        facts: &mut Facts,
        sizes: Option<Sizes<'_>>,
        find: impl Fn(&C, OpenKind, &[u8]) -> Option<OpenCall>,
    ) -> Result<(), Full> {
        let (known, calls) = (self.parts.as_slice().len(), &self.calls);
        let find = |kind, id: &[u8]| find(calls, kind, id);
        let rows = sizes.and_then(|sizes| Rows::of(facts, self.totals.messages, &mut self.parts, sizes));
        let Some(mut rows) = rows else {
            facts.read_parts::<M, P>(message, find);
            return Ok(());
        };
        facts.read_with_rows(message, find, &mut rows);
        let added = rows.end();
        if added.is_err() || matches!(facts.answer, Answer::Orphan) {
            self.parts.truncate(known);
        } else if P::READS_HOSTED && (facts.flags.has(Flags::HOSTED) || facts.hosted != 0) {
            self.name_hosted(message, known);
        }
        added
    }
}
