//! `--vacuum`: the file of a store becomes smaller after a deletion.

use std::fs;

use futures::executor::block_on;

use super::store::{Missing, in_store, open};
use crate::amount::counted;
use crate::args::{StoreArgs, VacuumArgs};
use crate::failure::{Failure, Result};
use crate::output;
use crate::visible::line;

/// Runs `delete`, and then shrinks the file of the store if that is asked for. The sizes go to standard error.
pub(super) fn vacuumed(
    args: &StoreArgs,
    asked: VacuumArgs,
    delete: impl FnOnce() -> Result<String>,
) -> Result<String> {
    if !asked.vacuum {
        return delete();
    }
    let Some(path) = args.store.strip_prefix("sqlite:") else {
        return Err(Failure::input(
            "--vacuum: only the file of a sqlite: store keeps the space of deleted texts",
        ));
    };
    let text = delete()?;
    let bytes =
        || fs::metadata(path).map_err(|error| Failure::io(path.as_ref(), &error)).map(|file| file.len());
    let before = bytes()?;
    let store = open(args, Missing::Refuse)?;
    block_on(store.vacuum()).map_err(|error| in_store(args, error))?;
    let [before, after] = [before, bytes()?].map(|bytes| counted(bytes, "byte"));
    output::tell(line(&format!("epitome: {path} had {before}, and has {after} now")));
    Ok(text)
}
