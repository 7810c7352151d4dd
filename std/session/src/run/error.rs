//! Errors of a run.

use core::error::Error;
use core::fmt;

use super::RunOutcome;
use crate::message::{Message, Str, ToolCall};
use crate::provider::{Failures, ProviderError};
use crate::session::SessionError;
use crate::wire::ContextOverflow;

/// The error of a run. Neither its text nor its `Debug` output shows the content of a message.
///
/// ```
/// # use epitome_std::message::Message;
/// # use epitome_std::run::*;
/// # use epitome_std::session::AgentSession;
/// # futures::executor::block_on(async {
/// let (settings, mut session) = (RunSettings::new("helper"), AgentSession::new());
/// let mut run = Run::begin(&settings, &mut session, vec![Message::user("Hi")], &RunOptions::default()).await?;
/// run.finish().await?;
/// match run.finish().await {
///     Err(RunError::Misuse(what)) => assert_eq!(what, "the run is over: begin another one"),
///     other => unreachable!("{other:?}"),
/// }
/// # Ok::<(), RunError>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError {
    /// Calls of the model have no result yet: answer them, or finish the run and answer them with the next one. For an
    /// [`Agent`](crate::agent::Agent): calls that wait for the [approval](super::ApprovalState) of a person, or for a
    /// result if there is no tool runner. The input is stored.
    PendingCalls(Vec<PendingCall>),
    /// A provider failed before the run: nothing was stored, and the model must not be called. Begin again.
    Provider(ProviderError),
    /// Providers failed after the run, or while it was stored. Repeat the call: stored messages are not stored again.
    Providers(Failures),
    /// Providers failed at the end of a run of an [`Agent`](crate::agent::Agent); all others have done their part. The run is over.
    EndFailed {
        /// The outcome of the run: its answer, if nothing else ended it.
        outcome: Box<RunOutcome>,
        /// Which providers failed.
        failures: Failures,
        /// The error that ended the run, if one did: the model's client failed, for example.
        cause: Option<Box<Self>>,
    },
    /// The session, its store or a compaction that was asked for failed.
    Session(SessionError),
    /// The model's client failed. The messages before the call are stored.
    Model(Box<dyn Error + Send + Sync>),
    /// The request is longer than the model's window, and compactions have not made it fit. The messages before the
    /// call are stored.
    ContextOverflow {
        /// The answer of the provider to the latest request.
        overflow: ContextOverflow,
        /// Number of times that the request was compacted and sent again.
        compactions: u32,
        /// The reason why the latest compaction failed; `None` if each compaction succeeded and the service still
        /// refused the request.
        cause: Option<Box<Self>>,
    },
    /// The next request is larger than its limit after all that a compaction could do, and
    /// [`RunSettings::with_enforced_limit`](super::RunSettings::with_enforced_limit) is set: nothing was sent. An
    /// [`Agent`](crate::agent::Agent) has stored the messages before the request.
    OverLimit {
        /// The size of the request, in the provider's tokens.
        size: u64,
        /// The window of the model less the reserve for the answer.
        limit: u64,
    },
    /// The model called tools in the maximum number of rounds and did not stop. The messages before the error are
    /// stored.
    ToolRounds {
        /// Maximum number of rounds.
        rounds_max: u32,
    },
    /// A run of this token has stored its input already, and perhaps more. The model is not called again, and nothing is stored twice.
    AlreadyStored {
        /// The answer of that run, if the run has ended: its last stored message, a message of the model without calls.
        /// `None` if the run crashed, was dropped or could not finish, or if its answer was pruned. To continue then
        /// from the stored messages, begin a run without input under another token.
        answer: Option<Box<Message>>,
    },
    /// Another run of the session is not finished.
    Busy,
    /// The call does not fit the state of the run; the text names the fault.
    Misuse(&'static str),
}

/// A call of the model that has no result yet.
///
/// ```
/// # use epitome_std::message::Message;
/// # use epitome_std::run::*;
/// # use epitome_std::session::AgentSession;
/// # futures::executor::block_on(async {
/// let (settings, mut session) = (RunSettings::new("helper"), AgentSession::new());
/// # use epitome_core::message::Role;
/// # use epitome_std::message::{Part, ToolCall};
/// let mut run = Run::begin(&settings, &mut session, vec![Message::user("Read it.")], &RunOptions::default()).await?;
/// let prompt = run.prompt().await?;
/// let call = Part::ToolCall(ToolCall::new("c1", "read", "{}"));
/// run.record(prompt.handle, ModelResponse::new(vec![Message::new(Role::Assistant, vec![call])])).await?;
/// let Err(RunError::PendingCalls(calls)) = run.prompt().await else { unreachable!() };
/// assert_eq!(calls, [PendingCall::new("c1".into(), "read".into())]);
/// run.answer(vec![Message::tool("c1", "forty-two")])?;
/// assert!(run.prompt().await.is_ok());
/// # Ok::<(), RunError>(())
/// # }).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PendingCall {
    /// Its id.
    pub id: Str,
    /// The tool.
    pub name: Str,
}

impl PendingCall {
    /// The call `id` of the tool `name`.
    #[must_use]
    pub const fn new(id: Str, name: Str) -> Self {
        Self { id, name }
    }
}

impl RunError {
    pub(crate) fn pending(calls: Vec<ToolCall>) -> Self {
        Self::PendingCalls(calls.into_iter().map(|call| PendingCall::new(call.id, call.name)).collect())
    }
}

impl From<SessionError> for RunError {
    fn from(error: SessionError) -> Self {
        Self::Session(error)
    }
}

impl From<ProviderError> for RunError {
    fn from(error: ProviderError) -> Self {
        Self::Provider(error)
    }
}

impl From<Failures> for RunError {
    fn from(error: Failures) -> Self {
        Self::Providers(error)
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PendingCalls(calls) => {
                let count = calls.len();
                write!(f, "{count} calls have no result, or wait for an approval: answer them first; the first is ")?;
                match calls.first() {
                    Some(call) => write!(f, "{:?} of tool {:?}", call.id.as_str(), call.name.as_str()),
                    None => f.write_str("unknown"),
                }
            }
            Self::Provider(error) => error.fmt(f),
            Self::EndFailed { failures, cause: Some(cause), .. } => write!(f, "{cause}; then {failures}"),
            Self::Providers(failures) | Self::EndFailed { failures, .. } => failures.fmt(f),
            Self::ContextOverflow { overflow, compactions, cause } => {
                write!(f, "{overflow}, after {compactions} compactions: ")?;
                match cause {
                    Some(cause) => cause.fmt(f),
                    None => f.write_str("shorten the instructions, the tools or the input, or use a model with a larger window"),
                }
            }
            Self::OverLimit { size, limit } => write!(
                f,
                "the request has {size} tokens, and its limit is {limit}: shorten the instructions, the tools or the input, or use a \
                 model with a larger window"
            ),
            Self::Session(error) => error.fmt(f),
            // The error of a client may quote messages.
            Self::Model(_) => f.write_str("the call of the model failed"),
            Self::ToolRounds { rounds_max } => {
                write!(
                    f,
                    "the model called tools for {rounds_max} rounds without an answer: raise the limit, or look at \
                           the tools"
                )
            }
            Self::AlreadyStored { answer: Some(_) } => {
                f.write_str("a run of this token has ended: its answer is with this error")
            }
            Self::AlreadyStored { answer: None } => f.write_str(
                "a run of this token has stored its input already: to go on, begin one without input, under another token",
            ),
            Self::Busy => f.write_str("another run of this session is not finished: wait for it"),
            Self::Misuse(what) => f.write_str(what),
        }
    }
}

impl Error for RunError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Provider(error) => Some(error),
            Self::Providers(failures) | Self::EndFailed { failures, .. } => Some(failures),
            Self::ContextOverflow { overflow, .. } => Some(overflow),
            Self::Session(error) => Some(error),
            Self::Model(error) => Some(&**error),
            _ => None,
        }
    }
}
