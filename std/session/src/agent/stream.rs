//! Runs whose answers arrive piece by piece.

use core::fmt;
use core::future::{Future, poll_fn};
use core::pin::{Pin, pin};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::task::{Context, Poll};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use futures::{FutureExt, Stream, StreamExt};

use super::{Agent, Input};
use crate::message::Message;
use crate::run::{Delta, RunError, RunEvent, RunOptions, RunOutcome};
use crate::session::AgentSession;

/// A run as a stream of its updates: see [`Agent::run_stream`].
///
/// The run goes on only while the stream is polled, or while it is [finished](Self::finish). An error of the run is the last item.
///
/// *Cancel safety*: dropping the stream drops the run. The pieces of an answer that have arrived are stored, marked
/// incomplete, when the next run of the session begins. [`RunStream::stop`] stores them at once.
#[must_use = "a run goes on only while its stream is polled"]
pub struct RunStream<'a> {
    state: State<'a>,
    updates: Arc<Updates>,
}

enum State<'a> {
    Running(BoxFuture<'a, Result<RunOutcome, RunError>>),
    Done(Box<RunOutcome>),
    Failed(RunError),
    /// Failed, and the error was returned to the caller.
    Told,
}

/// Something that happens in a run.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum RunUpdate {
    /// A piece of an answer of the model.
    Delta(Delta),
    /// An answer has ended: the next piece begins another one.
    AnswerEnded,
    /// The result of a tool, as the tool has returned it. Results of parallel tools come in the order in which the
    /// tools end.
    ToolResult(Message),
    /// An event of the run, for example a compaction. The outcome has all events.
    Event(RunEvent),
}

/// Updates that the reader of the stream has not received yet.
#[derive(Debug, Default)]
pub(super) struct Updates {
    queue: Mutex<VecDeque<RunUpdate>>,
    /// Number of events of the run that were pushed.
    events: AtomicUsize,
    is_stopped: AtomicBool,
}

impl Updates {
    pub(super) fn push(&self, update: RunUpdate) {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).push_back(update);
    }

    /// Pushes the events that were not pushed yet. `events` are all events of the run so far.
    pub(super) fn push_events(&self, events: &[RunEvent]) {
        let told = self.events.swap(events.len(), Ordering::Relaxed);
        let new = events.get(told..).unwrap_or_default();
        new.iter().for_each(|event| self.push(RunUpdate::Event(event.clone())));
    }

    fn pop(&self) -> Option<RunUpdate> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    /// Whether the reader has stopped the stream.
    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// Output of the future; `None` if the stream is stopped before. The caller polls the future again after a stop.
    pub(super) async fn unless_stopped<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let mut future = pin!(future);
        poll_fn(|cx| match self.is_stopped() {
            true => Poll::Ready(None),
            false => future.as_mut().poll(cx).map(Some),
        })
        .await
    }
}

impl Agent {
    /// Runs as [`Agent::run`], and returns a stream of updates: pieces of answers, tool results, events.
    ///
    /// ```
    /// # use async_trait::async_trait;
    /// # use epitome_std::agent::{Agent, ChatClient, ChatRequest, ClientError, RunUpdate};
    /// # use epitome_std::message::Message;
    /// # use epitome_std::run::{ModelResponse, RunOptions};
    /// # struct Client;
    /// # #[async_trait]
    /// # impl ChatClient for Client {
    /// #     async fn complete(&self, _: &ChatRequest<'_>) -> Result<ModelResponse, ClientError> {
    /// #         Ok(ModelResponse::new(vec![Message::assistant("Hello.")]))
    /// #     }
    /// # }
    /// use futures::StreamExt;
    ///
    /// # futures::executor::block_on(async {
    /// let agent = Agent::new("assistant", Client);
    /// let mut session = agent.create_session(None, None);
    /// let options = RunOptions::default();
    /// let mut stream = agent.run_stream(&mut session, "Hi", &options);
    /// let mut heard = String::new();
    /// while let Some(update) = stream.next().await {
    ///     if let RunUpdate::Delta(piece) = update? {
    ///         heard += &piece.text;
    ///     }
    /// }
    /// let outcome = stream.finish().await?;
    /// assert_eq!((heard.as_str(), outcome.response.messages.len()), ("Hello.", 1));
    /// # Ok::<(), epitome_std::run::RunError>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Agent::run`], as the last item of the stream. If the stream of the client breaks off in the middle of an
    /// answer, the error is [`RunError::Model`]. The pieces that have arrived are stored, marked incomplete, and the
    /// model is not asked again.
    pub fn run_stream<'a>(
        &'a self,
        session: &'a mut AgentSession,
        input: impl Into<Input>,
        options: &'a RunOptions,
    ) -> RunStream<'a> {
        let (input, updates) = (input.into(), Arc::<Updates>::default());
        let told = Arc::clone(&updates);
        let run = async move { self.drive(session, input, options, Some(&told)).await };
        RunStream { state: State::Running(run.boxed()), updates }
    }
}

impl RunStream<'_> {
    /// Runs to the end and discards the remaining updates. The outcome has the whole response.
    ///
    /// # Errors
    /// As [`Agent::run_stream`]; [`RunError::Misuse`] if the stream has already returned its error.
    ///
    /// # Cancel safety
    /// As the stream.
    pub async fn finish(mut self) -> Result<RunOutcome, RunError> {
        while let Some(update) = self.next().await {
            update?;
        }
        match self.state {
            State::Done(outcome) => Ok(*outcome),
            _ => Err(RunError::Misuse("the stream has told the error of its run already")),
        }
    }

    /// Stops the run: it no longer waits for the model, a tool or a compaction. The messages so far are stored, and the
    /// pieces of an answer that have arrived, marked incomplete. A run that has ended stays as it was. A run that was
    /// still beginning stores nothing, and its outcome is empty.
    ///
    /// # Errors
    /// As [`RunStream::finish`].
    ///
    /// # Cancel safety
    /// As the stream.
    pub async fn stop(self) -> Result<RunOutcome, RunError> {
        self.updates.is_stopped.store(true, Ordering::Relaxed);
        self.finish().await
    }
}

impl Stream for RunStream<'_> {
    type Item = Result<RunUpdate, RunError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let State::Running(run) = &mut self.state {
            match run.poll_unpin(cx) {
                Poll::Ready(Ok(outcome)) => self.state = State::Done(Box::new(outcome)),
                Poll::Ready(Err(error)) => self.state = State::Failed(error),
                Poll::Pending => {
                    return self.updates.pop().map_or(Poll::Pending, |update| Poll::Ready(Some(Ok(update))));
                }
            }
        }
        if let Some(update) = self.updates.pop() {
            return Poll::Ready(Some(Ok(update)));
        }
        Poll::Ready(match core::mem::replace(&mut self.state, State::Told) {
            State::Failed(error) => Some(Err(error)),
            ended => {
                self.state = ended;
                None
            }
        })
    }
}

impl fmt::Debug for RunStream<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_running = matches!(self.state, State::Running(_));
        f.debug_struct("RunStream").field("is_running", &is_running).finish_non_exhaustive()
    }
}
