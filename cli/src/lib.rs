//! The program `epitome` as a library: shrink, inspect and store the transcripts of LLM agents.
//!
//! [`main`] is the program. [`call`] runs one of its commands within the calling process, on a text in memory. The
//! libraries for other languages use it. For Rust programs the crate `epitome` offers more: types for messages,
//! budgets, strategies and stores.

mod amount;
mod archive;
mod args;
mod budget;
mod commands;
mod failure;
mod filled;
mod model;
mod output;
#[cfg(feature = "report")]
mod page;
mod pager;
mod pins;
mod progress;
mod redact;
mod redaction;
mod report;
mod request;
mod scan;
mod sessions;
mod settings;
mod silent;
mod strategy;
mod streams;
mod summarizer;
mod transcript;
mod visible;
mod written;

use std::ffi::OsString;
use std::process;

use clap::{CommandFactory as _, FromArgMatches as _};

use args::{Args, Command};
use failure::{ExitCode, Failure, Result};
use settings::Settings;
use streams::Out;

/// Runs the program with the command line of the process.
#[must_use]
pub fn main() -> process::ExitCode {
    output::end_well_on_interrupt();
    run(std::env::args_os()).into()
}

/// The result of a command that ran in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answer {
    /// The exit code of the program: 0 done, 1 violations or nothing found, 2 wrong input or arguments, 3 the protected messages do
    /// not fit the window, 4 a file or a store failed, 5 the result reads back as something else and was not written, 6 the goal was
    /// missed with `--require-goal`.
    pub exit_code: u8,
    /// The standard output of the command.
    pub output: Vec<u8>,
    /// The standard error of the command: warnings and, if the exit code is not 0, the reason.
    pub diagnostics: Vec<u8>,
}

/// Runs the command `arguments` (without the name of the program) with `input` as standard input. The file `-` is that input, and
/// `-o -` is the output in memory; other files and stores are those of the machine.
///
/// The commands that never end by themselves, `mcp`, `show --follow` and `session inspect`, are refused with exit code 2.
///
/// ```
/// let request = r#"{"messages": [{"role": "user", "content": "Hello"}]}"#;
/// let answer = epitome_cli::call(["validate", "-", "--profile", "openai-chat"], request);
/// assert_eq!((answer.exit_code, &*answer.diagnostics), (0, &b""[..]));
///
/// let answer = epitome_cli::call(["validate", "-"], "no JSON");
/// assert_eq!(answer.exit_code, 2);
/// assert!(answer.diagnostics.starts_with(b"epitome: standard input: "));
/// ```
pub fn call<A: Into<OsString>>(arguments: impl IntoIterator<Item = A>, input: impl Into<Vec<u8>>) -> Answer {
    let arguments = core::iter::once("epitome".into()).chain(arguments.into_iter().map(Into::into));
    let (code, output, diagnostics) = streams::in_memory(input.into(), || run(arguments));
    Answer { exit_code: code.as_u8(), output, diagnostics }
}

fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<_> = arguments.collect();
    // A caller in the same process gives all options itself; so does an agent that starts the program.
    let agents_command = agents_command(&arguments);
    let is_alone = !streams::is_in_memory() && agents_command.is_none();
    // Exit code 2 of a hook would stop the compaction.
    let wrong = if agents_command == Some("hook") { failure::code::IO } else { failure::code::INPUT };
    let read = if is_alone { Settings::read() } else { Ok(Settings::default()) };
    let (settings, unread) =
        read.map_or_else(|failure| (Settings::default(), Some(failure)), |read| (read, None));
    let command_line = Args::command();
    let command_line = if is_alone { settings.defaults_of(command_line) } else { command_line };
    let matches = command_line.try_get_matches_from(arguments);
    let parsed = matches.and_then(|matches| Args::from_arg_matches(&matches).map(|args| (args, matches)));
    let (Args { command, color, no_pager }, matches) = match (parsed, unread) {
        (Err(error), None) => return usage(&error, wrong),
        // The help does not depend on the settings.
        (Err(error), Some(_)) if !error.use_stderr() => return usage(&error, wrong),
        (_, Some(failure)) => return failure.report(),
        (Ok(parsed), None) => parsed,
    };
    if is_alone {
        settings.keep_key_file();
        streams::set_color(settings.color(color, &matches));
        if command.is_long() && !no_pager {
            pager::prepare(&settings);
        }
    }
    let done = done(&command);
    pager::end();
    done.unwrap_or_else(|failure| match command.redact() {
        Some(args) => failure.redacted(args).report(),
        None => failure.report(),
    })
}

/// The command, if it is one that agents start: no setting of the user may change or stop its answer.
fn agents_command(arguments: &[OsString]) -> Option<&'static str> {
    let mut words = arguments.iter().skip(1);
    while let Some(word) = words.next() {
        if word == "--color" {
            words.next();
        } else if !word.as_encoded_bytes().starts_with(b"-") {
            return ["hook", "mcp"].into_iter().find(|command| word == command);
        }
    }
    None
}

fn done(command: &Command) -> Result<ExitCode> {
    if streams::is_in_memory() && command.is_endless() {
        return Err(Failure::input(
            "this command runs until it is interrupted: start the program `epitome` for it",
        ));
    }
    match command {
        Command::Compact(args) => commands::compact::run(args),
        Command::Diff(args) => commands::diff::run(args),
        Command::Show(args) => commands::show::run(args),
        Command::Stats(args) => commands::stats::run(args),
        Command::Bench(args) => commands::bench::run(args),
        Command::Eval(args) => commands::eval::run(args),
        #[cfg(feature = "report")]
        Command::Report(args) => commands::report::run(args),
        Command::Validate(args) => commands::validate::run(args),
        Command::Convert(args) => commands::convert::run(args),
        Command::Handoff(args) => commands::handoff::run(args),
        Command::Hook(args) => commands::hook::run(args),
        Command::Sessions(args) => commands::sessions::run(args),
        Command::Search(args) => commands::search::run(args),
        #[cfg(feature = "mcp")]
        Command::Mcp(args) => commands::mcp::run(args),
        Command::Session(args) => commands::session::run(args),
        #[cfg(feature = "manual")]
        Command::Completions { shell } => commands::manual::completions(*shell),
        #[cfg(feature = "manual")]
        Command::Man { dir } => commands::manual::man(dir.as_deref()),
    }
}

/// Prints the error of the command line and returns the exit code `wrong`, or prints the requested help or version.
fn usage(error: &clap::Error, wrong: u8) -> ExitCode {
    if error.use_stderr() {
        let text = error.to_string();
        output::tell(
            text.strip_prefix("error: ").map_or_else(|| text.clone(), |text| format!("epitome: {text}")),
        );
        return ExitCode::from(wrong);
    }
    // The text contains nothing from outside of the program.
    let said = match streams::is_out_terminal() {
        true => error.print(),
        false => std::io::Write::write_all(&mut Out, error.to_string().as_bytes()),
    };
    match said {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Failure::stdout(&error).report(),
        _ => ExitCode::SUCCESS,
    }
}
