//! machi-compaction: `MaxMessages`, which takes a list by value and leaves its end.

use std::time::Duration;

use epitome_benches::compare::clock::timed_short;
use epitome_benches::compare::contender::{Rival, Unit};
use epitome_benches::compare::said::{Said, SaidCall, tools};
use machi_compaction::{CompactionStrategy as _, MaxMessages, select_compaction_range};
use machi_types::{Message, ToolCall, ToolCallId};

use crate::{role_named, version};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Machi;

impl Rival for Machi {
    type Message = Message;

    fn name(&self) -> String {
        version("machi-compaction")
    }

    fn call(&self) -> String {
        "`MaxMessages::compact`".to_owned()
    }

    fn unit(&self) -> Unit {
        Unit::Messages
    }

    fn convert(&self, said: &[Said]) -> Vec<Message> {
        let tools = tools(said);
        let message = |said: &Said| {
            if let Some(id) = &said.answers {
                let tool = tools.get(id.as_str()).copied().unwrap_or_default();
                return Message::tool_result(ToolCallId::new(id.as_str()).unwrap(), tool, said.text.as_str());
            }
            let call = |call: &SaidCall| ToolCall {
                id: ToolCallId::new(call.id.as_str()).unwrap(),
                name: call.name.clone(),
                arguments: serde_json::from_str(&call.arguments).unwrap(),
            };
            match said.role.as_str() {
                "system" => Message::system(said.text.as_str()),
                "user" => Message::user(said.text.as_str()),
                _ if said.calls.is_empty() => Message::assistant(said.text.as_str()),
                _ => Message::assistant_tools(said.calls.iter().map(call).collect()),
            }
        };
        said.iter().map(message).collect()
    }

    fn said(&self, messages: &[Message]) -> Vec<Said> {
        let said = |message: &Message| Said {
            role: role_named(message.role.as_str()),
            text: message.content.clone().unwrap_or_default(),
            calls: message
                .tool_calls
                .iter()
                .map(|call| SaidCall {
                    id: call.id.as_str().to_owned(),
                    name: call.name.clone(),
                    arguments: call.arguments.to_string(),
                })
                .collect(),
            answers: message.tool_call_id.as_ref().map(|id| id.as_str().to_owned()),
        };
        messages.iter().map(said).collect()
    }

    fn bytes(&self, message: &Message) -> usize {
        message.content.as_ref().map_or(0, String::len)
    }

    /// `None`: its caller gives it the number of tokens, and it counts none.
    fn tokens(&self, _: &[Message]) -> Option<u64> {
        None
    }

    fn compact(&self, messages: &[Message], limit: u64) -> Vec<Message> {
        self.compact_given(messages.to_vec(), limit)
    }

    fn compact_given(&self, messages: Vec<Message>, limit: u64) -> Vec<Message> {
        let strategy = MaxMessages::new(limit as usize).unwrap();
        match strategy.should_compact(&messages, 0) {
            true => strategy.compact(messages).unwrap().messages,
            false => messages,
        }
    }

    /// Its decision: the place to cut at.
    fn bare(&self, messages: &[Message], limit: u64) -> Option<Duration> {
        Some(timed_short(|| select_compaction_range(messages, limit as usize)))
    }
}
