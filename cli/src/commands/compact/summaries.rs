//! The summaries and digests of a plan.

use epitome::core::{Plan, TokenCounter, Tokens};
use epitome::message::Message;
use epitome::wire::WireError;

use crate::failure::{Failure, Result};
use crate::summarizer::{self, Prompted};
use crate::transcript::Transcript;

/// Writes the summaries and digests of a plan, in its order.
pub(super) fn write(
    plan: &Plan<'_>,
    transcript: &mut Transcript<'_>,
    summarizer: Option<&Prompted>,
    counter: &(dyn TokenCounter + Send + Sync),
) -> Result<Vec<(String, Tokens)>> {
    if plan.summaries().next().is_none() {
        return Ok(Vec::new());
    }
    let mut messages: Vec<Message> = Vec::with_capacity(transcript.len());
    transcript.for_each(|message| {
        let message = message.to_message();
        messages.push(message.map_err(|error: WireError| Failure::input(error.to_string()))?);
        Ok(())
    })?;
    let messages: Vec<&Message> = messages.iter().collect();
    // A file hides no messages, so that no answer is late.
    summarizer::write(plan, &messages, summarizer, counter, |_| Ok(Vec::new()))
}
