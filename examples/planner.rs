//! The planner alone, as a device uses it: no heap, no operating system, memory of a fixed size.
//!
//! `cargo run --example planner`. A program for a device depends on these two crates alone, because `epitome` wants the standard library.

use epitome_compactors::Truncation;
use epitome_core::message::{SimpleMessage, ToolCallView};
use epitome_core::{
    ArrayTable, Budget, Cell, ClassEstimator, IndexBuf, OpenCallSlots, Outcome, Pass, Span, Tokens,
    count_message, plan,
};

/// Groups at most 64 spans and 8 calls without an answer.
type Index = IndexBuf<ArrayTable<Span, 64>, OpenCallSlots<8>>;

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let call = [ToolCallView::new("c1", "read_sensor", r#"{"id":7}"#)];
    let turn = [
        SimpleMessage::user("What does sensor 7 say?"),
        SimpleMessage::calls(&call),
        SimpleMessage::result("c1", "21.4 degrees, humidity 40 %, last calibrated in May"),
        SimpleMessage::assistant("21.4 degrees."),
    ];
    let mut index = Index::new();
    index.push(&SimpleMessage::system("You watch the sensors of a greenhouse."), Tokens(12))?;
    for message in turn.iter().cycle().take(10 * turn.len()) {
        index.push(message, count_message(message, &ClassEstimator::new()))?;
    }

    let budget = Budget::builder().window(1_000).trigger(400).goal(200).build()?;
    let mut cells = [Cell::default(); 64];
    match plan(index.view(), &budget, Pass::Proactive, &Truncation::new(), &mut cells)? {
        Outcome::Planned(plan) => {
            println!("{} -> {} tokens", plan.tokens_before(), plan.tokens_after());
            println!("{}", plan.verdicts());
        }
        Outcome::Unchanged(why) => println!("nothing to do: {}", why.as_str()),
    }
    Ok(())
}
