//! A service that fails, gives unexpected answers, or has memories of other owners; and the key.

use core::future::ready;

use super::*;

#[tokio::test]
async fn a_search_that_fails_ends_no_run() {
    let tea = || found(&[("1", "Likes tea.")]);
    // The searches for a user and for an agent run at the same time. There is only one here, so that the order is
    // known.
    for (answers, text, times) in [
        (vec![Answer::Status(503, None), Answer::Status(500, None), tea()], "tea", 3),
        (vec![Answer::Status(429, Some("0.01")), tea()], "tea", 2),
        (vec![Answer::Half, tea()], "tea", 2),
        (vec![Answer::Never, tea()], "tea", 2),
        (vec![Answer::Status(500, None); 9], "", 3),
        // Longer than the timeout of a request.
        (vec![Answer::Status(429, Some("3600")), tea()], "", 1),
        (vec![Answer::Status(401, None), tea()], "", 1),
        (vec![Answer::Status(400, None), tea()], "", 1),
        (vec![Answer::Status(307, None), tea()], "", 1),
        (vec![Answer::Text("no JSON".into()), tea()], "", 1),
        (vec![Answer::Json(json!("a text")), tea()], "", 1),
        (vec![Answer::Json(json!({"results": {"1": "tea"}})), tea()], "", 1),
        (vec![Answer::Json(json!({"memories": []})), tea()], "", 1),
        (
            vec![Answer::Json(json!([1, "tea", null, {"id": "1"}, {"memory": 5}, {"memory": "  "}])), tea()],
            "",
            1,
        ),
        (vec![found(&[])], "", 1),
    ] {
        let (service, url) = Service::new(answers.clone()).await;
        let provider =
            hosted(&url).with_endpoint(|endpoint| endpoint.with_timeout(Duration::from_millis(500)));
        let said = text_before(&provider, "x").await;
        assert_eq!(
            (said.contains("tea"), service.asked().len()),
            (!text.is_empty(), times),
            "{answers:?}: {said}"
        );
    }
    // A failed search does not affect the other one.
    let (_, url) = Service::new([Answer::Status(400, None), tea()]).await;
    let both = hosted(&url).with_search(user().with_agent("helper"));
    assert!(text_before(&both, "x").await.contains("tea"));
    // No server listens at this address.
    assert_eq!(text_before(&hosted("http://127.0.0.1:1"), "x").await, "");
}

#[tokio::test]
async fn a_store_that_fails_is_an_error_and_is_repeated_only_if_nothing_was_done() {
    use SessionErrorKind::{Invalid, Unavailable};
    for (answers, times, failed) in [
        (vec![Answer::Status(429, None), Answer::Status(429, None)], 3, None),
        (vec![Answer::Status(429, None); 9], 3, Some(Unavailable)),
        // A gateway may give this status although the service behind it has done the work.
        (vec![Answer::Status(503, None)], 1, Some(Unavailable)),
        (vec![Answer::Status(500, None)], 1, Some(Unavailable)),
        (vec![Answer::Never], 1, Some(Unavailable)),
        (vec![Answer::Text("no JSON".into())], 1, None),
        (vec![Answer::Status(401, None)], 1, Some(Invalid)),
        (vec![Answer::Status(404, None)], 1, Some(SessionErrorKind::NotFound)),
        (vec![Answer::Status(422, None)], 1, Some(Invalid)),
    ] {
        let (service, url) = Service::new(answers.clone()).await;
        let provider =
            hosted(&url).with_endpoint(|endpoint| endpoint.with_timeout(Duration::from_millis(500)));
        let mut state = ProviderState::default();
        let done = after(&provider, vec![Message::user("a secret")], Vec::new(), &mut state).await;
        assert_eq!(
            (done.as_ref().err().map(SessionError::kind), service.asked().len()),
            (failed, times),
            "{answers:?}"
        );
        if let Err(error) = done {
            // The error has no text of the messages, no key and no address.
            let text = format!("{error} {error:?}");
            assert!(
                !text.contains("secret") && !text.contains("m0-key") && !text.contains("127.0.0.1"),
                "{text}"
            );
            assert!(text.contains("mem0: "), "{text}");
            assert!(state.is_empty(), "the run can be stored again");
        }
    }
}

#[tokio::test]
async fn memories_of_others_and_huge_ones_are_kept_out() {
    let hits = json!({"results": [
        {"id": "1", "memory": "of alice", "user_id": "alice", "agent_id": null},
        {"id": "2", "memory": "of bob", "user_id": "bob"},
        {"id": "3", "memory": "of nobody"},
        {"id": "4", "memory": "of a list", "user_id": ["alice"]},
        {"id": "5", "memory": "é".repeat(1 << 20), "user_id": "alice"},
    ]});
    let (_, url) = Service::new([Answer::Json(hits)]).await;
    let text = text_before(&hosted(&url), "x").await;
    assert!(
        text.contains("- of alice\n") && text.contains("- of nobody\n") && text.ends_with("é [..]"),
        "{text}"
    );
    assert!(!text.contains("bob") && !text.contains("of a list") && text.len() < 5_000, "{}", text.len());
    let many: Vec<_> = (0..1_000).map(|at| json!({"id": at, "memory": format!("memory {at}.")})).collect();
    let (_, url) = Service::new([Answer::Json(many.into())]).await;
    let text = text_before(&hosted(&url), "x").await;
    assert!(text.contains("memory 39.") && !text.contains("memory 40."), "{text}");
}

#[tokio::test]
async fn the_key_is_asked_for_each_request_and_is_told_to_nobody() {
    let (service, url) = Service::new([]).await;
    let keys = Arc::new(Mutex::new(0));
    let key = Key::from_fn(move || {
        let mut count = keys.lock().unwrap();
        *count += 1;
        Box::pin(ready(Ok(format!("key-{count}").into())))
    });
    let provider = hosted(&url).with_key(key);
    for _ in 0..2 {
        text_before(&provider, "x").await;
    }
    let asked: Vec<_> = service.asked().into_iter().filter_map(|asked| asked.key).collect();
    assert_eq!(asked, ["Token key-1", "Token key-2"]);
    assert!(!format!("{:?}", hosted(&url)).contains("m0-key"));

    let wrong = hosted(&url).with_key("with\nbreak");
    let error =
        after(&wrong, vec![Message::user("x")], Vec::new(), &mut ProviderState::default()).await.unwrap_err();
    assert!(
        error.kind() == SessionErrorKind::Invalid && !format!("{error:?}").contains("break"),
        "{error:?}"
    );
    let locked = Key::from_fn(|| {
        Box::pin(ready(Err(SessionError::new(SessionErrorKind::Unavailable, "the vault is locked"))))
    });
    let provider = hosted(&url).with_key(locked);
    let error = after(&provider, vec![Message::user("x")], Vec::new(), &mut ProviderState::default())
        .await
        .unwrap_err();
    assert!(error.to_string().contains("the vault is locked"), "{error}");
    assert_eq!(service.asked().len(), 2);
}
