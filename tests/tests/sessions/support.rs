//! Clients, compactors and stores to test with.

use core::fmt;
use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use epitome::agent::{ChatClient, ChatRequest, ClientError, DeltaSink, RunStream, RunUpdate};
use epitome::compaction::{CompactionCx, CompactionOutcome, Compactor, UnchangedReason};
use epitome::compactors::Truncation;
use epitome::core::message::Role;
use epitome::core::{Outcome, Planner, Seq, Strategy, Usage};
use epitome::history::{HistoryStore, Notes, SessionId};
use epitome::message::{Message, Part, ToolCall};
use epitome::run::{CallDelta, Delta, ModelResponse, RunError, RunOutcome};
use epitome::session::{SessionError, SessionErrorKind};
use epitome_tests::around::pause;
use futures::StreamExt;
use futures::task::noop_waker;

/// Texts of the messages of one request, with their roles.
pub(crate) type Sent = Vec<String>;

/// Answer of the model to its nth request, which holds these messages.
type Answer = dyn Fn(usize, &[Message]) -> Result<ModelResponse, ClientError> + Send + Sync;

/// A model that takes its answers from a closure, and records its requests.
#[derive(Clone)]
pub(crate) struct Scripted {
    pub(crate) sent: Arc<Mutex<Vec<Sent>>>,
    answer: Arc<Answer>,
    /// Whether it streams, a letter at a time.
    streams: bool,
}

impl Scripted {
    pub(crate) fn new(
        answer: impl Fn(usize, &[Message]) -> Result<ModelResponse, ClientError> + Send + Sync + 'static,
    ) -> Self {
        Self { sent: Arc::default(), answer: Arc::new(answer), streams: false }
    }

    /// A model that answers every request with `text`.
    pub(crate) fn says(text: &'static str) -> Self {
        Self::new(move |_, _| Ok(ModelResponse::new(vec![Message::assistant(text)])))
    }

    pub(crate) fn streaming(mut self) -> Self {
        self.streams = true;
        self
    }

    pub(crate) fn last(&self) -> Sent {
        self.sent.lock().unwrap().last().cloned().unwrap_or_default()
    }

    fn next(&self, messages: &[Message]) -> Result<ModelResponse, ClientError> {
        let mut sent = self.sent.lock().unwrap();
        sent.push(texts(messages));
        (self.answer)(sent.len(), messages)
    }
}

#[async_trait]
impl ChatClient for Scripted {
    async fn complete(&self, request: &ChatRequest<'_>) -> Result<ModelResponse, ClientError> {
        pause().await;
        self.next(request.messages)
    }

    async fn stream(
        &self,
        request: &ChatRequest<'_>,
        on_delta: &mut DeltaSink<'_>,
    ) -> Result<Option<ModelResponse>, ClientError> {
        let response = self.complete(request).await?;
        if !self.streams {
            return Ok(Some(response));
        }
        for piece in response.messages.iter().flat_map(Message::parts).flat_map(pieces) {
            pause().await;
            if piece.text == "!" {
                return Err("the line is dead".into());
            }
            on_delta(piece.with_usage(response.usage.unwrap_or(Usage::new(10, 1))));
        }
        if let Some(reason) = response.finish_reason {
            on_delta(Delta::default().with_finish_reason(reason));
        }
        Ok(None)
    }
}

/// Reads the pieces of a stream, and stops the stream when `hear` returns false.
pub(crate) async fn listen(
    mut stream: RunStream<'_>,
    mut hear: impl FnMut(&Delta) -> bool,
) -> Result<RunOutcome, RunError> {
    while let Some(update) = stream.next().await {
        match update? {
            RunUpdate::Delta(piece) if !hear(&piece) => return stream.stop().await,
            _ => {}
        }
    }
    stream.finish().await
}

/// A text letter by letter; the arguments of a call in two pieces.
fn pieces(part: &Part) -> Vec<Delta> {
    match part {
        Part::Text(text) => text.chars().map(Delta::text).collect(),
        Part::ToolCall(ToolCall { id, name, arguments, .. }) => {
            let (head, tail) = arguments.split_at(arguments.len() / 2);
            let first = CallDelta::new(0, head).of(id.clone(), name.clone());
            vec![Delta::call(first), Delta::call(CallDelta::new(0, tail))]
        }
        _ => Vec::new(),
    }
}

/// Compacts by a strategy: a plan, the record of it, a commit.
#[derive(Debug)]
pub(crate) struct Truncating<S = Truncation>(pub(crate) S);

#[async_trait]
impl<S: Strategy + fmt::Debug + Send + Sync> Compactor for Truncating<S> {
    fn name(&self) -> &str {
        self.0.name()
    }

    async fn compact(&self, cx: &mut CompactionCx<'_>) -> Result<CompactionOutcome, SessionError> {
        let (budget, pass, before, mut planner) = (*cx.budget(), cx.pass(), cx.measure(), Planner::new());
        let history = cx.history();
        let planned = planner.plan(history.index(), &budget, pass, &self.0);
        let planned = planned.map_err(|error| {
            SessionError::new(SessionErrorKind::Infeasible, "truncate").with_source(error)
        })?;
        let record = match planned {
            Outcome::Unchanged(reason) => {
                return Ok(CompactionOutcome::Unchanged(UnchangedReason::Plan(reason)));
            }
            Outcome::Planned(plan) => {
                let filled =
                    history.fill(plan, &Notes::default(), |ready| history.record(&ready, self.0.name()));
                filled.map_err(|error| {
                    SessionError::new(SessionErrorKind::Infeasible, "truncate").with_source(error)
                })?
            }
        };
        history.commit(&record).await?;
        Ok(CompactionOutcome::Compacted(cx.result_since(before)))
    }
}

/// A compactor that always fails.
#[derive(Debug)]
pub(crate) struct Failing;

#[async_trait]
impl Compactor for Failing {
    fn name(&self) -> &str {
        "failing"
    }

    async fn compact(&self, _: &mut CompactionCx<'_>) -> Result<CompactionOutcome, SessionError> {
        Err(SessionError::new(SessionErrorKind::Unavailable, "on purpose"))
    }
}

/// A call of the tool `name`.
pub(crate) fn call(id: &str, name: &str) -> Message {
    Message::new(Role::Assistant, vec![Part::ToolCall(ToolCall::new(id, name, "{}"))])
}

/// `role: text` of each message; `call ID` and `result ID: text` for those.
pub(crate) fn texts<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Vec<String> {
    messages.into_iter().map(text).collect()
}

fn text(message: &Message) -> String {
    let parts = message.parts().iter().map(|part| match part {
        Part::Text(text) => text.to_string(),
        Part::ToolCall(call) => format!("call {}", call.id.as_str()),
        Part::ToolResult(result) => {
            let said = |part: &Part| {
                if let Part::Text(text) = part { text.to_string() } else { format!("{part:?}") }
            };
            let said: String = result.parts.iter().map(said).collect();
            format!("result {}: {said}", result.call_id.as_str())
        }
        other => format!("{other:?}"),
    });
    format!("{}: {}", message.role().as_str(), parts.collect::<Vec<_>>().join("|"))
}

/// Waits for a future, also within another one: an executor of one thread cannot be entered twice.
fn wait<T>(future: impl Future<Output = T>) -> T {
    let (mut future, waker) = (pin!(future), noop_waker());
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return value;
        }
        std::thread::yield_now();
    }
}

/// The whole log of a session.
pub(crate) fn log(store: &dyn HistoryStore, session: &str) -> Vec<Message> {
    let all = Seq(0)..Seq(u64::MAX);
    match wait(store.log(&SessionId::new(session), all, u32::MAX)) {
        Ok(page) => page.messages.into_iter().map(|logged| logged.entry.message).collect(),
        Err(_) => Vec::new(),
    }
}

/// The URL of a server that tests may use; `None`, after a message, if there is none.
pub(crate) fn server(name: &str) -> Option<String> {
    let value = |name: &str| std::env::var_os(name)?.into_string().ok().filter(|value| !value.is_empty());
    let variable = format!("EPITOME_TEST_{}", name.to_uppercase());
    let url = value(&variable);
    if url.is_none() {
        let required = value("EPITOME_REQUIRE").unwrap_or_default();
        assert!(!required.split(',').any(|word| word == name), "{variable} names no server");
        eprintln!("skipped: {variable} names no server; tests/servers.sh starts one");
    }
    url
}

/// Texts that a fresh process shows of a session.
pub(crate) fn shown(store: &dyn HistoryStore, session: &str) -> Vec<String> {
    let loaded = wait(store.load(&SessionId::new(session)));
    loaded.map_or_else(|_| Vec::new(), |loaded| texts(loaded.live.iter().map(|live| &live.entry.message)))
}
