//! Errors in the text of a strategy.

use core::error::Error;
use core::fmt;
use std::borrow::ToOwned as _;
use std::string::String;
use std::vec::Vec;

use crate::NotLast;

/// An error in the text of a strategy. It contains the possible values.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpecError {
    /// The stage has no text.
    Empty {
        /// The number of the stage, counted from 1.
        stage: usize,
    },
    /// There are too many stages.
    TooManyStages {
        /// Maximum number of stages.
        max: usize,
    },
    /// No strategy has this name.
    UnknownStrategy {
        /// The name, or its beginning.
        name: String,
        /// The nearest known name.
        nearest: Option<&'static str>,
        /// All known names.
        known: Vec<&'static str>,
    },
    /// The strategy has no such parameter.
    UnknownParameter {
        /// The strategy.
        strategy: &'static str,
        /// The name, or its beginning.
        name: String,
        /// The nearest known name.
        nearest: Option<&'static str>,
        /// All known names.
        known: Vec<&'static str>,
    },
    /// The parameter cannot have this value.
    Value {
        /// The strategy.
        strategy: &'static str,
        /// The parameter.
        parameter: &'static str,
        /// The given text, or its beginning.
        given: String,
        /// The nearest known word.
        nearest: Option<&'static str>,
        /// The allowed values.
        expected: String,
    },
    /// The parameter occurs twice.
    Twice {
        /// The strategy.
        strategy: &'static str,
        /// The parameter.
        parameter: &'static str,
    },
    /// A required parameter is missing.
    Missing {
        /// The strategy.
        strategy: &'static str,
        /// The parameter.
        parameter: &'static str,
    },
    /// Two parameters exclude each other.
    NotTogether {
        /// The strategy.
        strategy: &'static str,
        /// One of the two parameters.
        one: &'static str,
        /// The other parameter.
        other: &'static str,
    },
    /// A strategy that replaces groups by summaries is not the last one. A stage behind it would drop the summaries
    /// in the next pass.
    NotLast {
        /// The strategy.
        strategy: &'static str,
        /// The remedy: a valid order of the stages, or a choice between two of them.
        instead: String,
    },
    /// A document that is neither text nor a table with the name of a strategy, nor a list of these.
    Form {
        /// The expected form.
        expected: &'static str,
    },
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty { stage } => write!(f, "stage {stage} is empty; known: {}", Known(&super::names())),
            Self::TooManyStages { max } => write!(f, "there are more than {max} stages"),
            Self::UnknownStrategy { name, nearest, known } => {
                write!(f, "there is no strategy {name:?}{}; known: {}", Nearest(*nearest), Known(known))
            }
            Self::UnknownParameter { strategy, name, nearest, known } => {
                let (nearest, known) = (Nearest(*nearest), Known(known));
                write!(f, "{strategy} has no parameter {name:?}{nearest}; known: {known}")
            }
            Self::Value { strategy, parameter, given, nearest, expected } => {
                let nearest = Nearest(*nearest);
                write!(f, "{strategy}: {parameter} cannot be {given:?}{nearest}; known: {expected}")
            }
            Self::Twice { strategy, parameter } => write!(f, "{strategy}: {parameter} is there twice"),
            Self::Missing { strategy, parameter } => {
                write!(f, "{strategy} needs its {parameter}: {strategy}:{parameter}=...")
            }
            Self::NotTogether { strategy, one, other } => {
                write!(f, "{strategy}: take {one} or {other}, not both")
            }
            Self::NotLast { strategy, instead } => write!(f, "{}; {instead}", NotLast { stage: strategy }),
            Self::Form { expected } => write!(f, "expected {expected}"),
        }
    }
}

impl Error for SpecError {}

struct Nearest(Option<&'static str>);

impl fmt::Display for Nearest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |nearest| write!(f, "; the nearest is {nearest}"))
    }
}

struct Known<'a>(&'a [&'static str]);

impl fmt::Display for Known<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => f.write_str("none"),
            known => f.write_str(&known.join(", ")),
        }
    }
}

/// The known name with the fewest changes from the given one; `None` only if there are no names.
pub(super) fn nearest(
    given: &str,
    known: impl IntoIterator<Item = (&'static str, &'static str)>,
) -> Option<&'static str> {
    // Input from outside may be long, and the distance has quadratic cost.
    let given = beginning(given);
    let by_distance =
        known.into_iter().map(|(spelled, name)| (strsim::damerau_levenshtein(&given, spelled), name));
    by_distance.min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// Maximum number of characters of the given text that an error contains.
const GIVEN_CHARS_MAX: usize = 64;

/// The given text, or its beginning.
pub(super) fn beginning(given: &str) -> String {
    match given.char_indices().nth(GIVEN_CHARS_MAX) {
        Some((end, _)) => given.get(..end).unwrap_or_default().to_owned() + "...",
        None => given.to_owned(),
    }
}
