//! Stale results: a newer result for the same thing makes a result stale, unless the newer one is an error.
#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

use epitome::compactors::Supersede;
use epitome::core::message::Role;
use epitome::core::{
    Budget, Cell, IndexBuf, IndexedPart, OpenCallTree, Outcome, PartSpan as Row, Pass, Span, Tokens, plan,
};
use epitome::message::{Message, Part, ToolCall, ToolResult};

/// Reads the things one after another; `true` marks a failed read. Returns the reads that are cleared.
fn cleared<const THINGS: usize>(reads: &[(u64, bool)]) -> Vec<usize> {
    let mut index = IndexBuf::<Vec<Span>, OpenCallTree, Vec<Row>>::default();
    let mut push = |message: &Message| {
        index.push_with_parts(message, Tokens(60), |_, _| Tokens(50)).unwrap();
    };
    push(&Message::user("Look."));
    for (nth, (_, fails)) in reads.iter().enumerate() {
        let call = ToolCall::new(format!("c{nth}"), "read", "{}");
        let mut result = ToolResult::new(format!("c{nth}"), vec![Part::Text("x".into())]);
        result.is_error = *fails;
        push(&Message::new(Role::Assistant, vec![Part::ToolCall(call)]));
        push(&Message::new(Role::Tool, vec![Part::ToolResult(result)]));
    }
    push(&Message::assistant("Done."));
    let nth = |part: &IndexedPart<'_>| (part.position() as usize - 2) / 2;
    let thing = |part: &IndexedPart<'_>| reads.get(nth(part)).map(|(thing, _)| *thing);
    let budget = Budget::builder().window(1_000_000).trigger(900_000).without_goal().build().unwrap();
    let mut cells = vec![Cell::default(); index.view().cell_count()];
    let supersede = Supersede::<_, THINGS>::new(thing);
    match plan(index.view(), &budget, Pass::Manual, &supersede, &mut cells).unwrap() {
        Outcome::Planned(plan) => plan.shortened().map(|(part, _)| nth(&part)).collect(),
        Outcome::Unchanged(_) => Vec::new(),
    }
}

#[test]
fn a_result_is_stale_when_a_newer_one_of_the_same_thing_is_there() {
    let good = |things: &[u64]| things.iter().map(|thing| (*thing, false)).collect::<Vec<_>>();
    assert_eq!(cleared::<256>(&good(&[1, 2, 1, 3, 1])), [0, 2]);
    assert_eq!(cleared::<256>(&good(&[1, 2, 3])), [] as [usize; 0]);
    // A failed read does not make an earlier read stale. It becomes stale itself like any other read.
    assert_eq!(cleared::<256>(&[(1, false), (1, true)]), [] as [usize; 0]);
    assert_eq!(cleared::<256>(&[(1, false), (1, true), (1, false)]), [0, 1]);
}

#[test]
fn what_there_is_no_room_to_know_stays() {
    // There is room for two things, from the newest read on: 8 and 7. The second read of 9 is unknown, so the first
    // stays.
    let reads = [9, 7, 8, 9, 7, 8].map(|thing| (thing, false));
    assert_eq!(cleared::<2>(&reads), [1, 2]);
    assert_eq!(cleared::<3>(&reads), [0, 1, 2]);
    assert_eq!(cleared::<0>(&reads), [] as [usize; 0]);
    // With room for 256 things, 256 things are distinguished, also if their numbers are far apart.
    let many: Vec<_> = (0..256_u64).cycle().take(512).map(|thing| (thing << 40, false)).collect();
    assert_eq!(cleared::<256>(&many), (0..256).collect::<Vec<_>>());
}
