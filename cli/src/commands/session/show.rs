//! `epitome session show`: the messages of the next request.

use super::line::{line, raw, redact_message};
use super::store::{Access, history, open};
use crate::amount::{counted, grouped};
use crate::args::{OneSessionArgs, RedactArgs};
use crate::failure::Result;
use crate::output::to_json;
use crate::redact::Redactor;
use crate::scan;

pub(super) fn run(args: &OneSessionArgs, redact: &RedactArgs) -> Result<String> {
    let mut redactor = Redactor::new(redact)?;
    let text = text(args, redactor.as_mut())?;
    if let Some(redactor) = redactor {
        redactor.found().tell();
    }
    Ok(text)
}

fn text(args: &OneSessionArgs, mut redactor: Option<&mut Redactor>) -> Result<String> {
    let store = open(&args.store, Access::Read)?;
    let history = history(store, args, scan::counter("estimate")?.into())?;
    if args.json {
        let messages: Vec<_> = history.projection().map(raw).collect::<Result<_>>()?;
        let text = to_json(&messages)?;
        return Ok(redactor.map_or_else(|| text.clone(), |redactor| redactor.json(&text)));
    }
    let index = history.index();
    let mut text = String::new();
    for position in index.projection().flatten() {
        if let Some(live) = history.live().get(position as usize) {
            let message = redact_message(&live.entry.message, redactor.as_deref_mut());
            text += &line(live.key, &message, live.entry.count.tokens.0, "");
            text.push('\n');
        }
    }
    let (messages, groups, tokens) =
        (u64::from(index.messages()), u64::from(index.group_count()), index.tokens());
    let sums = format!(
        "{} in {}, {}",
        counted(messages, "message"),
        counted(groups, "group"),
        counted(tokens, "token")
    );
    Ok(format!("{text}{sums}; revision {}, {} in the log", history.revision(), grouped(history.head().0)))
}
