//! What the user said, behind which a compaction stands.

use std::format;
use std::string::String;
use std::vec::Vec;

use epitome_core::message::Role;
use epitome_core::{ClassEstimator, TokenCounter as _};
use epitome_std::message::{Message, Part, UnknownPart};
use epitome_std::wire::Format;
use serde_json::Value;

/// How much of what the user said is sent on, the newest first, where the client decides. Source: Codex
/// (`RETAINED_MESSAGE_TOKEN_BUDGET`).
const RETAINED_TOKENS_MAX: u64 = 64_000;

/// What the user said in these messages, each as one text, in order; also what stands before an earlier compaction. Media
/// are not among it: their bytes would outweigh what is gained.
pub(super) fn said(messages: &[Message]) -> Vec<String> {
    messages.iter().flat_map(said_in).filter(|text| !text.is_empty()).collect()
}

fn said_in(message: &Message) -> Vec<String> {
    match message.role() {
        Role::User => Vec::from([text_of(message)]),
        Role::Assistant => message.parts().iter().filter_map(item_text).collect(),
        _ => Vec::new(),
    }
}

/// The texts of a message.
pub(super) fn text_of(message: &Message) -> String {
    let texts = message.parts().iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n\n")
}

/// What the user said in an item that stands before a compaction.
fn item_text(part: &Part) -> Option<String> {
    let Part::Unknown(item) = part else { return None };
    if item.format != Format::OpenaiResponses.as_str() || item.kind != ITEM {
        return None;
    }
    let item: Value = serde_json::from_str(&item.raw).ok()?;
    Some(item.pointer("/content/0/text")?.as_str()?.into())
}

/// As an item of its own.
pub(super) fn item(text: &str) -> Part {
    let text = Value::from(text);
    let raw =
        format!(r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":{text}}}]}}"#);
    Part::Unknown(UnknownPart::new(Format::OpenaiResponses.as_str(), ITEM, raw))
}

/// What an item is called that is a message.
const ITEM: &str = "message";

/// The newest of these that are not too much together, in order.
pub(super) fn newest(said: Vec<String>) -> Vec<String> {
    let counter = ClassEstimator::new();
    let mut left = RETAINED_TOKENS_MAX;
    let fits = |text: &&String| match left.checked_sub(counter.count(text).as_u64()) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    };
    let newest = said.iter().rev().take_while(fits).count();
    let skipped = said.len().saturating_sub(newest);
    said.into_iter().skip(skipped).collect()
}
