//! The scope of memories: application, agent, user, thread.

/// The owner of memories in a service: of memories that are stored, or of memories that are searched. Each provider
/// documents the ids that it takes, and their meaning for a search.
///
/// ```
/// use epitome_std::memory::Scope;
///
/// let scope = Scope::default().with_user("alice").with_agent("");
/// assert_eq!((scope.user(), scope.agent()), (Some("alice"), None));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scope {
    application: Option<Box<str>>,
    agent: Option<Box<str>>,
    user: Option<Box<str>>,
    thread: Option<Box<str>>,
}

impl Scope {
    /// Sets the application's id; an empty one is none.
    #[must_use]
    pub fn with_application(mut self, id: impl Into<Box<str>>) -> Self {
        self.application = given(id);
        self
    }

    /// Sets the agent's id. A search by this id alone finds memories of *any* user of the agent: use it only for
    /// memories that all users may know.
    #[must_use]
    pub fn with_agent(mut self, id: impl Into<Box<str>>) -> Self {
        self.agent = given(id);
        self
    }

    /// Sets the user's id.
    #[must_use]
    pub fn with_user(mut self, id: impl Into<Box<str>>) -> Self {
        self.user = given(id);
        self
    }

    /// Sets the id of a thread: of one conversation, or of several that belong together.
    #[must_use]
    pub fn with_thread(mut self, id: impl Into<Box<str>>) -> Self {
        self.thread = given(id);
        self
    }

    /// The application's id.
    #[must_use]
    pub fn application(&self) -> Option<&str> {
        self.application.as_deref()
    }

    /// The agent's id.
    #[must_use]
    pub fn agent(&self) -> Option<&str> {
        self.agent.as_deref()
    }

    /// The user's id.
    #[must_use]
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// The id of the thread.
    #[must_use]
    pub fn thread(&self) -> Option<&str> {
        self.thread.as_deref()
    }

    /// Whether it has no id at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

fn given(id: impl Into<Box<str>>) -> Option<Box<str>> {
    Some(id.into()).filter(|id| !id.is_empty())
}
