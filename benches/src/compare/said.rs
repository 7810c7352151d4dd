//! Messages in a common form, which are converted to and from the messages of each contender.

use std::collections::HashMap;

use epitome_core::TokenCounter;
use epitome_core::message::Role;
use serde_json::{Value, json};

use crate::generated::{Message, Messages, Pool};

/// One message.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Said {
    /// Role of the message.
    pub role: Role,
    /// Text of the message or of the tool result.
    pub text: String,
    /// Tool calls of the message.
    pub calls: Vec<SaidCall>,
    /// Id of the tool call, if the message is a tool result.
    pub answers: Option<String>,
}

/// One call of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SaidCall {
    /// Id of the call. The result of the call refers to it.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// Arguments as JSON without spaces, as a parsed value is serialized.
    pub arguments: String,
}

impl Said {
    /// A message without calls that is not a tool result.
    #[must_use]
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self { role, text: text.into(), calls: Vec::new(), answers: None }
    }

    /// The result of the call `id`.
    #[must_use]
    pub fn result(id: impl Into<String>, text: impl Into<String>) -> Self {
        Self { answers: Some(id.into()), ..Self::text(Role::Tool, text) }
    }

    /// Size of the message by `counter`: text, names and arguments, without framing.
    #[must_use]
    pub fn tokens(&self, counter: &dyn TokenCounter) -> u64 {
        let calls = self.calls.iter().flat_map(|call| [&call.name, &call.arguments]);
        calls.chain([&self.text]).map(|text| counter.count(text).as_u64()).sum()
    }

    /// The message as Chat Completions JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut json = json!({"role": self.role.as_str(), "content": self.text});
        if let Some(id) = &self.answers {
            json["tool_call_id"] = json!(id);
        }
        if !self.calls.is_empty() {
            let call = |call: &SaidCall| {
                json!({"id": call.id, "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments}})
            };
            json["tool_calls"] = self.calls.iter().map(call).collect();
        }
        json
    }

    /// Reads a message from Chat Completions JSON.
    #[must_use]
    pub fn of_json(json: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let role = [Role::System, Role::User, Role::Assistant, Role::Tool]
            .into_iter()
            .find(|role| json["role"] == role.as_str())
            .unwrap();
        let calls = json["tool_calls"].as_array().into_iter().flatten().map(|call| SaidCall {
            id: text(&call["id"]),
            name: text(&call["function"]["name"]),
            arguments: text(&call["function"]["arguments"]),
        });
        Self {
            role,
            text: text(&json["content"]),
            calls: calls.collect(),
            answers: json["tool_call_id"].as_str().map(str::to_owned),
        }
    }
}

impl From<Message<'_>> for Said {
    fn from(message: Message<'_>) -> Self {
        let calls = message.calls().map(|(id, name, arguments)| SaidCall {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: serde_json::from_str::<Value>(arguments).unwrap().to_string(),
        });
        Self {
            role: message.role(),
            text: message.text().to_owned(),
            calls: calls.collect(),
            answers: message.answers().map(str::to_owned),
        }
    }
}

/// Generates the instructions and then `count` turns.
#[must_use]
pub fn turns(pool: &Pool, seed: u64, count: usize, two_calls_every: u32) -> Vec<Vec<Said>> {
    let mut turns = vec![Vec::new()];
    for message in Messages::new(pool, seed).with_two_calls_every(two_calls_every) {
        if message.role() == Role::User {
            turns.push(Vec::new());
        }
        if turns.len() > count + 1 {
            turns.pop();
            return turns;
        }
        turns.last_mut().unwrap().push(Said::from(message));
    }
    unreachable!("the generator has no end")
}

/// Generates whole turns with at least `messages` messages; in every fifth turn the model calls two tools at once.
#[must_use]
pub fn conversation(pool: &Pool, seed: u64, messages: usize) -> Vec<Said> {
    let mut said = Vec::with_capacity(messages + 8);
    for message in Messages::new(pool, seed) {
        if message.role() == Role::User && said.len() >= messages {
            break;
        }
        said.push(Said::from(message));
    }
    said
}

/// The tool name of each call, by the id of the call.
#[must_use]
pub fn tools(said: &[Said]) -> HashMap<&str, &str> {
    let calls = said.iter().flat_map(|said| &said.calls);
    calls.map(|call| (call.id.as_str(), call.name.as_str())).collect()
}
