//! A conversation that is compacted, with a tool that returns a new fact at each call.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use epitome::agent::{Agent, ChatClient, ToolOutput};
use epitome::compaction::{AutoCompaction, Compactor, Discarded, RunPoints};
use epitome::core::{Budget, ClassEstimator, ModelKey, Trigger};
use epitome::message::{Message, Part};
use epitome::provider::{HistoryProvider, Providers};
use epitome::run::{Persistence, RunEvent, RunOptions, RunSettings};
use epitome::session::{AgentSession, Tool};
use epitome::wire::ConversionLoss;
use serde_json::json;

use crate::managed::support::block_on;

/// A conversation that goes on with any client and compactor.
pub(crate) struct Talk {
    settings: RunSettings,
    model: String,
    facts: Arc<AtomicUsize>,
    session: AgentSession,
    pub(crate) compacted: usize,
    /// Number of times that the service has compacted the session that it keeps, and has forgotten it.
    pub(crate) renewed: usize,
    pub(crate) forgotten: usize,
    /// Number of compactions that were begun before they were due, and the reasons why some were not used.
    pub(crate) begun: usize,
    pub(crate) discarded: Vec<Discarded>,
    /// Content that the compactor did not receive.
    pub(crate) not_told: Vec<ConversionLoss>,
    /// Messages that the user adds to the next question.
    next: Vec<Message>,
}

impl Talk {
    pub(crate) fn new(model: &str) -> Self {
        let tool = Tool::new("look", "Looks something up.", json!({"type": "object", "properties": {}}));
        let mut providers = Providers::default();
        providers.push(HistoryProvider::in_memory()).unwrap();
        let settings = RunSettings::new("a")
            .with_instructions("Be brief.")
            .with_tools(vec![tool])
            .with_providers(providers);
        let session = AgentSession::with_id("s");
        Self {
            settings,
            model: model.into(),
            facts: Arc::default(),
            session,
            compacted: 0,
            renewed: 0,
            forgotten: 0,
            begun: 0,
            discarded: Vec::new(),
            not_told: Vec::new(),
            next: Vec::new(),
        }
    }

    /// Goes on for a number of turns with this client and compactor; returns the last answer.
    pub(crate) fn go_on(
        &mut self,
        turns: usize,
        chat: &(impl ChatClient + Clone + 'static),
        auto: AutoCompaction,
    ) -> String {
        let facts = Arc::clone(&self.facts);
        let tell = move || {
            let fact = facts.fetch_add(1, Ordering::Relaxed);
            ToolOutput::new(format!("FACT-{fact}: {}", "found where it was. ".repeat(40)))
        };
        let settings = self.settings.clone().with_model(self.model.as_str()).with_compaction(auto);
        let agent = Agent::with_settings(settings, chat.clone()).with_tool_runner(move |_| {
            let output = tell();
            Box::pin(async { output })
        });
        let mut last = String::new();
        block_on(async {
            for turn in 0..turns {
                let mut says = core::mem::take(&mut self.next);
                says.push(Message::user(format!("question {turn}")));
                let outcome = agent.run(&mut self.session, says, &RunOptions::default()).await;
                let outcome = outcome.unwrap_or_else(|error| panic!("turn {turn}: {error:?}"));
                let failed = outcome.events.iter().find(|it| matches!(it, RunEvent::Failed { .. }));
                assert_eq!(failed, None, "turn {turn}");
                let compacted = outcome.events.iter().filter(|it| matches!(it, RunEvent::Compacted { .. }));
                self.compacted += compacted.count();
                let count = |what: fn(&RunEvent) -> bool| outcome.events.iter().filter(|it| what(it)).count();
                self.renewed += count(|it| matches!(it, RunEvent::Renewed { .. }));
                self.forgotten += count(|it| *it == RunEvent::Forgotten);
                self.begun += count(|it| matches!(it, RunEvent::Begun { .. }));
                for event in &outcome.events {
                    match event {
                        RunEvent::NotTold { losses, .. } => self.not_told.extend(losses.iter().cloned()),
                        RunEvent::Discarded { why, .. } => self.discarded.push(*why),
                        _ => {}
                    }
                }
                last = text(outcome.response.messages.last().unwrap());
            }
        });
        last
    }

    /// Adds this message to the user's input of the next turn.
    pub(crate) fn hears(&mut self, message: Message) {
        self.next.push(message);
    }

    /// Sets the times at which messages are stored.
    pub(crate) fn storing(mut self, persistence: Persistence) -> Self {
        self.settings = self.settings.with_persistence(persistence);
        self
    }

    /// Goes on with another model.
    pub(crate) fn turn_to(&mut self, model: &str) {
        self.model = model.into();
    }

    /// Number of facts that the tool has returned.
    pub(crate) fn facts(&self) -> usize {
        self.facts.load(Ordering::Relaxed)
    }

    pub(crate) fn spent_on_compaction(&mut self) -> u64 {
        let counter = ClassEstimator::new();
        let budget = Budget::builder().window(128_000).trigger(100_000).build().unwrap();
        let key = ModelKey::new(&self.model, &counter);
        self.session.ledger_for(key, budget).compaction_spend().reports
    }
}

pub(crate) fn text(message: &Message) -> String {
    let texts = message.parts().iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// Compacts before a model call that would be larger than this number of tokens.
pub(crate) fn auto(compactor: impl Compactor + 'static, tokens: u64) -> AutoCompaction {
    AutoCompaction::new(compactor)
        .with_trigger(Trigger::tokens(tokens))
        .with_points(RunPoints::NONE.and_before_call())
}
