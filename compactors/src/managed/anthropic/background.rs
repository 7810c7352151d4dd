//! A summary that is written while the conversation continues.

use core::hash::Hasher as _;
use std::collections::hash_map::DefaultHasher;
use std::string::String;

use super::block::CompactionBlock;
use super::body::{Body, Raw};
use super::error::MappingError;
use super::summarize::replay;

/// Tracks one request for a summary while the conversation continues with its whole history. In the first request
/// after the block has arrived, it replaces exactly the summarized messages by the block.
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
/// It holds no messages, only their number and a digest.
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

/// The messages of a request for a summary: their number and a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sent {
    messages: usize,
    digest: u64,
}

impl Sent {
    /// The first `count` messages, or `None` if there are fewer.
    fn of(messages: &[Raw<'_>], count: usize) -> Option<Self> {
        let mut digest = DefaultHasher::new();
        for message in messages.get(..count)? {
            digest.write(message.text.as_bytes());
            // A byte that no JSON text contains, as a separator.
            digest.write_u8(0xFF);
        }
        Some(Self { messages: count, digest: digest.finish() })
    }
}

/// Identifies the request for a summary that a block answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket(u64);

/// The reason why a block is discarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DiscardedBlock {
    /// The summarized messages were edited meanwhile, or compacted in another way.
    PrefixEdited,
    /// Another request for a summary was started, or this one was given up.
    Superseded,
}

/// The result of an early compaction for a request of the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Swapped {
    /// No block has arrived: send the request unchanged.
    Unchanged,
    /// Send this request instead, and continue with its messages.
    Swapped {
        /// The request, with the block first.
        request: String,
        /// Number of messages that the block replaces.
        replaced: usize,
    },
    /// A block has arrived and cannot be used: send the request unchanged.
    Discarded(DiscardedBlock),
}

impl BackgroundSwap {
    /// A state without a request for a summary.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Records that the first `cut` messages of `request` are being summarized. An earlier request for a summary is
    /// given up.
    ///
    /// # Errors
    /// If `request` is no request, or has fewer messages. An earlier request for a summary stays.
    pub fn begin(&mut self, request: &str, cut: usize) -> Result<Ticket, MappingError> {
        let messages = Body::of(request)?.messages()?;
        let sent = Sent::of(&messages, cut)
            .ok_or(MappingError::NoSuchMessage { message: cut, messages: messages.len() })?;
        self.begun = self.begun.saturating_add(1);
        self.state = State::Waiting(sent);
        Ok(Ticket(self.begun))
    }

    /// Whether a summary is being written, or has arrived and is not used yet. Start no other one then.
    #[must_use]
    pub const fn is_under_way(&self) -> bool {
        !matches!(self.state, State::Idle)
    }

    /// Stores the block of the response.
    ///
    /// # Errors
    /// [`DiscardedBlock::Superseded`] if the block does not answer the latest request.
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

    /// Gives up the request for a summary with this ticket: it failed, or produced no summary.
    pub fn give_up(&mut self, ticket: Ticket) {
        if ticket.0 == self.begun {
            self.state = State::Idle;
        }
    }

    /// The next request of the conversation, with the block in it if one has arrived.
    ///
    /// # Errors
    /// If `request` is no request, or one that cannot have the block first ([`replay`]). The block is kept for the
    /// next request.
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
