//! The lines of a history, in runs of one speaker.

use core::ops::Range;
use std::borrow::Cow;

/// The speaker of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    /// No speaker: a run of aider begins.
    Start,
    User,
    /// aider itself.
    Program,
    Assistant,
}

/// Successive lines of one speaker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) speaker: Speaker,
    /// The range in the text, without the blank lines around it.
    pub(super) range: Range<usize>,
}

/// The signs that identify the speaker of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Marks {
    /// The lines of the user end in two spaces, in aider's form.
    Spaced,
    /// No line with the beginning of a user's line ends in two spaces.
    Bare,
}

/// Whether `text` begins like a history of aider.
pub(crate) fn is_history(text: &str) -> bool {
    text.trim_start().starts_with(Speaker::Start.mark())
}

/// The runs of `text`.
pub(super) fn runs(text: &str, marks: Marks) -> Vec<Run> {
    let (mut runs, mut at, mut is_after_blank) = (Vec::<Run>::new(), 0_usize, true);
    for raw in text.split_inclusive('\n') {
        let line = without_break(raw);
        let range = at..at.saturating_add(line.len());
        at = at.saturating_add(raw.len());
        let speaker = marks.speaker(line);
        if line.trim().is_empty() {
            is_after_blank = true;
            continue;
        }
        let goes_on = |last: &&mut Run| {
            let may = match speaker {
                Speaker::Start => false,
                Speaker::Assistant => true,
                Speaker::User | Speaker::Program => !is_after_blank,
            };
            may && last.speaker == speaker
        };
        match runs.last_mut().filter(goes_on) {
            Some(last) => last.range.end = range.end,
            None => runs.push(Run { speaker, range }),
        }
        is_after_blank = false;
    }
    runs
}

impl Marks {
    /// The signs in `text`.
    pub(super) fn of(text: &str) -> Self {
        let mut users = text
            .split('\n')
            .map(|line| line.strip_suffix('\r').unwrap_or(line))
            .filter(|line| is_marked(line));
        if users.any(|line| line.ends_with(END)) { Self::Spaced } else { Self::Bare }
    }

    pub(super) fn speaker(self, line: &str) -> Speaker {
        if line.starts_with(Speaker::Start.mark()) {
            Speaker::Start
        } else if line.starts_with(Speaker::Program.mark()) {
            Speaker::Program
        } else if is_marked(line) && (self == Self::Bare || line.ends_with(END)) {
            Speaker::User
        } else {
            Speaker::Assistant
        }
    }
}

impl Speaker {
    /// The beginning of the speaker's lines.
    const fn mark(self) -> &'static str {
        match self {
            Self::Start => "# aider chat started at ",
            Self::User => "#### ",
            Self::Program => "> ",
            Self::Assistant => "",
        }
    }

    /// The text of the speaker in a run.
    pub(super) fn said(self, run: &str) -> Cow<'_, str> {
        if self == Self::Assistant {
            let text = run.trim();
            return if text.contains("\r\n") { text.replace("\r\n", "\n").into() } else { text.into() };
        }
        // A blank last line has lost the space of its mark.
        let words = |line| {
            let line = without_break(line);
            line.strip_suffix(END).unwrap_or(line).strip_prefix(self.mark()).unwrap_or_default()
        };
        let mut lines = run.split_inclusive('\n').map(words);
        match (lines.next(), lines.next()) {
            (Some(first), None) => first.into(),
            (first, second) => {
                let lines: Vec<_> = first.into_iter().chain(second).chain(lines).collect();
                lines.join("\n").into()
            }
        }
    }

    /// The lines of the speaker with `text`, in the place of `run` if there is one.
    pub(super) fn lines(self, text: &str, run: Option<&str>) -> String {
        let line_break = if run.is_some_and(|run| run.contains("\r\n")) { "\r\n" } else { "\n" };
        let has_end = run.is_none_or(|run| run.lines().any(|line| line.ends_with(END)));
        let line = |line: &str| match (self, has_end) {
            (Self::Assistant, _) => line.to_owned(),
            (_, true) => format!("{}{line}{END}", self.mark()),
            // If one line of the user ended in spaces, all others would become headings.
            (_, false) => format!("{}{}", self.mark(), line.trim_end()),
        };
        let text = if self == Self::Assistant { text.trim() } else { text };
        text.split('\n').map(line).collect::<Vec<_>>().join(line_break)
    }
}

/// Whether a line begins like a line of the user.
pub(super) fn is_marked(line: &str) -> bool {
    line.starts_with(Speaker::User.mark())
}

fn without_break(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}

/// The end of each line of the user and of the program: a line break of markdown.
const END: &str = "  ";
