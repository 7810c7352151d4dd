//! Handles: the numbers by which a model can read messages again that a compaction hid or shortened.

use std::sync::Arc;

use epitome_core::attribution::SeqRange;
use epitome_core::message::Role;
use epitome_core::{IndexedPart, PartKind, Seq};
use epitome_message::{Message, Part, Str};

use super::MEDIA;
use crate::{History, Live};

/// The tool by which a model reads earlier messages again, and the numbers that the tool uses for the messages of a
/// history.
///
/// A history with handles ([`History::set_handles`]) writes the number of a message into each note for a part of it:
/// `[cleared; #57]` for a result, `[12 lines cut; #57]` in an excerpt, `[... cut#57 ...]` between the ends of a text. A
/// note without room for the number has none. Notes for arguments of calls and for media have no number: arguments stay
/// JSON, and no tool shows media as text. Without handles, notes have their plain text.
///
/// ```
/// use std::sync::Arc;
///
/// use epitome_core::{Budget, ClassEstimator, Draft, Pass, Strategy, Tokens};
/// use epitome_history::{AppendToken, Handles, History, MemoryStore, SessionId};
/// use epitome_message::{Message, Part, ToolCall};
/// use epitome_core::message::Role;
///
/// #[derive(Debug)]
/// struct Clearing;
///
/// impl Strategy for Clearing {
///     fn name(&self) -> &'static str {
///         "clearing"
///     }
///
///     fn plan(&self, draft: &mut Draft<'_>) {
///         for part in draft.index().parts() {
///             // The newest results are protected.
///             let _ = draft.elide(&part, Tokens(9));
///         }
///     }
/// }
///
/// # futures::executor::block_on(async {
/// let (store, counter) = (Arc::new(MemoryStore::new()), Arc::new(ClassEstimator::new()));
/// let mut history = History::open(store, SessionId::new("s"), counter).await?;
/// let mut said = vec![Message::user("Read the files.")];
/// for file in 0..6 {
///     let call = ToolCall::new(format!("c{file}"), "read", "{}");
///     said.push(Message::new(Role::Assistant, vec![Part::ToolCall(call)]));
///     said.push(Message::tool(format!("c{file}"), "line after line ".repeat(20)));
/// }
/// history.append(&AppendToken::new("one"), said).await?;
///
/// history.set_handles(Some(Handles::new("recall_history")));
/// let budget = Budget::builder().window(4_000).trigger(300).goal(100).build()?;
/// history.compact(&budget, Pass::Manual, &Clearing).await?;
/// let second = history.projection().nth(2).unwrap();
/// assert!(matches!(&second.parts()[0], Part::ToolResult(result) if result.parts == [Part::Text("[cleared; #2]".into())]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handles {
    tool: Str,
    numbers: Numbers,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Numbers {
    /// The sequence numbers of the log.
    Log,
    /// One entry for each message of the history. A message without numbers has no handle.
    Other(Arc<[Option<SeqRange>]>),
}

impl Handles {
    /// The handles of a stored session: `tool` uses the sequence numbers of the log.
    #[must_use]
    pub fn new(tool: impl Into<Str>) -> Self {
        Self { tool: tool.into(), numbers: Numbers::Log }
    }

    /// The handles of a copied history. For each of its messages, `numbers` has the numbers by which `tool` knows the
    /// message, or the messages that it stands for.
    #[doc(hidden)]
    #[must_use]
    pub fn renumbered(tool: impl Into<Str>, numbers: Vec<Option<SeqRange>>) -> Self {
        Self { tool: tool.into(), numbers: Numbers::Other(numbers.into()) }
    }

    /// The name of the tool.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// The first and the last number of a message, or of the messages that it stands for.
    fn numbers_of(&self, live: &Live) -> Option<SeqRange> {
        let own = [SeqRange { first: live.key, last: live.key }];
        let ranges = if live.covers.is_empty() { &own[..] } else { &live.covers };
        match &self.numbers {
            Numbers::Log => hull(ranges.iter().copied()),
            Numbers::Other(numbers) => {
                let number = |at: u64| numbers.get(usize::try_from(at).ok()?).copied().flatten();
                hull(ranges.iter().flat_map(|range| range.first.0..=range.last.0).filter_map(number))
            }
        }
    }
}

/// The range from the lowest number to the highest.
fn hull(ranges: impl Iterator<Item = SeqRange>) -> Option<SeqRange> {
    ranges.reduce(|one, other| SeqRange { first: one.first.min(other.first), last: one.last.max(other.last) })
}

impl History {
    /// Sets or removes the handles for the notes of later compactions. A loaded history has no handles at first.
    /// Handles are not stored.
    pub fn set_handles(&mut self, handles: Option<Handles>) {
        self.handles = handles;
    }

    /// The handles of this history, if the model can read by number.
    #[must_use]
    pub const fn handles(&self) -> Option<&Handles> {
        self.handles.as_ref()
    }

    /// The lowest and the highest number by which the tool of the [`Handles`] knows the messages at these positions.
    /// `None` without handles, and if none of the messages has a number. Visible messages may have numbers between the
    /// two.
    #[must_use]
    pub fn handle_of(&self, positions: impl IntoIterator<Item = u32>) -> Option<SeqRange> {
        let handles = self.handles.as_ref()?;
        let live = positions.into_iter().filter_map(|position| self.live().get(position as usize));
        hull(live.filter_map(|live| handles.numbers_of(live)))
    }

    /// The number of the message of a part, if the tool can show the part.
    pub(crate) fn handle_of_part(&self, part: &IndexedPart<'_>) -> Option<Handle> {
        let handles = self.handles.as_ref()?;
        let live = self.live().get(part.position() as usize)?;
        if !live.covers.is_empty() || !is_shown(&live.entry.message, part) {
            return None;
        }
        handles.numbers_of(live).map(|range| Handle(range.first))
    }
}

/// Whether a tool that shows texts shows this part. It never shows instructions.
fn is_shown(message: &Message, part: &IndexedPart<'_>) -> bool {
    if matches!(message.role(), Role::System | Role::Developer) {
        return false;
    }
    let original = usize::try_from(part.ordinal()).ok().and_then(|at| message.parts().get(at));
    match (part.kind(), original) {
        (PartKind::Text, Some(Part::Text(_))) => true,
        (PartKind::ToolResult, Some(Part::ToolResult(result))) => result.parts.iter().any(has_words),
        _ => false,
    }
}

/// Whether a part is a text with more content than the placeholders of media.
fn has_words(part: &Part) -> bool {
    let says = |line: &str| !line.trim().is_empty() && line != MEDIA;
    matches!(part, Part::Text(text) if text.lines().any(says))
}

/// The number by which a model reads a message again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Handle(Seq);

/// Maximum number of bytes between the brackets of a note that a store accepts in a message of a user.
const WORD_BYTES_MAX: usize = 24;

impl Handle {
    #[cfg(test)]
    pub(super) const fn new(number: Seq) -> Self {
        Self(number)
    }

    /// The text of the handle inside a note, after the words of the note.
    pub(super) fn in_note(self) -> String {
        format!("; #{}", self.0)
    }

    /// `note` with the number after its words: `[cleared; #57]`.
    pub(super) fn behind(self, note: &str) -> String {
        match note.strip_suffix(']') {
            Some(note) => format!("{note}{}]", self.in_note()),
            None => format!("{note} [#{}]", self.0),
        }
    }

    /// `note` with the number, still as one word in brackets: `[cleared#57]`, `[... cut#57 ...]`. `None` if `note` is
    /// not such a word.
    pub(super) fn in_word(self, note: &str) -> Option<String> {
        let begin = note.find('[')?.checked_add(1)?;
        let end = note.rfind(']')?;
        let (inner, after) = (note.get(begin..end)?, note.get(end..)?);
        let word = inner.trim_end_matches([' ', '.', '…']);
        let dots = inner.get(word.len()..)?;
        let inner = format!("{word}#{}{dots}", self.0);
        let is_word = !word.is_empty() && inner.len() <= WORD_BYTES_MAX;
        is_word.then(|| [note.get(..begin).unwrap_or_default(), &inner, after].concat())
    }
}

#[cfg(test)]
mod tests {
    use epitome_core::CLAMP_MARKER;

    use super::*;

    #[test]
    fn a_note_has_the_number_within_its_brackets() {
        let handle = Handle(Seq(57));
        assert_eq!(handle.behind("[cleared]"), "[cleared; #57]");
        assert_eq!(handle.behind("gone"), "gone [#57]");
        assert_eq!(handle.in_word("[cleared]").as_deref(), Some("[cleared#57]"));
        assert_eq!(handle.in_word(CLAMP_MARKER).as_deref(), Some("\n[... cut#57 ...]\n"));
        for no_word in ["", "gone", "[]", "[...]", "[a word of more than twenty bytes]"] {
            assert_eq!(handle.in_word(no_word), None, "{no_word}");
        }
        assert_eq!(Handle(Seq(u64::MAX)).in_word("[cleared]"), None, "there is no room for it");
    }
}
