//! `epitome compact --repair`: makes the result legal under a profile.

use std::borrow::Cow;

use epitome::core::{
    OpenCallTree, Pending, Profile, Repair, Repairer, TokenCounter, Tokens, Validator, count_message,
};
use epitome::message::{Message, Repaired, apply_repairs};
use epitome::wire::openai_chat;

use super::piece::{OwnedPiece, message_of};
use crate::failure::{Failure, Result, code};
use crate::report::{RepairCounts, Report};
use crate::transcript::Transcript;

/// Updates the report after a repair. `None` if the transcript is written unchanged.
pub(super) fn account(
    (pieces, counts): (Vec<OwnedPiece>, RepairCounts),
    sizes: &[Tokens],
    counter: &dyn TokenCounter,
    report: &mut Report,
) -> Result<Option<Vec<OwnedPiece>>> {
    report.repair = Some(counts);
    report.messages_after = pieces.len() as u64;
    report.tokens_after = 0;
    for piece in &pieces {
        report.tokens_after += match piece {
            OwnedPiece::Original(at) => sizes.get(*at).map_or(0, |size| size.as_u64()),
            OwnedPiece::Shortened { tokens, .. } => *tokens,
            OwnedPiece::New(text) => {
                let message = openai_chat::read(text).map_err(|error| Failure::input(error.to_string()))?;
                count_message(&message, counter).as_u64()
            }
            OwnedPiece::Unsaid(message) => count_message(&**message, counter).as_u64(),
        };
    }
    let same = |(at, piece): &(usize, &OwnedPiece)| matches!(piece, OwnedPiece::Original(from) if from == at);
    let stable = pieces.iter().enumerate().take_while(same).count();
    report.set_stable_prefix(stable, sizes);
    report.set_goal_missed();
    Ok(Some(pieces).filter(|pieces| stable < pieces.len() || pieces.len() < sizes.len()))
}

/// The messages of `kept`, made legal under `profile`.
pub(super) fn repair(
    kept: &[OwnedPiece],
    transcript: &mut Transcript<'_>,
    profile: Profile,
    counter: &dyn TokenCounter,
) -> Result<(Vec<OwnedPiece>, RepairCounts)> {
    let steps = repair_steps(kept, transcript, profile)?;
    let counts = RepairCounts::of(&steps, kept.len());
    let mut repaired = Vec::with_capacity(steps.len());
    // A format without ids finds the call of a result by its name.
    let named = profile.names_results() || transcript.format().profile().names_results();
    let read = |at: u32| match kept.get(at as usize) {
        Some(piece) => as_read(piece, transcript).map(|message| Some(Cow::Owned(message))),
        None => Ok(None),
    };
    apply_repairs(steps, named, read, |message| {
        repaired.push(message);
        Ok(())
    })?;
    let at = |position: u32| kept.get(position as usize);
    let pieces = repaired.into_iter().filter_map(|message| match message {
        Repaired::Kept(position) => Some(Ok(at(position)?.clone())),
        Repaired::Changed(position, message) => {
            Some(edited(at(position)?.original(), message, transcript, counter))
        }
        Repaired::Invented(message) => Some(Ok(new(message))),
    });
    Ok((pieces.collect::<Result<_>>()?, counts))
}

/// The message of a piece, in the form of its source; a new message has no source.
fn as_read(piece: &OwnedPiece, transcript: &mut Transcript<'_>) -> Result<Message> {
    let message = message_of(piece, transcript)?;
    Ok(match piece {
        OwnedPiece::New(_) => Message::new(message.role(), message.into_parts()),
        _ => message,
    })
}

/// The piece for `message`, in the place of an original message or as a new one.
fn edited(
    original: Option<usize>,
    message: Message,
    transcript: &mut Transcript<'_>,
    counter: &dyn TokenCounter,
) -> Result<OwnedPiece> {
    let Some(at) = original else { return Ok(new(message)) };
    let tokens = count_message(&message, counter).as_u64();
    let text = if transcript.replace(at, &message) { None } else { Some(chat(&message)?) };
    Ok(OwnedPiece::Shortened { at, text, tokens })
}

fn new(message: Message) -> OwnedPiece {
    chat(&message).map_or_else(|_| OwnedPiece::Unsaid(Box::new(message)), OwnedPiece::New)
}

fn chat(message: &Message) -> Result<String> {
    let text = openai_chat::write(message).map_err(|error| Failure::input(error.to_string()))?;
    Ok(text.into_owned())
}

fn repair_steps(
    kept: &[OwnedPiece],
    transcript: &mut Transcript<'_>,
    profile: Profile,
) -> Result<Vec<Repair>> {
    let is_edit =
        |(at, piece): &(usize, &OwnedPiece)| !matches!(piece, OwnedPiece::Original(from) if from == at);
    let mut repairer = Repairer::default();
    if let Some((first, _)) = kept.iter().enumerate().find(is_edit) {
        repairer = repairer.with_edit(u32::try_from(first).unwrap_or(u32::MAX));
    }
    for piece in kept {
        match piece {
            OwnedPiece::Original(at) => transcript.with_message(*at, |message| repairer.push(message))?,
            other => repairer.push(&message_of(other, transcript)?),
        }
    }
    // A file is complete: none of its calls is still running.
    Ok(repairer.finish(profile, Pending::Over))
}

/// Number of violations of `profile` in these pieces.
pub(super) fn violations(
    pieces: &[OwnedPiece],
    transcript: &mut Transcript<'_>,
    profile: Profile,
) -> Result<u64> {
    let (mut validator, mut violations) = (Validator::<OpenCallTree>::new(profile), 0);
    for piece in pieces {
        let message = message_of(piece, transcript)?;
        let pushed = validator.push(&message, &mut |_| violations += 1);
        pushed.map_err(|full| Failure::new(code::IO, full.to_string()))?;
    }
    validator.finish(&mut |_| violations += 1);
    Ok(violations)
}
