//! `epitome session rewind` and `epitome session fork`.

use core::num::NonZeroUsize;

use epitome::core::attribution::SourceKind;
use epitome::core::{Seq, Turn};
use epitome::history::{HistoryStoreExt as _, Live, SessionId};
use futures::executor::block_on;

use super::copy::{exists, given};
use super::store::{Access, id, open};
use crate::amount::counted;
use crate::args::{OneSessionArgs, PlaceArgs};
use crate::failure::{Failure, Result};
use crate::output::to_json;

/// Hides a message and all later ones.
pub(super) fn run(args: &OneSessionArgs, place: &PlaceArgs) -> Result<String> {
    let store = open(&args.store, Access::Write)?;
    let live = exists(args, block_on(store.load(&id(args))))?.live;
    let at = seq_of(place, &live)?;
    let revision = exists(args, block_on(store.rewind(&id(args), at)))?;
    let left = exists(args, block_on(store.load(&id(args))))?.live.len();
    let hidden = live.len().saturating_sub(left) as u64;
    if args.json {
        return to_json(&serde_json::json!({
            "session": args.session, "at": at.0, "revision": revision.0, "hidden": hidden, "live_messages": left,
        }));
    }
    let session = &args.session;
    Ok(match hidden {
        0 => format!("nothing from message {at} on is visible in session {session:?}"),
        _ => format!(
            "session {session:?} is back before message {at}, by {revision}: {} hidden, nothing deleted, {left} visible",
            counted(hidden, "message")
        ),
    })
}

/// Creates the session `name` with the messages before a place.
pub(super) fn fork(args: &OneSessionArgs, place: &PlaceArgs, name: &str) -> Result<String> {
    let store = open(&args.store, Access::Write)?;
    let live = exists(args, block_on(store.load(&id(args))))?.live;
    let at = seq_of(place, &live)?;
    exists(args, block_on(store.fork(&id(args), at, &SessionId::new(given(name)?))))?;
    if args.json {
        return to_json(&serde_json::json!({ "session": name, "messages": at.0 }));
    }
    Ok(format!("session {name:?} begins with the first {} of {:?}", counted(at.0, "message"), args.session))
}

/// The number of the first message that is left out.
fn seq_of(place: &PlaceArgs, live: &[Live]) -> Result<Seq> {
    match place.turns {
        None => Ok(Seq(place.at.unwrap_or_default())),
        Some(turns) => begins(live, turns),
    }
}

/// The first message of the last `turns` visible turns.
fn begins(live: &[Live], turns: NonZeroUsize) -> Result<Seq> {
    // A summary stands for messages of several turns, and is none itself.
    let is_summary = |live: &Live| live.entry.message.attribution().source == SourceKind::Compaction;
    let leads =
        |live: &&Live| live.entry.anchor == live.key && live.entry.turn > Turn(0) && !is_summary(live);
    let leaders: Vec<&Live> = live.iter().filter(leads).collect();
    let begun: Vec<_> = leaders.chunk_by(|one, next| one.entry.turn == next.entry.turn).collect();
    let first = begun.len().checked_sub(turns.get()).and_then(|at| begun.get(at)?.first());
    first.map(|live| live.key).ok_or_else(|| {
        Failure::input(format!("--turns: the session shows {} only", counted(begun.len() as u64, "turn")))
    })
}
