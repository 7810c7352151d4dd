//! Requests of a service in the form of the API, and its responses as artefacts.

use std::borrow::ToOwned as _;
use std::format;
use std::string::{String, ToString as _};

use epitome_core::Profile;
use epitome_std::message::Part;
use epitome_std::wire::usage::compactions;
use epitome_std::wire::{Converted, Format, ReadOptions, convert, read};
use serde_json::{Map, Value, json};

use super::super::{Artefact, ServiceError, ServiceErrorKind, ServiceRequest};
use super::summarize::signed_block;
use super::{BoundThinking, MappingError, NoSummary, Summarize};

/// The name of the service in [`CompactionPart::provider`](epitome_std::message::CompactionPart::provider).
pub const PROVIDER: &str = "anthropic";

/// The body of a request to `POST /v1/messages` that asks for a summary of the messages of `request`.
///
/// It has the conversation's instructions and tools, and the members `fields`, such as `thinking`. These should be
/// the same as in the conversation; otherwise the API rejects thinking that is kept behind the summary. The result
/// also lists the content that the API has no form for. For a compaction by another provider, its text is sent, and
/// not its sealed content.
///
/// # Errors
/// `Invalid` for a request that the API would refuse: see [`Summarize::request`]. Also on a model with bound
/// thinking if the last message is from the user, because the kept messages begin with another one from the user.
pub fn summarize_body(
    model: &str,
    request: &ServiceRequest<'_>,
    ask: &Summarize,
    fields: &Map<String, Value>,
) -> Result<Converted, ServiceError> {
    let messages = request.instructions.iter().chain(request.replaced().iter().copied());
    let mut written = convert(messages, Format::Anthropic)
        .map_err(|error| invalid("the conversation cannot be written").with_source(error))?;
    let mut body = core::mem::take(&mut written.text);
    if body.pop() != Some('}') {
        return Err(invalid("the conversation is no object"));
    }
    let tools = request.tools.iter().map(|tool| {
        json!({"name": &*tool.name, "description": &*tool.description, "input_schema": tool.parameters})
    });
    let tools = Some(Value::Array(tools.collect())).filter(|_| !request.tools.is_empty());
    let own = [("model", Some(Value::from(model))), ("tools", tools)];
    let own = own.iter().filter_map(|(key, value)| Some((*key, value.as_ref()?)));
    for (key, value) in own.chain(fields.iter().map(|(key, value)| (&**key, value))) {
        body.push_str(&format!(",{}:{value}", Value::from(key)));
    }
    body.push('}');
    let ended = BoundThinking::of(model, Profile::Anthropic).is_bound();
    written.text = ask.whole(body, ended).map_err(unfit)?;
    Ok(written)
}

/// The artefact in a response of the API.
///
/// # Errors
/// `Malformed` if the response differs from the API's documentation; `ContextTooLong` or `Invalid` if there is no
/// summary. The error contains the usage of the request.
pub fn summarized(model: &str, answer: &str) -> Result<Artefact, ServiceError> {
    // A response that is no JSON has no usage report.
    let usage = compactions(answer).ok().and_then(|spent| spent.into_iter().next());
    let malformed = |what| ServiceError::new(ServiceErrorKind::Malformed, format!("{PROVIDER}: {what}"));
    match signed_block(answer) {
        Ok(Ok(_)) => {}
        Ok(Err(why)) => {
            let kind = match why {
                NoSummary::ContextExceeded => ServiceErrorKind::ContextTooLong,
                ref why => ServiceErrorKind::Invalid(why.as_str().to_owned()),
            };
            let context = format!("{PROVIDER}: there is no summary: {}", why.as_str());
            return Err(ServiceError::new(kind, context).with_usage(usage));
        }
        Err(error) => return Err(malformed("an odd answer").with_source(error).with_usage(usage)),
    }
    let options = ReadOptions::default().with_from(Format::Anthropic);
    let read = read(answer, &options).map_err(|error| malformed("an odd answer").with_source(error))?;
    let parts = read.conversations().iter().flat_map(|it| it.messages()).flat_map(|message| message.parts());
    let mut left = parts.filter_map(|part| match part {
        Part::Compaction(left) => Some(left.clone()),
        _ => None,
    });
    let left = left.next().ok_or_else(|| malformed("no compaction block").with_usage(usage))?;
    Ok(Artefact::new(left.with_model(model)).with_usage(usage))
}

fn invalid(what: &str) -> ServiceError {
    ServiceError::new(ServiceErrorKind::Invalid("conversation".to_string()), format!("{PROVIDER}: {what}"))
}

fn unfit(error: MappingError) -> ServiceError {
    invalid("the request would be refused").with_source(error)
}
