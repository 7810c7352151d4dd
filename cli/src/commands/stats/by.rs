//! `epitome stats --by turn|tool`: where the tokens of a conversation come from.

mod tool;
mod turn;

use epitome::core::TokenCounter;
use serde::Serialize;

use super::session::Session;
use super::{REFERENCE, compare};
use crate::args::{By, StatsArgs};
use crate::failure::{ExitCode, Failure, Result, code};
use crate::model;
use crate::output;
use crate::report::place_of;
use crate::transcript::{Input, Transcript};

/// A conversation, split up.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Split {
    Turns(turn::Turns),
    Tools(tool::Tools),
}

pub(super) fn run(args: &StatsArgs, by: By) -> Result<ExitCode> {
    if args.tokenizer.as_deref() == Some(compare::ALL) {
        return Err(Failure::input("--by counts with one counter: name it with --tokenizer, instead of all"));
    }
    let found = model::find(&args.model)?;
    let counter = model::counter(found.as_ref(), args.tokenizer.as_deref(), REFERENCE)?;
    let input = Input::open_to_look(&args.input)?;
    let transcripts = input.transcripts(&args.input)?;
    let each = transcripts.into_iter().map(|transcript| Split::of(transcript, &*counter, by));
    let split = each.collect::<Result<Vec<_>>>()?;
    let text = match (args.json, split.as_slice()) {
        (true, [only]) if !args.input.part.each => serde_json::to_string_pretty(only),
        (true, all) => serde_json::to_string_pretty(all),
        (false, [only]) if !args.input.part.each => Ok(only.to_text()),
        (false, all) => {
            let each = all.iter().enumerate();
            let texts =
                each.map(|(at, split)| format!("{}\n{}", place_of(at, split.path()), split.to_text()));
            Ok(texts.collect::<Vec<_>>().join("\n\n"))
        }
    };
    output::say(&text.map_err(|error| Failure::new(code::IO, error.to_string()))?)?;
    Ok(ExitCode::SUCCESS)
}

impl Split {
    fn of(transcript: Transcript<'_>, counter: &dyn TokenCounter, by: By) -> Result<Self> {
        match by {
            By::Turn => turn::Turns::of(transcript, counter).map(Self::Turns),
            By::Tool => tool::Tools::of(transcript, counter).map(Self::Tools),
        }
    }

    fn path(&self) -> &str {
        match self {
            Self::Turns(turns) => &turns.path,
            Self::Tools(tools) => &tools.path,
        }
    }

    fn to_text(&self) -> String {
        match self {
            Self::Turns(turns) => turns.to_text(),
            Self::Tools(tools) => tools.to_text(),
        }
    }
}

/// The rest of the conversation's file in words, behind a line break.
fn beside(session: Option<&Session>) -> String {
    session.map(|session| format!("\n{}", session.to_text().trim_end())).unwrap_or_default()
}
