//! `epitome stats --by turn|tool`: where the tokens of a conversation come from.

mod tool;
mod turn;

use super::session::Session;
use super::{REFERENCE, compare, to_output};
use crate::args::{By, StatsArgs};
use crate::failure::{ExitCode, Failure, Result};
use crate::model;
use crate::output;
use crate::transcript::Input;

pub(super) fn run(args: &StatsArgs, by: By) -> Result<ExitCode> {
    if args.tokenizer.as_deref() == Some(compare::ALL) {
        return Err(Failure::input("--by counts with one counter: name it with --tokenizer, instead of all"));
    }
    let found = model::find(&args.model)?;
    let counter = model::counter(found.as_ref(), args.tokenizer.as_deref(), REFERENCE)?;
    let input = Input::open_to_look(&args.input)?;
    let transcripts = input.transcripts(&args.input)?;
    let each = transcripts.into_iter();
    let text = match by {
        By::Turn => {
            let turns: Result<Vec<_>> =
                each.map(|transcript| turn::Turns::of(transcript, &*counter)).collect();
            to_output(args, &turns?, "\n\n")
        }
        By::Tool => {
            let tools: Result<Vec<_>> =
                each.map(|transcript| tool::Tools::of(transcript, &*counter)).collect();
            to_output(args, &tools?, "\n\n")
        }
    };
    output::say(text?)?;
    Ok(ExitCode::SUCCESS)
}

/// The other contents of the conversation's file as text, after a line break.
fn beside(session: Option<&Session>) -> String {
    session.map(|session| format!("\n{}", session.to_text().trim_end())).unwrap_or_default()
}
