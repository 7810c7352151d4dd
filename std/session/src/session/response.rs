//! Response of the model.

use std::sync::Arc;

use epitome_core::Usage;
use epitome_core::message::Role;
use serde_json::Value;

use crate::history::Timestamp;
use crate::message::{Message, Str};

/// The answer of a run: for a run with tools, all of its messages, tool results included.
///
/// ```
/// use epitome_core::Usage;
/// use epitome_std::message::Message;
/// use epitome_std::session::AgentResponse;
///
/// let response = AgentResponse::new(vec![Message::assistant("Hello.")]).with_usage(Usage::new(12, 3));
/// assert_eq!((response.messages.len(), response.text().as_str()), (1, "Hello."));
/// ```
///
/// Providers borrow the context of a run. They read the response and the options of the run, and change neither:
///
/// ```compile_fail,E0507
/// # use epitome_std::session::{AgentResponse, SessionContext};
/// fn after_run(context: &mut SessionContext) {
///     *context = context.with_response(AgentResponse::default());
/// }
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct AgentResponse {
    /// The messages, in order.
    pub messages: Vec<Message>,
    /// The provider's id of the latest response.
    pub response_id: Option<Str>,
    /// The id of the agent that answered.
    pub agent_id: Option<Str>,
    /// The usage that the provider reported; of a stream, the last report.
    pub usage_details: Option<Usage>,
    /// The reason why the model has stopped in the latest response, in the provider's word.
    pub finish_reason: Option<Str>,
    /// The time of the latest response, by the provider's clock.
    pub created_at: Option<Timestamp>,
    /// The latest response as the provider sent it, if the client gives it. It is not stored.
    pub raw_response: Option<Arc<Value>>,
}

impl AgentResponse {
    /// A response of these messages.
    #[must_use]
    pub fn new(messages: Vec<Message>) -> Self {
        Self { messages, ..Self::default() }
    }

    /// The words of the model: the texts of its messages that have one, a line each.
    #[must_use]
    pub fn text(&self) -> String {
        let said = self.messages.iter().filter(|message| message.role() == Role::Assistant);
        let texts: Vec<_> = said.map(Message::text).filter(|text| !text.is_empty()).collect();
        texts.join("\n")
    }

    /// Sets the usage that the provider reported.
    #[must_use]
    pub const fn with_usage(mut self, usage: Usage) -> Self {
        self.usage_details = Some(usage);
        self
    }

    /// Sets the provider's id of the response.
    #[must_use]
    pub fn with_response_id(mut self, id: impl Into<Str>) -> Self {
        self.response_id = Some(id.into());
        self
    }
}
