//! Knowledge bases that exist, and knowledge bases that the provider creates over an index.

use super::*;

/// A knowledge base that the provider creates over an index.
fn over_index(url: &str) -> AzureAISearchContextProvider {
    let model = KnowledgeModel::new("https://o.openai.azure.com", "gpt").with_key("o-key");
    let key = Credential::ApiKey("a-key".into());
    let provider = AzureAISearchContextProvider::of_knowledge_base_over(url, "docs", model, key).unwrap();
    provider.with_prompt("Known:").with_endpoint(|endpoint| endpoint.with_delay(Duration::ZERO))
}

#[tokio::test]
async fn a_knowledge_base_answers_with_its_sources() {
    let text = |text: &str| json!({"type": "text", "text": text});
    let answer = json!({
        "response": [{"role": "assistant", "content": [text(r#"[{"ref_id":0,"title":"Hours","content":"Opens at nine."},{"ref_id":1,"content":"Closes at five."}]"#), {"type": "image", "image": {"url": "x"}}]},
            {"role": "assistant", "content": []}],
        "references": [{"type": "searchIndex", "id": "0", "docKey": "hours-1"}, {"type": "web", "id": "1", "url": "https://a"}, {"type": "web"}],
        "activity": [],
    });
    let answers = [
        (BASE, 200, json!({"name": "base", "knowledgeSources": [{"name": "one"}, {"name": "two"}]})),
        ("/knowledgesources('one')", 200, json!({"name": "one", "kind": "searchIndex"})),
        ("/knowledgesources('two')", 200, json!({"name": "two", "kind": "azureBlob"})),
        (RETRIEVE, 200, answer),
        (
            RETRIEVE,
            200,
            json!({"response": [], "references": [{"type": "web", "id": "1", "url": "https://a"}]}),
        ),
    ];
    let (service, url) = Service::new(&answers).await;
    let provider = of_base(&url).with_messages_max(at_most(2)).with_prompt("Known:");
    let input = ["one", "two", "three"].map(Message::user).to_vec();
    let added = before(&provider, input).await.unwrap();
    let expected =
        "Known:\n- [0] Opens at nine.\n- [1] Closes at five.\n- Sources: [0] hours-1, [1] https://a";
    assert_eq!(added[0].text(), expected);
    let source = |name: &str, kind: &str| json!({"knowledgeSourceName": name, "includeReferenceSourceData": true, "kind": kind});
    let body = json!({
        "includeActivity": true, "intents": [{"type": "semantic", "search": "two\nthree"}],
        "knowledgeSourceParams": [source("one", "searchIndex"), source("two", "azureBlob")],
    });
    assert_eq!(service.asked(RETRIEVE), [body]);
    // The search finds nothing. The sources of the base are known by now, and not requested again.
    assert_eq!(said(&provider, "four").await, "");
    assert_eq!(service.paths().len(), 5);
    assert!(service.asked.lock().unwrap().iter().all(|(_, key, _)| key == "Bearer a-token"));
    // A base that does not exist, and a base with names of sources that would form another address.
    let (_, url) = Service::new(&[]).await;
    assert_eq!(
        before(&of_base(&url), vec![Message::user("x")]).await.unwrap_err().kind(),
        SessionErrorKind::NotFound
    );
    let (service, url) =
        Service::new(&[(BASE, 200, json!({"knowledgeSources": [{"name": "a')/../../indexes('b"}]}))]).await;
    assert_eq!(
        before(&of_base(&url), vec![Message::user("x")]).await.unwrap_err().kind(),
        SessionErrorKind::Invalid
    );
    assert_eq!(service.paths(), [BASE]);
}

#[tokio::test]
async fn a_knowledge_base_is_made_of_an_index() {
    let source =
        |index: &str| json!({"kind": "searchIndex", "searchIndexParameters": {"searchIndexName": index}});
    let found = json!({"response": [{"content": [{"type": "text", "text": "Opens at nine."}]}]});
    let made = [(PUT_BASE, 201, json!({"name": "docs-kb"})), (RETRIEVE_MADE, 200, found)];
    let created = json!({
        "name": "docs-source", "kind": "searchIndex", "description": "Knowledge source for docs search index",
        "searchIndexParameters": {"searchIndexName": "docs"},
    });
    let base = json!({
        "name": "docs-kb", "description": "Knowledge Base for multi-hop retrieval across docs",
        "knowledgeSources": [{"name": "docs-source"}],
        "models": [{"kind": "azureOpenAI", "azureOpenAIParameters": {
            "resourceUri": "https://o.openai.azure.com", "deploymentId": "gpt", "modelName": "gpt", "apiKey": "o-key",
        }}],
    });
    let asked = json!({"knowledgeSourceName": "docs-source", "includeReferenceSourceData": true, "kind": "searchIndex"});
    let (gone, failed) = (json!({}), json!({}));
    // The source exists; it does not exist; another process is faster; the answer is lost.
    for (answers, posts) in [
        (vec![(SOURCE, 200, source("docs"))], 0),
        (vec![(SOURCE, 404, gone.clone()), (SOURCES, 201, source("docs"))], 1),
        (vec![(SOURCE, 404, gone.clone()), (SOURCES, 409, failed.clone()), (SOURCE, 200, source("docs"))], 1),
        (vec![(SOURCE, 404, gone.clone()), (SOURCES, 500, failed), (SOURCE, 200, source("docs"))], 1),
    ] {
        let (service, url) = Service::new(&[answers.clone(), made.to_vec()].concat()).await;
        let provider = over_index(&url);
        for _ in 0..2 {
            assert_eq!(said(&provider, "tea").await, "Known:\n- Opens at nine.", "{answers:?}");
        }
        assert_eq!(service.asked(SOURCES), vec![created.clone(); posts], "{answers:?}");
        assert_eq!(service.asked(PUT_BASE), core::slice::from_ref(&base), "it is made once");
        let bodies = service.asked(RETRIEVE_MADE);
        assert_eq!((bodies.len(), &bodies[1]["knowledgeSourceParams"]), (2, &json!([asked])));
    }
    // A source that may not be created or that is over another index, and a base that cannot be created: the next run
    // tries again.
    for (answers, kind) in [
        (vec![(SOURCE, 404, gone), (SOURCES, 403, json!({}))], SessionErrorKind::Invalid),
        (vec![(SOURCE, 200, source("other"))], SessionErrorKind::Invalid),
        (vec![(SOURCE, 200, json!({"kind": "azureBlob"}))], SessionErrorKind::Invalid),
        (
            vec![(SOURCE, 200, source("docs")), (PUT_BASE, 400, json!({"error": "o-key"}))],
            SessionErrorKind::Invalid,
        ),
        (
            vec![(SOURCE, 200, source("docs")), (PUT_BASE, 503, json!({"error": "o-key"}))],
            SessionErrorKind::Unavailable,
        ),
    ] {
        let (service, url) = Service::new(&answers).await;
        let provider = over_index(&url);
        let error = before(&provider, vec![Message::user("x")]).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{answers:?}: {error}");
        let shown = format!("{error} {error:?} {provider:?}");
        assert!(!shown.contains("o-key") && !shown.contains("a-key"), "{shown}");
        let before_again = service.paths().len();
        before(&provider, vec![Message::user("x")]).await.unwrap_err();
        assert!(service.paths().len() > before_again, "{answers:?}");
        assert_eq!(service.asked(RETRIEVE_MADE), [Value::Null; 0]);
    }
}

#[tokio::test]
async fn the_key_of_a_model_is_looked_up_in_the_time_of_a_request() {
    let source = json!({"searchIndexParameters": {"searchIndexName": "docs"}});
    let (service, url) = Service::new(&[(SOURCE, 200, source)]).await;
    let keys = [
        (Key::from_fn(|| Box::pin(core::future::pending())), "no key in time"),
        (
            Key::from_fn(|| {
                Box::pin(async {
                    Err(SessionError::new(SessionErrorKind::Unavailable, "the vault is locked"))
                })
            }),
            "the vault is locked",
        ),
    ];
    for (key, says) in keys {
        let model = KnowledgeModel::new("https://o.openai.azure.com", "gpt").with_key(key);
        let provider = AzureAISearchContextProvider::of_knowledge_base_over(
            &url,
            "docs",
            model,
            Credential::ApiKey("a-key".into()),
        );
        let provider = provider.unwrap().with_endpoint(|it| it.with_timeout(Duration::from_millis(500)));
        let error = before(&provider, vec![Message::user("x")]).await.unwrap_err();
        assert!(error.kind() == SessionErrorKind::Unavailable && error.to_string().contains(says), "{error}");
    }
    assert_eq!(service.asked(PUT_BASE), [Value::Null; 0]);
}

#[tokio::test]
async fn a_filter_is_sent_to_each_source_of_a_knowledge_base_or_refused() {
    let base = |names: &[&str]| {
        let sources: Vec<_> = names.iter().map(|name| json!({"name": name})).collect();
        (BASE, 200, json!({"knowledgeSources": sources}))
    };
    let of_kind = |path, kind: &str| (path, 200, json!({"kind": kind}));
    let one = of_kind("/knowledgesources('one')", "searchIndex");
    let two = |kind| of_kind("/knowledgesources('two')", kind);
    let found = (RETRIEVE, 200, json!({"response": []}));
    let answers = [base(&["one", "two"]), one.clone(), two("searchIndex"), found.clone()];
    let (service, url) = Service::new(&answers).await;
    // A lookup without the filter is repeated with it.
    let provider = of_base(&url);
    assert_eq!(said(&provider, "tea").await, "");
    let provider = provider.with_filter("tenant eq 'north'");
    assert_eq!(said(&provider, "tea").await, "");
    let source = |name: &str| json!({"knowledgeSourceName": name, "includeReferenceSourceData": true, "kind": "searchIndex", "filterAddOn": "tenant eq 'north'"});
    assert_eq!(service.asked(RETRIEVE)[1]["knowledgeSourceParams"], json!([source("one"), source("two")]));
    // Bases that would be searched without the filter: with a source of another kind, without sources, or with more
    // sources than are named.
    let many = vec!["one"; 21];
    for answers in [
        vec![base(&["one", "two"]), one.clone(), two("azureBlob")],
        vec![base(&[])],
        vec![(BASE, 200, json!({"name": "base"}))],
        vec![base(&many), one.clone()],
        vec![(BASE, 200, json!({"knowledgeSources": [{"name": "one"}, {}]})), one.clone()],
    ] {
        let (service, url) = Service::new(&[answers.clone(), vec![found.clone()]].concat()).await;
        let provider = of_base(&url).with_filter("tenant eq 'north'");
        let error = before(&provider, vec![Message::user("x")]).await.unwrap_err();
        assert!(
            error.kind() == SessionErrorKind::Invalid && error.to_string().contains("a filter needs"),
            "{answers:?}: {error}"
        );
        assert_eq!(service.asked(RETRIEVE), [Value::Null; 0], "{answers:?}");
        // Without a filter, all of these bases are searched.
        assert_eq!(said(&of_base(&url), "x").await, "", "{answers:?}");
    }
}
