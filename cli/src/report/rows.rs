//! The reports of several conversations.

use serde::Serialize;

use super::{GroupCounts, Report, share};
use crate::amount::{counted, grouped};
use crate::failure::Failure;

/// One conversation of several: its report, or the reason that there is none.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Row<'a> {
    Done(&'a Report),
    Infeasible { conversation: usize, path: &'a str, exit_code: u8, error: &'a str },
}

impl<'a> Row<'a> {
    /// The row of the conversation with this number, at `path`.
    pub(crate) fn new(result: Result<&'a Report, &'a Failure>, conversation: usize, path: &'a str) -> Self {
        match result {
            Ok(report) => Self::Done(report),
            Err(failure) => {
                Self::Infeasible { conversation, path, exit_code: failure.code(), error: failure.message() }
            }
        }
    }

    const fn place(&self) -> (usize, &str) {
        match self {
            Self::Done(Report { conversation: Some(at), path, .. }) => (*at, path.as_str()),
            Self::Done(Report { path, .. }) => (0, path.as_str()),
            Self::Infeasible { conversation, path, .. } => (*conversation, path),
        }
    }

    fn name(&self) -> String {
        let (at, path) = self.place();
        place_of(at, path)
    }
}

/// The place of one conversation of several. The number distinguishes lines, which all have the same path.
pub(crate) fn place_of(at: usize, path: &str) -> String {
    match path.strip_prefix(&format!("/{at}")) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => path.to_owned(),
        _ => format!("#{at} {path}").trim_end().to_owned(),
    }
}

/// Several conversations as a table for people: a line each, and the sum.
pub(crate) fn table(rows: &[Row<'_>]) -> String {
    let width = rows.iter().map(|row| row.name().len()).chain([TITLE.len()]).max().unwrap_or(0);
    let mut text =
        format!("{TITLE:<width$}{:>10}{:>12}{:>12}{:>8}  result\n", "messages", "tokens was", "now", "share");
    let (mut before, mut after, mut changed, mut infeasible) = (0, 0, 0_usize, 0_usize);
    for row in rows {
        let name = row.name();
        match row {
            Row::Done(report) => {
                before += report.tokens_before;
                after += report.tokens_after;
                changed += usize::from(report.unchanged_reason.is_none());
                text += &format!(
                    "{name:<width$}{:>10}{:>12}{:>12}{:>8}  {}\n",
                    grouped(report.messages_before),
                    grouped(report.tokens_before),
                    grouped(report.tokens_after),
                    share(report.tokens_after, report.tokens_before),
                    result(report)
                );
            }
            Row::Infeasible { error, .. } => {
                infeasible += 1;
                text += &format!("{name:<width$}  infeasible, left as it is: {error}\n");
            }
        }
    }
    let infeasible = match infeasible {
        0 => String::new(),
        count => format!(", {} infeasible and not counted", grouped(count as u64)),
    };
    text + &format!(
        "\n{}, {changed} compacted{infeasible}; {} are now {}, {} of what they were",
        counted(rows.len() as u64, "conversation"),
        counted(before, "token"),
        grouped(after),
        share(after, before)
    )
}

const TITLE: &str = "conversation";

fn result(report: &Report) -> String {
    let done = match report.unchanged_reason {
        Some(reason) => format!("unchanged: {}", reason.replace('_', " ")),
        None => {
            let GroupCounts { dropped, elided, total, .. } = report.groups;
            let shortened = if elided > 0 { format!(", {elided} shortened") } else { String::new() };
            format!("{dropped} of {} dropped{shortened}", counted(total, "group"))
        }
    };
    if report.goal_missed { format!("{done}, goal missed") } else { done }
}
