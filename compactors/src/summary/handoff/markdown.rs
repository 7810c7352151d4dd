//! Texts of others in a document of ours: no line of them is taken for a heading of it, or for words of the user.

use std::format;
use std::string::String;
use std::vec::Vec;

use epitome_core::{TokenCounter, Tokens};

use crate::summary::transcript::cut;

/// A text in which no line is a heading or a quote.
pub(super) fn plain(text: &str) -> String {
    let text = with_one_break(text);
    let lines = text.lines().map(|line| {
        // Behind marks of lists, numbers and what is not seen.
        let marks = |c: char| !c.is_alphabetic() && !['#', '>', '=', '`', '|', '['].contains(&c);
        let first = line.trim_start_matches(marks);
        let is_underline = !line.trim().is_empty() && line.trim().chars().all(|c| ['=', '-'].contains(&c));
        match first.starts_with(['#', '>']) || is_underline {
            true => format!("\\{}", line.trim_start()),
            false => line.into(),
        }
    });
    lines.collect::<Vec<String>>().join("\n")
}

/// A text with one kind of line break. What some reader takes for a break is one.
fn with_one_break(text: &str) -> String {
    let breaks = ['\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];
    text.replace("\r\n", "\n").replace(breaks, "\n")
}

/// A text with a mark before each line, cut in its middle to so many tokens.
pub(super) fn quote(text: &str, room: Tokens, counter: &dyn TokenCounter) -> String {
    let text = with_one_break(text);
    let mut bytes = text.len().min((room.0 as usize).saturating_mul(TOKEN_BYTES_MAX));
    loop {
        let lines: Vec<String> = cut(&text, bytes).lines().map(|line| format!("> {line}")).collect();
        let quoted = lines.join("\n");
        if bytes == 0 || counter.count(&quoted) <= room {
            return quoted;
        }
        bytes = bytes.saturating_mul(3) / 4;
    }
}

/// A token seldom has more bytes: a longer text need not be counted to be known as too long.
const TOKEN_BYTES_MAX: usize = 16;
