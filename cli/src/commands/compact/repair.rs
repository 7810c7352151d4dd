//! `epitome compact --repair`.

use epitome::core::{
    OpenCallTree, Pending, Profile, Repair, Repairer, TokenCounter, Tokens, Validator, count_message,
};
use epitome::std::wire::openai_chat;

use super::piece::{OwnedPiece, message_of};
use crate::failure::{Failure, Result, code};
use crate::report::{RepairCounts, Report};
use crate::transcript::Transcript;

mod rebuilt;

use rebuilt::Rebuilt;

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
    let steps = repair_steps(kept, transcript, profile)?;
    let mut rebuilt = Rebuilt::new(kept, transcript, (profile, counter), &message_of);
    for step in steps {
        rebuilt.apply(step)?;
    }
    rebuilt.finish()
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
