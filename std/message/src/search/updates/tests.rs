use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::{ConversationIndex, SearchIndex, for_each_term};
use super::*;

fn updates(texts: &[&str]) -> Vec<(usize, usize)> {
    let mut index = UpdateIndex::new();
    texts.iter().for_each(|text| index.add(text));
    index.updates(|_| true).into_iter().map(|update| (update.older, update.newer)).collect()
}

#[test]
fn another_value_of_the_same_thing_is_an_update() {
    for (older, newer) in [
        ("The proxy listens on port 8080.", "The proxy listens on port 9090 from today on."),
        ("Ada's birthday is in April.", "Sorry, Ada's birthday is in June."),
        ("Der Vertrag endet im März.", "Der Vertrag endet doch erst im Juli."),
        ("发票在十四号到期。", "发票在二十号到期。"),
        ("Срок сдачи отчёта за март пятница.", "Срок сдачи отчёта за март понедельник."),
    ] {
        let long = format!("Many other things are said here! {newer} And behind it.");
        let texts =
            ["start", older, "Well, go on then.", "a b c d e f", "Many thanks to you all.", &long, "Good."];
        assert_eq!(updates(&texts), [(1, 5)], "{older}");
        // A repeated older value is the newest one: its first place is not out of date, and its last place updates the
        // other value.
        assert_eq!(updates(&[older, "a b c d", newer, "e f g h i", older]), [(2, 4)], "{older}");
    }
}

#[test]
fn what_says_nothing_else_is_no_update() {
    let fact = "The proxy listens on port 8080.";
    for later in [
        "Which port is it that the proxy listens on?",
        "The proxy listens on port 8080!",
        "On port 8080, the proxy listens.",
        "The cat sleeps on the sofa today.",
        "Listens on 8080.",
        "",
    ] {
        assert_eq!(updates(&[fact, "Well, go on then.", later, "a b c d e f"]), [], "{later}");
    }
    // Both values stand in one message, and are shown together.
    assert_eq!(updates(&["The proxy listens on port 8080. The proxy listens on port 9090.", "a b c d"]), []);
}

#[test]
fn only_what_may_update_does() {
    let mut index = UpdateIndex::new();
    for port in [8080, 9090, 7070] {
        index.add(&format!("The proxy listens on port {port}."));
    }
    let newest = |may: &dyn Fn(usize) -> bool| {
        index.updates(may).iter().map(|update| update.newer).collect::<Vec<_>>()
    };
    assert_eq!(newest(&|_| true), [2, 2]);
    assert_eq!(newest(&|text| text < 2), [1]);
    assert_eq!(newest(&|_| false), [] as [usize; 0]);
}

/// The rule in its direct form: compares each sentence with each other sentence.
fn naive(texts: &[Vec<String>], may_update: impl Fn(usize) -> bool) -> BTreeSet<Update> {
    let mut sentences: Vec<(usize, bool, BTreeSet<u64>)> = Vec::new();
    for (text, sentence) in
        texts.iter().enumerate().flat_map(|(text, own)| own.iter().map(move |own| (text, own)))
    {
        let mut terms = BTreeSet::new();
        for_each_term(sentence, &mut |term| {
            terms.insert(term);
        });
        if (TERMS_MIN..=TERMS_MAX).contains(&terms.len()) {
            sentences.push((text, sentence.ends_with('?'), terms));
        }
    }
    let count = sentences.len() as u64;
    let with = |term: &u64| sentences.iter().filter(|(_, _, own)| own.contains(term)).count() as u64;
    let weight = |terms: &BTreeSet<u64>| -> u64 {
        terms.iter().map(|term| log2(count + with(term)) - log2(with(term))).sum()
    };
    let mut updates = BTreeSet::new();
    for (at, (older, _, one)) in sentences.iter().enumerate() {
        let newest = sentences.iter().skip(at + 1).rev().find(|(text, is_question, other)| {
            let shared: BTreeSet<u64> = one & other;
            !is_question
                && may_update(*text)
                && shared.iter().filter(|term| with(term) <= u64::from(SENTENCES_MAX)).count() >= RARE_MIN
                && 100 * weight(&shared) >= SHARED_PERCENT_MIN * weight(one).min(weight(other))
                && weight(&shared) >= log2(count) * TIMES_ONE_OF_ALL
        });
        if let Some((newer, ..)) = newest.filter(|(newer, _, other)| newer > older && !other.is_subset(one)) {
            updates.insert(Update { older: *older, newer: *newer });
        }
    }
    updates
}

/// Texts of sentences that often share words.
fn texts() -> impl Strategy<Value = Vec<Vec<String>>> {
    let word = prop_oneof![
        6 => (0_u32..40).prop_map(|word| format!("w{word}")),
        1 => Just("the".to_owned()),
        1 => Just("发票到期".to_owned()),
    ];
    // Some have more terms than a sentence may have, and repeat a few of them.
    let many = (60_usize..70, 0_usize..3)
        .prop_map(|(count, again)| (0..count).chain(0..again).map(|word| format!("w{word}")).collect());
    let words = prop_oneof![20 => prop::collection::vec(word, 1..9), 1 => many];
    let sentence =
        (words, prop_oneof![4 => Just("."), 1 => Just("?")]).prop_map(|(words, end)| words.join(" ") + end);
    prop::collection::vec(prop::collection::vec(sentence, 0..4), 0..14)
}

proptest! {
    #[test]
    fn it_finds_what_the_rule_says(texts in texts(), silent in 0_usize..14) {
        let mut index = UpdateIndex::new();
        texts.iter().for_each(|text| index.add(&text.join(" ")));
        let found = index.updates(|text| text != silent);
        prop_assert_eq!(found, naive(&texts, |text| text != silent).into_iter().collect::<Vec<_>>());
    }

    /// One index gives the same results as the two that it replaces. The messages have lines between their texts that
    /// are no text.
    #[test]
    fn one_pass_for_both_says_what_both_say(
        messages in prop::collection::vec((texts(), "[w0-9 .]{0,20}"), 0..6), silent in 0_usize..14, asked in 0_usize..6,
    ) {
        let (mut both, mut search, mut updates) = (ConversationIndex::new(), SearchIndex::new(), UpdateIndex::new());
        for (texts, beside) in &messages {
            let (mut message, mut ranges) = (String::new(), Vec::new());
            for text in texts {
                let text = text.join(" ");
                updates.add(&text);
                message.extend([beside, "\n"]);
                ranges.push(message.len()..message.len() + text.len());
                message.extend([&text, "\n"]);
            }
            message.push_str(beside);
            search.add(&message);
            both.add(&message, &ranges);
        }
        prop_assert_eq!(both.weights(), search.weights());
        prop_assert_eq!(both.scores_like(asked), search.scores_like(asked));
        prop_assert_eq!(both.updates(|text| text != silent), updates.updates(|text| text != silent));
    }
}
