//! A summary that is written while the conversation goes on.

use core::hash::Hasher as _;
use std::collections::hash_map::DefaultHasher;
use std::string::String;

use super::block::CompactionBlock;
use super::body::{Body, Raw};
use super::error::MappingError;
use super::summarize::replay;

/// Keeps account of one request for a summary while the conversation goes on with its whole history, and puts the block in
/// place of exactly what it summarizes, in the first request after it has come.
///
/// ```
/// use epitome_compactors::managed::anthropic::{BackgroundSwap, Summarize, SummaryAnswer, Swapped};
///
/// let mut swap = BackgroundSwap::new();
/// let history = r#"{"messages":[{"role":"user","content":"Begin."},{"role":"assistant","content":"Done."}]}"#;
/// let ticket = swap.begin(history, 2)?;
/// let ask = Summarize::new().request(history, 2)?;
/// // While `ask` is answered:
/// let grown = history.replace("]}", r#",{"role":"user","content":"More."}]}"#);
/// assert_eq!(swap.next_request(&grown)?, Swapped::Unchanged);
///
/// let response = r#"{"stop_reason":"compaction","content":[{"type":"compaction","content":"Begun.","signature":"s"}]}"#;
/// let SummaryAnswer::Written(block) = SummaryAnswer::read(response)? else { unreachable!() };
/// swap.arrive(ticket, block)?;
/// let Swapped::Swapped { request, replaced } = swap.next_request(&grown)? else { unreachable!() };
/// assert_eq!(replaced, 2);
/// assert!(request.contains("Begun.") && request.contains("More.") && !request.contains("Done."));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// It holds no message: of what was sent it knows the number of messages and a digest.
#[derive(Debug, Default)]
pub struct BackgroundSwap {
    begun: u64,
    state: State,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Idle,
    Waiting(Sent),
    Ready(Sent, CompactionBlock),
}

/// The messages that a request for a summary had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sent {
    messages: usize,
    digest: u64,
}

impl Sent {
    /// The first `count` messages, if there are so many.
    fn of(messages: &[Raw<'_>], count: usize) -> Option<Self> {
        let mut digest = DefaultHasher::new();
        for message in messages.get(..count)? {
            digest.write(message.text.as_bytes());
            // In no JSON text.
            digest.write_u8(0xFF);
        }
        Some(Self { messages: count, digest: digest.finish() })
    }
}

/// Which request for a summary a block belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket(u64);

/// Why a block is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DiscardedBlock {
    /// The messages that it summarizes were edited meanwhile, or compacted in another way.
    PrefixEdited,
    /// Another request for a summary was begun, or this one was given up.
    Superseded,
}

/// The result of an early compaction for a request of the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Swapped {
    /// No block has come: send it as it is.
    Unchanged,
    /// Send this instead, and go on with its messages.
    Swapped {
        /// The request, block first.
        request: String,
        /// Number of messages that the block stands for.
        replaced: usize,
    },
    /// A block had come and cannot be used: send it as it is.
    Discarded(DiscardedBlock),
}

impl BackgroundSwap {
    /// Nothing is under way.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Records that the first `cut` messages of `request` are being summarized. What was under way is given up.
    ///
    /// # Errors
    /// If it is no request, or has not so many messages. What was under way goes on.
    pub fn begin(&mut self, request: &str, cut: usize) -> Result<Ticket, MappingError> {
        let messages = Body::of(request)?.messages()?;
        let sent = Sent::of(&messages, cut)
            .ok_or(MappingError::NoSuchMessage { message: cut, messages: messages.len() })?;
        self.begun = self.begun.saturating_add(1);
        self.state = State::Waiting(sent);
        Ok(Ticket(self.begun))
    }

    /// Whether a summary is being written, or has come and is not used yet: no other should be begun.
    #[must_use]
    pub const fn is_under_way(&self) -> bool {
        !matches!(self.state, State::Idle)
    }

    /// Takes the block that was answered.
    ///
    /// # Errors
    /// [`DiscardedBlock::Superseded`] if it is the answer to another request than the latest.
    pub fn arrive(&mut self, ticket: Ticket, block: CompactionBlock) -> Result<(), DiscardedBlock> {
        match core::mem::take(&mut self.state) {
            State::Waiting(sent) if ticket.0 == self.begun => {
                self.state = State::Ready(sent, block);
                Ok(())
            }
            other => {
                self.state = other;
                Err(DiscardedBlock::Superseded)
            }
        }
    }

    /// Gives up what is under way if it is this: the request failed, or no summary came of it.
    pub fn give_up(&mut self, ticket: Ticket) {
        if ticket.0 == self.begun {
            self.state = State::Idle;
        }
    }

    /// The next request of the conversation, with the block in it if one has come.
    ///
    /// # Errors
    /// If it is no request, or one that cannot have the block first ([`replay`]). The block is kept for the next.
    pub fn next_request(&mut self, request: &str) -> Result<Swapped, MappingError> {
        let State::Ready(sent, block) = &self.state else { return Ok(Swapped::Unchanged) };
        let messages = Body::of(request)?.messages()?;
        let swapped = match Sent::of(&messages, sent.messages) {
            Some(now) if now == *sent => {
                Swapped::Swapped { request: replay(request, sent.messages, block)?, replaced: sent.messages }
            }
            _ => Swapped::Discarded(DiscardedBlock::PrefixEdited),
        };
        self.state = State::Idle;
        Ok(swapped)
    }
}

impl core::fmt::Display for DiscardedBlock {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::PrefixEdited => "what was summarized has been edited since: ask for another summary",
            Self::Superseded => "another summary was asked for since: wait for that one",
        })
    }
}

impl core::error::Error for DiscardedBlock {}
