//! Recognises and reads histories.

use epitome_core::{OpenAiTokens, Usage};

use super::message::{Fields, messages, role};
use super::write::write_record;
use crate::body::Body;
use crate::expect::number;
use crate::json::{self, ValueKind};
use crate::spec::{Fit, FormatSpec, Writer};
use crate::transcript::{Conversation, Transcript};
use crate::{Format, WireError};

/// The row of Semantic Kernel in the table of formats.
pub(crate) const SPEC: FormatSpec =
    FormatSpec::built_in(Format::SemanticKernel, &["Messages"], (sign, read), Writer::Own(write_record));

fn sign(body: &Body<'_>) -> Fit {
    let Some(sample) = body.sample("Messages").filter(|_| body.value().is_some()) else { return Fit::No };
    let has_items = |item: &str| json::field(item, "Items").is_ok_and(|items| items.is_some());
    let is_message =
        |item: &&str| ValueKind::of(item) == ValueKind::Object && role(item).is_ok() && has_items(item);
    match !sample.is_empty() && sample.iter().all(is_message) {
        true => Fit::Certain("its messages have `Role` and `Items`"),
        false => Fit::No,
    }
}

fn read(transcript: &mut Transcript, body: &Body<'_>) -> Result<(), WireError> {
    let whole = body.value().unwrap_or_default();
    let (list, path) = match body.field("Messages") {
        Some(list) => (list, "/Messages"),
        None => (whole, ""),
    };
    if ValueKind::of(list) != ValueKind::Array {
        let found = json::describe(list);
        return Err(WireError::shape(format!("expected an array of messages, found {found}")));
    }
    let mut conversation = Conversation::new(Format::SemanticKernel, format!("{}{path}", body.path()));
    let list = transcript.array(list)?;
    transcript.extend(&mut conversation, list, (whole, path), |source, text| {
        let fields = Fields::of(text)?;
        Ok((messages(source, text, &fields)?, reported(&fields)?))
    })?;
    transcript.push(conversation);
    Ok(())
}

/// Reads `Usage` of `Metadata`, with the keys of OpenAI's client for .NET before its version 2 and since.
fn reported(fields: &Fields<'_>) -> Result<Option<Usage>, WireError> {
    let object = |text: Option<&str>| text.is_some_and(|text| ValueKind::of(text) == ValueKind::Object);
    let Some(metadata) = fields.metadata.filter(|text| object(Some(text))) else { return Ok(None) };
    let usage = json::field(metadata, "Usage")?;
    let Some(usage) = usage.filter(|text| object(Some(text))) else { return Ok(None) };
    let names = &[
        "PromptTokens",
        "CompletionTokens",
        "TotalTokens",
        "InputTokenCount",
        "OutputTokenCount",
        "TotalTokenCount",
        "InputTokenDetails",
    ];
    let [prompt, completion, total, input, output, count, details] = json::fields(usage, names)?;
    let cached = match details.filter(|text| object(Some(text))) {
        Some(details) => number(json::field(details, "CachedTokenCount")?),
        None => None,
    };
    let tokens = OpenAiTokens {
        input: number(prompt.or(input)),
        output: number(completion.or(output)),
        total: number(total.or(count)),
        cached,
        reasoning: None,
    };
    Ok(Some(Usage::openai(tokens)).filter(|_| tokens != OpenAiTokens::NONE))
}
