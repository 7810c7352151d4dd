//! Facts that a provider may know of the agent that runs it.

/// The facts that a provider may know of the agent that runs it.
pub trait AgentInfo: Send + Sync {
    /// The agent's id.
    fn id(&self) -> &str;

    /// The agent's name, if it has one.
    fn name(&self) -> Option<&str> {
        None
    }
}

/// An agent of which only the id and the name are known: for programs that run providers without an agent object.
///
/// ```
/// use epitome_std::provider::{AgentInfo, NamedAgent};
///
/// let agent = NamedAgent::new("a-1").with_name("Helper");
/// assert_eq!((agent.id(), agent.name()), ("a-1", Some("Helper")));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedAgent {
    id: Box<str>,
    name: Option<Box<str>>,
}

impl NamedAgent {
    /// The agent of this id.
    #[must_use]
    pub fn new(id: impl Into<Box<str>>) -> Self {
        Self { id: id.into(), name: None }
    }

    /// Sets the name.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<Box<str>>) -> Self {
        self.name = Some(name.into());
        self
    }
}

impl AgentInfo for NamedAgent {
    fn id(&self) -> &str {
        &self.id
    }

    fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}
