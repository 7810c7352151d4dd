//! An endpoint with a server of the tests. The tests of each provider check how the provider reports the errors.

use core::time::Duration;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use epitome_std::session::SessionErrorKind;
use serde_json::json;
use tokio::net::TcpListener;

use crate::{Endpoint, Key, KeyHeader, Repeat};

/// The method, the path and the key of each request.
type Asked = Arc<Mutex<Vec<(String, String, Option<String>)>>>;

/// A server whose answers depend on the path, and its address.
async fn served() -> (Asked, String) {
    let asked = Asked::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(answer).with_state(asked.clone());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    (asked, url)
}

async fn answer(State(asked): State<Asked>, request: Request) -> Response {
    let key = ["authorization", "api-key"].into_iter().find_map(|name| request.headers().get(name));
    let key = key.map(|key| key.to_str().unwrap().to_owned());
    let path = request.uri().path().to_owned();
    asked.lock().unwrap().push((request.method().to_string(), path.clone(), key));
    let response = Response::builder();
    match &*path {
        "/moved" => response.status(302).header("location", "/elsewhere").body(Body::empty()).unwrap(),
        "/huge" => {
            let chunk = || Ok::<_, std::io::Error>(vec![b' '; 1 << 20]);
            Response::new(Body::from_stream(futures::stream::iter((0..64).map(move |_| chunk()))))
        }
        "/later" => response.status(503).header("retry-after", "0.2").body(Body::empty()).unwrap(),
        path if path.starts_with("/status/") => response
            .status(path[8..].parse::<u16>().unwrap())
            .body(Body::from("alice said a secret"))
            .unwrap(),
        _ => Response::new(Body::from(json!({"found": path}).to_string())),
    }
}

#[tokio::test]
async fn a_key_stands_where_the_service_wants_it_and_goes_nowhere_else() {
    let (asked, url) = served().await;
    let endpoint = Endpoint::new("notes", &format!("{url}/")).unwrap();
    assert_eq!(endpoint.get("/a").await.unwrap(), json!({"found": "/a"}));
    let bearer = endpoint.clone().with_key(KeyHeader::Authorization("Bearer", Key::from("k1")));
    assert_eq!(bearer.post("/b", &json!({}), Repeat::Always).await.unwrap(), json!({"found": "/b"}));
    let header = endpoint.with_key(KeyHeader::Named("api-key", Key::from("k2")));
    let error = header.get("/moved").await.unwrap_err();
    assert_eq!(
        (error.kind(), &*error.to_string()),
        (SessionErrorKind::Invalid, "notes: HTTP 302: the service refuses the request")
    );
    let expected = [("GET", "/a", None), ("POST", "/b", Some("Bearer k1")), ("GET", "/moved", Some("k2"))];
    let expected =
        expected.map(|(method, path, key)| (method.to_owned(), path.to_owned(), key.map(str::to_owned)));
    assert_eq!(*asked.lock().unwrap(), expected);
    assert!(!format!("{bearer:?} {header:?}").contains("k1") && !format!("{header:?}").contains("k2"));
    assert!(header.with_key(KeyHeader::Named("no name", Key::from("k3"))).get("/a").await.is_err());
}

#[tokio::test]
async fn a_status_says_what_to_do_and_how_often_it_is_tried() {
    use SessionErrorKind::{Invalid, NotFound, Unavailable};
    let (asked, url) = served().await;
    let endpoint = Endpoint::new("notes", &url).unwrap().with_delay(Duration::ZERO);
    for (status, kind, read, undone) in [
        (400, Invalid, 1, 1),
        (401, Invalid, 1, 1),
        (403, Invalid, 1, 1),
        (404, NotFound, 1, 1),
        (405, Invalid, 1, 1),
        (408, Unavailable, 3, 1),
        (429, Unavailable, 3, 3),
        (500, Unavailable, 3, 1),
        (503, Unavailable, 3, 1),
    ] {
        for (repeat, times) in [(Repeat::Always, read), (Repeat::IfUndone, undone)] {
            asked.lock().unwrap().clear();
            let error = endpoint.post(&format!("/status/{status}"), &json!({}), repeat).await.unwrap_err();
            assert_eq!((error.kind(), asked.lock().unwrap().len()), (kind, times), "{status} {repeat:?}");
            assert!(error.to_string().starts_with(&format!("notes: HTTP {status}")), "{error}");
            assert!(!format!("{error:?}").contains("secret"), "{error:?}");
        }
    }
}

#[tokio::test]
async fn answers_and_waiting_have_limits() {
    let (asked, url) = served().await;
    let endpoint = Endpoint::new("notes", &url).unwrap().with_delay(Duration::ZERO);
    let error = endpoint.get("/huge").await.unwrap_err();
    assert!(error.to_string().contains("larger than 16 MiB"), "{error}");
    // The server asks for a longer wait than a request may take.
    let hurried = endpoint.clone().with_timeout(Duration::from_millis(150));
    assert_eq!(hurried.get("/later").await.unwrap_err().kind(), SessionErrorKind::Unavailable);
    assert_eq!(asked.lock().unwrap().iter().filter(|(_, path, _)| path == "/later").count(), 1);
    endpoint.get("/later").await.unwrap_err();
    assert_eq!(asked.lock().unwrap().iter().filter(|(_, path, _)| path == "/later").count(), 4);
    let nobody = Endpoint::new("notes", "http://127.0.0.1:1").unwrap().with_delay(Duration::ZERO);
    assert_eq!(nobody.get("/a").await.unwrap_err().kind(), SessionErrorKind::Unavailable);
}

/// A key that never arrives is waited for no longer than an answer. The time of this test passes only while everything
/// waits.
#[tokio::test(start_paused = true)]
async fn a_key_that_never_comes_is_waited_for_no_longer_than_an_answer() {
    let stuck = Key::from_fn(|| Box::pin(core::future::pending()));
    let endpoint = Endpoint::new("notes", "https://notes.invalid").unwrap().with_delay(Duration::ZERO);
    let endpoint =
        endpoint.with_key(KeyHeader::Named("api-key", stuck)).with_timeout(Duration::from_secs(20));
    let started = tokio::time::Instant::now();
    assert!(endpoint.get("/a").await.unwrap_err().to_string().contains("no answer in time"));
    // One attempt, and two more.
    assert_eq!(started.elapsed().as_secs(), 60);
}

#[tokio::test]
async fn an_address_is_that_of_a_service_and_a_key_goes_there_encrypted() {
    let (asked, url) = served().await;
    for wrong in [
        "",
        "notes.example",
        "ftp://notes.example",
        "https://",
        "http://u:secret@127.0.0.1",
        "http://h/?a=secret",
        "http://h/#secret",
    ] {
        let error = Endpoint::new("notes", wrong).unwrap_err();
        assert!(
            error.kind() == SessionErrorKind::Invalid && !format!("{error:?}").contains("secret"),
            "{error:?}"
        );
        let later = Endpoint::new("notes", &url).unwrap().with_base_url(wrong);
        assert!(!format!("{later:?}").contains("secret"), "{later:?}");
        assert_eq!(later.get("/a").await.unwrap_err().kind(), SessionErrorKind::Invalid);
    }
    let keyed =
        |url: &str| Endpoint::new("notes", url).unwrap().with_key(KeyHeader::Named("api-key", "k1".into()));
    let error = keyed("http://notes.example").get("/a").await.unwrap_err();
    assert!(
        error.kind() == SessionErrorKind::Invalid && error.to_string().contains("without encryption"),
        "{error}"
    );
    for here in [&*url, &url.replace("127.0.0.1", "localhost")] {
        keyed(here).get("/a").await.unwrap();
    }
    assert_eq!(asked.lock().unwrap().len(), 2);
    let trusted = keyed("http://notes.invalid").with_plain_http().with_delay(Duration::ZERO);
    assert_eq!(trusted.get("/a").await.unwrap_err().kind(), SessionErrorKind::Unavailable);
}

#[tokio::test]
async fn what_is_sent_is_done_whatever_the_answer_says() {
    let (_, url) = served().await;
    let endpoint = Endpoint::new("notes", &url).unwrap();
    for path in ["/huge", "/status/204", "/status/202"] {
        endpoint.send(path, &json!({}), Repeat::IfUndone).await.unwrap();
    }
    assert!(endpoint.send("/status/400", &json!({}), Repeat::IfUndone).await.is_err());
}
