//! Quotes of users below a summary.

use std::string::String;
use std::vec::Vec;

use epitome_core::{TokenCounter, Tokens};
use epitome_std::message::{Message, Part};

/// Quotes of users, in order. A mark before every line distinguishes them from the lines of the summary.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Quotes(Vec<String>);

/// The mark before each line.
const MARK: &str = ">";

impl Quotes {
    /// Parses the quotes in the section of an earlier summary.
    pub(super) fn parse(section: &str) -> Self {
        let quotes = section.split("\n\n").map(str::trim).filter(|quote| !quote.is_empty());
        Self(
            quotes
                .filter(|quote| quote.lines().all(|line| line.starts_with(MARK)))
                .map(String::from)
                .collect(),
        )
    }

    /// Adds the texts of a user's message.
    pub(super) fn add(&mut self, message: &Message) {
        let texts = message.parts().iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.trim()),
            _ => None,
        });
        let mut quote = String::new();
        for line in texts.filter(|text| !text.is_empty()).flat_map(str::lines) {
            let before = if quote.is_empty() { "" } else { "\n" };
            let space = if line.is_empty() { "" } else { " " };
            quote.extend([before, MARK, space, line]);
        }
        if !quote.is_empty() {
            self.0.push(quote);
        }
    }

    /// Appends other quotes.
    pub(super) fn append(&mut self, mut others: Self) {
        self.0.append(&mut others.0);
    }

    /// The newest quotes that fit into `room`. A quote that does not fit is skipped.
    pub(super) fn newest(self, room: Tokens, counter: &dyn TokenCounter) -> Self {
        let mut left = room;
        let mut fits = |quote: &String| {
            let own = counter.count_up_to(quote, left).map(|tokens| tokens.saturating_add(BREAK));
            let rest = own.and_then(|own| left.0.checked_sub(own.0));
            rest.map(|rest| left = Tokens(rest)).is_some()
        };
        let mut kept: Vec<String> = self.0.into_iter().rev().filter(|quote| fits(quote)).collect();
        kept.reverse();
        Self(kept)
    }

    /// Tokens of the quotes in a summary.
    pub(super) fn tokens(&self, counter: &dyn TokenCounter) -> Tokens {
        let opening = if self.is_empty() { Tokens::ZERO } else { OPENING };
        self.0
            .iter()
            .fold(opening, |all, quote| all.saturating_add(counter.count(quote)).saturating_add(BREAK))
    }

    /// Removes the oldest quote; returns whether there was one.
    pub(super) fn leave_out_oldest(&mut self) -> bool {
        let any = !self.0.is_empty();
        self.0.drain(..usize::from(any));
        any
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Tokens between two quotes, and of the heading before the first one.
const BREAK: Tokens = Tokens(1);
const OPENING: Tokens = Tokens(8);

#[cfg(test)]
mod tests {
    use epitome_core::ClassEstimator;

    use super::*;

    #[test]
    fn the_newest_that_have_room_stay_and_a_long_one_is_passed_over() {
        let long = "and so on ".repeat(200);
        let mut quotes = Quotes::default();
        for text in ["Use tabs.", "Never push.", &long, " ", "Ship it.\n\nToday."] {
            quotes.add(&Message::user(text));
        }
        let kept = |room| quotes.clone().newest(Tokens(room), &ClassEstimator::new());
        let all = ["> Use tabs.", "> Never push.", "> Ship it.\n>\n> Today."];
        let short = kept(100);
        assert_eq!(short.iter().collect::<Vec<_>>(), all);
        // With one token less than the three quotes have, the oldest is removed.
        let room = short.tokens(&ClassEstimator::new()).0 - OPENING.0;
        assert_eq!(kept(room), short);
        assert_eq!(kept(room - 1).iter().collect::<Vec<_>>(), all[1..]);
        assert!(kept(0).is_empty());
    }
}
