//! Both indexes of a conversation in one pass over its texts.

use core::ops::Range;

use super::counts::Counts;
use super::sentences::for_each_sentence;
use super::updates::{Sentences, Update};
use super::vocabulary::Vocabulary;

/// The messages of a conversation: a [`SearchIndex`](super::SearchIndex) of the messages, and an
/// [`UpdateIndex`](super::UpdateIndex) of texts in them, made in one pass. Each says what the index alone would say.
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
/// *Cost*: adding takes one pass over the message; the rest as of the two indexes, but for one table of terms in place of two.
#[derive(Debug, Clone, Default)]
pub struct ConversationIndex {
    vocabulary: Vocabulary,
    messages: Counts,
    texts: Sentences,
    /// Room for the terms of a piece of a text.
    room: Vec<u32>,
}

impl ConversationIndex {
    /// Without messages.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a message, all of which is searched, with the places of the texts in it whose sentences may be updated and may update
    /// others: ascending, apart from each other, and between characters. Words end where such a text does. Messages and texts are
    /// numbered from 0.
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

    /// The similarity of each message to one of them: [`SearchIndex::scores_like`](super::SearchIndex::scores_like), by a look at the terms of
    /// all messages.
    #[must_use]
    pub fn scores_like(&self, message: usize) -> Vec<u64> {
        self.messages.scores_like(message)
    }

    /// Which texts are updated: [`UpdateIndex::updates`](super::UpdateIndex::updates).
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
