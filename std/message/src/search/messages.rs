//! A search for the messages nearest to one query.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::record::{pieces, said, without_role};
use super::{Hit, Search, Term};
use crate::Message;

/// Finds the messages that are nearest to one query, in one pass over them. It stores none of their texts.
///
/// A long message is as near as its nearest piece, so that a single statement in it counts in full. Half of the
/// higher score of the two adjacent messages is added, because an answer is often next to the words of a question:
/// see [`beside`].
///
/// The text of a message is the result of [`said`]: no instructions, and no earlier recalls.
///
/// ```
/// use epitome_message::Message;
/// use epitome_message::search::MessageSearch;
///
/// let mut search = MessageSearch::new("When is the invoice due?");
/// search.add(7, &Message::user("The cat sleeps."));
/// search.add(8, &Message::user("Invoices are due on the 14th."));
/// assert_eq!(search.nearest(1), [8]);
/// assert_eq!(search.messages(), 2);
/// ```
#[derive(Debug, Clone)]
pub struct MessageSearch {
    search: Search,
    /// The pieces with a term of the query: the number of each piece in the search, and of its message.
    numbers: Vec<(u64, u64)>,
    messages: u64,
}

impl MessageSearch {
    /// A search for a query.
    #[must_use]
    pub fn new(query: &str) -> Self {
        Self { search: Search::new(query), numbers: Vec::new(), messages: 0 }
    }

    /// A search over some messages of a larger collection: see [`Search::of_collection`].
    #[must_use]
    pub fn of_collection(query: &str, texts: u64, with: impl Fn(Term) -> u64) -> Self {
        Self { search: Search::of_collection(query, texts, with), numbers: Vec::new(), messages: 0 }
    }

    /// Whether the query has no term. No message is near such a query.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.search.is_blank()
    }

    /// Adds a message with the caller's number. A message with the next number must be directly behind it in the
    /// same conversation. A message without a text is skipped.
    pub fn add(&mut self, number: u64, message: &Message) {
        self.add_said(number, &said(message));
    }

    /// Adds a message like [`add`](Self::add), by its text from [`said`]. Returns whether it has a word of the
    /// query.
    pub fn add_said(&mut self, number: u64, said: &str) -> bool {
        if said.is_empty() {
            return false;
        }
        self.messages = self.messages.saturating_add(1);
        let (text, before) = (without_role(said), self.numbers.len());
        for piece in pieces(text) {
            if self.search.add(text.get(piece).unwrap_or_default()) {
                self.numbers.push((self.search.len() - 1, number));
            }
        }
        self.numbers.len() > before
    }

    /// Number of messages with a text.
    #[must_use]
    pub const fn messages(&self) -> u64 {
        self.messages
    }

    /// The numbers of the nearest messages, at most `messages_max`, nearest first. A message without a word of the
    /// query is never included.
    #[must_use]
    pub fn nearest(&self, messages_max: usize) -> Vec<u64> {
        let (mut scores, mut found) = (HashMap::new(), Vec::new());
        for Hit { score, text } in self.search.nearest(self.numbers.len()) {
            let Ok(at) = self.numbers.binary_search_by_key(&text, |(piece, _)| *piece) else { continue };
            let Some((_, number)) = self.numbers.get(at) else { continue };
            // The nearest piece of a message comes first.
            if let Entry::Vacant(free) = scores.entry(*number) {
                free.insert(score);
                found.push((score, text, *number));
            }
        }
        let score = |number: Option<u64>| number.and_then(|number| scores.get(&number)).copied();
        for (own, _, number) in &mut found {
            let [before, after] = [number.checked_sub(1), number.checked_add(1)].map(score);
            *own = beside(*own, before.unwrap_or_default(), after.unwrap_or_default());
        }
        found.sort_unstable_by(|one, other| other.cmp(one));
        found.into_iter().take(messages_max).map(|(.., number)| number).collect()
    }

    /// Whether a message has a word of the query. A message may be near without one, if one of its pieces ends
    /// within a word.
    #[must_use]
    pub fn has_word(&self, message: &Message) -> bool {
        self.search.has_term(without_role(&said(message)))
    }
}

/// The score of a message from its own score and the scores of the messages directly before and after it. A message
/// without a word of the query has the score 0.
///
/// With this score, the ten nearest messages have 65 % of the hidden evidence for the questions of LoCoMo (Maharana
/// et al. 2024); with the own score alone 57 % (`epitome eval locomo10.json --keep 10%`). A quarter or all of the
/// neighbour's score gives less.
#[must_use]
pub fn beside(own: u64, before: u64, after: u64) -> u64 {
    if own == 0 { 0 } else { own.saturating_add(before.max(after) / 2) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compares with a naive search over every pair of messages.
        #[test]
        fn the_nearest_are_those_with_the_highest_scores_beside_their_neighbours(
            texts in prop::collection::vec(("[a-d]{1,2}( [a-d]{1,2}){0,3}", 1..4_u64, 1..300_usize), 0..12),
        ) {
            let (mut search, mut pieces_only, mut number) = (MessageSearch::new("a b cd"), Search::new("a b cd"), 0);
            let (mut numbers, mut owners) = (Vec::new(), Vec::new());
            for (text, step, times) in &texts {
                number += step;
                let message = Message::user(format!("{text}. ").repeat(*times));
                search.add(number, &message);
                numbers.push(number);
                let said = said(&message);
                let text = without_role(&said);
                for piece in pieces(text) {
                    pieces_only.add(&text[piece]);
                    owners.push(number);
                }
            }
            let hits = pieces_only.nearest(usize::MAX);
            let own = |number: u64| {
                let own = hits.iter().filter(|hit| owners[hit.text as usize] == number);
                own.map(|hit| (hit.score, hit.text)).max().unwrap_or_default()
            };
            let score = |number: u64| beside(own(number).0, own(number - 1).0, own(number + 1).0);
            let mut expected: Vec<u64> = numbers.into_iter().filter(|number| own(*number).0 > 0).collect();
            expected.sort_by_key(|number| core::cmp::Reverse((score(*number), own(*number).1)));
            prop_assert_eq!(search.nearest(usize::MAX), expected.clone());
            expected.truncate(3);
            prop_assert_eq!(search.nearest(3), expected);
        }
    }

    #[test]
    fn an_answer_is_near_that_stands_beside_the_words_of_the_question() {
        let mut search = MessageSearch::new("Which port has the test server?");
        let said = ["The cat sleeps.", "And so on.", "Which port has the test server?", "The one of 8472."];
        for (number, text) in (1..).zip(said) {
            search.add(number, &Message::user(text));
        }
        assert_eq!(search.nearest(2), [3, 4], "the answer comes before the message that has only `the`");
        assert_eq!((beside(0, 9, 9), beside(4, 9, 3), beside(4, 0, 0)), (0, 8, 4));
    }
}
