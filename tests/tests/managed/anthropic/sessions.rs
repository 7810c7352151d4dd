//! Sessions of 200 turns with the compactor: the API accepts every request, and no fact is lost.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use epitome::agent::{ChatClient, ChatRequest, ClientError};
use epitome::compaction::{AutoCompaction, RunPoints};
use epitome::compactors::Managed;
use epitome::compactors::managed::ServerCompaction;
use epitome::compactors::managed::anthropic::{
    ClearThinking, ContextEdits, ON_DEMAND_BETA, ThresholdCompaction,
};
use epitome::core::Trigger;
use epitome::run::ModelResponse;
use epitome::wire::usage::reported;
use epitome::wire::{Format, ReadOptions, convert, read};
use serde_json::{Value, json};

use super::{KEY, MODEL, base, service};
use crate::managed::talk::{Talk, auto};

/// A chat client for the Messages API.
#[derive(Clone)]
pub(crate) struct Chat {
    http: reqwest::Client,
    pub(crate) sent: Arc<Mutex<Vec<Value>>>,
    /// The context edits that the API makes itself, if any.
    edits: Option<ContextEdits>,
}

impl Chat {
    pub(crate) fn new() -> Self {
        Self { http: reqwest::Client::new(), sent: Arc::default(), edits: None }
    }
}

#[async_trait]
impl ChatClient for Chat {
    async fn complete(&self, request: &ChatRequest<'_>) -> Result<ModelResponse, ClientError> {
        let mut body: Value = serde_json::from_str(&convert(request.messages, Format::Anthropic)?.text)?;
        body["model"] = request.model.into();
        body["max_tokens"] = 4_096.into();
        body["thinking"] = json!({"type": "adaptive"});
        let tool = |name: &str, description: &str, schema: &Value| json!({"name": name, "description": description, "input_schema": schema});
        let tools = request.tools.iter();
        body["tools"] = tools.map(|it| tool(&it.name, &it.description, &it.parameters)).collect();
        let mut betas = vec![ON_DEMAND_BETA];
        if let Some(edits) = &self.edits {
            betas = edits.betas();
            body = serde_json::from_str(&edits.apply(&body.to_string())?)?;
        }
        self.sent.lock().unwrap().push(body.clone());
        let request = self
            .http
            .post(format!("{}/v1/messages", base()))
            .header("x-api-key", KEY)
            .header("anthropic-version", "2023-06-01")
            .header("anthropic-beta", betas.join(","))
            .body(body.to_string());
        let answer = request.send().await?;
        let (ok, text) = (answer.status().is_success(), answer.text().await?);
        if !ok {
            return Err(text.into());
        }
        let transcript = read(text.as_str(), &ReadOptions::default().with_from(Format::Anthropic))?;
        let messages = transcript.conversations().iter().flat_map(|it| it.messages()).cloned().collect();
        Ok(ModelResponse::new(messages).with_usage(reported(&text)?.ok_or("no usage")?))
    }
}

pub(crate) fn managed() -> Managed {
    Managed::new(Arc::new(service())).unwrap().preserve_recent(2)
}

#[test]
fn on_demand() {
    let chat = Chat::new();
    let mut talk = Talk::new(MODEL);
    let last = talk.go_on(200, &chat, auto(managed(), 4_000));
    assert!(last.ends_with(" 200 facts"), "{last}");
    assert!(talk.compacted >= 5, "{} compactions", talk.compacted);
    assert_eq!(talk.spent_on_compaction(), talk.compacted as u64);
    let sent = chat.sent.lock().unwrap();
    let first = |body: &Value| body["messages"][0]["content"][0]["type"] == "compaction";
    let (with, without): (Vec<_>, Vec<_>) = sent.iter().partition(|body| first(body));
    assert!(with.len() > without.len(), "{} and {}", with.len(), without.len());
    assert!(with.iter().all(|body| body["messages"][0]["content"][0]["signature"].is_string()));
    let kept = with.iter().filter(|body| body["messages"].to_string().contains("\"thinking\"")).count();
    assert_eq!(kept, with.len(), "thinking is kept behind a summary");
}

/// The API compacts when a request passes a threshold. At the end of the run the messages before its block are hidden.
#[test]
fn at_a_threshold_in_passing() {
    let compaction = ThresholdCompaction::new().with_trigger(50_000).unwrap();
    let edits = ContextEdits::new().with_thinking(ClearThinking::keep_all()).with_compaction(compaction);
    let chat = Chat { edits: Some(edits), ..Chat::new() };
    let auto = AutoCompaction::new(ServerCompaction::anthropic())
        .with_trigger(Trigger::always())
        .with_points(RunPoints::NONE.and_after_run());
    let mut talk = Talk::new(MODEL);
    let last = talk.go_on(200, &chat, auto);
    assert!(last.ends_with(" 200 facts"), "{last}");
    assert!(talk.compacted >= 3, "{} compactions", talk.compacted);
    let sent = chat.sent.lock().unwrap();
    let longest = sent.iter().map(|body| body.to_string().len()).max().unwrap();
    assert!(longest < 75_000, "{longest} bytes");
    let blocks = |body: &&Value| body["messages"].to_string().contains(r#""type":"compaction""#);
    assert!(sent.iter().filter(blocks).count() > 100);
}
