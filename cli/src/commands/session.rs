//! `epitome session`: transcripts kept in a store, and compacted there.

mod clear;
pub(crate) mod compact;
mod copy;
mod erase;
mod expand;
mod export;
mod import;
#[cfg(feature = "inspect")]
mod inspect;
mod key;
mod line;
pub(crate) mod list;
mod log;
mod prune;
mod retain;
mod rewind;
mod show;
pub(crate) mod store;
mod undo;
mod vacuum;

use crate::args::{SessionArgs, SessionCommand};
use crate::failure::{ExitCode, Result};
use crate::output::{self, Output};
use crate::visible::Printable;

pub(super) use line::raw;

pub(crate) fn run(args: &SessionArgs) -> Result<ExitCode> {
    let text = match &args.command {
        SessionCommand::List { store, json } => list::run(store, *json),
        SessionCommand::Show { session, redact } => show::run(session, redact),
        SessionCommand::Import { input, session, append, tokenizer } => {
            import::run(input, session, *append, tokenizer)
        }
        SessionCommand::Compact { session, plan, summary, pin, dry_run, require_goal } => {
            return compact::run(session, (plan, summary), pin, *dry_run, *require_goal).and_then(said);
        }
        SessionCommand::Log { session, redact } => {
            return log::run(session, redact).map(|()| ExitCode::SUCCESS);
        }
        #[cfg(feature = "inspect")]
        SessionCommand::Inspect(args) => return inspect::run(args),
        SessionCommand::Export { session, output, force, to } => {
            let output = Output { path: output, force: *force };
            let exported = match to {
                Some(to) => export::prompt(session, output, *to),
                None => export::run(session, output),
            };
            return exported.map(|()| ExitCode::SUCCESS);
        }
        SessionCommand::Copy { session, to, name, key } => {
            copy::run(session, to.as_deref(), name.as_deref(), key)
        }
        SessionCommand::Expand { session, revision, redact } => {
            return expand::run(session, *revision, redact).map(|()| ExitCode::SUCCESS);
        }
        SessionCommand::Uncompact { session, revision } => undo::run(session, *revision),
        SessionCommand::Rewind { session, place } => rewind::run(session, place),
        SessionCommand::Clear(session) => clear::run(session),
        SessionCommand::Retain { session, keep, dry_run } => retain::run(session, keep, *dry_run),
        SessionCommand::Prune { session, hidden, dry_run } => prune::run(session, hidden.through, *dry_run),
        SessionCommand::Fork { session, place, name } => rewind::fork(session, place, name),
        SessionCommand::Verify { session, reindex } => copy::verify(session, *reindex),
        SessionCommand::Erase { session, dry_run } => erase::run(session, *dry_run),
        SessionCommand::Vacuum { store, json } => vacuum::run(store, *json),
    }?;
    said(text.into())
}

fn said(text: Printable) -> Result<ExitCode> {
    output::say(text)?;
    Ok(ExitCode::SUCCESS)
}
