//! The metrics, on a conversation for which they are known by hand.

use std::sync::Arc;

use epitome::std::tokens::counter_by_name;
use serde_json::json;

use super::*;
use crate::commands::eval::labelled;
use crate::strategy::Strategies;

/// Twenty messages. The first one and the last one have the evidence.
fn case() -> QuestionedCase {
    let mut messages = vec![json!({"id": "m0", "role": "user", "text": "Hello."})];
    messages.push(json!({"id": "m1", "role": "assistant", "text": "The rare word is zyzzyva."}));
    for number in 2..20 {
        let role = if number % 2 == 0 { "user" } else { "assistant" };
        let text = format!("word number {number} of the filler");
        messages.push(json!({"id": format!("m{number}"), "role": role, "text": text}));
    }
    let file = json!({"messages": messages, "questions": [
        {"text": "Which word?", "answer": "the word Zyzzyva, absent", "evidence": ["m1"]},
        {"text": "Both?", "answer": "19", "evidence": ["m1", "m19"]},
    ]});
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("case.json");
    std::fs::write(&path, file.to_string()).unwrap();
    let labelled = labelled::read(&path).unwrap().unwrap().remove(0);
    QuestionedCase::of(labelled, &*counter_by_name("estimate").unwrap())
}

/// What is shown if these messages stand as they stood, and these texts beside them.
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
        keep: vec![keep.parse().unwrap()],
        lost_max: 3,
        counter: Arc::from(counter_by_name("estimate").unwrap()),
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
            (ORACLE, true),
        ]
    );
    let [truncate, .., oracle] = rows.as_slice() else { panic!("{rows:?}") };
    // The newest messages hold one of three labels: none of the first question, half of the second.
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
fn everything_is_shown_where_everything_fits() {
    for row in &measured("100%").shares[0].rows {
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
