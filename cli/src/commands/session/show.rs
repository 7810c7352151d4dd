//! `epitome session show`: what the next request would contain.

use super::line::{line, raw, to_json};
use super::store::{Missing, history, open};
use crate::amount::{counted, grouped};
use crate::args::OneSessionArgs;
use crate::failure::Result;
use crate::scan;

pub(super) fn run(args: &OneSessionArgs) -> Result<String> {
    let store = open(&args.store, Missing::Refuse)?;
    let history = history(store, args, scan::counter("estimate")?.into())?;
    if args.json {
        let messages: Vec<_> = history.projection().map(raw).collect::<Result<_>>()?;
        return to_json(&messages);
    }
    let index = history.index();
    let mut text = String::new();
    for position in index.projection().flatten() {
        if let Some(live) = history.live().get(position as usize) {
            text += &line(live.key, &live.entry.message, live.entry.count.tokens.0, "");
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
