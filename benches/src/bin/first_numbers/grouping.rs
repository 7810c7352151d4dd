//! Measures grouping, planning, projection, validation and repair.

use core::error::Error;
use core::hint::black_box;
use core::time::Duration;

use epitome::core::{Pending, Placed, Profile, Repair, Revision, Seq, Stored, Tokens, repair};
use epitome_benches::compare::clock::grouped;
use epitome_benches::generated::{Message, Pool, sizes as sizes_of};
use epitome_benches::steps::{Grouped, cleared, group, group_with_parts, planned, violations};

use crate::table::{Table, median, ms, ns_each, ratio, timed};
use crate::{Sizes, history};

pub(crate) fn run(history: &[Message<'_>], sizes: &Sizes, table: &mut Table) {
    let (count, tokens) = (history.len(), sizes_of(history));
    let index = group(history, &tokens);
    assert_plan_is_right(history, &tokens, &index);
    let grouping = median(sizes.rounds, || group(history, &tokens));
    let planning = median(sizes.rounds, || planned(index.view(), |plan| plan.tokens_after()));
    let together = grouping + planning;
    table.row(
        &format!("group and plan {} counted messages", grouped(count)),
        &format!("{} + {}", ms(grouping), ms(planning)),
        Some(("together <= 10 ms", together <= Duration::from_millis(10))),
        "shows a first grouping of a whole history and one truncation to 50,000 tokens; matters because both stand \
         between a user and the next request",
    );
    let validating = median(sizes.rounds, || violations(history.iter()));
    let repairing = median(sizes.rounds, || repair(Profile::OpenaiChat, history, Pending::Running));
    let projecting = median(sizes.rounds, || index.view().projection().flatten().map(u64::from).sum::<u64>());
    assert_eq!(violations(history.iter()), 0);
    let kept = (0..count as u32).map(Repair::Keep);
    assert!(
        repair(Profile::OpenaiChat, history, Pending::Running).into_iter().eq(kept),
        "a legal history is kept"
    );
    assert!(index.view().projection().flatten().eq(0..count as u32), "all messages are projected in order");
    table.row(
        &format!("project, validate, repair {} messages", grouped(count)),
        &format!(
            "{:.1}, {:.0}, {:.0} ns a message",
            ns_each(projecting, count),
            ns_each(validating, count),
            ns_each(repairing, count)
        ),
        None,
        "shows what each visible message costs on its way into a request; matters because every model call pays it",
    );
}

/// Costs of one length of history.
struct Point {
    messages: usize,
    spans: usize,
    pushing: Duration,
    planning: Duration,
    reading: Duration,
}

/// The cost of a message and of a span as the history grows.
pub(crate) fn growth(pool: &Pool, sizes: &Sizes, table: &mut Table) {
    let longest = history(pool, sizes.growth.iter().copied().max().unwrap_or(0));
    let tokens = sizes_of(&longest);
    let point = |count: &usize| point(&longest[..*count], &tokens[..*count], sizes.rounds);
    let points: Vec<_> = sizes.growth.iter().map(point).collect();
    let list = |what: &dyn Fn(&Point) -> String| points.iter().map(what).collect::<Vec<_>>().join(", ");
    let (first, last) = (&points[0], &points[points.len() - 1]);
    let pushing = |point: &Point| ns_each(point.pushing, point.messages);
    let over_reading = |point: &Point| ratio(point.planning, point.reading);
    table.row(
        &format!("push, at {} messages", list(&|point| grouped(point.messages))),
        &format!("{} ns a message", list(&|point| format!("{:.0}", pushing(point)))),
        Some(("the last <= 2x the first", pushing(last) <= 2.0 * pushing(first))),
        "shows that a push costs the same however long the history is; matters because a conversation of n messages \
         makes n of them (what growth there is, is memory that no cache holds)",
    );
    let (middle, late) = one_by_one(&longest, &tokens, sizes.rounds);
    table.row(
        &format!("{} pushes, each on its own", grouped(longest.len())),
        &format!("{} ns in the median, {} ns at the 99.9th percentile, the clock included", middle.as_nanos(), late.as_nanos()),
        Some(("the percentile <= 20x the median", late <= 20 * middle)),
        "shows that hardly a push is much slower than others (tables grow by doubling, some twenty times); matters because \
         an agent waits for each",
    );
    table.row(
        &format!("plan, at {} spans", list(&|point| grouped(point.spans))),
        &format!(
            "{} ns a span; {} times reading the tables once",
            list(&|point| format!("{:.1}", ns_each(point.planning, point.spans))),
            list(&|point| format!("{:.1}", over_reading(point)))
        ),
        Some(("the last <= 2x reading", over_reading(last) <= 2.0)),
        "shows the cost of a plan against the sum of one field of tables as large; matters because a plan should \
         cost no more than the memory it must look at",
    );
    let visible = sizes.growth[0];
    let (long, short) =
        (Visible::new(&longest, &tokens, visible), Visible::new(&longest[..visible], &tokens, visible));
    let times = [&short, &long].map(|shown| median(sizes.rounds * 9, || shown.project_and_validate()));
    table.row(
        &format!("project and validate {} visible of {}, of {}", grouped(visible), grouped(visible), grouped(longest.len())),
        &format!("{}, {}", ms(times[0]), ms(times[1])),
        Some(("the last <= 1.5x the one before", ratio(times[1], times[0]) <= 1.5)),
        "shows a request made of what a store loads of a long session; matters because a model call must cost what is \
         visible, not what was ever said",
    );
}

/// The visible part of a history whose older part is hidden, as a store loads it.
struct Visible<'h, 't> {
    messages: &'h [Message<'t>],
    index: Grouped,
}

impl<'h, 't> Visible<'h, 't> {
    /// Takes about the last `visible` messages, from the first group that begins there.
    fn new(history: &'h [Message<'t>], tokens: &[Tokens], visible: usize) -> Self {
        let mut whole = Grouped::new();
        let placed: Vec<_> = history
            .iter()
            .zip(tokens)
            .map(|(message, tokens)| whole.push(message, *tokens).unwrap())
            .collect();
        let from = history.len() - visible;
        let reaches_back = |at: &usize| (*at..history.len()).any(|later| placed[later].anchor.0 < *at as u64);
        let from = (from..).find(|at| !reaches_back(at)).unwrap();
        let mut index = Grouped::new();
        for at in from..history.len() {
            let Placed { anchor, turn, orphan, .. } = placed[at];
            let leader = (anchor.0 < at as u64).then(|| anchor.0 as u32 - from as u32);
            let stored = Stored { seq: Seq(at as u64), leader, anchor, turn, tokens: tokens[at], orphan };
            index.restore(&history[at], &stored).unwrap();
        }
        index.resume(Seq(history.len() as u64), Revision(1));
        let shown = Self { messages: &history[from..], index };
        assert!(shown.messages.len() + 20 >= visible && shown.project_and_validate() == 0);
        shown
    }

    /// Counts protocol violations.
    fn project_and_validate(&self) -> usize {
        violations(self.index.view().projection().flatten().map(|at| &self.messages[at as usize]))
    }
}

fn point(messages: &[Message<'_>], tokens: &[Tokens], rounds: usize) -> Point {
    // Short histories are too fast to be timed one by one.
    let copies = (10_000 / messages.len()).max(1);
    let index = group(messages, tokens);
    let spans = index.view().span_count();
    assert_plan_is_right(messages, tokens, &index);
    let pushing = median(rounds, || (0..copies).map(|_| group(messages, tokens)).collect::<Vec<_>>());
    let planning = median(rounds, || {
        (0..copies).map(|_| planned(index.view(), |plan| plan.tokens_after())).sum::<u64>()
    });
    let reading = read_once(spans, copies, rounds);
    let each = |time: Duration| time / copies as u32;
    Point {
        messages: messages.len(),
        spans,
        pushing: each(pushing),
        planning: each(planning),
        reading: each(reading),
    }
}

/// The median and the 99.9th percentile of the time of a push. The time of each push is the least of `rounds`, so that
/// other programs do not count.
fn one_by_one(messages: &[Message<'_>], tokens: &[Tokens], rounds: usize) -> (Duration, Duration) {
    let mut times = vec![Duration::MAX; messages.len()];
    for _ in 0..rounds {
        let mut index = Grouped::new();
        for ((message, tokens), time) in messages.iter().zip(tokens).zip(&mut times) {
            *time = timed(|| index.push(message, *tokens).unwrap()).min(*time);
        }
    }
    times.sort();
    (times[times.len() / 2], times[times.len() - 1 - times.len() / 1_000])
}

/// Groups and plans once, for a tool that counts instructions.
pub(crate) fn once(what: &str, messages: usize) -> Result<(), Box<dyn Error>> {
    let pool = Pool::new();
    let history = history(&pool, messages);
    let tokens = sizes_of(&history);
    let index = match what {
        "nothing" => return Ok(()),
        _ => group(&history, &tokens),
    };
    match what {
        "group" => {}
        "parts" => {
            let parted = group_with_parts(&history, &tokens);
            println!("{} parts", parted.view().part_count());
        }
        "clear" => {
            let parted = group_with_parts(&history, &tokens);
            println!("{} parts", parted.view().part_count());
            black_box(cleared(parted.view()));
        }
        "plan" => {
            black_box(planned(index.view(), |plan| plan.tokens_after()));
        }
        "prefix" => {
            black_box(planned(index.view(), |plan| plan.stable_prefix().tokens));
        }
        "validate" => {
            black_box(violations(history.iter()));
        }
        "repair" => {
            black_box(repair(Profile::OpenaiChat, &history, Pending::Running));
        }
        _ => return Err("once: nothing, group, parts, plan, clear, prefix, validate or repair".into()),
    }
    println!("{} messages, {} spans", history.len(), index.view().span_count());
    Ok(())
}

/// Asserts that the totals equal a sum from scratch, that the plan meets the goal, and that no call is separated from
/// its results.
fn assert_plan_is_right(history: &[Message<'_>], tokens: &[Tokens], index: &Grouped) {
    let naive = |positions: &[u32]| positions.iter().map(|at| tokens[*at as usize].as_u64()).sum::<u64>();
    let all: Vec<_> = (0..history.len() as u32).collect();
    assert_eq!(index.view().tokens(), naive(&all));
    planned(index.view(), |plan| {
        let kept: Vec<_> = plan.projection().flatten().collect();
        assert_eq!(plan.tokens_after(), naive(&kept));
        assert!(!plan.is_goal_missed() && plan.tokens_after() > 40_000, "the goal is met, and just so");
        assert_eq!(violations(kept.iter().map(|at| &history[*at as usize])), 0);
    });
}

/// The time to read tables once that are as large as those of `spans` spans: 24 bytes and 1 byte for each span.
fn read_once(spans: usize, copies: usize, rounds: usize) -> Duration {
    let (table, cells) = (vec![[1_u32; 6]; spans], vec![1_u8; spans]);
    median(rounds, || {
        (0..copies)
            .map(|_| {
                let table = black_box(&table).iter().map(|row| u64::from(row[1])).sum::<u64>();
                table + black_box(&cells).iter().map(|cell| u64::from(*cell)).sum::<u64>()
            })
            .sum::<u64>()
    })
}
