//! Compares a history of fixed capacity with a list of the same messages, through any series of operations. The list
//! shares only the message type with the code under test.

mod bytes;
mod message;
mod model;
mod planning;
mod scenes;
mod snapshot;

pub use bytes::operations;
pub use message::Owned;
pub use scenes::{answer_to_a_dropped_call, cleared_result};

use epitome_core::attribution::SeqRange;
use epitome_core::message::{Role, SimpleMessage};
use epitome_core::{BoundedHistory, ClassEstimator, Full, Placed, Seq};

use model::{Model, check, note, said, shown};
use planning::{Masked, summarize};

/// The history under test. It is small, so that it is often full.
pub type History = BoundedHistory<24, 900, 8>;

/// An operation on a history.
#[derive(Debug, Clone)]
pub enum Op {
    /// Push a message.
    Push(Owned),
    /// Push a message, clamped to at most this number of bytes.
    Clamp(Owned, usize),
    /// Stream a text in pieces.
    Stream {
        /// The pieces.
        pieces: Vec<String>,
        /// Whether the stream is finished, or breaks off.
        finish: bool,
    },
    /// Plan to drop groups and elide results, where that is legal. Then compact, summarize the dropped messages, or do
    /// nothing.
    Plan {
        /// The groups to drop, one bit a group.
        mask: u32,
        /// The results to elide, one bit a result.
        elide: u32,
        /// The note in the place of a result.
        note: String,
        /// The action that follows.
        then: Then,
    },
    /// Put one summary in the place of the messages with these numbers.
    Summarize {
        /// The first number.
        first: u64,
        /// The number of further messages.
        len: u64,
        /// The summary.
        text: String,
    },
    /// Take a snapshot, clear the history, and restore the snapshot.
    Reset,
    /// Restore a torn snapshot, and one with two flipped bits.
    Damage {
        /// The place where the snapshot is cut off, in 1/65,536 of its length.
        torn: u16,
        /// Positions of the flipped bits, modulo the number of its bits.
        bits: [u16; 2],
    },
    /// Restore a snapshot with other bytes at these places and a valid checksum.
    Forge(Vec<(u16, u8)>),
}

/// Action that follows a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// The plan is carried out.
    Compact,
    /// The messages that it would drop are summarized.
    Summarize,
    /// Nothing.
    Nothing,
}

/// Number of occurrences of each nasty case, over all runs.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// A message found no room.
    pub full: u32,
    /// An answer to a call of an earlier turn.
    pub late: u32,
    /// An answer to a call that a compaction removed.
    pub hidden: u32,
    /// An answer to no call.
    pub orphans: u32,
    /// A plan was carried out.
    pub compactions: u32,
    /// A result was elided.
    pub elided: u32,
    /// A note was refused as the stand-in of a result.
    pub notes_refused: u32,
    /// A summary took the place of messages.
    pub summaries: u32,
    /// A message was put into fewer bytes.
    pub clamped: u32,
    /// A forged snapshot was accepted.
    pub forged: u32,
    /// A forged snapshot was refused.
    pub refused: u32,
}

/// A history under test, and the list with the same messages.
#[derive(Debug, Default)]
pub struct Pair {
    history: History,
    model: Model,
    /// The nasty cases so far.
    pub seen: Seen,
}

impl Pair {
    /// Applies an operation to both.
    ///
    /// # Panics
    /// If they differ.
    pub fn apply(&mut self, op: &Op) {
        match op {
            Op::Push(message) => {
                let result = self.push(|history| history.push(message, &ClassEstimator::new()));
                self.pushed(result, Some(said(message)));
            }
            Op::Clamp(message, max) => {
                let free = self.history.free_bytes();
                let result = self.push(|history| history.push_clamped(message, *max, &ClassEstimator::new()));
                assert!(free - self.history.free_bytes() <= *max);
                self.pushed(result, None);
                self.seen.clamped += u32::from(result.is_ok());
            }
            Op::Stream { pieces, finish } => {
                let before = shown(&self.history);
                match stream(&mut self.history, pieces, *finish) {
                    Ok(Some(placed)) => self.pushed(Ok(placed), Some(streamed(pieces))),
                    Ok(None) => assert_eq!(shown(&self.history), before),
                    Err(Full) => {
                        assert_eq!(shown(&self.history), before);
                        self.seen.full += 1;
                    }
                }
            }
            Op::Plan { mask, elide, note, then } => {
                self.plan(&Masked { drop: *mask, elide: *elide }, note, *then);
            }
            Op::Summarize { first, len, text } => {
                let range = SeqRange { first: Seq(*first), last: Seq(first.saturating_add(*len)) };
                let done = summarize(&mut self.history, &mut self.model, range, text);
                self.seen.summaries += u32::from(done);
            }
            Op::Reset => snapshot::reset(&mut self.history),
            Op::Damage { torn, bits } => snapshot::damage(&mut self.history, *torn, *bits),
            Op::Forge(changes) => {
                let taken = snapshot::forge(&self.history, changes);
                self.seen.forged += u32::from(taken);
                self.seen.refused += u32::from(!taken);
            }
        }
        check(&self.history, &mut self.model);
    }

    /// Pushes a message, and checks that a push without room changes nothing.
    fn push(&mut self, push: impl FnOnce(&mut History) -> Result<Placed, Full>) -> Result<Placed, Full> {
        let before = shown(&self.history);
        let result = push(&mut self.history);
        if result.is_err() {
            assert_eq!(shown(&self.history), before);
        }
        result
    }

    fn pushed(&mut self, result: Result<Placed, Full>, said: Option<String>) {
        let Ok(placed) = result else {
            self.seen.full += 1;
            return;
        };
        note(&self.history, &mut self.model, placed, said);
        self.seen.late += u32::from(placed.late && !placed.hidden);
        self.seen.hidden += u32::from(placed.hidden);
        self.seen.orphans += u32::from(placed.orphan);
    }
}

fn stream(history: &mut History, pieces: &[String], finish: bool) -> Result<Option<Placed>, Full> {
    let mut stream = history.begin(Role::Assistant)?;
    pieces.iter().try_for_each(|piece| stream.extend(piece))?;
    if finish { stream.finish(&ClassEstimator::new()).map(Some) } else { Ok(None) }
}

fn streamed(pieces: &[String]) -> String {
    let text = pieces.concat();
    said(&SimpleMessage::assistant(&text))
}
