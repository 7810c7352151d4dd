//! An answer that arrives piece by piece.

use core::fmt;

use epitome_core::Usage;
use epitome_core::message::Role;

use super::ModelResponse;
use super::live::of_response;
use crate::message::{Message, Part, Reasoning, Str, ToolCall};
use crate::provider::Providers;
use crate::session::{KeptRun, ServiceSessionId, SessionContext};
use crate::wire::stored::StoredError;

/// A piece of an answer. Every field is what is added to what has arrived before.
///
/// ```
/// # use epitome_std::message::Message;
/// # use epitome_std::run::*;
/// # use epitome_std::session::AgentSession;
/// # futures::executor::block_on(async {
/// let (settings, mut session) = (RunSettings::new("helper"), AgentSession::new());
/// let mut run = Run::begin(&settings, &mut session, vec![Message::user("Hi")], &RunOptions::default()).await?;
/// let prompt = run.prompt().await?;
/// run.begin_response(prompt.handle)?;
/// for piece in ["Hel", "lo."] {
///     run.extend_response(&Delta::text(piece))?;
/// }
/// run.finish_response().await?;
/// assert_eq!(run.finish().await?.response.messages, [Message::assistant("Hello.")]);
/// # Ok::<(), RunError>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Delta {
    /// More of the text.
    pub text: String,
    /// More of the reasoning.
    pub reasoning: String,
    /// More of the calls.
    pub calls: Vec<CallDelta>,
    /// What the provider reported; of several reports the last one counts.
    pub usage: Option<Usage>,
    /// The provider's id of the response.
    pub response_id: Option<Str>,
    /// The id of the session that the service has begun to keep, if it has.
    pub service_session_id: Option<ServiceSessionId>,
}

/// A piece of a call.
///
/// ```
/// use epitome_std::run::{CallDelta, Delta};
///
/// let pieces = [CallDelta::new(0, "{\"path\":").of("c1", "read"), CallDelta::new(0, "\"a.txt\"}")];
/// let deltas = pieces.map(Delta::call);
/// assert_eq!(deltas[0].calls[0].name.as_deref(), Some("read"));
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallDelta {
    /// Which of the response's calls.
    pub index: u32,
    /// The call's id, with its first piece.
    pub id: Option<Str>,
    /// The tool, with its first piece.
    pub name: Option<Str>,
    /// More of the arguments.
    pub arguments: String,
}

impl Delta {
    /// More text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// A piece of a call.
    #[must_use]
    pub fn call(call: CallDelta) -> Self {
        Self { calls: vec![call], ..Self::default() }
    }

    /// The same with what the provider reported.
    #[must_use]
    pub const fn with_usage(mut self, usage: Usage) -> Self {
        self.usage = Some(usage);
        self
    }
}

impl CallDelta {
    /// More arguments of the `index`th call.
    #[must_use]
    pub fn new(index: u32, arguments: impl Into<String>) -> Self {
        Self { index, id: None, name: None, arguments: arguments.into() }
    }

    /// The first piece of a call: the call `id` of the tool `name`.
    #[must_use]
    pub fn of(mut self, id: impl Into<Str>, name: impl Into<Str>) -> Self {
        (self.id, self.name) = (Some(id.into()), Some(name.into()));
        self
    }
}

/// What a run leaves in its session while an answer arrives: enough to store it without the run.
pub(crate) struct Left {
    pub(super) context: SessionContext,
    pub(super) arrived: Arrived,
}

impl Left {
    pub(super) fn new(context: &SessionContext, providers: &Providers) -> Self {
        let stores = |source: &_| providers.histories().any(|history| history.stores_context_of(source));
        Self { context: context.to_be_stored(stores), arrived: Arrived::default() }
    }

    /// What was read with a session.
    pub(crate) fn of_session(context: SessionContext) -> Self {
        Self { context, arrived: Arrived::default() }
    }

    /// What is written with a session.
    pub(crate) fn to_kept(&self) -> Result<KeptRun, StoredError> {
        self.context.to_kept(&self.arrived.clone().into_messages())
    }

    /// Makes what has arrived a part of the response.
    pub(super) fn take_in(&mut self) {
        let arrived = core::mem::take(&mut self.arrived).into_messages();
        self.context.response_mut().messages.extend(arrived);
    }
}

/// What has arrived so far.
#[derive(Clone, Default)]
pub(super) struct Arrived {
    sum: Delta,
}

impl Arrived {
    pub(super) fn extend(&mut self, delta: &Delta) {
        let Delta { text, reasoning, calls, usage, response_id, service_session_id } = delta;
        self.sum.text.push_str(text);
        self.sum.reasoning.push_str(reasoning);
        for call in calls {
            match self.sum.calls.iter_mut().find(|known| known.index == call.index) {
                Some(known) => {
                    known.arguments.push_str(&call.arguments);
                    known.id = known.id.take().or_else(|| call.id.clone());
                    known.name = known.name.take().or_else(|| call.name.clone());
                }
                None => self.sum.calls.push(call.clone()),
            }
        }
        self.sum.usage = usage.or(self.sum.usage);
        self.sum.response_id = response_id.clone().or_else(|| self.sum.response_id.take());
        self.sum.service_session_id =
            service_session_id.clone().or_else(|| self.sum.service_session_id.take());
    }

    /// The whole answer.
    pub(super) fn finish(self) -> ModelResponse {
        self.into_response(true)
    }

    /// What has arrived, marked incomplete. A call whose arguments are not whole is left out: nobody can run it, and no
    /// provider takes it back.
    pub(super) fn abandon(self) -> ModelResponse {
        self.into_response(false)
    }

    /// The same, as messages of the response.
    fn into_messages(self) -> Vec<Message> {
        let ModelResponse { messages, response_id, .. } = self.abandon();
        messages.into_iter().map(|message| of_response(message, response_id.as_ref())).collect()
    }

    fn into_response(self, complete: bool) -> ModelResponse {
        let Delta { text, reasoning, mut calls, usage, response_id, service_session_id } = self.sum;
        let mut parts = Vec::new();
        if !reasoning.is_empty() {
            parts.push(Part::Reasoning(Reasoning::new(reasoning)));
        }
        if !text.is_empty() {
            parts.push(Part::Text(text.into()));
        }
        calls.sort_by_key(|call| call.index);
        let whole = |call: &CallDelta| complete || call.is_whole();
        parts.extend(calls.into_iter().filter(whole).map(|call| {
            let (id, name) = (call.id.unwrap_or_default(), call.name.unwrap_or_default());
            Part::ToolCall(ToolCall::new(id, name, call.arguments))
        }));
        let message = Message::new(Role::Assistant, parts).with_incomplete(!complete);
        let messages = if message.parts().is_empty() { Vec::new() } else { vec![message] };
        ModelResponse { messages, response_id, usage, service_session_id }
    }
}

impl CallDelta {
    fn is_whole(&self) -> bool {
        self.name.is_some() && serde_json::from_str::<serde::de::IgnoredAny>(&self.arguments).is_ok()
    }
}

impl fmt::Debug for Delta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delta")
            .field("text", &self.text.len())
            .field("calls", &self.calls)
            .field("usage", &self.usage)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for CallDelta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallDelta")
            .field("index", &self.index)
            .field("name", &self.name)
            .field("arguments", &self.arguments.len())
            .finish_non_exhaustive()
    }
}
