//! `epitome session copy`, `fork` and `verify`.

use epitome::history::{HistoryStoreExt as _, SessionId, StoreError, StoreErrorKind};
use futures::executor::block_on;
use serde_json::json;

use super::key;
use super::store::{Access, id, no_session, open, open_with, refused, shown};
use crate::amount::counted;
use crate::args::{CopyKeyArgs, OneSessionArgs, StoreArgs};
use crate::failure::{Failure, Result};
use crate::output::to_json;

pub(super) fn run(
    args: &OneSessionArgs,
    to: Option<&str>,
    name: Option<&str>,
    key: &CopyKeyArgs,
) -> Result<String> {
    let own = key::of(&args.store)?;
    let store = open_with(&args.store, own.clone(), Access::Read)?;
    let to = to.unwrap_or(&args.store.store).to_owned();
    let other_key = key::of_copy(key, own, to != args.store.store)?;
    let other = StoreArgs { store: to, key_file: key.to_key_file.clone() };
    let name = name.map_or(Ok(&*args.session), given)?;
    if other.store == args.store.store && name == args.session {
        return Err(Failure::input(
            "--to, --as: a session is no copy of itself; name another store or session",
        ));
    }
    exists(args, block_on(store.tail(&id(args))))?;
    let target = open_with(&other, other_key, Access::Create)?;
    let copied = block_on(store.copy(&id(args), &*target, &SessionId::new(name)));
    let copied = copied.map_err(|error| refused(&other, error))?;
    if args.json {
        return to_json(&json!({
            "session": name, "store": shown(&other), "messages": copied.head.0, "compactions": copied.records,
        }));
    }
    let (messages, records) = (counted(copied.head.0, "message"), counted(copied.records, "compaction"));
    Ok(format!("session {:?} copied to {name:?} in {}: {messages}, {records}", args.session, shown(&other)))
}

/// Checks the name of a new session: an empty name is refused.
pub(super) fn given(name: &str) -> Result<&str> {
    if name.is_empty() { Err(Failure::input("--as: a session needs a name")) } else { Ok(name) }
}

pub(super) fn verify(args: &OneSessionArgs, reindex: bool) -> Result<String> {
    let store = open(&args.store, if reindex { Access::Write } else { Access::Read })?;
    if reindex {
        block_on(store.reindex()).map_err(|error| refused(&args.store, error))?;
    }
    let verified = exists(args, block_on(store.verify(&id(args))))?;
    if args.json {
        return to_json(&json!({
            "session": args.session, "messages": verified.head.0, "compactions": verified.records,
        }));
    }
    let (messages, records) = (counted(verified.head.0, "message"), counted(verified.records, "compaction"));
    Ok(format!("session {:?} agrees with its log: {messages}, {records}", args.session))
}

/// The answer of the store about a session that must exist.
pub(super) fn exists<T>(args: &OneSessionArgs, answer: core::result::Result<T, StoreError>) -> Result<T> {
    answer.map_err(|error| match error.kind() {
        StoreErrorKind::NotFound => no_session(args),
        _ => refused(&args.store, error),
    })
}
