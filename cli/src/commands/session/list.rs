//! `epitome session list`.

use console::{Alignment, measure_text_width, pad_str};
use epitome::history::SessionInfo;
use serde::Serialize;

use super::store::{Access, Store, open, sessions};
use crate::amount::grouped;
use crate::args::StoreArgs;
use crate::failure::Result;
use crate::output::to_json;
use crate::visible::line;

/// A session in a list. Its fields are the program's JSON.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) session: String,
    messages: u64,
    live_messages: u64,
    live_tokens: u64,
    revision: u64,
    /// The reason that the session cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    damage: Option<String>,
}

/// All sessions of a store, by name.
pub(crate) fn rows(store: &Store, args: &StoreArgs) -> Result<Vec<Row>> {
    let row = |info: SessionInfo| Row {
        session: info.id.as_str().to_owned(),
        messages: info.head.0,
        live_messages: info.live_messages,
        live_tokens: info.live_tokens,
        revision: info.revision.0,
        damage: info.damage,
    };
    Ok(sessions(store, args)?.into_iter().map(row).collect())
}

pub(crate) fn run(args: &StoreArgs, json: bool) -> Result<String> {
    let rows = rows(&open(args, Access::Read)?, args)?;
    if json {
        return to_json(&rows);
    }
    let names: Vec<_> = rows.iter().map(|row| line(&row.session)).collect();
    let width = names.iter().map(|name| measure_text_width(name)).chain([TITLE.len()]).max();
    let width = width.unwrap_or(0).min(NAME_WIDTH_MAX);
    let mut text =
        format!("{TITLE:<width$}{:>10}{:>10}{:>12}{:>10}", "messages", "visible", "tokens", "revision");
    for (row, name) in rows.iter().zip(&names) {
        let name = pad_str(name, width, Alignment::Left, None);
        if let Some(damage) = &row.damage {
            text += &format!("\n{name}  damaged: {}", line(damage));
            continue;
        }
        text += &format!(
            "\n{name}{:>10}{:>10}{:>12}{:>10}",
            grouped(row.messages),
            grouped(row.live_messages),
            grouped(row.live_tokens),
            row.revision
        );
    }
    Ok(text)
}

const TITLE: &str = "session";
/// Maximum width of the column of names: a longer name moves only its own row to the right.
const NAME_WIDTH_MAX: usize = 48;
