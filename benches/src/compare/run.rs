//! A complete run: sweep, sizes, loop.

use core::time::Duration;
use std::path::PathBuf;

use super::contender::{Contender, Keeping};
use super::judge::Given;
use super::loops;
use super::ours::{self, Ours};
use super::python::Python;
use super::report::Report;
use super::said::turns;
use super::sizes::{COMMON_COUNTER, Size, measure};
use super::sweep::{self, sweep};
use crate::generated::Pool;

/// The requested measurements.
#[derive(Debug, Clone)]
pub struct Options {
    /// The sizes of history.
    pub sizes: Vec<Size>,
    /// Step between the limits of the sweep for Python; the other contenders are swept at all limits.
    pub step: usize,
    /// Number of turns of the loop.
    pub turns: usize,
    /// The limit, in tokens.
    pub tokens: u64,
    /// Maximum processor time of a contender for its rounds, or for its loop.
    pub most: Duration,
    /// The Python interpreter, if there is one.
    pub python: Option<Python>,
    /// Folder for plots, for a program that draws them.
    pub plots: Option<PathBuf>,
    /// The contenders that could not be built, each with the reason.
    pub not_run: Vec<(String, String)>,
}

impl Options {
    /// Reads the arguments of a program.
    ///
    /// # Errors
    /// The usage, if the arguments are wrong.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self::full();
        while let Some(argument) = arguments.next() {
            let mut next = || arguments.next().ok_or(USAGE);
            match argument.as_str() {
                "--smoke" => options.choose(&SMOKE),
                "--quick" => options.choose(&QUICK),
                "--python" => options.python = Some(Python::new(next()?, next()?)),
                "--plots" => options.plots = Some(next()?.into()),
                "--not-run" => options.not_run.push((next()?, next()?)),
                _ => return Err(USAGE.to_owned()),
            }
        }
        Ok(options)
    }

    fn full() -> Self {
        let mut options = Self {
            sizes: Vec::new(),
            step: 0,
            turns: 0,
            tokens: 20_000,
            most: Duration::ZERO,
            python: None,
            plots: None,
            not_run: Vec::new(),
        };
        options.choose(&FULL);
        options
    }

    fn choose(&mut self, amount: &Amount) {
        let Amount { sizes, step, turns, most } = *amount;
        (self.sizes, self.step, self.turns, self.most) = (sizes.to_vec(), step, turns, most);
    }
}

const USAGE: &str =
    "usage: [--smoke | --quick] [--python INTERPRETER SCRIPT] [--plots FOLDER] [--not-run LIBRARY WHY]..";

/// Amounts of measurement.
struct Amount {
    sizes: &'static [Size],
    step: usize,
    turns: usize,
    most: Duration,
}

const FULL: Amount = Amount {
    sizes: &[
        Size { messages: 1_000, rounds: 51 },
        Size { messages: 10_000, rounds: 31 },
        Size { messages: 100_000, rounds: 7 },
    ],
    step: 1,
    turns: 10_000,
    most: Duration::from_secs(6),
};

const QUICK: Amount = Amount {
    sizes: &[Size { messages: 1_000, rounds: 11 }, Size { messages: 10_000, rounds: 5 }],
    step: 4,
    turns: 1_000,
    most: Duration::from_secs(5),
};

const SMOKE: Amount =
    Amount { sizes: &[Size { messages: 500, rounds: 2 }], step: 14, turns: 60, most: Duration::from_secs(2) };

/// Runs all measurements with these rivals.
///
/// # Panics
/// Panics if a contender has other input than the others, or if Epitome's plan is wrong.
#[must_use]
pub fn run(options: &Options, rivals: Vec<Box<dyn Contender>>) -> Report {
    let pool = Pool::new();
    let mut report = Report { turns: options.turns, not_run: options.not_run.clone(), ..Report::default() };
    let all =
        || Ours::ALL.iter().map(|ours| ours as &dyn Contender).chain(rivals.iter().map(|rival| &**rival));

    let given = Given::new(sweep::conversation(&pool), COMMON_COUNTER);
    eprintln!("the sweep");
    for contender in all() {
        report.sweep.push((contender.name(), contender.call(), contender.unit(), sweep(contender, &given)));
    }
    report.sweep.extend(options.python.iter().flat_map(|python| python.sweep(&given, options.step)));

    for size in &options.sizes {
        eprintln!("{} messages", size.messages);
        let contenders: Vec<_> = all().collect();
        let (given, mut sized) =
            measure(&pool, &contenders, *size, options.tokens, &report.sizes, options.most);
        if let Some(python) = &options.python {
            sized.rows.extend(python.rows(&given, sized.limits, size.rounds, options.most));
        }
        report.sizes.push(sized);
    }

    eprintln!("the loop");
    let turns = turns(&pool, 1, options.turns, 5);
    let limits = ours::limits(&turns.concat(), options.tokens);
    for contender in all() {
        for keeping in [Keeping::Whole, Keeping::Result] {
            let limit = limits.of(contender.unit());
            report.loops.extend(loops::run(contender, keeping, &turns, limit, options.most));
        }
    }
    report.loops.extend(options.python.iter().flat_map(|python| python.loops(&turns, limits, options.most)));
    report
}
