//! The providers that are called, their order, and their states.

use core::future::ready;
use std::sync::Arc;

use futures::executor::block_on;
use serde_json::{Map, Value, json};

use super::support::{Journal, Noting, run, texts};
use crate::history::MemoryStore;
use crate::message::Message;
use crate::provider::{ClosureProvider, HistoryProvider, Hook, NamedAgent, Providers, boxed_hook};
use crate::session::{AgentSession, MessageFilter, SessionContext, SessionErrorKind, Tool};

fn history(id: &str) -> HistoryProvider {
    HistoryProvider::new(id, Arc::new(MemoryStore::new()))
}

#[test]
fn before_in_order_and_after_in_reverse() {
    let journal = Journal::default();
    let mut providers = Providers::default();
    for id in ["a", "b", "c"] {
        providers.push(Noting::new(id, &journal)).unwrap();
    }
    let mut session = AgentSession::with_id("s");
    run(&providers, &mut session, "run-1", "Hi", "Hello");
    let noted = journal.lock().unwrap().join(", ");
    assert_eq!(noted, "before a, before b, before c, after c, after b, after a");
    assert_eq!(
        Value::Object(session.state().clone()),
        json!({
            "a": {"before": 1, "after": 1}, "b": {"before": 1, "after": 1}, "c": {"before": 1, "after": 1},
        })
    );
}

#[test]
fn equal_source_ids_are_refused_and_closures_numbered() {
    let mut providers = Providers::default();
    providers.push(history("x")).unwrap();
    assert_eq!(providers.push(history("x")).unwrap_err().kind(), SessionErrorKind::Invalid);
    assert_eq!(providers.push(history("")).unwrap_err().kind(), SessionErrorKind::Invalid);
    let twice: [Arc<dyn crate::provider::ContextProvider>; 2] =
        [Arc::new(history("y")), Arc::new(history("y"))];
    let error = Providers::new(twice).unwrap_err();
    assert!(error.to_string().contains("\"y\""), "{error}");

    for _ in 0..3 {
        let closure = ClosureProvider::after_run(|_: Hook<'_>| ready(Ok(())));
        providers.push_closure(closure).unwrap();
    }
    let ids: Vec<_> = providers.iter().map(|it| it.source_id().to_owned()).collect();
    assert_eq!(ids, ["x", "decorated", "decorated-2", "decorated-3"]);
}

#[test]
fn a_closure_is_called_in_its_hook_with_its_state() {
    let mut providers = Providers::default();
    let before = ClosureProvider::before_run(boxed_hook(|hook: Hook<'_>| {
        Box::pin(async move {
            hook.context.extend_instructions("decorated", [format!("You are {}.", hook.agent.id())]);
            hook.state.insert("seen".into(), hook.session.session_id().as_str().into());
            Ok(())
        })
    }));
    providers.push_closure(before).unwrap();
    let mut session = AgentSession::with_id("s");
    let context = run(&providers, &mut session, "run-1", "Hi", "Hello");
    assert_eq!(context.instruction_text().as_deref(), Some("You are agent."));
    assert_eq!(session.state()["decorated"], json!({"seen": "s"}));
}

#[test]
fn warnings_say_what_the_contract_says() {
    let mut providers = Providers::default();
    assert!(providers.warnings().is_empty());
    providers.push(history("one").load_messages(false)).unwrap();
    providers.push(history("two").load_messages(false)).unwrap();
    let [warning] = &providers.warnings()[..] else { panic!("one warning") };
    assert_eq!(
        warning.to_string(),
        "History providers configured but none have load_messages=true: [one, two]. No conversation history will be \
         loaded."
    );
    providers.push(history("three")).unwrap();
    assert!(providers.warnings().is_empty());
    assert!(providers.primary_history().is_some());
    providers.push(history("four")).unwrap();
    let [warning] = &providers.warnings()[..] else { panic!("one warning") };
    assert_eq!(
        warning.to_string(),
        "Multiple history providers configured to load messages: [three, four]. This may cause duplicate messages in \
         context. Consider load_messages=false on all but one."
    );
    assert!(providers.primary_history().is_none());
}

#[test]
fn the_default_history_is_decided_for_each_run() {
    let none = Providers::default();
    let ids = |providers: &Providers, session: &AgentSession, options: Value| -> Vec<String> {
        let options = options.as_object().cloned().unwrap_or_default();
        let context = SessionContext::new(session, "run", Vec::new()).with_options(options);
        providers.for_run(session, &context).iter().map(|it| it.source_id().to_owned()).collect()
    };
    let own = AgentSession::with_id("s");
    let elsewhere = AgentSession::with_id("s").with_service_session_id("thread_abc123");
    let by_object = AgentSession::with_id("s").with_service_session_id(Map::new());
    assert_eq!(ids(&none, &own, json!({})), ["in_memory"]);
    assert_eq!(ids(&none, &own, json!({"store": false})), ["in_memory"]);
    assert!(ids(&none, &own, json!({"store": true})).is_empty());
    assert!(ids(&none, &elsewhere, json!({})).is_empty());
    assert!(ids(&none, &by_object, json!({})).is_empty());
    assert!(none.is_empty());

    let mut some = Providers::default();
    some.push(Noting::new("any", &Journal::default())).unwrap();
    assert_eq!(ids(&some, &own, json!({})), ["any"]);
}

#[test]
fn with_no_provider_at_all_a_conversation_is_remembered() {
    let agent = NamedAgent::new("assistant");
    let none = Providers::default();
    let mut session = AgentSession::new();
    for (token, says) in [("run-1", "Hello, my name is Alice!"), ("run-2", "What's my name?")] {
        let mut context = SessionContext::new(&session, token, vec![Message::user(says)]);
        let providers = none.for_run(&session, &context);
        block_on(providers.before_run(&agent, &mut session, &mut context)).unwrap();
        let answer = format!("{} messages so far", context.prompt_messages().count());
        context = context.with_response(crate::session::AgentResponse::new(vec![Message::assistant(answer)]));
        block_on(providers.after_run(&agent, &mut session, &mut context)).unwrap();
        let said = texts(context.get_messages(&MessageFilter::new().include_input().include_response()));
        if token == "run-2" {
            assert_eq!(
                said,
                ["Hello, my name is Alice!", "1 messages so far", "What's my name?", "3 messages so far"]
            );
        }
    }
}

#[test]
fn filters_choose_by_source_and_unknown_sources_choose_nothing() {
    let session = AgentSession::with_id("s");
    let mut context = SessionContext::new(&session, "run", vec![Message::user("input")]);
    context.extend_messages("rag", [Message::user("r1")]);
    context.extend_messages("memory", [Message::user("m1")]);
    context.extend_messages("rag", [Message::user("r2")]);
    let chosen = |filter: MessageFilter| texts(context.get_messages(&filter)).join(" ");
    let all = MessageFilter::new;
    assert_eq!(chosen(all()), "r1 r2 m1");
    assert_eq!(chosen(all().sources(["memory"])), "m1");
    assert_eq!(chosen(all().exclude_sources(["rag"]).include_input().include_response()), "m1 input");
    assert_eq!(chosen(all().sources(["nobody"])), "");
    assert_eq!(chosen(all().exclude_sources(["nobody"])), "r1 r2 m1");
    assert_eq!(chosen(all().sources(Vec::<String>::new()).include_input()), "input");
    assert_eq!(chosen(all().sources(["rag"]).exclude_sources(["rag"])), "");
    assert_eq!(context.context_messages()[0].source_id, "rag");
}

#[test]
fn what_is_added_names_its_source_and_originals_stay() {
    let session = AgentSession::with_id("s");
    let mut context = SessionContext::new(&session, "run", Vec::new()).with_instructions("Agent first.");
    let (tool, message) = (Tool::new("search", "Searches.", json!({})), Message::user("document"));
    context.extend_tools("rag", [tool.clone()]);
    context.extend_messages("rag", [message.clone()]);
    context.extend_instructions("rag", ["Cite.", ""]);
    assert_eq!((tool.context_source(), context.tools()[0].context_source()), (None, Some("rag")));
    assert_eq!(message.attribution().source_id, "");
    assert_eq!(context.context_messages()[0].messages[0].attribution().source_id, "rag");
    assert_eq!(context.instruction_text().as_deref(), Some("Agent first.\n\nCite."));
}

#[test]
fn nothing_is_loaded_when_the_service_keeps_the_history_but_all_is_stored() {
    let (store, agent) = (Arc::new(MemoryStore::new()), NamedAgent::new("a"));
    let mut providers = Providers::default();
    providers.push(HistoryProvider::new("memory", Arc::<MemoryStore>::clone(&store))).unwrap();
    let mut session = AgentSession::with_id("s").with_service_session_id("thread_abc123");
    for token in ["run-1", "run-2"] {
        let mut context = SessionContext::new(&session, token, vec![Message::user("Hi")]);
        block_on(providers.before_run(&agent, &mut session, &mut context)).unwrap();
        assert_eq!(context.prompt_messages().count(), 1);
        block_on(providers.after_run(&agent, &mut session, &mut context)).unwrap();
    }
    assert_eq!(texts(&super::support::log(&store, "s")), ["Hi", "Hi"]);
}
