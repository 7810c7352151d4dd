//! Hidden messages are marked in the list that Agent Framework reads, and their stand-ins are in it.

use epitome_core::message::Role;
use epitome_core::{Budget, Draft, Pass, Seq, Strategy as Rule, Tokens};
use futures::executor::block_on;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::compaction::{CompactionCx, CompactionOptions, Compactor, Held, MessagesCompactor};
use crate::history::{AppendToken, History};
use crate::message::{Message, Part, ToolCall};
use crate::provider::HistoryProvider;
use crate::session::{AgentSession, State};
use crate::wire::agent_framework::read_messages;

fn open(session: &mut AgentSession) -> History {
    let mut state = match session.state_mut().remove("in_memory") {
        Some(Value::Object(state)) => state,
        _ => State::new(),
    };
    block_on(HistoryProvider::in_memory().open(session, &mut state)).unwrap()
}

fn list(dict: &Value) -> &Vec<Value> {
    dict["state"]["in_memory"]["messages"].as_array().unwrap()
}

/// Messages that Agent Framework sends: `InMemoryHistoryProvider(skip_excluded=True)`.
fn theirs(dict: &Value) -> Vec<Value> {
    let sent = list(dict).iter().filter(|value| value["additional_properties"]["_excluded"] != true);
    sent.cloned().collect()
}

fn said<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Vec<(Role, Vec<Part>)> {
    messages.into_iter().map(|message| (message.role(), message.parts().to_vec())).collect()
}

/// Shortens tool results.
#[derive(Debug)]
struct Clearing;

impl Rule for Clearing {
    fn name(&self) -> &'static str {
        "clearing"
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        for part in draft.index().parts() {
            let _ = draft.elide(&part, Tokens(10));
        }
    }
}

/// Action after a turn.
#[derive(Debug, Clone, Copy)]
enum Then {
    Nothing,
    /// Hides all messages except the newest ones and the last request; with a summary or without.
    Keep(usize, bool),
    Clear,
    Undo,
    Rewind(u64),
}

/// A turn: the number of its calls, and whether the first call has its answer in the next turn.
#[derive(Debug, Clone, Copy)]
struct Turn {
    calls: usize,
    late: bool,
    then: Then,
}

impl Turn {
    fn messages(self, number: usize, before: Option<Self>) -> Vec<Message> {
        let mut messages = vec![Message::user(format!("Question {number}, with some words around it."))];
        let result = |number: usize, at: usize| {
            Message::tool(format!("c{number}-{at}"), "what was read, line by line, ".repeat(8))
        };
        if before.is_some_and(|before| before.calls > 0 && before.late) {
            messages.push(result(number - 1, 0));
        }
        let call = |at| Part::ToolCall(ToolCall::new(format!("c{number}-{at}"), "read", "{}"));
        if self.calls > 0 {
            messages.push(Message::new(Role::Assistant, (0..self.calls).map(call).collect()));
        }
        let skipped = usize::from(self.late);
        messages.extend((skipped..self.calls).map(|at| result(number, at)));
        messages.push(Message::assistant(format!("Answer {number}, with some words around it.")));
        messages
    }
}

fn keep(newest: usize, summary: bool) -> MessagesCompactor {
    MessagesCompactor::new("keep", move |messages: Vec<Held>, _: CompactionOptions| async move {
        let last = messages.iter().rposition(|held| held.role() == Role::User);
        let mut from = messages.len().saturating_sub(newest);
        // The cut is not in the middle of a group.
        while messages.get(from).is_some_and(|held| held.role() == Role::Tool) {
            from += 1;
        }
        let mut returned: Vec<Held> = Vec::new();
        if summary && from > 1 {
            returned.push(Message::assistant("So far.").into());
        }
        let stays = messages.into_iter().enumerate().filter(|(at, _)| *at >= from || Some(*at) == last);
        returned.extend(stays.map(|(_, held)| held));
        Ok(returned)
    })
}

fn act(history: &mut History, then: Then) {
    let budget = Budget::builder().window(u64::MAX).reserve(0).min_reclaim(0).without_goal().build().unwrap();
    block_on(async {
        match then {
            Then::Nothing => {}
            Then::Keep(newest, summary) => {
                let mut cx = CompactionCx::new(history, budget, Pass::Manual);
                // The compaction is refused if it would hide open work, or nothing.
                drop(keep(newest, summary).compact(&mut cx).await);
            }
            Then::Clear => drop(history.compact(&budget, Pass::Manual, &Clearing).await),
            Then::Undo => {
                if let Some(latest) = history.latest_compaction().await.unwrap() {
                    history.uncompact(latest.revision).await.unwrap();
                }
            }
            Then::Rewind(back) => {
                let at = Seq(history.head().0.saturating_sub(back));
                drop(history.rewind(at).await);
            }
        }
    });
}

fn check(turns: &[Turn]) -> Result<(), TestCaseError> {
    let mut session = AgentSession::with_id("s");
    let mut history = open(&mut session);
    for (number, turn) in turns.iter().enumerate() {
        let before = number.checked_sub(1).map(|before| turns[before]);
        let token = AppendToken::new(format!("run-{number}"));
        block_on(history.append(&token, turn.messages(number, before))).unwrap();
        act(&mut history, turn.then);
        let dict = session.to_dict().unwrap();
        // Agent Framework sends the same messages.
        let sent = read_messages(&theirs(&dict)).unwrap();
        prop_assert_eq!(said(&sent), said(history.projection()));
        // A reload gives the same session.
        let mut again = AgentSession::from_dict(dict.clone()).unwrap();
        let reloaded = open(&mut again);
        prop_assert_eq!(reloaded.live(), history.live());
        prop_assert_eq!((reloaded.head(), reloaded.revision()), (history.head(), history.revision()));
        prop_assert_eq!(again.to_dict().unwrap(), dict);
        // Either the original session or the reloaded one continues.
        if number % 2 == 1 {
            (session, history) = (again, reloaded);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn their_framework_sends_what_is_sent_here(turns in vec(turn(), 1..9)) {
        check(&turns)?;
    }
}

fn turn() -> impl Strategy<Value = Turn> {
    let then = prop_oneof![
        2 => Just(Then::Nothing),
        3 => (1_usize..7, any::<bool>()).prop_map(|(newest, summary)| Then::Keep(newest, summary)),
        2 => Just(Then::Clear),
        2 => Just(Then::Undo),
        1 => (1_u64..5).prop_map(Then::Rewind),
    ];
    (0_usize..3, prop::bool::weighted(0.2), then).prop_map(|(calls, late, then)| Turn { calls, late, then })
}

/// Four turns, of which the newest two stay, and a summary of the rest.
fn compacted() -> (AgentSession, History) {
    let mut session = AgentSession::with_id("s");
    let mut history = open(&mut session);
    for number in 0..4 {
        let turn = Turn { calls: 1, late: false, then: Then::Nothing };
        let token = AppendToken::new(format!("run-{number}"));
        block_on(history.append(&token, turn.messages(number, None))).unwrap();
    }
    act(&mut history, Then::Keep(8, true));
    (session, history)
}

#[test]
fn a_list_that_says_nothing_else_shows_the_same() {
    let (session, history) = compacted();
    let mut dict = session.to_dict().unwrap();
    assert_eq!((list(&dict).len(), theirs(&dict).len()), (16 + 1, 8 + 1));
    assert_eq!(list(&dict)[0]["contents"][0]["text"], "So far.");
    assert_eq!(
        list(&dict)[1]["additional_properties"],
        json!({"_excluded": true, "_exclude_reason": "epitome"})
    );
    // The session of a program that keeps only Agent Framework's fields.
    dict["state"]["in_memory"].as_object_mut().unwrap().remove("epitome");
    let alone = open(&mut AgentSession::from_dict(dict).unwrap());
    // The first request is protected if the cause of its hiding is unknown.
    let mut expected = said(history.projection());
    expected
        .insert(1, (Role::User, Message::user("Question 0, with some words around it.").parts().to_vec()));
    assert_eq!(said(alone.projection()), expected);
}

#[test]
fn what_they_exclude_of_what_stands_for_others_is_hidden_here() {
    let (session, history) = compacted();
    let mut dict = session.to_dict().unwrap();
    dict["state"]["in_memory"]["messages"][0]["additional_properties"]["_excluded"] = true.into();
    let without = open(&mut AgentSession::from_dict(dict).unwrap());
    assert_eq!(said(without.projection()), said(history.projection())[1..]);
}

#[test]
fn what_their_contents_cannot_say_is_not_hidden_from_them() {
    let (session, mut history) = compacted();
    let mut latest = block_on(history.latest_compaction()).unwrap().unwrap();
    block_on(history.uncompact(latest.revision)).unwrap();
    // A summary that a service has sealed has no text.
    let sealed = crate::message::CompactionPart::new("openai", "", Some("sealed".into()));
    let summary = &mut latest.record.summaries[0];
    summary.message = summary.message.clone().with_parts(vec![Part::Compaction(sealed)]);
    latest.record.parent = history.revision();
    block_on(history.commit(&latest.record)).unwrap();
    let dict = session.to_dict().unwrap();
    assert_eq!((history.live().len(), theirs(&dict).len()), (9, 16));
    let reloaded = open(&mut AgentSession::from_dict(dict).unwrap());
    assert_eq!(reloaded.live(), history.live());
}

#[test]
fn the_sizes_of_parts_survive() {
    let (session, history) = compacted();
    let sizes = |history: &History| -> Vec<Vec<Tokens>> {
        history.live().iter().map(|live| live.entry.part_tokens.clone()).collect()
    };
    assert!(sizes(&history).iter().any(|sizes| !sizes.is_empty()));
    let reloaded = open(&mut AgentSession::from_dict(session.to_dict().unwrap()).unwrap());
    assert_eq!(sizes(&reloaded), sizes(&history));
}
