//! langchain-rust: `TokenBufferMemory`, which prunes as messages come, and counts each once.

use std::time::Duration;

use epitome_benches::compare::clock::{Instant, timed};
use epitome_benches::compare::contender::{Contender, Keeping, Looping, Prepared, Returned, Round, Unit};
use epitome_benches::compare::said::{Said, SaidCall};
use epitome_core::message::Role;
use futures::executor::block_on;
use langchain_rust::memory::TokenBufferMemory;
use langchain_rust::schemas::memory::BaseMemory as _;
use langchain_rust::schemas::messages::{Message, MessageType};
use serde_json::{Value, json};

use crate::version;

/// The crate with one of two token counters.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LangChain {
    /// Its default: tiktoken.
    Tiktoken,
    /// A quarter of the bytes, as cheap as a counter can be.
    Bytes,
}

impl LangChain {
    pub(crate) const ALL: [Self; 2] = [Self::Tiktoken, Self::Bytes];

    fn memory(self, limit: u64) -> TokenBufferMemory {
        let memory = TokenBufferMemory::new(limit as usize);
        match self {
            Self::Tiktoken => memory,
            Self::Bytes => memory.with_token_counter(|text| text.len().div_ceil(4)),
        }
    }
}

impl Contender for LangChain {
    fn name(&self) -> String {
        version("langchain-rust")
    }

    fn call(&self) -> String {
        match self {
            Self::Tiktoken => "`TokenBufferMemory`, filled (tiktoken)",
            Self::Bytes => "`TokenBufferMemory`, filled (bytes / 4)",
        }
        .to_owned()
    }

    fn unit(&self) -> Unit {
        Unit::Tokens
    }

    fn prepare(&self, said: &[Said]) -> Box<dyn Prepared> {
        let messages: Vec<_> = said.iter().map(message).collect();
        Box::new(Listed { langchain: *self, messages })
    }

    fn begin(&self, limit: u64, keeping: Keeping) -> Option<Box<dyn Looping>> {
        // The messages that it prunes are gone.
        let memory = (keeping == Keeping::Result).then(|| self.memory(limit))?;
        Some(Box::new(Going { memory, heard: Vec::new() }))
    }
}

struct Listed {
    langchain: LangChain,
    messages: Vec<Message>,
}

impl Listed {
    /// There is no call that compacts: it prunes as messages come, so it is filled from the beginning.
    fn filled(&self, messages: Vec<Message>, limit: u64) -> TokenBufferMemory {
        let mut memory = self.langchain.memory(limit);
        block_on(async {
            for message in messages {
                memory.add_message(message).await.unwrap();
            }
        });
        memory
    }
}

impl Prepared for Listed {
    fn given(&self) -> Vec<Said> {
        self.messages.iter().map(said_of).collect()
    }

    fn own_tokens(&self) -> Option<u64> {
        Some(self.filled(self.messages.clone(), u64::from(u32::MAX)).total_tokens() as u64)
    }

    fn returned(&self, limit: u64) -> Result<Returned, String> {
        let memory = self.filled(self.messages.clone(), limit);
        let messages = block_on(memory.messages()).unwrap();
        Ok(Returned { said: messages.iter().map(said_of).collect(), own: Some(memory.total_tokens() as u64) })
    }

    /// Filling it takes the messages by value. Without cloning and dropping there is nothing that could be told apart.
    fn round(&mut self, limit: u64) -> Round {
        let start = Instant::now();
        let copy = std::hint::black_box(self.messages.clone());
        let cloning = start.elapsed();
        let filling: Duration = timed(|| {
            let memory = self.filled(copy, limit);
            (block_on(memory.messages()).unwrap(), memory)
        });
        Round { kept: Some(cloning + filling), given_away: Some(filling), bare: None }
    }
}

struct Going {
    memory: TokenBufferMemory,
    heard: Vec<Message>,
}

impl Looping for Going {
    fn hear(&mut self, turn: &[Said]) {
        self.heard = turn.iter().map(message).collect();
    }

    fn go_on(&mut self) -> usize {
        let Self { memory, heard } = self;
        let messages = block_on(async {
            for message in heard.drain(..) {
                memory.add_message(message).await.unwrap();
            }
            memory.messages().await.unwrap()
        });
        messages.iter().map(|message| message.content.len()).sum()
    }
}

fn message(said: &Said) -> Message {
    if let Some(id) = &said.answers {
        return Message::new_tool_message(&said.text, id.as_str());
    }
    match said.role {
        Role::System => Message::new_system_message(&said.text),
        Role::User => Message::new_human_message(&said.text),
        _ if said.calls.is_empty() => Message::new_ai_message(&said.text),
        _ => {
            let call =
                |call: &SaidCall| json!({"id": call.id, "name": call.name, "arguments": call.arguments});
            let calls: Value = said.calls.iter().map(call).collect();
            Message::new_ai_message(&said.text).with_tool_calls(calls)
        }
    }
}

fn said_of(message: &Message) -> Said {
    let role = match message.message_type {
        MessageType::SystemMessage => Role::System,
        MessageType::AIMessage => Role::Assistant,
        MessageType::HumanMessage => Role::User,
        MessageType::ToolMessage => Role::Tool,
    };
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let calls = message.tool_calls.as_ref().and_then(Value::as_array).into_iter().flatten();
    let calls = calls.map(|call| SaidCall {
        id: text(&call["id"]),
        name: text(&call["name"]),
        arguments: text(&call["arguments"]),
    });
    let answers = (role == Role::Tool).then(|| message.id.clone()).flatten();
    Said { role, text: message.content.clone(), calls: calls.collect(), answers }
}
