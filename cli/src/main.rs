//! `epitome`: shrink, inspect and store the transcripts of LLM agents.

mod amount;
mod archive;
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
mod redaction;
mod report;
mod request;
mod scan;
mod sessions;
mod silent;
mod strategy;
mod summarizer;
mod transcript;
mod visible;
mod written;

use std::process::ExitCode;

use clap::Parser as _;

use args::{Args, Command};

fn main() -> ExitCode {
    output::end_well_on_interrupt();
    let command = match Args::try_parse() {
        Ok(args) => args.command,
        Err(error) => return usage(&error),
    };
    let done = match &command {
        Command::Compact(args) => commands::compact::run(args),
        Command::Diff(args) => commands::diff::run(args),
        Command::Show(args) => commands::show::run(args),
        Command::Stats(args) => commands::stats::run(args),
        Command::Bench(args) => commands::bench::run(args),
        Command::Eval(args) => commands::eval::run(args),
        Command::Validate(args) => commands::validate::run(args),
        Command::Convert(args) => commands::convert::run(args),
        Command::Handoff(args) => commands::handoff::run(args),
        Command::Sessions(args) => commands::sessions::run(args),
        Command::Search(args) => commands::search::run(args),
        #[cfg(feature = "mcp")]
        Command::Mcp(args) => commands::mcp::run(args),
        Command::Session(args) => commands::session::run(args),
    };
    done.unwrap_or_else(|failure| match command.redact() {
        Some(args) => failure.redacted(args).report(),
        None => failure.report(),
    })
}

/// Says what is wrong with the command line, or the help or version that was asked for.
fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // Nothing in it comes from elsewhere.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    output::tell(error.to_string());
    ExitCode::from(failure::code::INPUT)
}
