//! Sessions that Microsoft Agent Framework has written, and sessions of this library in the same form.

use futures::executor::block_on;
use serde_json::{Value, json};

use epitome_core::Usage;
use epitome_core::attribution::Retention;
use epitome_core::message::{CallKind, Role};

use crate::message::{Message, Part};
use crate::provider::{ContextProvider, HistoryProvider, Hook, NamedAgent, Providers};
use crate::session::{AgentResponse, AgentSession, ServiceSessionId, SessionContext};

/// Written by agent-framework-core 1.23.0.
const THEIRS: &str = include_str!("agent_framework.json");

/// A run of `session` with an in-memory history; returns the messages of the request.
fn run(session: &mut AgentSession, token: &str, says: &str) -> Vec<Message> {
    let (agent, mut providers) = (NamedAgent::new("a"), Providers::default());
    providers.push(HistoryProvider::in_memory()).unwrap();
    let mut context = SessionContext::new(session, token, vec![Message::user(says)]);
    block_on(providers.before_run(&agent, session, &mut context)).unwrap();
    let prompt = context.prompt_messages().cloned().collect();
    context = context.with_response(AgentResponse::new(vec![Message::assistant("Sure.")]));
    block_on(providers.after_run(&agent, session, &mut context)).unwrap();
    prompt
}

fn messages_of(dict: &Value) -> &Vec<Value> {
    dict["state"]["in_memory"]["messages"].as_array().unwrap()
}

#[test]
fn a_session_of_theirs_is_the_same_after_a_round_trip_without_runs() {
    let theirs: Value = serde_json::from_str(THEIRS).unwrap();
    let session = AgentSession::from_json(THEIRS).unwrap();
    assert_eq!(session.session_id().as_str(), "s-1");
    assert!(matches!(session.service_session_id(), Some(ServiceSessionId::Object(_))));
    assert_eq!(session.to_dict().unwrap(), theirs);
}

#[test]
fn a_session_of_theirs_goes_on_here_with_its_messages() {
    let mut theirs: Value = serde_json::from_str(THEIRS).unwrap();
    theirs["service_session_id"] = Value::Null;
    let mut session = AgentSession::from_dict(theirs.clone()).unwrap();
    let prompt = run(&mut session, "run-1", "And now?");
    let before = messages_of(&theirs).len();
    // A result without its call is kept in the log, and is not sent.
    assert_eq!(prompt.len(), before + 1 - 1);
    assert_eq!(prompt[0].role(), Role::System);
    let Part::ToolCall(call) = &prompt[2].parts()[1] else { panic!("a call") };
    assert_eq!((call.id.as_str(), call.name.as_str(), call.kind), ("c1", "f", CallKind::Function));
    let Part::ToolResult(result) = &prompt[4].parts()[0] else { panic!("a result") };
    assert!(result.is_error);

    let ours = session.to_dict().unwrap();
    let (written, read) = (messages_of(&ours), messages_of(&theirs));
    assert_eq!(&written[..before], &read[..]);
    assert_eq!(written.len(), before + 2);
    assert_eq!(written[before]["contents"][0]["text"], "And now?");
    assert_eq!(ours["state"]["custom"], theirs["state"]["custom"]);
    // After a reload it is the same.
    let again = AgentSession::from_dict(ours.clone()).unwrap();
    assert_eq!(again.to_dict().unwrap(), ours);
}

#[test]
fn several_answers_in_one_message_are_split_and_written_as_one() {
    let whole = json!({
        "type": "message", "role": "tool", "additional_properties": {"k": 1},
        "contents": [
            {"type": "function_result", "call_id": "c1", "result": "a"},
            {"type": "function_result", "call_id": "c2", "result": "b"},
        ],
    });
    let calls = json!({
        "type": "message", "role": "assistant", "additional_properties": {},
        "contents": [
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": {"a": 1}},
            {"type": "function_call", "call_id": "c2", "name": "f", "arguments": "{}"},
        ],
    });
    let dict = json!({"session_id": "s", "state": {"in_memory": {"messages": [calls, whole]}}});
    let mut session = AgentSession::from_dict(dict.clone()).unwrap();
    assert_eq!(run(&mut session, "run-1", "Go on").len(), 4);
    let ours = session.to_dict().unwrap();
    assert_eq!(messages_of(&ours)[..2], messages_of(&dict)[..]);
    let mut again = AgentSession::from_dict(ours).unwrap();
    assert_eq!(run(&mut again, "run-2", "And on").len(), 6);
}

#[test]
fn what_their_shape_cannot_say_stands_beside_it() {
    let sealed = crate::message::CompactionPart::new("openai", "", Some("sealed".into()));
    let foreign = crate::message::UnknownPart::new("openai-chat", "future", "{\"x\":1}");
    let said = Message::new(Role::Assistant, vec![Part::Compaction(sealed), Part::Unknown(foreign)]);
    let said = said.with_id("m-1").with_response_id("r-1").with_name("Bo");
    let (agent, provider) = (NamedAgent::new("a"), HistoryProvider::in_memory());
    let mut session = AgentSession::with_id("s");
    let mut state = crate::session::State::new();
    let mut context = SessionContext::new(&session, "run-1", vec![said.clone()]);
    block_on(provider.after_run(Hook::new(&agent, &mut session, &mut context, &mut state))).unwrap();
    let mut again = AgentSession::from_dict(session.to_dict().unwrap()).unwrap();
    assert_eq!(run(&mut again, "run-2", "Hi")[0], said);
}

#[test]
fn a_list_that_was_added_to_keeps_what_was_beside_it_and_a_changed_one_is_taken_as_it_is() {
    let mut session = AgentSession::with_id("s");
    run(&mut session, "run-1", "One");
    let ours = session.to_dict().unwrap();

    let mut added = ours.clone();
    let theirs = json!({"type": "message", "role": "user", "contents": [{"type": "text", "text": "Theirs"}]});
    added["state"]["in_memory"]["messages"].as_array_mut().unwrap().push(theirs);
    let mut session = AgentSession::from_dict(added).unwrap();
    assert_eq!(run(&mut session, "run-2", "Two").len(), 4);
    // The earlier stored run is still known.
    assert_eq!(run(&mut session, "run-1", "One").len(), 6);
    assert_eq!(messages_of(&session.to_dict().unwrap()).len(), 5);

    let mut changed = ours;
    changed["state"]["in_memory"]["messages"][0]["contents"][0]["text"] = json!("Changed");
    let mut session = AgentSession::from_dict(changed).unwrap();
    let prompt = run(&mut session, "run-2", "Two");
    let Part::Text(text) = &prompt[0].parts()[0] else { panic!("a text") };
    assert_eq!((text.as_str(), prompt.len()), ("Changed", 3));
}

#[test]
fn a_list_in_the_state_takes_the_place_of_what_was_kept() {
    let mut session = AgentSession::with_id("s");
    run(&mut session, "run-1", "One");
    session.state_mut().insert("in_memory".to_owned(), json!({"messages": [], "own": true}));
    assert_eq!(session.to_dict().unwrap()["state"]["in_memory"], json!({"messages": [], "own": true}));
    assert_eq!(run(&mut session, "run-2", "Two").len(), 1);
    assert_eq!(session.state()["in_memory"], json!({"own": true}));
}

#[test]
fn usage_and_unknown_fields_survive() {
    let dict = json!({
        "type": "session", "session_id": "s", "service_session_id": "thread_1", "state": {}, "future": [1, {"a": null}],
    });
    let mut session = AgentSession::from_dict(dict.clone()).unwrap();
    assert_eq!(session.to_dict().unwrap(), dict);
    session.record_usage(Some(&Usage::new(1_000, 20)));
    let again = AgentSession::from_dict(session.to_dict().unwrap()).unwrap();
    assert_eq!((again.token_count(), again.usage()), (1_000, session.usage()));
    assert_eq!(again.to_dict().unwrap()["future"], dict["future"]);
    // State of a newer release: not understood, and kept.
    let mut newer = dict;
    newer["epitome"] = json!({"v": 2, "tally": "other"});
    let mut session = AgentSession::from_dict(newer.clone()).unwrap();
    session.record_usage(Some(&Usage::new(1, 1)));
    assert_eq!(session.to_dict().unwrap(), newer);
}

#[test]
fn an_idle_session_is_small() {
    // Besides its own fields, it has only its id on the heap until a provider stores something.
    assert!(size_of::<AgentSession>() <= 1_024, "{}", size_of::<AgentSession>());
}

#[test]
fn labels_from_elsewhere_are_data_unless_they_are_trusted() {
    let labelled = |label: &str| json!({"role": "user", "contents": [label], "additional_properties": {"attribution": label}});
    let dict = json!({
        "type": "session", "session_id": "s", "service_session_id": null,
        "state": {"in_memory": {"messages": [labelled("important"), labelled("ephemeral"), labelled("else")]}},
    });
    let retention = |session: AgentSession| {
        let mut session = session;
        let mut state = session.take_state("in_memory").unwrap();
        let history = block_on(HistoryProvider::in_memory().open(&mut session, &mut state)).unwrap();
        history.projection().map(|message| message.attribution().retention).collect::<Vec<_>>()
    };
    let read = || AgentSession::from_dict(dict.clone()).unwrap();
    assert_eq!(retention(read()), [Retention::Normal; 3]);
    let trusted = [Retention::Pinned, Retention::Ephemeral, Retention::Normal];
    assert_eq!(retention(read().trust_markers()), trusted);
    // Markers that were trusted once are written with the session.
    let mut session = read().trust_markers();
    run(&mut session, "run-1", "And now?");
    let again = AgentSession::from_dict(session.to_dict().unwrap()).unwrap();
    assert_eq!(retention(again)[..3], trusted);
}
