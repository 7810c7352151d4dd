//! What one pass over a conversation finds: its groups and sizes.

use epitome::core::message::MessageView;
use epitome::core::{IndexBuf, OpenCallTree, Span, TokenCounter, Tokens, count_message};
use epitome::std::tokens::counter_by_name;

use crate::failure::{Failure, Result};
use crate::transcript::Transcript;

/// The index of a conversation, one position for each message.
pub(crate) type Index = IndexBuf<Vec<Span>, OpenCallTree>;

/// A counter, by the name that was given on the command line.
pub(crate) type Counter = Box<dyn TokenCounter + Send + Sync>;

/// The counter of this name.
pub(crate) fn counter(name: &str) -> Result<Counter> {
    counter_by_name(name).map_err(|error| Failure::input(format!("--tokenizer: {error}")))
}

/// Groups and counts a conversation: its index, and the size of each message.
pub(crate) fn index(
    transcript: &mut Transcript<'_>,
    counter: &dyn TokenCounter,
) -> Result<(Index, Vec<Tokens>)> {
    let (mut index, mut sizes) = (Index::new(), Vec::new());
    transcript.for_each(|message| {
        let size = count_message(message, counter);
        sizes.push(size);
        push(&mut index, message, size)
    })?;
    Ok((index, sizes))
}

/// Adds a message to an index.
pub(crate) fn push(index: &mut Index, message: &impl MessageView, tokens: Tokens) -> Result<()> {
    let placed = index.push(message, tokens);
    placed.map(|_| ()).map_err(|_| Failure::input("a conversation of more than 4,294,967,294 messages"))
}
