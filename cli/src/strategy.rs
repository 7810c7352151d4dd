//! Strategies on the command line: `truncate`, `window:turns=8`, `tool-results:keep=5:inputs | truncate`.

use epitome::compactors::{MadeStrategy, SpecTexts, StrategySpec};
use epitome::core::Strategy;

use crate::failure::{Failure, Result};

/// The strategies of a command line, in order.
#[derive(Debug)]
pub(crate) struct Strategies {
    names: Vec<String>,
    spec: StrategySpec,
    made: MadeStrategy,
}

impl Strategies {
    /// Reads a list like `truncate:recent=4 | window:turns=8`, or the same in JSON or TOML.
    pub(crate) fn parse(list: &str) -> Result<Self> {
        let spec = match list.trim_start() {
            json if json.starts_with(['{', '[', '"']) => {
                serde_json::from_str(json).map_err(|error| error.to_string())
            }
            toml if toml.starts_with("strategy") => {
                toml::from_str(toml).map_err(|error| error.message().to_owned())
            }
            text => text.parse::<StrategySpec>().map_err(|error| error.to_string()),
        };
        let spec = spec.map_err(|error| Failure::input(format!("--strategy: {error}")))?;
        let made = spec.strategy(spec.texts());
        Ok(Self { names: spec.stages(), spec, made })
    }

    /// The named lists, or else `default`, for a command without a model.
    pub(crate) fn without_model(named: &[String], default: &[&str], command: &str) -> Result<Vec<Self>> {
        let parsed: Vec<_> = match named {
            [] => default.iter().map(|list| Self::parse(list)).collect::<Result<_>>()?,
            named => named.iter().map(|list| Self::parse(list)).collect::<Result<_>>()?,
        };
        match parsed.iter().any(Self::summarize) {
            true => Err(Failure::input(format!(
                "--strategy: a summary is written by a model, and {command} asks none: `compact --summarizer URL` does, \
                 tool-digest needs none"
            ))),
            false => Ok(parsed),
        }
    }

    /// The names of the strategies, each with its parameters.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether a strategy needs a summarizer.
    pub(crate) fn summarize(&self) -> bool {
        self.spec.summarizes()
    }

    /// The strategies for one conversation: `look` shows its messages to the `SpecTexts`, if the strategies need them.
    pub(crate) fn about(&self, look: impl FnOnce(&mut SpecTexts) -> Result<()>) -> Result<Self> {
        let mut texts = self.spec.texts();
        if self.spec.needs_texts() {
            look(&mut texts)?;
        }
        Ok(Self { names: self.names.clone(), spec: self.spec.clone(), made: self.spec.strategy(texts) })
    }

    /// Calls `run` with the first `stages` strategies.
    pub(crate) fn with_first<T>(&self, stages: usize, run: impl FnOnce(&dyn Strategy) -> T) -> T {
        run(&self.made.first(stages))
    }

    /// Calls `run` with all strategies as one.
    pub(crate) fn with<T>(&self, run: impl FnOnce(&dyn Strategy) -> T) -> T {
        run(&self.made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_in_order() {
        let strategies = Strategies::parse("truncate:recent=4, window:turns=8|window").unwrap();
        assert_eq!(strategies.names(), ["truncate:preserve-recent=4", "window:keep-turns=8", "window"]);
        assert_eq!(strategies.with(|strategy| strategy.name().to_owned()), "pipeline");
        assert!(!strategies.summarize() && Strategies::parse("summarize").unwrap().summarize());
    }

    #[test]
    fn a_list_is_read_as_text_json_and_toml() {
        let text = Strategies::parse("tool-results:keep=5 | truncate").unwrap();
        let json = r#"[{"strategy": "tool-results", "keep": 5}, {"strategy": "truncate"}]"#;
        let texts = r#"["tool-results:keep=5", "truncate"]"#;
        let mixed = r#"[{"strategy": "tool-results", "keep": 5}, "truncate"]"#;
        for json in [json, texts, mixed] {
            assert_eq!(Strategies::parse(json).unwrap().names(), text.names(), "{json}");
        }
        let one = Strategies::parse("strategy = \"tool-results\"\nkeep = 5").unwrap();
        assert_eq!(one.names(), ["tool-results:keep=5"]);
        for wrong in [r#"{"strategy": "trunkate"}"#, "strategy = \"trunkate\"", "strategy = ", "{"] {
            assert!(Strategies::parse(wrong).unwrap_err().message().starts_with("--strategy: "), "{wrong}");
        }
    }

    #[test]
    fn what_is_not_understood_is_refused_with_what_is_known() {
        for wrong in ["", "trunkate", "truncate:recent=x", "truncate:turns=2", "truncate,,window"] {
            let failure = Strategies::parse(wrong).unwrap_err();
            let message = failure.message();
            assert!(message.starts_with("--strategy: ") && message.contains("known: "), "{wrong}: {message}");
        }
    }
}
