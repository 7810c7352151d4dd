//! `epitome session log`: all that was said, with what hides it.

use epitome::std::history::Logged;
use serde::Serialize;
use serde_json::value::RawValue;

use super::line::{line, raw};
use super::store::{Missing, More, for_each_page, open};
use crate::amount::{counted, grouped};
use crate::args::OneSessionArgs;
use crate::failure::{Failure, Result, code};
use crate::output::{self, Audience};

/// Says the log page by page: it may be larger than memory.
pub(super) fn run(args: &OneSessionArgs) -> Result<()> {
    let store = open(&args.store, Missing::Refuse)?;
    let (mut messages, mut hidden) = (0, 0);
    for_each_page(&store, args, |page| {
        messages += page.len() as u64;
        hidden += page.iter().filter(|logged| logged.hidden_by.is_some()).count() as u64;
        let lines = page.iter().map(|logged| log_line(logged, args.json)).collect::<Result<Vec<_>>>()?;
        match lines.is_empty() || output::say(&lines.join("\n"))? == Audience::Listening {
            true => Ok(More::Wanted),
            false => Ok(More::Enough),
        }
    })?;
    if !args.json {
        let (messages, hidden) = (counted(messages, "message"), grouped(hidden));
        output::say(&format!("{messages}, {hidden} of them hidden: no request shows them"))?;
    }
    Ok(())
}

fn log_line(logged: &Logged, json: bool) -> Result<String> {
    #[derive(Serialize)]
    struct Line<'a> {
        seq: u64,
        hidden_by: Option<u64>,
        anchor: u64,
        turn: u32,
        tokens: u32,
        message: &'a RawValue,
    }

    let Logged { seq, entry, hidden_by, .. } = logged;
    if json {
        let message = &*raw(&entry.message)?;
        let message = &*RawValue::from_string(on_one_line(message.get()))
            .map_err(|error| Failure::input(error.to_string()))?;
        let (hidden_by, anchor, turn) = (hidden_by.map(|revision| revision.0), entry.anchor.0, entry.turn.0);
        let line = Line { seq: seq.0, hidden_by, anchor, turn, tokens: entry.count.tokens.0, message };
        return serde_json::to_string(&line).map_err(|error| Failure::new(code::IO, error.to_string()));
    }
    let hidden = hidden_by.map_or_else(String::new, |revision| format!("hidden by {revision}"));
    Ok(line(
        *seq,
        &entry.message,
        entry.count.tokens.0,
        if entry.orphan { "answers no call" } else { &hidden },
    ))
}

/// JSON without the line breaks that may stand between its values; a text has none.
fn on_one_line(json: &str) -> String {
    json.replace(['\r', '\n'], "")
}
