//! The answers of an external program.

use std::collections::{HashMap, VecDeque};

use epitome::core::TokenCounter;
use epitome::wire::openai_chat;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::Given;
use crate::commands::eval::prompt::CountedMessage;

/// The messages that are left after a compaction by a program.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) left: Vec<Given>,
}

/// An answer in its JSON form.
#[derive(Deserialize)]
struct Written<'a> {
    /// The numbers of messages of the request, ascending from 0.
    keep: Option<Vec<u64>>,
    /// Messages, in the form of the request.
    #[serde(borrow)]
    messages: Option<Vec<&'a RawValue>>,
    /// The reason that the program has no answer.
    error: Option<String>,
}

impl Answer {
    /// Reads an answer to a request with these messages and their texts. The error is the reason that the answer cannot
    /// be used.
    pub(super) fn parse(
        line: &[u8],
        given: &[Given],
        texts: &[String],
        counter: &dyn TokenCounter,
    ) -> Result<Self, String> {
        let line = core::str::from_utf8(line).map_err(|_| "it is not UTF-8".to_owned())?;
        // The error has only the column: a message of the JSON reader may quote a text.
        let written: Written<'_> = serde_json::from_str(line).map_err(|error| {
            let what = if error.is_data() { "it is another JSON than expected" } else { "it is no JSON" };
            format!("{what} (column {}): {EXPECTED}", error.column())
        })?;
        let left = match written {
            Written { error: Some(why), .. } => return Err(format!("the program says: {why}")),
            Written { keep: Some(keep), messages: None, .. } => kept(&keep, given)?,
            Written { keep: None, messages: Some(messages), .. } => {
                returned(&messages, given, texts, counter)?
            }
            _ => return Err(EXPECTED.to_owned()),
        };
        Ok(Self { left })
    }
}

fn kept(keep: &[u64], given: &[Given]) -> Result<Vec<Given>, String> {
    if !keep.is_sorted_by(|one, next| one < next) {
        return Err("`keep` does not ascend: give each number once, in order".to_owned());
    }
    let kept = keep.iter().map(|at| {
        let message = usize::try_from(*at).ok().and_then(|at| given.get(at));
        message.cloned().ok_or_else(|| {
            format!("`keep` has {at}, but the request has {} messages, from 0 on", given.len())
        })
    });
    kept.collect()
}

/// Matches the returned messages with equal ones of the request; the others are new.
fn returned(
    messages: &[&RawValue],
    given: &[Given],
    texts: &[String],
    counter: &dyn TokenCounter,
) -> Result<Vec<Given>, String> {
    let mut same: HashMap<String, VecDeque<&Given>> = HashMap::new();
    for (given, text) in given.iter().zip(texts) {
        same.entry(normal(text)).or_default().push_back(given);
    }
    let returned = messages.iter().enumerate().map(|(at, message)| {
        if let Some(given) = same.get_mut(&normal(message.get())).and_then(VecDeque::pop_front) {
            return Ok(given.clone());
        }
        let message = openai_chat::read(message.get())
            .map_err(|error| format!("message {at} is none of Chat Completions: {error}"))?;
        Ok(Given { position: None, counted: CountedMessage::of(message, counter) })
    });
    returned.collect()
}

/// A message in a normal form: without the order of its fields, and without empty fields.
fn normal(text: &str) -> String {
    let Ok(Value::Object(mut fields)) = serde_json::from_str(text) else { return text.to_owned() };
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    fields.retain(|_, value| !is_empty(value));
    Value::Object(fields).to_string()
}

const EXPECTED: &str = "expected {\"keep\": [0, 5, ..]} with numbers of messages of the request, or {\"messages\": [..]} with messages of \
    Chat Completions, on one line";
