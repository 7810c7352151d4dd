//! `epitome session uncompact`.

use futures::executor::block_on;

use super::copy::exists;
use super::store::{Access, compaction, id, open};
use crate::amount::counted;
use crate::args::OneSessionArgs;
use crate::failure::Result;
use crate::output::to_json;

pub(super) fn run(args: &OneSessionArgs, revision: Option<u64>) -> Result<String> {
    let store = open(&args.store, Access::Write)?;
    let made = compaction(&store, args, revision, "undo")?;
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
