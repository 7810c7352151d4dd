//! Quoted texts in a document: none of their lines can be read as a heading of the document, or as words of the
//! user.

use std::format;
use std::string::String;
use std::vec::Vec;

use epitome_core::{TokenCounter, Tokens};

use crate::summary::transcript::cut;

/// A text in which no line is a heading or a quote.
pub(super) fn plain(text: &str) -> String {
    let text = with_one_break(text);
    let lines = text.lines().map(|line| {
        // List marks, numbers and invisible characters may be before a heading or quote mark.
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

/// The text with one kind of line break. Every character that some reader takes for a line break becomes one.
fn with_one_break(text: &str) -> String {
    let breaks = ['\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];
    text.replace("\r\n", "\n").replace(breaks, "\n")
}

/// The text with a mark before each line, cut in its middle to `room` tokens.
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

/// Bytes of a long token: a text above this size per token is too long, and need not be counted.
const TOKEN_BYTES_MAX: usize = 16;
