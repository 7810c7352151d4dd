//! `epitome completions` and `epitome man`, made from the description of the command line.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use clap::CommandFactory as _;
use clap_complete::{Shell, generate};
use clap_mangen::{Man, generate_to};

use crate::args::Args;
use crate::failure::{ExitCode, Failure, Result};
use crate::output;
use crate::streams::Out;
use crate::visible::line;

/// Prints the completions of `shell`.
pub(crate) fn completions(shell: Shell) -> Result<ExitCode> {
    let mut script = Vec::new();
    generate(shell, &mut Args::command(), "epitome", &mut script);
    say(&script)
}

/// Prints the manual page of the program, or writes one for each command to a folder.
pub(crate) fn man(folder: Option<&Path>) -> Result<ExitCode> {
    let command = Args::command();
    let Some(folder) = folder else {
        let mut page = Vec::new();
        Man::new(command).render(&mut page).map_err(|error| Failure::stdout(&error))?;
        return say(&page);
    };
    fs::create_dir_all(folder)
        .and_then(|()| generate_to(command, folder))
        .map_err(|error| Failure::io(folder, &error))?;
    output::tell(line(&format!("epitome: wrote the manual pages to {}", folder.display())));
    Ok(ExitCode::SUCCESS)
}

fn say(bytes: &[u8]) -> Result<ExitCode> {
    // A reader that stops early is no failure.
    match Out.write_all(bytes) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::stdout(&error)),
        _ => Ok(ExitCode::SUCCESS),
    }
}
