//! Selection of the messages of a run.

/// Selects messages of a [`SessionContext`](super::SessionContext). The default is the context of all sources, without
/// input and response. An unknown source selects nothing.
///
/// ```
/// use epitome_std::message::Message;
/// use epitome_std::session::{AgentSession, MessageFilter, SessionContext};
///
/// let mut context = SessionContext::new(&AgentSession::new(), "run-1", vec![Message::user("Is it warm?")]);
/// context.extend_messages("rag", [Message::user("31 degrees")]);
/// let count = |filter: MessageFilter| context.get_messages(&filter).len();
/// assert_eq!(count(MessageFilter::new()), 1);
/// assert_eq!(count(MessageFilter::new().exclude_sources(["rag"]).include_input()), 1);
/// assert_eq!(count(MessageFilter::new().sources(["unknown"])), 0);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MessageFilter {
    sources: Option<Vec<String>>,
    exclude_sources: Vec<String>,
    include_input: bool,
    include_response: bool,
}

impl MessageFilter {
    /// The context of all sources.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Limits the context to these sources; an empty list selects no context at all.
    #[must_use]
    pub fn sources<S: Into<String>>(mut self, sources: impl IntoIterator<Item = S>) -> Self {
        self.sources = Some(sources.into_iter().map(Into::into).collect());
        self
    }

    /// Excludes the context of these sources, also if [`MessageFilter::sources`] names them.
    #[must_use]
    pub fn exclude_sources<S: Into<String>>(mut self, sources: impl IntoIterator<Item = S>) -> Self {
        self.exclude_sources = sources.into_iter().map(Into::into).collect();
        self
    }

    /// Adds the run's input, after the context.
    #[must_use]
    pub const fn include_input(mut self) -> Self {
        self.include_input = true;
        self
    }

    /// Adds the response, after everything else.
    #[must_use]
    pub const fn include_response(mut self) -> Self {
        self.include_response = true;
        self
    }

    pub(super) fn allows(&self, source_id: &str) -> bool {
        let named = self.sources.as_ref().is_none_or(|sources| sources.iter().any(|it| it == source_id));
        named && !self.exclude_sources.iter().any(|it| it == source_id)
    }

    pub(super) const fn has_input(&self) -> bool {
        self.include_input
    }

    pub(super) const fn has_response(&self) -> bool {
        self.include_response
    }
}
