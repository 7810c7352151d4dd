//! Verdicts on parts and spans of groups. The results of a draft are compared with the naive twin, and the edits of a
//! filled plan with a count from scratch.

use std::collections::BTreeSet;

use epitome_core::{Cell, Placeholders, PlannedEdit, Refusal, Replacement, StandIn, StandIns, Tokens};
use epitome_tests::cases::{self, Census, NASTY};
use epitome_tests::generate::{Scale, conversation, scaled_conversation, seeded};
use epitome_tests::live;
use epitome_tests::message::Message;
use epitome_tests::naive::{Attempt, Naive, NaiveDraft};
use epitome_tests::script::{Figures, Script, attempts, compare, count, planned};
use proptest::prelude::*;

/// Least number of each result of a draft, in a thousand cases: a third of the number that was seen, or less. Each
/// refusal is a rule, so that these minimums detect a missing rule.
const SAID: &[(&str, u64)] = &[
    ("an edited group goes", 45),
    ("clamped", 70),
    ("current_turn", 8),
    ("dropped", 1_000),
    ("edited", 500),
    ("elided", 440),
    ("instructions", 250),
    ("newest_step", 450),
    ("no_ends", 500),
    ("no_room", 2),
    ("not_smaller", 800),
    ("only_content", 100),
    ("no_group", 20),
    ("only_summaries", 30),
    ("protected", 3_000),
    ("replaced", 400),
    ("recorded for hidden groups", 55),
    ("recorded for shown groups", 130),
    ("replaced a span", 120),
    ("shortened further", 30),
    ("summary_beside", 35),
    ("cases with uncounted", 150),
];

#[test]
fn a_draft_says_what_its_twin_says() {
    let minimums = [NASTY, SAID].concat();
    let script = || proptest::collection::vec(any::<Figures>(), 1..60);
    // Only groups of unknown size are refused as uncounted, and then many at once. Therefore each case also has a
    // conversation of huge messages.
    let huge = scaled_conversation(50, Just(Scale::Huge));
    let both = ((conversation(50), script()), (huge, script()));
    cases::check("verdicts", both, &minimums, |(mixed, huge), census| {
        let uncounted = [says_what_its_twin_says(&mixed, census)?, says_what_its_twin_says(&huge, census)?];
        census.count("cases with uncounted", uncounted.contains(&true));
        Ok(())
    });
}

/// Compares a draft with its twin. Returns whether an attempt was refused as uncounted.
fn says_what_its_twin_says(
    (messages, figures): &(Vec<Message>, Vec<Figures>),
    census: &Census,
) -> Result<bool, TestCaseError> {
    let (mut uncounted, mut shortened) = (false, BTreeSet::new());
    census.conversation(messages);
    let compared = compare(messages, figures, &mut |attempt, said, before| match (said, attempt) {
        (Err(Refusal::Uncounted), _) => uncounted = true,
        (Err(refusal), _) => census.count(refusal.as_str(), true),
        (Ok(()), Attempt::Elide(part, _)) => {
            census.count("elided", true);
            census.count("shortened further", !shortened.insert(part));
        }
        (Ok(()), Attempt::Clamp(part, ..)) => {
            census.count("clamped", true);
            census.count("shortened further", !shortened.insert(part));
        }
        (Ok(()), Attempt::Replace(first, last, _)) => {
            census.count("replaced a span", true);
            census.count("an edited group goes", before[first..=last].contains('E'));
        }
        (Ok(()), Attempt::Record(first, last, _)) => {
            census.count("recorded for hidden groups", before[first..=last].contains('D'));
            census.count("recorded for shown groups", !before[first..=last].contains('D'));
        }
        (Ok(()), Attempt::Drop(group)) => {
            census.count("an edited group goes", before[group..=group].contains('E'));
        }
    });
    compared.map_err(TestCaseError::fail)?;
    Ok(uncounted)
}

/// Two new summaries become one if the groups between them are dropped.
#[test]
fn summaries_that_end_up_side_by_side_are_one() {
    // The first figure decides the attempt: 0 drops, 1 elides, 6 replaces, 7 records.
    let what = prop_oneof![6 => Just(0_u8), 1 => Just(1_u8), 3 => Just(6_u8), 1 => Just(7_u8)];
    let script = proptest::collection::vec((what, any::<u8>(), 0..3_u8, 0..8_u16), 30..120);
    cases::check("summaries joined", (conversation(50), script), JOINED, |(messages, figures), census| {
        let compared = compare(&messages, &figures, &mut |_, _, _| {});
        prop_assert!(compared.is_ok(), "{}", compared.unwrap_err());
        census.count("joined", compared == Ok(true));
        Ok(())
    });
}

/// Least number in a thousand cases: a third of the number that was seen.
const JOINED: &[(&str, u64)] = &[("joined", 27)];

type Mutant = fn(&mut Vec<PlannedEdit<'_, '_>>);

/// Faulty stores, which write other edits than the plan has. Each must be caught.
const MUTANTS: &[(&str, Mutant)] = &[
    ("hides less", |edits| remove(edits, |edit| matches!(edit, PlannedEdit::Hide(_)))),
    ("hides twice", |edits| {
        let hide = edits.iter().find(|edit| matches!(edit, PlannedEdit::Hide(_))).cloned();
        edits.extend(hide);
    }),
    ("forgets a part", |edits| remove(edits, |edit| matches!(edit, PlannedEdit::Part(_)))),
    ("forgets a summary", |edits| remove(edits, |edit| matches!(edit, PlannedEdit::Summary(_)))),
    ("puts a summary elsewhere", |edits| {
        for edit in edits {
            if let PlannedEdit::Summary(summary) = edit {
                summary.position += 1;
            }
        }
    }),
    ("writes a larger note", |edits| {
        for edit in edits {
            if let PlannedEdit::Part(part) = edit {
                part.stand_in = Some(StandIn::new("[-]", Tokens(10_000)));
            }
        }
    }),
];

fn remove(edits: &mut Vec<PlannedEdit<'_, '_>>, which: impl Fn(&PlannedEdit<'_, '_>) -> bool) {
    if let Some(at) = edits.iter().position(which) {
        edits.remove(at);
    }
}

#[test]
fn every_mutant_of_the_edits_is_caught() {
    let mut caught = vec![0_u32; MUTANTS.len()];
    for seed in 1..60_u64 {
        let messages = seeded(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15), 40, Scale::Small);
        let naive = Naive::new(&messages);
        let mut twin = NaiveDraft::new(&naive);
        let figures: Vec<Figures> =
            (0..40_u8).map(|n| (n, n.wrapping_mul(37), n.wrapping_mul(11), 9)).collect();
        let attempts = attempts(&figures, &twin);
        let index = live::index_of(&messages).0;
        let view = index.view();
        let script = Script::new(&attempts);
        let (mut cells, mut room) = (vec![Cell::default(); view.cell_count()], [Replacement::default(); 3]);
        let Some(plan) = planned(view, &script, &mut cells, &mut room) else { continue };
        for attempt in &attempts {
            let _ = twin.attempt(*attempt);
        }
        let note = StandIn::new("[-]", Tokens(0));
        let notes =
            Placeholders::new().with_tool_result(note).with_tool_input(note).with_media(note).with_text(note);
        let summaries: Vec<_> = plan.summaries().map(|_| StandIn::new("S.", Tokens(1))).collect();
        let clamps: Vec<_> = plan.clamps().map(|_| StandIn::new("h..t", Tokens(1))).collect();
        let ready = plan.fill(StandIns::new(notes).with_summaries(&summaries).with_clamps(&clamps));
        // A summary with an allowance of zero tokens cannot be filled.
        let Ok(ready) = ready else { continue };
        let edits: Vec<PlannedEdit<'_, '_>> = ready.edits().collect();
        assert_eq!(count(&edits, &messages, &twin), Ok(ready.tokens_after()));
        for ((_, mutant), caught) in MUTANTS.iter().zip(&mut caught) {
            let mut mutated = edits.clone();
            mutant(&mut mutated);
            *caught += u32::from(count(&mutated, &messages, &twin) != Ok(ready.tokens_after()));
        }
    }
    for ((name, _), caught) in MUTANTS.iter().zip(caught) {
        assert!(caught >= 3, "{name}: {caught}");
    }
}

/// The rules of drafts. A twin without one of them gives other results. Therefore a draft without it would be noticed.
const RULES: &[Refusal] = &[
    Refusal::Protected,
    Refusal::NewestStep,
    Refusal::Dropped,
    Refusal::Replaced,
    Refusal::Edited,
    Refusal::NotSmaller,
    Refusal::NoEnds,
    Refusal::CurrentTurn,
    Refusal::OnlyContent,
    Refusal::Uncounted,
    Refusal::Instructions,
    Refusal::OnlySummaries,
    Refusal::SummaryBeside,
    Refusal::NoRoom,
];

#[test]
fn every_missing_rule_is_noticed() {
    let mut noticed = vec![0_u32; RULES.len()];
    for seed in 1..150_u64 {
        let scale = if seed % 3 == 0 { Scale::Huge } else { Scale::Mixed };
        let messages = seeded(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15), 40, scale);
        let naive = Naive::new(&messages);
        let figures: Vec<Figures> = (0..60_u64)
            .map(|n| {
                let mixed = (seed * 64 + n).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
                (mixed[0], mixed[1], mixed[2], u16::from(mixed[3]))
            })
            .collect();
        let attempts = attempts(&figures, &NaiveDraft::new(&naive));
        let (index, _) = live::index_of(&messages);
        let view = index.view();
        let script = Script::new(&attempts);
        let (mut cells, mut room) = (vec![Cell::default(); view.cell_count()], [Replacement::default(); 3]);
        let _ = planned(view, &script, &mut cells, &mut room);
        for (rule, noticed) in RULES.iter().zip(&mut noticed) {
            let mut twin = NaiveDraft::new(&naive).without(*rule);
            let said = script.said.borrow();
            let same =
                attempts.iter().zip(said.iter()).all(|(attempt, said)| twin.attempt(*attempt) == *said);
            *noticed += u32::from(!same);
        }
    }
    for (rule, noticed) in RULES.iter().zip(noticed) {
        assert!(noticed >= 3, "{rule}: {noticed}");
    }
}
