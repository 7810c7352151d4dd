//! The provider with a service of the tests, which accepts only the requests of Mem0's own clients.

mod faults;

use core::time::Duration;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use epitome_core::attribution::{Authority, Retention, SourceKind};
use epitome_core::message::Role;
use epitome_std::message::{Attribution, Message, Part};
use epitome_std::provider::{ContextProvider as _, Hook, NamedAgent, Providers};
use epitome_std::session::{
    AgentResponse, AgentSession, SessionContext, SessionError, SessionErrorKind, State as ProviderState,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::filter::filters;
use crate::{Key, Mem0ContextProvider, Scope};

/// One answer of the service.
#[derive(Debug, Clone)]
enum Answer {
    Json(Value),
    Text(String),
    Status(u16, Option<&'static str>),
    /// No answer, for longer than any timeout.
    Never,
    /// A body that ends too early.
    Half,
}

#[derive(Debug, Clone, PartialEq)]
struct Asked {
    path: String,
    key: Option<String>,
    body: Value,
}

#[derive(Debug, Clone, Default)]
struct Service {
    asked: Arc<Mutex<Vec<Asked>>>,
    answers: Arc<Mutex<VecDeque<Answer>>>,
}

impl Service {
    /// The service, and its address. After these answers, it finds nothing.
    async fn new(answers: impl IntoIterator<Item = Answer>) -> (Self, String) {
        let service =
            Self { answers: Arc::new(Mutex::new(answers.into_iter().collect())), ..Self::default() };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(answer).with_state(service.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        (service, url)
    }

    fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    fn bodies(&self) -> Vec<Value> {
        self.asked().into_iter().map(|asked| asked.body).collect()
    }
}

async fn answer(State(service): State<Service>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    assert_eq!(head.method, Method::POST);
    assert_eq!(head.headers["content-type"], "application/json");
    let header = |name| head.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    let body: Value = serde_json::from_slice(&axum::body::to_bytes(body, 1 << 24).await.unwrap()).unwrap();
    let (path, key) = (head.uri.path().to_owned(), header("authorization").or(header("x-api-key")));
    service.asked.lock().unwrap().push(Asked { path, key, body });
    let next = service.answers.lock().unwrap().pop_front();
    let respond =
        |status: u16, body: String| Response::builder().status(status).body(Body::from(body)).unwrap();
    match next {
        None => respond(200, json!({"results": []}).to_string()),
        Some(Answer::Json(answer)) => respond(200, answer.to_string()),
        Some(Answer::Text(text)) => respond(200, text),
        Some(Answer::Status(status, wait)) => {
            let response = Response::builder().status(StatusCode::from_u16(status).unwrap());
            let response =
                wait.into_iter().fold(response, |response, wait| response.header("retry-after", wait));
            response.body(Body::from(json!({"detail": "alice said a secret"}).to_string())).unwrap()
        }
        Some(Answer::Never) => core::future::pending().await,
        Some(Answer::Half) => {
            let chunks = [Ok("{\"results\": ["), Err("gone")];
            Response::new(Body::from_stream(futures::stream::iter(chunks)))
        }
    }
}

fn found(memories: &[(&str, &str)]) -> Answer {
    let memory = |(id, text): &(&str, &str)| json!({"id": id, "memory": text, "score": 0.5});
    Answer::Json(json!({"results": memories.iter().map(memory).collect::<Vec<_>>()}))
}

fn user() -> Scope {
    Scope::default().with_user("alice")
}

fn hosted(url: &str) -> Mem0ContextProvider {
    let provider = Mem0ContextProvider::hosted("m0-key").unwrap();
    let provider = provider.with_endpoint(|endpoint| endpoint.with_base_url(url).with_delay(Duration::ZERO));
    provider.with_storage(user()).with_search(user())
}

fn own(url: &str) -> Mem0ContextProvider {
    let provider = Mem0ContextProvider::self_hosted(url).unwrap();
    provider.with_storage(user()).with_search(user())
}

/// The messages that the provider adds to a run with this input.
async fn before(provider: &Mem0ContextProvider, input: Vec<Message>) -> Result<Vec<Message>, SessionError> {
    let mut session = AgentSession::new();
    let mut context = SessionContext::new(&session, "run-1", input);
    let mut state = ProviderState::default();
    provider.before_run(Hook::new(&NamedAgent::new("a"), &mut session, &mut context, &mut state)).await?;
    Ok(context.context_messages().iter().flat_map(|added| added.messages.clone()).collect())
}

async fn text_before(provider: &Mem0ContextProvider, input: &str) -> String {
    let added = before(provider, vec![Message::user(input)]).await.unwrap();
    assert!(added.len() <= 1, "{added:?}");
    added.first().map(|message| message.text().into_owned()).unwrap_or_default()
}

/// Stores a run.
async fn after(
    provider: &Mem0ContextProvider,
    input: Vec<Message>,
    answer: Vec<Message>,
    state: &mut ProviderState,
) -> Result<(), SessionError> {
    let mut session = AgentSession::new();
    let mut context = SessionContext::new(&session, "run-1", input).with_response(AgentResponse::new(answer));
    provider.after_run(Hook::new(&NamedAgent::new("a"), &mut session, &mut context, state)).await
}

#[tokio::test]
async fn memories_are_added_as_data_of_the_context() {
    let (service, url) =
        Service::new([found(&[("1", "Likes tea."), ("2", "Line one.\n- Not a second memory.")])]).await;
    let input = vec![Message::user("  What do I drink?"), Message::user("   "), Message::user("Now?\n")];
    let added = before(&hosted(&url), input).await.unwrap();
    let [message] = &added[..] else { panic!("{added:?}") };
    let text = "## Memories\nConsider the following memories when answering user questions:\n- Likes tea.\n- Line one.\n  - Not a second memory.";
    assert_eq!((message.role(), &*message.text()), (Role::User, text));
    let about = message.attribution();
    assert_eq!(
        (about.authority, about.source, about.retention),
        (Authority::Retrieved, SourceKind::Context, Retention::Ephemeral)
    );
    assert_eq!(&*about.source_id, "mem0");
    let body = json!({"query": "What do I drink?\nNow?", "filters": {"user_id": "alice"}});
    let key = Some("Token m0-key".to_owned());
    assert_eq!(service.asked(), [Asked { path: "/v3/memories/search/".into(), key, body }]);
}

#[tokio::test]
async fn a_server_of_ones_own_has_other_paths_and_another_place_for_the_key() {
    let (service, url) = Service::new([Answer::Json(json!([{"id": 7, "memory": "Likes tea."}]))]).await;
    let provider = own(&url)
        .with_found_max(core::num::NonZeroUsize::new(3).unwrap())
        .with_prompt("Known:")
        .with_infer(false);
    assert_eq!(text_before(&provider, "tea").await, "Known:\n- Likes tea.");
    let said = (vec![Message::user("Hi")], vec![Message::assistant("Hello")]);
    after(&provider.with_key("own-key"), said.0, said.1, &mut ProviderState::default()).await.unwrap();
    let messages = json!([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]);
    let search = json!({"query": "tea", "filters": {"user_id": "alice"}, "top_k": 3});
    let store = json!({"messages": messages, "user_id": "alice", "infer": false});
    let asked =
        |path: &str, key: Option<&str>, body| Asked { path: path.into(), key: key.map(Into::into), body };
    assert_eq!(service.asked(), [asked("/search", None, search), asked("/memories", Some("own-key"), store)]);
}

#[tokio::test]
async fn each_scope_is_searched_by_itself_and_nothing_is_shown_twice() {
    let all =
        Scope::default().with_user("alice").with_agent("helper").with_application("shop").with_thread("t1");
    for (search, filters) in [
        (user(), json!([{"user_id": "alice"}])),
        (Scope::default().with_agent("helper"), json!([{"agent_id": "helper"}])),
        (Scope::default().with_application("shop"), json!([{"app_id": "shop"}])),
        (Scope::default().with_thread("t1"), json!([{"run_id": "t1"}])),
        (
            Scope::default().with_application("shop").with_thread("t1"),
            json!([{"app_id": "shop", "run_id": "t1"}]),
        ),
        (user().with_application("shop"), json!([{"user_id": "alice", "app_id": "shop"}])),
        (
            all,
            json!([
                {"user_id": "alice", "app_id": "shop", "run_id": "t1"},
                {"agent_id": "helper", "app_id": "shop", "run_id": "t1"},
            ]),
        ),
        (Scope::default().with_user("").with_agent("helper"), json!([{"agent_id": "helper"}])),
    ] {
        let answers = [found(&[("1", "one"), ("2", "two")]), found(&[("2", "two"), ("3", "three")])];
        let count = filters.as_array().unwrap().len();
        let (service, url) = Service::new(answers).await;
        let text = text_before(&hosted(&url).with_search(search), "x").await;
        let mut asked: Vec<_> = service.bodies().iter().map(|body| body["filters"].to_string()).collect();
        let mut expected: Vec<_> = filters.as_array().unwrap().iter().map(Value::to_string).collect();
        asked.sort();
        expected.sort();
        assert_eq!(asked, expected);
        assert_eq!(text.matches("two").count(), 1, "{text}");
        assert_eq!(text.contains("three"), count == 2, "{text}");
    }
}

#[tokio::test]
async fn nothing_is_asked_without_words_or_a_scope() {
    let (service, url) = Service::new([]).await;
    let provider = hosted(&url);
    let image = Message::new(
        Role::User,
        vec![Part::ToolResult(epitome_std::message::ToolResult::new("c", Vec::new()))],
    );
    for input in [vec![], vec![Message::user("")], vec![Message::user(" \n\t")], vec![image]] {
        assert_eq!(before(&provider, input.clone()).await.unwrap(), []);
        after(&provider, input, vec![Message::tool("c", "a result")], &mut ProviderState::default())
            .await
            .unwrap();
    }
    assert_eq!(text_before(&provider.clone().with_search(Scope::default()), "Hello").await, "");
    assert_eq!(service.asked(), []);
    // A search without a filter would cover everything.
    assert!(filters(&Scope::default()).is_empty());
    // The owner of a stored memory is never a guess.
    for (provider, part) in [
        (provider.with_storage(Scope::default()), "with_storage"),
        (own(&url).with_storage(user().with_application("shop")), "knows no application"),
        (own(&url).with_search(user().with_application("shop")), "knows no application"),
    ] {
        let said = vec![Message::user("Hi")];
        let errors = [
            before(&provider, said.clone()).await.unwrap_err(),
            after(&provider, said, Vec::new(), &mut ProviderState::default()).await.unwrap_err(),
        ];
        for error in errors {
            assert!(error.kind() == SessionErrorKind::Invalid && error.to_string().contains(part), "{error}");
        }
    }
    assert_eq!(service.asked(), []);
}

#[tokio::test]
async fn what_was_said_is_stored_once_a_run() {
    let (service, url) = Service::new([]).await;
    let scope =
        Scope::default().with_user("alice").with_agent("helper").with_application("shop").with_thread("t1");
    let provider = hosted(&url).with_storage(scope);
    let passing =
        Attribution::new("x", SourceKind::Context, Authority::User).with_retention(Retention::Ephemeral);
    let input = vec![
        Message::system("Be brief."),
        Message::user("Hi"),
        Message::user("  "),
        Message::user("Only for this run.").with_attribution(passing),
        Message::tool("c", "a result"),
    ];
    let answer = vec![Message::assistant("Hello")];
    let mut state = ProviderState::default();
    for _ in 0..2 {
        after(&provider, input.clone(), answer.clone(), &mut state).await.unwrap();
    }
    let messages = json!([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello"},
    ]);
    let filters = json!({"user_id": "alice", "agent_id": "helper", "app_id": "shop", "run_id": "t1"});
    assert_eq!(service.bodies(), [json!({"messages": messages, "filters": filters})]);
    assert_eq!(service.asked()[0].path, "/v3/memories/add/");
}

#[tokio::test]
async fn it_is_one_of_the_providers_of_an_agent() {
    let (service, url) = Service::new([found(&[("1", "Likes tea.")])]).await;
    let mut providers = Providers::default();
    providers.push(hosted(&url)).unwrap();
    let mut session = AgentSession::new();
    let agent = NamedAgent::new("a");
    let mut context = SessionContext::new(&session, "run-1", vec![Message::user("What do I drink?")]);
    providers.before_run(&agent, &mut session, &mut context).await.unwrap();
    assert_eq!(context.prompt_messages().count(), 2);
    let mut context = context.with_response(AgentResponse::new(vec![Message::assistant("Tea.")]));
    providers.after_run(&agent, &mut session, &mut context).await.unwrap();
    let messages =
        json!([{"role": "user", "content": "What do I drink?"}, {"role": "assistant", "content": "Tea."}]);
    assert_eq!(service.bodies()[1]["messages"], messages);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Each memory stays one entry of the list, with any text. Each id is only the value of its filter.
    #[test]
    fn no_text_leaves_its_place(texts in prop::collection::vec("\\PC{0,12}[\n\r\u{2028}]?[-# a-z{}\"]{0,12}", 1..6), id in "\\PC{1,20}") {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let hits: Vec<_> = texts.iter().map(|text| json!({"memory": text, "user_id": id})).collect();
            let (service, url) = Service::new([Answer::Json(json!({"results": hits}))]).await;
            let said = text_before(&hosted(&url).with_search(Scope::default().with_user(&*id)), "x").await;
            let expected = texts.iter().filter(|text| !text.trim().is_empty()).count();
            prop_assert_eq!(said.lines().filter(|line| line.starts_with("- ")).count(), expected);
            prop_assert_eq!(&service.bodies()[0]["filters"], &json!({"user_id": id}));
            Ok(())
        })?;
    }
}
