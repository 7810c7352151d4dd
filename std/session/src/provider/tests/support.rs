//! Providers and sessions for tests.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures::executor::block_on;

use crate::history::{HistoryStore, MemoryStore, SessionId};
use crate::message::{Message, Part};
use crate::provider::{ContextProvider, Hook, NamedAgent, Providers};
use crate::session::{AgentResponse, AgentSession, SessionContext, SessionError, State};

/// Record of the hooks that were called, in order.
pub(super) type Journal = Arc<Mutex<Vec<String>>>;

/// Records each call in a journal, adds one message, and counts in its state.
pub(super) struct Noting {
    pub(super) id: &'static str,
    pub(super) journal: Journal,
    /// The hook that fails, and the kind of failure.
    pub(super) trouble: Trouble,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    None,
    ErrorBefore,
    ErrorAfter,
    PanicBefore,
    PanicAfter,
    /// Never finishes.
    HangBefore,
}

impl Noting {
    pub(super) fn new(id: &'static str, journal: &Journal) -> Self {
        Self { id, journal: Arc::clone(journal), trouble: Trouble::None }
    }

    pub(super) const fn with(mut self, trouble: Trouble) -> Self {
        self.trouble = trouble;
        self
    }

    fn note(&self, hook: &str, state: &mut State) {
        let count = state.get(hook).and_then(serde_json::Value::as_u64).unwrap_or(0);
        state.insert(hook.to_owned(), (count + 1).into());
        self.journal.lock().unwrap().push(format!("{hook} {}", self.id));
    }
}

#[async_trait]
impl ContextProvider for Noting {
    fn source_id(&self) -> &str {
        self.id
    }

    async fn before_run(&self, hook: Hook<'_>) -> Result<(), SessionError> {
        let Hook { context, state, .. } = hook;
        self.note("before", state);
        context.extend_messages(self.id, [Message::user(format!("context of {}", self.id))]);
        match self.trouble {
            Trouble::ErrorBefore => Err(SessionError::invalid("on purpose")),
            Trouble::PanicBefore => panic!("on purpose"),
            Trouble::HangBefore => core::future::pending().await,
            _ => Ok(()),
        }
    }

    async fn after_run(&self, hook: Hook<'_>) -> Result<(), SessionError> {
        let Hook { state, .. } = hook;
        self.note("after", state);
        match self.trouble {
            Trouble::ErrorAfter => Err(SessionError::invalid("on purpose")),
            Trouble::PanicAfter => panic!("on purpose"),
            _ => Ok(()),
        }
    }
}

/// One whole run, with the input `says` and the model's answer.
pub(super) fn run(
    providers: &Providers,
    session: &mut AgentSession,
    token: &str,
    says: &str,
    answers: &str,
) -> SessionContext {
    let agent = NamedAgent::new("agent");
    let mut context = SessionContext::new(session, token, vec![Message::user(says)]);
    block_on(async {
        providers.before_run(&agent, session, &mut context).await.unwrap();
        context = context.with_response(AgentResponse::new(vec![Message::assistant(answers)]));
        providers.after_run(&agent, session, &mut context).await.unwrap();
        context
    })
}

/// The texts of these messages.
pub(super) fn texts<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Vec<String> {
    let text = |message: &Message| match message.parts() {
        [Part::Text(text)] => text.as_str().to_owned(),
        _ => String::new(),
    };
    messages.into_iter().map(text).collect()
}

/// The whole log of a session.
pub(super) fn log(store: &MemoryStore, session: &str) -> Vec<Message> {
    let range = epitome_core::Seq(0)..epitome_core::Seq(u64::MAX);
    match block_on(store.log(&SessionId::new(session), range, u32::MAX)) {
        Ok(page) => page.messages.into_iter().map(|logged| logged.entry.message).collect(),
        Err(_) => Vec::new(),
    }
}
