//! The metrics, on a conversation with values known by hand.

use std::sync::Arc;

use epitome::tokens::counter_by_name;
use serde_json::{Value, json};

use super::*;
use crate::commands::eval::labelled;
use crate::commands::eval::words::text_of;
use crate::strategy::Strategies;

/// Twenty messages; the second one and the last one hold the evidence.
fn case() -> QuestionedCase {
    case_with(&json!([
        {"text": "Which word?", "answer": "the word Zyzzyva, absent", "evidence": ["m1"]},
        {"text": "Both?", "answer": "19", "evidence": ["m1", "m19"]},
    ]))
}

/// A case of the usual messages with these questions.
fn case_with(questions: &Value) -> QuestionedCase {
    let mut messages = vec![json!({"id": "m0", "role": "user", "text": "Hello."})];
    messages.push(json!({"id": "m1", "role": "assistant", "text": "The rare word is zyzzyva."}));
    for number in 2..20 {
        let role = if number % 2 == 0 { "user" } else { "assistant" };
        let text = format!("word number {number} of the filler");
        messages.push(json!({"id": format!("m{number}"), "role": role, "text": text}));
    }
    let file = json!({"messages": messages, "questions": questions});
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("case.json");
    std::fs::write(&path, file.to_string()).unwrap();
    let labelled = labelled::read(&path).unwrap().unwrap().remove(0);
    QuestionedCase::of(labelled, &*counter_by_name("estimate").unwrap())
}

/// A view with these messages unchanged, and with these new texts.
fn shown(whole: &[u32], new: &[&str]) -> Shown {
    Shown {
        whole: whole.iter().copied().collect(),
        new: new.iter().map(|text| (*text).to_owned()).collect(),
        ..Shown::default()
    }
}

fn retention(question: usize, shown: &Shown) -> (Option<f64>, Option<f64>) {
    let case = case();
    let found = case.retention(&case.questions[question], shown, &new_terms(shown));
    (found.evidence, found.answer_terms)
}

#[test]
fn evidence_is_shown_whole_or_word_for_word() {
    assert_eq!(retention(0, &shown(&[1], &[])).0, Some(1.0));
    assert_eq!(retention(0, &shown(&[0, 2], &[])).0, Some(0.0));
    assert_eq!(retention(1, &shown(&[19], &[])).0, Some(0.5));
    assert_eq!(retention(0, &shown(&[], &["He said: The rare word is zyzzyva. Then .."])).0, Some(1.0));
    assert_eq!(retention(0, &shown(&[], &["The rare word is .."])).0, Some(0.0));
}

#[test]
fn answer_terms_weigh_by_their_rarity_and_must_stand_in_the_evidence() {
    // `the` and `word` stand in 19 messages of 20, `zyzzyva` in one; `absent` stands in none, and does not count.
    let (common, rare) = ((1.0_f64 + 20.0 / 19.0).ln(), 21.0_f64.ln());
    let expected = 2.0 * common / (2.0 * common + rare);
    let found = retention(0, &shown(&[5], &[])).1.unwrap();
    assert!((found - expected).abs() < 1e-9, "{found} {expected}");
    assert_eq!(retention(0, &shown(&[], &["The ZYZZYVA word"])).1, Some(1.0));
    // A part of a word is not the word.
    assert_eq!(retention(0, &shown(&[], &["zyzzyvas"])).1, Some(0.0));
    assert_eq!(retention(1, &shown(&[], &["19"])).1, Some(1.0));
}

fn measured(keep: &str) -> Evidence {
    let measure = Measure {
        strategies: vec![Strategies::parse("truncate").unwrap()],
        commands: Vec::new(),
        keep: vec![keep.parse().unwrap()],
        lost_max: 3,
        counter: Arc::from(counter_by_name("estimate").unwrap()),
        pricing: None,
    };
    Evidence::of(&[case()], &measure).unwrap().unwrap()
}

#[test]
fn blind_and_aware_are_measured_beside_floors_and_a_ceiling() {
    let evidence = measured("40%");
    assert_eq!((evidence.conversations, evidence.questions, evidence.unlabelled), (1, 2, 0));
    let rows = &evidence.shares[0].rows;
    let names: Vec<_> = rows.iter().map(|row| (&*row.strategy, row.baseline)).collect();
    assert_eq!(
        names,
        [
            ("truncate", false),
            ("(newest)", true),
            ("(newest that fit)", true),
            ("(random)", true),
            ("(search: request)", true),
            (ORACLE, true),
        ]
    );
    let [truncate, .., oracle] = rows.as_slice() else { panic!("{rows:?}") };
    // The newest messages hold one of the three labelled messages: none of the first question, half of the second.
    assert_eq!((truncate.blind.evidence, truncate.aware.evidence), (Some(25.0), Some(25.0)));
    assert_eq!((oracle.blind.evidence, oracle.aware.evidence), (Some(100.0), Some(100.0)));
    assert_eq!((truncate.recovered, oracle.recovered), (Some(100.0), None));
    assert!(truncate.blind.tokens_left.unwrap() <= 40.0, "{:?}", truncate.blind);
    let lost = &truncate.lost;
    assert_eq!(lost.len(), 1, "each message once: {lost:?}");
    assert_eq!((&*lost[0].evidence, &*lost[0].question), ("m1", "Which word?"));
    assert!(oracle.lost.is_empty());
}

#[test]
fn a_question_that_is_known_is_the_current_request() {
    let case = case();
    let (blind, aware) = (case.blind().unwrap(), case.aware(&case.questions[1]).unwrap());
    assert_eq!((blind.messages.len(), aware.messages.len()), (20, 21));
    let request = aware.messages[20];
    assert_eq!((request.role(), text_of(request).trim_end()), (Role::User, "Both?"));
}

#[test]
fn a_search_finds_what_is_hidden_among_the_best_ten() {
    let case = case();
    let found = |question: usize, shown: &Shown| case.found(&case.questions[question], shown);
    // All messages except two contain the word of the question. The evidence of the first question is the shortest text
    // among them, so the search finds it.
    assert_eq!(found(0, &shown(&[], &[])), Some(1.0));
    assert_eq!(found(0, &shown(&[1], &[])), None);
    // No message contains `Both`.
    assert_eq!((found(1, &shown(&[], &[])), found(1, &shown(&[1], &[]))), (Some(0.0), Some(0.0)));
    // The messages 2 to 19 are alike, and the search finds the newest ten of them first. It finds the oldest one as
    // soon as eight of them are shown.
    let alike = case_with(&json!([{"text": "Number?", "evidence": ["m2"]}]));
    assert_eq!(alike.found(&alike.questions[0], &shown(&[], &[])), Some(0.0));
    assert_eq!(alike.found(&alike.questions[0], &shown(&[12, 13, 14, 15, 16, 17, 18, 19], &[])), Some(1.0));
    // A message that is shown only in part counts as hidden.
    assert_eq!(found(0, &shown(&[], &["The rare word"])), Some(1.0));
}

#[test]
fn a_search_for_the_request_knows_it_only_where_it_is_the_current_one() {
    let evidence = measured("40%");
    let row = &evidence.shares[0].rows[4];
    assert_eq!((&*row.strategy, row.blind.evidence, row.blind.missed), ("(search: request)", None, 0));
    // `Which word?` is similar to the message with the answer, and `Both?` to no message.
    assert_eq!((row.aware.evidence, row.aware.missed), (Some(50.0), 0));
}

#[test]
fn everything_is_shown_where_everything_fits() {
    let evidence = measured("100%");
    for row in evidence.shares[0].rows.iter().filter(|row| row.strategy != "(search: request)") {
        for retained in [&row.blind, &row.aware] {
            assert_eq!((retained.evidence, retained.missed), (Some(100.0), 0), "{row:?}");
        }
        assert_eq!((row.blind.answer_terms, row.recovered), (Some(100.0), None), "{row:?}");
    }
}

#[test]
fn what_cannot_be_met_is_left_out() {
    let share = &measured("1%").shares[0];
    assert_eq!((share.left_out, share.left_out_aware), (1, 2));
    assert!(share.rows.iter().all(|row| row.blind.evidence.is_none() && row.aware.evidence.is_none()));
}
