//! The settings of the user: the environment, and the settings file. Commands that agents start ignore both.

use core::convert::Infallible;
use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use serde::Deserialize;

use crate::args::Color;
use crate::failure::{Failure, Result};
use crate::streams;

/// Environment variable with the path of the file; an empty value means that there is no file.
const PATH: &str = "EPITOME_CONFIG";

/// Environment variables of the store and the session of `session` commands, if no option names them.
const STORE: &str = "EPITOME_STORE";
const SESSION: &str = "EPITOME_SESSION";

/// The commands of `session` that delete texts.
const DELETING: [&str; 3] = ["erase", "prune", "retain"];

/// The settings in the file.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Settings {
    /// The store of `session` commands, in the form of `--store`.
    store: Option<String>,
    /// The file with the key of the store.
    key_file: Option<PathBuf>,
    color: Option<Color>,
    /// The command that shows long texts; an empty one means that there is none.
    pub(crate) pager: Option<String>,
    /// The store and the session from the environment.
    #[serde(skip)]
    named: [Option<String>; 2],
}

impl Settings {
    /// Reads the environment, and the file if there is one.
    pub(crate) fn read() -> Result<Self> {
        let named = [named(STORE)?, named(SESSION)?];
        Ok(Self { named, ..Self::of_file()? })
    }

    fn of_file() -> Result<Self> {
        let Some(path) = path() else { return Ok(Self::default()) };
        match fs::read_to_string(&path) {
            Ok(text) => Self::parse(&path, &text),
            // Only a file that the environment names must exist.
            Err(error) if is_out_of_reach(error.kind()) && env::var_os(PATH).is_none() => Ok(Self::default()),
            Err(error) => Err(Failure::io(&path, &error).during("settings file")),
        }
    }

    fn parse(path: &Path, text: &str) -> Result<Self> {
        let settings: Self = toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line = before.matches('\n').count();
            // A value is behind its key.
            let key =
                before.rsplit('\n').next().and_then(|line| line.split_once('=')).map(|(key, _)| key.trim());
            let key = key.map(|key| format!("{key}: ")).unwrap_or_default();
            // A value in the wrong place may contain a password.
            let why =
                if error.message().contains("://") { "not a value of this key" } else { error.message() };
            let path = path.display();
            Failure::input(format!("settings file: {path}: line {}: {key}{why}", line + 1))
        })?;
        Ok(settings)
    }

    /// The command line with these settings as defaults, and with those of the environment.
    pub(crate) fn defaults_of(&self, command: Command) -> Command {
        let [store, session] = self.named.clone();
        let store = store.or_else(|| self.store.clone());
        command.mut_subcommand("session", |command| {
            let names: Vec<_> = command.get_subcommands().map(|one| one.get_name().to_owned()).collect();
            names.into_iter().fold(command, |command, name| {
                // A command that deletes texts needs an explicit session.
                let session = session.clone().filter(|_| !DELETING.contains(&&*name));
                command.mut_subcommand(name, |one| {
                    with_default(with_default(one, "store", store.clone()), "session", session)
                })
            })
        })
    }

    /// The color of the option, else of the settings file, unless the environment forbids colors.
    pub(crate) fn color(&self, asked: Color, matches: &ArgMatches) -> Color {
        let is_given = matches.value_source("color") == Some(ValueSource::CommandLine);
        self.color.filter(|_| !is_given && !streams::is_plain()).unwrap_or(asked)
    }

    /// Stores the key file of the store in the settings, for [`key_file_of`].
    pub(crate) fn keep_key_file(&self) {
        if let (Some(store), Some(key_file)) = (&self.store, &self.key_file) {
            let Ok(store) = store_url(store);
            let _ = KEY_FILE.set((store, in_home(&key_file.to_string_lossy()).into()));
        }
    }
}

/// The file with the key of this store, if the settings name both.
pub(crate) fn key_file_of(store: &str) -> Option<&'static Path> {
    KEY_FILE.get().filter(|(own, _)| own == store).map(|(_, path)| path.as_path())
}

/// The store in the settings file, and the file with its key.
static KEY_FILE: OnceLock<(String, PathBuf)> = OnceLock::new();

/// Whether the error means that this user has no such file.
const fn is_out_of_reach(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};

    matches!(kind, NotFound | NotADirectory | PermissionDenied)
}

fn with_default(command: Command, name: &str, value: Option<String>) -> Command {
    match value {
        Some(value) if command.get_arguments().any(|argument| argument.get_id() == name) => command
            .mut_arg(name, |argument| argument.required(false).default_value(value).hide_default_value(true)),
        _ => command,
    }
}

/// The URL of a store, with the user's folder in the place of `~/`, which no shell replaces after a colon.
pub(crate) fn store_url(url: &str) -> core::result::Result<String, Infallible> {
    Ok(match url.split_once(':') {
        Some((kind @ ("sqlite" | "jsonl"), path)) => format!("{kind}:{}", in_home(path)),
        _ => url.to_owned(),
    })
}

/// The path with the user's folder in the place of `~/`.
fn in_home(path: &str) -> String {
    let home = path.strip_prefix("~/").and_then(|rest| Some(env::home_dir()?.join(rest)));
    home.map_or_else(|| path.to_owned(), |path| path.to_string_lossy().into_owned())
}

/// The value of an environment variable; an empty one counts as not set.
fn named(name: &str) -> Result<Option<String>> {
    let value = env::var_os(name).filter(|value| !value.is_empty());
    value
        .map(|value| value.into_string().map_err(|_| Failure::input(format!("{name}: not UTF-8"))))
        .transpose()
}

fn path() -> Option<PathBuf> {
    let named = |name: &str| env::var_os(name).map(PathBuf::from);
    if let Some(path) = named(PATH) {
        return Some(path).filter(|path| !path.as_os_str().is_empty());
    }
    // The specification of these folders makes a relative path invalid.
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
        for (text, line) in [
            ("stroe = 1", "line 1: unknown field"),
            ("\n\ncolor = \"red\"", "line 3: color: unknown variant"),
            ("store =", "line 1: store: "),
        ] {
            let failure = parse(text).unwrap_err();
            assert!(failure.message().starts_with("settings file: config.toml: "), "{}", failure.message());
            assert!(failure.message().contains(line), "{}", failure.message());
        }
    }
}
