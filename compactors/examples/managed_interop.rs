//! Writes what is sent to the services that compact, and reads what they answer.
//!
//! ```text
//! managed_interop write OUT     requests, one file each: its kind and its body
//! managed_interop read IN OUT   answers in such files; prints what was read of each, and writes the next request
//! ```
//!
//! `tests/interop/managed.sh` has the vendors' own typed models look at the requests, and make the answers.

#![expect(clippy::indexing_slicing, reason = "of JSON values, where a missing member is null")]

use core::error::Error;
use core::num::NonZeroU64;
use std::path::Path;

use epitome_compactors::managed::anthropic::{
    ClearInputs, ClearThinking, ClearToolUses, ContextEdits, EditTrigger, Summarize, ThresholdCompaction,
    ThresholdOutcome, applied_edits, drop_mismatched, replay, strip_thinking, summarize_body, summarized,
    trim_to_block,
};
use epitome_compactors::managed::openai::{
    CacheMode, CacheRetention, CompactOptions, ImageCompression, MODEL, ResponsesVendor, compact_body,
    compact_previous_body, compacted, context_management, input, trigger_body, triggered,
};
use epitome_compactors::managed::{Artefact, ServiceRequest};
use epitome_core::message::{MediaKind, Role};
use epitome_std::message::{Media, MediaSource, Message, Part, Reasoning, ToolCall};
use epitome_std::session::Tool;
use epitome_std::wire::usage::reported;
use epitome_std::wire::{Format, ReadOptions, convert, read};
use serde_json::{Map, Value, json};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["write", out] => {
            openai(&|name, body| save(out, name, "responses.compact", body))?;
            openai_requests(&|name, body| save(out, name, "responses.create", body))?;
            anthropic(&|name, body| save(out, name, "beta.messages.create", body))
        }
        ["read", from, out] => {
            for file in std::fs::read_dir(from)? {
                let file = file?.path();
                let name = file.file_stem().and_then(|name| name.to_str()).ok_or("a file without a name")?;
                answer(name, &std::fs::read_to_string(&file)?, out)?;
            }
            Ok(())
        }
        _ => Err("usage: managed_interop write OUT | read IN OUT".into()),
    }
}

/// The request `body` in a file, with what it is a request of.
fn save(out: &str, name: &str, kind: &str, body: &str) -> Outcome<()> {
    let body: Value = serde_json::from_str(body)?;
    let file = json!({"kind": kind, "body": body}).to_string();
    Ok(std::fs::write(Path::new(out).join(format!("{name}.json")), file)?)
}

/// A conversation with every kind of content that both vendors take.
fn conversation() -> Vec<Message> {
    let image = Media::new(MediaKind::Image, "image/png", MediaSource::Base64("iVBORw0KGgo=".into()));
    let looked = Media::new(MediaKind::Image, "", MediaSource::Uri("https://example.com/y.png".into()));
    vec![
        Message::new(Role::User, vec![Part::Text("What is in notes.txt?".into()), Part::Media(image)]),
        Message::new(
            Role::Assistant,
            vec![
                Part::Text("I look.".into()),
                Part::ToolCall(ToolCall::new("c1", "read", r#"{"path":"notes.txt"}"#)),
                Part::ToolCall(ToolCall::new("c2", "look", "{}")),
            ],
        ),
        Message::tool("c1", "buy milk"),
        Message::tool("c2", "nothing there"),
        Message::assistant("It says: buy milk."),
        Message::new(Role::User, vec![Part::Text("And here?".into()), Part::Media(looked)]),
        Message::assistant("A cat."),
    ]
}

fn tools() -> Vec<Tool> {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    vec![Tool::new("read", "Reads a file.", schema), Tool::new("look", "Looks.", json!({"type": "object"}))]
}

/// Requests of `POST /responses/compact`.
fn openai(save: &dyn Fn(&str, &str) -> Outcome<()>) -> Outcome<()> {
    let (messages, system) = (conversation(), [Message::system("Be brief.")]);
    let told: Vec<_> = messages.iter().collect();
    let request = ServiceRequest::new(&told).with_instructions(&system);
    let vendor = ResponsesVendor::openai();
    save("compact", &compact_body(&vendor, MODEL, &request, &CompactOptions::default())?.text)?;
    save("compact-all", &compact_body(&vendor, MODEL, &request, &all_options())?.text)?;
    save("compact-stored", &compact_previous_body(MODEL, "resp_1", Some("Be brief."), &all_options()))
}

fn all_options() -> CompactOptions {
    let mut options = CompactOptions::default();
    options.prompt_cache_key = Some("session-1".into());
    options.prompt_cache_retention = Some(CacheRetention::Day);
    options.prompt_cache_mode = Some(CacheMode::Explicit);
    options.prompt_cache_ttl = Some("30m".into());
    options.service_tier = Some("flex".into());
    options.image_compression = Some(ImageCompression::Auto);
    options
}

/// Requests of `POST /responses`.
fn openai_requests(save: &dyn Fn(&str, &str) -> Outcome<()>) -> Outcome<()> {
    let (mut messages, system, tools) = (conversation(), [Message::system("Be brief.")], tools());
    let mut sealed = Reasoning::new("");
    (sealed.id, sealed.opaque) = (Some("rs_1".into()), Some("gAAAA".into()));
    messages.insert(1, Message::new(Role::Assistant, vec![Part::Reasoning(sealed)]));
    let told: Vec<_> = messages.iter().collect();
    let request = ServiceRequest::new(&told).with_instructions(&system).with_tools(&tools);
    let vendor = ResponsesVendor::openai();
    save("trigger", &trigger_body(&vendor, "gpt-5.5", &request, &all_options())?.text)?;
    let mut body: Value = serde_json::from_str(&input(&vendor, &messages)?.text)?;
    body["model"] = "gpt-5.5".into();
    body["context_management"] = serde_json::from_str(&context_management(NonZeroU64::new(150_000)))?;
    save("threshold", &body.to_string())
}

/// A request of the Messages API.
fn messages_request(messages: &[Message]) -> Outcome<String> {
    let mut body: Value = serde_json::from_str(&convert(messages, Format::Anthropic)?.text)?;
    (body["model"], body["max_tokens"]) = ("claude-opus-5-5".into(), 4_096.into());
    body["system"] = "Be brief.".into();
    let tool = |it: &Tool| json!({"name": &*it.name, "description": &*it.description, "input_schema": it.parameters});
    body["tools"] = tools().iter().map(tool).collect();
    Ok(body.to_string())
}

/// Requests of `POST /v1/messages`.
fn anthropic(save: &dyn Fn(&str, &str) -> Outcome<()>) -> Outcome<()> {
    let (messages, system, tools) = (conversation(), [Message::system("Be brief.")], tools());
    let ask = Summarize::new().with_instructions("Keep the numbers.")?.with_max_tokens(9_000);
    let told: Vec<_> = messages.iter().collect();
    let request = ServiceRequest::new(&told).with_instructions(&system).with_tools(&tools);
    let fields = Map::from_iter([("thinking".to_owned(), json!({"type": "adaptive"}))]);
    save("summarize", &summarize_body("claude-opus-5-5", &request, &ask, &fields)?.text)?;
    let whole = messages_request(&messages)?;
    save("summarize-cut", &Summarize::new().request(&whole, 4)?)?;
    let uses = ClearToolUses::new()
        .with_trigger(EditTrigger::InputTokens(30_000))
        .with_keep(5)
        .with_clear_at_least(1_000)
        .with_exclude_tools(["look"])
        .with_inputs(ClearInputs::Of(vec!["read".into()]));
    let compaction =
        ThresholdCompaction::new().with_trigger(60_000)?.with_pause(true).with_instructions("Briefly.")?;
    let edits = ContextEdits::new().with_thinking(ClearThinking::keep_turns(2)?).with_tool_uses(uses);
    save("edits", &edits.with_compaction(compaction).apply(&whole)?)?;
    let few = ClearToolUses::new().with_trigger(EditTrigger::ToolUses(9)).with_inputs(ClearInputs::All);
    let edits = ContextEdits::new().with_thinking(ClearThinking::keep_all()).with_tool_uses(few);
    save("edits-other", &edits.with_compaction(ThresholdCompaction::new()).apply(&whole)?)?;
    let mut thinking: Value = serde_json::from_str(&whole)?;
    thinking["thinking"] = json!({"type": "adaptive"});
    let thought = json!({"type": "thinking", "thinking": "hm", "signature": "EuYB"});
    let said = thinking.pointer_mut("/messages/1/content").and_then(Value::as_array_mut);
    said.ok_or("no content")?.insert(0, thought);
    save("drop", &drop_mismatched(&thinking.to_string())?)?;
    save("strip", &strip_thinking(&thinking.to_string())?)
}

/// Prints what was read of an answer, and writes the request that goes on with it.
fn answer(name: &str, text: &str, out: &str) -> Outcome<()> {
    let (mut messages, vendor) = (conversation(), ResponsesVendor::openai());
    let shown: Vec<_> = messages.iter().collect();
    let request = ServiceRequest::new(&shown);
    let kind = name.split('.').next().unwrap_or_default();
    let told = match kind {
        "compact" | "trigger" => {
            let artefact = match kind {
                "compact" => compacted(&vendor, "", &request, text)?,
                _ => triggered(&vendor, "", &request, text)?,
            };
            let told = told(&artefact);
            messages = vec![artefact.into_message(), Message::user("Thanks.")];
            let mut body: Value = serde_json::from_str(&input(&vendor, &messages)?.text)?;
            body["model"] = "gpt-5.5".into();
            save(out, name, "responses.create", &body.to_string())?;
            told
        }
        "summary" => {
            let artefact = summarized("claude-opus-5-5", text)?;
            let told = told(&artefact);
            messages = vec![artefact.into_message(), Message::user("Thanks.")];
            save(out, name, "beta.messages.create", &messages_request(&messages)?)?;
            told
        }
        "summary-refused" => match summarized("claude-opus-5-5", text) {
            Ok(_) => return Err("a summary where there is none".into()),
            Err(error) => json!({"error": error.to_string()}),
        },
        "threshold" => {
            let (outcome, edits) = (ThresholdOutcome::read(text)?, applied_edits(text)?);
            let ThresholdOutcome::Compacted { block, paused } = outcome else {
                return Err("no block".into());
            };
            messages.extend(read_messages(text)?);
            messages.push(Message::user("Thanks."));
            let whole = messages_request(&messages)?;
            save(out, name, "beta.messages.create", &whole)?;
            let trimmed = trim_to_block(&whole)?.ok_or("nothing stands before the block")?;
            save(out, &format!("{name}-trimmed"), "beta.messages.create", &trimmed)?;
            let usage = reported(text)?.ok_or("no usage")?;
            json!({
                "text": block.text()?, "paused": paused, "edits": format!("{edits:?}"),
                "input": usage.input_total, "output": usage.output_total,
            })
        }
        "replay" => {
            let block = match epitome_compactors::managed::anthropic::SummaryAnswer::read(text)? {
                epitome_compactors::managed::anthropic::SummaryAnswer::Written(block) => block,
                other => return Err(format!("{other:?}").into()),
            };
            let whole = messages_request(&messages)?;
            save(out, name, "beta.messages.create", &replay(&whole, 4, &block)?)?;
            json!({"text": block.text()?})
        }
        other => return Err(format!("an answer of another kind: {other}").into()),
    };
    println!("{}", json!({"name": name, "read": told}));
    Ok(())
}

fn told(artefact: &Artefact) -> Value {
    let usage = artefact.usage.unwrap_or_default();
    json!({
        "opaque": artefact.part.opaque.as_deref(), "text": artefact.text().as_str(), "before": artefact.before.len(),
        "tokens": artefact.part.tokens.map(|tokens| tokens.0),
        "input": usage.input_total, "output": usage.output_total, "cached": usage.cache_read,
        "written": usage.cache_creation, "reasoning": usage.reasoning,
    })
}

fn read_messages(text: &str) -> Outcome<Vec<Message>> {
    let read = read(text, &ReadOptions::default().with_from(Format::Anthropic))?;
    Ok(read.conversations().iter().flat_map(|it| it.messages()).cloned().collect())
}
