//! Compares Epitome with Python packages, on the same conversations and limits; `benches/compare/rust` adds the crates.
//!
//! `beside_others [--smoke] [--python INTERPRETER SCRIPT]` prints the tables. Without Python, it measures Epitome alone
//! and states that. It fails if the validity sweep finds a fault in one of Epitome's strategies.

#![expect(clippy::print_stdout, reason = "a command-line tool: its report is its output")]

use std::process::ExitCode;

use epitome_benches::compare::run::{Options, run};

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(wrong) => {
            println!("{wrong}");
            return ExitCode::from(2);
        }
    };
    let report = run(&options, Vec::new());
    println!("{}", report.to_markdown());
    match report.faults_of_ours().count() {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
