//! Answers that arrive piece by piece.

use core::fmt;

use epitome_core::Usage;
use epitome_core::message::Role;

use super::ModelResponse;
use super::live::of_response;
use crate::history::stored::StoredError;
use crate::message::{Message, Part, Reasoning, Str, ToolCall};
use crate::provider::Providers;
use crate::session::{KeptRun, ServiceSessionId, SessionContext};
use crate::wire::{Format, received};

/// A piece of an answer. Each field is added to the pieces that have arrived before, in this order: reasoning, its
/// signature, text, calls, parts. The parts of the message stand in the order in which they began to arrive.
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
    /// More of the reasoning.
    pub reasoning: String,
    /// The signature of the reasoning that has just arrived, or its encrypted form. Providers want it back unchanged,
    /// and [`format`](Self::format) names the format that it goes back to. It ends that reasoning. A signature of
    /// Gemini without new reasoning belongs to the text or the call that follows.
    pub signature: Option<Str>,
    /// More of the text.
    pub text: String,
    /// More of the calls.
    pub calls: Vec<CallDelta>,
    /// Parts that arrive whole: media, calls that the service has run itself, and their results.
    pub parts: Vec<Part>,
    /// The format in which the service sends its answers, in any of the pieces. Signed and encrypted reasoning goes
    /// back only to the format that it came from: without this field it is left out of the next requests.
    pub format: Option<Format>,
    /// The usage that the provider reported. Of several reports the last one counts; a report without input completes
    /// the one before it.
    pub usage: Option<Usage>,
    /// The provider's id of the response.
    pub response_id: Option<Str>,
    /// The id of the session that the service has begun to keep, if it has.
    pub service_session_id: Option<ServiceSessionId>,
    /// The reason why the model has stopped, in the provider's word.
    pub finish_reason: Option<Str>,
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
    /// The index of the call in the response.
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

    /// More reasoning.
    #[must_use]
    pub fn reasoning(text: impl Into<String>) -> Self {
        Self { reasoning: text.into(), ..Self::default() }
    }

    /// A part that arrives whole.
    #[must_use]
    pub fn part(part: Part) -> Self {
        Self { parts: vec![part], ..Self::default() }
    }

    /// Sets the format in which the service sends its answers.
    #[must_use]
    pub const fn with_format(mut self, format: Format) -> Self {
        self.format = Some(format);
        self
    }

    /// Sets the signature of the reasoning. Set the format of the answer too: [`Delta::with_format`].
    #[must_use]
    pub fn with_signature(mut self, signature: impl Into<Str>) -> Self {
        self.signature = Some(signature.into());
        self
    }

    /// Whether the piece has content of the answer's messages.
    pub(crate) fn says(&self) -> bool {
        let Self { reasoning, signature, text, calls, parts, .. } = self;
        let is_said = !reasoning.is_empty() || !text.is_empty() || signature.is_some();
        is_said || !calls.is_empty() || !parts.is_empty()
    }

    /// Sets the provider's id of the response.
    #[must_use]
    pub fn with_response_id(mut self, id: impl Into<Str>) -> Self {
        self.response_id = Some(id.into());
        self
    }

    /// Sets the id of the session that the service keeps from now on.
    #[must_use]
    pub fn with_service_session_id(mut self, id: impl Into<ServiceSessionId>) -> Self {
        self.service_session_id = Some(id.into());
        self
    }

    /// A piece of a call.
    #[must_use]
    pub fn call(call: CallDelta) -> Self {
        Self { calls: vec![call], ..Self::default() }
    }

    /// Sets the usage that the provider reported.
    #[must_use]
    pub const fn with_usage(mut self, usage: Usage) -> Self {
        self.usage = Some(usage);
        self
    }

    /// Sets the reason why the model has stopped.
    #[must_use]
    pub fn with_finish_reason(mut self, reason: impl Into<Str>) -> Self {
        self.finish_reason = Some(reason.into());
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

/// Data of a run that its session keeps while an answer arrives: enough to store the messages without the run.
pub(crate) struct Left {
    pub(super) context: SessionContext,
    pub(super) arrived: Arrived,
}

impl Left {
    pub(super) fn new(context: &SessionContext, providers: &Providers) -> Self {
        let stores = |source: &_| providers.histories().any(|history| history.stores_context_of(source));
        Self { context: context.to_be_stored(stores), arrived: Arrived::default() }
    }

    /// The data of a run that was read with a session.
    pub(crate) fn of_session(context: SessionContext) -> Self {
        Self { context, arrived: Arrived::default() }
    }

    /// The form in which the data is written with a session.
    pub(crate) fn to_kept(&self) -> Result<KeptRun, StoredError> {
        self.context.to_kept(&self.arrived.clone().into_messages())
    }

    /// Adds the pieces that have arrived to the response.
    pub(super) fn take_in(&mut self) {
        let arrived = core::mem::take(&mut self.arrived).into_messages();
        self.context.response_mut().messages.extend(arrived);
    }
}

/// Pieces of an answer that have arrived so far.
#[derive(Clone, Default)]
pub(super) struct Arrived {
    pieces: Vec<Piece>,
    format: Option<Format>,
    /// The answer without its messages.
    response: ModelResponse,
}

/// A part of the message, complete or still arriving.
#[derive(Clone)]
enum Piece {
    Text(String),
    Reasoning(String, Option<Str>),
    Call(CallDelta),
    Part(Part),
}

impl Arrived {
    pub(super) fn extend(&mut self, delta: &Delta) {
        let Delta { reasoning, signature, text, calls, parts, .. } = delta;
        self.format = delta.format.or(self.format);
        // Gemini signs the call or the text after the thought.
        let is_own = reasoning.is_empty() && self.format == Some(Format::Gemini);
        match self.pieces.last_mut() {
            _ if reasoning.is_empty() && signature.is_none() => {}
            Some(Piece::Reasoning(known, signed @ None)) if !is_own => {
                known.push_str(reasoning);
                signed.clone_from(signature);
            }
            _ => self.pieces.push(Piece::Reasoning(reasoning.clone(), signature.clone())),
        }
        match self.pieces.last_mut() {
            _ if text.is_empty() => {}
            Some(Piece::Text(known)) => known.push_str(text),
            _ => self.pieces.push(Piece::Text(text.clone())),
        }
        for call in calls {
            let known = self.pieces.iter_mut().find_map(|piece| match piece {
                Piece::Call(known) if known.index == call.index => Some(known),
                _ => None,
            });
            match known {
                Some(known) => {
                    known.arguments.push_str(&call.arguments);
                    known.id = known.id.take().or_else(|| call.id.clone());
                    known.name = known.name.take().or_else(|| call.name.clone());
                }
                None => self.pieces.push(Piece::Call(call.clone())),
            }
        }
        self.pieces.extend(parts.iter().cloned().map(Piece::Part));
        let Delta { usage, response_id, service_session_id, finish_reason, .. } = delta;
        let known = &mut self.response;
        known.usage = match (known.usage, *usage) {
            // The input came with the first piece.
            (Some(mut known), Some(usage)) if usage.input_total.is_none() => {
                known.output_total = usage.output_total.or(known.output_total);
                let sum = |(input, output): (u64, u64)| input.saturating_add(output);
                known.total = known.input_total.zip(known.output_total).map(sum);
                Some(known)
            }
            (known, usage) => usage.or(known),
        };
        let newest = |new: &Option<Str>, known: &mut Option<Str>| new.clone().or_else(|| known.take());
        known.response_id = newest(response_id, &mut known.response_id);
        known.finish_reason = newest(finish_reason, &mut known.finish_reason);
        known.service_session_id = service_session_id.clone().or_else(|| known.service_session_id.take());
    }

    /// The whole answer.
    pub(super) fn finish(self) -> ModelResponse {
        self.into_response(true)
    }

    /// The answer so far, marked incomplete. A call whose arguments are not whole is left out: it cannot be run, and no provider takes it
    /// back.
    pub(super) fn abandon(self) -> ModelResponse {
        self.into_response(false)
    }

    /// The answer so far, as messages of the response.
    fn into_messages(self) -> Vec<Message> {
        let ModelResponse { messages, response_id, .. } = self.abandon();
        messages.into_iter().map(|message| of_response(message, response_id.as_ref())).collect()
    }

    fn into_response(self, complete: bool) -> ModelResponse {
        let parts = self.pieces.into_iter().filter_map(|piece| match piece {
            Piece::Text(text) => Some(Part::Text(text.into())),
            Piece::Reasoning(text, opaque) => {
                let mut reasoning = Reasoning::new(text);
                reasoning.opaque = opaque;
                Some(Part::Reasoning(reasoning))
            }
            Piece::Call(call) if complete || call.is_whole() => {
                let (id, name) = (call.id.unwrap_or_default(), call.name.unwrap_or_default());
                Some(Part::ToolCall(ToolCall::new(id, name, call.arguments)))
            }
            Piece::Call(_) => None,
            Piece::Part(part) => Some(part),
        });
        let message = Message::new(Role::Assistant, parts.collect()).with_incomplete(!complete);
        let messages = match self.format {
            _ if message.parts().is_empty() => Vec::new(),
            Some(format) => received(message, format),
            None => vec![message],
        };
        ModelResponse { messages, ..self.response }
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
            .field("parts", &self.parts.len())
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

#[cfg(test)]
mod tests;
