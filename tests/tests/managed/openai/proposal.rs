//! The proposal's last worked example: `ManagedCompactor(OpenAICompactionProvider(client, "gpt-5.1-codex-max"))` as the agent's
//! default.

use std::sync::Arc;

use epitome::compaction::AutoCompaction;
use epitome::compactors::Managed;
use epitome::compactors::managed::openai::{MODEL, OpenAiCompaction, ResponsesVendor};
use epitome::core::Trigger;

use super::KEY;
use super::sessions::Chat;
use crate::managed::support::server;
use crate::managed::talk::Talk;

#[test]
fn openai_compacts_as_the_agents_default() {
    assert_eq!(MODEL, "gpt-5.1-codex-max");
    let base_url = format!("{}/openai/v1", server());
    let provider = OpenAiCompaction::of(ResponsesVendor::openai(), &base_url, KEY.into()).unwrap();
    let compactor = Managed::new(Arc::new(provider.with_model(MODEL))).unwrap();
    // By default the trigger is checked before each run.
    let auto = AutoCompaction::new(Arc::new(compactor)).with_trigger(Trigger::tokens(3_000));
    let chat = Chat::new("openai");
    let mut talk = Talk::new("m");
    let last = talk.go_on(30, &chat, auto);
    assert!(last.ends_with(" 30 facts"), "what the service has left stands for all that was said: {last}");
    assert_eq!((talk.facts(), talk.spent_on_compaction()), (30, talk.compacted as u64));
    let sent = chat.sent.lock().unwrap();
    let compactions = sent.iter().map(|body| {
        let items = body["input"].as_array().unwrap();
        items.iter().filter(|item| item["type"] == "compaction").count()
    });
    let compactions: Vec<usize> = compactions.collect();
    let first = compactions.iter().position(|count| *count > 0).unwrap();
    // A run has two calls here: a tool is called, and then the answer is given.
    assert!(first > 2 && first % 2 == 0, "the first request of a run: {first}");
    assert!(compactions[first..].iter().all(|count| *count == 1), "{compactions:?}");
}
