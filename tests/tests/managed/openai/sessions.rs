//! Sessions of 200 turns: the service accepts every request, and no fact is lost.

use core::num::NonZeroU64;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use epitome::agent::{ChatClient, ChatRequest, ClientError, SessionForgotten};
use epitome::compaction::{AutoCompaction, RunPoints};
use epitome::compactors::DigestSummarizer;
use epitome::compactors::managed::openai::{
    OpenAiCompaction, ResponsesVendor, ServerCompaction, context_management, continued_input, input,
};
use epitome::core::Trigger;
use epitome::core::message::Role;
use epitome::message::{Message, Part};
use epitome::run::ModelResponse;
use epitome::session::ServiceSessionId;
use epitome::wire::usage::reported;
use epitome::wire::{Format, ReadOptions, read, session_forgotten};
use serde_json::{Value, json};

use super::{KEY, service};
use crate::managed::support::{block_on, case, managed, server};
use crate::managed::talk::{Talk, auto};

/// A chat client for the Responses API.
#[derive(Clone)]
pub(crate) struct Chat {
    http: reqwest::Client,
    vendor: ResponsesVendor,
    /// Value of `context_management`.
    edits: Option<String>,
    /// Whether the service keeps the conversation.
    keeps: bool,
    /// Faults of requests, by their numbers.
    faults: HashMap<usize, &'static str>,
    pub(crate) sent: Arc<Mutex<Vec<Value>>>,
}

impl Chat {
    pub(crate) fn new(vendor: &str) -> Self {
        let vendor = match vendor {
            "xai" => ResponsesVendor::xai(),
            vendor => ResponsesVendor::other(vendor),
        };
        let faults = HashMap::new();
        Self { http: reqwest::Client::new(), vendor, edits: None, keeps: false, faults, sent: Arc::default() }
    }

    /// Lets the service keep the conversation, with faults of requests, by their numbers.
    pub(crate) fn keeping(mut self, faults: impl IntoIterator<Item = (usize, &'static str)>) -> Self {
        (self.keeps, self.faults) = (true, faults.into_iter().collect());
        self
    }

    /// The answer to a request, or its refusal.
    pub(crate) async fn post(&self, body: Value) -> Result<String, ClientError> {
        let number = {
            let mut sent = self.sent.lock().unwrap();
            sent.push(body.clone());
            sent.len() - 1
        };
        let vendor = self.vendor.provider();
        let request = self
            .http
            .post(format!("{}/{vendor}/v1/responses", server()))
            .query(&[("api-version", "preview")])
            .header("authorization", format!("Bearer {KEY}"))
            .header("api-key", KEY)
            .header("x-case", case())
            .header("x-faults", self.faults.get(&number).copied().unwrap_or("ok"))
            .body(body.to_string());
        let answer = request.send().await?;
        let (status, text) = (answer.status(), answer.text().await?);
        match status.is_success() {
            true => Ok(text),
            false if session_forgotten(status.as_u16(), &text) => Err(SessionForgotten.into()),
            false => Err(text.into()),
        }
    }
}

#[async_trait]
impl ChatClient for Chat {
    async fn complete(&self, request: &ChatRequest<'_>) -> Result<ModelResponse, ClientError> {
        let apart = self.vendor.provider() != "xai";
        let (system, said): (Vec<&Message>, Vec<&Message>) =
            request.messages.iter().partition(|message| apart && message.role() == Role::System);
        let written = match request.service_session_id {
            Some(_) => continued_input(&self.vendor, said)?,
            None => input(&self.vendor, said)?,
        };
        let mut body: Value = serde_json::from_str(&written.text)?;
        body["model"] = request.model.into();
        body["store"] = self.keeps.into();
        if let Some(id) = request.service_session_id.and_then(ServiceSessionId::as_text) {
            body["previous_response_id"] = id.into();
        }
        body["tools"] =
            request.tools.iter().map(|tool| json!({"type": "function", "name": &*tool.name})).collect();
        if let [Part::Text(text)] = system.first().map_or(&[][..], |system| system.parts()) {
            body["instructions"] = text.as_str().into();
        }
        if let Some(edits) = &self.edits {
            body["context_management"] = serde_json::from_str(edits)?;
        }
        let text = self.post(body).await?;
        let transcript = read(text.as_str(), &ReadOptions::default().with_from(Format::OpenaiResponses))?;
        let messages = transcript.conversations().iter().flat_map(|it| it.messages());
        let messages = messages.map(|message| self.vendor.adopt(message.clone())).collect();
        let response = ModelResponse::new(messages).with_usage(reported(&text)?.ok_or("no usage")?);
        let id = serde_json::from_str::<Value>(&text)?["id"].as_str().unwrap_or_default().to_owned();
        let response = if self.keeps { response.with_service_session_id(id.as_str()) } else { response };
        Ok(response.with_response_id(id))
    }
}

/// Checks that every request has the instructions, and that only instructions and user messages precede a compaction.
pub(crate) fn check_replay(sent: &[Value], apart: bool) {
    let mut seen = 0;
    for body in sent {
        let items = body["input"].as_array().unwrap();
        match apart {
            true => assert_eq!(body["instructions"], "Be brief."),
            false => assert_eq!(items[0]["role"], "system"),
        }
        let last = items.iter().rposition(|item| item["type"] == "compaction");
        let Some(last) = last else { continue };
        seen += 1;
        let before = items[..last].iter();
        let paid: Vec<_> = before
            .filter(|item| !["user", "system"].contains(&item["role"].as_str().unwrap_or_default()))
            .collect();
        assert!(paid.is_empty(), "{paid:?}");
    }
    assert!(seen > 100, "{seen} of {} requests have a compaction", sent.len());
}

fn two_hundred_turns(vendor: &str, service: OpenAiCompaction) {
    let chat = Chat::new(vendor);
    let mut talk = Talk::new("m");
    let last = talk.go_on(200, &chat, auto(managed(service), 7_000));
    assert!(last.ends_with(" 200 facts"), "{last}");
    assert!(talk.compacted >= 5, "{} compactions", talk.compacted);
    assert_eq!(talk.spent_on_compaction(), talk.compacted as u64);
    check_replay(&chat.sent.lock().unwrap(), vendor != "xai");
}

#[test]
fn on_its_own_at_openai() {
    two_hundred_turns("openai", service("openai"));
}

#[test]
fn in_band_at_openai() {
    two_hundred_turns("openai", service("openai").in_band());
}

#[test]
fn on_its_own_at_azure() {
    two_hundred_turns("azure-openai", service("azure-openai"));
}

#[test]
fn on_its_own_at_xai() {
    two_hundred_turns("xai", service("xai"));
}

#[test]
fn by_the_server_in_passing() {
    for vendor in ["openai", "azure-openai"] {
        let mut chat = Chat::new(vendor);
        chat.edits = Some(context_management(NonZeroU64::new(3_000)));
        let mut talk = Talk::new("m");
        let compactor = ServerCompaction::new(&chat.vendor);
        let auto = AutoCompaction::new(compactor)
            .with_trigger(Trigger::always())
            .with_points(RunPoints::NONE.and_after_run());
        let last = talk.go_on(200, &chat, auto);
        assert!(last.ends_with(" 200 facts"), "{last}");
        assert!(talk.compacted >= 5, "{} compactions", talk.compacted);
        let sent = chat.sent.lock().unwrap();
        let longest = sent.iter().map(|body| body.to_string().len()).max().unwrap();
        assert!(longest < 60_000, "{longest} bytes");
        // The messages of the turn of the compaction are sent once more, and then no longer.
        let items = sent.last().unwrap()["input"].as_array().unwrap();
        let calls = items.iter().filter(|item| item["type"] == "function_call").count();
        assert!(calls < 60, "{calls} calls");
    }
}

#[test]
fn behind_a_response_that_the_service_keeps() {
    let chat = Chat::new("openai");
    let service = service("openai");
    block_on(async {
        let mut previous = None::<String>;
        let mut first: Vec<Value> = Vec::new();
        let mut last = String::new();
        for turn in 0..200 {
            let mut items = core::mem::take(&mut first);
            items.push(json!({"role": "user", "content": format!("FACT-{turn}: and this?")}));
            let mut body = json!({"model": "m", "instructions": "Be brief.", "input": items});
            if let Some(previous) = &previous {
                body["previous_response_id"] = previous.as_str().into();
            }
            last = chat.post(body).await.unwrap();
            let answer: Value = serde_json::from_str(&last).unwrap();
            previous = Some(answer["id"].as_str().unwrap().to_owned());
            if turn % 40 == 39 {
                let left =
                    service.compact_response(&previous.take().unwrap(), Some("Be brief.")).await.unwrap();
                assert!(left.usage.is_some() && left.before.len() == turn + 1);
                let left = input(&chat.vendor, [&left.into_message()]).unwrap().text;
                let left: Value = serde_json::from_str(&left).unwrap();
                first = left["input"].as_array().unwrap().clone();
                assert_eq!(first.last().unwrap()["type"], "compaction");
            }
        }
        assert!(last.contains(" 200 facts"), "{last}");
        let unknown = service.compact_response("resp_unknown", None).await.unwrap_err();
        assert_eq!(unknown.to_string(), "openai: HTTP 400, previous_response_not_found");
    });
}

/// A session changes between all vendors, with a text that each vendor can read. No vendor gets a sealed part of
/// another vendor, which it would refuse.
#[test]
fn from_one_vendor_to_another() {
    let mut talk = Talk::new("m");
    let vendors = ["openai", "azure-openai", "xai", "openai", "xai", "azure-openai", "openai"];
    for vendor in vendors {
        let chat = Chat::new(vendor);
        let compactor = managed(service(vendor)).with_portable_text(Arc::new(DigestSummarizer));
        let before = talk.compacted;
        talk.go_on(40, &chat, auto(compactor, 7_000));
        assert!(talk.compacted > before, "{vendor}");
        let sent = chat.sent.lock().unwrap();
        let first = sent.first().unwrap().to_string();
        assert!(!first.contains("encrypted_content"), "{vendor} is sent what another has sealed");
        assert!(before == 0 || first.contains("[Conversation Summary]"), "{vendor} is sent a text");
    }
}
