//! The pieces of a compacted conversation: messages as they were, shortened ones, and new ones.

use std::collections::BTreeSet;

use epitome::core::{Index, TokenCounter, count_message};
use epitome::history::PartStandIn;
use epitome::message::Message;
use epitome::wire::document::Piece;
use epitome::wire::{WireError, openai_chat};

use crate::failure::{Failure, Result};
use crate::filled::Filled;
use crate::transcript::{Transcript, View};

#[derive(Clone)]
pub(super) enum OwnedPiece {
    Original(usize),
    /// The message at this index, with shortened parts. `text` is its new text, in a format in which each message is a
    /// separate text.
    Shortened {
        at: usize,
        text: Option<String>,
        tokens: u64,
    },
    New(String),
    /// A new message that Chat Completions, the format of new messages, cannot represent. A conversion may represent
    /// it, and lists the losses.
    Unsaid(Box<Message>),
}

impl OwnedPiece {
    /// The piece as it is written in the form of the input.
    pub(super) fn as_piece(&self) -> Result<Piece<'_>> {
        match self {
            Self::Original(at) | Self::Shortened { at, text: None, .. } => Ok(Piece::Original(*at)),
            Self::New(text) | Self::Shortened { text: Some(text), .. } => Ok(Piece::New(text)),
            Self::Unsaid(message) => {
                let why = openai_chat::write(message).err().map(|error| error.to_string());
                Err(Failure::input(why.unwrap_or_default()))
            }
        }
    }

    pub(super) const fn original(&self) -> Option<usize> {
        match self {
            Self::Original(at) | Self::Shortened { at, .. } => Some(*at),
            Self::New(_) | Self::Unsaid(_) => None,
        }
    }
}

/// All messages of a conversation, unchanged.
pub(super) fn all(transcript: &Transcript<'_>) -> Vec<OwnedPiece> {
    (0..transcript.len()).map(OwnedPiece::Original).collect()
}

fn originals(order: impl IntoIterator<Item = u32>) -> Vec<OwnedPiece> {
    order.into_iter().map(|at| OwnedPiece::Original(at as usize)).collect()
}

/// The messages that stay, each summary in its place.
pub(super) fn in_order(view: Index<'_>, order: Vec<u32>, filled: Option<&Filled>) -> Vec<OwnedPiece> {
    let Some(filled) = filled.filter(|filled| !filled.summaries.is_empty()) else { return originals(order) };
    let stays: BTreeSet<u32> = order.into_iter().collect();
    let pieces = view.projection().flatten().filter_map(|at| match filled.summaries.get(&at) {
        Some(summary) => Some(OwnedPiece::New(summary.message.clone())),
        None => stays.contains(&at).then_some(OwnedPiece::Original(at as usize)),
    });
    pieces.collect()
}

/// Rewrites the messages among `pieces` that the plan shortens, and returns all pieces.
pub(super) fn shortened(
    pieces: Vec<OwnedPiece>,
    filled: &Filled,
    transcript: &mut Transcript<'_>,
    counter: &dyn TokenCounter,
) -> Result<Vec<OwnedPiece>> {
    transcript.shorten(&filled.edits);
    let write = |piece: OwnedPiece| {
        let OwnedPiece::Original(at) = piece else { return Ok(piece) };
        let stand_ins = u32::try_from(at).ok().and_then(|at| filled.edits.get(&at));
        let Some(stand_ins) = stand_ins else { return Ok(piece) };
        let written = transcript.with_message(at, |view| {
            let message = PartStandIn::apply(stand_ins, &view.to_message()?);
            let text = match view {
                View::Chat(_) => Some(openai_chat::write(&message)?.into_owned()),
                View::Owned(_) => None,
            };
            Ok((text, count_message(&message, counter).as_u64()))
        })?;
        let (text, tokens) = written.map_err(|error: WireError| Failure::input(error.to_string()))?;
        Ok(OwnedPiece::Shortened { at, text, tokens })
    };
    pieces.into_iter().map(write).collect()
}

/// The message of a piece.
pub(super) fn message_of(piece: &OwnedPiece, transcript: &mut Transcript<'_>) -> Result<Message> {
    let message = match piece {
        OwnedPiece::Unsaid(message) => Ok((**message).clone()),
        OwnedPiece::New(text) | OwnedPiece::Shortened { text: Some(text), .. } => openai_chat::read(text),
        OwnedPiece::Original(at) | OwnedPiece::Shortened { at, text: None, .. } => {
            match transcript.edited(*at) {
                Some(message) => Ok(message),
                None => transcript.with_message(*at, |view| view.to_message())?,
            }
        }
    };
    message.map_err(|error| Failure::input(error.to_string()))
}
