//! rig-memory: its policies, which take a list by value. Instructions are usually beside the list there (the preamble).

use std::time::Duration;

use epitome_benches::compare::clock::Instant;
use epitome_benches::compare::contender::{Rival, Unit};
use epitome_benches::compare::said::{Said, SaidCall, tools};
use epitome_core::message::Role;
use rig_core::completion::Message;
use rig_core::message::{
    AssistantContent, AssistantMessage, CallId, Text, ToolCall, ToolFunction, ToolName, ToolResult,
    ToolResultContent, UserContent,
};
use rig_memory::{
    HeuristicTokenCounter, MemoryPolicy, SlidingWindowMemory, TokenCounter as _, TokenWindowMemory,
};

use crate::version;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Rig {
    SlidingWindow,
    TokenWindow,
}

impl Rig {
    pub(crate) const ALL: [Self; 2] = [Self::SlidingWindow, Self::TokenWindow];

    fn policy(self, limit: u64) -> Box<dyn MemoryPolicy> {
        match self {
            Self::SlidingWindow => Box::new(SlidingWindowMemory::last_messages(limit as usize)),
            Self::TokenWindow => {
                Box::new(TokenWindowMemory::new(limit as usize, HeuristicTokenCounter::default()))
            }
        }
    }
}

impl Rival for Rig {
    type Message = Message;

    fn name(&self) -> String {
        version("rig-memory")
    }

    fn call(&self) -> String {
        match self {
            Self::SlidingWindow => "`SlidingWindowMemory::apply`",
            Self::TokenWindow => "`TokenWindowMemory::apply`",
        }
        .to_owned()
    }

    fn unit(&self) -> Unit {
        match self {
            Self::SlidingWindow => Unit::Messages,
            Self::TokenWindow => Unit::Tokens,
        }
    }

    fn convert(&self, said: &[Said]) -> Vec<Message> {
        let tools = tools(said);
        let message = |said: &Said| {
            let text = Text::new(said.text.clone());
            if let Some(id) = &said.answers {
                let result = ToolResult {
                    call: CallId::from_wire(id.clone()),
                    name: ToolName::new(*tools.get(id.as_str()).unwrap()).unwrap(),
                    content: vec![ToolResultContent::Text(text)],
                    is_error: false,
                };
                return Message::User { content: vec![UserContent::ToolResult(result)] };
            }
            match said.role {
                Role::System => Message::System { content: said.text.clone() },
                Role::User => Message::User { content: vec![UserContent::Text(text)] },
                _ => {
                    let text = (!said.text.is_empty()).then(|| AssistantContent::Text(text));
                    let calls = said.calls.iter().map(|call| AssistantContent::ToolCall(tool_call(call)));
                    Message::Assistant(AssistantMessage::new(text.into_iter().chain(calls).collect()))
                }
            }
        };
        said.iter().map(message).collect()
    }

    fn said(&self, messages: &[Message]) -> Vec<Said> {
        messages.iter().map(said_of).collect()
    }

    fn bytes(&self, message: &Message) -> usize {
        match message {
            Message::System { content } => content.len(),
            Message::User { content } => content
                .iter()
                .map(|content| match content {
                    UserContent::Text(text) => text.text.len(),
                    UserContent::ToolResult(result) => {
                        result.content.iter().filter_map(ToolResultContent::as_text).map(str::len).sum()
                    }
                    _ => 0,
                })
                .sum(),
            Message::Assistant(turn) => turn
                .content
                .iter()
                .map(|content| match content {
                    AssistantContent::Text(text) => text.text.len(),
                    _ => 0,
                })
                .sum(),
        }
    }

    fn tokens(&self, messages: &[Message]) -> Option<u64> {
        let counter = HeuristicTokenCounter::default();
        Some(messages.iter().map(|message| counter.count(message) as u64).sum())
    }

    /// Compacts as a load through `PolicyMemory` compacts the messages of its memory.
    fn compact(&self, messages: &[Message], limit: u64) -> Vec<Message> {
        self.compact_given(messages.to_vec(), limit)
    }

    fn compact_given(&self, messages: Vec<Message>, limit: u64) -> Vec<Message> {
        self.policy(limit).apply(messages).unwrap()
    }

    /// Hands out the messages that it takes away, so that nothing is dropped in the time.
    fn bare(&self, messages: &[Message], limit: u64) -> Option<Duration> {
        let (policy, messages) = (self.policy(limit), std::hint::black_box(messages.to_vec()));
        let start = Instant::now();
        let parted = std::hint::black_box(policy.apply_with_demoted(messages).unwrap());
        let time = start.elapsed();
        drop(parted);
        Some(time)
    }
}

fn tool_call(call: &SaidCall) -> ToolCall {
    let arguments = serde_json::from_str(&call.arguments).unwrap();
    let function = ToolFunction::new(ToolName::new(call.name.as_str()).unwrap(), arguments);
    ToolCall::new(CallId::from_wire(call.id.as_str()), function)
}

fn said_of(message: &Message) -> Said {
    match message {
        Message::System { content } => Said::text(Role::System, content.as_str()),
        Message::User { content } => match content.as_slice() {
            [UserContent::Text(text)] => Said::text(Role::User, text.text.as_str()),
            [UserContent::ToolResult(result)] => {
                let text = result.content.iter().filter_map(ToolResultContent::as_text).collect::<String>();
                Said::result(result.call.wire(), text)
            }
            content => panic!("nobody said {content:?}"),
        },
        Message::Assistant(turn) => {
            let mut said = Said::text(Role::Assistant, "");
            for content in &turn.content {
                match content {
                    AssistantContent::Text(text) => said.text.push_str(&text.text),
                    AssistantContent::ToolCall(call) => said.calls.push(SaidCall {
                        id: call.id.wire().into_owned(),
                        name: call.function.name.as_str().to_owned(),
                        arguments: call.function.arguments_value().to_string(),
                    }),
                    content => panic!("nobody said {content:?}"),
                }
            }
            said
        }
    }
}
