//! Long texts on a terminal: a pager shows them.

use std::env;
use std::process::{Child, Command, Stdio};

use crate::settings::Settings;
use crate::streams;

/// A pager that shows what is written to standard output, until it is dropped.
#[derive(Debug)]
pub(crate) struct Pager(Child);

impl Pager {
    /// Starts the pager of `settings`, else of the environment variable `PAGER`, else `less`. `None` if standard output is no
    /// terminal, if there is to be no pager, or if it cannot be started.
    pub(crate) fn start(settings: &Settings) -> Option<Self> {
        if !streams::is_out_terminal() || streams::is_dumb() {
            return None;
        }
        let named = settings.pager.clone().or_else(|| env::var_os("PAGER")?.into_string().ok());
        let command = named.unwrap_or_else(|| "less".to_owned());
        let mut words = command.split_whitespace();
        let program = words.next().filter(|program| *program != "cat")?;
        let mut command = Command::new(program);
        command.args(words).stdin(Stdio::piped());
        // End at once if all is on one screen, keep colors, and leave the text on the screen.
        if env::var_os("LESS").is_none() {
            command.env("LESS", "FRX");
        }
        let mut child = command.spawn().ok()?;
        streams::page(child.stdin.take()?);
        Some(Self(child))
    }
}

impl Drop for Pager {
    fn drop(&mut self) {
        streams::end_page();
        let _ = self.0.wait();
    }
}
