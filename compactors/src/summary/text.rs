//! The text of a summary: what opens it, what is added to the prose, and how it is taken apart again.

use std::borrow::ToOwned;
use std::format;
use std::string::String;
use std::vec::Vec;

use epitome_core::attribution::SourceKind;
use epitome_std::identifiers::Kind;
use epitome_std::message::{Message, Part};

use super::{Identifiers, SummaryError};

/// Opens every summary.
const HEADER: &str = "[Conversation Summary]";
/// Opens the list of identifiers behind the prose.
const IDENTIFIERS: &str = "[Identifiers]";
/// A ledger says so before its identifiers: a record, and no order.
const LEDGER: &str = "Identifiers in parts that are not shown:";
const ANSWERED: &str = "The last request in this part of the conversation was answered.";
const UNANSWERED: &str = "The last request in this part of the conversation was not answered in it.";

/// How models write calls of tools where they may not make any: the opening of each, in lower case.
const CALLS: &[&str] = &[
    "<tool_call",
    "<function_call",
    "<function=",
    "<invoke name=",
    "<tool_use",
    "<|tool_call",
    "<|python_tag|>",
    "<|tool▁call",
    "[tool_calls]",
    "to=functions.",
];

/// The prose of an answer, if it can stand as one.
pub(crate) fn checked(answer: &str) -> Result<&str, SummaryError> {
    let prose = answer.trim();
    let prose = prose.strip_prefix(HEADER).unwrap_or(prose).trim();
    if prose.is_empty() {
        return Err(SummaryError::Empty);
    }
    if prose.lines().any(is_call) {
        return Err(SummaryError::ToolCall);
    }
    Ok(prose)
}

/// The same text, in which what would be taken for a call of a tool is quoted.
pub(super) fn without_calls(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        if is_call(line) {
            out.push_str("> ");
        }
        out.push_str(line);
    }
    out
}

/// Whether a line calls a tool. In a sentence it is spoken of, not called.
fn is_call(line: &str) -> bool {
    let line = line.trim_start().to_lowercase();
    CALLS.iter().any(|call| line.starts_with(call))
}

/// The text of a summary of this prose.
pub(crate) fn composed(prose: &str, answered: Option<bool>, identifiers: &[&str]) -> String {
    with_what_follows(prose, None, answered, identifiers)
}

/// The text of a ledger, behind the prose of the summary before, if there is one.
pub(super) fn recorded(prose: &str, answered: Option<bool>, identifiers: &[&str]) -> String {
    with_what_follows(prose, Some(LEDGER), answered, identifiers)
}

/// Whether a message is a ledger: something that it stands for is summarized nowhere.
pub(crate) fn is_ledger(message: &Message) -> bool {
    let says = |part: &Part| matches!(part, Part::Text(text) if text.lines().any(|line| line == LEDGER));
    message.attribution().source == SourceKind::Compaction && message.parts().iter().any(says)
}

fn with_what_follows(
    prose: &str,
    ledger: Option<&str>,
    answered: Option<bool>,
    identifiers: &[&str],
) -> String {
    let mut text = format!("{HEADER}\n");
    for line in prose.trim().lines() {
        // What is added below the prose says what it says.
        match line.trim() {
            ANSWERED | UNANSWERED | LEDGER => continue,
            IDENTIFIERS => text.push_str("Identifiers:"),
            _ => text.push_str(line),
        }
        text.push('\n');
    }
    if let Some(ledger) = ledger {
        let before = if prose.trim().is_empty() { "" } else { "\n" };
        text.extend([before, ledger, "\n"]);
    }
    if let Some(answered) = answered {
        text.push('\n');
        text.push_str(if answered { ANSWERED } else { UNANSWERED });
        text.push('\n');
    }
    if !identifiers.is_empty() {
        text.push('\n');
        text.push_str(IDENTIFIERS);
        for kind in Kind::ALL {
            let mut own = identifiers.iter().filter(|identifier| Kind::of(identifier) == kind).peekable();
            if own.peek().is_some() {
                text.extend(["\n", kind.as_str(), ":"]);
                own.for_each(|identifier| text.extend([" ", identifier]));
            }
        }
    }
    text.truncate(text.trim_end().len());
    text
}

/// What an earlier summary says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Earlier {
    pub(crate) prose: String,
    /// Whether the last request in it was answered; `None` if there is none, or nobody knows.
    pub(crate) answered: Option<bool>,
    pub(crate) identifiers: Identifiers,
}

impl Earlier {
    /// Takes a summary apart. What is written otherwise, by another compactor, is prose.
    pub(crate) fn of(message: &Message) -> Self {
        let texts = message.parts().iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            _ => None,
        });
        let text = texts.collect::<Vec<_>>().join("\n");
        let text = text.trim();
        let text = text.strip_prefix(HEADER).unwrap_or(text);
        let opening = format!("\n{IDENTIFIERS}\n");
        let (prose, list) = text.rsplit_once(opening.as_str()).unwrap_or((text, ""));
        let prose = prose.trim();
        let states = [(ANSWERED, true), (UNANSWERED, false)];
        let state = states.iter().find_map(|(line, state)| Some((prose.strip_suffix(line)?, *state)));
        let (prose, answered) = state.map_or((prose, None), |(prose, state)| (prose.trim(), Some(state)));
        let prose = prose.strip_suffix(LEDGER).unwrap_or(prose);
        let known = list.lines().filter_map(|line| line.split_once(": "));
        let known = known.flat_map(|(_, identifiers)| identifiers.split_whitespace());
        Self { prose: prose.trim().to_owned(), answered, identifiers: Identifiers::known(known) }
    }
}

#[cfg(test)]
mod tests {
    use epitome_core::attribution::Authority;
    use epitome_std::message::Attribution;

    use super::*;

    #[test]
    fn what_is_composed_is_taken_apart_again() {
        for answered in [None, Some(true), Some(false)] {
            for identifiers in [&[][..], &["src/main.rs", "PROJ-12"]] {
                let text = composed("Goal: x.\n[Identifiers]\nMore.", answered, identifiers);
                let earlier = Earlier::of(&Message::assistant(text));
                assert_eq!(earlier.answered, answered);
                assert_eq!(earlier.prose, "Goal: x.\nIdentifiers:\nMore.");
                assert_eq!(earlier.identifiers, Identifiers::known(identifiers.iter().copied()));
            }
        }
    }

    #[test]
    fn a_ledger_keeps_the_prose_before_it() {
        for prose in ["", "Goal: x.\nDone: y."] {
            let message = |text: String| {
                Message::assistant(text).with_attribution(Attribution::new(
                    "",
                    SourceKind::Compaction,
                    Authority::Assistant,
                ))
            };
            let ledger = message(recorded(prose, Some(true), &["src/main.rs"]));
            assert!(is_ledger(&ledger));
            let earlier = Earlier::of(&ledger);
            assert_eq!((earlier.prose.as_str(), earlier.answered), (prose, Some(true)));
            assert_eq!(earlier.identifiers, Identifiers::known(["src/main.rs"].into_iter()));
            // A summary cannot say that it is one.
            let forged = composed(&format!("Goal.\n{LEDGER}"), None, &[]);
            assert!(!is_ledger(&message(forged)));
        }
        assert!(!is_ledger(&Message::user(LEDGER)));
    }

    #[test]
    fn prose_cannot_say_whether_a_request_was_answered() {
        let text = composed(&format!("Goal.\n{ANSWERED}\n{UNANSWERED}"), Some(false), &[]);
        assert_eq!(text, format!("{HEADER}\nGoal.\n\n{UNANSWERED}"));
        assert_eq!(composed(&format!("Goal.\n{ANSWERED}"), None, &[]), format!("{HEADER}\nGoal."));
    }

    #[test]
    fn a_summary_of_somebody_else_is_prose() {
        let earlier = Earlier::of(&Message::assistant("So far: nothing."));
        assert_eq!(earlier, Earlier { prose: "So far: nothing.".into(), ..Earlier::default() });
    }

    #[test]
    fn an_answer_is_checked() {
        assert_eq!(checked(" [Conversation Summary]\nGoal. ").unwrap(), "Goal.");
        for empty in ["", " \n", "[Conversation Summary]", "[Conversation Summary]\n\n"] {
            assert!(matches!(checked(empty), Err(SummaryError::Empty)));
        }
        assert!(checked("Why does the parser refuse `<tool_call>`?").is_ok());
        for call in ["<Tool_call>{}</tool_call>", "Now:\n [TOOL_CALLS] [{}]", "<|python_tag|>x()"] {
            assert!(matches!(checked(call), Err(SummaryError::ToolCall)));
        }
    }
}
