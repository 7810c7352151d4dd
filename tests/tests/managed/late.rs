//! A late answer to a call that is already compacted: the next compaction includes it.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use epitome::compaction::CompactionOutcome;
use epitome::compactors::managed::anthropic::ON_DEMAND_BETA;
use epitome::compactors::managed::{Artefact, Capabilities, CompactionService, ServiceError, ServiceRequest};
use epitome::core::attribution::SourceKind;
use epitome::core::message::Role;
use epitome::history::{History, HistoryStore, MemoryStore};
use epitome::message::{Message, Part, ToolCall};

use crate::managed::support::{append, block_on, compact, managed, shown, ten_turns};
use crate::managed::{anthropic, openai};

/// A service that records the messages that it has to replace.
#[derive(Debug)]
struct Heard<S> {
    service: S,
    replaced: Arc<Mutex<Vec<Vec<Message>>>>,
}

#[async_trait]
impl<S: CompactionService> CompactionService for Heard<S> {
    fn provider(&self) -> &str {
        self.service.provider()
    }

    fn capabilities(&self) -> Option<Capabilities> {
        self.service.capabilities()
    }

    async fn compact(&self, request: &ServiceRequest<'_>) -> Result<Artefact, ServiceError> {
        self.replaced.lock().unwrap().push(request.replaced().iter().copied().cloned().collect());
        self.service.compact(request).await
    }
}

fn call() -> Message {
    Message::new(Role::Assistant, vec![Part::ToolCall(ToolCall::new("colleague", "ask", "{}"))])
}

fn answer() -> Message {
    Message::tool("colleague", "FACT-77: it was closed in May.")
}

/// Appends six turns without facts.
async fn goes_on(history: &mut History) {
    for turn in 0..6 {
        append(
            history,
            vec![Message::user(format!("And {turn}?")), Message::assistant("So it is. ".repeat(50))],
        )
        .await;
    }
}

/// The messages that a service had to replace in each of three compactions, and the visible messages after them.
async fn asked(service: impl CompactionService + 'static) -> (Vec<Vec<Message>>, Vec<Message>) {
    let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
    let replaced = Arc::new(Mutex::new(Vec::new()));
    let managed = managed(Heard { service, replaced: Arc::clone(&replaced) });
    let mut history = ten_turns(&store).await;
    append(&mut history, vec![Message::user("Ask the colleague."), call()]).await;
    for said in [None, Some(answer()), None] {
        if let Some(said) = said {
            append(&mut history, vec![said]).await;
        }
        goes_on(&mut history).await;
        let (outcome, _) = compact(&mut history, &managed).await;
        assert!(matches!(outcome, Ok(CompactionOutcome::Compacted(_))), "{outcome:?}");
    }
    assert!(!history.projection().any(|message| *message == answer()), "it is in no request");
    let replaced = core::mem::take(&mut *replaced.lock().unwrap());
    (replaced, shown(&history, &store).await)
}

/// Checks that the answer is sent once, with its call, directly after the part of the earlier compaction.
fn is_told_once(replaced: &[Vec<Message>]) {
    let tells = |messages: &Vec<Message>| messages.iter().filter(|message| **message == answer()).count();
    assert_eq!(replaced.iter().map(tells).collect::<Vec<_>>(), [0, 1, 0]);
    let is_left = |message: &Message| message.attribution().source == SourceKind::Compaction;
    let [_, second, _] = replaced else { panic!("{} compactions", replaced.len()) };
    let left = second.iter().position(is_left).unwrap();
    assert_eq!(second[left + 1..=left + 2], [call(), answer()]);
}

#[test]
fn an_answer_to_what_is_compacted_is_told_to_the_next_compaction() {
    block_on(async {
        for service in [openai::service("openai"), openai::service("openai").in_band()] {
            is_told_once(&asked(service).await.0);
        }
        let (replaced, shown) = asked(anthropic::service()).await;
        is_told_once(&replaced);
        let body = anthropic::faults::request(&shown);
        let (accepted, answer) = anthropic::client::post(&body, &[ON_DEMAND_BETA], None).await;
        assert!(accepted && answer.contains(" 11 facts"), "{answer}");
    });
}
