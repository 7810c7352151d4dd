use std::string::{String, ToString as _};
use std::vec;
use std::vec::Vec;

use epitome_core::message::Role;
use epitome_core::{
    Budget, Cell, Draft, IndexBuf, OpenCallTree, Outcome, Pass, Protection, Span, Tokens, Verdict, plan,
};
use epitome_std::message::{Message, Part, ToolCall, ToolResult};
use proptest::prelude::*;

use crate::StrategySpec;

fn said(role: Role, text: &str) -> Message {
    Message::new(role, vec![Part::Text(text.into())])
}

/// Verdicts for messages of ten tokens each, with a goal of this many tokens.
fn verdicts(spec: &str, messages: &[Message], goal: u64) -> String {
    let spec: StrategySpec = spec.parse().unwrap();
    let mut index = IndexBuf::<Vec<Span>, OpenCallTree>::new();
    let mut texts = spec.texts();
    for (position, message) in (0..).zip(messages) {
        index.push(message, Tokens(10)).unwrap();
        texts.look_through(position, message);
    }
    let budget = Budget::builder().window(4_000).trigger(2_000).goal(goal).build().unwrap();
    let mut cells = vec![Cell::default(); index.view().cell_count()];
    match plan(index.view(), &budget, Pass::Manual, &spec.strategy(texts), &mut cells).unwrap() {
        Outcome::Planned(plan) => plan.verdicts().to_string(),
        Outcome::Unchanged(why) => panic!("{why:?}"),
    }
}

/// A dialogue of these user texts, each with the same answer. The first and the last exchange stay in any case.
fn dialogue(texts: &[&str], answer: &str) -> Vec<Message> {
    let turns = texts.iter().flat_map(|text| [said(Role::User, text), said(Role::Assistant, answer)]);
    turns.collect()
}

#[test]
fn rare_words_of_the_user_stay_and_common_ones_go() {
    let texts =
        ["start", "ok go on", "my sister Ada was born in Lyon in 1987", "ok go on", "ok go on", "go on"];
    let verdicts = verdicts("salience:recent=0:near-request=false", &dialogue(&texts, "well, go on"), 80);
    // The three newest steps are protected, together with their requests. One more message fits.
    assert_eq!(verdicts, "KDDDKDKKKKKK");
}

#[test]
fn of_messages_that_say_the_same_the_newest_counts() {
    let same = "the password is a blue heron by the river";
    let texts = ["start", same, "ok go on", same, "go on", "go on", "ok go on", "ok"];
    let verdicts = verdicts("salience:recent=0:near-request=false", &dialogue(&texts, "well, go on"), 80);
    assert_eq!(verdicts, "KDDDDDKDDDKKKKKK");
}

#[test]
fn what_the_open_request_is_about_stays() {
    let texts = [
        "start",
        "zebra quartz vortex jumble sphinx oxide klaxon",
        "we take the invoices of March",
        "fjord nymph waltz",
        "a",
        "b",
        "c",
    ];
    let mut messages = dialogue(&texts, "yes");
    messages.push(said(Role::User, "which invoice of March was it?"));
    let near = verdicts("salience:recent=0", &messages, 50);
    assert_eq!(near.chars().nth(4), Some('K'), "{near}");
    assert_eq!(near.chars().nth(2), Some('D'), "{near}");
    let blind = verdicts("salience:recent=0:near-request=false", &messages, 50);
    assert_eq!(blind.chars().nth(2), Some('K'), "{blind}");
    assert_eq!(blind.chars().nth(4), Some('D'), "{blind}");
    // A request that has been answered is no longer open.
    messages.push(said(Role::Assistant, "that of March"));
    let answered = verdicts("salience:recent=0", &messages, 60);
    assert_eq!(answered, verdicts("salience:recent=0:near-request=false", &messages, 60));
}

#[test]
fn an_answer_stays_beside_the_question_that_the_open_request_is_about() {
    // The answer has none of the request's words. The question is far too long to stay.
    let long =
        "which invoice of March is due, and what of all the others that we have, and why, and when, and how?";
    let mut messages =
        dialogue(&["start", "fjord nymph waltz", "a", "b", "c", "d", "e"], "zebra quartz vortex");
    messages
        .splice(4..4, [said(Role::User, long), said(Role::Assistant, "the fourteenth, paid twice by Ada")]);
    messages.push(said(Role::User, "which invoice of March?"));
    let near = verdicts("salience:recent=0", &messages, 60);
    assert_eq!(near.get(4..6), Some("KK"), "{near}");
    let blind = verdicts("salience:recent=0:near-request=false", &messages, 60);
    assert_ne!(blind.get(4..6), Some("KK"), "{blind}");
}

#[test]
fn the_words_of_the_user_count_twice() {
    // One message fits. The answer has half as many rare words again as the request after it.
    let mut messages = vec![said(Role::User, "start"), said(Role::Assistant, "elm fig gum hop ivy jute")];
    messages.extend(dialogue(&["amber basil cedar dusk", "a", "b", "c", "d"], "yes"));
    let verdicts = verdicts("salience:recent=0:near-request=false", &messages, 40);
    assert_eq!(verdicts, "KDKDDDDDDDKK");
}

#[test]
fn the_newest_turns_have_a_quarter_of_the_room() {
    let texts = [
        "start",
        "amber basil cedar",
        "elm fig gum",
        "hop ivy jute",
        "kale leek mint",
        "nut oak pear",
        "quince rue sage",
        "thyme urd vetch",
        "wheat yam zedoary",
        "go on",
        "go on",
    ];
    let messages = dialogue(&texts, "go on");
    // Thirty tokens stay in any case. The last turn but one has twenty tokens, and no new words.
    for (goal, kept) in [(109, "KD"), (110, "KK")] {
        let verdicts = verdicts("salience:recent=2:near-request=false", &messages, goal);
        assert_eq!(verdicts.get(18..20), Some(kept), "{goal}: {verdicts}");
    }
}

#[test]
fn a_request_is_open_while_the_model_waits_for_results() {
    let mut messages =
        dialogue(&["start", "发票在十四号到期", "zebra quartz vortex jumble", "a", "b"], "yes");
    messages.push(said(Role::User, "发票什么时候到期"));
    messages.push(Message::new(Role::Assistant, vec![Part::ToolCall(ToolCall::new("c1", "look", "{}"))]));
    messages.push(Message::new(
        Role::Tool,
        vec![Part::ToolResult(ToolResult::new("c1", vec![Part::Text("nothing".into())]))],
    ));
    let open = verdicts("salience:recent=0", &messages, 50);
    assert_eq!(open.chars().nth(2), Some('K'), "{open}");
    assert_eq!(open.chars().nth(4), Some('D'), "{open}");
}

#[test]
fn a_value_is_not_kept_without_the_newer_one() {
    // One message fits. The older one has more rare words, and would be selected without the update.
    let older = "the staging proxy listens on port 8080 amber basil cedar";
    let newer = "ok, the staging proxy listens on port 9090";
    let kept = |newer: &str, goal| {
        let texts = ["start", older, "ok go on", newer, "ok go on", "go on", "go on"];
        let messages = dialogue(&texts, "well, go on");
        let verdicts = verdicts("salience:recent=0:near-request=false", &messages, goal);
        [2, 6].map(|at| verdicts.chars().nth(at).unwrap_or('-')).iter().collect::<String>()
    };
    assert_eq!((kept(newer, 40), kept(newer, 50)), ("DK".into(), "KK".into()));
    assert_eq!(kept("ok, it rains in Lyon", 40), "KD");
}

#[test]
fn what_the_model_says_updates_nothing() {
    let said_again = "so the staging proxy listens on port 8080 then";
    let mut messages = dialogue(&["start", "the staging proxy listens on port 8080", "a", "b", "c"], "yes");
    messages.splice(5..6, [said(Role::Assistant, said_again)]);
    let verdicts = verdicts("salience:recent=0:near-request=false", &messages, 60);
    assert_eq!(verdicts.get(2..3), Some("K"), "{verdicts}");
}

/// Values of a few things, among other words.
fn facts() -> impl Strategy<Value = Vec<(bool, usize, u32, usize)>> {
    proptest::collection::vec((any::<bool>(), 0_usize..4, 0_u32..3, 0_usize..30), 4..24)
}

proptest! {
    #[test]
    fn no_free_group_stays_without_what_updates_it(facts in facts(), goal in 40_u64..300) {
        const THINGS: [&str; 4] =
            ["our amber gate closes at", "发票的付款期限是每月的第", "the basil contract ends in year", "cedar pump runs with pressure"];
        let text = |(_, thing, value, word): &(bool, usize, u32, usize)| {
            std::format!("w{word} and so on. {} {value}.", THINGS.get(*thing).unwrap_or(&""))
        };
        let mut messages = vec![said(Role::User, "start"), said(Role::Assistant, "yes")];
        for fact in &facts {
            messages.push(said(if fact.0 { Role::User } else { Role::Assistant }, &text(fact)));
        }
        let spec: StrategySpec = "salience:recent=1".parse().unwrap();
        let mut index = IndexBuf::<Vec<Span>, OpenCallTree>::new();
        let mut texts = spec.texts();
        for (position, message) in (0..).zip(&messages) {
            index.push(message, Tokens(10)).unwrap();
            texts.look_through(position, message);
        }
        let checked = texts.clone();
        let budget = Budget::builder().window(4_000).trigger(2_000).goal(goal).build().unwrap();
        let mut cells = vec![Cell::default(); index.view().cell_count()];
        let made = Checked { strategy: spec.strategy(texts), texts: checked };
        let _ = plan(index.view(), &budget, Pass::Manual, &made, &mut cells);
    }
}

/// Checks the verdicts of a strategy.
struct Checked {
    strategy: crate::MadeStrategy,
    texts: crate::SpecTexts,
}

impl epitome_core::Strategy for Checked {
    fn name(&self) -> &'static str {
        self.strategy.name()
    }

    fn protection(&self) -> Protection {
        self.strategy.protection()
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        let updates = self.texts.updates(draft);
        let free: Vec<u32> = draft
            .index()
            .groups()
            .filter(|group| draft.is_candidate(group))
            .map(|group| group.leader())
            .collect();
        self.strategy.plan(draft);
        let verdict = |leader: u32| draft.index().group(leader).map(|group| draft.verdict(&group));
        for (older, newer) in updates {
            assert!(older < newer);
            if free.contains(&older) && verdict(older) == Some(Verdict::Keep) {
                assert_eq!(verdict(newer), Some(Verdict::Keep), "{older} {newer}");
            }
        }
    }
}
