//! Checks that key steps do not take more instructions than before:
//! `cargo run --release -p epitome-benches --bin gate`.
//!
//! Each case runs in a separate process under valgrind, whose count is the same in every run, also on a busy machine.
//! The counts are compared with `benches/gate.txt`; a case that exceeds the tolerance in that file fails the gate.
//! `--update` writes new counts instead. `docs/benchmarks/gate.md` describes when to do that.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool: its table is its output"
)]
#![expect(clippy::unwrap_used, reason = "a measurement that cannot be made ends the run")]

mod baseline;
mod cases;

use core::error::Error;
use core::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use baseline::{Baseline, Origin, Verdict};
use cases::{CASES, Case};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        [] => compare(),
        ["--update"] => update(),
        ["--once", name] => {
            let case = CASES.iter().find(|case| case.name == *name).ok_or("no case has this name")?;
            (case.run)(&mut measured);
            Ok(ExitCode::SUCCESS)
        }
        _ => {
            eprintln!("usage: gate [--update]");
            Ok(ExitCode::from(2))
        }
    }
}

/// Runs `work`. Only the instructions in this function are counted.
#[inline(never)]
fn measured(work: &mut dyn FnMut() -> u64) {
    black_box(work());
}

/// Prints a table of all cases. Fails if a case has become slower.
fn compare() -> Result<ExitCode, Box<dyn Error>> {
    let (path, origin) = (path(), Origin::here()?);
    let baseline = Baseline::parse(&std::fs::read_to_string(&path)?)?;
    if let Some(why) = no_valgrind().or_else(|| baseline.origin.differs_from(&origin)) {
        println!("gate: skipped: {why}");
        return Ok(ExitCode::SUCCESS);
    }
    println!("| case | instructions | before | change | shows; matters because |");
    println!("|---|---:|---:|---:|---|");
    let (mut failed, mut faster) = (Vec::new(), Vec::new());
    for case in CASES {
        let now = count(case)?;
        let (before, change, verdict) = match baseline.instructions(case.name) {
            None => ("-".to_owned(), "-".to_owned(), Verdict::Slower),
            Some(before) => {
                let change = (now as f64 / before as f64 - 1.0) * 100.0;
                (before.to_string(), format!("{change:+.2} %"), baseline.verdict(now, before))
            }
        };
        println!("| {} | {now} | {before} | {change} | {} |", case.name, case.why);
        match verdict {
            Verdict::Slower => failed.push(case.name),
            Verdict::Faster => faster.push(case.name),
            Verdict::Same => {}
        }
    }
    let tolerance = baseline.tolerance_percent;
    if !faster.is_empty() {
        println!("\nfaster by more than {tolerance} %: {}; `gate --update` keeps it so", faster.join(", "));
    }
    if failed.is_empty() {
        println!("\n{} cases, none more than {tolerance} % over its baseline", CASES.len());
        return Ok(ExitCode::SUCCESS);
    }
    println!(
        "\nmore than {tolerance} % over the baseline, or without one: {}; make it faster, or, if it has to be so, say why in \
         the commit that runs `gate --update`",
        failed.join(", ")
    );
    Ok(ExitCode::FAILURE)
}

/// Writes the current counts.
fn update() -> Result<ExitCode, Box<dyn Error>> {
    if let Some(why) = no_valgrind() {
        return Err(why.into());
    }
    let before = std::fs::read_to_string(path()).ok().and_then(|text| Baseline::parse(&text).ok());
    let tolerance_percent = before.map_or(TOLERANCE_PERCENT, |before| before.tolerance_percent);
    let counts = CASES.iter().map(|case| Ok((case.name.to_owned(), count(case)?)));
    let counts = counts.collect::<Result<Vec<_>, Box<dyn Error>>>()?;
    let baseline = Baseline { origin: Origin::here()?, tolerance_percent, counts };
    std::fs::write(path(), baseline.to_string())?;
    println!("{baseline}");
    Ok(ExitCode::SUCCESS)
}

/// Counts the instructions of a case.
fn count(case: &Case) -> Result<u64, Box<dyn Error>> {
    let ran = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=*gate::measured*"])
        .arg(std::env::current_exe()?)
        .args(["--once", case.name])
        .output()?;
    let said = String::from_utf8_lossy(&ran.stderr);
    collected(&said).ok_or_else(|| format!("{}: valgrind has counted nothing:\n{said}", case.name).into())
}

/// The number of instructions that callgrind has collected; `None` if there is none, as for a program without symbols.
fn collected(said: &str) -> Option<u64> {
    let number = said.lines().find_map(|line| line.split_once("Collected : "))?.1;
    number.trim().parse().ok().filter(|instructions| *instructions > 0)
}

fn no_valgrind() -> Option<String> {
    let found = Command::new("valgrind").arg("--version").output();
    found.is_err().then(|| "valgrind is not installed".to_owned())
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("gate.txt")
}

/// Default tolerance: more than twice the effect of different memory addresses, and less than one needless pass over
/// any data.
const TOLERANCE_PERCENT: u64 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_found_in_what_valgrind_says() {
        let said = "==7== Callgrind, a call-graph generating cache profiler\n==7== Events    : Ir\n==7== Collected : 1234567\n";
        assert_eq!(collected(said), Some(1_234_567));
        for nothing in ["", "==7== Collected : 0", "==7== Collected : x"] {
            assert_eq!(collected(nothing), None);
        }
    }

    #[test]
    fn every_case_has_a_baseline_and_the_other_way_round() {
        let baseline = Baseline::parse(&std::fs::read_to_string(path()).unwrap()).unwrap();
        let names: Vec<&str> = baseline.counts.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, CASES.iter().map(|case| case.name).collect::<Vec<_>>());
        assert!(names.len() >= 10);
    }

    #[test]
    fn every_case_runs() {
        for case in CASES {
            let mut results = Vec::new();
            (case.run)(&mut |work| results.push(work()));
            assert!(matches!(results.as_slice(), [result] if *result > 0), "{}: {results:?}", case.name);
        }
    }
}
