//! `epitome session prune`.

use core::ops::ControlFlow;
use std::collections::BTreeMap;

use epitome::core::Revision;
use epitome::history::Committed;
use futures::executor::block_on;
use serde_json::json;

use super::copy::exists;
use super::store::{Access, PAGE, Store, for_each_page, id, open};
use crate::amount::{counted, grouped};
use crate::args::OneSessionArgs;
use crate::failure::{Failure, Result};
use crate::output::to_json;

/// Deletes the texts of messages that are hidden at the revision `through`, or of all hidden messages.
pub(super) fn run(args: &OneSessionArgs, through: Option<u64>, dry_run: bool) -> Result<String> {
    let store = open(&args.store, Access::Write)?;
    let revision = exists(args, block_on(store.tail(&id(args))))?.revision;
    let through = through.map_or(revision, Revision);
    if through > revision {
        return Err(Failure::input(format!(
            "--through: the session is at revision {revision}, and has not come to {through} yet"
        )));
    }
    let (mut messages, mut tokens) = (0_u64, 0_u64);
    for_each_page(&store, args, |page| {
        let due =
            page.iter().filter(|it| it.pruned_by.is_none() && it.hidden_by.is_some_and(|by| by <= through));
        for logged in due {
            messages += 1;
            tokens += logged.entry.count.tokens.as_u64();
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let session = &args.session;
    if dry_run {
        let summaries = replaced(&store, args, through)?;
        return if args.json {
            to_json(&json!({
                "session": session, "through": through.0, "deleted": false, "messages": messages, "tokens": tokens,
                "summaries": summaries,
            }))
        } else {
            Ok(told(session, through, (messages, tokens, summaries), "would be"))
        };
    }
    let pruned = exists(args, block_on(store.prune(&id(args), through)))?;
    // A repetition gets the result of the first prune.
    let (deleted, summaries) =
        if pruned.revision > revision { (pruned.messages, pruned.summaries) } else { (0, 0) };
    if args.json {
        return to_json(&json!({
            "session": session, "through": through.0, "deleted": deleted + summaries > 0, "messages": deleted,
            "tokens": tokens, "summaries": summaries, "revision": pruned.revision.0,
        }));
    }
    Ok(told(session, through, (deleted, tokens, summaries), "is"))
}

fn told(
    session: &str,
    through: Revision,
    (messages, tokens, summaries): (u64, u64, u64),
    verb: &str,
) -> String {
    if messages + summaries == 0 {
        return format!("nothing is left to delete in session {session:?} through {through}");
    }
    let messages = format!("{} ({})", counted(messages, "message"), counted(tokens, "token"));
    format!("the text of {} {verb} deleted from session {session:?} for good", said_in(&messages, summaries))
}

/// Text about `messages` and a number of summaries.
pub(super) fn said_in(messages: &str, summaries: u64) -> String {
    match summaries {
        1 => format!("{messages} and 1 replaced summary"),
        count => format!("{messages} and {} replaced summaries", grouped(count)),
    }
}

/// Number of summaries that no request has shown since `through` or earlier, and that are not deleted yet.
fn replaced(store: &Store, args: &OneSessionArgs, through: Revision) -> Result<u64> {
    let (mut replaced, mut after) = (0, None);
    // The keys of the shown summaries, each with whether its text is deleted already.
    let mut shown = BTreeMap::new();
    loop {
        let page = exists(args, block_on(store.records(&id(args), after, PAGE)))?;
        let Some(last) = page.last() else { return Ok(replaced) };
        after = Some(last.revision);
        for Committed { revision, record, undone_by, .. } in page {
            let own = record.summaries.iter().map(|it| (it.key, it.message.is_pruned()));
            let mut gone = |is_pruned: bool, by: Revision| replaced += u64::from(!is_pruned && by <= through);
            if let Some(by) = undone_by {
                own.for_each(|(_, is_pruned)| gone(is_pruned, by));
                continue;
            }
            shown.retain(|key, is_pruned| {
                let hidden = record.hides.iter().any(|range| range.contains(*key));
                if hidden {
                    gone(*is_pruned, revision);
                }
                !hidden
            });
            shown.extend(own);
        }
    }
}
