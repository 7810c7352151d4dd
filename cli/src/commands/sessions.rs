//! `epitome sessions`: lists the sessions of agents in the user's home.

use core::error::Error;
use std::io::{BufReader, Read as _};
use std::time::{SystemTime, UNIX_EPOCH};

use epitome::wire::document::utf8;
use epitome::wire::{Outline, ReadOptions, SessionLines, WireErrorKind, read};
use serde::Serialize;

use crate::amount::{counted, grouped};
use crate::args::SessionsArgs;
use crate::failure::{ExitCode, Failure, Result, code};
use crate::output::{self, to_json};
use crate::sessions::{
    self, BUFFER_BYTES, Found, Home, LINE_BYTES_MAX, Project, WHOLE_BYTES_MAX, Wanted, find, nothing,
};
use crate::transcript::whole_bytes;
use crate::visible::line;

/// A session in the list.
#[derive(Debug, Serialize)]
struct Row {
    tool: &'static str,
    project: String,
    id: String,
    /// Number of messages of the active conversation.
    messages: Option<usize>,
    /// Number of side chains, branches, and conversations from before compactions.
    other_conversations: Option<usize>,
    /// In the form of RFC 3339.
    last_written: String,
    path: String,
    /// The reason that the session cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

pub(crate) fn run(args: &SessionsArgs) -> Result<ExitCode> {
    output::say(&list(args)?)?;
    Ok(ExitCode::SUCCESS)
}

/// The list.
pub(crate) fn list(args: &SessionsArgs) -> Result<String> {
    let homes = Home::all()?;
    let wanted = args.project.as_deref().map(Wanted::named);
    let found = find(&homes).into_iter().map(|found| (Project::of(&found), found));
    let of_project =
        |(project, _): &(Project, Found)| wanted.as_ref().is_none_or(|wanted| wanted.is(project));
    let found: Vec<_> = found.filter(of_project).collect();
    if found.is_empty() {
        return Err(Failure::new(code::VIOLATIONS, nothing(&homes, args.project.as_deref())));
    }
    let limit = if args.limit == 0 { found.len() } else { args.limit };
    let older = found.len().saturating_sub(limit);
    let rows: Vec<_> =
        found.into_iter().take(limit).map(|(project, found)| Row::of(project, &found)).collect();
    match args.json {
        true => to_json(&rows),
        false => Ok(to_text(&rows, older)),
    }
}

impl Row {
    fn of(project: Project, found: &Found) -> Self {
        let mut row = Self {
            tool: found.tool(),
            project: project.folder,
            id: project.id,
            messages: None,
            other_conversations: None,
            last_written: rfc3339(found.modified),
            path: found.path.to_string_lossy().into_owned(),
            error: None,
        };
        match counts(found) {
            Ok((messages, others)) => {
                (row.messages, row.other_conversations) = (Some(messages), Some(others))
            }
            Err(error) => row.error = Some(error.to_string()),
        }
        row
    }

    fn to_text(&self) -> String {
        let about = match (&self.error, self.messages) {
            (Some(_), _) => "unreadable".to_owned(),
            (None, messages) => counted(messages.unwrap_or(0) as u64, "message"),
        };
        let time = self.last_written.get(..16).unwrap_or_default().replace('T', " ");
        let project = if self.project.is_empty() { "(no project)" } else { &self.project };
        let mut text = format!("{time}  {:<12}{about:>16}  {}\n", self.tool, line(project));
        text += &format!("    {}\n    {}\n", line(&self.id), line(&self.path));
        if let Some(error) = &self.error {
            text += &format!("    {}\n", line(error));
        }
        text
    }
}

/// The number of messages of the active conversation, and the number of other conversations. A file with an outline is
/// not held in memory.
fn counts(found: &Found) -> core::result::Result<(usize, usize), Box<dyn Error>> {
    let (format, mut file) = (found.format(), sessions::open(&found.path)?);
    let whole = whole_bytes(&mut file, &found.path).map_err(|failure| failure.message().to_owned())?;
    if Outline::FORMATS.contains(&format) {
        let file = BufReader::with_capacity(BUFFER_BYTES, file.take(whole));
        let mut lines = SessionLines::new(file, format)?.with_line_bytes_max(LINE_BYTES_MAX);
        let outline = Outline::read(&mut lines, None).map_err(|error| match error.kind() {
            WireErrorKind::TooLarge => format!("{error}; to read it all the same, give it as FILE").into(),
            _ => Box::<dyn Error>::from(error),
        })?;
        // Without messages in the outline, the reading of the whole file reports the reason.
        if let [active, others @ ..] = outline.conversations()
            && active.messages > 0
        {
            return Ok((active.messages, others.len()));
        }
    }
    let mut bytes = sessions::read_whole(&found.path, WHOLE_BYTES_MAX)?;
    bytes.truncate(usize::try_from(whole).unwrap_or(usize::MAX));
    let transcript = read(utf8(&bytes)?, &ReadOptions::default().with_from(format))?;
    let messages = transcript.active().map_or(0, |active| active.entries.len());
    Ok((messages, transcript.conversations().len().saturating_sub(1)))
}

fn to_text(rows: &[Row], older: usize) -> String {
    let mut text: String = rows.iter().map(Row::to_text).collect();
    text += "times are UTC, of the last change; FILE may be an id, or `latest`";
    if older > 0 {
        text += &format!("; {} older: --limit 0 lists all", grouped(older as u64));
    }
    text
}

/// A time to the second, in UTC.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (year, month, day) = date(seconds / DAY);
    let (hour, minute, second) = (seconds % DAY / 3_600, seconds % 3_600 / 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

const DAY: u64 = 86_400;

/// The date `days` days after 1970-01-01: years that begin in March, whose leap day is their last, in eras of 400 years
/// (<https://howardhinnant.github.io/date_algorithms.html#civil_from_days>).
const fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march + 2) / 5 + 1;
    let month = if march < 10 { march + 3 } else { march - 9 };
    (era * 400 + year + (month <= 2) as u64, month, day)
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        // The naive twin: count the days of the years and months.
        let is_leap =
            |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for days in 0..60_000 {
            assert_eq!(date(days), (year, month, day));
            let last = match month {
                2 if is_leap(year) => 29,
                2 => 28,
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            (day, month, year) = match (day == last, month) {
                (false, _) => (day + 1, month, year),
                (true, 12) => (1, 1, year + 1),
                (true, _) => (1, month + 1, year),
            };
        }
        let time = UNIX_EPOCH + Duration::from_secs(1_709_210_096);
        assert_eq!(rfc3339(time), "2024-02-29T12:34:56Z");
        assert_eq!(rfc3339(UNIX_EPOCH - Duration::from_secs(1)), "1970-01-01T00:00:00Z");
    }
}
