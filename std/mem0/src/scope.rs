//! The scope of memories: user, agent, application, thread.

use serde_json::{Map, Value};

/// The owner of memories that are stored or searched. A stored memory has all of these ids.
///
/// A search looks at the memories of the user and at those of the agent, each by itself: of the application and the thread too, if these
/// are given. Without a user and an agent it looks at all memories of the application, or else of the thread.
///
/// ```
/// use epitome_mem0::Scope;
///
/// let scope = Scope::default().with_user("alice").with_agent("helper");
/// assert_ne!(scope, Scope::default());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scope {
    user: Option<Box<str>>,
    agent: Option<Box<str>>,
    application: Option<Box<str>>,
    thread: Option<Box<str>>,
}

/// The ids that an answer must have to belong to a search.
pub(crate) type Filter = Map<String, Value>;

impl Scope {
    /// Sets the user's id; an empty one is none.
    #[must_use]
    pub fn with_user(mut self, id: impl Into<Box<str>>) -> Self {
        self.user = given(id);
        self
    }

    /// Sets the agent's id. In a search it finds what was stored under that agent for *any* user: only what all users may know.
    #[must_use]
    pub fn with_agent(mut self, id: impl Into<Box<str>>) -> Self {
        self.agent = given(id);
        self
    }

    /// Sets the application's id, which only the service of mem0.ai knows.
    #[must_use]
    pub fn with_application(mut self, id: impl Into<Box<str>>) -> Self {
        self.application = given(id);
        self
    }

    /// Sets the id of a thread, which Mem0 calls a run.
    #[must_use]
    pub fn with_thread(mut self, id: impl Into<Box<str>>) -> Self {
        self.thread = given(id);
        self
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.user.is_none() && self.agent.is_none() && self.application.is_none() && self.thread.is_none()
    }

    pub(crate) const fn has_application(&self) -> bool {
        self.application.is_some()
    }

    /// All ids, as what is stored has them.
    pub(crate) fn stamp(&self) -> Filter {
        filter([
            ("user_id", &self.user),
            ("agent_id", &self.agent),
            ("app_id", &self.application),
            ("run_id", &self.thread),
        ])
    }

    /// The filters of a search, one for each of its requests.
    pub(crate) fn filters(&self) -> Vec<Filter> {
        let narrowed = |name, id: &Option<Box<str>>| {
            id.as_ref().map(|_| filter([(name, id), ("app_id", &self.application), ("run_id", &self.thread)]))
        };
        let filters: Vec<_> = [narrowed("user_id", &self.user), narrowed("agent_id", &self.agent)]
            .into_iter()
            .flatten()
            .collect();
        match filters.is_empty() && !self.is_empty() {
            true => vec![filter([("app_id", &self.application), ("run_id", &self.thread)])],
            false => filters,
        }
    }
}

fn given(id: impl Into<Box<str>>) -> Option<Box<str>> {
    Some(id.into()).filter(|id| !id.is_empty())
}

fn filter<const N: usize>(ids: [(&str, &Option<Box<str>>); N]) -> Filter {
    let given =
        ids.into_iter().filter_map(|(name, id)| Some((name.to_owned(), Value::from(&**id.as_ref()?))));
    given.collect()
}
