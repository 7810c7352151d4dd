//! Any text of a tool, cut to any size: the rest is within the limit and counted right, and JSON whose elements are cut
//! is still JSON. Identifiers occur in the text as they are found.
#![no_main]

use epitome_core::message::{SimpleMessage, ToolCallView};
use epitome_core::{
    Budget, Clamp, ClassEstimator, Draft, IndexBuf, OpenCallTree, Outcome, PartKind, PartSpan, Pass, Planner,
    Span, Strategy, TokenCounter as _, Tokens, count_message, count_part,
};
use epitome_std::history::clamped_text;
use epitome_std::identifiers::for_each_identifier;
use libfuzzer_sys::fuzz_target;
use serde::de::IgnoredAny;

fuzz_target!(|bytes: &[u8]| {
    let Some(([head, tail], rest)) = bytes.split_first_chunk::<2>() else { return };
    let text = String::from_utf8_lossy(rest);
    let counter = ClassEstimator::new();

    let mut at = 0;
    for_each_identifier(&text, true, &mut |identifier| {
        assert!(!identifier.is_empty() && identifier.len() <= 200);
        at += text[at..].find(identifier).expect("they stand in the text, in order");
    });

    let clamp = Clamp { head: Tokens((*head).into()), tail: Tokens((*tail).into()) };
    cut(&text, "{}", clamp, &counter);
    cut("{}", &text, clamp, &counter);
});

fn cut(result: &str, arguments: &str, clamp: Clamp, counter: &ClassEstimator) {
    let call = [ToolCallView::new("c", "read", arguments)];
    let messages = [
        SimpleMessage::user("Go on."),
        SimpleMessage::calls(&call),
        SimpleMessage::result("c", result),
        SimpleMessage::user("And then?"),
        SimpleMessage::assistant("Done."),
    ];
    let mut index = IndexBuf::with_parts(Vec::<Span>::new(), OpenCallTree::new(), Vec::<PartSpan>::new());
    for message in &messages {
        let tokens = count_message(message, counter);
        index.push_with_parts(message, tokens, |_, part| count_part(part, counter)).unwrap();
    }
    let mut planner = Planner::new();
    let budget = Budget::builder().window(1 << 30).trigger(1 << 20).without_goal().build().unwrap();
    let outcome = planner.plan(index.view(), &budget, Pass::Manual, &ToEnds(clamp));
    let Ok(Outcome::Planned(plan)) = outcome else { return };
    for gap in plan.clamps() {
        let is_call = gap.part.kind() == PartKind::ToolInput;
        let text = if is_call { arguments } else { result };
        let (left, tokens) = clamped_text(text, gap.part.kind(), gap.clamp, counter);
        assert_eq!(tokens, counter.count(&left));
        assert!(tokens <= clamp.tokens_max(), "{left:?}");
        assert_eq!(clamped_text(text, gap.part.kind(), gap.clamp, counter), (left.clone(), tokens));
        // Arguments that are JSON stay JSON. Where a result has such a note, the text was taken for JSON.
        let has_note = !text.contains(" cut]") && left.contains(" elements cut]\"");
        if is_json(text) && (is_call || has_note) {
            assert!(is_json(&left), "{left:?}");
        }
    }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Leaves the ends of every result and of all arguments.
#[derive(Debug)]
struct ToEnds(Clamp);

impl Strategy for ToEnds {
    fn name(&self) -> &'static str {
        "to_ends"
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        for part in draft.index().parts() {
            let _ = draft.clamp(&part, self.0);
        }
    }
}
