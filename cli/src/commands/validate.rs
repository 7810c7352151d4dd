//! `epitome validate`: checks a transcript against the rules of a provider.

use core::fmt;

use epitome::core::{OpenCallTree, Profile, Validator, Violation};
use epitome::wire::{FieldValidator, FieldViolation, Format};
use serde::Serialize;

use crate::amount::{counted, grouped};
use crate::args::ValidateArgs;
use crate::failure::{ExitCode, Failure, Result, code};
use crate::output::{self, all_to_json};
use crate::report::place_of;
use crate::silent::Silent;
use crate::transcript::{Input, Transcript};

/// The violations of one conversation.
#[derive(Debug, Serialize)]
struct Found {
    path: String,
    profile: &'static str,
    messages: u64,
    violations: Vec<Breach>,
}

/// A breach of the rules of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
enum Breach {
    Order(Violation),
    Field(FieldViolation),
}

impl Breach {
    const fn position(self) -> u32 {
        match self {
            Self::Order(violation) => violation.position,
            Self::Field(violation) => violation.position,
        }
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Order(violation) => violation.fmt(f),
            Self::Field(violation) => violation.fmt(f),
        }
    }
}

pub(crate) fn run(args: &ValidateArgs) -> Result<ExitCode> {
    let input = Input::open(&args.input)?;
    let transcripts = input.transcripts(&args.input)?;
    if !args.input.part.each {
        transcripts.iter().for_each(Transcript::mention_others);
    }
    let found = transcripts
        .into_iter()
        .map(|transcript| check(transcript, args.profile))
        .collect::<Result<Vec<_>>>()?;
    let valid = found.iter().all(|found| found.violations.is_empty());
    let text = if args.json { all_to_json(&found, args.input.part.each)? } else { to_text(&found) };
    output::say(&text)?;
    Ok(if valid { ExitCode::SUCCESS } else { ExitCode::from(code::VIOLATIONS) })
}

fn check(mut transcript: Transcript<'_>, profile: Option<Profile>) -> Result<Found> {
    let has_limits = has_limits(transcript.format());
    let profile = profile.unwrap_or(transcript.format().profile());
    let (mut violations, mut refused) = (Vec::new(), Vec::new());
    let mut validator = Validator::<OpenCallTree>::new(profile);
    let mut fields = FieldValidator::new(profile);
    let (mut messages, mut silent) = (0, Silent::default());
    transcript.for_each(|message| {
        silent.look(messages, message);
        messages += 1;
        if has_limits {
            fields.push(message, &mut |violation| refused.push(Breach::Field(violation)));
        }
        let pushed = validator.push(message, &mut |violation| violations.push(violation));
        pushed.map_err(|full| Failure::new(code::IO, full.to_string()))
    })?;
    validator.finish(&mut |violation| violations.push(violation));
    fields.finish(&mut |violation| refused.push(Breach::Field(violation)));
    violations.sort_unstable();
    let mut violations: Vec<_> = violations.into_iter().map(Breach::Order).chain(refused).collect();
    violations.sort_by_key(|breach| breach.position());
    silent.tell(transcript.pointer());
    Ok(Found { path: transcript.pointer().to_owned(), profile: profile.as_str(), messages, violations })
}

/// Whether a service receives the fields of this format unchanged. For other formats, a program sets the ids and names
/// of calls for the service that receives them.
const fn has_limits(format: Format) -> bool {
    use Format::{Anthropic, ClaudeCode, Codex, OpenaiChat, OpenaiResponses};
    matches!(format, OpenaiChat | OpenaiResponses | Anthropic | ClaudeCode | Codex)
}

fn to_text(found: &[Found]) -> String {
    let mut text = String::new();
    for (at, Found { path, violations, .. }) in found.iter().enumerate() {
        let place = if found.len() > 1 { format!("{}: ", place_of(at, path)) } else { String::new() };
        for violation in violations {
            text += &format!("{place}{violation}\n");
        }
    }
    let violations: usize = found.iter().map(|found| found.violations.len()).sum();
    let messages = found.iter().map(|found| found.messages).sum();
    let profile = found.first().map_or("", |found| found.profile);
    let verdict = match violations {
        0 => format!("valid under {profile}"),
        many => format!("{} of {profile} (messages are counted from 0)", counted(many as u64, "violation")),
    };
    let conversations = match found.len() {
        1 => String::new(),
        many => format!(" in {} conversations", grouped(many as u64)),
    };
    text + &format!("{}{conversations}: {verdict}", counted(messages, "message"))
}
