//! The line of a summary that tells the model how to read the summarized messages in full.

use std::format;
use std::string::String;

/// The range of messages that a summary covers, by the numbers that a tool reads. Messages within the range may be
/// visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Handle<'a> {
    pub(crate) tool: &'a str,
    pub(crate) numbers: Numbers,
}

/// The first and the last number.
pub(crate) type Numbers = (u64, u64);

const OPENING: &str = "[In full: ";
const ONE: &str = ", message ";
const SEVERAL: &str = ", messages ";

impl Handle<'_> {
    /// The line, without a line break.
    pub(crate) fn line(&self) -> String {
        let (tool, (first, last)) = (self.tool, self.numbers);
        match first == last {
            true => format!("{OPENING}{tool}{ONE}{first}]"),
            false => format!("{OPENING}{tool}{SEVERAL}{first}-{last}]"),
        }
    }
}

/// The numbers in a line of this form, for any tool.
pub(crate) fn numbers_in(line: &str) -> Option<Numbers> {
    let inner = line.trim().strip_prefix(OPENING)?.strip_suffix(']')?;
    if let Some((_, range)) = inner.rsplit_once(SEVERAL) {
        let (first, last) = range.split_once('-')?;
        return Some((first.parse().ok()?, last.parse().ok()?));
    }
    let number = inner.rsplit_once(ONE)?.1.parse().ok()?;
    Some((number, number))
}

/// The range from the lowest to the highest number.
pub(crate) fn joined(numbers: impl IntoIterator<Item = Numbers>) -> Option<Numbers> {
    numbers.into_iter().reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_is_written() {
        for numbers in [(0, 0), (7, 7), (3, 1_200)] {
            let line = Handle { tool: "recall_history", numbers }.line();
            assert_eq!(numbers_in(&line), Some(numbers), "{line}");
        }
        let line = Handle { tool: "recall_history", numbers: (3, 9) }.line();
        assert_eq!(line, "[In full: recall_history, messages 3-9]");
        for other in
            ["", "[In full: recall_history]", "[In full: recall_history, messages 3]", "messages 3-9"]
        {
            assert_eq!(numbers_in(other), None, "{other}");
        }
        assert_eq!(joined([(3, 9), (1, 2), (4, 4)]), Some((1, 9)));
    }
}
