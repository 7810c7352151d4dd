//! The history of a session, with its compactions, after a reload.

use async_trait::async_trait;
use epitome_core::{Budget, Draft, Pass, Strategy};
use futures::executor::block_on;

use crate::compaction::{CompactionCx, CompactionOutcome, Compactor};
use crate::history::{AppendToken, History};
use crate::message::{Message, Part, ToolCall};
use crate::provider::HistoryProvider;
use crate::session::{AgentSession, SessionError, SessionErrorKind, State};
use epitome_core::message::Role;

#[derive(Debug)]
struct Oldest;

impl Strategy for Oldest {
    fn name(&self) -> &'static str {
        "oldest"
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        draft.drop_oldest();
    }
}

#[async_trait]
impl Compactor for Oldest {
    fn name(&self) -> &str {
        "oldest"
    }

    async fn compact(&self, cx: &mut CompactionCx<'_>) -> Result<CompactionOutcome, SessionError> {
        let (budget, pass, before) = (*cx.budget(), cx.pass(), cx.measure());
        match cx.history().compact(&budget, pass, self).await {
            Ok(Some(_)) => Ok(CompactionOutcome::Compacted(cx.result_since(before))),
            Ok(None) => Ok(CompactionOutcome::Unchanged("nothing to drop".into())),
            Err(error) => Err(SessionError::new(SessionErrorKind::Infeasible, "oldest").with_source(error)),
        }
    }
}

fn open(session: &mut AgentSession) -> History {
    let mut state = match session.state_mut().remove("in_memory") {
        Some(serde_json::Value::Object(state)) => state,
        _ => State::new(),
    };
    let history = block_on(HistoryProvider::in_memory().open(session, &mut state)).unwrap();
    session.state_mut().insert("in_memory".to_owned(), serde_json::Value::Object(state));
    history
}

fn turn(number: usize) -> Vec<Message> {
    let id = format!("c{number}");
    let call = Part::ToolCall(ToolCall::new(id.as_str(), "read", "{\"path\":\"a\"}"));
    vec![
        Message::user(format!("Question number {number}, at some length")),
        Message::new(Role::Assistant, vec![call]),
        Message::tool(id, "file ".repeat(30)),
        Message::assistant("That is so because of what the file says."),
    ]
}

#[test]
fn a_compacted_history_is_the_same_after_a_reload() {
    let mut session = AgentSession::with_id("s");
    let mut history = open(&mut session);
    for number in 0..12 {
        let token = AppendToken::new(format!("run-{number}"));
        block_on(history.append(&token, turn(number))).unwrap();
        if number % 4 == 3 {
            let budget = Budget::builder().window(1_000).trigger(400).goal(250).build().unwrap();
            let mut cx = CompactionCx::new(&mut history, budget, Pass::Manual);
            let CompactionOutcome::Compacted(result) = block_on(Oldest.compact(&mut cx)).unwrap() else {
                panic!("there is something to drop")
            };
            assert!(result.compacted_count < result.original_count);
            assert!(result.compacted_tokens < result.original_tokens);
        }
    }
    // A late answer, to a hidden or a visible call.
    let dict = session.to_dict().unwrap();
    let mut again = AgentSession::from_json(&session.to_json().unwrap()).unwrap();
    let mut reloaded = open(&mut again);
    assert_eq!(reloaded.live(), history.live());
    assert_eq!((reloaded.head(), reloaded.revision()), (history.head(), history.revision()));
    assert!(reloaded.revision().0 >= 3);
    assert_eq!(dict["state"]["in_memory"]["messages"].as_array().unwrap().len(), 48);
    assert_eq!(again.to_dict().unwrap(), dict);

    // An earlier append is not repeated, and both histories continue in the same way.
    let known = AppendToken::new("run-3");
    assert_eq!(
        block_on(reloaded.append(&known, turn(3))).unwrap(),
        block_on(history.append(&known, turn(3))).unwrap()
    );
    let new = AppendToken::new("run-12");
    for history in [&mut history, &mut reloaded] {
        block_on(history.append(&new, turn(12))).unwrap();
    }
    assert_eq!(reloaded.live(), history.live());
}
