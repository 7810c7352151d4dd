//! Excerpts of long results: their beginning, their end, and between them the lines with the most information.

use std::collections::{BTreeSet, BinaryHeap, HashMap};

use epitome_core::{Clamp, TokenCounter, Tokens};

use epitome_message::identifiers::for_each_identifier;
use foldhash::fast::RandomState;

/// The lines of `text` that the token limit of the clamp allows, in their order, with notes for the omitted lines
/// between them. `None` if the text has too few lines, or none of its first and last lines fits. *Cost*: one pass over the text, and the choice of lines.
///
/// Half of the head and half of the tail are for the first and the last lines. The rest is for lines that report an
/// error, and for lines with identifiers that no other line has shown. A greedy choice takes the lines with the most
/// information for their length first. `named` follows the text of the first note.
pub(super) fn excerpt(
    text: &str,
    clamp: Clamp,
    named: &str,
    counter: &dyn TokenCounter,
) -> Option<(String, Tokens)> {
    let (lines, end) = LINE_ENDS
        .into_iter()
        .map(|end| (text.split_inclusive(end).collect::<Vec<_>>(), end))
        .find(|(lines, _)| lines.len() >= LINES_MIN)?;
    let mut chosen = Chosen::new(&lines, end, clamp.tokens_max(), counter).naming(named);
    chosen.take_while_room(0..lines.len(), half(clamp.head));
    chosen.take_while_room((0..lines.len()).rev(), half(clamp.tail));
    if chosen.at.is_empty() {
        return None;
    }
    let facts = Facts::of(&lines);
    facts.choose(&mut chosen);
    chosen.take_while_room(0..lines.len(), clamp.tokens_max());
    chosen.finish()
}

/// Line ends. The second is the escape in a JSON string, in which some tools return their text.
const LINE_ENDS: [&str; 2] = ["\n", "\\n"];

/// Minimum number of lines. A text with fewer lines has lines that are too long to choose from.
const LINES_MIN: usize = 6;

/// Maximum size of a note for omitted lines, in tokens, in nearly all cases.
const NOTE_TOKENS: u64 = 6;

/// Maximum number of lines that do not fit before the choice ends.
const MISSES_MAX: u32 = 32;

/// The worth of a line that reports an error, as a number of identifiers.
const ERROR_WORTH: u64 = 4;

/// Cost of a line in addition to its text, in bytes: often it causes a note.
const LINE_BYTES: u64 = 24;

/// Words of lines that report an error, in lower case, by their first letter.
const fn errors_with(letter: u8) -> &'static [&'static [u8]] {
    match letter {
        b'c' => &[b"cannot"],
        b'd' => &[b"denied"],
        b'e' => &[b"error", b"exception"],
        b'f' => &[b"fail", b"fatal"],
        b'n' => &[b"not found"],
        b'p' => &[b"panic"],
        b'r' => &[b"refused"],
        b't' => &[b"traceback"],
        _ => &[],
    }
}

const fn half(tokens: Tokens) -> Tokens {
    Tokens(tokens.0 / 2)
}

/// The chosen lines.
struct Chosen<'t> {
    lines: &'t [&'t str],
    /// Line end of a note.
    end: &'static str,
    /// Text of the first note after the number of lines.
    named: &'t str,
    at: BTreeSet<usize>,
    /// The chosen lines in the order of the choice.
    order: Vec<usize>,
    most: Tokens,
    /// Tokens of the lines and the notes between them, counted line by line.
    tokens: u64,
    counter: &'t dyn TokenCounter,
}

impl<'t> Chosen<'t> {
    fn new(lines: &'t [&'t str], end: &'static str, most: Tokens, counter: &'t dyn TokenCounter) -> Self {
        let (at, order) = (BTreeSet::new(), Vec::new());
        Self { lines, end, named: "", at, order, most, tokens: NOTE_TOKENS, counter }
    }

    /// Puts `named` into the first note.
    fn naming(mut self, named: &'t str) -> Self {
        self.named = named;
        if !named.is_empty() {
            self.tokens = self.tokens.saturating_add(self.counter.count(named).as_u64());
        }
        self
    }

    /// Takes a line if it fits within `most`. Returns whether it did.
    fn take(&mut self, at: usize, most: u64) -> bool {
        let Some(line) = self.lines.get(at).filter(|_| !self.at.contains(&at)) else { return false };
        let is_shown =
            |at: Option<usize>| at.is_none_or(|at| at >= self.lines.len() || self.at.contains(&at));
        let shown_beside = [at.checked_sub(1), at.checked_add(1)].map(is_shown);
        let room = most.saturating_sub(self.tokens);
        let Some(tokens) = self.counter.count_up_to(line, Tokens::from_u64(room)) else { return false };
        // A line inside a gap splits one note into two. The last line of a gap removes its note.
        let tokens = match shown_beside {
            [false, false] => self.tokens.saturating_add(NOTE_TOKENS),
            [true, true] => self.tokens.saturating_sub(NOTE_TOKENS),
            _ => self.tokens,
        }
        .saturating_add(tokens.as_u64());
        if tokens > most {
            return false;
        }
        self.tokens = tokens;
        self.at.insert(at);
        self.order.push(at);
        true
    }

    /// Takes lines in this order until one does not fit within `more` tokens.
    fn take_while_room(&mut self, lines: impl Iterator<Item = usize>, more: Tokens) {
        let most = self.tokens.saturating_add(more.as_u64()).min(self.most.as_u64());
        for at in lines {
            if !self.at.contains(&at) && !self.take(at, most) {
                return;
            }
        }
    }

    /// Returns the text. Removes the lines that were chosen last until the text fits.
    fn finish(mut self) -> Option<(String, Tokens)> {
        loop {
            let text = self.text();
            let tokens = self.counter.count(&text);
            if tokens <= self.most {
                return Some((text, tokens));
            }
            let last = self.order.pop()?;
            self.at.remove(&last);
        }
    }

    fn text(&self) -> String {
        let (mut text, mut next, mut named) = (String::new(), 0, self.named);
        let end = self.lines.len();
        for at in self.at.iter().copied().chain([end]) {
            let count = at.saturating_sub(next);
            if count > 0 {
                let (plural, named) = (if count == 1 { "" } else { "s" }, core::mem::take(&mut named));
                text.extend([&format!("[{count} line{plural} cut{named}]"), self.end]);
            }
            text.push_str(self.lines.get(at).copied().unwrap_or_default());
            next = at.saturating_add(1);
        }
        text
    }
}

/// The identifiers and errors of the lines.
struct Facts<'t> {
    lines: &'t [&'t str],
    /// The identifiers of all lines as numbers, line by line.
    identifiers: Vec<u32>,
    /// Index of the first identifier of each line, and the end of the last line.
    begins: Vec<usize>,
    /// Number of different identifiers.
    count: usize,
    /// Whether each line reports an error.
    errors: Vec<bool>,
}

impl<'t> Facts<'t> {
    fn of(lines: &'t [&'t str]) -> Self {
        let (mut numbers, mut identifiers) = (HashMap::<&str, u32, RandomState>::default(), Vec::new());
        let mut begins = vec![0];
        for line in lines {
            for_each_identifier(line, true, &mut |identifier| {
                let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
                identifiers.push(*numbers.entry(identifier).or_insert(next));
            });
            begins.push(identifiers.len());
        }
        let errors = lines.iter().map(|line| is_error(line)).collect();
        Self { lines, identifiers, begins, count: numbers.len(), errors }
    }

    fn line(&self, at: usize) -> &'t str {
        self.lines.get(at).copied().unwrap_or_default()
    }

    /// The text of a line, if it reports an error.
    fn error(&self, at: usize) -> Option<&'t str> {
        self.errors.get(at).is_some_and(|is| *is).then(|| self.line(at).trim())
    }

    fn of_line(&self, at: usize) -> &[u32] {
        match self.begins.get(at..).unwrap_or_default() {
            [begin, end, ..] => self.identifiers.get(*begin..*end).unwrap_or_default(),
            _ => &[],
        }
    }

    /// Chooses the lines with the most information for their length. Information that a chosen line already has counts
    /// nothing.
    fn choose(&self, chosen: &mut Chosen<'_>) {
        let mut said = Said { identifiers: vec![false; self.count], errors: BTreeSet::new() };
        chosen.at.iter().for_each(|at| said.add(self, *at));
        let worth = |said: &Said<'_>, at: usize| {
            said.new_in(self, at).saturating_mul(1 << 16)
                / (self.line(at).len() as u64).saturating_add(LINE_BYTES)
        };
        let mut heap: BinaryHeap<(u64, core::cmp::Reverse<usize>)> = (0..self.lines.len())
            .filter(|at| !chosen.at.contains(at))
            .map(|at| (worth(&said, at), core::cmp::Reverse(at)))
            .filter(|(worth, _)| *worth > 0)
            .collect();
        let mut misses = 0_u32;
        while let Some((before, core::cmp::Reverse(at))) = heap.pop() {
            // A line chosen meanwhile has lowered the worth of this line: put it back into the queue.
            let now = worth(&said, at);
            if now < before {
                if now > 0 {
                    heap.push((now, core::cmp::Reverse(at)));
                }
                continue;
            }
            let most = chosen.most.as_u64();
            if chosen.take(at, most) {
                said.add(self, at);
            } else {
                misses = misses.saturating_add(1);
                if misses > MISSES_MAX {
                    return;
                }
            }
        }
    }
}

/// The identifiers and errors of the chosen lines.
struct Said<'t> {
    identifiers: Vec<bool>,
    errors: BTreeSet<&'t str>,
}

impl<'t> Said<'t> {
    fn add(&mut self, facts: &Facts<'t>, at: usize) {
        for number in facts.of_line(at) {
            if let Some(said) = self.identifiers.get_mut(*number as usize) {
                *said = true;
            }
        }
        self.errors.extend(facts.error(at));
    }

    /// The worth of the new information in a line, as a number of identifiers.
    fn new_in(&self, facts: &Facts<'_>, at: usize) -> u64 {
        let is_new = |number: &&u32| self.identifiers.get(**number as usize) == Some(&false);
        let count = facts.of_line(at).iter().filter(is_new).count() as u64;
        let is_new_error = facts.error(at).is_some_and(|error| !self.errors.contains(error));
        count.saturating_add(if is_new_error { ERROR_WORTH } else { 0 })
    }
}

fn is_error(line: &str) -> bool {
    let bytes = line.as_bytes();
    let begins = bytes.iter().zip(bytes.iter().skip(1)).enumerate();
    begins.into_iter().any(|(at, (first, second))| {
        let words = errors_with(first.to_ascii_lowercase());
        let second = second.to_ascii_lowercase();
        words.iter().filter(|word| word.get(1) == Some(&second)).any(|word| {
            let part = bytes.get(at..at.saturating_add(word.len()));
            part.is_some_and(|part| part.eq_ignore_ascii_case(word))
        })
    })
}

#[cfg(test)]
mod tests {
    use epitome_core::ClassEstimator;
    use proptest::prelude::*;

    use super::*;

    fn shown(text: &str, tokens: u32) -> Option<(String, Tokens)> {
        shown_named(text, tokens, "")
    }

    fn shown_named(text: &str, tokens: u32, named: &str) -> Option<(String, Tokens)> {
        excerpt(text, Clamp { head: Tokens(tokens), tail: Tokens(tokens / 2) }, named, &ClassEstimator::new())
    }

    #[test]
    fn the_first_note_has_the_number() {
        let lines: Vec<String> = (0..400).map(|n| format!("a line without a name, one of {n}")).collect();
        let (text, _) = shown_named(&lines.join("\n"), 60, "; #57").unwrap();
        let notes: Vec<&str> = text.lines().filter(|line| line.starts_with('[')).collect();
        assert!(notes[0].ends_with(" lines cut; #57]"), "{text}");
        assert!(notes[1..].iter().all(|note| note.ends_with(" lines cut]")), "{text}");
    }

    #[test]
    fn an_error_among_many_lines_is_shown() {
        let mut lines: Vec<String> =
            (0..400).map(|n| format!("test module_{n}::case ... ok in a moment")).collect();
        // The line has no identifiers: only its error gives it worth.
        lines[211] = "Error: the types do not match here".into();
        let (text, tokens) = shown(&lines.join("\n"), 60).unwrap();
        assert!(text.starts_with("test module_0::case") && text.contains("Error: the types"), "{text}");
        assert!(text.contains(" lines cut]\n") && tokens <= Tokens(107), "{text}");
    }

    #[test]
    fn a_line_with_a_word_of_failure_reports_an_error() {
        for line in [
            "I Cannot go on",
            "access DENIED",
            "error",
            "an Exception: x",
            "it failed",
            "fatal: no",
            "x was Not Found",
            "thread panicked",
            "connection refused",
            "Traceback (most recent call last):",
            "cancannot",
        ] {
            assert!(is_error(line), "{line}");
        }
        for line in ["", "er", "errand", "all is well", "not  found", "I can not", "пани\u{441}", "refuse"]
        {
            assert!(!is_error(line), "{line}");
        }
    }

    #[test]
    fn what_was_said_is_not_said_again() {
        let mut lines = vec!["GET /health 200 from 10.0.0.1"; 300];
        lines[100] = "opened /var/lib/orders.db";
        lines[200] = "opened /var/lib/orders.db";
        let (text, _) = shown(&lines.join("\n"), 60).unwrap();
        assert_eq!(text.matches("/var/lib/orders.db").count(), 1, "{text}");
    }

    #[test]
    fn lines_in_a_string_of_json_are_lines_and_the_string_stays_one() {
        let mut lines: Vec<String> =
            (0..300).map(|n| format!("checking \"unit {n}\" again and again")).collect();
        lines[150] = "error: cannot find `frob` in src/parse/frob.rs".into();
        let whole = serde_json::json!({"output": lines.join("\n"), "exit_code": 1}).to_string();
        let (text, _) = shown(&whole, 120).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let output = value["output"].as_str().unwrap();
        assert!(
            output.contains("lines cut]\n") && output.contains("\nerror: cannot find `frob`"),
            "{output}"
        );
        assert_eq!(value["exit_code"], 1);
    }

    #[test]
    fn a_text_without_lines_has_nothing_to_choose_from() {
        assert!(shown(&"word ".repeat(2_000), 60).is_none());
        assert!(shown(&format!("{}\n", "word ".repeat(2_000)).repeat(9), 60).is_none());
    }

    /// Chooses lines without a heap, for comparison: weighs all lines again for each choice.
    fn choose_naively(lines: &[&str], chosen: &mut Chosen<'_>) {
        let facts = Facts::of(lines);
        let (mut missed, mut misses) = (BTreeSet::new(), 0);
        while misses <= MISSES_MAX {
            let mut said = Said { identifiers: vec![false; facts.count], errors: BTreeSet::new() };
            chosen.at.iter().for_each(|at| said.add(&facts, *at));
            let worth =
                |at: &usize| said.new_in(&facts, *at) * (1 << 16) / (lines[*at].len() as u64 + LINE_BYTES);
            let left = (0..lines.len()).filter(|at| !chosen.at.contains(at) && !missed.contains(at));
            let Some(best) = left.rev().max_by_key(worth).filter(|at| worth(at) > 0) else { return };
            if !chosen.take(best, chosen.most.as_u64()) {
                missed.insert(best);
                misses += 1;
            }
        }
    }

    proptest! {
        #[test]
        fn an_excerpt_has_lines_of_the_text_in_order_and_says_how_many_are_left_out(
            text in "(([a-z]{1,9} |src/[a-c]{1,2}\\.rs |[A-B]{2}-[1-9] |日本語|error: |\r){0,6}\n){0,60}", tokens in 0_u32..80, is_named: bool,
        ) {
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            let most = Clamp { head: Tokens(tokens), tail: Tokens(tokens / 2) }.tokens_max();
            let named = if is_named { "; #1234" } else { "" };
            if let Some((excerpt, size)) = shown_named(&text, tokens, named) {
                prop_assert_eq!(size, ClassEstimator::new().count(&excerpt));
                prop_assert!(size <= most, "{:?} {:?}", size, most);
                let mut at = 0;
                for line in excerpt.split_inclusive('\n') {
                    match line.strip_prefix('[').and_then(|note| note.split_once(" line")) {
                        Some((count, _)) => at += count.parse::<usize>().unwrap(),
                        None => {
                            prop_assert_eq!(Some(&line), lines.get(at));
                            at += 1;
                        }
                    }
                }
                prop_assert_eq!(at, lines.len());
                prop_assert_eq!(excerpt.matches("; #1234]").count(), usize::from(is_named && excerpt != text));
            }
        }

        #[test]
        fn the_choice_is_that_of_a_naive_one(
            text in "(([a-z]{1,9} |src/[a-c]{1,2}\\.rs |[A-B]{2}-[1-9] |error: ){0,6}\n){6,40}", most in 0_u32..200,
        ) {
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            let counter = ClassEstimator::new();
            let mut chosen = Chosen::new(&lines, "\n", Tokens(most), &counter);
            let mut naive = Chosen::new(&lines, "\n", Tokens(most), &counter);
            chosen.take(0, u64::from(most) / 2);
            naive.take(0, u64::from(most) / 2);
            Facts::of(&lines).choose(&mut chosen);
            choose_naively(&lines, &mut naive);
            prop_assert_eq!(chosen.order, naive.order);
        }
    }
}
