//! Keys of every kind in texts, in JSON, and in JSON in JSON.

use std::env;

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

use super::*;

fn redacted(text: &str) -> String {
    Redactor::default().value(None, text).unwrap_or_else(|| text.to_owned())
}

/// The secrets of the corpus: kind, text, secret.
fn examples() -> Vec<(String, String, String)> {
    let found =
        corpus::shapes().into_iter().filter_map(|shape| Some((shape.kind, shape.text, shape.secret?)));
    found.collect()
}

#[test]
fn what_a_pass_lays_bare_is_found_too() {
    let mut redactor = Redactor::with_own(vec![Regex::new("word").unwrap()]);
    let key = ["sk-", "ant-", &"a1".repeat(30)].concat();
    let done = redactor.value(None, &format!("word{key}")).unwrap();
    assert_eq!(done, "[redacted:listed][redacted:anthropic-key]");
}

#[test]
fn a_text_that_becomes_json_without_its_secrets_is_searched_as_json() {
    let text =
        "{\"password\": \"hu\0nter2\", \"cookie\": [\"&=a1B2c3D4e5F6g7H8i9J0\", 3], \"say\": \"\\u0041\"}";
    let done = redacted(text);
    let marker = "[redacted:assignment]";
    assert_eq!(done, format!(r#"{{"password": "{marker}", "cookie": ["{marker}", 3], "say": "\u0041"}}"#));
    assert_eq!(redacted(&done), done);
    // A literal with a secret that only its escapes had hidden is removed as a whole.
    let done = redacted("{\"password\": \"hu\0nter2\", \"say\": \"so: pass\\u0077ord: hunter22x\"}");
    assert_eq!(done, format!(r#"{{"password": "{marker}", "say": "{marker}"}}"#));
}

#[test]
fn an_escape_before_a_secret_leaves_its_marker_whole() {
    let done = redacted("curl -u a:\u{1b}curl -u a:curl -u b:c");
    assert_eq!(redacted(&done), done);
    assert!(done.contains("\u{1b}[redacted:command-password]"), "{done:?}");
    assert_eq!(
        redacted("\u{1b}[redacted:assignment] \u{1b}[rword"),
        "\u{1b}[redacted:assignment] \u{1b}[rword"
    );
}

#[test]
fn what_is_no_secret_hides_none() {
    assert_eq!(redacted("secret: password: staple"), "secret: password: [redacted:assignment]");
    assert_eq!(redacted("secret=$secret=hunter-2"), "secret=$secret=[redacted:assignment]");
}

#[test]
fn keys_of_json_say_what_their_values_are() {
    let mut redactor = Redactor::default();
    let text = r#"{"password": "hunter2",  "apiKey":"abc def", "n":{"Client_Secret":"q1w2"}, "token":"hello",
        "password":"string","access_token" : "\u0041bcde", "secret": ["four", "five"], "passwordHint": "hunter2"}"#;
    let done = redactor.json(text);
    let expected = text
        .replace(r#""password": "hunter2""#, r#""password": "[redacted:assignment]""#)
        .replace("q1w2", "[redacted:assignment]")
        .replace(r"\u0041bcde", "[redacted:assignment]");
    assert_eq!(done, expected);
    assert_eq!(redactor.found.redacted, BTreeMap::from([("assignment", 3)]));
}

/// A list under the name of a header holds values that are searched for secrets. Under another name it holds plain
/// words.
#[test]
fn keys_of_json_say_what_a_list_of_headers_is() {
    for name in ["cookie", "Set-Cookie", "set-cookie", "Authorization"] {
        let text = format!(
            r#"{{"{name}": ["sid=abcdefgh; Path=/", 3, "b=ijklmnop"], "x": ["sid=abcdefgh"], "{name}": "c=qrstuv",
            "{name}": [["sid=abcdefgh"], {{"note": "sid=abcdefgh"}}], "y": "sid=abcdefgh"}}"#
        );
        let mut redactor = Redactor::default();
        let expected = text
            .replacen("sid=abcdefgh; Path=/", "[redacted:assignment]", 1)
            .replace("b=ijklmnop", "[redacted:assignment]")
            .replace("c=qrstuv", "[redacted:assignment]");
        assert_eq!(redactor.json(&text), expected);
    }
}

#[test]
fn what_cannot_be_searched_is_counted() {
    let blob = "QUJD".repeat(20);
    let long = "aB3+".repeat(300);
    let key = ["sk-", "ant-", &"a1".repeat(30)].concat();
    let text = json!({"encrypted_content": blob, "url": format!("data:image/png;base64,{blob}"), "x": long,
        "signature": key, "data": "short", "content": blob});
    let mut redactor = Redactor::default();
    let done: Value = serde_json::from_str(&redactor.json(&text.to_string())).unwrap();
    let mut expected = text.clone();
    expected["signature"] = json!("[redacted:anthropic-key]");
    assert_eq!(done, expected);
    assert_eq!((redactor.found.not_searched, redactor.found.not_searched_bytes), (3, 80 + 102 + 1_200));
    let said = redactor.found.to_text();
    assert!(
        said.contains("not searched: 3 values that are encrypted, signed or base64 (1,382 bytes)"),
        "{said}"
    );
}

#[test]
fn odd_literals_are_searched_all_the_same() {
    let key = ["gh", "p_", &"a1B2".repeat(10)].concat();
    let mut redactor = Redactor::default();
    let half =
        format!(r#"["\ud83d {key} \ud83d\ude00 \\ud83d", "\ud83d stays", "raw	tab {key}", "cut {key}"#);
    let done = redactor.json(&half);
    let marker = "[redacted:github-token]";
    let first = format!(r#"["{} {marker} "#, '\u{fffd}');
    assert!(done.starts_with(&first) && done.contains(r"\\ud83d"), "{done}");
    assert!(done.contains(r#""\ud83d stays""#) && done.ends_with(&format!("\"cut {marker}")), "{done}");
    assert_eq!(redactor.found.redacted, BTreeMap::from([("github-token", 3)]));
}

/// The cases of a property.
fn cases() -> ProptestConfig {
    let cases = env::var_os("EPITOME_CASES").and_then(|cases| cases.to_str()?.parse().ok());
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases.unwrap_or(96)) }
}

/// A piece of a text, and the secret in it.
fn piece() -> impl Strategy<Value = (String, Option<String>)> {
    let odd = vec![
        "plain words",
        "日本語 👩‍💻",
        "\u{1b}[0m",
        "a\\nb",
        "\"quoted\"",
        "{\"a\": [1]}",
        "password",
        "secret:",
        "sk-",
        "Bearer ",
        "[redacted:openai-key]",
        "[redacted:",
        "\\",
        "=",
        "//u:",
        "eyJ",
        "AKIA",
        "-----BEGIN",
        "0000",
        "listed-word",
    ];
    prop_oneof![
        3 => select(odd).prop_map(|text| (text.to_owned(), None)),
        1 => any::<String>().prop_map(|text| (text, None)),
        3 => select(examples()).prop_map(|(_, text, secret)| (text, Some(secret))),
    ]
}

/// A text and the secrets in it. Line breaks separate the pieces, so that each secret is recognizable to a reader too.
fn text() -> impl Strategy<Value = (String, Vec<String>)> {
    prop::collection::vec(piece(), 0..5).prop_map(|pieces| {
        let secrets = pieces.iter().filter_map(|(_, secret)| secret.clone()).collect();
        let texts: Vec<_> = pieces.into_iter().map(|(text, _)| text).collect();
        (texts.join("\n"), secrets)
    })
}

/// Pieces that run into each other: a removal in one pass may expose text that the next pass finds.
fn jumble() -> impl Strategy<Value = String> {
    let between = select(vec!["", "", " ", "\n", "x", "_", "\""]);
    prop::collection::vec((piece(), between), 0..6)
        .prop_map(|pieces| pieces.into_iter().map(|((text, _), between)| text + between).collect())
}

/// JSON, and the secrets in its texts; some texts are JSON again.
fn tree() -> impl Strategy<Value = (Value, Vec<String>)> {
    let leaf = prop_oneof![
        4 => text().prop_map(|(text, secrets)| (Value::String(text), secrets)),
        1 => any::<i64>().prop_map(|number| (json!(number), Vec::new())),
        1 => Just((Value::Null, Vec::new())),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let keys = select(vec!["content", "text", "password", "api_key", "data", "signature", "a\"b\u{1b}"]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|items| {
                let (items, secrets): (Vec<_>, Vec<_>) = items.into_iter().unzip();
                (Value::Array(items), secrets.concat())
            }),
            prop::collection::vec((keys, inner.clone()), 0..4).prop_map(|members| {
                let (mut object, mut secrets) = (Map::new(), Vec::new());
                for (key, (value, more)) in members {
                    // A map keeps the later of two values under one key: only that value counts.
                    if object.insert(key.to_owned(), value).is_none() {
                        secrets.extend(more);
                    } else {
                        object.remove(key);
                    }
                }
                (Value::Object(object), secrets)
            }),
            inner.prop_map(|(value, secrets)| (Value::String(value.to_string()), secrets)),
        ]
    })
}

/// The tree without its texts; JSON in a text counts as such.
fn shape(value: &Value) -> Value {
    match value {
        Value::String(text) if is_json(text) => json!({"json": shape(&serde_json::from_str(text).unwrap())}),
        Value::String(_) => json!("text"),
        Value::Array(items) => items.iter().map(shape).collect(),
        Value::Object(members) => members.iter().map(|(key, value)| (key.clone(), shape(value))).collect(),
        other => other.clone(),
    }
}

/// The texts of a tree, those within texts too.
fn texts(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::String(text) if is_json(text) => texts(&serde_json::from_str(text).unwrap(), out),
        Value::String(text) => out.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| texts(item, out)),
        Value::Object(members) => members.values().for_each(|member| texts(member, out)),
        _ => {}
    }
}

fn listing() -> Redactor {
    let own =
        ["listed-word", "redacted", "a", r"\d{3}x", r"\b|\z"].map(|pattern| Regex::new(pattern).unwrap());
    Redactor::with_own(own.into())
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn redacting_twice_is_redacting_once(text in jumble(), key in select(vec![None, Some("password"), Some("data")])) {
        for mut redactor in [Redactor::default(), listing()] {
            let once = redactor.value(key, &text).unwrap_or_else(|| text.clone());
            prop_assert_eq!(redactor.value(key, &once), None, "{}", once);
        }
    }

    #[test]
    fn json_keeps_its_shape_and_loses_its_secrets(tree in tree(), pretty in any::<bool>(), chunk in 1_usize..64) {
        let (value, secrets) = tree;
        let source = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
        let mut redactor = Redactor::default();
        let done = redactor.json(&source);
        let after: Value = serde_json::from_str(&done).unwrap();
        prop_assert_eq!(shape(&value), shape(&after));
        let mut left = Vec::new();
        texts(&after, &mut left);
        for secret in &secrets {
            prop_assert!(!left.iter().any(|text| text.contains(secret.as_str())), "{} in {}", secret, done);
        }
        // The result has no text that a pattern matches.
        let mut again = Redactor::default();
        prop_assert_eq!(&again.json(&done), &done);
        prop_assert!(again.found.redacted.is_empty());
        // A text without secrets is unchanged. The result does not depend on the pieces in which the text arrives.
        prop_assert_eq!(redactor.found.redacted.is_empty(), done == source);
        let (mut out, mut pieces) = (Vec::new(), Redactor::default());
        let mut writer = pieces.writer(&mut out);
        source.as_bytes().chunks(chunk).for_each(|piece| writer.write_all(piece).unwrap());
        writer.finish().unwrap();
        prop_assert_eq!(String::from_utf8(out).unwrap(), done);
    }
}
