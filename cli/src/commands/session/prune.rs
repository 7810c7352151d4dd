//! `epitome session prune`.

use epitome::core::Revision;
use futures::executor::block_on;
use serde_json::json;

use super::copy::exists;
use super::line::to_json;
use super::store::{Missing, More, for_each_page, id, open};
use crate::amount::{counted, grouped};
use crate::args::OneSessionArgs;
use crate::failure::{Failure, Result};

/// Deletes what is hidden through a revision, or all of it.
pub(super) fn run(args: &OneSessionArgs, through: Option<u64>, dry_run: bool) -> Result<String> {
    let store = open(&args.store, Missing::Refuse)?;
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
        Ok(More::Wanted)
    })?;
    let (session, of_messages) =
        (&args.session, |count| format!("{} ({})", counted(count, "message"), counted(tokens, "token")));
    if dry_run {
        return if args.json {
            to_json(&json!({
                "session": session, "through": through.0, "deleted": false, "messages": messages, "tokens": tokens,
            }))
        } else {
            Ok(format!(
                "what {} and the summaries replaced by then said would be deleted from session {session:?} for good",
                of_messages(messages)
            ))
        };
    }
    let pruned = exists(args, block_on(store.prune(&id(args), through)))?;
    // A repetition has the answer of the first time.
    let (deleted, summaries) =
        if pruned.revision > revision { (pruned.messages, pruned.summaries) } else { (0, 0) };
    if args.json {
        return to_json(&json!({
            "session": session, "through": through.0, "deleted": deleted + summaries > 0, "messages": deleted,
            "tokens": tokens, "summaries": summaries, "revision": pruned.revision.0,
        }));
    }
    let old = match summaries {
        1 => "1 replaced summary".to_owned(),
        count => format!("{} replaced summaries", grouped(count)),
    };
    Ok(match deleted + summaries {
        0 => format!("nothing is left to delete in session {session:?} through {through}"),
        _ => format!(
            "what {} and {old} said is deleted from session {session:?} for good",
            of_messages(deleted)
        ),
    })
}
