//! Compaction of sessions that a service keeps.

use core::fmt;

use super::Costs;
use crate::session::ServiceSessionId;

/// A session that a service keeps, and the parts of its requests other than messages.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct KeptSession<'a> {
    /// The id of the session. For services that name each response, it is the id of the latest response.
    pub id: &'a ServiceSessionId,
    /// The instructions, if there are any.
    pub instructions: Option<&'a str>,
    /// The conversation's model; empty where it is not known.
    pub model: &'a str,
    /// The receiver of the costs.
    pub costs: &'a Costs,
}

impl<'a> KeptSession<'a> {
    /// The session of this id, without instructions and with an unknown model.
    #[must_use]
    pub const fn new(id: &'a ServiceSessionId, costs: &'a Costs) -> Self {
        Self { id, instructions: None, model: "", costs }
    }

    /// Sets the instructions.
    #[must_use]
    pub const fn with_instructions(mut self, instructions: Option<&'a str>) -> Self {
        self.instructions = instructions;
        self
    }

    /// Sets the model of the conversation.
    #[must_use]
    pub const fn with_model(mut self, model: &'a str) -> Self {
        self.model = model;
        self
    }
}

/// Shows no text: messages stay out of logs.
impl fmt::Debug for KeptSession<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptSession")
            .field("instructions", &self.instructions.map(str::len))
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}
