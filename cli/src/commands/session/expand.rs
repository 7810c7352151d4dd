//! `epitome session expand`: the messages that a compaction has hidden or shortened.

use epitome::core::{Revision, Seq};
use epitome::history::HistoryStoreExt as _;
use futures::executor::block_on;

use super::copy::exists;
use super::log::log_line;
use super::store::{Access, PAGE, Store, compaction, id, open};
use crate::amount::counted;
use crate::args::{OneSessionArgs, RedactArgs};
use crate::failure::Result;
use crate::output::{self, Audience};
use crate::redact::Redactor;

pub(super) fn run(args: &OneSessionArgs, revision: Option<u64>, redact: &RedactArgs) -> Result<()> {
    let mut redactor = Redactor::new(redact)?;
    let store = open(&args.store, Access::Read)?;
    let revision = compaction(&store, args, revision, "show")?.0;
    let (mut next, mut messages) = (Some(Seq(0)), 0);
    while let Some(from) = next {
        let page = exists(args, block_on(store.expand(&id(args), Revision(revision), from, PAGE)))?;
        messages += page.messages.len() as u64;
        let lines = page.messages.iter().map(|logged| log_line(logged, args.json, redactor.as_mut()));
        let lines = lines.collect::<Result<Vec<_>>>()?;
        if !lines.is_empty() && output::say(lines.join("\n"))? == Audience::Gone {
            break;
        }
        next = page.next;
    }
    if !args.json {
        let undone = if messages == 0 { undone_by(&store, args, revision)? } else { None };
        output::say(&match undone {
            Some(by) => format!("compaction {revision} is undone by {by}: nothing is hidden or cut by it"),
            None => format!("{}, hidden or cut by {revision}", counted(messages, "message")),
        })?;
    }
    if let Some(redactor) = redactor {
        redactor.found().tell();
    }
    Ok(())
}

/// The revision that undid the compaction which made `revision`.
fn undone_by(store: &Store, args: &OneSessionArgs, revision: u64) -> Result<Option<Revision>> {
    let before = revision.checked_sub(1).map(Revision);
    let found = exists(args, block_on(store.records(&id(args), before, 1)))?;
    Ok(found.first().filter(|it| it.revision == Revision(revision)).and_then(|it| it.undone_by))
}
