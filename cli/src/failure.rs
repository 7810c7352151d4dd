//! What ends the program before its time, and with which exit code.

use core::fmt;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use epitome::core::{BudgetError, PlanError};
use epitome::std::history::{HistoryError, StoreError, StoreErrorKind};
use epitome::std::wire::{WireError, WireErrorKind};

/// Exit codes: what a script can tell from them.
pub(crate) mod code {
    /// The conversation breaks the profile's rules.
    pub(crate) const VIOLATIONS: u8 = 1;
    /// The input or the command line is wrong.
    pub(crate) const INPUT: u8 = 2;
    /// What is protected does not fit the window.
    pub(crate) const INFEASIBLE: u8 = 3;
    /// A file or a store cannot be read or written.
    pub(crate) const IO: u8 = 4;
}

/// Why the program ends: an exit code, and a line for the user.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    message: String,
    /// Whoever read our output has gone away; there is nobody to tell.
    silent: bool,
}

pub(crate) type Result<T> = core::result::Result<T, Failure>;

impl Failure {
    pub(crate) fn new(code: u8, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), silent: false }
    }

    /// Wrong input or a wrong command line.
    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self::new(code::INPUT, message)
    }

    /// A file that cannot be read or written.
    pub(crate) fn io(path: &Path, error: &io::Error) -> Self {
        Self::from_io(&path.display().to_string(), error)
    }

    /// Standard output that cannot be written.
    pub(crate) fn stdout(error: &io::Error) -> Self {
        Self::from_io("standard output", error)
    }

    fn from_io(what: &str, error: &io::Error) -> Self {
        let silent = error.kind() == io::ErrorKind::BrokenPipe;
        Self { code: code::IO, message: format!("{what}: {error}"), silent }
    }

    /// What is wrong with the text of `path`.
    pub(crate) fn wire(path: &Path, error: &WireError) -> Self {
        let code = if error.kind() == WireErrorKind::Io { code::IO } else { code::INPUT };
        let hint = match error.kind() {
            WireErrorKind::Empty => ": give it a transcript, for example a Chat Completions request",
            _ => "",
        };
        Self::new(code, format!("{}: {error}{hint}", path.display()))
    }

    /// The same failure, with what was being done.
    pub(crate) fn during(mut self, what: impl fmt::Display) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }

    pub(crate) const fn code(&self) -> u8 {
        self.code
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn report(self) -> ExitCode {
        if self.silent {
            return ExitCode::SUCCESS;
        }
        eprintln!("epitome: {}", self.message);
        ExitCode::from(self.code)
    }
}

impl From<BudgetError> for Failure {
    fn from(error: BudgetError) -> Self {
        Self::input(error.to_string())
    }
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        let code = if matches!(error, PlanError::Infeasible(_)) { code::INFEASIBLE } else { code::IO };
        Self::new(code, error.to_string())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let code = match error.kind() {
            StoreErrorKind::NotFound | StoreErrorKind::Invalid => code::INPUT,
            _ => code::IO,
        };
        Self::new(code, error.to_string())
    }
}

impl From<HistoryError> for Failure {
    fn from(error: HistoryError) -> Self {
        match error {
            HistoryError::Plan(error) => error.into(),
            HistoryError::Store(error) => error.into(),
            other => Self::new(code::IO, other.to_string()),
        }
    }
}
