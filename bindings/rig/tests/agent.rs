//! Agents of rig with a scripted model, whose memory is a session of Epitome.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, also in its helpers"
)]

use core::convert::Infallible;

use epitome::core::{Budget, Revision, Seq};
use epitome::history::{MemoryStore, SqliteStore};
use epitome_rig::SessionMemory;
use rig_agent::AgentBuilder;
use rig_agent::tool::{Tool, ToolContext};
use rig_core::completion::message::{ToolCall, ToolFunction, ToolName, ToolResultContent, UserContent};
use rig_core::completion::{AssistantContent, Message};
use rig_core::id::ConversationId;
use rig_core::memory::{ConversationMemory, MemoryError};
use rig_core::message::AssistantMessage;
use rig_core::test_utils::{MockCompletionModel, MockTurn};
use serde_json::json;

/// A tool with a long answer.
struct ReadLog;

impl Tool for ReadLog {
    const NAME: &'static str = "read_log";
    type Error = Infallible;
    type Args = serde_json::Value;
    type Output = String;

    fn description(&self) -> String {
        "Reads the log".into()
    }

    fn parameters(&self) -> serde_json::Value {
        json!({"type": "object", "properties": {}})
    }

    async fn call(&self, _: &mut ToolContext, args: Self::Args) -> Result<String, Infallible> {
        Ok(format!("ORDER-{}: ", args["n"]) + &"12:00 fan on, 12:05 fan off\n".repeat(60))
    }
}

fn id() -> ConversationId {
    "greenhouse".into()
}

fn budget(window: u64) -> Budget {
    Budget::builder().window(window).reserve(0).trigger(window * 3 / 4).goal(window / 2).build().unwrap()
}

/// The requests of `turns` runs of an agent that reads the log in each.
async fn talk(memory: &SessionMemory, turns: usize) -> Vec<Vec<Message>> {
    let script = (0..turns).flat_map(|n| {
        [
            MockTurn::tool_call(format!("c{n}"), "read_log", json!({"n": n})),
            MockTurn::text(format!("Turn {n} is fine.")),
        ]
    });
    let model = MockCompletionModel::from_turns(script);
    let agent =
        AgentBuilder::new(model.clone()).memory(memory.clone()).conversation(id()).tool(ReadLog).build();
    for n in 0..turns {
        let answer = agent.prompt(format!("How is turn {n}?")).max_turns(3).await.unwrap();
        assert!(answer.memory_append.is_some_and(|append| append.is_acknowledged()));
    }
    let requests: Vec<_> = model.requests().into_iter().map(|request| request.chat_history).collect();
    requests.iter().for_each(|messages| legal(messages));
    requests
}

/// Each call of a request has its result, and each result stands behind its call.
fn legal(messages: &[Message]) {
    let mut open = Vec::new();
    for message in messages {
        match message {
            Message::Assistant(said) => {
                assert!(open.is_empty(), "a call without its result: {messages:#?}");
                open.extend(said.tool_calls().map(|call| call.id.clone()));
            }
            Message::User { content } => {
                for one in content {
                    if let UserContent::ToolResult(result) = one {
                        assert_eq!(result.name.as_str(), "read_log");
                        let at = open.iter().position(|id| *id == result.call);
                        open.remove(at.unwrap_or_else(|| panic!("a result without its call: {messages:#?}")));
                    }
                }
                assert!(open.is_empty(), "a call without its result: {messages:#?}");
            }
            _ => {}
        }
    }
}

fn sizes(requests: &[Vec<Message>]) -> Vec<usize> {
    requests.iter().map(Vec::len).collect()
}

#[tokio::test]
async fn an_agent_goes_on_where_it_was_in_another_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let memory = SessionMemory::new(SqliteStore::open(&path).unwrap(), budget(100_000));
    assert_eq!(sizes(&talk(&memory, 2).await), [1, 3, 5, 7]);
    let before = memory.load(&id()).await.unwrap();
    drop(memory);
    let memory = SessionMemory::new(SqliteStore::open(&path).unwrap(), budget(100_000));
    assert_eq!(memory.load(&id()).await.unwrap(), before);
    assert_eq!(sizes(&talk(&memory, 1).await), [9, 11]);
}

#[tokio::test]
async fn a_long_conversation_is_compacted_and_every_request_is_legal() {
    let memory = SessionMemory::new(MemoryStore::new(), budget(4_000));
    let bytes = |messages: &Vec<Message>| serde_json::to_string(messages).unwrap().len();
    let requests = talk(&memory, 30).await;
    // 30 results are 50 KB; the next request has some of them whole.
    let most = requests.iter().map(bytes).max();
    assert!(most < Some(25_000), "{most:?}");
    let last = format!("{:?}", requests.last());
    assert_eq!(last.matches("ORDER-29: 12:00 fan on").count(), 1, "{last}");
    assert!(last.contains("How is turn 0?") && last.contains("How is turn 29?"), "{last}");
    assert_eq!(last.matches("ORDER-0: 12:00 fan on").count(), 0, "{last}");
    // A compaction hides, and deletes nothing.
    let history = memory.history(&id()).await.unwrap();
    assert!(history.revision() > Revision(1) && history.index().tokens() < 4_000, "{:?}", history.revision());
    let log = history.log(Seq(0)..Seq(120), 200).await.unwrap();
    let texts: Vec<_> = log.messages.iter().filter_map(|logged| logged.entry.message.wire()).collect();
    let whole = |n: usize| texts.iter().any(|wire| wire.text.contains(&format!("ORDER-{n}: 12:00 fan on")));
    assert!(log.messages.len() == 120 && (0..30).all(whole));
}

#[tokio::test]
async fn what_the_user_says_between_two_results_stands_behind_them() {
    let memory = SessionMemory::new(MemoryStore::new(), budget(100_000));
    let call = |id| ToolCall::from_wire(id, ToolFunction::new(ToolName::new("find").unwrap(), json!({})));
    let (one, other) = (call("c1"), call("c2"));
    let result =
        |call: &ToolCall| UserContent::ToolResult(call.result(vec![ToolResultContent::text("found")]));
    let (first, second, words) = (result(&one), result(&other), UserContent::text("And mine."));
    let said =
        AssistantMessage::new(vec![AssistantContent::ToolCall(one), AssistantContent::ToolCall(other)]);
    let messages =
        |content| vec![Message::user("Find."), Message::Assistant(said.clone()), Message::User { content }];
    let mixed = messages(vec![first.clone(), words.clone(), second.clone()]);
    memory.append(&id(), mixed).await.unwrap();
    assert_eq!(memory.load(&id()).await.unwrap(), messages(vec![first, second, words]));
}

#[tokio::test]
async fn messages_come_back_as_they_were() {
    let memory = SessionMemory::new(MemoryStore::new(), budget(100_000));
    let name = || ToolName::new("find").unwrap();
    let call = ToolCall::from_wire("c1", ToolFunction::new(name(), json!({"b": 1, "a": [true]})));
    let other = ToolCall::from_wire("", ToolFunction::parse(name(), "{\"cut"));
    let results = [
        UserContent::ToolResult(call.result(vec![ToolResultContent::Json { value: json!({"n": 1.50}) }])),
        UserContent::ToolResult(
            other.error_result(vec![ToolResultContent::text("no such file"), ToolResultContent::text("")]),
        ),
        UserContent::text("And this is mine."),
        UserContent::image_base64("aGVsbG8=", None, None),
    ];
    let said = vec![
        AssistantContent::text("Let me look."),
        AssistantContent::reasoning("Where is it?"),
        AssistantContent::ToolCall(call),
        AssistantContent::ToolCall(other),
    ];
    let messages = vec![
        Message::system("Be brief."),
        Message::user("Find it."),
        Message::Assistant(AssistantMessage::new(said)),
        Message::User { content: results.into() },
        Message::assistant("Here."),
    ];
    memory.append(&id(), messages.clone()).await.unwrap();
    assert_eq!(memory.load(&id()).await.unwrap(), messages);
    assert!(memory.load(&"other".into()).await.unwrap().is_empty());
}

#[tokio::test]
async fn what_is_cleared_is_hidden_and_comes_back() {
    let memory = SessionMemory::new(MemoryStore::new(), budget(100_000));
    memory.clear(&id()).await.unwrap();
    memory.append(&id(), vec![Message::user("One"), Message::assistant("Two")]).await.unwrap();
    memory.clear(&id()).await.unwrap();
    assert!(memory.load(&id()).await.unwrap().is_empty());
    let mut history = memory.history(&id()).await.unwrap();
    let revision = history.revision();
    history.uncompact(revision).await.unwrap();
    assert_eq!(memory.load(&id()).await.unwrap().len(), 2);
}

#[tokio::test]
async fn appends_at_the_same_time_are_all_stored() {
    let memory = SessionMemory::new(MemoryStore::new(), budget(100_000));
    let run = |n: usize| {
        let memory = memory.clone();
        async move {
            let said = vec![Message::user(format!("{n}?")), Message::assistant(format!("{n}."))];
            memory.append(&id(), said).await.unwrap();
        }
    };
    tokio::join!(run(0), run(1), run(2), run(3));
    assert_eq!(memory.load(&id()).await.unwrap().len(), 8);
}

#[tokio::test]
async fn what_cannot_fit_is_an_error_of_the_policy() {
    let memory = SessionMemory::new(MemoryStore::new(), budget(100));
    memory.append(&id(), vec![Message::user("word ".repeat(500))]).await.unwrap();
    let error = memory.load(&id()).await.unwrap_err();
    assert!(matches!(error, MemoryError::Policy(_)), "{error:?}");
}
