//! Measures one call at several sizes of history: input, result and times.

use core::time::Duration;

use super::clock::Times;
use super::contender::{Contender, Limits, Prepared, Unit};
use super::judge::{Given, Verdict};
use super::ours::{self, Grouped, Ours};
use super::said::conversation;
use crate::generated::Pool;

/// One size of history, and the rounds at it.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Approximate number of messages; turns are never cut.
    pub messages: usize,
    /// Number of rounds. Each round runs every contender once.
    pub rounds: usize,
}

/// Input, result and times of one contender.
#[derive(Debug, Clone)]
pub struct Row {
    /// The library.
    pub name: String,
    /// The call.
    pub call: String,
    /// Unit of the limit.
    pub unit: Unit,
    /// Outcome of the call.
    pub outcome: Outcome,
}

/// Outcome of a call.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// A call that returned.
    Returned(Box<Measured>),
    /// A call that was not made, with the reason.
    NotRun(String),
}

/// A call that returned.
#[derive(Debug, Clone)]
pub struct Measured {
    /// Size of the input by the library's own count, if it counts.
    pub own_given: Option<u64>,
    /// Size of the result in the unit of the limit, by the library's own count.
    pub own_returned: Option<u64>,
    /// The judge's verdict about the result.
    pub verdict: Verdict,
    /// See [`Round`](super::contender::Round).
    pub kept: Times,
    /// See [`Round`](super::contender::Round).
    pub given_away: Times,
    /// See [`Round`](super::contender::Round).
    pub bare: Times,
}

/// All results for one size of history.
#[derive(Debug, Clone)]
pub struct Sized {
    /// Number of input messages of every contender.
    pub messages: usize,
    /// Size of the input messages by the common counter.
    pub tokens: u64,
    /// The limits.
    pub limits: Limits,
    /// The contenders, Epitome first.
    pub rows: Vec<Row>,
    /// Times in which Epitome counts all messages from the beginning.
    pub counting: Times,
    /// Times in which Epitome groups all messages from the beginning.
    pub grouping: Times,
}

/// Token counter by which all inputs and outputs are compared.
pub const COMMON_COUNTER: &str = "o200k_base";

/// Measures the contenders at one size. Before that, it asserts that all contenders have the same input with its system
/// message, and that the messages of Epitome's plan are those that its session shows, legal, within the limit, and as
/// many as fit.
///
/// A contender is not called if its call would take longer than `most`, extrapolated from the `earlier` sizes.
#[must_use]
pub fn measure(
    pool: &Pool,
    contenders: &[&dyn Contender],
    size: Size,
    tokens: u64,
    earlier: &[Sized],
    most: Duration,
) -> (Given, Sized) {
    let given = Given::new(conversation(pool, SEED, size.messages), COMMON_COUNTER);
    let whole = given.judge(given.said());
    assert!(whole.is_valid(), "the conversation itself is not valid: {whole:?}");
    let limits = ours::limits(given.said(), tokens);
    let grouped = Grouped::new(Ours::Truncation, given.said());
    grouped.assert_plan_is_right(tokens);
    let mut running: Vec<_> = contenders
        .iter()
        .enumerate()
        .map(|(at, contender)| match too_slow(earlier, at, whole.messages, most) {
            Some(why) => Err(why),
            None => Ok(Running::new(*contender, &given, limits)),
        })
        .collect();
    let (mut counting, mut grouping) = (Times::default(), Times::default());
    for _ in 0..size.rounds {
        let (counted, gathered) = grouped.from_scratch();
        counting.push(counted);
        grouping.push(gathered);
        running.iter_mut().flatten().for_each(|running| running.round(limits, most));
    }
    let rows = contenders.iter().zip(running).map(|(contender, running)| Row {
        name: contender.name(),
        call: contender.call(),
        unit: contender.unit(),
        outcome: match running {
            Ok(running) => Outcome::Returned(Box::new(running.measured)),
            Err(why) => Outcome::NotRun(why),
        },
    });
    let rows = rows.collect();
    let sized = Sized { messages: whole.messages, tokens: whole.tokens, limits, rows, counting, grouping };
    (given, sized)
}

/// The reason not to call a contender: its time, extrapolated from the last two sizes, would be too long.
fn too_slow(earlier: &[Sized], at: usize, messages: usize, most: Duration) -> Option<String> {
    let seconds = |sized: &Sized| match &sized.rows[at].outcome {
        Outcome::Returned(measured) => Some(measured.kept.median()?.as_secs_f64()),
        Outcome::NotRun(_) => None,
    };
    let [.., first, second] = earlier else { return None };
    let (short, long) = (seconds(first)?, seconds(second)?);
    let growth = (long / short).ln() / (second.messages as f64 / first.messages as f64).ln();
    let predicted = long * (messages as f64 / second.messages as f64).powf(growth);
    (predicted > most.as_secs_f64()).then(|| {
        format!(
            "would take {predicted:.0} s if it grows as from {} to {} messages",
            first.messages, second.messages
        )
    })
}

/// A contender in the middle of its rounds.
struct Running<'c> {
    contender: &'c dyn Contender,
    prepared: Box<dyn Prepared>,
    measured: Measured,
    spent: Duration,
}

impl<'c> Running<'c> {
    fn new(contender: &'c dyn Contender, given: &Given, limits: Limits) -> Self {
        let prepared = contender.prepare(given.said());
        assert_eq!(prepared.given(), given.said(), "{} was given something else", contender.call());
        let returned = prepared.returned(limits.of(contender.unit()));
        let returned = returned.unwrap_or_else(|why| panic!("{} refused: {why}", contender.call()));
        let verdict = given.judge(&returned.said);
        assert!(verdict.messages > 0 && verdict.messages <= given.said().len(), "{verdict:?}");
        let measured = Measured {
            own_given: prepared.own_tokens(),
            own_returned: returned.own,
            verdict,
            kept: Times::default(),
            given_away: Times::default(),
            bare: Times::default(),
        };
        Self { contender, prepared, measured, spent: Duration::ZERO }
    }

    fn round(&mut self, limits: Limits, most: Duration) {
        if self.spent > most {
            return;
        }
        let round = self.prepared.round(limits.of(self.contender.unit()));
        let Measured { kept, given_away, bare, .. } = &mut self.measured;
        for (times, time) in [(kept, round.kept), (given_away, round.given_away), (bare, round.bare)] {
            time.into_iter().for_each(|time| times.push(time));
            self.spent += time.unwrap_or_default();
        }
    }
}

const SEED: u64 = 1;
