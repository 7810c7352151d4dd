//! `epitome compact --repair`.

use epitome::core::message::CallKind;
use epitome::core::{
    BRIDGE, BRIDGE_USER, OpenCallTree, Pending, Profile, Repair, Repairer, TokenCounter, Tokens, Validator,
    count_message,
};
use epitome::std::message::{Message, Part};
use epitome::std::wire::openai_chat;

use super::piece::{OwnedPiece, message_of};
use crate::failure::{Failure, Result, code};
use crate::report::{RepairCounts, Report};
use crate::transcript::Transcript;

/// Brings the report up to date with what a repair did. `None` if the transcript is written as it is.
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
    let mut counts = RepairCounts { left_out: kept.len() as u64, ..RepairCounts::default() };
    let mut newest = 0;
    let mut pieces = Vec::with_capacity(kept.len());
    for step in repair_steps(kept, transcript, profile)? {
        if let Repair::Keep(at) | Repair::Merge { position: at } | Repair::DropReasoning { position: at } =
            step
        {
            counts.left_out -= 1;
            counts.moved += u64::from(at < newest);
            newest = newest.max(at);
        }
        let piece = |at: u32| {
            kept.get(at as usize).ok_or_else(|| Failure::input(format!("there is no message {at} to repair")))
        };
        match step {
            Repair::Keep(at) => pieces.push(piece(at)?.clone()),
            Repair::DropReasoning { position } => {
                let message = message_of(piece(position)?, transcript)?;
                let rest = message.parts().iter().filter(|part| !matches!(part, Part::Reasoning(_)));
                let rest = rest.cloned().collect();
                pieces.push(edited(piece(position)?, &message.with_parts(rest), transcript, counter)?);
                counts.without_reasoning += 1;
            }
            Repair::Merge { position } => {
                let more = message_of(piece(position)?, transcript)?;
                let Some(last) = pieces.pop() else { continue };
                let message = message_of(&last, transcript)?;
                let parts = message.parts().iter().chain(more.parts()).cloned().collect();
                // It is of the format of what was read: what is sealed in it is sealed for that vendor.
                let whole = if last.original().is_some() { message } else { more };
                pieces.push(edited(&last, &whole.with_parts(parts), transcript, counter)?);
                counts.merged += 1;
            }
            Repair::Abort { position, call } | Repair::Unrecorded { position, call } => {
                let message = message_of(piece(position)?, transcript)?;
                let text = step.invented().unwrap_or_default();
                pieces.push(new(&invented(&message, call, text, profile))?);
                counts.count_result(step);
            }
            Repair::BridgeUser => {
                pieces.push(new(&Message::user(BRIDGE_USER))?);
                counts.put_between += 1;
            }
            Repair::BridgeAssistant => {
                pieces.push(new(&Message::assistant(BRIDGE))?);
                counts.put_between += 1;
            }
            other => return Err(Failure::input(format!("the repair {other:?} is not known here"))),
        }
    }
    Ok((pieces, counts))
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
    // A file is at rest: nothing of it is still running.
    Ok(repairer.finish(profile, Pending::Over))
}

/// How many rules of `profile` these pieces break.
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

/// The piece with this message in its place.
fn edited(
    piece: &OwnedPiece,
    message: &Message,
    transcript: &mut Transcript<'_>,
    counter: &dyn TokenCounter,
) -> Result<OwnedPiece> {
    let Some(at) = piece.original() else {
        return Ok(
            chat(message).map_or_else(|_| OwnedPiece::Unsaid(Box::new(message.clone())), OwnedPiece::New)
        );
    };
    let tokens = count_message(message, counter).as_u64();
    let text = if transcript.replace(at, message) { None } else { Some(chat(message)?) };
    Ok(OwnedPiece::Shortened { at, text, tokens })
}

fn new(message: &Message) -> Result<OwnedPiece> {
    chat(message).map(OwnedPiece::New)
}

fn chat(message: &Message) -> Result<String> {
    let text = openai_chat::write(message).map_err(|error| Failure::input(error.to_string()))?;
    Ok(text.into_owned())
}

/// A result of this text for a call of `message`; with the name of its tool where the provider asks for it.
fn invented(message: &Message, wanted: u32, text: &str, profile: Profile) -> Message {
    let calls = message.parts().iter().filter_map(|part| match part {
        Part::ToolCall(call) if call.kind == CallKind::Function => Some(call),
        _ => None,
    });
    let call = calls.into_iter().nth(wanted as usize);
    let result = Message::tool(call.map(|call| call.id.clone()).unwrap_or_default(), text);
    match call.filter(|_| profile == Profile::Gemini) {
        Some(call) => result.with_name(call.name.clone()),
        None => result,
    }
}
