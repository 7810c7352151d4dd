//! `epitome session clear`.

use epitome::history::HistoryStoreExt as _;
use futures::executor::block_on;

use super::copy::exists;
use super::store::{Access, id, open};
use crate::amount::counted;
use crate::args::OneSessionArgs;
use crate::failure::Result;
use crate::output::to_json;

/// Hides all visible messages.
pub(super) fn run(args: &OneSessionArgs) -> Result<String> {
    let store = open(&args.store, Access::Write)?;
    let hidden = exists(args, block_on(store.load(&id(args))))?.live.len() as u64;
    let revision = exists(args, block_on(store.clear(&id(args))))?;
    if args.json {
        return to_json(&serde_json::json!({
            "session": args.session, "revision": revision.0, "hidden": hidden,
        }));
    }
    let session = &args.session;
    Ok(match hidden {
        0 => format!("nothing is visible in session {session:?}"),
        _ => format!(
            "session {session:?} is cleared by {revision}: {} hidden, nothing deleted",
            counted(hidden, "message")
        ),
    })
}
