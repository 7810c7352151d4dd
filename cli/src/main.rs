//! `epitome`: shrink, inspect and store the transcripts of LLM agents.

mod amount;
mod args;
mod budget;
mod commands;
mod failure;
mod filled;
mod model;
mod output;
mod pins;
mod progress;
mod redact;
mod report;
mod request;
mod scan;
mod sessions;
mod strategy;
mod summarizer;
mod transcript;
mod visible;

use std::process::ExitCode;

use clap::Parser as _;

use args::{Args, Command};
use failure::Failure;

fn main() -> ExitCode {
    output::end_well_on_interrupt();
    let done = match Args::parse().command {
        Command::Compact(args) => commands::compact::run(&args),
        Command::Diff(args) => commands::diff::run(&args),
        Command::Show(args) => commands::show::run(&args),
        Command::Stats(args) => commands::stats::run(&args),
        Command::Bench(args) => commands::bench::run(&args),
        Command::Validate(args) => commands::validate::run(&args),
        Command::Convert(args) => commands::convert::run(&args),
        Command::Sessions(args) => commands::sessions::run(&args),
        Command::Session(args) => commands::session::run(&args),
    };
    done.unwrap_or_else(Failure::report)
}
