//! `epitome session vacuum`.

use std::fs;

use futures::executor::block_on;

use super::store::{Access, in_store, open};
use crate::amount::counted;
use crate::args::StoreArgs;
use crate::failure::{Failure, Result};
use crate::output::to_json;

/// Rewrites the file of a store, and reports its size before and after.
pub(super) fn run(args: &StoreArgs, json: bool) -> Result<String> {
    let Some(path) = args.store.strip_prefix("sqlite:") else {
        return Err(Failure::input(
            "--store: only the file of a sqlite: store keeps the space of deleted texts",
        ));
    };
    let store = open(args, Access::Write)?;
    let bytes =
        || fs::metadata(path).map_err(|error| Failure::io(path.as_ref(), &error)).map(|file| file.len());
    let before = bytes()?;
    let is_done = block_on(store.vacuum()).map_err(|error| in_store(args, error))?;
    let after = bytes()?;
    if json {
        return to_json(&serde_json::json!({
            "bytes_before": before, "bytes_after": after, "waits_for_readers": !is_done,
        }));
    }
    let [before, after] = [before, after].map(|bytes| counted(bytes, "byte"));
    let remark =
        if is_done { "" } else { "; another program reads it, and it becomes smaller when that ends" };
    Ok(format!("{path} had {before}, and has {after} now{remark}"))
}
