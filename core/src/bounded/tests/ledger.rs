//! Ledgers in a buffer of fixed size.

use std::collections::BTreeSet;
use std::vec;

use proptest::prelude::{Strategy, prop, prop_assert_eq, prop_oneof, proptest};

use super::*;
use crate::LEDGER_OPENING;
use crate::identifiers::{IdentifierKind, for_each_identifier};

type Large = BoundedHistory<64, 8_192>;

fn ledger(history: &Large, first: u64, last: u64, bytes: usize) -> Option<String> {
    let mut room = vec![0; bytes];
    history.ledger(SeqRange { first: Seq(first), last: Seq(last) }, &mut room).map(String::from)
}

fn words(text: &str) -> Vec<&str> {
    text.strip_prefix(LEDGER_OPENING).unwrap().split_whitespace().collect()
}

fn history(messages: &[SimpleMessage<'_>]) -> Large {
    let mut history = Large::new();
    for message in messages {
        history.push(message, &ClassEstimator).unwrap();
    }
    history
}

#[test]
fn what_people_name_comes_before_what_tools_list_and_the_newest_first() {
    let calls = [ToolCallView::new("a", "read", r#"{"path":"src/call.rs"}"#)];
    let known =
        AttributionView { source: SourceKind::Compaction, ..AttributionView::caller(Authority::Assistant) };
    let history = history(&[
        SimpleMessage::assistant("[Identifiers] all: src/known.rs").with_attribution(known),
        SimpleMessage::user("See src/asked.rs of PROJ-7."),
        SimpleMessage::calls(&calls),
        SimpleMessage::result("a", "src/listed.rs src/call.rs src/shown.rs"),
        SimpleMessage::assistant("It is in src/said.rs, as src/asked.rs is."),
        SimpleMessage::user("And src/later.rs?"),
        SimpleMessage::assistant("No: src/shown.rs."),
    ]);
    let all = ledger(&history, 0, 5, 1_000).unwrap();
    let expected = [
        "src/later.rs",
        "src/asked.rs",
        "PROJ-7",
        "src/said.rs",
        "src/call.rs",
        "src/known.rs",
        "src/listed.rs",
    ];
    assert_eq!(words(&all), expected);
    // A buffer too small for one identifier may be large enough for the next.
    let bytes = LEDGER_OPENING.len() + " src/later.rs PROJ-7".len();
    assert_eq!(words(&ledger(&history, 0, 5, bytes).unwrap()), ["src/later.rs", "PROJ-7"]);
    for bytes in 0..LEDGER_OPENING.len() + " PROJ-7".len() {
        assert_eq!(ledger(&history, 0, 5, bytes), None, "{bytes}");
    }
    // Both messages with the identifier are visible.
    assert_eq!(ledger(&history, 6, 9, 1_000), None);
}

#[test]
fn nothing_to_name_is_no_ledger() {
    let history = history(&[SimpleMessage::user("Is it warm?"), SimpleMessage::assistant("Yes, it is.")]);
    assert_eq!(ledger(&history, 0, 1, 1_000), None);
    assert_eq!(ledger(&history, 5, 9, 1_000), None);
    assert_eq!(ledger(&Large::new(), 0, u64::MAX, 1_000), None);
}

#[test]
fn a_part_of_a_longer_name_is_not_shown() {
    let near = "PROJ-1 valve_1 123 42ms cache_é";
    let beside = "PROJ-12 valve_10 51234 142ms Xvalve_1 valve_1é _123 cache_éa";
    let shown = history(&[SimpleMessage::user(near), SimpleMessage::user(beside)]);
    assert_eq!(words(&ledger(&shown, 0, 0, 1_000).unwrap()), ["PROJ-1", "valve_1", "123", "42ms"]);
    let other = history(&[SimpleMessage::user("(PROJ-1) valve_1: 123. /42ms/"), SimpleMessage::user(near)]);
    assert_eq!(ledger(&other, 1, 1, 1_000), None);
    // The list has the same rule.
    let listed =
        history(&[SimpleMessage::user("valve_1 PROJ-1 123"), SimpleMessage::user("valve_10 PROJ-12 51234")]);
    let expected = ["valve_10", "PROJ-12", "51234", "valve_1", "PROJ-1", "123"];
    assert_eq!(words(&ledger(&listed, 0, 1, 1_000).unwrap()), expected);
    // A name inside a longer path counts as visible. A part of the name of a folder or file does not.
    let paths = ["src/a.rs", "src/b.rs"].map(SimpleMessage::user);
    let [a, b] = paths;
    let longer = history(&[a, b, SimpleMessage::user("lib/src/a.rs.bak lib/mysrc/b.rs src/b.rst")]);
    assert_eq!(words(&ledger(&longer, 0, 1, 1_000).unwrap()), ["src/b.rs"]);
}

#[test]
fn a_word_with_an_escaped_character_is_passed_over() {
    let arguments = r#"{"path":"/data/caf\u00e9/xy.txt","t":"\u6587\u4ef6 a_b","w":"C:\\temp\\new.txt","n":"c_d\nREADME.md","z":"d_e\u"#;
    let calls = [ToolCallView::new("a", "read", arguments)];
    let spoken = history(&[SimpleMessage::calls(&calls), SimpleMessage::result("a", "ok")]);
    let expected = ["a_b", "C:\\\\temp\\\\new.txt", "c_d", "README.md"];
    assert_eq!(words(&ledger(&spoken, 0, 1, 1_000).unwrap()), expected);
    // Call arguments are searched without their escapes.
    let beside = history(&[
        SimpleMessage::user("READ.md nREADME.md README.md c_d /data/caf xy.txt"),
        SimpleMessage::calls(&calls),
        SimpleMessage::result("a", "ok"),
    ]);
    let expected = ["READ.md", "nREADME.md", "/data/caf", "xy.txt"];
    assert_eq!(words(&ledger(&beside, 0, 0, 1_000).unwrap()), expected);
}

/// The next ledger, which replaces the first, lists the identifiers of the first again.
#[test]
fn the_next_ledger_takes_the_list_over() {
    let filler = "word ".repeat(60);
    let mut history = Large::new();
    for round in 0..6_u64 {
        let said = std::format!("{filler} valve_{round}00 {filler}");
        history.push(&SimpleMessage::user(&filler), &ClassEstimator).unwrap();
        history.push(&SimpleMessage::assistant(&said), &ClassEstimator).unwrap();
        history.push(&SimpleMessage::assistant("Done."), &ClassEstimator).unwrap();
        // All messages after the first one and before the newest request.
        let Some(last) = (3 * round).checked_sub(1) else { continue };
        let span = SeqRange { first: Seq(1), last: Seq(last) };
        let mut room = [0; 300];
        let text = history.ledger(span, &mut room).unwrap();
        let listed: BTreeSet<_> = words(text).into_iter().map(String::from).collect();
        let expected: BTreeSet<_> = (0..round).map(|round| std::format!("valve_{round}00")).collect();
        assert_eq!(listed, expected);
        history.summarize(span, text, &ClassEstimator).unwrap();
    }
}

/// A piece of a text: a frequent identifier, or prose.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "src/[ab]{1,2}\\.rs",
        "[a-c]_[a-c]{1,2}",
        "[1-3]{3,4}",
        "東京/[ab]\\.txt",
        "[a-z]{1,5}[.,!]?",
        "\u{1f600}|é|\\\\n\"|https://x\\.org/[ab]{1,2}|C:(\\\\\\\\[ab]{1,2}){1,2}|a_b\\\\([nté]|u00e9)c_d|[a-c]_[a-c][é.-][1-3]{3}",
    ];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.join(" "))
}

#[derive(Debug, Clone)]
enum Said {
    User(String),
    Assistant(String),
    Known(String),
    Call(String, String),
}

fn said() -> impl Strategy<Value = Vec<Said>> {
    let one = prop_oneof![
        text().prop_map(Said::User),
        text().prop_map(Said::Assistant),
        text().prop_map(Said::Known),
        (text(), text()).prop_map(|(arguments, result)| Said::Call(arguments, result)),
    ];
    prop::collection::vec(one, 1..12)
}

/// The texts of each message, by their writers in the order of a ledger.
type Texts = Vec<[Vec<String>; 4]>;

fn filled(said: &[Said]) -> (Large, Texts) {
    let (mut history, mut texts) = (Large::new(), Texts::new());
    let known =
        AttributionView { source: SourceKind::Compaction, ..AttributionView::caller(Authority::Assistant) };
    for (number, one) in said.iter().enumerate() {
        let mut push = |message: &SimpleMessage<'_>, writer: usize, text: &str| {
            history.push(message, &ClassEstimator).unwrap();
            let mut own = <[Vec<String>; 4]>::default();
            own[writer].push(text.into());
            texts.push(own);
        };
        match one {
            Said::User(text) => push(&SimpleMessage::user(text), 0, text),
            Said::Assistant(text) => push(&SimpleMessage::assistant(text), 1, text),
            Said::Known(text) => push(&SimpleMessage::assistant(text).with_attribution(known), 2, text),
            Said::Call(arguments, result) => {
                let id = std::format!("call{number}");
                push(
                    &SimpleMessage::calls(&[ToolCallView::new(&id, "run", arguments)]),
                    1,
                    &lines(arguments),
                );
                push(&SimpleMessage::result(&id, result), 3, result);
            }
        }
    }
    (history, texts)
}

/// The words of the text without escapes, and without words that contain the code of a character.
fn lines(arguments: &str) -> String {
    const BACKSLASH: char = '\u{f8f0}';
    const CODE: char = '\u{f8f1}';
    let parked = arguments.replace("\\\\", &String::from(BACKSLASH)).replace("\\u", &String::from(CODE));
    let mut lines = parked.split('\\');
    let first = String::from(lines.next().unwrap());
    let behind = lines.map(|line| line.chars().skip(1).collect::<String>());
    let lines: Vec<_> = [first].into_iter().chain(behind).collect();
    let lines = lines.join("\n");
    let is_border =
        |c: char| c.is_ascii_whitespace() || c.is_ascii_control() || "\"'`<>()[]{}|,;=*".contains(c);
    let words: Vec<_> = lines.split(is_border).filter(|word| !word.contains(CODE)).collect();
    words.join("\n").replace(BACKSLASH, "\\\\")
}

/// True if the text contains the word, and not only as a part of a longer word.
fn has(text: &str, word: &str) -> bool {
    let is_border =
        |c: Option<char>| c.is_none_or(|c| c.is_ascii() && c != '_' && !c.is_ascii_alphanumeric());
    text.char_indices().map(|(at, _)| text.split_at(at)).any(|(before, rest)| {
        let behind = rest.strip_prefix(word);
        behind.is_some_and(|behind| is_border(before.chars().last()) && is_border(behind.chars().next()))
    })
}

/// The ledger by the rules of its documentation.
fn naively(texts: &Texts, covered: core::ops::Range<usize>, bytes: usize) -> Option<String> {
    let others = texts.iter().enumerate().filter(|(at, _)| !covered.contains(at));
    let shown: Vec<_> = others.flat_map(|(_, texts)| texts.iter().flatten()).collect();
    let (mut list, mut has_word) = (String::from(LEDGER_OPENING), false);
    for (writer, place) in [(0, None), (1, None), (2, None), (3, Some(true)), (3, Some(false))] {
        for message in texts[covered.clone()].iter().rev() {
            for text in &message[writer] {
                for_each_identifier(text, true, &mut |word| {
                    let is_listed = has(&list[LEDGER_OPENING.len()..], word);
                    let is_place = matches!(
                        IdentifierKind::of(word),
                        IdentifierKind::File | IdentifierKind::Address | IdentifierKind::Id
                    );
                    let is_wanted = place.is_none_or(|place| place == is_place);
                    if is_wanted
                        && !shown.iter().any(|text| has(text, word))
                        && !is_listed
                        && list.len().saturating_add(word.len()) < bytes
                    {
                        list = std::format!("{list} {word}");
                        has_word = true;
                    }
                });
            }
        }
    }
    has_word.then_some(list)
}

proptest! {
    #[test]
    #[cfg_attr(miri, ignore = "its generated texts take miri minutes, and show it nothing")]
    fn a_ledger_is_that_of_a_naive_one(said in said(), first in 0..20_usize, count in 1..20_usize, bytes in 80..400_usize) {
        let (history, texts) = filled(&said);
        let first = first.checked_rem(texts.len()).unwrap_or_default();
        let last = first.saturating_add(count).min(texts.len());
        let found = ledger(&history, first as u64, (last as u64).saturating_sub(1), bytes);
        prop_assert_eq!(found, naively(&texts, first..last, bytes));
    }
}
