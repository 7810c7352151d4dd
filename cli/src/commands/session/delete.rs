//! `epitome session delete`.

use futures::executor::block_on;

use super::line::to_json;
use super::store::{Missing, id, in_store, no_session, open};
use crate::args::OneSessionArgs;
use crate::failure::Result;

pub(super) fn run(args: &OneSessionArgs) -> Result<String> {
    let store = open(&args.store, Missing::Refuse)?;
    let deleted = block_on(store.delete(&id(args))).map_err(|error| in_store(&args.store, error))?;
    match deleted {
        true if args.json => to_json(&serde_json::json!({ "session": args.session, "deleted": true })),
        true => Ok(format!("session {:?} and its log are deleted", args.session)),
        false => Err(no_session(args)),
    }
}
