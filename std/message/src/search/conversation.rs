//! A search index and an update index of one conversation, made in one pass.

use core::ops::Range;

use super::counts::Counts;
use super::sentences::for_each_sentence;
use super::updates::{Sentences, Update};
use super::vocabulary::Vocabulary;

/// An index of a conversation: a [`SearchIndex`](super::SearchIndex) of its messages and an
/// [`UpdateIndex`](super::UpdateIndex) of texts in them, made in one pass. The results are those of the two
/// separate indexes.
///
/// ```
/// use epitome_message::search::ConversationIndex;
///
/// let mut index = ConversationIndex::new();
/// index.add("The proxy listens on port 8080.", &[0..31]);
/// index.add("call restart proxy\nDone.", &[19..24]);
/// index.add("The proxy listens on port 9090.", &[0..31]);
/// assert_eq!(index.weights().len(), 3);
/// let updates = index.updates(|_| true);
/// assert_eq!((updates.len(), updates[0].older, updates[0].newer), (1, 0, 2));
/// ```
///
/// *Cost*: adding takes one pass over the message. The other costs are those of the two indexes, with one table of
/// terms instead of two.
#[derive(Debug, Clone, Default)]
pub struct ConversationIndex {
    vocabulary: Vocabulary,
    messages: Counts,
    texts: Sentences,
    /// Buffer for the terms of a piece of a text.
    room: Vec<u32>,
}

impl ConversationIndex {
    /// An index without messages.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a message. All of its text is searched. Only sentences within the ranges `texts` can be updated or
    /// update others. These ranges are in ascending order, do not overlap, and end between characters; words end at
    /// their bounds. Messages and texts are numbered from 0.
    pub fn add(&mut self, message: &str, texts: &[Range<usize>]) {
        let mut from = 0;
        for text in texts {
            self.add_terms(message.get(from..text.start));
            self.add_text(message.get(text.clone()));
            from = text.end;
        }
        self.add_terms(message.get(from..));
        self.messages.end_text();
    }

    /// The information of each message: see [`SearchIndex::weights`](super::SearchIndex::weights).
    #[must_use]
    pub fn weights(&self) -> Vec<u64> {
        self.messages.weights()
    }

    /// The similarity of each message to the message with this number, as
    /// [`SearchIndex::scores_like`](super::SearchIndex::scores_like). It reads the terms of all messages.
    #[must_use]
    pub fn scores_like(&self, message: usize) -> Vec<u64> {
        self.messages.scores_like(message)
    }

    /// The updates between texts, as [`UpdateIndex::updates`](super::UpdateIndex::updates).
    #[must_use]
    pub fn updates(&self, may_update: impl Fn(usize) -> bool) -> Vec<Update> {
        self.texts.updates(may_update)
    }

    fn add_terms(&mut self, text: Option<&str>) {
        self.room.clear();
        self.vocabulary.numbers(text.unwrap_or_default(), &mut self.room);
        self.messages.add(&self.room);
    }

    fn add_text(&mut self, text: Option<&str>) {
        for_each_sentence(text.unwrap_or_default(), |sentence| {
            self.room.clear();
            self.vocabulary.numbers(sentence, &mut self.room);
            self.messages.add(&self.room);
            self.texts.add_sentence(sentence, &self.room);
        });
        self.texts.end_text();
    }
}
