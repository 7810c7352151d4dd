//! `epitome session erase`.

use core::ops::ControlFlow;

use futures::executor::block_on;

use super::store::{Access, for_each_page, id, in_store, no_session, open};
use crate::amount::{counted, grouped};
use crate::args::OneSessionArgs;
use crate::failure::Result;
use crate::output::to_json;

/// Deletes a session, and reports the deleted amount. A session that cannot be read is deleted too.
pub(super) fn run(args: &OneSessionArgs, dry_run: bool) -> Result<String> {
    let store = open(&args.store, Access::Write)?;
    let info = block_on(store.tail(&id(args)));
    let mut hidden = 0;
    let read = for_each_page(&store, args, |page| {
        hidden += page.iter().filter(|logged| logged.hidden_by.is_some()).count() as u64;
        Ok(ControlFlow::Continue(()))
    });
    // `None` for a log that cannot be read to its end.
    let amount = match (info, read) {
        (Ok(tail), Ok(())) => Some((tail.head.0, hidden)),
        (_, Err(failure)) if dry_run => return Err(failure),
        _ => None,
    };
    if !dry_run && !block_on(store.delete(&id(args))).map_err(|error| in_store(&args.store, error))? {
        return Err(no_session(args));
    }
    if args.json {
        return to_json(&serde_json::json!({
            "session": args.session, "deleted": !dry_run,
            "messages": amount.map(|(messages, _)| messages), "hidden": amount.map(|(_, hidden)| hidden),
        }));
    }
    let (verb, session) = (if dry_run { "would be" } else { "is" }, &args.session);
    let amount = amount.map_or("it could not be read".to_owned(), |(messages, hidden)| {
        format!("{}, {} of them hidden", counted(messages, "message"), grouped(hidden))
    });
    Ok(format!("session {session:?} {verb} deleted with its log: {amount}"))
}
