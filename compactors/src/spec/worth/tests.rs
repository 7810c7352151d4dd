use std::string::{String, ToString as _};
use std::vec;
use std::vec::Vec;

use epitome_core::message::Role;
use epitome_core::{Budget, Cell, IndexBuf, OpenCallTree, Outcome, Pass, Span, Tokens, plan};
use epitome_std::message::{Message, Part, ToolCall, ToolResult};

use crate::StrategySpec;

fn said(role: Role, text: &str) -> Message {
    Message::new(role, vec![Part::Text(text.into())])
}

/// Verdicts of a conversation whose messages have ten tokens each, of which so many tokens may stay.
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

/// A dialogue of the user's texts with an answer of the same length to each; the first and the last exchange stay anyway.
fn dialogue(texts: &[&str], answer: &str) -> Vec<Message> {
    let turns = texts.iter().flat_map(|text| [said(Role::User, text), said(Role::Assistant, answer)]);
    turns.collect()
}

#[test]
fn rare_words_of_the_user_stay_and_common_ones_go() {
    let texts =
        ["start", "ok go on", "my sister Ada was born in Lyon in 1987", "ok go on", "ok go on", "go on"];
    let verdicts = verdicts("salience:recent=0:near-request=false", &dialogue(&texts, "well, go on"), 80);
    // The three newest steps are held, with their requests; there is room for one more message.
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
    // The answer has none of the words; the question is far too long to stay.
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
    // There is room for one message: the answer says half as much again as the request behind it.
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
    // Thirty tokens stay in any case; the last turn but one has twenty and says nothing new.
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
