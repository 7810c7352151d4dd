//! The corpus: findings, and texts that are none with the reason. Tests check that the documentation agrees with it,
//! and the cost of the search.

use std::collections::BTreeSet;

use super::*;

/// A row of the corpus.
#[derive(Debug)]
pub(super) struct Shape {
    /// `-` if the text must not be found.
    pub(super) kind: String,
    pub(super) text: String,
    pub(super) secret: Option<String>,
}

pub(super) fn shapes() -> Vec<Shape> {
    let rows = include_str!("corpus.txt").lines().filter(|row| !row.is_empty() && !row.starts_with('#'));
    rows.map(shape).collect()
}

fn shape(row: &str) -> Shape {
    let (kind, text) = row.split_once(" | ").unwrap();
    let text = match kind {
        // A text that must not be found needs a reason.
        "-" => text.rsplit_once(" | ").unwrap().0,
        _ => text,
    };
    let text = made_up(text);
    let secret = text.split_once('«').map(|(_, rest)| rest.split_once('»').unwrap().0.to_owned());
    assert_eq!(secret.is_none(), kind == "-", "{row}");
    Shape { kind: kind.to_owned(), text: text.replace(['«', '»'], ""), secret }
}

/// The text with its braces and backslashes resolved.
fn made_up(text: &str) -> String {
    let made = Regex::new(r"\{(mix|low|hex|up|let|num):(\d+)\}|\\u\{([0-9a-f]+)\}|\\([nrte\\])").unwrap();
    let replaced = made.replace_all(text, |found: &regex::Captures<'_>| {
        if let Some(code) = found.get(3) {
            return char::from_u32(u32::from_str_radix(code.as_str(), 16).unwrap()).unwrap().to_string();
        }
        if let Some(escape) = found.get(4) {
            let one = match escape.as_str() {
                "n" => "\n",
                "r" => "\r",
                "t" => "\t",
                "e" => "\u{1b}",
                other => other,
            };
            return one.to_owned();
        }
        let alphabet = match &found[1] {
            "mix" => "a1B2c3D4e5F6g7H8i9J0kLmN",
            "low" => "a1b2c3d4e5",
            "hex" => "0a1b2c3d4e5f6789",
            "up" => "ABCDEFGHIJ234567",
            "let" => "aBcDeFgHiJkLmNoPqRsTuVwXyZ",
            _ => "1234567890",
        };
        alphabet.chars().cycle().take(found[2].parse().unwrap()).collect()
    });
    replaced.into_owned()
}

#[test]
fn every_shape_of_the_corpus_is_found_or_let_pass_as_it_says() {
    let mut wrong = Vec::new();
    for Shape { kind, text, secret } in shapes() {
        let mut redactor = Redactor::default();
        let done = redactor.value(None, &text);
        let is_right = match (&secret, &done) {
            (None, done) => done.is_none(),
            (Some(secret), Some(done)) if kind == "aws-secret-key" => !done.contains(secret),
            (Some(secret), Some(done)) => *done == text.replace(secret, &format!("[redacted:{kind}]")),
            (Some(_), None) => false,
        };
        if !is_right {
            wrong.push(format!("{kind}: {text:?} became {done:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(shapes().len() >= 170);
}

#[test]
fn every_kind_is_in_the_tables_the_corpus_and_the_documentation() {
    assert_eq!(table::KEYS.len(), table::ROWS.len(), "a pattern is none");
    assert_eq!(context::CONTEXTS.len(), context::ROWS.len(), "a pattern is none");
    assert!(table::ROWS.len().max(context::ROWS.len()) <= 128, "a rule has no bit");
    let kinds: BTreeSet<_> = table::ROWS.iter().chain(context::ROWS).map(|row| row.kind.to_owned()).collect();
    let found: BTreeSet<_> =
        shapes().into_iter().map(|shape| shape.kind).filter(|kind| kind != "-").collect();
    assert_eq!(found, kinds);
    let documentation = include_str!("../../../docs/program.md");
    let (_, list) = documentation.split_once("The kinds are ").unwrap();
    let (list, _) = list.split_once("\n\n").unwrap();
    let promised: BTreeSet<_> = list.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    assert_eq!(promised, kinds);
}

/// The work grows linearly: each further part of a text is no more work than the one before, for texts of any form.
#[test]
fn the_work_grows_with_the_length() {
    let signs = table::ROWS.iter().chain(context::ROWS).flat_map(|row| row.signs.iter().take(2));
    let mut pieces: BTreeSet<String> =
        signs.map(|sign| format!("{sign} {sign}aaaaaaaaaaaaaaaaaaaaaaaa")).collect();
    pieces.extend(
        [
            "sk- ",
            "eyJ.",
            "token=",
            "secret=$",
            "secret:a.",
            "password: abcd.",
            "x://u:",
            "a.b.c.d.",
            "key=",
            "token=token=",
            "api_key=",
            "password=password:",
            "<input value=\"aaaa\" ",
            "cookie\":\"a=",
            "identified by ",
            "sk-a\r",
            "pwd=a;",
            "psk=\"",
            ".",
            "=",
            "a.b=c.",
            "AAAA",
            "auth.token.",
            "https://a:b:",
            "--token ",
        ]
        .map(str::to_owned),
    );
    for piece in pieces {
        let work = |parts: usize| {
            let mut redactor = Redactor::default();
            redactor.value(None, &format!("é {}", piece.repeat(parts * PART_BYTES / piece.len())));
            redactor.work
        };
        let (once, twice, thrice) = (work(1), work(2), work(3));
        let (second, third) = (twice.saturating_sub(once), thrice.saturating_sub(twice));
        assert!(third <= second + second / 4 + SLACK_BYTES, "{piece:?}: {once} bytes, {twice}, {thrice}");
    }
}

/// Size of a part: more than a rule reads at once.
const PART_BYTES: usize = 5_000;
/// Tolerance for pieces that do not fill the parts evenly.
const SLACK_BYTES: u64 = 50_000;
