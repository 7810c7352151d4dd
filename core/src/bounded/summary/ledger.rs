//! A ledger: the identifiers of deleted messages as one message in their place, written without a model.

use core::ops::Range;

use crate::attribution::{SeqRange, SourceKind};
use crate::identifiers::{IdentifierKind, for_each_identifier, is_ascii_border};
use crate::message::{MessageView, PartView, Parts, Role};

use super::super::bytes::fill;
use super::super::{ArenaMessage, BoundedHistory};

/// The lines before the identifiers in the text of a ledger.
///
/// They mark the text as a record, not an instruction. `epitome-compactors` writes the same lines.
///
/// ```
/// assert!(epitome_core::LEDGER_OPENING.contains("Identifiers in parts that are not shown:"));
/// ```
pub const LEDGER_OPENING: &str =
    "[Conversation Summary]\nIdentifiers in parts that are not shown:\n\n[Identifiers]\nall:";

/// Whether `text` is a ledger of Epitome.
///
/// A history that is passed as plain messages, such as a file, has no attributions. The readers of its formats mark a
/// message of the model with such a text as a compaction, with the lowest authority, so that the next ledger replaces
/// it. The texts of users and tools are never tested.
///
/// ```
/// use epitome_core::{LEDGER_OPENING, is_ledger};
///
/// assert!(is_ledger(&format!("{LEDGER_OPENING} src/main.rs PROJ-7")));
/// assert!(!is_ledger("[Conversation Summary]\nThe build is green."));
/// assert!(!is_ledger(&format!("{LEDGER_OPENING} src/main.rs\n\nFixed: the port.")), "an answer follows");
/// ```
#[must_use]
pub fn is_ledger(text: &str) -> bool {
    // The rest is left to the few texts with this first line: every message of a model is tested when it is read.
    if !text.starts_with("[Conversation Summary]\n") {
        return false;
    }
    let mark = LEDGER_OPENING.lines().nth(1);
    let is_mark = |line: &str| Some(line) == mark;
    let Some((before, list)) = text.rsplit_once("\n[Identifiers]\n") else {
        // Without identifiers, nothing but the state of the last request follows.
        let is_state = |line: &str| line.is_empty() || line.starts_with("The last request in this part of ");
        return text.lines().any(is_mark)
            && text.lines().skip_while(|line| !is_mark(line)).skip(1).all(is_state);
    };
    let is_kind =
        |kind: &str| kind == "all" || IdentifierKind::ALL.iter().any(|known| known.as_str() == kind);
    let is_listed = |line: &str| line.split_once(':').is_some_and(|(kind, _)| is_kind(kind));
    before.lines().any(is_mark) && list.lines().all(is_listed)
}

/// Writer of a text. In a ledger, identifiers that users name come first; those that only tools have written come last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writer {
    User,
    Model,
    /// The model, in the arguments of a call.
    Call,
    /// An earlier summary or ledger.
    Summary,
    Tool,
}

/// The rows of a ledger: the writer of the identifiers, and for tools whether the identifiers are files, addresses or
/// ids.
const ROWS: [(Writer, Option<bool>); 5] = [
    (Writer::User, None),
    (Writer::Model, None),
    (Writer::Summary, None),
    (Writer::Tool, Some(true)),
    (Writer::Tool, Some(false)),
];

fn is_place_or_id(word: &str) -> bool {
    matches!(IdentifierKind::of(word), IdentifierKind::File | IdentifierKind::Address | IdentifierKind::Id)
}

impl Writer {
    fn of(message: &ArenaMessage<'_>) -> Self {
        match (message.attribution().source, message.role()) {
            (SourceKind::Compaction, _) => Self::Summary,
            (_, Role::User) => Self::User,
            (_, Role::Tool) => Self::Tool,
            _ => Self::Model,
        }
    }
}

impl<const MESSAGES: usize, const BYTES: usize, const PARTS: usize> BoundedHistory<MESSAGES, BYTES, PARTS> {
    /// Writes the ledger of the messages in `span` into `room`.
    ///
    /// The ledger lists the identifiers (paths, URLs, ids, names in code, amounts, numbers) that no other message
    /// contains, as many as have room. A name within a longer path counts as contained: `src/a.rs` in
    /// `lib/src/a.rs.bak`; `valve_1` in `valve_10` does not.
    ///
    /// The order is: identifiers of the user, of the model and its calls, of an earlier ledger, and of tools (files,
    /// URLs and ids before the others). Within each of these, the newest come first. `None` if there is no such
    /// identifier, or no room for one.
    ///
    /// [`summarize`](Self::summarize) puts the text in the place of the messages: plan for a goal that leaves room for
    /// it.
    ///
    /// *Cost*: a few passes over the messages in `span`, and for each of their identifiers one pass over the other messages.
    ///
    /// ```
    /// # use epitome_core::message::SimpleMessage;
    /// # use epitome_core::{BoundedHistory, Budget, ClassEstimator, Draft, Pass, Strategy};
    /// # #[derive(Debug)]
    /// # struct Oldest;
    /// # impl Strategy for Oldest {
    /// #     fn name(&self) -> &'static str { "oldest" }
    /// #     fn plan(&self, draft: &mut Draft<'_>) { draft.drop_oldest(); }
    /// # }
    /// let mut history = BoundedHistory::<32, 2048>::new();
    /// for valve in ["valve_7", "valve_8", "valve_9"] {
    ///     history.push(&SimpleMessage::user("Open the next one for ten minutes, and watch the tank."), &ClassEstimator::new())?;
    ///     history.push(&SimpleMessage::assistant(valve), &ClassEstimator::new())?;
    ///     history.push(&SimpleMessage::user("How far has the water fallen since you have opened it?"), &ClassEstimator::new())?;
    ///     history.push(&SimpleMessage::assistant("By two hands."), &ClassEstimator::new())?;
    /// }
    /// let budget = Budget::builder().window(200).trigger(120).goal(60).build()?;
    /// let _ = history.plan(&budget, Pass::Manual, &Oldest)?;
    /// let span = history.span_to_summarize().expect("most of it is old");
    /// let mut room = [0; 256];
    /// let text = history.ledger(span, &mut room).expect("it names valves");
    /// assert!(text.ends_with("\nall: valve_9 valve_8 valve_7"));
    /// history.summarize(span, text, &ClassEstimator::new())?;
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn ledger<'r>(&self, span: SeqRange, room: &'r mut [u8]) -> Option<&'r str> {
        let covered = self.positions_in(span);
        let mut list = List { room, len: 0, has_word: false };
        list.put(LEDGER_OPENING);
        for (writer, is_place) in ROWS {
            for message in covered.clone().rev().filter_map(|at| self.message(at)) {
                for_each_line(&message, writer, &mut |line| {
                    for_each_identifier(line, true, &mut |word| {
                        let is_wanted = is_place.is_none_or(|is_place| is_place == is_place_or_id(word));
                        // The costly check comes last: a full list makes it for no word.
                        if is_wanted
                            && list.has_room(word)
                            && !list.has(word)
                            && !self.is_shown_beside(&covered, word)
                        {
                            list.add(word);
                        }
                    });
                });
            }
        }
        list.finish()
    }

    /// Whether a message outside of `covered` contains a word.
    fn is_shown_beside(&self, covered: &Range<usize>, word: &str) -> bool {
        let mut others = (0..covered.start).chain(covered.end..self.len).filter_map(|at| self.message(at));
        others.any(|message| {
            let mut is_shown = false;
            let mut look = |text: &str| is_shown = is_shown || contains(text.as_bytes(), word.as_bytes());
            for_each_text_of(&message, &mut |writer, text| match writer {
                Writer::Call => for_each_unescaped(text, &mut look),
                _ => look(text),
            });
            is_shown
        })
    }
}

/// The text of a ledger, in the front of its room.
struct List<'r> {
    room: &'r mut [u8],
    len: usize,
    has_word: bool,
}

impl<'r> List<'r> {
    /// Whether the list contains a word. A name within a longer path counts.
    fn has(&self, word: &str) -> bool {
        let written = self.room.get(LEDGER_OPENING.len()..self.len).unwrap_or_default();
        contains(written, word.as_bytes())
    }

    /// Whether there is room for a word and the space before it.
    fn has_room(&self, word: &str) -> bool {
        self.room.len().saturating_sub(self.len) > word.len()
    }

    /// Adds a word for which there is room.
    fn add(&mut self, word: &str) {
        self.put(" ");
        self.put(word);
        self.has_word = true;
    }

    fn put(&mut self, text: &str) {
        fill(self.room.get_mut(self.len..).unwrap_or_default(), text.as_bytes());
        self.len = self.len.saturating_add(text.len());
    }

    fn finish(self) -> Option<&'r str> {
        let written = self.room.get(..self.len)?;
        core::str::from_utf8(written).ok().filter(|_| self.has_word)
    }
}

/// Visits the texts of a message with their writers; for a call, its arguments.
fn for_each_text_of(message: &ArenaMessage<'_>, visit: &mut dyn FnMut(Writer, &str)) {
    let own = Writer::of(message);
    message.for_each_part(&mut |part| match part {
        PartView::Text(text) => visit(own, text),
        PartView::ToolCall(call) => visit(Writer::Call, call.arguments),
        PartView::ToolResult(result) => result.content.for_each_part(&mut |part| {
            if let PartView::Text(text) = part {
                visit(Writer::Tool, text);
            }
        }),
        _ => {}
    });
}

/// Visits the texts of one writer in a message. The arguments of calls belong to the model: their words between escapes
/// are visited.
fn for_each_line(message: &ArenaMessage<'_>, wanted: Writer, visit: &mut dyn FnMut(&str)) {
    for_each_text_of(message, &mut |writer, text| match (writer, wanted) {
        (Writer::Call, Writer::Model) => for_each_unescaped(text, visit),
        _ if writer == wanted => visit(text),
        _ => {}
    });
}

/// Visits the words of a text in JSON. Escapes separate words, with two exceptions. An escaped backslash is part of its
/// word, because it separates the names of folders. A word with a `\uXXXX` is skipped, because without that character
/// it is another word.
fn for_each_unescaped(text: &str, visit: &mut dyn FnMut(&str)) {
    let (mut from, mut at, mut is_whole) = (0_usize, 0_usize, true);
    loop {
        let (behind, is_border) = match text.as_bytes().get(at..).unwrap_or_default() {
            [] => break,
            [b'\\', b'\\', ..] => (at.saturating_add(2), false),
            [b'\\', b'u', ..] => {
                is_whole = false;
                (at.saturating_add(2), false)
            }
            [b'\\', ..] => (text.ceil_char_boundary(at.saturating_add(2)), true),
            [byte, ..] => (at.saturating_add(1), is_ascii_border(*byte)),
        };
        if is_border {
            if is_whole {
                visit(text.get(from..at).unwrap_or_default());
            }
            (from, is_whole) = (behind, true);
        }
        at = behind;
    }
    if is_whole {
        visit(text.get(from..).unwrap_or_default());
    }
}

/// Whether a text contains a word that is not a part of a longer word. Written by hand: the function of the library
/// takes more flash, and can panic.
fn contains(text: &[u8], word: &[u8]) -> bool {
    let Some((first, behind)) = word.split_first() else { return true };
    let mut rest = text;
    let mut before = &b' ';
    while let Some((byte, others)) = rest.split_first() {
        if byte == first && !is_of_word(before) {
            let after = others.strip_prefix(behind);
            if after.is_some_and(|after| !after.first().is_some_and(is_of_word)) {
                return true;
            }
        }
        (rest, before) = (others, byte);
    }
    false
}

/// Whether a byte next to a name makes the name longer.
fn is_of_word(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii()
}
