//! agent-framework-core: `compact` with one of its strategies, on a list that it takes by reference.

use std::time::Duration;

use agent_framework_core::compaction::{
    ApproxTokenizer, CompactionStrategy, SelectiveToolResult, SlidingWindow, TokenBudget, Truncation,
    compact, count_message_tokens,
};
use agent_framework_core::types::{
    Content, FunctionArguments, FunctionCallContent, FunctionResultContent, Message,
};
use epitome_benches::compare::clock::{Instant, timed};
use epitome_benches::compare::contender::{Rival, Unit};
use epitome_benches::compare::said::{Said, SaidCall};
use serde_json::Value;

use crate::{role_named, version};

/// Which strategy, and how it is called.
#[derive(Debug, Clone, Copy)]
pub(crate) enum AgentFramework {
    Truncation,
    SlidingWindow,
    TokenBudget,
    SelectiveToolResult,
    /// The strategy without the repair of pairs, as a program calls it that does not know of `compact`.
    TruncationAlone,
}

impl AgentFramework {
    pub(crate) const ALL: [Self; 5] = [
        Self::Truncation,
        Self::SlidingWindow,
        Self::TokenBudget,
        Self::SelectiveToolResult,
        Self::TruncationAlone,
    ];

    fn strategy(self, limit: u64) -> Box<dyn CompactionStrategy> {
        let limit = limit as usize;
        match self {
            Self::Truncation | Self::TruncationAlone => Box::new(Truncation::new(limit)),
            // The system message is beside its window.
            Self::SlidingWindow => Box::new(SlidingWindow::new(limit.saturating_sub(1))),
            Self::TokenBudget => Box::new(TokenBudget::new(limit)),
            Self::SelectiveToolResult => Box::new(SelectiveToolResult::new(limit)),
        }
    }
}

impl Rival for AgentFramework {
    type Message = Message;

    fn name(&self) -> String {
        version("agent-framework-core")
    }

    fn call(&self) -> String {
        match self {
            Self::Truncation => "`compact(Truncation)`",
            Self::SlidingWindow => "`compact(SlidingWindow)`",
            Self::TokenBudget => "`compact(TokenBudget)`",
            Self::SelectiveToolResult => "`compact(SelectiveToolResult)`",
            Self::TruncationAlone => "`Truncation::compact` alone",
        }
        .to_owned()
    }

    fn unit(&self) -> Unit {
        match self {
            Self::TokenBudget => Unit::Tokens,
            Self::SelectiveToolResult => Unit::ToolUses,
            _ => Unit::Messages,
        }
    }

    fn convert(&self, said: &[Said]) -> Vec<Message> {
        said.iter().map(message).collect()
    }

    fn said(&self, messages: &[Message]) -> Vec<Said> {
        messages.iter().map(said_of).collect()
    }

    fn bytes(&self, message: &Message) -> usize {
        let content = |content: &Content| match content {
            Content::Text(text) => text.text.len(),
            Content::FunctionCall(call) => match &call.arguments {
                Some(FunctionArguments::Raw(raw)) => raw.len(),
                _ => 0,
            },
            Content::FunctionResult(result) => {
                result.result.as_ref().and_then(Value::as_str).map_or(0, str::len)
            }
            _ => 0,
        };
        message.contents.iter().map(content).sum()
    }

    fn tokens(&self, messages: &[Message]) -> Option<u64> {
        Some(messages.iter().map(|message| count_message_tokens(&ApproxTokenizer, message) as u64).sum())
    }

    fn compact(&self, messages: &[Message], limit: u64) -> Vec<Message> {
        let strategy = self.strategy(limit);
        match self {
            Self::TruncationAlone => strategy.compact(messages, &ApproxTokenizer),
            _ => compact(messages, &*strategy, &ApproxTokenizer),
        }
    }

    /// `compact` clones the whole list and drops the clone: a clone and a drop of it, measured right after, are taken
    /// off. The rest still clones the messages that are kept.
    fn bare(&self, messages: &[Message], limit: u64) -> Option<Duration> {
        let start = Instant::now();
        let kept = std::hint::black_box(self.compact(messages, limit));
        let call = start.elapsed();
        let cloned = match self {
            Self::TruncationAlone => timed(|| kept.clone()),
            _ => timed(|| messages.to_vec()) + timed(|| kept.clone()),
        };
        Some(call.saturating_sub(cloned))
    }
}

fn message(said: &Said) -> Message {
    let mut contents = Vec::new();
    match &said.answers {
        Some(id) => {
            let result = Some(Value::String(said.text.clone()));
            contents.push(Content::FunctionResult(FunctionResultContent::new(id.clone(), result)));
        }
        None if !said.text.is_empty() => contents.push(Content::text(said.text.clone())),
        None => {}
    }
    for SaidCall { id, name, arguments } in &said.calls {
        let arguments = Some(FunctionArguments::Raw(arguments.clone()));
        contents.push(Content::FunctionCall(FunctionCallContent::new(id.clone(), name.clone(), arguments)));
    }
    Message::with_contents(said.role.as_str(), contents)
}

fn said_of(message: &Message) -> Said {
    let mut said = Said::text(role_named(message.role.as_str()), "");
    for content in &message.contents {
        match content {
            Content::Text(text) => said.text.push_str(&text.text),
            Content::FunctionCall(call) => said.calls.push(SaidCall {
                id: call.call_id.clone(),
                name: call.name.clone(),
                arguments: match &call.arguments {
                    Some(FunctionArguments::Raw(raw)) => raw.clone(),
                    arguments => serde_json::to_string(arguments).unwrap(),
                },
            }),
            Content::FunctionResult(result) => {
                said.answers = Some(result.call_id.clone());
                said.text = result.result.as_ref().and_then(Value::as_str).unwrap().to_owned();
            }
            content => panic!("nobody said {content:?}"),
        }
    }
    said
}
