//! Conversations with labelled questions: read from the neutral form, LoCoMo, BEAM or LongMemEval.

mod beam;
mod locomo;
mod longmemeval;
mod neutral;
mod resolve;
mod shape;
#[cfg(test)]
mod tests;
mod value;

use std::fs::File;
use std::io::{BufReader, Read as _};
use std::path::Path;

use epitome::message::Message;

use crate::failure::{Failure, Result};
use neutral::Conversation;
use shape::Shape;

/// A conversation and questions about it, each with the messages that answer it.
#[derive(Debug)]
pub(super) struct Labelled {
    /// The file, and the place in it.
    pub(super) place: String,
    pub(super) messages: Vec<LabelledMessage>,
    pub(super) questions: Vec<LabelledQuestion>,
    /// Number of questions that are left out, because they have no evidence.
    pub(super) unlabelled: u64,
    /// Labels that name no message. Some published data sets have such labels; in the neutral form they are an error.
    pub(super) unknown_labels: u64,
}

/// A message that labels can name.
#[derive(Debug)]
pub(super) struct LabelledMessage {
    pub(super) id: String,
    /// The words, without the speaker and the time in front of them.
    pub(super) text: String,
    pub(super) message: Message,
}

#[derive(Debug)]
pub(super) struct LabelledQuestion {
    pub(super) text: String,
    pub(super) answer: Option<String>,
    /// The positions of the messages that answer it, ascending; at least one.
    pub(super) evidence: Vec<u32>,
    pub(super) category: Option<String>,
}

/// The conversations of a file with labelled questions; `None` if it is another file.
pub(super) fn read(path: &Path) -> Result<Option<Vec<Labelled>>> {
    // Standard input is a transcript, even if a file has its name.
    if path == Path::new("-") {
        return Ok(None);
    }
    // The reader of transcripts reports a file that cannot be opened.
    let Ok(file) = File::open(path) else { return Ok(None) };
    let Some(shape) = Shape::detect(BufReader::new(file)) else { return Ok(None) };
    let text = whole(path)?;
    let conversations = match shape {
        Shape::Neutral => value::one_or_many::<Conversation>(path, &text, &shape)?,
        Shape::Locomo => {
            value::one_or_many::<locomo::Sample>(path, &text, &shape)?.into_iter().map(Into::into).collect()
        }
        Shape::LongMemEval => value::one_or_many::<longmemeval::Instance>(path, &text, &shape)?
            .into_iter()
            .map(Into::into)
            .collect(),
        Shape::Beam => vec![beam::read(path, &text)?],
    };
    let labelled = conversations.into_iter().enumerate().map(|(at, conversation)| {
        let place = match &conversation.id {
            Some(id) => format!("{}, {id}", path.display()),
            None => format!("{}, conversation {}", path.display(), at + 1),
        };
        resolve::resolve(conversation, place, &shape)
    });
    labelled.collect::<Result<Vec<_>>>().map(Some)
}

/// The whole file, without a byte order mark.
fn whole(path: &Path) -> Result<String> {
    let mut text = String::new();
    let read = File::open(path).and_then(|mut file| file.read_to_string(&mut text));
    read.map_err(|error| Failure::io(path, &error))?;
    match text.strip_prefix('\u{FEFF}') {
        Some(rest) => Ok(rest.to_owned()),
        None => Ok(text),
    }
}
