//! Runs over HTTP, against a Chat Completions server.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests: a panic is how they report"
)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use epitome::agent::{Agent, ChatClient, ChatRequest, ClientError, ToolOutput};
use epitome::compaction::{AutoCompaction, RunPoints};
use epitome::compactors::{Engine, PromptedSummarizer, Summarization, Truncation};
use epitome::core::{OpenAiTokens, Trigger, Usage};
use epitome::message::{Message, Part};
use epitome::run::{ModelResponse, RunError, RunEvent, RunOptions, RunSettings};
use epitome::session::Tool;
use epitome::wire::openai_chat;
use serde_json::{Value, json};

use crate::sessions::support;

/// A server process. It ends when this value is dropped.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start() -> Self {
        let program = env!("CARGO_BIN_EXE_fake-openai");
        let mut child = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Self { child, url: format!("{}/v1/chat/completions", url.trim()) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

/// A Chat Completions client.
struct OpenAi {
    http: reqwest::Client,
    url: String,
    /// Requests that were sent, in order.
    sent: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl ChatClient for OpenAi {
    async fn complete(&self, request: &ChatRequest<'_>) -> Result<ModelResponse, ClientError> {
        let messages = request.messages.iter().map(|message| Ok(openai_chat::write(message)?.into_owned()));
        let messages = messages.collect::<Result<Vec<String>, ClientError>>()?.join(",");
        let tools: Vec<Value> = request.tools.iter().map(tool).collect();
        let tools =
            if tools.is_empty() { String::new() } else { format!(r#","tools":{}"#, Value::from(tools)) };
        let body = format!(r#"{{"model":"{}","messages":[{messages}]{tools}}}"#, request.model);
        self.sent.lock().unwrap().push(body.clone());
        let response = self.http.post(&self.url).body(body).send().await?;
        let (ok, text) = (response.status().is_success(), response.text().await?);
        let answer: Value = serde_json::from_str(&text)?;
        if !ok {
            return Err(answer["error"]["message"].to_string().into());
        }
        let message = openai_chat::read(&answer["choices"][0]["message"].to_string())?;
        let mut tokens = OpenAiTokens::NONE;
        tokens.input = answer["usage"]["prompt_tokens"].as_u64();
        tokens.output = answer["usage"]["completion_tokens"].as_u64();
        let id = answer["id"].as_str().unwrap_or_default();
        Ok(ModelResponse::new(vec![message]).with_usage(Usage::openai(tokens)).with_response_id(id))
    }
}

fn tool(tool: &Tool) -> Value {
    json!({"type": "function", "function": {
        "name": tool.name.as_str(), "description": tool.description.as_str(), "parameters": tool.parameters,
    }})
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn client(server: &Server) -> OpenAi {
    OpenAi { http: reqwest::Client::new(), url: server.url.clone(), sent: Arc::default() }
}

fn text(message: &Message) -> &str {
    match message.parts() {
        [Part::Text(text)] => text,
        _ => "",
    }
}

#[test]
fn a_conversation_with_tools_over_http() {
    let server = Server::start();
    let read = Tool::new("read", "Reads a file", json!({"type": "object", "properties": {}}));
    let settings = RunSettings::new("a").with_instructions("You \"help\".").with_tools(vec![read]);
    let agent = Agent::with_settings(settings, client(&server))
        .with_tool_runner(|_| Box::pin(async { ToolOutput::new("forty-two\n") }));
    let mut session = agent.create_session(None, None);
    block_on(async {
        let first = agent.run(&mut session, "What is in it?", &RunOptions::default()).await.unwrap();
        assert_eq!(first.response.messages.len(), 3, "a call, its result, an answer");
        let said = text(&first.response.messages[2]);
        assert_eq!(said, r#"4 messages, from "What is in it?" to "What is in it?""#);
        let second = agent.run(&mut session, "And now?", &RunOptions::default()).await.unwrap();
        let said = text(second.response.messages.last().unwrap());
        assert_eq!(said, r#"8 messages, from "What is in it?" to "And now?""#);
    });
    let reported = session.token_count();
    assert!(reported > 0 && session.usage().unwrap().output_total > Some(0));
}

#[test]
fn a_long_conversation_is_compacted_and_still_accepted() {
    let server = Server::start();
    let read = Tool::new("read", "Reads a file", json!({"type": "object", "properties": {}}));
    let compaction = AutoCompaction::new(support::Truncating(Truncation::new()))
        .with_trigger(Trigger::tokens(700))
        .with_points(RunPoints::default().and_before_call().and_after_run());
    let settings = RunSettings::new("a").with_tools(vec![read]).with_compaction(compaction);
    let agent = Agent::with_settings(settings, client(&server))
        .with_tool_runner(|_| Box::pin(async { ToolOutput::new("forty-two, ".repeat(20)) }));
    let mut session = agent.create_session(None, None);
    let mut compacted = 0;
    block_on(async {
        for turn in 0..30 {
            let says = format!("question {turn}");
            let outcome =
                agent.run(&mut session, says, &RunOptions::default()).await.expect("legal at every turn");
            compacted += outcome.events.iter().filter(|it| matches!(it, RunEvent::Compacted { .. })).count();
            let said = text(outcome.response.messages.last().unwrap()).to_owned();
            assert!(said.contains("from \"question 0\" to"), "the first user message stays: {said}");
            assert!(session.token_count() < 2_000, "{}", session.token_count());
        }
    });
    assert!(compacted >= 3, "{compacted}");
}

#[test]
fn what_the_server_refuses_is_the_clients_error() {
    let server = Server::start();
    let agent = Agent::new("a", client(&server));
    let mut session = agent.create_session(None, None);
    block_on(async {
        let error = agent.run(&mut session, Vec::new(), &RunOptions::default()).await.unwrap_err();
        assert!(matches!(error, RunError::Model(_)), "{error}");
    });
}

/// Runs a conversation that is summarized before model calls, with the request for a summary within the conversation.
/// Returns all requests and the number of compactions.
fn summarized_within(tools: Vec<Tool>) -> (Vec<String>, usize) {
    let server = Server::start();
    let sent = Arc::<Mutex<Vec<String>>>::default();
    let client = || OpenAi { sent: Arc::clone(&sent), ..client(&server) };
    let summarizer = PromptedSummarizer::new(Arc::new(client())).within_conversation();
    let engine = Engine::new(Summarization::new().preserve_recent(1)).with_summarizer(Arc::new(summarizer));
    let compaction = AutoCompaction::new(engine)
        .with_trigger(Trigger::tokens(1_500))
        .with_points(RunPoints::NONE.and_before_call());
    let settings = RunSettings::new("a").with_instructions("You help.").with_model("m").with_tools(tools);
    let agent = Agent::with_settings(settings.with_compaction(compaction), client())
        .with_tool_runner(|_| Box::pin(async { ToolOutput::new("forty-two") }));
    let mut session = agent.create_session(None, None);
    let mut compacted = 0;
    block_on(async {
        for turn in 0..24 {
            let says = format!("question {turn}: {}", "and what of this, which is long? ".repeat(15));
            let outcome = agent.run(&mut session, says, &RunOptions::default()).await.unwrap();
            compacted += outcome.events.iter().filter(|it| matches!(it, RunEvent::Compacted { .. })).count();
        }
    });
    let sent = sent.lock().unwrap().clone();
    (sent, compacted)
}

/// Beginning of a request for a summary within the conversation.
const WITHIN: &str =
    r#",{"role":"user","content":"Stop here for a moment: this is no part of the conversation."#;

#[test]
fn a_summary_is_asked_for_behind_the_byte_identical_prefix() {
    let (sent, compacted) = summarized_within(Vec::new());
    let asks: Vec<usize> = (0..sent.len()).filter(|at| sent[*at].contains(WITHIN)).collect();
    assert!(compacted >= 2 && asks.len() == compacted, "{compacted} compactions, {} requests", asks.len());
    for at in asks {
        // Up to the instructions for the summary, every byte was already in the request before.
        let (begin, _) = sent[at].split_once(WITHIN).unwrap();
        assert!(sent[at - 1].starts_with(begin), "{begin}");
        assert!(begin.matches(r#""role":"#).count() >= 5, "it is worth a cache: {begin}");
        assert!(!sent[at].contains("<transcript>"), "nothing is said twice");
        // The next request is the compacted one.
        assert!(sent[at + 1].contains("[Conversation Summary]") && sent[at + 1].len() < sent[at].len());
    }
}

#[test]
fn a_model_that_calls_a_tool_instead_is_asked_beside_the_conversation() {
    let read = Tool::new("read", "Reads a file", json!({"type": "object", "properties": {}}));
    let (sent, compacted) = summarized_within(vec![read]);
    let asks: Vec<usize> = (0..sent.len()).filter(|at| sent[*at].contains(WITHIN)).collect();
    assert!(compacted >= 1 && !asks.is_empty());
    for at in asks {
        let tools = |body: &str| body.split_once(r#","tools":"#).map(|(_, tools)| tools.to_owned());
        assert!(tools(&sent[at]).is_some() && tools(&sent[at]) == tools(&sent[at - 1]));
        // The server calls a tool behind every user message, also here. The next request for a summary has no tools.
        assert!(sent[at + 1].contains("<transcript>") && tools(&sent[at + 1]).is_none());
    }
}
