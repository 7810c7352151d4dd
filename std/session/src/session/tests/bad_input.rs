//! Invalid sessions.

use futures::executor::block_on;
use serde_json::{Value, json};

use crate::provider::HistoryProvider;
use crate::session::{AgentSession, SessionErrorKind};

fn refused(dict: Value) -> String {
    let error = AgentSession::from_dict(dict).unwrap_err();
    assert_eq!(error.kind(), SessionErrorKind::Invalid);
    error.to_string()
}

#[test]
fn each_wrong_field_is_named() {
    assert!(refused(json!([])).contains("object"));
    assert!(refused(json!({"type": "session", "state": {}})).contains("`session_id` is missing"));
    assert!(refused(json!({"type": "session", "session_id": 7})).contains("`session_id` is not a text"));
    assert!(refused(json!({"type": "message", "session_id": "s"})).contains("`type`"));
    assert!(refused(json!({"type": null, "session_id": "s"})).contains("`type`"));
    for state in [json!(null), json!([]), json!("text"), json!(1)] {
        assert!(refused(json!({"session_id": "s", "state": state})).contains("`state` is not an object"));
    }
    assert!(refused(json!({"session_id": "s", "service_session_id": 1})).contains("`service_session_id`"));
    // Fields that the seed does not require may be absent.
    let session = AgentSession::from_dict(json!({"session_id": ""})).unwrap();
    assert!(session.state().is_empty() && session.service_session_id().is_none());
}

#[test]
fn numbers_that_json_does_not_have_are_named_with_their_place() {
    for name in ["NaN", "Infinity", "-Infinity"] {
        let text = format!("{{\"session_id\": \"s\",\n \"state\": {{\"x\": [1, {name}]}}}}");
        let error = AgentSession::from_json(&text).unwrap_err();
        assert_eq!(error.kind(), SessionErrorKind::Invalid, "{error}");
        assert!(error.to_string().starts_with("line 2, column 2"), "{error}");
        assert!(error.to_string().contains(&format!(": {name} is not JSON")), "{error}");
    }
}

#[test]
fn a_text_that_is_not_json_is_corrupt_and_not_quoted() {
    for text in ["", "{\"session_id\": \"s\", \"state\": {\"secret", "secret", &"[".repeat(10_000)] {
        let error = AgentSession::from_json(text).unwrap_err();
        assert_eq!(error.kind(), SessionErrorKind::Corrupt);
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}

#[test]
fn a_list_of_messages_that_is_none_is_an_error_when_it_is_wanted_and_stays() {
    let message = json!({"role": "user", "contents": [{"type": "text", "text": "a secret"}]});
    let texts = [
        (json!({"messages": {}}), "not a list"),
        (json!({"messages": [message, 7]}), "/1"),
        (json!({"messages": [{"role": "alien", "contents": []}]}), "at /0/role"),
        (
            json!({"messages": [{"role": "user", "contents": [{"text": "a secret"}]}]}),
            "at /0/contents/0/type",
        ),
        (json!({"messages": [message], "epitome": {"v": 9}}), "version 9"),
        (json!({"messages": [message], "epitome": {"v": 1}}), "damaged"),
    ];
    for (state, place) in texts {
        let dict = json!({"session_id": "s", "state": {"in_memory": state}});
        let mut session = AgentSession::from_dict(dict).unwrap();
        let mut own = state.as_object().cloned().unwrap();
        let opened = block_on(HistoryProvider::in_memory().open(&mut session, &mut own));
        let error = opened.unwrap_err().to_string();
        assert!(error.contains(place) && !error.contains("secret"), "{error}");
        assert_eq!(Value::Object(own), state);
    }
}

#[test]
fn ten_megabytes_of_state_survive() {
    let text = "x".repeat(10_000_000);
    let dict = json!({"type": "session", "session_id": "s", "service_session_id": null, "state": {"big": {"text": text}}});
    let session = AgentSession::from_json(&dict.to_string()).unwrap();
    assert_eq!(session.to_dict().unwrap(), dict);
}
