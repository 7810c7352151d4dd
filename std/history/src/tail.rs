//! The last turn of a session: all that is needed to group what is appended to it.

use epitome_core::{Seq, Turn};

use super::Loaded;

/// The beginning of the last turn, and its number. `newest_first` has, of each visible message or summary, its key, its turn and whether it
/// is a late answer, which stands among messages of a later turn. It is not read further than needed.
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
    /// Leaves the last turn only: its visible messages, and the hidden calls of it that have no answer. That is what
    /// [`HistoryStore::tail`](super::HistoryStore::tail) gives.
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
