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
fn what_the_open_request_is_about_stays_with_its_neighbours() {
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
