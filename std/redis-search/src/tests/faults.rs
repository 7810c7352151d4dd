//! A server that refuses, fails, gives unexpected answers or has memories of other owners; and the password.

use std::sync::Mutex;
use std::time::Instant;

use super::server::{array, bulk};
use super::*;
use crate::Password;
use SessionErrorKind::{Invalid, NotFound, Unavailable};

fn hit(fields: &[(&str, &str)]) -> [String; 3] {
    let fields: Vec<_> = fields.iter().flat_map(|(name, value)| [bulk(name), bulk(value)]).collect();
    [bulk("context:1"), bulk("0.5"), array(&fields)]
}

fn hits(hits: &[[String; 3]]) -> Answer {
    let count = [format!(":{}\r\n", hits.len())];
    Answer::Raw(array(&[&count[..], &hits.concat()].concat()))
}

async fn failed(provider: &RedisContextProvider) -> SessionError {
    let error = before(provider, vec![Message::user("tea of hunter")]).await.unwrap_err();
    let said = format!("{error} {error:?} {provider:?}");
    assert!(!said.contains("SECRET") && !said.contains("hunter") && said.contains("redis: "), "{said}");
    error
}

#[tokio::test]
async fn what_the_server_refuses_has_a_kind_and_a_remedy() {
    for (answer, kind, tries, part) in [
        ("-LOADING Redis is loading SECRET", Unavailable, 4, "loading"),
        ("-OOM command not allowed SECRET", Unavailable, 4, "memory is full"),
        ("-NOPERM User has no permissions SECRET", Invalid, 1, "may not"),
        (
            "-ERR unknown command 'FT.SEARCH', with args beginning with: 'SECRET'",
            Invalid,
            1,
            "take Redis 8, or load RediSearch 2.10",
        ),
        ("-ERR unknown command `FT.SEARCH`, with args beginning with: SECRET", Invalid, 1, "has no search"),
        ("-Syntax error at offset 12 near SECRET", Invalid, 1, "2.10 is needed"),
        ("-SEARCH_SYNTAX Syntax error at offset 12 near SECRET", Invalid, 1, "2.10 is needed"),
        ("-No such scorer SECRET", Invalid, 1, "2.10 is needed"),
        ("-Unknown argument `SECRET`", Invalid, 1, "2.10 is needed"),
        ("-Timeout limit was reached", Unavailable, 4, "longer than it may"),
        ("-ERR max number of clients reached", Unavailable, 4, "as many clients"),
        ("-Unknown index name", NotFound, 1, "the index is gone"),
        ("-context: no such index", NotFound, 1, "the index is gone"),
        ("-SEARCH_INDEX_NOT_FOUND Index not found: SECRET", NotFound, 1, "the index is gone"),
        ("-Cannot create index on db != 0", Invalid, 1, "take that"),
        ("-ERR DB index is out of range", Invalid, 1, "no such database"),
        (
            "-Error parsing vector similarity query: query vector blob size (12) does not match SECRET",
            Invalid,
            1,
            "2.10 is needed",
        ),
        ("-Duplicate field in schema - SECRET", Invalid, 1, "2.10 is needed"),
        ("-LIMIT exceeds maximum of 1000000", Invalid, 1, "2.10 is needed"),
        ("-ERR LIMIT exceeds maximum of 1000000", Invalid, 1, "2.10 is needed"),
        ("-Vector index `SECRET` error: KNN k too large", Invalid, 1, "2.10 is needed"),
        ("-Cursor not found", Invalid, 1, "2.10 is needed"),
        ("-SEARCH_OOM_QUERY Not enough memory SECRET", Unavailable, 4, "try again"),
        ("-CLUSTERDOWN SECRET", Unavailable, 4, "rearranged"),
        (":5", Invalid, 1, "another form"),
        ("+SECRET", Invalid, 1, "another form"),
        ("*0", Invalid, 1, "another form"),
        ("*1\r\n+SECRET", Invalid, 1, "another form"),
    ] {
        let server = Server::new().await;
        for _ in 0..4 {
            server.answers("FT.SEARCH", Answer::Raw(format!("{answer}\r\n")));
        }
        let provider = over(&server);
        let error = failed(&provider).await;
        assert!(error.kind() == kind && error.to_string().contains(part), "{answer}: {error}");
        assert_eq!(server.count("FT.SEARCH"), tries, "{answer}");
    }
}

#[tokio::test]
async fn a_server_that_fails_for_a_moment_is_asked_again() {
    for answer in [
        Answer::Raw("-LOADING Redis is loading\r\n".to_owned()),
        Answer::Last("*3\r\n:1\r\n$9\r\nconte".to_owned()),
        Answer::Last(String::new()),
        Answer::Never,
    ] {
        let server = Server::new().await;
        let at = RedisServer::from_url(&format!("redis://127.0.0.1:{}", server.port)).unwrap();
        let provider =
            RedisContextProvider::new(&at, remote().with_timeout(Duration::from_millis(500))).unwrap();
        let provider = provider.with_scope(alice());
        for name in ["FT._LIST", "FT.CREATE", "HSET", "FT.SEARCH"] {
            server.answers(name, answer.clone());
        }
        said(&provider, "s-1", "tea").await;
        assert_eq!(found(&provider, "tea").await.lines().last(), Some("- tea"), "{answer:?}");
        assert_eq!(server.state.lock().unwrap().hashes.len(), 1, "{answer:?}");
    }
}

#[tokio::test]
async fn the_limit_of_time_is_that_of_the_connection_too() {
    // The server accepts connections, and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let short = remote().with_timeout(Duration::from_millis(100)).with_retries(1);
    let silent = RedisServer::new("127.0.0.1").with_port(silent.local_addr().unwrap().port()).with_tls(false);
    let never = silent.clone().with_password(Password::from_fn(|| Box::pin(core::future::pending())));
    let server = Server::new().await;
    let slow = RedisServer::new("127.0.0.1").with_port(server.port).with_tls(false);
    for name in ["FT._LIST"; 2] {
        server.answers(name, Answer::Never);
    }
    for server in [&silent, &never, &slow] {
        let provider = RedisContextProvider::new(server, short).unwrap().with_scope(alice());
        let start = Instant::now();
        assert_eq!(failed(&provider).await.kind(), Unavailable);
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    }
    let nobody = RedisServer::from_url("redis://search:hunter2@127.0.0.1:1/").unwrap();
    let error = failed(&RedisContextProvider::new(&nobody, short).unwrap().with_scope(alice())).await;
    assert!(error.kind() == Unavailable && error.to_string().contains("connection refused"), "{error}");
}

#[tokio::test]
async fn an_index_that_was_dropped_is_made_again_by_the_next_run() {
    let server = Server::new().await;
    let provider = over(&server);
    said(&provider, "s-1", "tea").await;
    server.state.lock().unwrap().indexes.clear();
    assert_eq!(failed(&provider).await.kind(), NotFound);
    assert!(found(&provider, "tea").await.ends_with("- tea"));
}

#[tokio::test]
async fn many_first_runs_at_once_make_one_connection_and_one_index() {
    let server = Server::new().await;
    server.state.lock().unwrap().password = Some("hunter1".to_owned());
    let password = Password::from_fn(|| {
        Box::pin(async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            Ok("hunter1".into())
        })
    });
    let at = RedisServer::new("127.0.0.1").with_port(server.port).with_tls(false).with_user("search");
    let provider =
        RedisContextProvider::new(&at.with_password(password), remote()).unwrap().with_scope(alice());
    let run = |provider: RedisContextProvider| async move {
        before(&provider, vec![Message::user("tea")]).await.map(|added| added.len())
    };
    let runs: Vec<_> = (0..200).map(|_| tokio::spawn(run(provider.clone()))).collect();
    for run in runs {
        assert_eq!(run.await.unwrap().unwrap(), 0);
    }
    let counts = ["FT._LIST", "FT.CREATE", "FT.SEARCH"].map(|name| server.count(name));
    assert_eq!((counts, server.state.lock().unwrap().connections), ([1, 1, 200], 1));
    // A refused command does not close the connection.
    for _ in 0..5 {
        server.answers("FT.SEARCH", Answer::Raw("-Syntax error at offset 12 near SECRET\r\n".to_owned()));
        assert_eq!(failed(&provider).await.kind(), Invalid);
    }
    assert_eq!(server.state.lock().unwrap().connections, 1);
}

#[tokio::test]
async fn runs_that_wait_for_an_index_that_fails_do_not_wait_for_each_other() {
    let server = Server::new().await;
    for _ in 0..1_000 {
        server.answers("FT._LIST", Answer::Never);
    }
    let at = RedisServer::from_url(&format!("redis://127.0.0.1:{}", server.port)).unwrap();
    let short = remote().with_timeout(Duration::from_millis(200)).with_retries(0);
    let provider = RedisContextProvider::new(&at, short).unwrap().with_scope(alice());
    let start = Instant::now();
    let run = |provider: RedisContextProvider| async move { failed(&provider).await.kind() };
    let runs: Vec<_> = (0..50).map(|_| tokio::spawn(run(provider.clone()))).collect();
    for run in runs {
        assert_eq!(run.await.unwrap(), Unavailable);
    }
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    server.state.lock().unwrap().answers.clear();
    assert_eq!(found(&provider, "tea").await, "");
}

#[tokio::test]
async fn a_store_that_fails_is_an_error_and_can_be_repeated() {
    let server = Server::new().await;
    let provider = over(&server);
    for _ in 0..4 {
        server.answers("HSET", Answer::Raw("-OOM command not allowed SECRET\r\n".to_owned()));
    }
    let run = || vec![Message::user("tea of hunter"), Message::user("more")];
    let mut state = ProviderState::default();
    let error = after(&provider, ("s", "r"), run(), Vec::new(), &mut state).await.unwrap_err();
    let said = format!("{error} {error:?}");
    assert!(error.kind() == Unavailable && !said.contains("hunter") && !said.contains("SECRET"), "{said}");
    assert!(state.is_empty(), "the run can be stored again");
    after(&provider, ("s", "r"), run(), Vec::new(), &mut state).await.unwrap();
    assert_eq!(server.state.lock().unwrap().hashes.len(), 2);
}

#[tokio::test]
async fn memories_of_others_and_huge_ones_are_kept_out() {
    let server = Server::new().await;
    let huge = "é".repeat(1 << 20);
    server.answers(
        "FT.SEARCH",
        hits(&[
            hit(&[("content", "of bob"), ("user_id", "bob")]),
            hit(&[("content", "of nobody")]),
            hit(&[("content", "of Alice"), ("user_id", "Alice")]),
            hit(&[("content", "of both"), ("user_id", "alice,bob")]),
            hit(&[("content", "  "), ("user_id", "alice")]),
            hit(&[("user_id", "alice")]),
            hit(&[("content", "of alice"), ("user_id", "alice")]),
            hit(&[("content", &huge), ("user_id", "alice")]),
        ]),
    );
    let text = found(&over(&server), "x").await;
    assert!(
        text.contains("\n- of alice\n") && text.ends_with("é [..]") && text.len() < 5_000,
        "{}",
        text.len()
    );
    assert_eq!(text.matches("of ").count(), 1, "{text}");
    let many: Vec<_> =
        (0..1_000).map(|at| hit(&[("content", &format!("memory {at}.")), ("user_id", "alice")])).collect();
    server.answers("FT.SEARCH", hits(&many));
    let text = found(&over(&server), "x").await;
    assert!(text.contains("memory 9.") && !text.contains("memory 10."), "{text}");
}

#[tokio::test]
async fn the_password_is_asked_for_each_connection_and_is_told_to_nobody() {
    let server = Server::new().await;
    server.state.lock().unwrap().password = Some("hunter1".to_owned());
    let password = Arc::new(Mutex::new("hunter1".to_owned()));
    let current = Arc::clone(&password);
    let looked_up = Password::from_fn(move || {
        let password = current.lock().unwrap().clone();
        Box::pin(async move { Ok(password.into()) })
    });
    let at = RedisServer::new("127.0.0.1").with_port(server.port).with_tls(false).with_user("search");
    let provider = RedisContextProvider::new(&at.clone().with_password(looked_up), remote())
        .unwrap()
        .with_scope(alice());
    assert_eq!(found(&provider, "tea").await, "");
    assert_eq!(server.state.lock().unwrap().connections, 1);
    // The password changes, and the next connection uses the new one.
    server.state.lock().unwrap().password = Some("hunter2".to_owned());
    "hunter2".clone_into(&mut password.lock().unwrap());
    server.answers("FT.SEARCH", Answer::Last(String::new()));
    assert_eq!(found(&provider, "tea").await, "");
    assert_eq!(server.state.lock().unwrap().connections, 2);
    "hunter3".clone_into(&mut password.lock().unwrap());
    server.answers("FT.SEARCH", Answer::Last(String::new()));
    let error = failed(&provider).await;
    assert!(error.kind() == Invalid && error.to_string().contains("name and password"), "{error}");
    // A server by its URL. If the URL asks for the newer protocol, the provider uses the older one.
    let by_url = |password: &str| {
        let url = format!("redis://search:{password}@127.0.0.1:{}/?protocol=resp3", server.port);
        RedisContextProvider::new(&RedisServer::from_url(&url).unwrap(), remote())
            .unwrap()
            .with_scope(alice())
    };
    assert_eq!(found(&by_url("hunter2"), "tea").await, "");
    assert_eq!(failed(&by_url("hunter9")).await.kind(), Invalid);
}
