//! The class of a text, as far as its number of tokens depends on it.

/// The distinguished classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    Prose,
    Code,
    Json,
    Cjk,
    Base64,
    Log,
}

impl Class {
    /// The first class that `text` matches.
    pub(crate) fn of(text: &str) -> Self {
        let share = |counts: fn(char) -> bool| {
            let all = text.chars().count().max(1);
            text.chars().filter(|shown| counts(*shown)).count() * 100 / all
        };
        let trimmed = text.trim();
        let lines = trimmed.lines().count().max(1);
        let stamped = trimmed.lines().filter(|line| is_stamped(line)).count();
        if share(is_cjk) >= 20 {
            Self::Cjk
        } else if trimmed.len() >= 64
            && trimmed.bytes().all(is_base64)
            && share(|shown| shown.is_ascii_digit()) >= 2
        {
            Self::Base64
        } else if trimmed.starts_with(['{', '[']) && trimmed.ends_with(['}', ']']) && trimmed.contains('"') {
            Self::Json
        } else if lines >= 3 && stamped * 2 >= lines {
            Self::Log
        } else if share(|shown| "{}[]()<>=;:_/\\|&#*$\"`".contains(shown)) >= 6 {
            Self::Code
        } else {
            Self::Prose
        }
    }
}

/// Whether a line begins with a date, a time or a level.
fn is_stamped(line: &str) -> bool {
    let head: String = line.chars().take(24).collect();
    let digits = head.chars().filter(char::is_ascii_digit).count();
    (digits >= 6 && head.contains(':'))
        || ["INFO", "WARN", "ERROR", "DEBUG"].iter().any(|level| head.contains(level))
}

const fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=')
}

const fn is_cjk(shown: char) -> bool {
    matches!(shown, '\u{3040}'..='\u{30FF}' | '\u{3400}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7AF}')
}
