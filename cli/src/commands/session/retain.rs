//! `epitome session retain`.

use epitome::history::{HistoryStore, HistoryStoreExt as _, Keep, MemoryStore, Timestamp};
use futures::executor::block_on;
use serde_json::json;

use super::copy::exists;
use super::prune::said_in;
use super::store::{Access, id, open};
use crate::amount::counted;
use crate::args::{KeepArgs, OneSessionArgs};
use crate::failure::Result;
use crate::output::to_json;

/// Hides the messages beyond the limit, and deletes all hidden messages.
pub(super) fn run(args: &OneSessionArgs, keep: &KeepArgs, dry_run: bool) -> Result<String> {
    let keep = match (keep.messages, keep.age) {
        (Some(count), _) => Keep::Messages(count),
        (None, age) => {
            let age = age.map_or(u64::MAX, |age| age.0);
            Keep::Since(Timestamp(Timestamp::now().0.saturating_sub(age)))
        }
    };
    let store = open(&args.store, Access::Write)?;
    if !dry_run {
        return retain(&*store, args, keep, "is");
    }
    // A copy in memory changes as the session would.
    let copy = MemoryStore::new();
    exists(args, block_on(store.copy(&id(args), &copy, &id(args))))?;
    retain(&copy, args, keep, "would be")
}

fn retain(store: &dyn HistoryStore, args: &OneSessionArgs, keep: Keep, verb: &str) -> Result<String> {
    let before = exists(args, block_on(store.tail(&id(args))))?.revision;
    let retained = exists(args, block_on(store.retain(&id(args), keep)))?;
    let (hidden, pruned) = (retained.hidden, retained.pruned);
    // A repetition gets the result of the first time.
    let (messages, summaries) =
        if pruned.revision > before { (pruned.messages, pruned.summaries) } else { (0, 0) };
    let shown = exists(args, block_on(store.load(&id(args))))?.live.len() as u64;
    let (session, deletes) = (&args.session, messages + summaries > 0);
    if args.json {
        return to_json(&json!({
            "session": session, "hidden": hidden, "deleted": deletes && verb == "is", "messages": messages,
            "summaries": summaries, "live_messages": shown,
        }));
    }
    let visible = counted(shown, "message");
    if hidden == 0 && !deletes {
        return Ok(format!(
            "session {session:?} has no more than it may keep: {visible} visible, nothing hidden is left"
        ));
    }
    let (is_done, hidden) = (verb == "is", counted(hidden, "message"));
    Ok(format!(
        "session {session:?}: {hidden} {}hidden; the text of {} {verb} deleted for good; {visible} {} visible",
        if is_done { "" } else { "would be " },
        said_in(&counted(messages, "message"), summaries),
        if is_done { "stay" } else { "would stay" },
    ))
}
