//! Descriptions of tools for a model.

use serde_json::{Map, Value};

use crate::message::Str;

/// The key of [`Tool::metadata`] for the source id of the provider that added the tool.
pub const CONTEXT_SOURCE: &str = "context_source";

/// The description of a tool for a model. It does not contain the function that runs the tool.
///
/// ```
/// use epitome_std::session::{AgentSession, SessionContext, Tool};
/// use serde_json::json;
///
/// let search = Tool::new("search", "Searches the web.", json!({"type": "object", "properties": {}}));
/// let mut context = SessionContext::new(&AgentSession::new(), "run-1", Vec::new());
/// context.extend_tools("web", [search.clone()]);
/// assert_eq!(context.tools()[0].context_source(), Some("web"));
/// assert_eq!(search.context_source(), None);
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Tool {
    /// Its name.
    pub name: Str,
    /// The purpose of the tool, for the model.
    pub description: Str,
    /// The JSON schema of its arguments.
    pub parameters: Value,
    /// The notes of the application; not sent to the model.
    pub metadata: Map<String, Value>,
}

impl Tool {
    /// The tool `name`, whose arguments are of the JSON schema `parameters`.
    #[must_use]
    pub fn new(name: impl Into<Str>, description: impl Into<Str>, parameters: Value) -> Self {
        Self { name: name.into(), description: description.into(), parameters, metadata: Map::new() }
    }

    /// The source id of the provider that added the tool to a run, if one did.
    #[must_use]
    pub fn context_source(&self) -> Option<&str> {
        self.metadata.get(CONTEXT_SOURCE)?.as_str()
    }
}
