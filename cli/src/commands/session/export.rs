//! `epitome session export`.

use core::error::Error as _;
use std::io;

use epitome::history::{HistoryStoreExt as _, StoreError, StoreErrorKind};
use epitome::wire::Format;
use futures::executor::block_on;

use super::store::{Access, check_outside, history, id, in_store, no_session, open};
use crate::amount::counted;
use crate::args::{OneSessionArgs, RedactArgs};
use crate::commands::convert::Conversions;
use crate::failure::{Failure, Result};
use crate::output::{self, Draft, Output, to_json};
use crate::scan::{self, ESTIMATE};

/// Writes the session, and reports the amount on standard output, unless the session itself goes there.
pub(super) fn run(args: &OneSessionArgs, output: Output<'_>) -> Result<()> {
    check(args, output)?;
    let store = open(&args.store, Access::Read)?;
    let mut done = None;
    let written = output::write_private(output, |out| {
        let exported = block_on(store.export(&id(args), out));
        let failed = exported.as_ref().err().map_or(Ok(()), |error| Err(cause(error)));
        done = Some(exported);
        failed
    });
    let exported = match done {
        Some(Err(error)) if error.kind() == StoreErrorKind::NotFound => return Err(no_session(args)),
        // A failure to write is reported below, with the name of the file.
        Some(Err(error)) if error.kind() != StoreErrorKind::Unavailable => {
            return Err(in_store(&args.store, error));
        }
        Some(Ok(exported)) => written.map(|()| exported)?,
        _ => return written,
    };
    if output.is_stdout() {
        return Ok(());
    }
    let text = if args.json {
        to_json(&serde_json::json!({
            "session": args.session, "messages": exported.head.0, "revision": exported.revision.0,
            "compactions": exported.records,
        }))?
    } else {
        let (messages, records) =
            (counted(exported.head.0, "message"), counted(exported.records, "compaction"));
        format!("session {:?} exported: {messages}, {records}", args.session)
    };
    output::say(&text).map(|_| ())
}

/// Writes the messages of the next request in the format `to`, and lists the parts without a counterpart there.
pub(super) fn prompt(args: &OneSessionArgs, output: Output<'_>, to: Format) -> Result<()> {
    check(args, output)?;
    let store = open(&args.store, Access::Read)?;
    let history = history(store, args, scan::counter(ESTIMATE)?.into())?;
    let messages: Vec<_> = history.projection().cloned().collect();
    if messages.is_empty() {
        return Err(Failure::input(format!(
            "session {:?} shows no messages, so nothing was written: without --to the export has what is hidden too",
            args.session
        )));
    }
    let mut conversions = Conversions::new(to, &RedactArgs { redact: false, redact_list: None })?;
    conversions.add(&messages)?;
    let draft = Draft::private(output)?;
    conversions.publish(if args.json { draft.silent() } else { draft }, output.path)?;
    conversions.tell(args.json);
    Ok(())
}

/// The error of the store as an error of the written file.
fn cause(error: &StoreError) -> io::Error {
    let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    io::Error::new(source.map_or(io::ErrorKind::Other, io::Error::kind), error.to_string())
}

/// Refuses a file that exists, and one that belongs to the store.
fn check(args: &OneSessionArgs, output: Output<'_>) -> Result<()> {
    check_outside(&args.store, output.path)?;
    output.check()
}
