//! The trait [`Summarizer`], with its request and its errors.

use core::error::Error;
use core::fmt;
use std::boxed::Box;
use std::string::String;
use std::vec::Vec;

use async_trait::async_trait;
use epitome_core::{TokenCounter, Tokens, Usage};
use epitome_std::compaction::{Costs, LiveRequest};
use epitome_std::message::Message;
use epitome_std::models::Prices;

/// Writes the summary of a span of messages.
///
/// *For implementers*: return only prose. The [`Engine`](crate::Engine) adds the header, the line about the last
/// request, and the list of identifiers. It also checks the prose: it must not be empty, must not look like a call
/// of a tool, and must not exceed the allowance of the request.
///
/// *Concurrency*: one summarizer serves any number of sessions at once.
///
/// *Cancel safety*: if the future is dropped, nothing is committed.
///
/// ```
/// use async_trait::async_trait;
/// use epitome_compactors::{Summarizer, SummaryError, SummaryRequest};
///
/// /// Says how many messages there were.
/// #[derive(Debug)]
/// struct Counting;
///
/// #[async_trait]
/// impl Summarizer for Counting {
///     fn name(&self) -> &str {
///         "counting"
///     }
///
///     async fn summarize(&self, request: &SummaryRequest<'_>) -> Result<String, SummaryError> {
///         let messages: usize = request.groups.iter().map(Vec::len).sum();
///         Ok(format!("{messages} messages, left out."))
///     }
/// }
/// ```
#[async_trait]
pub trait Summarizer: Send + Sync + fmt::Debug {
    /// The name of the summarizer in errors and events.
    fn name(&self) -> &str;

    /// Writes the summary of a span. Report the usage of each call with [`SummaryRequest::spent`], as soon as it is
    /// known.
    ///
    /// # Errors
    /// [`SummaryError`]. The history stays unchanged.
    async fn summarize(&self, request: &SummaryRequest<'_>) -> Result<String, SummaryError>;

    /// The price of a summary of `tokens` tokens that replaces `covered` tokens, in thousandths of an input token
    /// of the conversation's model with these `prices`.
    ///
    /// The default is the price of a separate request to the same model ([`Prices::summary`]). Return 0 if no model
    /// is called. `cached` is the size of the next request, if there is one and the prompt cache is warm.
    fn price(&self, prices: &Prices, covered: u64, tokens: u64, cached: Option<u64>) -> u64 {
        let _ = cached;
        prices.summary(covered, tokens)
    }
}

/// A request for a summary.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct SummaryRequest<'a> {
    /// The text of the summary at the beginning of the span, if there is one. Update it; do not summarize it again.
    pub previous: Option<&'a str>,
    /// The messages of the span in order, by group: each call is with its results.
    pub groups: &'a [Vec<&'a Message>],
    /// The largest size of the prose, in tokens.
    pub allowance: Tokens,
    /// The subject to emphasize in the summary, in the caller's words.
    pub focus: Option<&'a str>,
    /// The token counter.
    pub counter: &'a (dyn TokenCounter + Send + Sync),
    /// The conversation's model, for a summarizer without a model of its own; empty if it is not known.
    pub model: &'a str,
    /// The next request of the conversation, if the summary is made for one. The prompt cache may cover the
    /// beginning of its messages.
    pub live: Option<&'a LiveRequest>,
    pub(super) costs: Option<&'a Costs>,
}

impl<'a> SummaryRequest<'a> {
    /// A request for a summary of these groups in at most `allowance` tokens, counted by `counter`.
    #[must_use]
    pub const fn new(
        groups: &'a [Vec<&'a Message>],
        allowance: Tokens,
        counter: &'a (dyn TokenCounter + Send + Sync),
    ) -> Self {
        Self { previous: None, groups, allowance, focus: None, counter, model: "", live: None, costs: None }
    }

    /// Sets the summary before. The new summary covers it and the messages after it.
    #[must_use]
    pub const fn with_previous(mut self, previous: Option<&'a str>) -> Self {
        self.previous = previous;
        self
    }

    /// Sets the subject to emphasize in the summary.
    #[must_use]
    pub const fn with_focus(mut self, focus: Option<&'a str>) -> Self {
        self.focus = focus;
        self
    }

    /// Sets the model of the conversation.
    #[must_use]
    pub const fn with_model(mut self, model: &'a str) -> Self {
        self.model = model;
        self
    }

    /// Sets the next request of the conversation.
    #[must_use]
    pub const fn with_live(mut self, live: Option<&'a LiveRequest>) -> Self {
        self.live = live;
        self
    }

    pub(crate) const fn with_costs(mut self, costs: &'a Costs) -> Self {
        self.costs = Some(costs);
        self
    }

    /// Reports the usage of one call. The session's costs include it, even if there is no summary in the end.
    pub fn spent(&self, usage: Usage) {
        if let Some(costs) = self.costs {
            costs.tell(usage);
        }
    }
}

/// Without the texts, to keep conversations out of logs.
impl fmt::Debug for SummaryRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SummaryRequest")
            .field("previous", &self.previous.is_some())
            .field("groups", &self.groups.len())
            .field("allowance", &self.allowance)
            .field("focus", &self.focus.is_some())
            .finish_non_exhaustive()
    }
}

/// The reason for a missing summary. It contains no message text.
#[derive(Debug)]
#[non_exhaustive]
pub enum SummaryError {
    /// The model could not be called, or did not answer.
    Failed(Box<dyn Error + Send + Sync>),
    /// The summarizer exceeded the time limit.
    TimedOut,
    /// The summarizer panicked.
    Panicked,
    /// The answer has no text.
    Empty,
    /// The answer calls a tool, or has text in the form of a call.
    ToolCall,
    /// The answer exceeds the allowance.
    TooLarge {
        /// The size of the summary in tokens.
        tokens: Tokens,
        /// The allowed size in tokens.
        allowance: Tokens,
    },
    /// The text around the prose leaves no room for prose.
    NoRoom {
        /// The allowed size of the summary in tokens.
        allowance: Tokens,
    },
    /// The messages do not fit the window of the summarizer in the allowed number of calls.
    DoesNotFit {
        /// The room of the window for the transcript, in tokens.
        room: u64,
    },
}

impl fmt::Display for SummaryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(why) => write!(f, "the summarizer failed: {why}"),
            Self::TimedOut => f.write_str("the summarizer did not answer in time"),
            Self::Panicked => f.write_str("the summarizer panicked"),
            Self::Empty => f.write_str("the summary is empty"),
            Self::ToolCall => f.write_str("the summary calls a tool"),
            Self::TooLarge { tokens, allowance } => {
                write!(f, "the summary has {} tokens, of at most {}", tokens.0, allowance.0)
            }
            Self::NoRoom { allowance } => {
                write!(
                    f,
                    "a text of at most {} tokens has no room for a summary; allow more tokens",
                    allowance.0
                )
            }
            Self::DoesNotFit { room } => {
                write!(f, "the span does not fit the summarizer's window, which leaves {room} tokens for it")
            }
        }
    }
}

impl Error for SummaryError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Failed(why) => Some(&**why),
            _ => None,
        }
    }
}
