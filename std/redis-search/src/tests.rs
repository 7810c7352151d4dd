//! The provider with a server of the tests, which accepts only the commands of this crate and of Agent Framework's
//! provider.

mod escaping;
mod faults;
mod module;
mod query;
mod schema;
mod server;

use core::num::NonZeroUsize;
use core::time::Duration;
use std::sync::Arc;

use async_trait::async_trait;
use epitome_core::attribution::{Authority, Retention, SourceKind};
use epitome_core::message::Role;
use epitome_std::message::{Attribution, Message};
use epitome_std::provider::{ContextProvider as _, Hook, NamedAgent, Providers};
use epitome_std::session::{
    AgentResponse, AgentSession, SessionContext, SessionError, SessionErrorKind, State as ProviderState,
};

use self::server::{Answer, Server};
use crate::{
    Embedder, RedisContextProvider, RedisServer, RemoteOptions, Scope, VectorDistance, VectorSearch,
};

fn remote() -> RemoteOptions {
    RemoteOptions::default().with_retry_delay(Duration::from_millis(1))
}

fn over(server: &Server) -> RedisContextProvider {
    let at = RedisServer::from_url(&format!("redis://127.0.0.1:{}", server.port)).unwrap();
    RedisContextProvider::new(&at, remote()).unwrap().with_scope(alice())
}

fn alice() -> Scope {
    Scope::default().with_user("alice")
}

/// An embedder whose vectors count three letters of a text.
#[derive(Debug)]
struct Letters;

#[async_trait]
impl Embedder for Letters {
    async fn embed(&self, text: &str) -> Result<Vec<f32>, SessionError> {
        Ok(['k', 'o', 't'].map(|letter| text.matches(letter).count() as f32 + 0.01).to_vec())
    }
}

fn vectors() -> VectorSearch {
    VectorSearch::new("vector", NonZeroUsize::new(3).unwrap(), Arc::new(Letters))
}

/// The messages that the provider adds to a run with this input.
async fn before(provider: &RedisContextProvider, input: Vec<Message>) -> Result<Vec<Message>, SessionError> {
    let mut session = AgentSession::with_id("s-1");
    let mut context = SessionContext::new(&session, "run-1", input);
    let mut state = ProviderState::default();
    provider.before_run(Hook::new(&NamedAgent::new("a"), &mut session, &mut context, &mut state)).await?;
    Ok(context.context_messages().iter().flat_map(|added| added.messages.clone()).collect())
}

async fn found(provider: &RedisContextProvider, input: &str) -> String {
    let added = before(provider, vec![Message::user(input)]).await.unwrap();
    assert!(added.len() <= 1, "{added:?}");
    added.first().map(|message| message.text().into_owned()).unwrap_or_default()
}

/// Stores a run with this session and token.
async fn after(
    provider: &RedisContextProvider,
    (session, token): (&str, &str),
    input: Vec<Message>,
    answer: Vec<Message>,
    state: &mut ProviderState,
) -> Result<(), SessionError> {
    let mut session = AgentSession::with_id(session);
    let mut context = SessionContext::new(&session, token, input).with_response(AgentResponse::new(answer));
    provider.after_run(Hook::new(&NamedAgent::new("a"), &mut session, &mut context, state)).await
}

async fn said(provider: &RedisContextProvider, session: &str, text: &str) {
    let run = (session, text);
    after(provider, run, vec![Message::user(text)], Vec::new(), &mut ProviderState::default()).await.unwrap();
}

impl Server {
    /// The commands so far except those that store, with a blank between their words.
    fn asked(&self) -> Vec<String> {
        let asked = self.state.lock().unwrap().asked.clone();
        asked.iter().map(|words| String::from_utf8_lossy(&words.join(&b' ')).into_owned()).collect()
    }

    fn count(&self, name: &str) -> usize {
        self.asked().iter().filter(|asked| asked.starts_with(name)).count()
    }

    /// Sets the answer to the next command of this name.
    fn answers(&self, name: &'static str, answer: Answer) {
        self.state.lock().unwrap().answers.push_back((name, answer));
    }
}

#[tokio::test]
async fn what_was_said_is_found_again_as_data_of_the_context() {
    let server = Server::new().await;
    let provider = over(&server);
    said(&provider, "s-1", "My boat is called Kestrel.\n- And an order.").await;
    said(&provider, "s-2", "I drink oolong.").await;
    let added = before(&provider, vec![Message::user("How is my BOAT called, then?")]).await.unwrap();
    let [message] = &added[..] else { panic!("{added:?}") };
    let text = "## Memories\nConsider the following memories when answering user questions:\n- My boat is called Kestrel.\n  - And an order.";
    assert_eq!((message.role(), &*message.text()), (Role::User, text));
    let about = message.attribution();
    assert_eq!(
        (about.authority, about.source, about.retention),
        (Authority::Retrieved, SourceKind::Context, Retention::Ephemeral)
    );
    assert_eq!(&*about.source_id, "redis");
    let query = "FT.SEARCH context @content:(how | is | my | boat | called | then) @user_id:{alice} SCORER BM25STD WITHSCORES RETURN 6 \
                 content role application_id agent_id user_id thread_id DIALECT 2 LIMIT 0 10";
    assert_eq!(server.asked().last().unwrap(), query);
    // Each part with another setting.
    let other = provider
        .with_source_id("boats")
        .with_prompt("Said:")
        .with_index("other")
        .with_prefix("context:")
        .with_found_max(NonZeroUsize::MIN);
    let added = before(&other, vec![Message::user("boat, called")]).await.unwrap();
    assert_eq!((added[0].text().lines().count(), &*added[0].attribution().source_id), (2 + 1, "boats"));
    assert!(added[0].text().starts_with("Said:\n- My boat"), "{added:?}");
    assert!(server.asked().last().unwrap().starts_with("FT.SEARCH other "));
}

#[tokio::test]
async fn each_owner_finds_what_has_all_its_ids() {
    let server = Server::new().await;
    let of = |scope: Scope| over(&server).with_scope(scope);
    let shop = || Scope::default().with_application("shop");
    said(&of(shop().with_user("alice").with_agent("helper")), "s-1", "tea of alice").await;
    said(&of(shop().with_user("bob").with_agent("helper")), "s-2", "tea of bob").await;
    said(&of(shop().with_user("alice").with_thread("trip")), "s-3", "tea of a trip").await;
    said(&of(Scope::default().with_user("Alice")), "s-4", "tea of another Alice").await;
    for (scope, expected) in [
        (alice(), vec!["tea of alice", "tea of a trip"]),
        (alice().with_application("shop").with_agent("helper"), vec!["tea of alice"]),
        (shop(), vec!["tea of alice", "tea of bob", "tea of a trip"]),
        (Scope::default().with_agent("helper"), vec!["tea of alice", "tea of bob"]),
        (Scope::default().with_user("Alice"), vec!["tea of another Alice"]),
        (alice().with_thread("trip"), vec!["tea of a trip"]),
        // A message that is stored without a thread has its session as its thread.
        (alice().with_thread("s-1"), vec!["tea of alice"]),
        (alice().with_agent("nobody"), vec![]),
    ] {
        let found = found(&of(scope.clone()), "tea").await;
        let mut lines: Vec<_> = found.lines().filter_map(|line| line.strip_prefix("- ")).collect();
        let mut expected = expected;
        lines.sort_unstable();
        expected.sort_unstable();
        assert_eq!(lines, expected, "{scope:?}");
    }
    let nested = "((@application_id:{shop} @agent_id:{helper}) @user_id:{alice})";
    assert!(server.asked().iter().any(|asked| asked.contains(nested)));
}

#[tokio::test]
async fn nothing_is_asked_without_words_and_no_hook_runs_without_a_scope() {
    let server = Server::new().await;
    let provider = over(&server);
    for input in [
        vec![],
        vec![Message::user("")],
        vec![Message::user(" \n\t")],
        vec![Message::user("?! – (“”) ...".replace('–', "-"))],
    ] {
        assert_eq!(before(&provider, input).await.unwrap(), []);
    }
    let results = vec![Message::tool("c", "a result"), Message::user("  ")];
    after(&provider, ("s", "r"), results, Vec::new(), &mut ProviderState::default()).await.unwrap();
    assert_eq!(server.asked(), Vec::<String>::new());
    for (scope, part) in [
        (Scope::default(), "with_scope"),
        (Scope::default().with_thread("t"), "with_scope"),
        (Scope::default().with_user("a,b"), "user_id"),
        (Scope::default().with_agent(" a"), "agent_id"),
        (Scope::default().with_application("a\n"), "application_id"),
        (alice().with_thread("a\u{1}b"), "thread_id"),
        (Scope::default().with_user("a\\.b"), "user_id"),
    ] {
        let (provider, hi) = (provider.clone().with_scope(scope), || vec![Message::user("Hi")]);
        let errors = [
            before(&provider, hi()).await.unwrap_err(),
            after(&provider, ("s", "r"), hi(), Vec::new(), &mut ProviderState::default()).await.unwrap_err(),
        ];
        for error in errors {
            assert!(error.kind() == SessionErrorKind::Invalid && error.to_string().contains(part), "{error}");
        }
    }
    assert_eq!(server.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn what_was_said_is_stored_once_a_run() {
    let server = Server::new().await;
    let provider = over(&server).with_scope(alice().with_application("shop"));
    let passing =
        Attribution::new("x", SourceKind::Context, Authority::User).with_retention(Retention::Ephemeral);
    let input = vec![
        Message::system("Be brief."),
        Message::user("Hi").with_name("Al").with_id("m-1"),
        Message::user("  "),
        Message::user("Only for this run.").with_attribution(passing),
        Message::tool("c", "a result"),
    ];
    let answer = vec![Message::assistant("Hello")];
    let mut state = ProviderState::default();
    for _ in 0..2 {
        after(&provider, ("s-1", "run-1"), input.clone(), answer.clone(), &mut state).await.unwrap();
    }
    assert_eq!(server.count("HSET"), 3);
    // If the state is lost too, the same keys are written again. Another run, session or owner has other keys.
    let mut lost = ProviderState::default();
    after(&provider, ("s-1", "run-1"), input.clone(), answer.clone(), &mut lost).await.unwrap();
    assert_eq!((server.count("HSET"), server.state.lock().unwrap().hashes.len()), (6, 3));
    for (provider, run) in [
        (&provider, ("s-1", "run-2")),
        (&provider, ("s-2", "run-1")),
        (&provider.clone().with_scope(alice().with_agent("shop")), ("s-1", "run-1")),
    ] {
        after(provider, run, Vec::new(), answer.clone(), &mut ProviderState::default()).await.unwrap();
    }
    let hashes = server.state.lock().unwrap().hashes.clone();
    assert_eq!(hashes.len(), 6);
    let texts = |hash: &query::Hash| -> Vec<(String, String)> {
        hash.iter().map(|(name, value)| (name.clone(), String::from_utf8_lossy(value).into_owned())).collect()
    };
    let hi = hashes.values().map(texts).find(|hash| hash.iter().any(|(_, value)| value == "Hi")).unwrap();
    let expected = [
        ("application_id", "shop"),
        ("author_name", "Al"),
        ("content", "Hi"),
        ("conversation_id", "s-1"),
        ("message_id", "m-1"),
        ("role", "user"),
        ("thread_id", "s-1"),
        ("user_id", "alice"),
    ];
    assert_eq!(hi, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert!(hashes.keys().all(|key| key.starts_with("context:") && !key.contains("s-1")), "{hashes:?}");
}

#[tokio::test]
async fn vectors_find_what_has_no_word_in_common() {
    let server = Server::new().await;
    let of = |vectors: VectorSearch| over(&server).with_vectors(vectors);
    for (at, text) in ["kkkk a kestrel", "oooo an owl", "tttt a tern"].iter().enumerate() {
        said(&of(vectors()), &format!("s-{at}"), text).await;
    }
    said(&of(vectors()).with_scope(Scope::default().with_user("bob")), "s-9", "kkkk of bob").await;
    // No word of the input is stored, so the vector decides. With words, the owl ranks by its word.
    let two = NonZeroUsize::new(2).unwrap();
    for (provider, input, first) in [
        (of(vectors()), "kk", "kkkk a kestrel"),
        (of(vectors()), "owl ooo", "oooo an owl"),
        (of(vectors().without_words()), "ttttt owl", "tttt a tern"),
        (of(vectors()), "?!", "kkkk a kestrel"),
    ] {
        let found = found(&provider.with_found_max(two), input).await;
        let lines: Vec<_> = found.lines().filter(|line| line.starts_with("- ")).collect();
        assert_eq!((lines.len(), lines[0]), (2, &*format!("- {first}")), "{input}: {found}");
        assert!(!found.contains("bob"), "{found}");
    }
    let asked = server.asked();
    let hybrid = asked.iter().find(|asked| asked.starts_with("FT.AGGREGATE")).unwrap();
    let query = "(~@content:(kk) @user_id:{alice})=>[KNN 2 @vector $vector AS vector_distance] SCORER BM25STD ADDSCORES";
    assert!(hybrid.contains(query), "{hybrid}");
    let alone = asked.iter().rfind(|asked| asked.starts_with("FT.SEARCH")).unwrap();
    assert!(alone.starts_with("FT.SEARCH context (@user_id:{alice})=>[KNN 2 @vector $vector AS"), "{alone}");
    // A model with vectors of another length is an error of the caller.
    let five = VectorSearch::new("vector", NonZeroUsize::new(5).unwrap(), Arc::new(Letters));
    let error = before(&of(five).with_index("five"), vec![Message::user("x")]).await.unwrap_err();
    assert!(error.to_string().contains("vectors of 3 numbers, and the index has 5"), "{error}");
}

/// Returns this vector for any text.
#[derive(Debug)]
struct Fixed(Vec<f32>);

#[async_trait]
impl Embedder for Fixed {
    async fn embed(&self, _: &str) -> Result<Vec<f32>, SessionError> {
        Ok(self.0.clone())
    }
}

#[tokio::test]
async fn a_vector_without_a_distance_is_refused_before_it_is_sent() {
    let three = NonZeroUsize::new(3).unwrap();
    for (vector, part) in [
        (vec![], "vectors of 0 numbers"),
        (vec![1.0; 4], "vectors of 4 numbers"),
        (vec![1.0, f32::NAN, 1.0], "NaN or an infinite"),
        (vec![1.0, 1.0, f32::INFINITY], "NaN or an infinite"),
        (vec![f32::NEG_INFINITY, 0.0, 0.0], "NaN or an infinite"),
        (vec![0.0, -0.0, 0.0], "zeros alone"),
    ] {
        let server = Server::new().await;
        let provider =
            over(&server).with_vectors(VectorSearch::new("vector", three, Arc::new(Fixed(vector))));
        let tea = || vec![Message::user("tea")];
        let errors = [
            before(&provider, tea()).await.unwrap_err(),
            after(&provider, ("s", "r"), tea(), Vec::new(), &mut ProviderState::default()).await.unwrap_err(),
        ];
        for error in errors {
            assert!(error.kind() == SessionErrorKind::Invalid && error.to_string().contains(part), "{error}");
        }
        assert_eq!((server.count("HSET"), server.count("FT.AGGREGATE")), (0, 0));
    }
    // With another distance than the angle, a vector of zeros is valid.
    let zeros = VectorSearch::new("vector", three, Arc::new(Fixed(vec![0.0; 3])));
    for distance in [VectorDistance::Euclidean, VectorDistance::InnerProduct] {
        assert_eq!(zeros.clone().with_distance(distance).embed("tea").await.unwrap(), [0; 12]);
    }
}

#[tokio::test]
async fn it_is_one_of_the_providers_of_an_agent() {
    let server = Server::new().await;
    let mut providers = Providers::default();
    providers.push(over(&server)).unwrap();
    let (agent, mut session) = (NamedAgent::new("a"), AgentSession::new());
    for (token, messages) in [("run-1", 1), ("run-2", 2)] {
        let mut context = SessionContext::new(&session, token, vec![Message::user("What do I drink?")]);
        providers.before_run(&agent, &mut session, &mut context).await.unwrap();
        assert_eq!(context.prompt_messages().count(), messages);
        let mut context =
            context.with_response(AgentResponse::new(vec![Message::assistant("You drink tea.")]));
        providers.after_run(&agent, &mut session, &mut context).await.unwrap();
    }
    assert_eq!(server.state.lock().unwrap().hashes.len(), 4);
}
