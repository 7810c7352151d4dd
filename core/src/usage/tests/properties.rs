//! The ledger against a naive twin: unbounded integers, and a replay of all events for every question.

use std::println;
use std::vec::Vec;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::{key, ledger, stamp};
use crate::{Basis, Budget, Correction, Stamp, Usage, UsageHandle, UsageLedger};

const ONE: i128 = 65_536;

#[derive(Debug, Clone)]
enum Step {
    /// Messages are appended, or run-local ones are removed: the counted size becomes this value.
    Count(u64),
    Commit,
    Begin,
    /// A report on one of the requests in flight.
    Report {
        which: usize,
        input: u64,
        cached: u64,
        steps: Steps,
    },
    Compaction {
        input: u64,
    },
    Model(u64),
}

/// Steps that the provider made itself for a response.
#[derive(Debug, Clone, Copy)]
enum Steps {
    None,
    Unlisted,
    /// A compaction, after which the model read this number of tokens.
    Compacted(u64),
}

/// A report, as the twin remembers it.
#[derive(Debug, Clone, Copy)]
struct Told {
    number: usize,
    counted: i128,
    stamp: Stamp,
    input: i128,
    /// True if it reports the size of the request.
    believed: bool,
    /// Size that later sizes are measured from.
    context: Option<i128>,
}

#[derive(Debug, Default)]
struct Twin {
    model: u64,
    /// Number of requests that began before the current model was chosen.
    since: usize,
    told: Vec<Told>,
    spent: i128,
}

impl Twin {
    fn ratio(&self) -> i128 {
        let (mut reported, mut counted) = (0, 0);
        for told in self.current().filter(|told| told.believed) {
            let held = told.input.clamp((told.counted + 1) / 2, told.counted * 4);
            reported = reported - reported / 4 + held;
            counted = counted - counted / 4 + told.counted;
        }
        if counted == 0 { ONE } else { (reported * ONE / counted).clamp(ONE / 2, ONE * 4) }
    }

    fn current(&self) -> impl Iterator<Item = &Told> {
        self.told.iter().filter(|told| told.number > self.since)
    }

    fn size(&self, ratio: i128, counted: i128, stamp: Stamp) -> (i128, Basis) {
        let last = self.current().max_by_key(|told| told.number);
        let last = last.filter(|last| last.stamp.revision == stamp.revision);
        match last.and_then(|last| Some((last, last.context?))) {
            Some((last, context)) if last.counted == counted && last.stamp == stamp => {
                (context, Basis::Reported)
            }
            Some((last, context)) => {
                // Rounded up, for either sign.
                let change = ((counted - last.counted) * ratio + ONE - 1).div_euclid(ONE);
                (context + change, Basis::Estimated)
            }
            None => ((counted * ratio + ONE - 1).div_euclid(ONE), Basis::Estimated),
        }
    }
}

/// The ledger and its twin, after the same events.
struct Pair {
    ledger: UsageLedger,
    twin: Twin,
    flying: Vec<(UsageHandle, Told)>,
    begun: usize,
    counted: u64,
    stamp: Stamp,
}

impl Pair {
    fn new() -> Self {
        let (twin, flying) = (Twin::default(), Vec::new());
        Self { ledger: ledger(), twin, flying, begun: 0, counted: 0, stamp: stamp(0, 0) }
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Count(counted) => {
                self.counted = counted;
                self.stamp.head = self.stamp.head.next();
            }
            Step::Commit => self.stamp.revision = self.stamp.revision.next(),
            Step::Begin => self.begin(),
            Step::Report { which, input, cached, steps } => self.report(which, input, cached, steps),
            Step::Compaction { input } => self.ledger.record_compaction(&Usage::new(input, 1)),
            Step::Model(model) => {
                self.ledger.set_model(key(model), Budget::default());
                if self.twin.model != model {
                    (self.twin.model, self.twin.since) = (model, self.begun);
                }
            }
        }
    }

    fn begin(&mut self) {
        self.begun += 1;
        let handle = self.ledger.begin_request(self.counted, self.stamp);
        let told = Told {
            number: self.begun,
            counted: i128::from(self.counted),
            stamp: self.stamp,
            input: 0,
            believed: false,
            context: None,
        };
        self.flying.push((handle, told));
    }

    fn report(&mut self, which: usize, input: u64, cached: u64, steps: Steps) {
        if self.flying.is_empty() {
            return;
        }
        let (handle, mut told) = self.flying.remove(which % self.flying.len());
        let mut usage = Usage::new(input, 1);
        usage.cache_read = Some(cached);
        usage = match steps {
            Steps::None => usage,
            Steps::Unlisted => usage.of_server_steps(None),
            Steps::Compacted(read) => usage.after_compaction(Some(read)),
        };
        self.ledger.record(handle, &usage);
        told.input = i128::from(input);
        let plausible = input > 0 && cached <= input;
        told.believed = plausible && matches!(steps, Steps::None);
        told.context = match steps {
            Steps::Compacted(read) if plausible && (1..=input).contains(&read) => Some(i128::from(read)),
            _ => told.believed.then_some(told.input),
        };
        self.twin.spent += told.input;
        self.twin.told.push(told);
    }

    /// The ledger's own ratio, read through a shift that loses nothing.
    fn ratio(&self) -> i128 {
        i128::from(self.ledger.correction().reported_from(1 << 16))
    }

    /// Compares everything except the learning of the ratio, for amounts of any size.
    fn agree(&self) -> Result<(), TestCaseError> {
        let ratio = self.ratio();
        prop_assert!((ONE / 2..=ONE * 4).contains(&ratio));
        let (tokens, basis) = self.twin.size(ratio, i128::from(self.counted), self.stamp);
        let size = self.ledger.size(self.counted, self.stamp);
        prop_assert_eq!(size.tokens, held(tokens));
        prop_assert_eq!(size.basis, basis);
        prop_assert_eq!(self.ledger.spend().input, held(self.twin.spent));
        for goal in [0, 1, size.tokens / 2, size.tokens] {
            let excess = i128::from(size.tokens.saturating_sub(goal)) * ONE;
            prop_assert_eq!(self.ledger.must_free(size.tokens, goal), held((excess + ratio - 1) / ratio));
        }
        Ok(())
    }
}

/// Saturates like the ledger's sums.
fn held(amount: i128) -> u64 {
    u64::try_from(amount.clamp(0, i128::from(u64::MAX))).unwrap()
}

/// Mostly usual amounts, some at the edges, none above `max`.
fn amount(max: u64) -> impl Strategy<Value = u64> {
    prop_oneof![
        6 => 0_u64..200_000,
        1 => Just(0),
        1 => Just(1),
        1 => any::<u64>().prop_map(move |any| any % max),
        1 => max - 1_000..=max,
    ]
}

fn step(max: u64) -> impl Strategy<Value = Step> {
    let steps = prop_oneof![
        8 => Just(Steps::None),
        1 => Just(Steps::Unlisted),
        1 => amount(max).prop_map(Steps::Compacted),
    ];
    let cached = prop_oneof![4 => Just(0), 1 => amount(max)];
    prop_oneof![
        4 => amount(max).prop_map(Step::Count),
        1 => Just(Step::Commit),
        4 => Just(Step::Begin),
        5 => (any::<usize>(), amount(max), cached, steps)
            .prop_map(|(which, input, cached, steps)| Step::Report { which, input, cached, steps }),
        1 => amount(max).prop_map(|input| Step::Compaction { input }),
        1 => (0_u64..3).prop_map(Step::Model),
    ]
}

/// Number of times that the generated events reach each of the cases in which a ledger can be wrong.
#[derive(Debug, Default)]
struct Census {
    exact: u32,
    grown: u32,
    shrunk: u32,
    other_revision: u32,
    disbelieved: u32,
    compacted: u32,
    out_of_order: u32,
    former_model: u32,
}

impl Census {
    fn take(&mut self, pair: &Pair, told_before: usize) {
        let count = |case: &mut u32, holds: bool| *case += u32::from(holds);
        let (counted, now) = (i128::from(pair.counted), pair.stamp);
        let last = pair.twin.current().max_by_key(|told| told.number);
        if let Some(last) = last.filter(|last| last.context.is_some()) {
            count(&mut self.compacted, !last.believed);
            let same = last.stamp.revision == now.revision;
            count(&mut self.exact, last.stamp == now && last.counted == counted);
            count(&mut self.grown, same && last.counted < counted);
            count(&mut self.shrunk, same && last.counted > counted);
            count(&mut self.other_revision, !same);
        }
        if let Some(new) = pair.twin.told.get(told_before) {
            count(&mut self.disbelieved, !new.believed);
            count(&mut self.former_model, new.number <= pair.twin.since);
            count(&mut self.out_of_order, last.is_some_and(|last| last.number > new.number));
        }
    }

    fn least(&self) -> u32 {
        let cases = [self.exact, self.grown, self.shrunk, self.other_revision, self.disbelieved];
        cases.into_iter().chain([self.compacted, self.out_of_order, self.former_model]).min().unwrap()
    }
}

#[test]
#[cfg_attr(miri, ignore = "too slow there")]
fn the_stories_come_to_every_case() {
    let (mut census, mut runner) = (Census::default(), TestRunner::deterministic());
    for _ in 0..256 {
        let story = prop::collection::vec(step(EXACT), 1..60).new_tree(&mut runner).unwrap().current();
        let mut pair = Pair::new();
        for step in &story {
            let told = pair.twin.told.len();
            pair.take(step);
            census.take(&pair, told);
        }
    }
    println!("{census:?}");
    assert!(census.least() >= 50, "{census:?}");
}

/// Below this amount the learned ratio is exact to the last bit. Above it, low bits are dropped.
const EXACT: u64 = 1 << 44;

proptest! {
    #[test]
    #[cfg_attr(miri, ignore = "too slow there")]
    fn a_ledger_is_its_twin(steps in prop::collection::vec(step(EXACT), 1..60)) {
        let mut pair = Pair::new();
        for step in &steps {
            pair.take(step);
            pair.agree()?;
            prop_assert_eq!(pair.ratio(), pair.twin.ratio());
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "too slow there")]
    fn the_largest_amounts_are_held(steps in prop::collection::vec(step(u64::MAX), 1..60)) {
        let mut pair = Pair::new();
        for step in &steps {
            pair.take(step);
            pair.agree()?;
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "too slow there")]
    fn a_correction_is_the_ratio(reported in amount(u64::MAX), counted in amount(u64::MAX)) {
        let Some(correction) = Correction::of(reported, counted) else {
            prop_assert_eq!(counted, 0);
            return Ok(());
        };
        // The raw ratio, read through a shift that loses nothing.
        let raw = i128::from(correction.reported_from(1 << 16));
        let exact = (i128::from(reported) * ONE / i128::from(counted)).clamp(ONE / 2, ONE * 4);
        let slack = i128::from(counted > 1 << 48);
        prop_assert!((raw - exact).abs() <= slack, "{} {}", raw, exact);
    }

    #[test]
    #[cfg_attr(miri, ignore = "too slow there")]
    fn scaling_there_and_back_loses_less_than_is_rounded(tokens in amount(u64::MAX / 8), ratio in 500_u64..=4_000) {
        let correction = Correction::of(ratio, 1_000).unwrap();
        prop_assert_eq!(u64::from(correction.per_mille()), ratio);
        let back = correction.counted_from(correction.reported_from(tokens));
        prop_assert!((tokens..=tokens + 2).contains(&back), "{} {}", tokens, back);
        let low = correction.reported_at_least(tokens);
        prop_assert!(correction.reported_from(tokens) - low <= 1);
    }
}
