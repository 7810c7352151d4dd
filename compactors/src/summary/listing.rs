//! Identifiers without a summary, for a text that another program writes.

use std::string::String;

use epitome_core::Tokens;
use epitome_std::message::Message;

use super::text::identifier_lines;
use super::{Identifiers, SummaryWriter};

/// Maximum number of attempts to make a list, each with less room.
const TRIES_MAX: usize = 8;

impl SummaryWriter<'_> {
    /// Lists the identifiers in `messages` that are not in `shown`, in at most `tokens_max` tokens.
    ///
    /// Use it for a summary that another program writes: give it to that program, or add it to the summary. The
    /// list keeps the identifiers that a summary omits or writes wrong.
    ///
    /// It has a line for each kind, as in a ledger. Identifiers from users come first, then those from the model,
    /// then those that only tools list. The text is empty if there are none.
    ///
    /// ```
    /// use epitome_compactors::SummaryWriter;
    /// use epitome_core::{ClassEstimator, Tokens};
    /// use epitome_std::message::Message;
    ///
    /// let said = [Message::user("Make src/lib.rs faster."), Message::assistant("The loop in src/scan.rs is slow.")];
    /// let summary = Message::user("The loop of src/scan.rs is to be faster.");
    /// let counter = ClassEstimator::new();
    /// let writer = SummaryWriter::new(&counter);
    /// assert_eq!(writer.identifiers(&[&said[0], &said[1]], &[], Tokens(100)), "files: src/lib.rs src/scan.rs");
    /// assert_eq!(writer.identifiers(&[&said[0], &said[1]], &[&summary], Tokens(100)), "files: src/lib.rs");
    /// ```
    #[must_use]
    pub fn identifiers(&self, messages: &[&Message], shown: &[&Message], tokens_max: Tokens) -> String {
        let mut identifiers = Identifiers::of_code();
        identifiers.look_through(messages.iter().copied());
        identifiers.leave_out(shown.iter().flat_map(|message| message.parts()));
        let mut room = tokens_max;
        for _ in 0..TRIES_MAX {
            // The room counts only the identifiers. The names of the lines are added to it.
            let list = identifier_lines(&identifiers.best(room, self.counter())).join("\n");
            match self.counter().count(&list).0.checked_sub(tokens_max.0) {
                None | Some(0) => return list,
                Some(over) => room = Tokens(room.0.saturating_sub(over)),
            }
        }
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use std::format;
    use std::vec::Vec;

    use epitome_core::{ClassEstimator, TokenCounter as _};

    use super::*;

    #[test]
    fn a_list_has_at_most_the_tokens_that_it_may_have() {
        let said: Vec<_> = (0..400)
            .map(|n| Message::assistant(format!("src/part{n}.rs, PROJ-{n}, {n} ms, part_{n}_done and {n}7")))
            .collect();
        let said: Vec<_> = said.iter().collect();
        let counter = ClassEstimator::new();
        for tokens_max in [0, 1, 16, 17, 40, 200, 1_000] {
            let list = SummaryWriter::new(&counter).identifiers(&said, &[], Tokens(tokens_max));
            let tokens = counter.count(&list);
            assert!(tokens.0 <= tokens_max, "{tokens:?} of {tokens_max}: {list}");
            assert!(tokens_max < 40 || tokens.0 * 2 > tokens_max, "{tokens:?} of {tokens_max}");
        }
    }
}
