//! The index: created once, checked if it exists, refused if it is different.

use super::*;
use crate::{VectorAlgorithm, VectorDistance};

/// Definition of the index that Agent Framework's provider makes.
const THEIRS: &str = "ON HASH PREFIX 1 context SCORE 1.0 SCHEMA role TAG SEPARATOR , mime_type TAG SEPARATOR , content TEXT WEIGHT 1 \
                      conversation_id TAG SEPARATOR , message_id TAG SEPARATOR , author_name TAG SEPARATOR , application_id TAG SEPARATOR , \
                      agent_id TAG SEPARATOR , user_id TAG SEPARATOR , thread_id TAG SEPARATOR ,";

const VECTOR: &str = " vector VECTOR HNSW 14 TYPE FLOAT32 DIM 3 DISTANCE_METRIC COSINE M 16 EF_CONSTRUCTION 200 EF_RUNTIME 10 EPSILON 0.01";

async fn with_index(definition: &str) -> Server {
    let server = Server::new().await;
    let words = definition.split(' ').map(str::to_owned).collect();
    server.state.lock().unwrap().indexes.insert("context".to_owned(), words);
    server
}

#[tokio::test]
async fn the_first_hook_makes_the_index() {
    let server = Server::new().await;
    let flat = vectors().with_algorithm(VectorAlgorithm::Flat).with_distance(VectorDistance::Euclidean);
    let inner = vectors().with_distance(VectorDistance::InnerProduct);
    for (name, provider, vector) in [
        ("context", over(&server), String::new()),
        ("v", over(&server).with_index("v").with_vectors(vectors()), VECTOR.to_owned()),
        (
            "f",
            over(&server).with_index("f").with_vectors(flat),
            " vector VECTOR FLAT 6 TYPE FLOAT32 DIM 3 DISTANCE_METRIC L2".to_owned(),
        ),
        ("i", over(&server).with_index("i").with_vectors(inner), VECTOR.replace("COSINE", "IP")),
    ] {
        for _ in 0..2 {
            assert_eq!(found(&provider, "tea").await, "");
            said(&provider.clone().with_scope(Scope::default().with_user(name)), "s", "tea").await;
        }
        let made = server.state.lock().unwrap().indexes[name].join(" ");
        assert_eq!(made, [THEIRS, &*vector].concat());
        // Another provider accepts the index without a new lookup.
        let (lists, looks) = (server.count("FT._LIST"), server.count("FT.INFO"));
        found(&provider.with_prompt(""), "tea").await;
        assert_eq!((server.count("FT._LIST"), server.count("FT.INFO")), (lists, looks), "it is known");
    }
    assert_eq!((server.count("FT.CREATE"), server.count("FT.INFO")), (4, 0));
}

#[tokio::test]
async fn two_that_make_it_at_once_make_one() {
    let server = Server::new().await;
    let (one, other) = (over(&server), over(&server));
    tokio::join!(found(&one, "tea"), found(&other, "tea"));
    assert_eq!((server.count("FT.CREATE"), server.count("FT.INFO")), (2, 1));
    // The slower provider checks the schema.
    let (one, other) = (over(&server).with_index("n"), over(&server).with_index("n").with_vectors(vectors()));
    let input = || vec![Message::user("tea")];
    let (one, other) = tokio::join!(before(&one, input()), before(&other, input()));
    assert!(one.is_ok() != other.is_ok(), "{one:?} {other:?}");
}

#[tokio::test]
async fn an_index_of_another_schema_is_refused() {
    for (definition, part) in [
        (THEIRS.replace("user_id TAG SEPARATOR , ", ""), "field user_id is nothing, not TAG ,."),
        (
            THEIRS.replace("user_id TAG SEPARATOR ,", "user_id TAG SEPARATOR ;"),
            "field user_id is TAG ;, not TAG ,.",
        ),
        (THEIRS.replace("WEIGHT 1", "WEIGHT 2"), "field content is TEXT 2, not TEXT 1."),
        (
            THEIRS.replace("content TEXT WEIGHT 1", "content TAG SEPARATOR ,"),
            "field content is TAG ,, not TEXT 1.",
        ),
        (THEIRS.replace("PREFIX 1 context", "PREFIX 1 notes"), "prefix is notes, not context."),
        // Options that change the results of a search.
        (
            THEIRS.replace("user_id TAG SEPARATOR ,", "user_id TAG SEPARATOR , CASESENSITIVE"),
            "user_id is TAG , CASESENSITIVE, not TAG ,.",
        ),
        (
            THEIRS.replace("user_id TAG SEPARATOR ,", "user_id TAG SEPARATOR , WITHSUFFIXTRIE"),
            "user_id is TAG , WITHSUFFIXTRIE, not",
        ),
        (THEIRS.replace("WEIGHT 1", "WEIGHT 1 NOSTEM"), "field content is TEXT 1 NOSTEM, not TEXT 1."),
        (format!("{THEIRS} tenant TAG SEPARATOR ,"), "field tenant is TAG ,, not nothing."),
        (format!("{THEIRS}{VECTOR}"), "field vector is VECTOR HNSW FLOAT32 3 COSINE, not nothing."),
    ] {
        let server = with_index(&definition).await;
        let error = before(&over(&server), vec![Message::user("tea")]).await.unwrap_err();
        let said = error.to_string();
        assert!(error.kind() == SessionErrorKind::Invalid && said.contains(part), "{definition}: {said}");
        assert!(
            said.contains("the index `context`")
                && said.contains("FT.DROPINDEX")
                && said.contains("with_index"),
            "{said}"
        );
        // Nothing is stored that a search could not find.
        let hi = vec![Message::user("Hi")];
        after(&over(&server), ("s", "r"), hi, Vec::new(), &mut ProviderState::default()).await.unwrap_err();
        assert_eq!(server.count("HSET") + server.count("FT.CREATE"), 0);
    }
    for (vector, part) in [
        (VECTOR.replace("DIM 3", "DIM 4"), "VECTOR HNSW FLOAT32 4 COSINE, not VECTOR HNSW FLOAT32 3 COSINE"),
        (VECTOR.replace("COSINE", "L2"), "3 L2, not"),
        (VECTOR.replace("HNSW", "FLAT"), "VECTOR FLAT FLOAT32"),
        (VECTOR.replace("FLOAT32", "FLOAT64"), "FLOAT64 3"),
        (VECTOR.replace(" vector", " other"), "field other is VECTOR"),
        (String::new(), "field vector is nothing"),
    ] {
        let server = with_index(&[THEIRS, &vector].concat()).await;
        let provider = over(&server).with_vectors(vectors());
        let error = before(&provider, vec![Message::user("tea")]).await.unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
    let server = with_index(&[THEIRS, VECTOR].concat()).await;
    found(&over(&server).with_vectors(vectors()), "tea").await;
}

#[tokio::test]
async fn a_description_of_another_form_is_another_schema() {
    for (answer, part) in [
        ("*0\r\n", "field agent_id is nothing"),
        ("*2\r\n+attributes\r\n*2\r\n*1\r\n+x\r\n:3\r\n", "field agent_id is nothing"),
        ("+OK\r\n", "field agent_id is nothing"),
    ] {
        let server = with_index(THEIRS).await;
        server.answers("FT.INFO", Answer::Raw(answer.to_owned()));
        let error = before(&over(&server), vec![Message::user("tea")]).await.unwrap_err();
        assert!(error.kind() == SessionErrorKind::Invalid && error.to_string().contains(part), "{error}");
        assert!(error.to_string().len() < 1_200, "{error}");
    }
    let server = with_index(THEIRS).await;
    server.answers("FT._LIST", Answer::Raw(":5\r\n".to_owned()));
    let error = before(&over(&server), vec![Message::user("tea")]).await.unwrap_err();
    assert!(error.to_string().contains("the list of indexes has another form"), "{error}");
}

#[tokio::test]
async fn names_that_no_index_can_have_are_refused() {
    let server = Server::new().await;
    let field = |name: &str| VectorSearch::new(name, NonZeroUsize::MIN, Arc::new(Letters));
    for provider in [
        over(&server).with_index(""),
        over(&server).with_prefix(""),
        over(&server).with_vectors(field("")),
        over(&server).with_vectors(field("a b")),
        over(&server).with_vectors(field("1a")),
        over(&server).with_vectors(field("v]=>{")),
        over(&server).with_vectors(field("content")),
        over(&server).with_vectors(field("user_id")),
    ] {
        let error = before(&provider, vec![Message::user("tea")]).await.unwrap_err();
        assert!(error.kind() == SessionErrorKind::Invalid && error.to_string().contains("name"), "{error}");
    }
    assert_eq!(server.asked(), Vec::<String>::new());
}
