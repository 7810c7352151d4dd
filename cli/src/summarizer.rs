//! The model that writes summaries, at an endpoint of Chat Completions.

use std::sync::Arc;

use async_trait::async_trait;
use epitome::agent::{ChatClient, ChatRequest, ClientError};
use epitome::compactors::{Instructions, PromptedSummarizer, Summarizer, SummaryError, SummaryWriter};
use epitome::core::{Plan, SummaryGap, TokenCounter, Tokens, Writer};
use epitome::message::Message;
use epitome::run::ModelResponse;
use epitome::wire::openai_chat;
use epitome::wire::usage::reported;
use futures::executor::block_on;
use serde_json::Value;

use crate::args::SummaryArgs;
use crate::failure::{Failure, Result, code};
use crate::strategy::Strategies;

/// Environment variable of the key. It has a name of its own, so that no other key is sent to this address.
const KEY: &str = "EPITOME_SUMMARIZER_KEY";

/// The model that writes summaries, and the subject that they should attend to most.
#[derive(Debug)]
pub(crate) struct Prompted {
    model: PromptedSummarizer,
    focus: Option<String>,
}

/// Opens the model that writes summaries, if one was named.
pub(crate) fn open(args: &SummaryArgs, model: Option<&str>) -> Result<Option<Prompted>> {
    let Some(url) = &args.summarizer else { return Ok(None) };
    let model = args.summary_model.as_deref().or(model).ok_or_else(|| {
        Failure::input("--summarizer: which model writes? --summary-model M, or --model M if it is the same")
    })?;
    let key = std::env::var_os(KEY)
        .filter(|key| !key.is_empty())
        .map(|key| key.into_string().map_err(|_| Failure::input(format!("{KEY} is not UTF-8"))));
    let client = Client { url: endpoint(url)?, key: key.transpose()?, http: http::agent()? };
    let mut summarizer = PromptedSummarizer::new(Arc::new(client)).with_model(model);
    if let Some(window) = args.summary_window {
        summarizer = summarizer.with_window(window);
    }
    if let Some(prompt) = &args.summary_prompt {
        summarizer = summarizer.with_instructions(match prompt.as_str() {
            "brief" => Instructions::Brief,
            "structured" => Instructions::Structured,
            own => Instructions::custom(own.to_owned()),
        });
    }
    Ok(Some(Prompted { model: summarizer, focus: args.focus.clone() }))
}

/// Refuses a strategy with summaries if there is no model to write them.
pub(crate) fn check(strategies: &Strategies, summarizer: Option<&Prompted>) -> Result<()> {
    match strategies.summarize() && summarizer.is_none() {
        true => {
            Err(Failure::input("--strategy: a summary is written by a model: name one with --summarizer URL"))
        }
        false => Ok(()),
    }
}

/// Writes the summaries and digests of a plan, in its order. `messages` are those of its index, by position. `late`
/// returns the answers that are new to the summaries in a gap.
pub(crate) fn write(
    plan: &Plan<'_>,
    messages: &[&Message],
    summarizer: Option<&Prompted>,
    counter: &(dyn TokenCounter + Send + Sync),
    late: impl Fn(&SummaryGap<'_>) -> Result<Vec<Vec<Message>>>,
) -> Result<Vec<(String, Tokens)>> {
    let focus = summarizer.and_then(|summarizer| summarizer.focus.as_deref());
    let summarizer = summarizer.map(|summarizer| &summarizer.model as &dyn Summarizer);
    let writer = SummaryWriter::new(counter).with_summarizer(summarizer).with_focus(focus);
    let written = plan.summaries().map(|gap| {
        let late = late(&gap)?;
        block_on(writer.with_late_answers(&late).write(&gap, messages))
            .map_err(|error| Failure::new(code::IO, format!("{}: {error}", place(&gap))))
    });
    written.collect()
}

/// Writes the document of a handoff; without a summarizer, from the messages alone.
pub(crate) fn handoff(
    messages: &[&Message],
    summarizer: Option<&Prompted>,
    counter: &(dyn TokenCounter + Send + Sync),
    tokens_max: Tokens,
) -> Result<String> {
    let focus = summarizer.and_then(|summarizer| summarizer.focus.as_deref());
    let summarizer = summarizer.map(|summarizer| &summarizer.model as &dyn Summarizer);
    let writer = SummaryWriter::new(counter).with_summarizer(summarizer).with_focus(focus);
    block_on(writer.handoff(messages, tokens_max)).map_err(|error| match error {
        SummaryError::NoRoom { .. } => Failure::input(format!("--tokens: {error}")),
        _ => Failure::new(code::IO, format!("--summarizer: {error}")),
    })
}

/// The writer of a summary, and the messages that it replaces.
fn place(gap: &SummaryGap<'_>) -> String {
    let who = match gap.writer {
        Writer::Digest => "--strategy: the digest",
        Writer::Ledger => "--strategy: the ledger",
        _ => "--summarizer: the summary",
    };
    let (first, last) =
        gap.covers().flatten().fold((u32::MAX, 0), |(first, last), at| (first.min(at), last.max(at)));
    format!("{who} of messages {first} to {last}")
}

/// The address of the resource. For a base like `https://api.openai.com/v1`, it is the resource below the base. A query
/// stays at the end.
fn endpoint(url: &str) -> Result<String> {
    if !url.starts_with("https://") && !url.starts_with("http://") {
        return Err(Failure::input("--summarizer: expected an address like https://api.openai.com/v1"));
    }
    // A fragment is never sent.
    let url = url.split('#').next().unwrap_or_default();
    let (base, query) = url.split_at(url.find('?').unwrap_or(url.len()));
    let base = base.trim_end_matches('/');
    Ok(format!("{}{RESOURCE}{query}", base.strip_suffix(RESOURCE).unwrap_or(base)))
}

const RESOURCE: &str = "/chat/completions";

/// A client of Chat Completions.
struct Client {
    url: String,
    key: Option<String>,
    http: http::Agent,
}

#[async_trait]
impl ChatClient for Client {
    async fn complete(&self, request: &ChatRequest<'_>) -> core::result::Result<ModelResponse, ClientError> {
        let messages = request.messages.iter().map(|message| Ok(openai_chat::write(message)?.into_owned()));
        let messages = messages.collect::<core::result::Result<Vec<String>, ClientError>>()?.join(",");
        let body = format!(r#"{{"model":{},"messages":[{messages}]}}"#, Value::from(request.model));
        let (status, answer) = http::post(&self.http, &self.url, self.key.as_deref(), body).await?;
        let answer: core::result::Result<Value, _> = serde_json::from_str(&answer);
        if !(200..300).contains(&status) {
            let why = answer.ok().map(|answer| told(&answer)).unwrap_or_default();
            return Err(format!("the endpoint answers with status {status}{why}").into());
        }
        let answer = answer.map_err(|_| "the endpoint answers with something that is not JSON")?;
        if let Some(why) = answer.pointer("/choices/0/finish_reason").and_then(cut_off) {
            return Err(why.into());
        }
        let message = answer.pointer("/choices/0/message").ok_or("the answer has no choices[0].message")?;
        let message = openai_chat::read(&message.to_string())?;
        let response = ModelResponse::new(vec![message]);
        Ok(match reported(&answer.to_string())? {
            Some(usage) => response.with_usage(usage),
            None => response,
        })
    }
}

/// The reason why an answer with this `finish_reason` has no end.
fn cut_off(reason: &Value) -> Option<&'static str> {
    match reason.as_str() {
        Some("length") => Some("the answer is cut off: the endpoint allows no longer one"),
        Some("content_filter") => Some("the answer is cut off by the endpoint's content filter"),
        _ => None,
    }
}

/// The kind of an error from the endpoint. The message of the error is left out, because it may contain text of the
/// conversation.
fn told(answer: &Value) -> String {
    let words = ["/error/type", "/error/code"].map(|at| answer.pointer(at).and_then(Value::as_str));
    let plain = |word: &&str| {
        word.len() <= 64 && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    words.into_iter().flatten().find(plain).map(|word| format!(" ({word})")).unwrap_or_default()
}

#[cfg(feature = "http")]
mod http {
    //! The client over HTTP.

    use core::time::Duration;
    use std::thread;

    use epitome::agent::ClientError;
    use futures::channel::oneshot;

    use crate::failure::Result;

    pub(super) type Agent = ureq::Agent;

    /// Maximum time for one answer.
    const TIMEOUT: Duration = Duration::from_secs(300);
    /// Maximum size of an answer: many times that of a summary.
    const ANSWER_BYTES_MAX: u64 = 8 << 20;

    #[expect(clippy::unnecessary_wraps, reason = "a program without the feature has no agent")]
    pub(super) fn agent() -> Result<Agent> {
        // A redirect would send the key to another address.
        let config = Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false);
        Ok(config.build().new_agent())
    }

    /// Sends the request on a thread of its own, so that a caller that waits for one or several answers can stop early.
    pub(super) async fn post(agent: &Agent, url: &str, key: Option<&str>, body: String) -> Answer {
        let (agent, url, key) = (agent.clone(), url.to_owned(), key.map(str::to_owned));
        let (answer, answered) = oneshot::channel();
        thread::Builder::new().name("summarizer".into()).spawn(move || {
            // A caller that has stopped waiting receives nothing.
            let _ = answer.send(ask(&agent, &url, key.as_deref(), body));
        })?;
        answered.await?
    }

    type Answer = core::result::Result<(u16, String), ClientError>;

    fn ask(agent: &Agent, url: &str, key: Option<&str>, body: String) -> Answer {
        let mut request = agent.post(url).header("content-type", "application/json");
        if let Some(key) = key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let mut response = request.send(body)?;
        let status = response.status().as_u16();
        let text = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string()?;
        Ok((status, text))
    }
}

#[cfg(not(feature = "http"))]
mod http {
    //! No client for a model.

    use epitome::agent::ClientError;

    use crate::failure::{Failure, Result};

    pub(super) enum Agent {}

    pub(super) fn agent() -> Result<Agent> {
        Err(Failure::input("--summarizer: this program was built without the feature http"))
    }

    #[expect(clippy::unused_async, reason = "the one that asks somebody waits")]
    pub(super) async fn post(
        agent: &Agent,
        _: &str,
        _: Option<&str>,
        _: String,
    ) -> core::result::Result<(u16, String), ClientError> {
        match *agent {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_address_is_a_base_or_the_resource() {
        for url in ["https://h/v1", "https://h/v1/", "https://h/v1/chat/completions"] {
            assert_eq!(endpoint(url).unwrap(), "https://h/v1/chat/completions");
        }
        for url in
            ["https://h/d?v=1", "https://h/d/?v=1", "https://h/d/chat/completions?v=1", "https://h/d?v=1#f"]
        {
            assert_eq!(endpoint(url).unwrap(), "https://h/d/chat/completions?v=1");
        }
        assert_eq!(endpoint("https://h?a=/b/?c").unwrap(), "https://h/chat/completions?a=/b/?c");
        assert!(endpoint("api.openai.com").unwrap_err().message().contains("expected an address"));
    }

    /// The deadline of a summary holds only if the call does not block the task that watches the clock.
    #[cfg(feature = "http")]
    #[test]
    fn who_waits_for_an_answer_can_give_up() {
        use std::{net::TcpListener, sync::mpsc, thread};

        use epitome::message::Message;
        use futures::FutureExt as _;

        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = endpoint(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        // An endpoint that does not answer until the test closes the connection.
        let (hang_up, told) = mpsc::channel::<()>();
        thread::spawn(move || listener.accept().map(|_connection| told.recv()));
        let client = Client { url, key: None, http: http::agent().unwrap() };
        let (messages, options) = ([Message::user("Hello")], serde_json::Map::new());
        let request = ChatRequest::without_tools(&messages, &options, "m");
        let mut asked = client.complete(&request);
        assert!((&mut asked).now_or_never().is_none(), "it waits");
        drop(hang_up);
        assert!(block_on(asked).is_err());
    }

    #[test]
    fn only_the_kind_of_an_error_is_repeated() {
        let error = json!({"error": {"message": "you said hunter2", "type": "invalid_request_error"}});
        assert_eq!(told(&error), " (invalid_request_error)");
        assert_eq!(told(&json!({"error": {"type": "you said hunter2"}})), "");
    }
}
