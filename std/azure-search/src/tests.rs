//! The provider with a service of the tests, which accepts only requests in the form of the REST interface.

mod knowledge_base;

use core::num::NonZeroUsize;
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use epitome_core::attribution::{Authority, Retention, SourceKind};
use epitome_core::message::Role;
use epitome_std::message::Message;
use epitome_std::provider::{ContextProvider as _, Hook, NamedAgent};
use epitome_std::session::{
    AgentSession, SessionContext, SessionError, SessionErrorKind, State as ProviderState,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::{AzureAISearchContextProvider, Credential, Embedder, Key, KnowledgeModel};

/// The requests: path, key and body, without the requests for a definition.
type Asked = Arc<Mutex<Vec<(String, String, Value)>>>;

/// Statuses and bodies, by path.
type Answers = Arc<Mutex<BTreeMap<&'static str, VecDeque<(u16, String)>>>>;

/// The service: answers by path. Each answer is given once, and the last one repeatedly. Other paths do not exist.
#[derive(Debug, Clone, Default)]
struct Service {
    asked: Asked,
    answers: Answers,
}

const SEARCH: &str = "/indexes('docs')/docs/search.post.search";
const INDEX: &str = "/indexes('docs')";
const BASE: &str = "/knowledgebases('base')";
const RETRIEVE: &str = "/knowledgebases('base')/retrieve";
const SOURCES: &str = "/knowledgesources";
const SOURCE: &str = "/knowledgesources('docs-source')";
const PUT_BASE: &str = "PUT /knowledgebases('docs-kb')";
const RETRIEVE_MADE: &str = "/knowledgebases('docs-kb')/retrieve";

impl Service {
    async fn new(answers: &[(&'static str, u16, Value)]) -> (Self, String) {
        let service = Self::default();
        for (path, status, answer) in answers {
            service.answers.lock().unwrap().entry(path).or_default().push_back((*status, answer.to_string()));
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(answer).with_state(service.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        (service, url)
    }

    fn asked(&self, path: &str) -> Vec<Value> {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter(|(asked, ..)| asked == path).map(|(.., body)| body.clone()).collect()
    }

    fn paths(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|(path, ..)| path.clone()).collect()
    }
}

async fn answer(State(service): State<Service>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 24).await.unwrap();
    let body: Value = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap() };
    assert_eq!(head.method != "GET", !body.is_null());
    assert_eq!(head.method == "PUT", head.headers.contains_key("prefer"));
    assert_eq!(head.uri.query(), Some("api-version=2026-04-01"));
    let header = |name| head.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    let key = header("api-key").or(header("authorization")).unwrap();
    let mut path = head.uri.path().replace("%27", "'");
    if head.method == "PUT" {
        path.insert_str(0, "PUT ");
    }
    service.asked.lock().unwrap().push((path.clone(), key, body));
    let mut answers = service.answers.lock().unwrap();
    let (status, text) = match answers.get_mut(path.as_str()) {
        Some(left) if left.len() > 1 => left.pop_front().unwrap(),
        Some(left) => left[0].clone(),
        None => (404, json!({"error": {"message": "a secret of alice"}}).to_string()),
    };
    Response::builder().status(status).body(Body::from(text)).unwrap()
}

fn documents(documents: Value) -> Value {
    json!({"@odata.context": "https://docs/$metadata", "value": documents})
}

fn of_index(url: &str) -> AzureAISearchContextProvider {
    let provider =
        AzureAISearchContextProvider::of_index(url, "docs", Credential::ApiKey("a-key".into())).unwrap();
    provider.with_endpoint(|endpoint| endpoint.with_delay(Duration::ZERO))
}

fn of_base(url: &str) -> AzureAISearchContextProvider {
    let token = Credential::Token(Key::from("a-token"));
    AzureAISearchContextProvider::of_knowledge_base(url, "base", token).unwrap()
}

async fn before(
    provider: &AzureAISearchContextProvider,
    input: Vec<Message>,
) -> Result<Vec<Message>, SessionError> {
    let mut session = AgentSession::new();
    let mut context = SessionContext::new(&session, "run-1", input);
    let mut state = ProviderState::default();
    provider.before_run(Hook::new(&NamedAgent::new("a"), &mut session, &mut context, &mut state)).await?;
    Ok(context.context_messages().iter().flat_map(|added| added.messages.clone()).collect())
}

async fn said(provider: &AzureAISearchContextProvider, input: &str) -> String {
    let added = before(provider, vec![Message::user(input)]).await.unwrap();
    assert!(added.len() <= 1, "{added:?}");
    added.first().map(|message| message.text().into_owned()).unwrap_or_default()
}

fn at_most(number: usize) -> NonZeroUsize {
    NonZeroUsize::new(number).unwrap()
}

#[derive(Debug)]
struct Letters;

#[async_trait]
impl Embedder for Letters {
    async fn embed(&self, text: &str) -> Result<Vec<f32>, SessionError> {
        Ok(vec![text.len() as f32, 0.5])
    }
}

#[tokio::test]
async fn documents_are_added_as_data_with_their_ids() {
    let found = json!([
        {"@search.score": 1.0, "id": "7", "content": "Opens at nine.\n- No entry.", "title": "Hours"},
        {"@search.score": 0.5, "id": 8, "chunk": "Closes at five."},
        {"@search.score": 0.4, "key": "k", "title": "Rooms", "count": 3},
        {"@search.score": 0.3, "id": "9", "content": ""},
        {"@search.score": 0.2},
    ]);
    let (service, url) = Service::new(&[(SEARCH, 200, documents(found))]).await;
    let input = vec![
        Message::user("When?"),
        Message::tool("c", "a result"),
        Message::user(" "),
        Message::assistant("Today?"),
    ];
    let added = before(&of_index(&url), input).await.unwrap();
    let [message] = &added[..] else { panic!("{added:?}") };
    let text = "Use the following context to answer the question:\n- [Source: 7] Opens at nine.\n  - No entry.\n- [Source: 8] Closes at five.\n- key: k | title: Rooms";
    assert_eq!((message.role(), &*message.text()), (Role::User, text));
    let about = message.attribution();
    assert_eq!(
        (about.authority, about.source, about.retention),
        (Authority::Retrieved, SourceKind::Context, Retention::Ephemeral)
    );
    assert_eq!(&*about.source_id, "azure_ai_search");
    assert_eq!(service.asked(SEARCH), [json!({"search": "When?\nToday?", "top": 5})]);
    assert!(service.asked.lock().unwrap().iter().all(|(_, key, _)| key == "a-key"));
}

#[tokio::test]
async fn an_index_is_searched_by_all_that_it_has() {
    let field = |name: &str, profile: &str| json!({"name": name, "type": "Collection(Edm.Single)", "dimensions": 2, "vectorSearchProfile": profile});
    let plain = json!({"name": "content", "type": "Edm.String"});
    let profiles = json!({"profiles": [{"name": "made", "vectorizer": "by-service"}, {"name": "bare", "vectorizer": null}]});
    let index = |fields: &[Value]| json!({"name": "docs", "fields": fields, "vectorSearch": profiles});
    let by_text = |k: u64| json!([{"kind": "text", "text": "tea", "k": k, "fields": "v"}]);
    let by_vector = |field: &str| json!([{"kind": "vector", "vector": [3.0, 0.5], "k": 5, "fields": field}]);
    let embedded = |provider: AzureAISearchContextProvider| provider.with_embedder(Arc::new(Letters));
    type Set<'a> = &'a dyn Fn(AzureAISearchContextProvider) -> AzureAISearchContextProvider;
    let cases: [(Value, Set<'_>, Value, usize); 10] = [
        (index(core::slice::from_ref(&plain)), &|it| it, Value::Null, 1),
        (index(&[plain, field("v", "made")]), &|it| it, by_text(5), 1),
        (index(&[field("v", "made"), field("w", "bare")]), &|it| it, by_text(5), 1),
        (index(&[field("v", "made")]), &|it| it.with_semantic_configuration("default"), by_text(50), 1),
        (index(&[field("v", "bare")]), &|it| it, Value::Null, 1),
        (index(&[field("v", "bare")]), &embedded, by_vector("v"), 1),
        (index(&[field("v", "made"), field("w", "made")]), &embedded, Value::Null, 1),
        (index(&[field("v", "bare"), field("w", "bare")]), &embedded, Value::Null, 1),
        (json!({}), &|it| embedded(it).with_vector_field("w"), by_vector("w"), 0),
        (json!({}), &|it| it.with_vector_field("v"), by_text(5), 0),
    ];
    for (definition, set, queries, looks) in cases {
        let (service, url) =
            Service::new(&[(INDEX, 200, definition.clone()), (SEARCH, 200, documents(json!([])))]).await;
        let provider = set(of_index(&url));
        for _ in 0..2 {
            assert_eq!(said(&provider, "tea").await, "");
        }
        let body = &service.asked(SEARCH)[1];
        assert_eq!(body.get("vectorQueries").unwrap_or(&Value::Null), &queries, "{definition}");
        // The definition is requested once.
        assert_eq!(service.asked(INDEX).len(), looks, "{definition}");
    }
    // A key that allows only searches: the search is by words.
    let (service, url) = Service::new(&[(INDEX, 403, json!({})), (SEARCH, 200, documents(json!([])))]).await;
    let provider = of_index(&url)
        .with_semantic_configuration("default")
        .with_filter("tenant eq 'north'")
        .with_top(at_most(2));
    said(&provider, "tea").await;
    let body = json!({
        "search": "tea", "top": 2, "queryType": "semantic", "semanticConfiguration": "default", "captions": "extractive",
        "filter": "tenant eq 'north'",
    });
    assert_eq!(service.asked(SEARCH), [body]);
}

#[tokio::test]
async fn what_only_the_other_kind_has_is_refused() {
    let (service, url) = Service::new(&[]).await;
    for provider in [
        of_base(&url).with_top(at_most(3)),
        of_base(&url).with_semantic_configuration("default"),
        of_base(&url).with_embedder(Arc::new(Letters)),
        of_base(&url).with_vector_field("v"),
        of_index(&url).with_messages_max(at_most(3)),
    ] {
        let error = before(&provider, vec![Message::user("x")]).await.unwrap_err();
        assert!(
            error.kind() == SessionErrorKind::Invalid && error.to_string().contains("takes no top"),
            "{error}"
        );
    }
    assert_eq!(service.paths(), [""; 0]);
}

#[tokio::test]
async fn an_index_that_cannot_be_looked_at_for_a_moment_is_looked_at_again() {
    let vector = json!({"name": "v", "dimensions": 2, "vectorSearchProfile": "p"});
    let index = json!({"fields": [vector], "vectorSearch": {"profiles": [{"name": "p", "vectorizer": "s"}]}});
    let mut answers = vec![(INDEX, 503, json!({})); 3];
    answers.extend([(INDEX, 200, index), (SEARCH, 200, documents(json!([])))]);
    let (service, url) = Service::new(&answers).await;
    let provider = of_index(&url);
    for _ in 0..2 {
        said(&provider, "tea").await;
    }
    let by_vectors: Vec<_> =
        service.asked(SEARCH).iter().map(|body| body.get("vectorQueries").is_some()).collect();
    assert_eq!(by_vectors, [false, true]);
}

#[tokio::test]
async fn a_blank_input_asks_nothing_and_no_name_is_another_address() {
    let (service, url) = Service::new(&[]).await;
    for input in [
        vec![],
        vec![Message::user(" \n")],
        vec![Message::tool("c", "a result")],
        vec![Message::system("Be brief.")],
    ] {
        for provider in [of_index(&url), of_base(&url)] {
            assert_eq!(before(&provider, input.clone()).await.unwrap(), []);
        }
    }
    assert_eq!(service.paths(), [""; 0]);
    for name in ["", "a b", "a')", "a/b", "a?b", "a%27", "ä", "a\n"] {
        let over = |url: &str, name: &str, credential| {
            let model = KnowledgeModel::new("https://o.openai.azure.com", "gpt");
            AzureAISearchContextProvider::of_knowledge_base_over(url, name, model, credential)
        };
        for made in
            [AzureAISearchContextProvider::of_index, AzureAISearchContextProvider::of_knowledge_base, over]
        {
            let error = made(&url, name, Credential::ApiKey("k".into())).unwrap_err();
            assert_eq!(error.kind(), SessionErrorKind::Invalid, "{name:?}");
        }
    }
}

#[tokio::test]
async fn a_search_that_fails_ends_the_run_and_tells_no_text() {
    let no_vectors = (INDEX, 200, json!({"fields": []}));
    let found = || (SEARCH, 200, documents(json!([{"id": "1", "content": "tea"}])));
    for (answers, kind, times) in [
        (vec![no_vectors.clone(), (SEARCH, 503, json!({})), (SEARCH, 500, json!({})), found()], None, 3),
        (vec![no_vectors.clone(), (SEARCH, 500, json!({}))], Some(SessionErrorKind::Unavailable), 3),
        (
            vec![no_vectors.clone(), (SEARCH, 400, json!({"error": {"message": "a secret"}}))],
            Some(SessionErrorKind::Invalid),
            1,
        ),
        (vec![no_vectors.clone(), (SEARCH, 403, json!({}))], Some(SessionErrorKind::Invalid), 1),
        (vec![no_vectors.clone()], Some(SessionErrorKind::NotFound), 1),
    ] {
        let (service, url) = Service::new(&answers).await;
        let done = before(&of_index(&url), vec![Message::user("a secret")]).await;
        assert_eq!(done.as_ref().err().map(SessionError::kind), kind, "{answers:?}");
        assert_eq!(service.asked(SEARCH).len(), times, "{answers:?}");
        if let Err(error) = done {
            let text = format!("{error} {error:?}");
            assert!(
                !text.contains("secret")
                    && !text.contains("a-key")
                    && text.contains("azure ai search: HTTP "),
                "{text}"
            );
        }
    }
    // Answers of another form, and huge answers.
    for answer in [
        json!({}),
        json!([]),
        json!("tea"),
        json!({"value": {"id": "1"}}),
        documents(json!([1, null, "tea", []])),
    ] {
        let (_, url) = Service::new(&[no_vectors.clone(), (SEARCH, 200, answer)]).await;
        assert_eq!(said(&of_index(&url), "x").await, "");
    }
    let many: Vec<_> = (0..100).map(|at| json!({"id": at, "content": "é".repeat(1 << 16)})).collect();
    let (_, url) = Service::new(&[no_vectors, (SEARCH, 200, documents(many.into()))]).await;
    let text = said(&of_index(&url), "x").await;
    assert!(
        text.matches("[Source: ").count() == 5 && text.matches(" [..]").count() == 5 && text.len() < 100_000,
        "{}",
        text.len()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The text of the input is only the search text of the request. Each document stays one entry, with any text.
    #[test]
    fn no_text_leaves_its_place(input in "\\PC{1,30}", texts in prop::collection::vec("\\PC{0,9}\n?[-# a-z\"]{0,9}", 1..5)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let found: Vec<_> = texts.iter().map(|text| json!({"id": "1", "content": text})).collect();
            let (service, url) = Service::new(&[(SEARCH, 200, documents(found.into()))]).await;
            let said = said(&of_index(&url), &input).await;
            if input.trim().is_empty() {
                prop_assert_eq!(service.paths(), Vec::<String>::new());
                return Ok(());
            }
            prop_assert_eq!(service.asked(SEARCH), [json!({"search": input, "top": 5})]);
            let entries = texts.iter().filter(|text| !text.trim().is_empty()).count();
            prop_assert_eq!(said.lines().filter(|line| line.starts_with("- [Source: 1] ")).count(), entries);
            prop_assert_eq!(said.lines().filter(|line| line.starts_with("- ")).count(), entries);
            Ok(())
        })?;
    }
}
