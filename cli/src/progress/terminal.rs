//! The progress bar on a terminal.

use core::time::Duration;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

pub(crate) use indicatif::{BinaryBytes, DecimalBytes};

use crate::streams::{is_dumb, is_err_terminal};

/// A progress bar on standard error. It is shown only on a terminal, and only after [`QUIET`].
pub(crate) struct Progress {
    what: &'static str,
    template: &'static str,
    total: u64,
    done: u64,
    steps: u32,
    /// `None` without a terminal for the bar.
    started: Option<Instant>,
    bar: Option<ProgressBar>,
}

/// Time before the bar is shown: shorter work needs none.
const QUIET: Duration = Duration::from_secs(1);
/// Number of steps between two readings of the clock.
const STEPS: u32 = 256;

impl Progress {
    /// Progress of `what`, up to `total` bytes.
    pub(crate) fn new(what: &'static str, total: u64) -> Self {
        let template = "{msg} {wide_bar} {bytes}/{total_bytes} {eta}";
        Self {
            what,
            template,
            total,
            done: 0,
            steps: 0,
            started: (is_err_terminal() && !is_dumb()).then(Instant::now),
            bar: None,
        }
    }

    /// Progress of `what`, up to `total` messages.
    pub(crate) fn of_messages(what: &'static str, total: u64) -> Self {
        let mut progress = Self::new(what, total);
        progress.template = "{msg} {wide_bar} {human_pos}/{human_len} messages {eta}";
        progress
    }

    /// Adds `more` finished bytes or messages.
    pub(crate) fn advance(&mut self, more: u64) {
        self.done = self.done.saturating_add(more);
        self.steps = self.steps.wrapping_add(1);
        if self.steps.is_multiple_of(STEPS) {
            self.show();
        }
    }

    /// Sets the number of finished bytes or messages. It reads the clock: call it not for every small step.
    pub(crate) fn reach(&mut self, done: u64) {
        self.done = done;
        self.show();
    }

    fn show(&mut self) {
        if self.bar.is_none() && self.started.is_some_and(|started| started.elapsed() > QUIET) {
            let bar = ProgressBar::with_draw_target(Some(self.total), ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template(self.template) {
                bar.set_style(style);
            }
            self.bar = Some(bar.with_message(self.what));
        }
        if let Some(bar) = &self.bar {
            bar.set_position(self.done);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}
