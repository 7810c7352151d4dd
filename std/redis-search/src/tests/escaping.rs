//! Any text is valid as an id, as an input and as a memory, and stays in its place.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::query::{Nearest, Node, parse};
use super::*;
use crate::filter::Filter;
use crate::query::{Search, words};

/// Texts of letters and all signs of the query language.
pub(super) fn odd() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,24}",
        "[a-zA-Z0-9_ |{}()\\[\\]@:~$\\\\=>*?%'\"`&.,;!#^+/<-]{0,24}",
        "[a-z]{0,3}(\\} \\| @user_id:\\{|\\|bob|\\)=>\\[KNN 9 @v \\$v\\]|\\*\\}|\\\\)[a-z ]{0,6}",
    ]
}

fn search(filter: &Filter, words: &[String], vector: bool) -> (Node, Option<Nearest>) {
    let vectors = vectors();
    let vector = vector.then_some((&vectors, Vec::new()));
    let query = Search { index: "context", filter, words, vector, found_max: 10 }.query();
    parse(&query).unwrap_or_else(|error| panic!("{query}: {error}"))
}

fn tag(field: &str, id: &str) -> Node {
    Node::Tag(field.to_owned(), vec![id.to_owned()])
}

fn text(words: &[String]) -> Node {
    let mut nodes: Vec<_> = words.iter().map(|word| Node::Word(word.clone())).collect();
    let node = if nodes.len() == 1 { nodes.remove(0) } else { Node::Any(nodes) };
    Node::Text("content".to_owned(), Box::new(node))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// The module reads each given id as one tag and each word as one word. No part of them is an operator.
    #[test]
    fn no_id_and_no_input_is_more_than_itself(application in odd(), user in odd(), input in odd()) {
        let words = words(&input);
        let is_plain = |letter: char| !letter.is_ascii_punctuation() && !letter.is_whitespace() && !letter.is_control();
        prop_assert!(words.iter().all(|word| word.chars().any(is_plain) && word.chars().all(|it| it == '_' || is_plain(it))));
        // No word of the input is missing.
        let letters = |text: &str| -> String {
            text.to_lowercase().chars().filter(|it| is_plain(*it) && !"“”".contains(*it)).collect()
        };
        prop_assert_eq!(words.concat().replace('_', ""), letters(&input));
        let scope = Scope::default().with_application(&*application).with_user(&*user);
        let is_kept = |id: &str| {
            let unescaped = id.replace(|letter: char| letter.is_ascii_punctuation() && letter != '\\', " ");
            id.trim() == id && !id.contains(|it: char| it == ',' || it.is_control()) && !unescaped.contains("\\ ") && !id.contains("\\\\")
        };
        let ids = [("application_id", application), ("user_id", user)];
        let ids: Vec<_> = ids.into_iter().filter(|(_, id)| !id.is_empty()).collect();
        let Ok(filter) = Filter::of(&scope) else {
            prop_assert!(ids.is_empty() || ids.iter().any(|(_, id)| !is_kept(id)));
            return Ok(());
        };
        prop_assert!(ids.iter().all(|(_, id)| is_kept(id)));
        let mut tags: Vec<_> = ids.iter().map(|(field, id)| tag(field, id)).collect();
        let tags = if tags.len() == 1 { tags.remove(0) } else { Node::All(tags) };
        if !words.is_empty() {
            let all = |first| Node::All(vec![first, tags.clone()]);
            prop_assert_eq!(search(&filter, &words, false), (all(text(&words)), None));
            let (node, nearest) = search(&filter, &words, true);
            prop_assert_eq!(node, all(Node::Maybe(Box::new(text(&words)))));
            prop_assert_eq!(nearest.unwrap().field, "vector");
        }
        let (node, nearest) = search(&filter, &[], true);
        prop_assert_eq!((node, nearest.unwrap().count), (tags, 10));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Each memory is one entry, in the list of its owner only, with any text and any ids.
    #[test]
    fn a_memory_is_one_entry_of_its_owner(texts in prop::collection::vec("\\PC{0,12}[\n\r\u{2028}]?[-# a-z{}\"]{0,12}", 1..4), ids in prop::collection::btree_set(odd(), 2..4), input in odd()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let server = Server::new().await;
            let scopes: Vec<_> = ids.iter().map(|id| Scope::default().with_user(&**id)).filter(|scope| Filter::of(scope).is_ok()).collect();
            for (owner, scope) in scopes.iter().enumerate() {
                for text in &texts {
                    said(&over(&server).with_scope(scope.clone()), &format!("s-{text}"), &format!("tea of {owner}: {text}")).await;
                }
            }
            let different: BTreeSet<_> = texts.iter().collect();
            for (owner, scope) in scopes.iter().enumerate() {
                let found = found(&over(&server).with_scope(scope.clone()), &format!("{input} tea")).await;
                let mine = found.lines().filter(|line| line.starts_with(&format!("- tea of {owner}:"))).count();
                prop_assert_eq!(mine, different.len(), "{}", found);
                prop_assert_eq!(found.lines().filter(|line| line.starts_with("- ")).count(), different.len());
            }
            Ok(())
        })?;
    }
}

#[tokio::test]
async fn an_id_of_signs_is_one_id() {
    let server = Server::new().await;
    let of = |id: &str| over(&server).with_scope(Scope::default().with_user(id));
    let ids = ["_", "|", "a|b", "b", "}", "*", "(b", "a\\b", "?", "a b"];
    for id in ids {
        said(&of(id), "s", &format!("tea of {id}")).await;
    }
    for id in ids {
        let found = found(&of(id), "tea").await;
        assert_eq!(
            found.lines().filter(|line| line.starts_with("- ")).collect::<Vec<_>>(),
            [format!("- tea of {id}")]
        );
    }
}

#[test]
fn a_pasted_text_is_searched_by_its_first_words() {
    let many = words(&"tea ".repeat(10_000));
    assert_eq!(many.len(), 256);
    assert_eq!(words(&format!("{} tea", "x".repeat(1 << 20))), ["tea"]);
    assert_eq!(words("It's “Kestrel”, naïve_2 — 3.5€!"), ["it", "s", "kestrel", "naïve_2", "—", "3", "5€"]);
}
