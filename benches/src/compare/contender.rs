//! The libraries that are compared, and the operations that each provides.

use core::fmt;
use core::hint::black_box;
use core::time::Duration;

use super::clock::timed;
use super::said::Said;

/// Unit of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Tokens, by the contender's own count.
    Tokens,
    /// Messages, the system message included.
    Messages,
    /// Uses of tools that stay as they are.
    ToolUses,
}

impl Unit {
    /// The unit as a word of a table.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tokens => "tokens",
            Self::Messages => "messages",
            Self::ToolUses => "tool uses",
        }
    }
}

/// One limit in every unit.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Tokens.
    pub tokens: u64,
    /// Messages.
    pub messages: u64,
    /// Uses of tools.
    pub tool_uses: u64,
}

impl Limits {
    /// The limit in this unit.
    #[must_use]
    pub const fn of(&self, unit: Unit) -> u64 {
        match unit {
            Unit::Tokens => self.tokens,
            Unit::Messages => self.messages,
            Unit::ToolUses => self.tool_uses,
        }
    }
}

/// One way of one library to keep a history within a limit.
pub trait Contender: fmt::Debug {
    /// Name of the library, with its version.
    fn name(&self) -> String;
    /// Name of the call.
    fn call(&self) -> String;
    /// Unit of the limit.
    fn unit(&self) -> Unit;
    /// Converts the messages to those of the library, and prepares everything that exists before a compaction is due.
    fn prepare(&self, said: &[Said]) -> Box<dyn Prepared>;
    /// Begins an agent's conversation; `None` if the library cannot treat the history as `keeping` requires.
    fn begin(&self, limit: u64, keeping: Keeping) -> Option<Box<dyn Looping>>;
}

/// Treatment of a history when it is compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Keeping {
    /// The whole history stays; the result is for one request.
    Whole,
    /// The result replaces the history.
    Result,
}

/// A contender with a loaded conversation.
pub trait Prepared {
    /// The input, converted back from the library's own messages.
    fn given(&self) -> Vec<Said>;
    /// Size of the input by the library's own count, if it counts.
    fn own_tokens(&self) -> Option<u64>;
    /// Result of the call.
    ///
    /// # Errors
    /// The reason why the library refused the call.
    fn returned(&self, limit: u64) -> Result<Returned, String>;
    /// One round of times.
    fn round(&mut self, limit: u64) -> Round;
}

/// Result of a call.
#[derive(Debug, Clone)]
pub struct Returned {
    /// The messages.
    pub said: Vec<Said>,
    /// Size of the messages in the unit of the limit, by the library's own count.
    pub own: Option<u64>,
}

/// The times of one round.
#[derive(Debug, Clone, Copy, Default)]
pub struct Round {
    /// Time of the call for a user who keeps the history, including the drop of the result.
    pub kept: Option<Duration>,
    /// Time of the call for a user who gives the history away, including the drop of everything.
    pub given_away: Option<Duration>,
    /// Time of the call without clones and drops.
    pub bare: Option<Duration>,
}

/// A conversation that continues turn by turn.
pub trait Looping {
    /// Takes the messages of a turn. This is not timed.
    fn hear(&mut self, turn: &[Said]);
    /// Appends the messages of the turn, compacts, and reads the messages of the next request. Returns the number of
    /// their bytes.
    fn go_on(&mut self) -> usize;
}

/// A library whose user keeps the messages in a list.
pub trait Rival: fmt::Debug + Clone + 'static {
    /// Message type of the library.
    type Message: Clone + 'static;
    /// Name of the library, with its version.
    fn name(&self) -> String;
    /// Name of the call.
    fn call(&self) -> String;
    /// Unit of the limit.
    fn unit(&self) -> Unit;
    /// Converts common messages to messages of the library.
    fn convert(&self, said: &[Said]) -> Vec<Self::Message>;
    /// Converts messages of the library to common messages.
    fn said(&self, messages: &[Self::Message]) -> Vec<Said>;
    /// Number of bytes of the text of a message.
    fn bytes(&self, message: &Self::Message) -> usize;
    /// Size by the library's own count, if it counts.
    fn tokens(&self, messages: &[Self::Message]) -> Option<u64>;
    /// Makes the call for a user who keeps the history.
    fn compact(&self, messages: &[Self::Message], limit: u64) -> Vec<Self::Message>;
    /// Makes the call for a user who gives the history away.
    fn compact_given(&self, messages: Vec<Self::Message>, limit: u64) -> Vec<Self::Message> {
        self.compact(&messages, limit)
    }
    /// Time of the call without clones and drops, if it can be measured.
    fn bare(&self, messages: &[Self::Message], limit: u64) -> Option<Duration>;
}

impl<R: Rival> Contender for R {
    fn name(&self) -> String {
        Rival::name(self)
    }

    fn call(&self) -> String {
        Rival::call(self)
    }

    fn unit(&self) -> Unit {
        Rival::unit(self)
    }

    fn prepare(&self, said: &[Said]) -> Box<dyn Prepared> {
        Box::new(Listed { rival: self.clone(), messages: self.convert(said) })
    }

    fn begin(&self, limit: u64, keeping: Keeping) -> Option<Box<dyn Looping>> {
        let (rival, messages, heard) = (self.clone(), Vec::new(), Vec::new());
        Some(Box::new(Listening { rival, messages, heard, limit, keeping }))
    }
}

struct Listed<R: Rival> {
    rival: R,
    messages: Vec<R::Message>,
}

impl<R: Rival> Prepared for Listed<R> {
    fn given(&self) -> Vec<Said> {
        self.rival.said(&self.messages)
    }

    fn own_tokens(&self) -> Option<u64> {
        self.rival.tokens(&self.messages)
    }

    fn returned(&self, limit: u64) -> Result<Returned, String> {
        let kept = self.rival.compact(&self.messages, limit);
        let own = match Rival::unit(&self.rival) {
            Unit::Tokens => self.rival.tokens(&kept),
            Unit::Messages => Some(kept.len() as u64),
            Unit::ToolUses => None,
        };
        Ok(Returned { said: self.rival.said(&kept), own })
    }

    fn round(&mut self, limit: u64) -> Round {
        let kept = timed(|| self.rival.compact(&self.messages, limit));
        let copy = black_box(self.messages.clone());
        let given_away = timed(|| self.rival.compact_given(copy, limit));
        let bare = self.rival.bare(&self.messages, limit);
        Round { kept: Some(kept), given_away: Some(given_away), bare }
    }
}

struct Listening<R: Rival> {
    rival: R,
    messages: Vec<R::Message>,
    heard: Vec<R::Message>,
    limit: u64,
    keeping: Keeping,
}

impl<R: Rival> Looping for Listening<R> {
    fn hear(&mut self, turn: &[Said]) {
        self.heard = self.rival.convert(turn);
    }

    fn go_on(&mut self) -> usize {
        self.messages.append(&mut self.heard);
        let bytes = |messages: &[R::Message]| messages.iter().map(|message| self.rival.bytes(message)).sum();
        match self.keeping {
            Keeping::Whole => bytes(&self.rival.compact(&self.messages, self.limit)),
            Keeping::Result => {
                let messages = core::mem::take(&mut self.messages);
                self.messages = self.rival.compact_given(messages, self.limit);
                bytes(&self.messages)
            }
        }
    }
}
