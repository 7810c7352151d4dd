//! Any session is unchanged after a reload.

use epitome_core::message::{MediaKind, Role};
use futures::executor::block_on;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Map, Value};

use crate::history::AppendToken;
use crate::message::{
    Approval, ApprovalAnswer, CompactionPart, Media, MediaSource, Message, Part, Reasoning, ToolCall,
    ToolResult, UnknownPart,
};
use crate::provider::HistoryProvider;
use crate::session::{AgentSession, State};

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("finite", |float| float.is_finite()).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::from),
            btree_map(key(), inner, 0..5).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Keys. Those with a meaning somewhere are frequent.
fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("type".to_owned()),
        Just("session_id".to_owned()),
        Just("epitome".to_owned()),
        Just("other".to_owned()),
        any::<String>(),
    ]
}

fn any_object() -> impl Strategy<Value = Map<String, Value>> {
    btree_map(key(), any_json(), 0..6).prop_map(|map| map.into_iter().collect())
}

fn short() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), Just("c1".to_owned()), Just("c2".to_owned()), "[a-z\u{4e2d}\"\\\\]{0,5}"]
}

fn any_part() -> impl Strategy<Value = Part> {
    prop_oneof![
        any::<String>().prop_map(|text| Part::Text(text.into())),
        (short(), proptest::option::of(short()), proptest::option::of(short())).prop_map(
            |(text, id, opaque)| {
                let mut reasoning = Reasoning::new(text);
                (reasoning.id, reasoning.opaque) = (id.map(Into::into), opaque.map(Into::into));
                Part::Reasoning(reasoning)
            }
        ),
        (short(), short(), short())
            .prop_map(|(id, name, text)| Part::ToolCall(ToolCall::new(id, name, text))),
        (short(), short()).prop_map(|(mime, uri)| {
            Part::Media(Media::new(MediaKind::Image, mime, MediaSource::Uri(uri.into())))
        }),
        short().prop_map(|data| {
            Part::Media(Media::new(MediaKind::Document, "image/png", MediaSource::Base64(data.into())))
        }),
        (short(), short()).prop_map(|(id, call)| Part::ApprovalRequest(Approval::new(id, call))),
        (short(), proptest::option::of(short())).prop_map(|(text, opaque)| Part::Compaction(
            CompactionPart::new("p", text, opaque.map(Into::into))
        )),
        (short(), short()).prop_map(|(kind, raw)| Part::Unknown(UnknownPart::new("elsewhere", kind, raw))),
        Just(Part::Unknown(UnknownPart::new("agent-framework", "usage", "{\"type\":\"usage\"}"))),
    ]
}

fn any_message() -> impl Strategy<Value = Message> {
    let model = vec(any_part(), 0..4).prop_map(|parts| Message::new(Role::Assistant, parts));
    let user = vec(any::<String>().prop_map(|text| Part::Text(text.into())), 0..3);
    let answer = (short(), any::<bool>(), vec(any_part(), 0..3)).prop_map(|(id, is_error, parts)| {
        let mut result = ToolResult::new(id, parts);
        result.is_error = is_error;
        Message::new(Role::Tool, vec![Part::ToolResult(result)])
    });
    let approval = (short(), any::<bool>()).prop_map(|(id, approved)| {
        let answer = ApprovalAnswer::new(Approval::new(id.as_str(), id.as_str()), approved);
        Message::new(Role::User, vec![Part::ApprovalResponse(answer)])
    });
    let message = prop_oneof![
        4 => model,
        3 => user.prop_map(|parts| Message::new(Role::User, parts)),
        3 => answer,
        1 => approval,
        1 => any::<String>().prop_map(Message::system),
    ];
    (message, proptest::option::of(short()), proptest::option::of(short()), any::<bool>()).prop_map(
        |(message, id, name, pinned)| {
            let message = id.into_iter().fold(message, Message::with_id);
            let message = name.into_iter().fold(message, Message::with_name);
            let mut attribution = message.attribution().clone();
            if pinned {
                attribution.retention = epitome_core::attribution::Retention::Pinned;
            }
            message.with_attribution(attribution)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_read_is_written(
        id in any::<String>(),
        service in proptest::option::of(any_object()),
        state in any_object(),
        unknown in any_object(),
    ) {
        let mut dict = unknown;
        dict.insert("type".into(), "session".into());
        dict.insert("session_id".into(), id.into());
        dict.insert("service_session_id".into(), service.map_or(Value::Null, Value::Object));
        dict.insert("state".into(), state.into());
        let dict = Value::Object(dict);
        let read = AgentSession::from_dict(dict.clone()).unwrap();
        prop_assert_eq!(read.to_dict().unwrap(), dict.clone());
        let read = AgentSession::from_json(&read.to_json().unwrap()).unwrap();
        prop_assert_eq!(read.to_dict().unwrap(), dict);
    }

    #[test]
    fn any_history_comes_back(runs in vec(vec(any_message(), 1..6), 0..6)) {
        let (provider, mut session) = (HistoryProvider::in_memory(), AgentSession::with_id("s"));
        let mut history = block_on(provider.open(&mut session, &mut State::new())).unwrap();
        for (number, messages) in runs.iter().enumerate() {
            let token = AppendToken::new(format!("run-{number}"));
            block_on(history.append(&token, messages.clone())).unwrap();
        }
        let json = session.to_json().unwrap();
        let mut again = AgentSession::from_json(&json).unwrap();
        let mut state = match again.state_mut().remove("in_memory") {
            Some(Value::Object(state)) => state,
            _ => State::new(),
        };
        let reloaded = block_on(provider.open(&mut again, &mut state)).unwrap();
        prop_assert_eq!(reloaded.live(), history.live());
        prop_assert_eq!(reloaded.head(), history.head());
        prop_assert!(state.is_empty());
        prop_assert_eq!(again.to_json().unwrap(), json);
    }
}
