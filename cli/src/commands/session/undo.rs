//! `epitome session uncompact`.

use epitome::core::Revision;
use futures::executor::block_on;

use super::copy::exists;
use super::line::to_json;
use super::store::{Missing, PAGE, Store, id, open};
use crate::amount::counted;
use crate::args::OneSessionArgs;
use crate::failure::{Failure, Result};

pub(super) fn run(args: &OneSessionArgs, revision: Option<u64>) -> Result<String> {
    let store = open(&args.store, Missing::Refuse)?;
    let made = match revision {
        Some(revision) => Revision(revision),
        None => latest(&store, args)?,
    };
    let undone_by = exists(args, block_on(store.uncompact(&id(args), made)))?;
    let live = exists(args, block_on(store.load(&id(args))))?.live;
    let shown = live.len() as u64;
    if args.json {
        return to_json(&serde_json::json!({
            "session": args.session, "undone": made.0, "revision": undone_by.0, "live_messages": shown,
        }));
    }
    Ok(format!(
        "compaction {made} of session {:?} is undone by {undone_by}: {} are visible now",
        args.session,
        counted(shown, "message")
    ))
}

/// The revision of the latest compaction that holds.
fn latest(store: &Store, args: &OneSessionArgs) -> Result<Revision> {
    let (mut after, mut latest) = (None, None);
    loop {
        let page = exists(args, block_on(store.records(&id(args), after, PAGE)))?;
        let Some(last) = page.last() else { break };
        after = Some(last.revision);
        let held = page.iter().filter(|committed| committed.undone_by.is_none());
        latest = held.map(|committed| committed.revision).next_back().or(latest);
    }
    latest.ok_or_else(|| Failure::input(format!("session {:?} has no compaction to undo", args.session)))
}
