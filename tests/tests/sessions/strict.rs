//! A service that refuses requests above the window of its model, and runs of an agent with this service.

use std::sync::{Arc, Mutex};

use epitome::agent::{Agent, ClientError};
use epitome::compaction::AutoCompaction;
use epitome::compactors::Truncation;
use epitome::core::{ClassEstimator, Usage, count_message};
use epitome::message::Message;
use epitome::run::{ModelResponse, RunEvent, RunOptions, RunSettings};
use epitome::session::AgentSession;
use epitome::wire::context_overflow;
use futures::executor::block_on;

use crate::sessions::support::{Scripted, Truncating};

pub(crate) const WINDOW: u64 = 4_000;
const ANSWER: &str = "It is the third door on the left, and the key is under the mat. ";

/// A service with a model of `window` tokens. It counts `heavier` tokens for each token of the estimator, and reports
/// its count.
#[derive(Clone)]
pub(crate) struct Strict {
    pub(crate) window: u64,
    pub(crate) heavier: u64,
    /// Whether a refusal has numbers.
    pub(crate) tells: bool,
    /// The limit that a refusal names, if it is not `window`.
    pub(crate) claims: Option<u64>,
    /// Tokens that a request has to leave for the answer.
    pub(crate) answer_max: u64,
    pub(crate) streams: bool,
    /// The count of each request, and whether it was answered.
    pub(crate) asked: Arc<Mutex<Vec<(u64, bool)>>>,
}

impl Strict {
    pub(crate) fn new(window: u64) -> Self {
        Self {
            window,
            heavier: 1,
            tells: true,
            claims: None,
            answer_max: 0,
            streams: false,
            asked: Arc::default(),
        }
    }

    pub(crate) fn refusals(&self) -> usize {
        self.asked.lock().unwrap().iter().filter(|(_, answered)| !answered).count()
    }

    /// A client of the service, for an agent.
    pub(crate) fn client(&self) -> Scripted {
        let service = self.clone();
        let client = Scripted::new(move |_, messages| service.answer(messages));
        if self.streams { client.streaming() } else { client }
    }

    fn answer(&self, messages: &[Message]) -> Result<ModelResponse, ClientError> {
        let counter = ClassEstimator::new();
        let count = |message: &Message| count_message(message, &counter).as_u64();
        let sent = messages.iter().map(count).sum::<u64>() * self.heavier;
        let fits = sent <= self.window - self.answer_max;
        self.asked.lock().unwrap().push((sent, fits));
        if fits {
            let answer = Message::assistant(ANSWER.repeat(4));
            return Ok(ModelResponse::new(vec![answer])
                .with_usage(Usage::new(sent, 80))
                .with_finish_reason("stop"));
        }
        let message = match self.tells {
            true if self.answer_max > 0 => format!(
                "input length and `max_tokens` exceed context limit: {sent} + {} > {}",
                self.answer_max, self.window
            ),
            true => {
                format!("prompt is too long: {sent} tokens > {} maximum", self.claims.unwrap_or(self.window))
            }
            false => "Your input exceeds the context window of this model.".to_owned(),
        };
        let body = serde_json::json!({"error": {"message": message}}).to_string();
        Err(context_overflow(400, &body).unwrap().into())
    }
}

pub(crate) fn compaction() -> AutoCompaction {
    AutoCompaction::new(Truncating(Truncation::new()))
}

pub(crate) fn agent(settings: RunSettings, client: &Strict) -> Agent {
    Agent::with_settings(settings, client.client())
}

/// Runs with questions of some 60 tokens, by turns without and with a stream. Returns the events of all runs.
pub(crate) fn talk(agent: &Agent, session: &mut AgentSession, runs: usize) -> Vec<RunEvent> {
    let mut happened = Vec::new();
    for run in 0..runs {
        let (question, options) = (format!("{run}: {}", "where is it? ".repeat(15)), RunOptions::default());
        let outcome = match run % 2 {
            0 => block_on(agent.run(session, question, &options)),
            _ => block_on(agent.run_stream(session, question, &options).finish()),
        };
        let outcome = outcome.unwrap();
        assert_eq!(outcome.response.messages, [Message::assistant(ANSWER.repeat(4))], "{run}");
        assert_eq!(outcome.response.finish_reason.as_deref(), Some("stop"));
        happened.extend(outcome.events);
    }
    happened
}

pub(crate) fn compactions(events: &[RunEvent]) -> usize {
    events.iter().filter(|event| matches!(event, RunEvent::Compacted { .. })).count()
}
