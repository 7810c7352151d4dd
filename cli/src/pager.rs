//! A pager for long texts on a terminal. It starts with the first text that is written, so that an error has no pager.

use core::sync::atomic::{AtomicBool, Ordering};
use std::env;
use std::io::{self, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::output;
use crate::settings::Settings;
use crate::streams;
use crate::visible::Printable;

/// The pager that replaces standard output.
#[derive(Debug)]
enum Pager {
    None,
    /// The command that starts with the first text.
    Prepared(Command),
    Running(Child),
}

static PAGER: Mutex<Pager> = Mutex::new(Pager::None);

/// Whether the pager runs; an interrupt reads it without a lock.
static IS_RUNNING: AtomicBool = AtomicBool::new(false);

fn pager() -> MutexGuard<'static, Pager> {
    PAGER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Prepares the pager of `settings`, else of the environment variable `PAGER`, else `less`. There is none if standard
/// output is no terminal or a dumb one, or if the command is empty or `cat`.
pub(crate) fn prepare(settings: &Settings) {
    if !streams::is_out_terminal() || streams::is_dumb() {
        return;
    }
    let named = settings.pager.clone().or_else(|| env::var_os("PAGER")?.into_string().ok());
    let command = named.unwrap_or_else(|| "less".to_owned());
    let mut words = command.split_whitespace();
    let Some(program) = words.next().filter(|program| *program != "cat") else { return };
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::piped());
    // Options of `less`: exit at once if all fits on one screen, keep colors, leave the text on the screen.
    if env::var_os("LESS").is_none() {
        command.env("LESS", "FRX");
    }
    *pager() = Pager::Prepared(command);
}

/// Whether the pager has the terminal, so that an interrupt is for it.
pub(crate) fn is_running() -> bool {
    IS_RUNNING.load(Ordering::Relaxed)
}

/// Writes to the pager; `None` if there is none.
pub(crate) fn write(bytes: &[u8]) -> Option<io::Result<usize>> {
    let mut pager = pager();
    if let Pager::Prepared(command) = &mut *pager {
        IS_RUNNING.store(true, Ordering::Relaxed);
        // If the pager cannot be started, the text goes to the terminal.
        *pager = command.spawn().map_or(Pager::None, Pager::Running);
        IS_RUNNING.store(matches!(*pager, Pager::Running(_)), Ordering::Relaxed);
    }
    match &mut *pager {
        Pager::Running(child) => child.stdin.as_mut().map(|stdin| stdin.write(bytes)),
        _ => None,
    }
}

/// Ends the text, and waits until the user has closed the pager.
pub(crate) fn end() {
    let pager = core::mem::replace(&mut *pager(), Pager::None);
    if let Pager::Running(mut child) = pager {
        // Waiting closes the input of the pager first.
        let _ = child.wait();
        IS_RUNNING.store(false, Ordering::Relaxed);
        for text in core::mem::take(&mut *said()) {
            output::tell(text);
        }
    }
}

/// Prints a text on standard error when the pager has ended: until then the pager has the terminal.
pub(crate) fn tell_later(text: Printable) {
    said().push(text);
}

fn said() -> MutexGuard<'static, Vec<Printable>> {
    SAID.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The texts for standard error that wait for the end of the pager.
static SAID: Mutex<Vec<Printable>> = Mutex::new(Vec::new());
