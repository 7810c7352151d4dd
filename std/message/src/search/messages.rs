//! A search for the messages that are nearest to one query.

use std::collections::HashSet;

use super::record::{pieces, said, without_role};
use super::{Hit, Search, Term};
use crate::Message;

/// Finds the messages that are nearest to one query, in one pass over them, and keeps none of their texts. A long message is as near as the
/// nearest of its pieces: what it says once counts as if it stood alone.
///
/// What a message says is what [`said`] makes of it: no instructions, and no earlier recalls.
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
    /// The pieces with words of the query, by their places in the search, each with the number of its message.
    numbers: Vec<(u64, u64)>,
    messages: u64,
}

impl MessageSearch {
    /// A search for a query.
    #[must_use]
    pub fn new(query: &str) -> Self {
        Self { search: Search::new(query), numbers: Vec::new(), messages: 0 }
    }

    /// A search that looks at some messages of a larger collection: see [`Search::of_collection`].
    #[must_use]
    pub fn of_collection(query: &str, texts: u64, with: impl Fn(Term) -> u64) -> Self {
        Self { search: Search::of_collection(query, texts, with), numbers: Vec::new(), messages: 0 }
    }

    /// Whether the query has no term, so that nothing is near to it.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.search.is_blank()
    }

    /// Looks at a message, which the caller knows by this number. One that says nothing is passed over.
    pub fn add(&mut self, number: u64, message: &Message) {
        let said = said(message);
        if said.is_empty() {
            return;
        }
        self.messages = self.messages.saturating_add(1);
        let text = without_role(&said);
        for piece in pieces(text) {
            if self.search.add(text.get(piece).unwrap_or_default()) {
                self.numbers.push((self.search.len() - 1, number));
            }
        }
    }

    /// Number of messages with a text.
    #[must_use]
    pub const fn messages(&self) -> u64 {
        self.messages
    }

    /// The numbers of the messages that are nearest, at most so many, the nearest first. One without a word of the query is never
    /// among them.
    #[must_use]
    pub fn nearest(&self, messages_max: usize) -> Vec<u64> {
        let number = |hit: Hit| {
            let at = self.numbers.binary_search_by_key(&hit.text, |(piece, _)| *piece).ok()?;
            self.numbers.get(at).map(|(_, number)| *number)
        };
        let (mut nearest, mut known) = (Vec::new(), HashSet::new());
        for number in self.search.nearest(self.numbers.len()).into_iter().filter_map(number) {
            if nearest.len() == messages_max {
                break;
            }
            if known.insert(number) {
                nearest.push(number);
            }
        }
        nearest
    }

    /// Whether a message has a word of the query. A message whose piece ends within a word can be near and have none.
    #[must_use]
    pub fn has_word(&self, message: &Message) -> bool {
        self.search.has_term(without_role(&said(message)))
    }
}
