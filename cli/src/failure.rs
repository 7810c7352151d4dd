//! Failures that end the program early, with their exit codes.

use core::fmt;
use std::io;
use std::path::Path;
use std::process;

use epitome::core::{Budget, BudgetError, Contributor, Infeasible, PlanError};
use epitome::history::{HistoryError, StoreError, StoreErrorKind};
use epitome::wire::{WireError, WireErrorKind};

use crate::amount::{counted, grouped};
use crate::args::RedactArgs;
use crate::output;
use crate::redact::Redactor;
use crate::visible::line;

/// Exit codes, from which a script can tell the kind of failure.
pub(crate) mod code {
    /// The conversation violates the rules of the profile, or a search found nothing.
    pub(crate) const VIOLATIONS: u8 = 1;
    /// The input or the command line is wrong.
    pub(crate) const INPUT: u8 = 2;
    /// The protected messages do not fit the window.
    pub(crate) const INFEASIBLE: u8 = 3;
    /// A file or a store cannot be read or written.
    pub(crate) const IO: u8 = 4;
    /// The content of the written text differs from the plan.
    pub(crate) const UNFAITHFUL: u8 = 5;
    /// A required goal was missed.
    pub(crate) const MISSED: u8 = 6;
}

/// Exit code of the program: 0, or a number of [`code`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExitCode(u8);

impl ExitCode {
    pub(crate) const SUCCESS: Self = Self(0);

    pub(crate) const fn as_u8(self) -> u8 {
        self.0
    }
}

impl From<u8> for ExitCode {
    fn from(code: u8) -> Self {
        Self(code)
    }
}

impl From<ExitCode> for process::ExitCode {
    fn from(code: ExitCode) -> Self {
        code.0.into()
    }
}

/// The failure that ends the program: an exit code, and a line for the user.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    message: String,
    /// Whether nothing is printed: the reader of the transcript is gone. The exit code shows that the output is
    /// incomplete.
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

    /// A file that cannot be read or written, or contents that cannot be written to it.
    pub(crate) fn io(path: &Path, error: &io::Error) -> Self {
        if error.get_ref().is_some_and(|inner| inner.is::<WireError>()) {
            return Self::unwritable(error);
        }
        Self::new(code::IO, format!("{}: {error}", path.display()))
    }

    /// A transcript that its format cannot hold.
    pub(crate) fn unwritable(error: &io::Error) -> Self {
        Self::input(format!(
            "the transcript cannot be written in the form of the input: {error}; --to FORMAT writes it in another one"
        ))
    }

    /// Standard output that cannot be written.
    pub(crate) fn stdout(error: &io::Error) -> Self {
        let silent = error.kind() == io::ErrorKind::BrokenPipe;
        Self { code: code::IO, message: format!("standard output: {error}"), silent }
    }

    /// A failure in the text of `path`.
    pub(crate) fn wire(path: &Path, error: &WireError) -> Self {
        let code = if error.kind() == WireErrorKind::Io { code::IO } else { code::INPUT };
        let hint = match error.kind() {
            WireErrorKind::Empty => "; give it a transcript, for example a Chat Completions request",
            WireErrorKind::NotJson if error.offset() == Some(0) => "; expected a transcript, JSON or JSONL",
            WireErrorKind::NotJson => "; mend it there",
            _ => "",
        };
        Self::new(code, format!("{}: {error}{hint}", path.display()))
    }

    /// The failure of a planner.
    pub(crate) fn plan(error: &PlanError, budget: &Budget) -> Self {
        let PlanError::Infeasible(Infeasible { floor, limit, largest, .. }) = error else {
            return Self::new(code::IO, error.to_string());
        };
        let mut message = format!(
            "what is protected has {}, but a request may have {} (window {}, less the reserve of {}): raise --window, \
             lower --reserve, or shorten the largest of it:",
            counted(*floor, "token"),
            grouped(*limit),
            grouped(budget.window()),
            grouped(budget.reserve())
        );
        let largest = largest.iter().flatten();
        let lines = largest.map(|Contributor { position, kind, tokens, .. }| {
            format!(" message {position} ({}, {})", kind.as_str(), counted(tokens.as_u64(), "token"))
        });
        message += &lines.collect::<Vec<_>>().join(",");
        Self::new(code::INFEASIBLE, message)
    }

    /// A compaction that leaves more than its goal.
    pub(crate) fn missed(tokens: u64, goal: u64, floor: u64) -> Self {
        let remedy = match floor > goal {
            true => format!("the protected messages alone have {}: raise the goal", counted(floor, "token")),
            false => "raise the goal, or give --strategy agent, which shortens more".to_owned(),
        };
        let (tokens, goal) = (counted(tokens, "token"), grouped(goal));
        Self::new(code::MISSED, format!("{tokens} would be left, and the goal is {goal}: {remedy}"))
    }

    /// The failure, with the failed action in front.
    pub(crate) fn during(mut self, what: impl fmt::Display) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }

    /// The failure, followed by advice.
    pub(crate) fn advise(mut self, what: &str) -> Self {
        self.message = format!("{}; {what}", self.message);
        self
    }

    /// The failure with another exit code.
    pub(crate) fn with_code(mut self, code: u8) -> Self {
        self.code = code;
        self
    }

    /// The failure without secrets, if redaction is on: a message may contain a key of the transcript.
    pub(crate) fn redacted(mut self, args: &RedactArgs) -> Self {
        if let Ok(Some(mut redactor)) = Redactor::new(args)
            && let Some(message) = redactor.value(None, &self.message)
        {
            self.message = message;
        }
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
            return ExitCode::from(self.code);
        }
        // The name of a file or a session may contain any character; the message stays on its line.
        output::tell(line(&format!("epitome: {}", self.message)));
        ExitCode::from(self.code)
    }
}

impl From<BudgetError> for Failure {
    fn from(error: BudgetError) -> Self {
        Self::input(error.to_string())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let code = match error.kind() {
            StoreErrorKind::NotFound
            | StoreErrorKind::Invalid
            | StoreErrorKind::Pruned
            | StoreErrorKind::Unsupported => code::INPUT,
            _ => code::IO,
        };
        Self::new(code, error.to_string())
    }
}

impl From<HistoryError> for Failure {
    fn from(error: HistoryError) -> Self {
        match error {
            HistoryError::Store(error) => error.into(),
            other => Self::new(code::IO, other.to_string()),
        }
    }
}
