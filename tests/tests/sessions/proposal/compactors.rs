//! The compactors that the proposal defines, word for word, as functions from messages to messages.

use std::sync::Arc;

use epitome::agent::{Agent, ChatClient, ChatRequest};
use epitome::compaction::{
    AutoCompaction, Compaction, CompactionOptions, CompactionResult, Compactor, Held, MessagesCompactor,
    RunPoints,
};
use epitome::core::Trigger;
use epitome::core::message::Role;
use epitome::history::AppendToken;
use epitome::message::Message;
use epitome::provider::{HistoryProvider, Providers};
use epitome::run::{RunEvent, RunOptions, RunSettings};
use epitome::session::{AgentSession, SessionError, SessionErrorKind, State};
use futures::executor::block_on;
use serde_json::Map;

use crate::sessions::support::{Scripted, call, texts};

/// `TruncationCompactor`: system messages, `int(older * kept / 4)` of the older ones, and the newest pairs.
fn truncation(preserve_recent: usize, kept_quarters: usize) -> MessagesCompactor {
    MessagesCompactor::new(
        "TruncationCompactor",
        move |messages: Vec<Held>, _: CompactionOptions| async move {
            let (system, other): (Vec<Held>, Vec<Held>) =
                messages.iter().cloned().partition(|message| message.role() == Role::System);
            let Some(candidates) = other.len().checked_sub(preserve_recent * 2).filter(|older| *older > 0)
            else {
                return Ok(messages);
            };
            let kept = candidates * kept_quarters / 4;
            Ok(system.into_iter().chain(other.into_iter().skip(candidates - kept)).collect())
        },
    )
}

/// `SummarizationCompactor`: all but the newest pairs becomes one system message, which comes first.
fn summarization(client: Scripted, preserve_recent: usize) -> MessagesCompactor {
    MessagesCompactor::new("SummarizationCompactor", move |messages: Vec<Held>, _: CompactionOptions| {
        let client = client.clone();
        async move {
            let Some(older) = messages.len().checked_sub(preserve_recent * 2).filter(|older| *older > 0)
            else {
                return Ok(messages);
            };
            let conversation = texts(messages.iter().take(older).map(|held| &**held)).join("\n");
            let request =
                [Message::system("Summarize this conversation concisely."), Message::user(conversation)];
            let options = Map::new();
            let answer = client.complete(&ChatRequest::without_tools(&request, &options, "")).await;
            let answer =
                answer.map_err(|_| SessionError::new(SessionErrorKind::Unavailable, "no summary"))?;
            let summary = format!("[Conversation Summary]\n{}", answer.messages[0].text());
            let mut compacted = vec![Message::system(summary).into()];
            compacted.extend(messages.into_iter().skip(older));
            Ok(compacted)
        }
    })
}

/// `ManagedCompactor`: the messages that a provider returns.
fn managed(provider: impl Fn(Vec<Held>) -> Vec<Held> + Clone + Send + Sync + 'static) -> MessagesCompactor {
    MessagesCompactor::new("ManagedCompactor", move |messages: Vec<Held>, _: CompactionOptions| {
        let provider = provider.clone();
        async move { Ok(provider(messages)) }
    })
}

/// A system message and ten turns.
fn ten_turns() -> (Agent, Scripted, AgentSession) {
    let mut providers = Providers::default();
    providers.push(HistoryProvider::in_memory()).unwrap();
    let model = Scripted::says("This is the answer to it, of some length.");
    let agent = Agent::with_settings(RunSettings::new("agent").with_providers(providers), model.clone());
    let mut session = agent.create_session(None, None);
    for turn in 0..10 {
        let mut says = vec![Message::user(format!("Question {turn}, with some words around it."))];
        if turn == 0 {
            says.insert(0, Message::system("Answer in Latin."));
        }
        block_on(agent.run(&mut session, says, &RunOptions::default())).unwrap();
    }
    (agent, model, session)
}

fn compact(agent: &Agent, session: &mut AgentSession, compactor: &dyn Compactor) -> CompactionResult {
    block_on(agent.compact(session, compactor, CompactionOptions::default())).unwrap()
}

fn counts(result: CompactionResult) -> (u64, u64) {
    (result.original_count, result.compacted_count)
}

/// Texts of the next request.
fn next_request(agent: &Agent, model: &Scripted, session: &mut AgentSession) -> Vec<String> {
    block_on(agent.run(session, "And now?", &RunOptions::default())).unwrap();
    model.last()
}

#[test]
fn truncation_keeps_what_the_proposal_says() {
    // Of 20 messages 16 are older than two pairs: a quarter, half and three quarters of them stay, with the system message.
    for (quarters, stay) in [(1, 1 + 4 + 4), (2, 1 + 8 + 4), (3, 1 + 12 + 4)] {
        let (agent, model, mut session) = ten_turns();
        let result = compact(&agent, &mut session, &truncation(2, quarters));
        assert_eq!(counts(result), (21, stay), "{quarters} quarters");
        let sent = next_request(&agent, &model, &mut session);
        assert_eq!(sent.len() as u64, stay + 1);
        assert_eq!(sent[0], "system: Answer in Latin.");
        assert!(!sent[1].contains("Question 0"), "the first request goes, as the proposal says: {sent:?}");
    }
    // If all messages are protected, nothing happens.
    let (agent, _, mut session) = ten_turns();
    assert_eq!(counts(compact(&agent, &mut session, &truncation(10, 2))), (21, 21));
}

#[test]
fn truncation_may_keep_an_answer_without_its_request() {
    let (agent, model, mut session) = ten_turns();
    // Numbers are rounded down: three quarters of 14 older messages are 10.5, so that ten stay. Half of the 18 messages
    // that are older than one pair are nine.
    assert_eq!(counts(compact(&agent, &mut session, &truncation(1, 2))), (21, 1 + 9 + 2));
    let sent = next_request(&agent, &model, &mut session);
    assert!(sent[1].starts_with("assistant: This is the answer"), "{sent:?}");
}

#[test]
fn summarization_keeps_what_the_proposal_says() {
    let (agent, model, mut session) = ten_turns();
    let writes = Scripted::says("All was answered.");
    let result = compact(&agent, &mut session, &summarization(writes.clone(), 3));
    // On purpose: the leading system message stays before the summary, which has the role of the assistant.
    assert_eq!(counts(result), (21, 1 + 1 + 6));
    assert!(writes.last()[1].contains("system: Answer in Latin.\nuser: Question 0"));
    let sent = next_request(&agent, &model, &mut session);
    assert_eq!(sent[0], "system: Answer in Latin.");
    assert_eq!(sent[1], "assistant: [Conversation Summary]\nAll was answered.");
    assert!(sent[2].contains("Question 7"), "{sent:?}");
    // The next summary includes the earlier summary.
    assert_eq!(counts(compact(&agent, &mut session, &summarization(writes.clone(), 3))), (10, 8));
    assert!(writes.last()[1].contains("All was answered."));
}

#[test]
fn a_provider_may_return_whatever_it_likes_but_for_the_last_request() {
    let (agent, model, mut session) = ten_turns();
    let only_the_end = managed(|messages| {
        let mut returned: Vec<Held> = vec![Message::assistant("Compacted elsewhere.").into()];
        returned.extend(messages.into_iter().rev().find(|message| message.role() == Role::User));
        returned
    });
    assert_eq!(counts(compact(&agent, &mut session, &only_the_end)), (21, 3));
    let sent = next_request(&agent, &model, &mut session);
    assert_eq!(sent.len(), 4, "{sent:?}");
}

#[test]
fn they_run_by_themselves() {
    for compactor in [truncation(2, 2), summarization(Scripted::says("Short."), 2)] {
        let (agent, _, mut session) = ten_turns();
        let auto = AutoCompaction::new(Arc::new(compactor)).with_trigger(Trigger::tokens(10));
        let options = RunOptions::default().with_compaction(Compaction::With(auto));
        let outcome = block_on(agent.run(&mut session, "Go on.", &options)).unwrap();
        let compacted = outcome.events.iter().any(|event| matches!(event, RunEvent::Compacted { .. }));
        assert!(compacted, "{:?}", outcome.events);
    }
}

#[test]
fn the_agents_instructions_stay_in_a_run() {
    let model = Scripted::says("This is the answer to it, of some length.");
    let auto = AutoCompaction::new(Arc::new(summarization(Scripted::says("Short."), 1)))
        .with_trigger(Trigger::tokens(60))
        .with_points(RunPoints::NONE.and_before_call());
    let settings = RunSettings::new("agent").with_instructions("You help.").with_compaction(auto);
    let agent = Agent::with_settings(settings, model.clone());
    let mut session = agent.create_session(None, None);
    for turn in 0..6 {
        let says = format!("Question {turn}, with some words around it.");
        block_on(agent.run(&mut session, says, &RunOptions::default())).unwrap();
    }
    let sent = model.last();
    assert_eq!(
        (sent[0].as_str(), sent[1].as_str()),
        ("system: You help.", "assistant: [Conversation Summary]\nShort.")
    );
    assert!(sent.last().unwrap().contains("Question 5"), "{sent:?}");
}

/// A compactor that drops the messages for which `drops` returns true, and no others.
fn dropping(drops: impl Fn(usize, &Held) -> bool + Send + Sync + 'static) -> MessagesCompactor {
    let drops = Arc::new(drops);
    MessagesCompactor::new("dropping", move |messages: Vec<Held>, _: CompactionOptions| {
        let drops = Arc::clone(&drops);
        async move {
            let stays = messages.into_iter().enumerate().filter(|(at, held)| !drops(*at, held));
            Ok(stays.map(|(_, held)| held).collect())
        }
    })
}

/// The error of a compactor that is refused, in a session with these messages at its end.
fn refused(compactor: &MessagesCompactor, messages: Vec<Message>) -> String {
    let (agent, _, mut session) = ten_turns();
    let error = block_on(async {
        let provider = HistoryProvider::in_memory();
        let mut history = provider.open(&mut session, &mut State::new()).await.unwrap();
        history.append(&AppendToken::new("more"), messages).await.unwrap();
        agent.compact(&mut session, compactor, CompactionOptions::default()).await.unwrap_err()
    });
    error.to_string()
}

#[test]
fn what_is_refused_says_why_and_what_to_do() {
    let asked = || vec![Message::user("Look."), call("c1", "look")];
    let answered = || {
        let mut messages = asked();
        messages.push(Message::tool("c1", "Found."));
        messages
    };
    let cases = [
        (
            refused(&dropping(|at, _| at == 22), asked()),
            "message 23 of 23 is missing, whose call or request for approval has no answer yet: return it",
        ),
        (
            refused(&dropping(|at, _| at == 21), answered()),
            "message 22 of 24 is missing, the last request of the user: return it",
        ),
        (
            refused(&dropping(|at, _| at == 22), answered()),
            "message 23 of 24 is missing, and another one of its group was returned: return a call with all its results, or none of it",
        ),
    ];
    for (error, why) in cases {
        assert!(error.contains(why), "{error}");
    }
}
