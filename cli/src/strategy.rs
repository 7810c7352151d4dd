//! Strategies on the command line: `truncate`, `window:turns=8`, `truncate:recent=4,window`.

use epitome::compactors::{Pipeline, SlidingWindow, Truncation, Window};
use epitome::core::Strategy;

use crate::failure::{Failure, Result};

/// The strategies of a command line, in order.
#[derive(Debug)]
pub(crate) struct Strategies {
    names: Vec<String>,
    stages: Vec<Stage>,
}

#[derive(Debug)]
enum Stage {
    Truncation(Truncation),
    Window(SlidingWindow),
}

impl Stage {
    fn as_dyn(&self) -> &dyn Strategy {
        match self {
            Self::Truncation(stage) => stage,
            Self::Window(stage) => stage,
        }
    }
}

impl Strategies {
    /// Reads a list like `truncate:recent=4,window:turns=8`.
    pub(crate) fn parse(list: &str) -> Result<Self> {
        let names: Vec<_> = list.split(',').map(|name| name.trim().to_owned()).collect();
        let stages = names.iter().map(|name| stage(name)).collect::<Result<_>>()?;
        Ok(Self { names, stages })
    }

    /// As they were given.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Calls `run` with all of them as one strategy.
    pub(crate) fn with<T>(&self, run: impl FnOnce(&dyn Strategy) -> T) -> T {
        let stages: Vec<_> = self.stages.iter().map(Stage::as_dyn).collect();
        match stages.as_slice() {
            [only] => run(*only),
            stages => run(&Pipeline::new(stages)),
        }
    }
}

fn stage(text: &str) -> Result<Stage> {
    let (name, parameter) = match text.split_once(':') {
        Some((name, parameter)) => (name, Some(parameter)),
        None => (text, None),
    };
    match name {
        "truncate" => {
            let recent = parameter.map(|given| number(text, given, &["recent"])).transpose()?;
            let truncation = Truncation::new();
            let recent = recent.map(|(_, turns)| u32::try_from(turns).unwrap_or(u32::MAX));
            Ok(Stage::Truncation(recent.map_or(truncation, |turns| truncation.preserve_recent(turns))))
        }
        "window" => {
            let given =
                parameter.map(|given| number(text, given, &["turns", "groups", "tokens"])).transpose()?;
            let window = match given {
                Some(("turns", count)) => Window::Turns(u32::try_from(count).unwrap_or(u32::MAX)),
                Some(("groups", count)) => Window::Groups(u32::try_from(count).unwrap_or(u32::MAX)),
                Some((_, count)) => Window::Tokens(count),
                None => Window::Goal,
            };
            Ok(Stage::Window(SlidingWindow::new(window)))
        }
        _ => {
            Err(Failure::input(format!("--strategy: there is no strategy {name:?}; known: truncate, window")))
        }
    }
}

/// Reads `KEY=N`, where KEY is one of `keys`.
fn number<'a>(stage: &str, parameter: &'a str, keys: &[&str]) -> Result<(&'a str, u64)> {
    let pair = parameter.split_once('=').filter(|(key, _)| keys.contains(key));
    let value = pair.and_then(|(key, value)| Some((key, value.parse().ok()?)));
    value.ok_or_else(|| {
        let known: Vec<_> = keys.iter().map(|key| format!("{key}=N")).collect();
        Failure::input(format!(
            "--strategy: {stage:?} has a parameter that is not understood; known: {}",
            known.join(", ")
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_in_order() {
        let strategies = Strategies::parse("truncate:recent=4, window:turns=8,window").unwrap();
        assert_eq!(strategies.names(), ["truncate:recent=4", "window:turns=8", "window"]);
        assert_eq!(strategies.with(|strategy| strategy.name().to_owned()), "pipeline");
    }

    #[test]
    fn what_is_not_understood_is_refused_with_what_is_known() {
        for wrong in
            ["", "trunkate", "truncate:recent=x", "truncate:turns=2", "window:turns", "truncate,,window"]
        {
            let message = Strategies::parse(wrong).unwrap_err().message().to_owned();
            assert!(message.contains("known: "), "{wrong}: {message}");
        }
    }
}
