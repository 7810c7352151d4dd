//! A generated history of an agent; the same seed gives the same history.
//!
//! The history begins with instructions of 500 bytes. Then turns repeat: a user message (200 to 400 bytes); one tool
//! call of the model, in every fifth turn two (ids of 29 bytes, arguments of about 100); a result for each call (500 to
//! 2,300); the answer of the model (400 to 800). A message has about 700 bytes of Chat Completions JSON, and 100,000
//! messages have 70 MB. The texts are cut from a pool of 4 MB: English prose, Rust, logs, JSON records, sentences in
//! seven other languages, base64.

mod pool;
mod write;

pub use pool::Pool;
pub use write::{write_json, write_jsonl};

use epitome_core::attribution::AttributionView;
use epitome_core::message::{MessageView, PartView, Parts, Role, Text, ToolCallView, ToolResultView};
use epitome_core::{ClassEstimator, Tokens, count_message};

/// One generated message.
#[derive(Debug)]
pub struct Message<'p> {
    role: Role,
    text: &'p str,
    calls: Vec<Call>,
    answers: Option<String>,
}

#[derive(Debug)]
struct Call {
    id: String,
    name: &'static str,
    arguments: String,
}

impl<'p> Message<'p> {
    /// Role of the message.
    #[must_use]
    pub const fn role(&self) -> Role {
        self.role
    }

    /// Text of the message or of the tool result; empty for a message that has only calls.
    #[must_use]
    pub const fn text(&self) -> &'p str {
        self.text
    }

    /// Id, tool name and arguments of each tool call.
    pub fn calls(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.calls.iter().map(|call| (call.id.as_str(), call.name, call.arguments.as_str()))
    }

    /// Id of the tool call, if the message is a tool result.
    #[must_use]
    pub fn answers(&self) -> Option<&str> {
        self.answers.as_deref()
    }
}

impl Parts for Message<'_> {
    fn for_each_part(&self, visit: &mut dyn FnMut(PartView<'_>)) {
        match &self.answers {
            Some(id) => visit(PartView::ToolResult(ToolResultView::new(id, &Text(self.text)))),
            None if !self.text.is_empty() => visit(PartView::Text(self.text)),
            None => {}
        }
        for (id, name, arguments) in self.calls() {
            visit(PartView::ToolCall(ToolCallView::new(id, name, arguments)));
        }
    }
}

impl MessageView for Message<'_> {
    fn role(&self) -> Role {
        self.role
    }

    fn attribution(&self) -> AttributionView<'_> {
        AttributionView::caller(self.role.authority())
    }
}

/// Endless iterator over the messages of one history.
#[derive(Debug)]
pub struct Messages<'p> {
    pool: &'p Pool,
    random: Random,
    turn: u32,
    /// The model makes two calls at once in every turn whose number is a multiple of this one.
    two_calls_every: u32,
    /// The remaining messages of the turn, in reverse order.
    rest: Vec<Message<'p>>,
}

impl<'p> Messages<'p> {
    /// Creates the history of a seed.
    #[must_use]
    pub fn new(pool: &'p Pool, seed: u64) -> Self {
        let mut messages = Self { pool, random: Random(seed), turn: 0, two_calls_every: 5, rest: Vec::new() };
        let instructions = messages.message(Role::System, 500, 500);
        messages.rest.push(instructions);
        messages
    }

    /// Makes two calls at once in every turn whose number is a multiple of `turns`.
    #[must_use]
    pub const fn with_two_calls_every(mut self, turns: u32) -> Self {
        self.two_calls_every = turns;
        self
    }

    fn begin_turn(&mut self) {
        self.turn = self.turn.wrapping_add(1);
        let calls: Vec<_> = (0..if self.turn.is_multiple_of(self.two_calls_every) { 2 } else { 1 })
            .map(|_| self.call())
            .collect();
        let mut turn = vec![self.message(Role::User, 200, 400)];
        let ids: Vec<_> = calls.iter().map(|call| call.id.clone()).collect();
        turn.push(Message { role: Role::Assistant, text: "", calls, answers: None });
        for id in ids {
            turn.push(Message { answers: Some(id), ..self.message(Role::Tool, 500, 2_300) });
        }
        turn.push(self.message(Role::Assistant, 400, 800));
        self.rest.extend(turn.into_iter().rev());
    }

    fn message(&mut self, role: Role, least: usize, most: usize) -> Message<'p> {
        let text = self.pool.cut(&mut self.random, least, most);
        Message { role, text, calls: Vec::new(), answers: None }
    }

    fn call(&mut self) -> Call {
        let mut id = String::from("call_");
        (0..24).for_each(|_| id.push(char::from(ID_ALPHABET[self.random.below(ID_ALPHABET.len())])));
        let (tool, line) = (self.random.below(TOOLS.len()), self.random.below(900));
        let (folder, file) = (self.random.below(40), self.random.below(400));
        let path = format!("crates/module_{folder}/src/part_{file}.rs");
        let until = line + 40 + self.random.below(80);
        Call {
            id,
            name: TOOLS[tool],
            arguments: format!("{{\"path\": \"{path}\", \"from_line\": {line}, \"to_line\": {until}}}"),
        }
    }
}

impl<'p> Iterator for Messages<'p> {
    type Item = Message<'p>;

    fn next(&mut self) -> Option<Message<'p>> {
        if self.rest.is_empty() {
            self.begin_turn();
        }
        self.rest.pop()
    }
}

/// The sizes of messages, estimated by [`ClassEstimator`].
#[must_use]
pub fn sizes(messages: &[Message<'_>]) -> Vec<Tokens> {
    messages.iter().map(|message| count_message(message, &ClassEstimator::new())).collect()
}

/// Random numbers by `splitmix64`, which depend on the seed alone.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A random number below `end`; 0 if `end` is 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() >> 1).unwrap_or(0).checked_rem(end).unwrap_or(0)
    }
}

const ID_ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const TOOLS: [&str; 5] = ["read_file", "search", "run_tests", "list_folder", "apply_patch"];
