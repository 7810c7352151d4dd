//! Results of tools, and the notes that stand in their place.

use core::ops::Range;

use crate::count::measure_each;
use crate::index::{PartKind, PartSpan};
use crate::message::{MessageView, PartView};
use crate::table::{ArrayTable, Full, Table};
use crate::{TokenCounter, Tokens};

use super::ArenaMessage;
use super::bytes::{Writer, move_down};
use super::encode::tag;

/// The table of results; other parts have no row.
///
/// With `PARTS` = 0 it accepts any number of results and stores none, so that plans keep or drop whole groups.
#[derive(Debug, Clone)]
pub(super) struct ResultTable<const PARTS: usize>(ArrayTable<PartSpan, PARTS>);

impl<const PARTS: usize> ResultTable<PARTS> {
    pub(super) const fn new() -> Self {
        Self(ArrayTable::in_room([PartSpan::EMPTY; PARTS]))
    }
}

impl<const PARTS: usize> Table<PartSpan> for ResultTable<PARTS> {
    // A record has room for the size of one result.
    const READS_HOSTED: bool = false;

    fn as_slice(&self) -> &[PartSpan] {
        self.0.as_slice()
    }

    fn as_mut_slice(&mut self) -> &mut [PartSpan] {
        self.0.as_mut_slice()
    }

    fn push(&mut self, part: PartSpan) -> Result<(), Full> {
        if PARTS == 0 || part.kind() != PartKind::ToolResult { Ok(()) } else { self.0.push(part) }
    }

    fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

/// The size of a message, and the size of its first result.
pub(super) fn count_sized<M: MessageView + ?Sized>(
    message: &M,
    counter: &(impl TokenCounter + ?Sized),
) -> (Tokens, Tokens) {
    let mut result = None;
    let message = measure_each(message, counter, &mut |part, size| {
        if matches!(part, PartView::ToolResult(_)) {
            result = result.or(Some(size));
        }
    });
    (message.tokens, result.unwrap_or(Tokens::ZERO))
}

/// Place of the first result in a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ResultAt {
    /// The position of its first byte.
    pub(super) tag: usize,
    /// The id of its call, with the length before it.
    pub(super) id: Range<usize>,
    /// Start of the part behind it.
    pub(super) end: usize,
    pub(super) is_error: bool,
    /// The size of the result, if it may be elided.
    pub(super) size: Option<Tokens>,
}

impl ResultAt {
    /// Whether a note of `bytes` bytes fits into the present place of the content and the size.
    pub(super) const fn has_room(&self, bytes: usize) -> bool {
        bytes <= self.end.saturating_sub(self.id.end).saturating_add(SIZE_BYTES)
    }
}

/// Writes the size of the first result into a record that was written before the size was known, if the result may be
/// elided.
pub(super) fn note_size(record: &mut [u8], size: Tokens) {
    let Some(at) = first_result(record).filter(|at| at.size.is_some()) else { return };
    if let Some((_, place)) = record.split_at_mut_checked(at.tag.saturating_add(1)) {
        Writer::new(place).word(size.0);
    }
}

/// Moves a record down to `to`, with a note in the place of its first result. The place has room for the note. Returns
/// the new length.
pub(super) fn move_with_note(arena: &mut [u8], record: Range<usize>, to: usize, note: &str) -> usize {
    let Some(at) = arena.get(record.clone()).and_then(first_result) else {
        move_down(arena, record.clone(), to);
        return record.len();
    };
    let from = |offset: usize| record.start.saturating_add(offset);
    move_down(arena, record.start..from(at.tag), to);
    let tagged = to.saturating_add(at.tag);
    let tag = if at.is_error { tag::ELIDED_ERROR_RESULT } else { tag::ELIDED_RESULT };
    if let Some(place) = arena.get_mut(tagged) {
        *place = tag;
    }
    let id = tagged.saturating_add(1);
    move_down(arena, from(at.id.start)..from(at.id.end), id);
    let content = id.saturating_add(at.id.len());
    let mut writer = Writer::new(arena.get_mut(content..from(at.end)).unwrap_or_default());
    write_note(note, &mut writer);
    let behind = content.saturating_add(writer.written());
    move_down(arena, from(at.end)..record.end, behind);
    behind.saturating_add(record.end.saturating_sub(from(at.end))).saturating_sub(to)
}

/// Number of bytes of a note in the place of a result's content.
pub(super) fn note_bytes(note: &str) -> usize {
    let mut measure = Writer::new(&mut []);
    write_note(note, &mut measure);
    measure.written()
}

/// Writes the content of a result that consists of a note alone.
fn write_note(note: &str, to: &mut Writer<'_>) {
    let mut measure = Writer::new(&mut []);
    measure.text(note);
    to.length(measure.written().saturating_add(1));
    to.byte(tag::TEXT);
    to.text(note);
}

/// Place of the first result in a record, if it has one.
pub(super) fn first_result(record: &[u8]) -> Option<ResultAt> {
    ArenaMessage::read(record, crate::Seq(0), Tokens::ZERO)?.first_result(record.len())
}

/// Number of bytes of a size in a record.
const SIZE_BYTES: usize = 4;
