//! Plans for messages without counts.

use core::cell::Cell as Slot;
use core::convert::Infallible;

use epitome::compactors::{SlidingWindow, Truncation, Window};
use epitome::core::{
    Budget, Cell, IndexBuf, OpenCallTree, Outcome, Pass, Span, Strategy, TokenCounter, Tokens, count_message,
    plan,
};
use epitome::tokens::{FastTiktoken, LazyIndex, message_bounds};
use epitome_benches::compare::clock::grouped;
use epitome_benches::generated::{Message, Messages, Pool};

use crate::clock::timed;
use crate::table::{Table, ms};
use crate::{SEED, Sizes};

pub(crate) fn run(pool: &Pool, sizes: &Sizes, table: &mut Table) {
    let messages: Vec<_> = Messages::new(pool, SEED).take(sizes.planned).collect();
    let counter = FastTiktoken::o200k_base();
    let mut exact = IndexBuf::<Vec<Span>, OpenCallTree>::new();
    let all = timed(|| {
        for message in &messages {
            exact.push(message, count_message(message, &counter)).unwrap();
        }
    });
    let total = exact.view().tokens();
    // 100,000 of the twenty million tokens of 100,000 messages; for fewer messages the same share.
    let goal = total / 200;
    let budget = Budget::builder().window(goal * 3).reserve(0).trigger(goal * 2).goal(goal).build().unwrap();
    let bytes: usize = messages.iter().map(|message| message.text().len()).sum();
    let cases: [(&str, &dyn Strategy); 2] =
        [("truncation", &Truncation::new()), ("window", &SlidingWindow::new(Window::Goal))];
    for (name, strategy) in cases {
        let counted = Slot::new(0_usize);
        let mut lazy = LazyIndex::new();
        let time = timed(|| {
            for message in &messages {
                lazy.push(message, message_bounds(message, &counter)).unwrap();
            }
            let Ok(()) =
                lazy.settle(&budget, Pass::Manual, strategy, |at| count(&messages[at as usize], &counted));
        });
        assert_eq!(decided(lazy.index(), &budget, strategy), decided(exact.view(), &budget, strategy));
        let share = counted.get() as f64 / bytes as f64 * 100.0;
        table.row(
            &format!("{name} of {} uncounted messages to {goal} tokens", grouped(messages.len())),
            &format!("tokenizes {share:.1} % of the bytes; {} instead of {}", ms(time), ms(all)),
            Some(("<= 10 %", share <= 10.0)),
            "shows that only what a plan depends on is counted; matters for histories that come from elsewhere",
        );
    }
    lines(&messages, total, table);
}

/// Measures triggers below and above the size, at several distances from it.
fn lines(messages: &[Message<'_>], total: u64, table: &mut Table) {
    let (counter, mut shares) = (FastTiktoken::o200k_base(), Vec::new());
    let bytes: usize = messages.iter().map(|message| message.text().len()).sum();
    let mut bounds = (0, 0);
    for percent in [10, 50, 75, 100, 200, 400] {
        let (counted, line) = (Slot::new(0_usize), total * percent / 100);
        let mut lazy = LazyIndex::new();
        for message in messages {
            lazy.push(message, message_bounds(message, &counter)).unwrap();
        }
        bounds = lazy.tokens();
        let Ok(exceeds) = lazy.exceeds(line, |at| count(&messages[at as usize], &counted));
        assert_eq!(exceeds, total > line);
        shares.push(format!("{percent} %: {:.0} %", counted.get() as f64 / bytes as f64 * 100.0));
    }
    table.row(
        "bytes tokenized to tell whether a line is passed, by the line's share of the size",
        &format!(
            "{}; the size lies within {:.2} and {:.2} of itself",
            shares.join(", "),
            bounds.0 as f64 / total as f64,
            bounds.1 as f64 / total as f64
        ),
        None,
        "shows triggers far from their line; matters because they are asked before every call",
    );
}

fn count(message: &Message<'_>, counted: &Slot<usize>) -> Result<Tokens, Infallible> {
    counted.set(counted.get() + message.text().len());
    Ok(count_message(message, &FastTiktoken::o200k_base() as &dyn TokenCounter))
}

/// The verdicts and the size of a plan.
fn decided(index: epitome::core::Index<'_>, budget: &Budget, strategy: &dyn Strategy) -> (String, u64) {
    let mut cells = vec![Cell::default(); index.span_count()];
    match plan(index, budget, Pass::Manual, strategy, &mut cells).unwrap() {
        Outcome::Planned(plan) => (plan.verdicts().to_string(), plan.tokens_after()),
        Outcome::Unchanged(why) => (why.as_str().to_owned(), index.tokens()),
    }
}
