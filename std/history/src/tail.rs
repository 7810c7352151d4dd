//! The last turn of a session, which suffices to group appended messages.

use epitome_core::{Seq, Turn};

use super::Loaded;

/// The beginning and the number of the last turn. `newest_first` has for each visible message or summary its key, its
/// turn, and whether it is a late answer, which is among messages of a later turn. It is read only as far as needed.
pub fn last_turn(newest_first: impl Iterator<Item = (Seq, Turn, bool)>) -> Option<(Seq, Turn)> {
    let mut begins = None;
    for (key, turn, _) in newest_first.filter(|(_, _, late)| !late) {
        match begins {
            Some((_, last)) if turn != last => break,
            _ => begins = Some((key, turn)),
        }
    }
    begins
}

impl Loaded {
    /// Keeps only the last turn: its visible messages, and its hidden calls without an answer.
    /// [`HistoryStore::tail`](super::HistoryStore::tail) returns this value.
    #[must_use]
    pub fn into_last_turn(mut self) -> Self {
        let newest_first = self.live.iter().rev();
        let newest_first = newest_first.map(|live| (live.key, live.entry.turn, live.entry.late));
        let Some((begin, turn)) = last_turn(newest_first) else {
            (self.live, self.unanswered) = (Vec::new(), Vec::new());
            return self;
        };
        self.live.retain(|live| live.key >= begin && live.entry.turn == turn);
        self.unanswered.retain(|call| call.turn == turn);
        self
    }
}
