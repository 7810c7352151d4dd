use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::Message;

fn terms(text: &str) -> Vec<u64> {
    let mut terms = Vec::new();
    for_each_term(text, &mut |term| terms.push(term));
    terms
}

#[test]
fn forms_of_a_word_are_one_term_and_numbers_are_whole() {
    assert_eq!(terms("Invoices, invoice INVOICED"), terms("invoice invoice invoice"));
    assert_ne!(terms("123456"), terms("123457"));
    assert_ne!(terms("PROJ123456"), terms("PROJ123457"));
    assert_ne!(terms("cat"), terms("cab"));
    assert_eq!(terms("use_cache(x)"), terms("use cache x"));
    assert_eq!(terms("Überweisung ΣΑΣ"), terms("überweisungen σασ"));
    assert_eq!(terms(" .,;\n").len(), 0);
}

#[test]
fn pairs_of_characters_are_terms_where_words_have_no_blanks_between() {
    assert_eq!(terms("計數器").len(), 2);
    assert_eq!(terms("計數器"), [terms("計數"), terms("數器")].concat());
    assert_eq!(terms("我").len(), 1);
    assert_eq!(terms("mix計數x"), [terms("mix"), terms("計數"), terms("x")].concat());
    let mut index = SearchIndex::new();
    ["今天天气很好", "发票在十四号到期", "狗也睡了"].iter().for_each(|text| index.add(text));
    assert_eq!(index.nearest("发票什么时候到期", 1, |_| true), [1]);
}

#[test]
fn the_nearest_come_first_and_none_without_a_term() {
    let mut index = SearchIndex::new();
    for text in ["the invoice is due", "the cat", "invoice, invoice: due on the 14th", "", "the the the"] {
        index.add(text);
    }
    assert_eq!(index.nearest("is the invoice due?", 2, |_| true), [0, 2]);
    assert_eq!(index.nearest("invoices", 9, |_| true), [2, 0]);
    assert!(index.nearest("dog", 9, |_| true).is_empty() && index.nearest("", 9, |_| true).is_empty());
    assert_eq!(index.nearest("invoices", 9, |text| text != 2), [0]);
    assert_eq!(index.scores_like(0), index.scores("the invoice is due"));
    assert_eq!((index.weights().len(), index.weights()[3]), (5, 0));
    assert!(index.scores_like(9).iter().all(|score| *score == 0));
    assert!(SearchIndex::new().is_empty() && SearchIndex::new().scores("x").is_empty() && index.len() == 5);
}

/// The formulas in their direct form, over sets of words.
struct Twin(Vec<Vec<String>>);

impl Twin {
    fn of(texts: &[Vec<String>]) -> Self {
        Self(texts.to_vec())
    }

    fn with(&self, term: &str) -> f64 {
        self.0.iter().filter(|text| text.iter().any(|own| own == term)).count() as f64
    }

    fn weight(&self, text: usize) -> f64 {
        let terms: BTreeSet<&String> = self.0[text].iter().collect();
        terms.iter().map(|term| (1.0 + self.0.len() as f64 / self.with(term)).log2()).sum()
    }

    fn score(&self, text: usize, query: &[String]) -> f64 {
        let n = self.0.len() as f64;
        let average = self.0.iter().map(Vec::len).sum::<usize>() as f64 / n;
        let terms: BTreeSet<&String> = query.iter().collect();
        let mut counts = BTreeMap::<&String, f64>::new();
        self.0[text].iter().for_each(|term| *counts.entry(term).or_default() += 1.0);
        let part = |term: &&String| {
            let Some(count) = counts.get(*term) else { return 0.0 };
            let with = self.with(term);
            let rarity = (1.0 + (n - with + 0.5) / (with + 0.5)).log2();
            let below = count + 1.2 * (0.25 + 0.75 * self.0[text].len() as f64 / average);
            rarity * count * 2.2 / below
        };
        terms.iter().map(part).sum()
    }
}

fn text() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[a-d]{1,2}|[0-9]{1,2}", 0..12)
}

proptest! {
    #[test]
    fn it_agrees_with_the_formulas(texts in prop::collection::vec(text(), 1..12), query in text()) {
        let mut index = SearchIndex::new();
        texts.iter().for_each(|text| index.add(&text.join(" ")));
        let twin = Twin::of(&texts);
        let (scores, weights) = (index.scores(&query.join(", ")), index.weights());
        prop_assert_eq!((scores.len(), weights.len()), (texts.len(), texts.len()));
        for (at, score) in scores.iter().enumerate() {
            let [own, expected] = [*score as f64 / 65_536.0, twin.score(at, &query)];
            prop_assert!((own - expected).abs() < 0.01, "text {}: {} not {}", at, own, expected);
            let [own, expected] = [weights[at] as f64 / 65_536.0, twin.weight(at)];
            prop_assert!((own - expected).abs() < 0.01, "weight of {}: {} not {}", at, own, expected);
            prop_assert_eq!(index.scores_like(at), index.scores(&texts[at].join(" ")));
        }
    }

    #[test]
    fn a_search_finds_what_an_index_finds(texts in prop::collection::vec(text(), 0..12), query in text(), count in 0..6_usize) {
        let (mut index, mut search) = (SearchIndex::new(), Search::new(&query.join(" ")));
        for text in &texts {
            index.add(&text.join(" "));
            let has_a_term = text.iter().any(|word| query.contains(word));
            prop_assert_eq!(search.add(&text.join("-")), has_a_term);
        }
        let scores = index.scores(&query.join(" "));
        let nearest = index.nearest(&query.join(" "), count, |_| true);
        let expected: Vec<_> = nearest.into_iter().map(|text| (scores[text], text as u64)).collect();
        let found: Vec<_> = search.nearest(count).into_iter().map(|hit| (hit.score, hit.text)).collect();
        prop_assert_eq!(found, expected);
        prop_assert_eq!((search.len(), search.is_blank()), (texts.len() as u64, query.is_empty()));
    }

    #[test]
    fn any_text_can_be_added(texts in prop::collection::vec("\\PC{0,40}", 0..6), query in "\\PC{0,20}") {
        let mut index = SearchIndex::new();
        texts.iter().for_each(|text| index.add(text));
        prop_assert_eq!(index.scores(&query).len(), index.len());
    }
}

#[test]
fn a_long_message_is_as_near_as_its_nearest_piece_and_is_found_once() {
    let filler = "nothing of it. ".repeat(200);
    let mut search = MessageSearch::new("port");
    search.add(1, &Message::user("A port of some sort, a port."));
    search.add(2, &Message::user(format!("{filler}port port port port{filler}")));
    search.add(3, &Message::system("port"));
    search.add(4, &Message::user("Nothing."));
    assert_eq!((search.nearest(9), search.messages()), (vec![1, 2], 3));
    assert_eq!(search.nearest(1), [1]);
}
