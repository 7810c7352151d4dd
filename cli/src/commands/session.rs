//! `epitome session`: transcripts kept in a store, and compacted there.

mod compact;
mod delete;
mod import;
mod line;
mod list;
mod log;
mod show;
mod store;

use std::process::ExitCode;

use crate::args::{SessionArgs, SessionCommand};
use crate::failure::Result;
use crate::output;

pub(crate) fn run(args: &SessionArgs) -> Result<ExitCode> {
    let text = match &args.command {
        SessionCommand::List { store, json } => list::run(store, *json),
        SessionCommand::Show(session) => show::run(session),
        SessionCommand::Import { input, session, append, tokenizer } => {
            import::run(input, session, *append, tokenizer)
        }
        SessionCommand::Compact { session, plan, dry_run } => compact::run(session, plan, *dry_run),
        SessionCommand::Log(session) => return log::run(session).map(|()| ExitCode::SUCCESS),
        SessionCommand::Delete(session) => delete::run(session),
    }?;
    output::say(&text)?;
    Ok(ExitCode::SUCCESS)
}
