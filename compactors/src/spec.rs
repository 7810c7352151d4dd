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

/// A strategy, or several one after another, as data: what a command line, a TOML file and a JSON document say alike.
///
/// As text, stages stand in order with `|` or `,` between, each a name and its parameters with `:` before each: a number
/// (`keep=3`), a word (`strength=light`), `true` or `false` (`clear-inputs=false`; the name alone is `true`), or the name of a
/// tool (`exclude-tools=search`, once for each). A `\` before a character takes it as it is. `_` in a name is `-`.
///
/// As TOML or JSON a stage is a table with the strategy's name at `strategy` and a field for each parameter (tools are a
/// list), a pipeline a list of such tables; a string is read as text.
///
/// What is not said has the strategy's own default. What may be said is at [`StrategySpec::known`].
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

/// Maximum number of stages: a line from outside does not decide how deep a pass goes.
pub const STAGES_MAX: usize = 16;

/// One stage: its row, and what is said of its parameters, in the order of the row.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stage {
    row: &'static StageRow,
    said: Vec<(usize, Value)>,
}

/// Value of a parameter.
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

    /// Whether it needs [`SpecTexts`].
    #[must_use]
    pub fn needs_texts(&self) -> bool {
        self.has(table::SUPERSEDE) || self.weighs()
    }

    /// For its stages, before they are shown the messages of an index.
    #[must_use]
    pub fn texts(&self) -> SpecTexts {
        SpecTexts::new(self.has(table::SUPERSEDE), self.weighs())
    }

    /// Whether it chooses by the worth of texts.
    fn weighs(&self) -> bool {
        [table::SALIENCE, table::CHAT].iter().any(|stage| self.has(stage))
    }

    fn has(&self, stage: &str) -> bool {
        self.stages.iter().any(|own| own.row.name == stage)
    }

    /// Whether it asks for summaries that a summarizer has to write.
    #[must_use]
    pub fn summarizes(&self) -> bool {
        let asks =
            |stage: &Stage| stage.row.name == table::SUMMARIZE || stage.switch("summarize") == Some(true);
        self.stages.iter().any(asks)
    }

    /// Whether it puts summaries or digests in the place of what was said: a plan of it needs memory for them, and somebody
    /// who writes them.
    #[must_use]
    pub fn replaces(&self) -> bool {
        self.stages.iter().any(Stage::replaces)
    }

    /// The strategy, for the index whose texts these are; without any, no result is stale and no message says anything.
    #[must_use]
    pub fn strategy(&self, texts: SpecTexts) -> MadeStrategy {
        MadeStrategy::new(&self.stages, texts)
    }

    /// The stages, if they may stand in this order.
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

/// The stage `early` has others behind it: says in which order they may stand.
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

    /// A number that counts something: none is larger.
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

    /// Whether it puts summaries in the place of what was said. What follows could only drop them in the pass after.
    fn replaces(&self) -> bool {
        [table::SUMMARIZE, table::TOOL_DIGEST, table::LEDGER, table::AGENT].contains(&self.row.name)
            || self.switch("summarize") == Some(true)
    }

    /// Whether everything is said that must be, and nothing that excludes something else.
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

/// In the form that is read: parameters in the order of the table, with the names there.
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
    /// Truncation with its defaults.
    fn default() -> Self {
        let row = STAGES.iter().find(|row| row.name == table::TRUNCATE);
        Self { stages: row.map(|row| Stage { row, said: Vec::new() }).into_iter().collect() }
    }
}

/// The names of all strategies.
fn names() -> Vec<&'static str> {
    STAGES.iter().map(|row| row.name).collect()
}

/// `_` is `-`.
fn plain(name: &str) -> String {
    name.trim().to_owned().replace('_', "-")
}
