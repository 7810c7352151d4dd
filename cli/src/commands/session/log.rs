//! `epitome session log`: all messages, each with the revision that hides it.

use core::ops::ControlFlow;

use epitome::history::Logged;
use serde::Serialize;
use serde_json::value::RawValue;

use super::line::{line, raw, redact_message};
use super::store::{Access, for_each_page, open};
use crate::amount::{counted, grouped};
use crate::args::{OneSessionArgs, RedactArgs};
use crate::failure::{Failure, Result, code};
use crate::output::{self, Audience};
use crate::redact::Redactor;

/// Prints the log page by page: it may be larger than memory.
pub(super) fn run(args: &OneSessionArgs, redact: &RedactArgs) -> Result<()> {
    let mut redactor = Redactor::new(redact)?;
    let store = open(&args.store, Access::Read)?;
    let (mut messages, mut hidden) = (0, 0);
    for_each_page(&store, args, |page| {
        messages += page.len() as u64;
        hidden += page.iter().filter(|logged| logged.hidden_by.is_some()).count() as u64;
        let lines = page.iter().map(|logged| log_line(logged, args.json, redactor.as_mut()));
        let lines = lines.collect::<Result<Vec<_>>>()?;
        match lines.is_empty() || output::say(lines.join("\n"))? == Audience::Listening {
            true => Ok(ControlFlow::Continue(())),
            false => Ok(ControlFlow::Break(())),
        }
    })?;
    if !args.json {
        let (messages, hidden) = (counted(messages, "message"), grouped(hidden));
        output::say(format!("{messages}, {hidden} of them hidden: no request shows them"))?;
    }
    if let Some(redactor) = redactor {
        redactor.found().tell();
    }
    Ok(())
}

pub(super) fn log_line(logged: &Logged, json: bool, redactor: Option<&mut Redactor>) -> Result<String> {
    #[derive(Serialize)]
    struct Line<'a> {
        seq: u64,
        hidden_by: Option<u64>,
        /// The latest revision that shortened the message; `message` is the whole message.
        edited_by: Option<u64>,
        /// The revision that deleted its text.
        #[serde(skip_serializing_if = "Option::is_none")]
        pruned_by: Option<u64>,
        anchor: u64,
        turn: u32,
        tokens: u32,
        message: &'a RawValue,
    }

    let Logged { seq, entry, hidden_by, edited_by, pruned_by, .. } = logged;
    if json {
        let message = &*raw(&entry.message)?;
        let message = &*RawValue::from_string(on_one_line(message.get()))
            .map_err(|error| Failure::input(error.to_string()))?;
        let [hidden_by, edited_by, pruned_by] =
            [hidden_by, edited_by, pruned_by].map(|revision| revision.map(|revision| revision.0));
        let (anchor, turn) = (entry.anchor.0, entry.turn.0);
        let (seq, tokens) = (seq.0, entry.count.tokens.0);
        let line = Line { seq, hidden_by, edited_by, pruned_by, anchor, turn, tokens, message };
        let text = serde_json::to_string(&line).map_err(|error| Failure::new(code::IO, error.to_string()))?;
        return Ok(redactor.map_or_else(|| text.clone(), |redactor| redactor.json(&text)));
    }
    let hidden = match (pruned_by, hidden_by, edited_by) {
        (Some(revision), ..) => format!("deleted by {revision}"),
        (None, Some(revision), _) => format!("hidden by {revision}"),
        (None, None, Some(revision)) => format!("cut by {revision}"),
        (None, None, None) => String::new(),
    };
    Ok(line(
        *seq,
        &redact_message(&entry.message, redactor),
        entry.count.tokens.0,
        if entry.orphan { "answers no call" } else { &hidden },
    ))
}

/// JSON without the line breaks between its values; a string contains none.
fn on_one_line(json: &str) -> String {
    json.replace(['\r', '\n'], "")
}
