//! Strategies as text: `tool-results:keep=3 | truncate:strength=moderate`.

mod error;
mod form;
mod make;
mod parse;
mod table;
#[cfg(test)]
mod tests;
mod texts;
mod worth;

use core::fmt;
use core::str::FromStr;
use std::borrow::ToOwned as _;
use std::format;
use std::string::{String, ToString as _};
use std::vec::Vec;

pub use error::SpecError;
pub use make::MadeStrategy;
pub use texts::SpecTexts;

use table::{STAGES, StageRow};

/// A strategy, or several strategies in order, as data. The same form serves command lines, TOML and JSON.
///
/// As text, the stages are in order, separated by `|` or `,`. A stage is a name with its parameters, each after a
/// `:`. A value is a number (`keep=3`), a word (`strength=light`), `true` or `false` (`clear-inputs=false`; the
/// name alone means `true`), or the name of a tool (`exclude-tools=search`, once for each). A `\` escapes the next
/// character. In names, `_` is the same as `-`.
///
/// As TOML or JSON, a stage is a table with the strategy's name at `strategy` and a field for each parameter; tools
/// are a list. A pipeline is a list of such tables. A string is parsed as text.
///
/// A parameter that is left out has the default of the strategy. [`StrategySpec::known`] lists all strategies and
/// parameters.
///
/// ```
/// use epitome_compactors::StrategySpec;
///
/// let spec: StrategySpec = "tool_results:keep=3:exclude-tools=web_search | truncate:strength=moderate".parse()?;
/// assert_eq!(spec.to_string(), "tool-results:keep=3:exclude-tools=web_search | truncate:strength=moderate");
///
/// let json = r#"[{"strategy": "tool-results", "keep": 3, "exclude-tools": ["web_search"]},
///                {"strategy": "truncate", "strength": "moderate"}]"#;
/// assert_eq!(serde_json::from_str::<StrategySpec>(json)?, spec);
///
/// let wrong = "tool-result:keep=3".parse::<StrategySpec>().unwrap_err();
/// assert!(wrong.to_string().starts_with("there is no strategy \"tool-result\"; the nearest is tool-results"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StrategySpec {
    stages: Vec<Stage>,
}

/// Maximum number of stages: input from outside must not decide the depth of a pass.
pub const STAGES_MAX: usize = 16;

/// One stage: its row, and the values of its parameters, in the order of the row.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stage {
    row: &'static StageRow,
    said: Vec<(usize, Value)>,
}

/// The value of a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    Number(u64),
    Switch(bool),
    Word(&'static str),
    Tools(Vec<String>),
}

impl StrategySpec {
    /// The names of all strategies, each with the names of its parameters.
    pub fn known() -> impl Iterator<Item = (&'static str, impl Iterator<Item = &'static str>)> {
        STAGES.iter().map(|row| (row.name, row.parameters.iter().map(|parameter| parameter.name)))
    }

    /// The text of each stage.
    #[must_use]
    pub fn stages(&self) -> Vec<String> {
        self.stages.iter().map(|stage| stage.to_string()).collect()
    }

    /// Whether the strategy needs [`SpecTexts`].
    #[must_use]
    pub fn needs_texts(&self) -> bool {
        self.has(table::SUPERSEDE) || self.weighs()
    }

    /// Empty texts for the stages, to be filled with the messages of an index.
    #[must_use]
    pub fn texts(&self) -> SpecTexts {
        SpecTexts::new(self.has(table::SUPERSEDE), self.weighs())
    }

    /// Whether a stage uses the worth of texts.
    fn weighs(&self) -> bool {
        [table::SALIENCE, table::CHAT].iter().any(|stage| self.has(stage))
    }

    fn has(&self, stage: &str) -> bool {
        self.stages.iter().any(|own| own.row.name == stage)
    }

    /// Whether a stage requests summaries from a summarizer.
    #[must_use]
    pub fn summarizes(&self) -> bool {
        let asks =
            |stage: &Stage| stage.row.name == table::SUMMARIZE || stage.switch("summarize") == Some(true);
        self.stages.iter().any(asks)
    }

    /// Whether a stage replaces groups by summaries or digests. Its plans then need memory for replacements, and a
    /// writer.
    #[must_use]
    pub fn replaces(&self) -> bool {
        self.stages.iter().any(Stage::replaces)
    }

    /// The strategy, with the texts of an index. With empty texts, no result is outdated and no message has a
    /// worth.
    #[must_use]
    pub fn strategy(&self, texts: SpecTexts) -> MadeStrategy {
        MadeStrategy::new(&self.stages, texts)
    }

    /// The specification of these stages, if their order is valid.
    fn checked(stages: Vec<Stage>) -> Result<Self, SpecError> {
        if stages.len() > STAGES_MAX {
            return Err(SpecError::TooManyStages { max: STAGES_MAX });
        }
        for stage in &stages {
            stage.check()?;
        }
        let early = stages.iter().rev().skip(1).find(|stage| stage.replaces());
        match early {
            Some(early) => Err(not_last(early, &stages)),
            None if stages.is_empty() => Err(SpecError::Empty { stage: 1 }),
            None => Ok(Self { stages }),
        }
    }
}

/// The error for the stage `early`, which is not last. It contains a valid order.
fn not_last(early: &Stage, stages: &[Stage]) -> SpecError {
    let (replacing, others): (Vec<&Stage>, Vec<&Stage>) = stages.iter().partition(|stage| stage.replaces());
    let said = |stages: &[&Stage], between| {
        stages.iter().map(|stage| stage.to_string()).collect::<Vec<_>>().join(between)
    };
    let instead = match replacing.as_slice() {
        [_] => format!("write {}", said(&[others, replacing].concat(), " | ")),
        several => format!("take {}, not both", said(several, " or ")),
    };
    SpecError::NotLast { strategy: early.row.name, instead }
}

impl Stage {
    fn value(&self, name: &str) -> Option<&Value> {
        let is_named = |(at, _): &&(usize, Value)| {
            self.row.parameters.get(*at).is_some_and(|parameter| parameter.name == name)
        };
        self.said.iter().find(is_named).map(|(_, value)| value)
    }

    fn number(&self, name: &str) -> Option<u64> {
        if let Some(Value::Number(number)) = self.value(name) { Some(*number) } else { None }
    }

    /// The value of a count, limited to the largest `u32`.
    fn count(&self, name: &str) -> Option<u32> {
        self.number(name).map(|number| u32::try_from(number).unwrap_or(u32::MAX))
    }

    fn switch(&self, name: &str) -> Option<bool> {
        if let Some(Value::Switch(on)) = self.value(name) { Some(*on) } else { None }
    }

    fn word(&self, name: &str) -> Option<&'static str> {
        if let Some(Value::Word(word)) = self.value(name) { Some(word) } else { None }
    }

    fn tools(&self, name: &str) -> &[String] {
        if let Some(Value::Tools(tools)) = self.value(name) { tools } else { &[] }
    }

    /// Whether the stage replaces groups by summaries. A stage behind it could drop them only in the next pass.
    fn replaces(&self) -> bool {
        [table::SUMMARIZE, table::TOOL_DIGEST, table::LEDGER, table::AGENT].contains(&self.row.name)
            || self.switch("summarize") == Some(true)
    }

    /// Checks that all required parameters have a value, that no two alternatives have one, and that the window has room
    /// for the answer.
    fn check(&self) -> Result<(), SpecError> {
        let strategy = self.row.name;
        let missing = self
            .row
            .parameters
            .iter()
            .find(|parameter| parameter.must && self.value(parameter.name).is_none());
        if let Some(parameter) = missing {
            return Err(SpecError::Missing { strategy, parameter: parameter.name });
        }
        if let (Some(window), Some(output)) = (self.number("window"), self.number("max-output"))
            && output >= window
        {
            return Err(SpecError::Value {
                strategy,
                parameter: "max-output",
                given: std::format!("{output}"),
                nearest: None,
                expected: std::format!("a number below the window of {window}"),
            });
        }
        let mut alternatives = self
            .said
            .iter()
            .filter_map(|(at, _)| self.row.parameters.get(*at).filter(|parameter| parameter.alternative));
        match (alternatives.next(), alternatives.next()) {
            (Some(one), Some(other)) => {
                Err(SpecError::NotTogether { strategy, one: one.name, other: other.name })
            }
            _ => Ok(()),
        }
    }
}

impl FromStr for StrategySpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        Self::checked(parse::stages(text)?)
    }
}

/// The form that is parsed: parameters in the order of the table, with their names in the table.
impl fmt::Display for StrategySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, stage) in self.stages.iter().enumerate() {
            f.write_str(if at > 0 { " | " } else { "" })?;
            stage.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row.name)?;
        for (at, value) in &self.said {
            let Some(parameter) = self.row.parameters.get(*at) else { continue };
            let name = parameter.name;
            match value {
                Value::Number(number) => write!(f, ":{name}={number}")?,
                Value::Switch(true) => write!(f, ":{name}")?,
                Value::Switch(false) => write!(f, ":{name}=false")?,
                Value::Word(word) => write!(f, ":{name}={word}")?,
                Value::Tools(tools) => {
                    tools.iter().try_for_each(|tool| write!(f, ":{name}={}", parse::escaped(tool)))?;
                }
            }
        }
        Ok(())
    }
}

impl Default for StrategySpec {
    /// The truncation, with its defaults.
    fn default() -> Self {
        let row = STAGES.iter().find(|row| row.name == table::TRUNCATE);
        Self { stages: row.map(|row| Stage { row, said: Vec::new() }).into_iter().collect() }
    }
}

/// The names of all strategies.
fn names() -> Vec<&'static str> {
    STAGES.iter().map(|row| row.name).collect()
}

/// The name with `-` in the place of `_`.
fn plain(name: &str) -> String {
    name.trim().to_owned().replace('_', "-")
}
