//! The settings file of the program.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{ArgMatches, Command};
use serde::Deserialize;

use crate::args::Color;
use crate::failure::{Failure, Result};

/// The path of the file; an empty one means that there is none.
const PATH: &str = "EPITOME_CONFIG";

/// The settings in the file.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Settings {
    /// The store of `session` commands, in the form of `--store`.
    store: Option<String>,
    /// The file with its key.
    key_file: Option<PathBuf>,
    color: Option<Color>,
    /// The command that shows long texts; an empty one means that none does.
    pub(crate) pager: Option<String>,
}

impl Settings {
    /// Reads the file, if there is one.
    pub(crate) fn read() -> Result<Self> {
        let Some(path) = path() else { return Ok(Self::default()) };
        match fs::read_to_string(&path) {
            Ok(text) => Self::parse(&path, &text),
            // A file that is named must be there.
            Err(error) if error.kind() == io::ErrorKind::NotFound && env::var_os(PATH).is_none() => {
                Ok(Self::default())
            }
            Err(error) => Err(Failure::io(&path, &error).during("settings file")),
        }
    }

    fn parse(path: &Path, text: &str) -> Result<Self> {
        let settings: Self = toml::from_str(text).map_err(|error| {
            let line = error
                .span()
                .and_then(|span| text.get(..span.start))
                .map_or(0, |before| before.matches('\n').count());
            let (path, why) = (path.display(), error.message());
            Failure::input(format!("settings file: {path}: line {}: {why}", line + 1))
        })?;
        Ok(settings)
    }

    /// The command line with these defaults.
    pub(crate) fn defaults_of(&self, command: Command) -> Command {
        command.mut_subcommand("session", |session| {
            let names: Vec<_> =
                session.get_subcommands().map(|command| command.get_name().to_owned()).collect();
            names.into_iter().fold(session, |session, name| {
                session.mut_subcommand(name, |command| {
                    let store = self.store.as_deref().map(home_store);
                    let key_file = self.key_file.as_deref().and_then(Path::to_str).map(in_home);
                    let command = with_default(command, "store", store);
                    with_default(command, "key_file", key_file)
                })
            })
        })
    }

    /// The color that is asked for: by an option, else here.
    pub(crate) fn color(&self, asked: Color, matches: &ArgMatches) -> Color {
        let is_given = matches.value_source("color") == Some(clap::parser::ValueSource::CommandLine);
        self.color.filter(|_| !is_given).unwrap_or(asked)
    }
}

fn with_default(command: Command, name: &str, value: Option<String>) -> Command {
    match value {
        Some(value) if command.get_arguments().any(|argument| argument.get_id() == name) => command
            .mut_arg(name, |argument| argument.required(false).default_value(value).hide_default_value(true)),
        _ => command,
    }
}

/// The URL of a store with the user's folder in the place of `~/`.
fn home_store(url: &str) -> String {
    match url.split_once(':') {
        Some((kind @ ("sqlite" | "jsonl"), path)) => format!("{kind}:{}", in_home(path)),
        _ => url.to_owned(),
    }
}

/// The path with the user's folder in the place of `~/`: no shell reads this file.
fn in_home(path: &str) -> String {
    let home = path.strip_prefix("~/").and_then(|rest| Some(env::home_dir()?.join(rest)));
    home.map_or_else(|| path.to_owned(), |path| path.to_string_lossy().into_owned())
}

fn path() -> Option<PathBuf> {
    let named = |name: &str| env::var_os(name).map(PathBuf::from);
    if let Some(path) = named(PATH) {
        return Some(path).filter(|path| !path.as_os_str().is_empty());
    }
    // A relative one is invalid by the specification of these folders.
    let folder = named("XDG_CONFIG_HOME").filter(|folder| folder.is_absolute());
    let folder =
        folder.or_else(|| env::home_dir().filter(|home| home.is_absolute()).map(|home| home.join(".config")));
    Some(folder?.join("epitome/config.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_wrong_is_told_with_its_line() {
        let parse = |text: &str| Settings::parse(Path::new("config.toml"), text);
        let all = "store = \"sqlite:a.db\"\nkey-file = \"key\"\ncolor = \"never\"\npager = \"\"\n";
        let settings = parse(all).unwrap();
        assert_eq!((settings.store.as_deref(), settings.color), (Some("sqlite:a.db"), Some(Color::Never)));
        assert_eq!(parse("").unwrap(), Settings::default());
        for (text, line) in
            [("stroe = 1", "line 1: "), ("\n\ncolor = \"red\"", "line 3: "), ("store =", "line 1: ")]
        {
            let failure = parse(text).unwrap_err();
            assert!(failure.message().starts_with("settings file: config.toml: "), "{}", failure.message());
            assert!(failure.message().contains(line), "{}", failure.message());
        }
    }
}
