//! Parts of one run.

use core::fmt;
use core::ops::Range;

use epitome_core::Seq;
use epitome_core::attribution::{Retention, SourceKind};
use epitome_core::message::Role;
use serde_json::{Map, Value};

use super::tool::CONTEXT_SOURCE;
use super::{AgentResponse, AgentSession, MessageFilter, ServiceSessionId, SessionErrorKind, Tool};
use crate::history::{History, SessionId};
use crate::message::{Message, Str};

mod left;

pub(crate) use left::KeptRun;

/// The context of one run: made for the run, filled by the providers in their order, and read by them afterwards.
///
/// The request consists of the instructions as one system text, the context by source, and the input. The sources stand
/// in the order of their first additions.
///
/// ```
/// use epitome_std::message::Message;
/// use epitome_std::session::{AgentSession, MessageFilter, SessionContext};
///
/// let session = AgentSession::with_id("demo");
/// let mut context = SessionContext::new(&session, "run-1", vec![Message::user("Is it warm?")]);
/// context.extend_instructions("persona", ["Be brief."]);
/// context.extend_messages("rag", [Message::system("Relevant: 31 degrees")]);
///
/// let filter = MessageFilter::new().exclude_sources(["rag"]).include_input();
/// assert_eq!(context.get_messages(&filter).len(), 1);
/// assert_eq!(context.prompt_messages().count(), 2);
/// assert_eq!(context.instruction_text().as_deref(), Some("Be brief."));
/// ```
pub struct SessionContext {
    session_id: SessionId,
    service_session_id: Option<ServiceSessionId>,
    run_token: Str,
    input_messages: Vec<Message>,
    context: Vec<ContextMessages>,
    instructions: Vec<Instruction>,
    tools: Vec<Tool>,
    response: Option<AgentResponse>,
    options: Map<String, Value>,
    /// The notes of providers for each other in this run.
    pub metadata: Map<String, Value>,
    histories: Vec<(Str, History)>,
    /// Progress of each history provider in storing the run, by source id.
    progress: Vec<(Str, Progress)>,
    /// Whether the run was read with its session: it may have gone on after the session was written.
    was_read: bool,
    /// The history providers that have not kept the session's state, by source id, with the reason.
    states_not_kept: Vec<(Str, SessionErrorKind)>,
}

/// Progress of one history provider in storing a run.
#[derive(Debug, Default, Clone)]
pub(crate) struct Progress {
    /// The sequence numbers of the stored messages, in order.
    seqs: Vec<Seq>,
    /// The end of an append that got no answer. The append is repeated as it was, before anything else.
    attempted: Option<usize>,
}

impl Progress {
    /// Range of the messages that are stored next, of `len`; `None` if it is empty.
    pub(crate) fn next_part(&mut self, len: usize) -> Option<Range<usize>> {
        let part = self.seqs.len()..*self.attempted.get_or_insert(len);
        if part.is_empty() {
            self.attempted = None;
        }
        (!part.is_empty()).then_some(part)
    }

    /// Records that `part` is stored, from `first` on.
    pub(crate) fn stored(&mut self, part: &Range<usize>, first: Seq) {
        self.seqs.extend((first.0..).map(Seq).take(part.len()));
        self.attempted = None;
    }

    /// The sequence numbers of the stored messages, in order.
    pub(crate) fn seqs(&self) -> &[Seq] {
        &self.seqs
    }
}

/// The context that one source has added.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ContextMessages {
    /// The source that added it.
    pub source_id: Str,
    /// The messages, in the order in which they were added.
    pub messages: Vec<Message>,
    /// Whether a history provider has loaded them: they are stored already.
    pub loaded: bool,
}

/// Instructions for this run, and their source.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Instruction {
    /// The provider's source id; empty for the agent.
    pub source_id: Str,
    /// The text.
    pub text: Str,
}

impl SessionContext {
    /// The context of a run of `session` on `input`. `run_token` is the idempotency token of the run. Two runs of a
    /// session never have the same one. A repeated run has the same one, so that nothing is stored twice.
    #[must_use]
    pub fn new(session: &AgentSession, run_token: impl Into<Str>, input: Vec<Message>) -> Self {
        Self {
            session_id: session.session_id().clone(),
            service_session_id: session.service_session_id().cloned(),
            run_token: run_token.into(),
            input_messages: input,
            context: Vec::new(),
            instructions: Vec::new(),
            tools: Vec::new(),
            response: None,
            options: Map::new(),
            metadata: Map::new(),
            histories: Vec::new(),
            progress: Vec::new(),
            was_read: false,
            states_not_kept: Vec::new(),
        }
    }

    /// Sets the agent's own instructions, which come before those of providers. An empty text adds nothing.
    #[must_use]
    pub fn with_instructions(mut self, text: impl Into<Str>) -> Self {
        self.instructions.insert(0, Instruction { source_id: Str::default(), text: text.into() });
        self
    }

    /// Sets the agent's own tools.
    #[must_use]
    pub fn with_tools(mut self, tools: Vec<Tool>) -> Self {
        self.tools = tools;
        self
    }

    /// Sets the options of the run.
    #[must_use]
    pub fn with_options(mut self, options: Map<String, Value>) -> Self {
        self.options = options;
        self
    }

    /// Adds messages after the earlier messages of this source.
    ///
    /// A message that names no source gets this one, as context. Instructions in the context (system and developer
    /// messages) without a retention become ephemeral: they come again with the next run.
    pub fn extend_messages(
        &mut self,
        source_id: impl Into<Str>,
        messages: impl IntoIterator<Item = Message>,
    ) {
        let source_id = source_id.into();
        let of_source = |message| of_source(message, &source_id);
        let messages: Vec<_> = messages.into_iter().map(of_source).collect();
        self.place(source_id).messages.extend(messages);
    }

    /// Adds messages that a history provider has loaded. They keep the attribution with which they were stored.
    pub fn extend_loaded(&mut self, source_id: impl Into<Str>, messages: impl IntoIterator<Item = Message>) {
        let place = self.place(source_id.into());
        place.loaded = true;
        place.messages.extend(messages);
    }

    /// Adds a history that was loaded after the run had begun, because the service no longer keeps it. It takes the
    /// place of its source, or the place before the sources `behind`. Providers do not see its messages, as in a run
    /// whose history the service keeps.
    pub(crate) fn load_late(&mut self, source_id: &str, history: History, behind: &[&str]) {
        self.service_session_id = None;
        self.put_history(source_id, history);
        if let Some(place) = self.context.iter_mut().find(|place| place.source_id == *source_id) {
            (place.loaded, place.messages) = (true, Vec::new());
            return;
        }
        let is_behind = |it: &ContextMessages| behind.contains(&it.source_id.as_str());
        let at = self.context.iter().position(is_behind).unwrap_or(self.context.len());
        let place = ContextMessages { source_id: source_id.into(), messages: Vec::new(), loaded: true };
        self.context.insert(at, place);
    }

    /// Adds instructions, after those that are there.
    pub fn extend_instructions<T: Into<Str>>(
        &mut self,
        source_id: impl Into<Str>,
        texts: impl IntoIterator<Item = T>,
    ) {
        let source_id = source_id.into();
        let instruction = |text: T| Instruction { source_id: source_id.clone(), text: text.into() };
        self.instructions.extend(texts.into_iter().map(instruction));
    }

    /// Adds tools. The `metadata` of each gets the source id under [`CONTEXT_SOURCE`]. The caller's own tools stay as
    /// they are: give a copy.
    pub fn extend_tools(&mut self, source_id: &str, tools: impl IntoIterator<Item = Tool>) {
        self.tools.extend(tools.into_iter().map(|mut tool| {
            tool.metadata.insert(CONTEXT_SOURCE.to_owned(), Value::from(source_id));
            tool
        }));
    }

    /// Sets the answer of the model, for callers that call the model themselves.
    #[must_use]
    pub fn with_response(mut self, response: AgentResponse) -> Self {
        self.response = Some(response);
        self
    }

    /// The response so far. Begins an empty one if there is none.
    pub(crate) fn response_mut(&mut self) -> &mut AgentResponse {
        self.response.get_or_insert_default()
    }

    /// Progress of the history provider `source_id` in storing the run.
    pub(crate) fn progress_mut(&mut self, source_id: &str) -> &mut Progress {
        let known = self.progress.iter().position(|(known, _)| *known == *source_id);
        let at = known.unwrap_or_else(|| {
            self.progress.push((Str::from(source_id), Progress::default()));
            self.progress.len().saturating_sub(1)
        });
        #[expect(clippy::indexing_slicing, reason = "found, or pushed just before")]
        &mut self.progress[at].1
    }

    /// The history providers that have not kept the session's state in this run, with the reason: `Conflict` if another
    /// state was kept since the session was loaded, `Invalid` if the store keeps no states.
    #[must_use]
    pub fn states_not_kept(&self) -> &[(Str, SessionErrorKind)] {
        &self.states_not_kept
    }

    /// Records that a history provider has not kept the session's state.
    pub(crate) fn state_not_kept(&mut self, source_id: &str, why: SessionErrorKind) {
        if self.states_not_kept.iter().all(|(known, _)| **known != *source_id) {
            self.states_not_kept.push((source_id.into(), why));
        }
    }

    /// Keeps a history that was opened for this run, so that it need not be loaded again to store messages.
    pub fn put_history(&mut self, source_id: impl Into<Str>, history: History) {
        let source_id = source_id.into();
        self.histories.retain(|(kept, _)| *kept != source_id);
        self.histories.push((source_id, history));
    }

    /// Takes the history that this source has opened, if there is one.
    pub fn take_history(&mut self, source_id: &str) -> Option<History> {
        let at = self.histories.iter().position(|(kept, _)| *kept == *source_id)?;
        Some(self.histories.swap_remove(at).1)
    }

    /// The history that this source has opened, if there is one.
    #[must_use]
    pub fn history(&self, source_id: &str) -> Option<&History> {
        let kept = self.histories.iter().find(|(kept, _)| *kept == *source_id);
        // A history that was opened only to append shows no messages.
        kept.map(|(_, history)| history).filter(|history| history.is_whole())
    }

    /// Replaces the messages that a history provider has loaded, after a compaction of its history. Its place stays.
    pub fn reload(&mut self, source_id: &str, messages: Vec<Message>) {
        if let Some(place) = self.context.iter_mut().find(|it| it.source_id == *source_id) {
            place.messages = messages;
        }
    }

    /// The messages that `filter` selects: context in provider order, then input, then response.
    #[must_use]
    pub fn get_messages(&self, filter: &MessageFilter) -> Vec<&Message> {
        let context =
            self.context.iter().filter(|it| filter.allows(&it.source_id)).flat_map(|it| &it.messages);
        let input = self.input_messages.iter().filter(|_| filter.has_input());
        let response = self.response.iter().filter(|_| filter.has_response()).flat_map(|it| &it.messages);
        context.chain(input).chain(response).collect()
    }

    /// The messages of the request: context in provider order, then input. Instructions stand before them.
    pub fn prompt_messages(&self) -> impl Iterator<Item = &Message> {
        self.context.iter().flat_map(|it| &it.messages).chain(&self.input_messages)
    }

    /// All instructions, the agent's first, as one text with blank lines between; `None` if there are none.
    #[must_use]
    pub fn instruction_text(&self) -> Option<String> {
        let texts: Vec<&str> =
            self.instructions.iter().map(|it| it.text.as_str()).filter(|text| !text.is_empty()).collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }

    /// The session's id.
    #[must_use]
    pub const fn session_id(&self) -> &SessionId {
        &self.session_id
    }

    /// The id of the session that the service keeps, if it keeps one: it then has the history.
    #[must_use]
    pub const fn service_session_id(&self) -> Option<&ServiceSessionId> {
        self.service_session_id.as_ref()
    }

    /// The idempotency token of the run.
    #[must_use]
    pub fn run_token(&self) -> &str {
        &self.run_token
    }

    /// The user's input of this run.
    #[must_use]
    pub fn input_messages(&self) -> &[Message] {
        &self.input_messages
    }

    /// The messages that were added, by source, in the order in which sources first added something.
    #[must_use]
    pub fn context_messages(&self) -> &[ContextMessages] {
        &self.context
    }

    /// The instructions, in order.
    #[must_use]
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// The tools, in order.
    #[must_use]
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// The answer of the model; `None` before it has come.
    #[must_use]
    pub const fn response(&self) -> Option<&AgentResponse> {
        self.response.as_ref()
    }

    /// The options of the run. Providers can read them and cannot change them.
    #[must_use]
    pub const fn options(&self) -> &Map<String, Value> {
        &self.options
    }

    fn place(&mut self, source_id: Str) -> &mut ContextMessages {
        let at = self.context.iter().position(|it| it.source_id == source_id).unwrap_or_else(|| {
            self.context.push(ContextMessages { source_id, messages: Vec::new(), loaded: false });
            self.context.len().saturating_sub(1)
        });
        #[expect(clippy::indexing_slicing, reason = "found, or pushed just before")]
        &mut self.context[at]
    }
}

impl fmt::Debug for SessionContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sources: Vec<&str> = self.context.iter().map(|it| it.source_id.as_str()).collect();
        f.debug_struct("SessionContext")
            .field("session_id", &self.session_id)
            .field("run_token", &self.run_token.as_str())
            .field("input_messages", &self.input_messages.len())
            .field("sources", &sources)
            .field("tools", &self.tools.len())
            .field("responded", &self.response.is_some())
            .finish_non_exhaustive()
    }
}

/// `message` as context of `source_id`, unless it names a source.
fn of_source(message: Message, source_id: &Str) -> Message {
    let mut attribution = message.attribution().clone();
    if attribution.source_id.is_empty() && attribution.source == SourceKind::Caller {
        (attribution.source_id, attribution.source) = (source_id.clone(), SourceKind::Context);
    }
    let instructs = matches!(message.role(), Role::System | Role::Developer);
    if instructs && attribution.retention == Retention::Normal {
        attribution.retention = Retention::Ephemeral;
    }
    message.with_attribution(attribution)
}
