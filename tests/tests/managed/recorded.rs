//! Conversations of real agents, of 200 turns, through each way to compact: the service accepts every request, and all
//! facts are known to the end.
//!
//! The conversations are those of `../shared/data`, if that folder exists, and the examples of this repository.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use epitome::compaction::{CompactionOutcome, Compactor};
use epitome::compactors::managed::CompactionService;
use epitome::compactors::managed::anthropic::{
    BackgroundSwap, ContextEdits, ON_DEMAND_BETA, Summarize, SummaryAnswer, Swapped, ThresholdCompaction,
    ThresholdOutcome, choose_cut, trim_to_block,
};
use epitome::compactors::managed::openai::{ResponsesVendor, ServerCompaction, context_management, input};
use epitome::core::message::Role;
use epitome::history::{History, HistoryStore, MemoryStore};
use epitome::message::{Message, Part};
use epitome::wire::{Format, ReadOptions, convert, read};
use serde_json::{Value, json};

use crate::managed::anthropic::client::post;
use crate::managed::openai::sessions::Chat;
use crate::managed::support::{append, block_on, compact, managed, open};
use crate::managed::{anthropic, openai};

/// A model that binds no thinking.
const UNBOUND: &str = "claude-opus-4-8";

/// Maximum size of a turn, in bytes, which are the tokens of the fake services. With small turns compactions are
/// frequent and requests stay small.
const TURN_BYTES_MAX: usize = 3_000;

/// Messages of a turn.
type Turn = Vec<Message>;

/// 200 turns, each with a fact of its own in the user message.
fn two_hundred_turns() -> &'static [Turn] {
    static TURNS: LazyLock<Vec<Turn>> = LazyLock::new(talk);
    &TURNS
}

fn talk() -> Vec<Turn> {
    let mut recorded: Vec<Turn> = files().iter().flat_map(|file| turns(file)).collect();
    assert!(recorded.len() >= 8, "{} turns", recorded.len());
    println!("{} recorded turns", recorded.len());
    // Few recorded turns are repeated, and of many turns every nth is taken.
    let step = (recorded.len() / 200).max(1);
    recorded = recorded.into_iter().step_by(step).collect();
    let all = recorded.iter().cycle().take(200).enumerate();
    all.map(|(fact, turn)| turn.iter().map(|message| with_ids(message, fact)).collect::<Turn>())
        .enumerate()
        .map(|(fact, mut turn)| {
            let mut parts = turn[0].parts().to_vec();
            parts.push(Part::Text(format!("FACT-{fact}").into()));
            turn[0] = turn[0].clone().with_parts(parts);
            turn
        })
        .collect()
}

/// The files with conversations.
fn files() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<PathBuf> =
        ["coding-agent.json", "support-chat.jsonl"].map(|name| root.join("../examples").join(name)).into();
    let data = root.join("../../shared/data");
    if !data.is_dir() {
        println!("skipped: the conversations of ../shared/data, which is not there");
        return files;
    }
    let recorded = [
        "anthropic/agentcmd__claude_full-session-two.jsonl",
        "anthropic/claude-code-viewer__fe5e1c67.jsonl",
        "openai_responses/agentcmd__codex_2025-09-25T08-02-05.jsonl",
        "gemini/entireio-cli__gemini_cli_session_ab2b9748b1.json",
        "langchain/deer-flow__5aa47db1.json",
        "openai_chat/tau-bench__gpt-4o-airline.json",
    ];
    files.extend(recorded.map(|name| data.join(name)));
    files
}

/// The turns of a file that are whole, and not too large.
fn turns(file: &Path) -> Vec<Turn> {
    let text = fs::read_to_string(file).unwrap();
    // A list of runs, each with its conversation under `traj`.
    let runs: Vec<String> = match serde_json::from_str::<Vec<Value>>(&text) {
        Ok(runs) if runs.iter().all(|run| run.get("traj").is_some()) => {
            runs.iter().map(|run| run["traj"].to_string()).collect()
        }
        _ => vec![text],
    };
    let mut turns: Vec<Turn> = Vec::new();
    for run in &runs {
        let transcript =
            read(run.as_str(), &ReadOptions::default()).unwrap_or_else(|error| panic!("{file:?}: {error}"));
        for conversation in transcript.conversations() {
            let messages = conversation.messages().filter_map(plain);
            for message in messages {
                match (message.role(), turns.last_mut()) {
                    (Role::User, _) => turns.push(vec![message]),
                    (_, Some(turn)) => turn.push(message),
                    _ => {}
                }
            }
        }
    }
    turns.retain(is_whole);
    turns
}

/// Message without the parts that only its own provider can read.
fn plain(message: &Message) -> Option<Message> {
    let is_plain = |part: &&Part| match part {
        Part::Text(text) => !text.trim().is_empty(),
        part => matches!(part, Part::ToolCall(_) | Part::ToolResult(_)),
    };
    let parts: Vec<Part> = message.parts().iter().filter(is_plain).cloned().collect();
    let known = matches!(message.role(), Role::User | Role::Assistant | Role::Tool);
    (known && !parts.is_empty()).then(|| Message::new(message.role(), parts))
}

fn is_whole(turn: &Turn) -> bool {
    let mut open: Vec<&str> = Vec::new();
    for part in turn.iter().flat_map(Message::parts) {
        match part {
            Part::ToolCall(call) => open.push(&call.id),
            Part::ToolResult(result) => match open.iter().position(|id| *id == &*result.call_id) {
                Some(at) => drop(open.remove(at)),
                None => return false,
            },
            _ => {}
        }
    }
    let written = convert(turn, Format::OpenaiChat).unwrap();
    open.is_empty()
        && turn.last().is_some_and(|last| last.role() == Role::Assistant)
        && written.losses.is_empty()
        && written.text.len() < TURN_BYTES_MAX
}

/// The message with ids that no other turn has.
fn with_ids(message: &Message, turn: usize) -> Message {
    let parts = message.parts().iter().cloned().map(|part| match part {
        Part::ToolCall(mut call) => {
            call.id = format!("t{turn}_{}", &*call.id).into();
            Part::ToolCall(call)
        }
        Part::ToolResult(mut result) => {
            result.call_id = format!("t{turn}_{}", &*result.call_id).into();
            Part::ToolResult(result)
        }
        part => part,
    });
    message.clone().with_parts(parts.collect())
}

/// Stores the conversation, and compacts it whenever it has more than this number of tokens. Returns the last answer,
/// and the number of compactions.
async fn stored(
    tokens: u64,
    compactor: &dyn Compactor,
    ask: impl AsyncFn(&History) -> (String, Option<Message>),
) -> (String, usize) {
    let store: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
    let mut history = open(&store).await;
    append(&mut history, vec![Message::system("Be brief.")]).await;
    let (mut last, mut compacted) = (String::new(), 0);
    for turn in two_hundred_turns() {
        let (question, answer) = turn.split_first().unwrap();
        append(&mut history, vec![question.clone()]).await;
        let (said, left) = ask(&history).await;
        last = said;
        append(&mut history, left.into_iter().chain(answer.iter().cloned()).collect()).await;
        if history.index().tokens() > tokens {
            let (outcome, _) = compact(&mut history, compactor).await;
            compacted += usize::from(matches!(outcome.unwrap(), CompactionOutcome::Compacted(_)));
        }
    }
    (last, compacted)
}

/// OpenAI's answer to the visible messages, and the compaction in its answer.
async fn at_openai(chat: &Chat, history: &History, threshold: Option<&str>) -> (String, Option<Message>) {
    let shown: Vec<&Message> =
        history.projection().filter(|message| message.role() != Role::System).collect();
    let mut body: Value =
        serde_json::from_str(&input(&ResponsesVendor::openai(), shown).unwrap().text).unwrap();
    (body["model"], body["instructions"], body["store"]) = ("m".into(), "Be brief.".into(), false.into());
    if let Some(edits) = threshold {
        body["context_management"] = serde_json::from_str(edits).unwrap();
    }
    let answer = chat.post(body).await.unwrap();
    let transcript =
        read(answer.as_str(), &ReadOptions::default().with_from(Format::OpenaiResponses)).unwrap();
    let mut messages = transcript.conversations().iter().flat_map(|it| it.messages());
    let left = messages.find(|message| matches!(message.parts(), [Part::Compaction(_)])).cloned();
    (answer, left)
}

fn at_openai_with(service: impl CompactionService + 'static) {
    let chat = Chat::new("openai");
    let (last, compacted) =
        block_on(stored(12_000, &managed(service), async |history| at_openai(&chat, history, None).await));
    assert!(last.contains(" 200 facts"), "{last}");
    assert!(compacted >= 3, "{compacted} compactions");
}

#[test]
fn openai_on_its_own() {
    at_openai_with(openai::service("openai"));
}

#[test]
fn openai_in_band() {
    at_openai_with(openai::service("openai").in_band());
}

#[test]
fn openai_in_passing() {
    let chat = Chat::new("openai");
    let edits = context_management(core::num::NonZeroU64::new(8_000));
    let compactor = ServerCompaction::new(&ResponsesVendor::openai());
    let ask = async |history: &History| at_openai(&chat, history, Some(&edits)).await;
    let (last, compacted) = block_on(stored(0, &compactor, ask));
    assert!(last.contains(" 200 facts"), "{last}");
    assert!(compacted >= 3, "{compacted} compactions");
}

/// A request to Anthropic with these messages.
fn body_of(messages: &[&Message]) -> String {
    let mut body: Value =
        serde_json::from_str(&convert(messages.iter().copied(), Format::Anthropic).unwrap().text).unwrap();
    (body["model"], body["max_tokens"]) = (UNBOUND.into(), 4_096.into());
    body.to_string()
}

#[test]
fn anthropic_on_demand() {
    let service = anthropic::service().with_field("thinking", json!({"type": "disabled"}));
    let ask = async |history: &History| {
        let shown: Vec<&Message> = history.projection().collect();
        let (accepted, text) = post(&body_of(&shown), &[ON_DEMAND_BETA], None).await;
        assert!(accepted, "{text}");
        (text, None)
    };
    let (last, compacted) = block_on(stored(12_000, &managed(service), ask));
    assert!(last.contains(" 200 facts"), "{last}");
    assert!(compacted >= 3, "{compacted} compactions");
}

/// A request as text that grows turn by turn.
struct Growing {
    body: Value,
    last: String,
    compacted: usize,
}

impl Growing {
    fn new() -> Self {
        let body = json!({"model": UNBOUND, "max_tokens": 4_096, "system": "Be brief.", "messages": []});
        Self { body, last: String::new(), compacted: 0 }
    }

    fn push(&mut self, messages: &[Message]) {
        let written = convert(messages, Format::Anthropic).unwrap().text;
        let written: Value = serde_json::from_str(&written).unwrap();
        let all = self.body["messages"].as_array_mut().unwrap();
        all.extend(written["messages"].as_array().unwrap().iter().cloned());
    }

    async fn ask(&mut self, betas: &[&str]) -> Value {
        let (accepted, text) = post(&self.body.to_string(), betas, None).await;
        assert!(accepted, "{text}");
        self.last = text;
        serde_json::from_str(&self.last).unwrap()
    }

    fn check(&self) {
        assert!(self.last.contains(" 200 facts"), "{}", self.last);
        assert!(self.compacted >= 3, "{} compactions", self.compacted);
    }
}

#[test]
fn anthropic_at_a_threshold() {
    let edits = ContextEdits::new().with_compaction(ThresholdCompaction::new().with_trigger(50_000).unwrap());
    let mut talk = Growing::new();
    block_on(async {
        for turn in two_hundred_turns() {
            talk.push(&turn[..1]);
            talk.body = serde_json::from_str(&edits.apply(&talk.body.to_string()).unwrap()).unwrap();
            let answer = talk.ask(&edits.betas()).await;
            let compacted = matches!(
                ThresholdOutcome::read(&talk.last).unwrap(),
                ThresholdOutcome::Compacted { paused: false, .. }
            );
            if compacted {
                talk.compacted += 1;
                let block = json!({"role": "assistant", "content": [answer["content"][0]]});
                talk.body["messages"].as_array_mut().unwrap().push(block);
                let trimmed = trim_to_block(&talk.body.to_string()).unwrap().unwrap();
                talk.body = serde_json::from_str(&trimmed).unwrap();
            }
            talk.answer(turn);
        }
    });
    talk.check();
}

#[test]
fn anthropic_in_the_background() {
    let (mut talk, mut swap, mut under_way) = (Growing::new(), BackgroundSwap::new(), None);
    block_on(async {
        for (at, turn) in two_hundred_turns().iter().enumerate() {
            talk.push(&turn[..1]);
            if let Swapped::Swapped { request, .. } = swap.next_request(&talk.body.to_string()).unwrap() {
                (talk.body, talk.compacted) = (serde_json::from_str(&request).unwrap(), talk.compacted + 1);
            }
            talk.ask(&[ON_DEMAND_BETA]).await;
            talk.answer(turn);
            if let Some((ticket, block)) = under_way.take() {
                // The summary arrives one turn after its request.
                swap.arrive(ticket, block).unwrap();
            } else if at % 20 == 19 {
                let request = talk.body.to_string();
                let cut = choose_cut(&request, 2).unwrap().unwrap();
                let ask = Summarize::new().request(&request, cut).unwrap();
                let ticket = swap.begin(&request, cut).unwrap();
                let (accepted, text) = post(&ask, &[ON_DEMAND_BETA], None).await;
                assert!(accepted, "{text}");
                let SummaryAnswer::Written(block) = SummaryAnswer::read(&text).unwrap() else {
                    panic!("{text}")
                };
                under_way = Some((ticket, block));
            }
        }
    });
    talk.check();
}

impl Growing {
    /// Adds the messages of the model and its tools in a turn.
    fn answer(&mut self, turn: &Turn) {
        // The whole turn is converted, because a conversation must begin with a user message.
        let written = convert(turn, Format::Anthropic).unwrap().text;
        let written: Value = serde_json::from_str(&written).unwrap();
        let said = written["messages"].as_array().unwrap().iter().skip(1).cloned();
        self.body["messages"].as_array_mut().unwrap().extend(said);
    }
}
