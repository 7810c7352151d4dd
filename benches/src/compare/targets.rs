//! Compares the measurements with the targets of the design: Epitome's plan against the fastest call with results that
//! can be sent.

use core::fmt::Write as _;
use core::time::Duration;

use super::clock::{Times, grouped, ratio, shown};
use super::contender::Unit;
use super::report::{PYTHON, Report, is_ours, measured};
use super::sizes::{Measured, Row, Sized};
use super::sweep::Swept;

/// Required validity of the results that are compared.
#[derive(Debug, Clone, Copy)]
enum Valid {
    /// Every call has its result, every result has its call, and the limit holds: every provider requires that.
    Paired,
    /// The sweep found no fault.
    Clean,
}

impl Valid {
    const fn words(self) -> &'static str {
        match self {
            Self::Paired => "whose pairs are whole and whose limit holds",
            Self::Clean => "without any fault in the sweep",
        }
    }

    fn holds(self, swept: &Swept) -> bool {
        match self {
            Self::Paired => swept.is_paired() && swept.over.unwrap_or(0) == 0,
            Self::Clean => swept.is_clean(),
        }
    }
}

/// A time that has a target.
struct Aim {
    how: &'static str,
    times: fn(&Measured) -> &Times,
    /// Epitome's times, which are compared with the times of the others.
    mine: fn(&Measured) -> &Times,
    /// Factor by which the time of the others should be longer than Epitome's.
    ratio: u32,
}

const AS_CALLED: Aim = Aim {
    how: "as called, the history stays",
    times: |measured| &measured.kept,
    mine: |measured| &measured.kept,
    ratio: 100,
};
const GIVEN_AWAY: Aim =
    Aim { how: "as called, the history given away", times: |measured| &measured.given_away, ..AS_CALLED };
const BARE: Aim = Aim {
    how: "without cloning and dropping",
    times: |measured| &measured.bare,
    mine: |measured| &measured.bare,
    ratio: 20,
};
const PYTHONS: Aim = Aim { ratio: 1_000, ..AS_CALLED };

/// Adds a line for each target at this size.
pub(super) fn write(report: &Report, sized: &Sized, out: &mut String) {
    for (language, aims) in [("Rust", &[AS_CALLED, GIVEN_AWAY, BARE][..]), ("Python", &[PYTHONS])] {
        let others = || {
            let others = sized.rows.iter().filter(|row| !is_ours(&row.name));
            // A limit of tool uses does not limit the size of the history.
            let others = others.filter(|row| row.unit != Unit::ToolUses);
            others.filter(|row| row.name.contains(PYTHON) == (language == "Python"))
        };
        if others().next().is_none() {
            continue;
        }
        for valid in [Valid::Paired, Valid::Clean] {
            let rows: Vec<_> =
                others().filter(|row| report.swept(row).is_some_and(|swept| valid.holds(swept))).collect();
            if rows.is_empty() {
                let _ = writeln!(out, "- {language}: there is no rival {}.", valid.words());
            }
            for aim in aims {
                if let Some(line) = line(sized, &rows, aim) {
                    let _ =
                        writeln!(out, "- {language}, {}: the fastest {} is {line}", aim.how, valid.words());
                }
            }
        }
    }
    out.push('\n');
}

fn line(sized: &Sized, rows: &[&Row], aim: &Aim) -> Option<String> {
    let mine = (aim.mine)(sized.rows.first().and_then(measured)?).median()?;
    let fastest = rows.iter().filter_map(|row| Some(((aim.times)(measured(row)?).median()?, row)));
    let (time, row) = fastest.min_by_key(|(time, _)| *time)?;
    let met = time.as_secs_f64() >= f64::from(aim.ratio) * mine.as_secs_f64();
    Some(format!(
        "{} of {}, {}; Epitome's plan takes {}: {} (target {}x: {}).",
        row.call,
        row.name,
        shown(time),
        shown(mine),
        compared(time, mine),
        grouped(aim.ratio),
        if met { "met" } else { "**missed**" },
    ))
}

fn compared(time: Duration, mine: Duration) -> String {
    match time >= mine {
        true => ratio(time, mine),
        false => format!("the rival is faster, {}", ratio(mine, time)),
    }
}
