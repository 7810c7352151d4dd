//! Reads the usage that providers report in their responses.
//!
//! ```
//! use epitome_wire::usage::reported;
//!
//! let response = r#"{"id": "msg_1", "type": "message", "role": "assistant", "content": [], "usage":
//!   {"input_tokens": 12, "cache_read_input_tokens": 9000, "cache_creation_input_tokens": 500, "output_tokens": 40}}"#;
//! let usage = reported(response)?.ok_or("it reports nothing")?;
//! assert_eq!((usage.input_total, usage.cache_read, usage.output_total), (Some(9_512), Some(9_000), Some(40)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The totals of a report do not include the cost of Anthropic's own compactions, which is the size of no request:
//! [`compactions`] returns it. The report itself has the size of the compacted request: see
//! [`Usage::after_compaction`].
//!
//! The keys of a report identify its vendor: no two vendors use the same set of keys with different meanings.
//!
//! | keys | vendor | meaning |
//! |---|---|---|
//! | `prompt_tokens` | Chat Completions and its followers | cached tokens are part of the input |
//! | `input_tokens` with `input_tokens_details` or `total_tokens` | Responses | the same |
//! | `input_tokens` otherwise | Anthropic | tokens read from and written to the cache are not part of the input |
//! | `inputTokens` | Bedrock's Converse | the same |
//! | `promptTokenCount` | Gemini | prompt and answer do not include thoughts and server-side tools |

use epitome_core::{AnthropicTokens, GeminiTokens, OpenAiTokens, Usage};

use super::WireError;
use super::expect::number;
use super::json::{self, ValueKind};

/// The usage in the response `text`, or in an event of a streamed response; `None` if it reports nothing.
///
/// The first event of a stream of Anthropic reports the input, and the last one the output. A list of Gemini's streamed
/// chunks or another array is no response.
///
/// ```
/// use epitome_core::Usage;
/// use epitome_wire::usage::reported;
///
/// let response = r#"{"choices": [], "usage": {"prompt_tokens": 1200, "completion_tokens": 80, "total_tokens": 1280}}"#;
/// assert_eq!(reported(response)?, Some(Usage::new(1_200, 80)));
/// assert_eq!(reported(r#"{"choices": []}"#)?, None);
/// let last = reported(r#"{"type": "message_delta", "usage": {"output_tokens": 80}}"#)?.unwrap_or_default();
/// assert_eq!((last.input_total, last.output_total), (None, Some(80)));
/// # Ok::<(), epitome_wire::WireError>(())
/// ```
///
/// # Errors
/// `Shape` if the text or its report is no object; `NotJson` and `Truncated` for a text that cannot be read.
pub fn reported(text: &str) -> Result<Option<Usage>, WireError> {
    super::expect::expect_object(text, "a response")?;
    let names = &["usage", "usageMetadata", "usage_metadata", "response", "message", "type"];
    let [usage, camel, snake, response, message, kind] = json::fields(text, names)?;
    let object = |value: &&str| ValueKind::of(value) == ValueKind::Object;
    // A chunk of Gemini may have metadata without counts.
    let metadata = match camel.or(snake).filter(|metadata| *metadata != "null") {
        Some(metadata) if json::fields(metadata, PROMPT)? == [None, None] => None,
        metadata => metadata,
    };
    if let Some(usage) = usage.or(metadata).filter(|usage| *usage != "null") {
        // The last report of a stream of Anthropic may have the output alone.
        let read = if kind == Some(MESSAGE_DELTA) { anthropic } else { of };
        return json::nested(text, usage, "/usage", read).map(Some);
    }
    // The last event of a stream of Responses, and the first of a stream of Anthropic.
    match (response.filter(object), message.filter(object)) {
        (Some(response), _) => json::nested(text, response, "/response", reported),
        (None, Some(message)) => json::nested(text, message, "/message", reported),
        (None, None) => Ok(None),
    }
}

/// The usage of the compactions that Anthropic's API made for `response`, in order. They are billed, and are in no
/// total of the report. Count them as spent, in addition to the usage from [`reported`].
///
/// ```
/// use epitome_core::Usage;
/// use epitome_wire::usage::{compactions, reported};
///
/// let response = r#"{"usage": {"input_tokens": 23000, "output_tokens": 1000, "iterations": [
///   {"type": "compaction", "input_tokens": 180000, "output_tokens": 3500},
///   {"type": "message", "input_tokens": 23000, "output_tokens": 1000}]}}"#;
/// assert_eq!(compactions(response)?, [Usage::new(180_000, 3_500)]);
/// assert_eq!(reported(response)?.and_then(|usage| usage.input_total), Some(23_000));
/// # Ok::<(), epitome_wire::WireError>(())
/// ```
///
/// # Errors
/// As [`reported`].
pub fn compactions(response: &str) -> Result<Vec<Usage>, WireError> {
    super::expect::expect_object(response, "a response")?;
    let mut found = Vec::new();
    if let Some(usage) =
        json::field(response, "usage")?.filter(|usage| ValueKind::of(usage) == ValueKind::Object)
    {
        json::nested(response, usage, "/usage", |usage| {
            each_iteration(usage, |kind, step| {
                if kind == Some(COMPACTION) {
                    found.push(Usage::anthropic(anthropic_tokens(step)?));
                }
                Ok(())
            })
        })?;
    }
    Ok(found)
}

/// The keys of the prompt's size in a report of Gemini, in both spellings.
const PROMPT: &[&str; 2] = &["promptTokenCount", "prompt_token_count"];

/// The type of the event with the last report of Anthropic, as JSON.
const MESSAGE_DELTA: &str = "\"message_delta\"";

/// The type of a step in which Anthropic's API compacted, as JSON.
const COMPACTION: &str = "\"compaction\"";

/// Calls `visit` with the type, as JSON, and the report of each step that the provider made itself.
fn each_iteration(
    usage: &str,
    mut visit: impl FnMut(Option<&str>, &str) -> Result<(), WireError>,
) -> Result<(), WireError> {
    match json::field(usage, "iterations")?.filter(|steps| ValueKind::of(steps) == ValueKind::Array) {
        Some(steps) => json::items(steps, |step| visit(json::field(step, "type")?, step)),
        None => Ok(()),
    }
}

/// Reads the report `raw`, of any vendor: the value that [`reported`] finds in a response.
///
/// ```
/// use epitome_wire::usage::of;
///
/// let usage = of(r#"{"input_tokens": 40, "output_tokens": 9, "total_tokens": 49}"#)?;
/// assert_eq!((usage.input_total, usage.output_total), (Some(40), Some(9)));
/// # Ok::<(), epitome_wire::WireError>(())
/// ```
///
/// # Errors
/// As [`reported`].
pub fn of(raw: &str) -> Result<Usage, WireError> {
    super::expect::expect_object(raw, "a report")?;
    let names = &[
        "prompt_tokens",
        "input_tokens",
        "inputTokens",
        "promptTokenCount",
        "prompt_token_count",
        "input_tokens_details",
        "total_tokens",
    ];
    let [prompt, input, converse, gemini, gemini_snake, details, total] = json::fields(raw, names)?;
    match () {
        () if prompt.is_some() => chat(raw),
        () if input.is_some() && (details.is_some() || total.is_some()) => responses(raw),
        () if input.is_some() => anthropic(raw),
        () if converse.is_some() => bedrock(raw),
        () if gemini.is_some() || gemini_snake.is_some() => self::gemini(raw),
        () => Err(WireError::shape(format!("expected a report of tokens, found {}", json::describe(raw)))),
    }
}

fn chat(raw: &str) -> Result<Usage, WireError> {
    let names = &[
        "prompt_tokens",
        "completion_tokens",
        "total_tokens",
        "prompt_tokens_details",
        "completion_tokens_details",
        "prompt_cache_hit_tokens",
    ];
    let [input, output, total, input_details, output_details, hit] = json::fields(raw, names)?;
    let cached = within(input_details, "cached_tokens")?;
    let mut usage = Usage::openai(OpenAiTokens {
        input: number(input),
        output: number(output),
        total: number(total),
        // DeepSeek's own name for cached tokens.
        cached: cached.or(number(hit)),
        reasoning: within(output_details, "reasoning_tokens")?,
    });
    usage.cache_creation = within(input_details, "cache_write_tokens")?;
    Ok(usage)
}

fn responses(raw: &str) -> Result<Usage, WireError> {
    let names =
        &["input_tokens", "output_tokens", "total_tokens", "input_tokens_details", "output_tokens_details"];
    let [input, output, total, input_details, output_details] = json::fields(raw, names)?;
    let mut usage = Usage::openai(OpenAiTokens {
        input: number(input),
        output: number(output),
        total: number(total),
        cached: within(input_details, "cached_tokens")?,
        reasoning: within(output_details, "reasoning_tokens")?,
    });
    usage.cache_creation = within(input_details, "cache_write_tokens")?;
    Ok(usage)
}

/// Reads a report of Anthropic. If the provider ran tools in steps of its own, the report adds up their inputs, and
/// only the first step has the size of the request. If the provider compacted, the first step after the compaction has
/// the size of the compacted request.
fn anthropic(raw: &str) -> Result<Usage, WireError> {
    let usage = Usage::anthropic(anthropic_tokens(raw)?);
    let mut ran = false;
    if let Some(tools) =
        json::field(raw, "server_tool_use")?.filter(|tools| ValueKind::of(tools) == ValueKind::Object)
    {
        json::members(tools, |_, count| {
            ran |= number(Some(count)).is_some_and(|count| count > 0);
            Ok(())
        })?;
    }
    let (mut first, mut compacted) = (None, false);
    each_iteration(raw, |kind, step| {
        if kind == Some(COMPACTION) {
            (first, compacted) = (None, true);
        }
        if first.is_none() && kind == Some("\"message\"") {
            first = Usage::anthropic(anthropic_tokens(step)?).input_total;
        }
        Ok(())
    })?;
    Ok(match (compacted, ran) {
        (true, _) => usage.after_compaction(first),
        (false, true) => usage.of_server_steps(first),
        (false, false) => usage,
    })
}

fn anthropic_tokens(raw: &str) -> Result<AnthropicTokens, WireError> {
    let names = &["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens"];
    let [input, read, created, output] = json::fields(raw, names)?.map(number);
    Ok(AnthropicTokens { input, cache_read: read, cache_creation: created, output })
}

fn bedrock(raw: &str) -> Result<Usage, WireError> {
    let names = &["inputTokens", "cacheReadInputTokens", "cacheWriteInputTokens", "outputTokens"];
    let [input, read, created, output] = json::fields(raw, names)?.map(number);
    Ok(Usage::anthropic(AnthropicTokens { input, cache_read: read, cache_creation: created, output }))
}

fn gemini(raw: &str) -> Result<Usage, WireError> {
    let one = |camel: &'static str, snake: &'static str| -> Result<Option<u64>, WireError> {
        let [camel, snake] = json::fields(raw, &[camel, snake])?;
        Ok(number(camel.or(snake)))
    };
    Ok(Usage::gemini(GeminiTokens {
        prompt: one("promptTokenCount", "prompt_token_count")?,
        tool_use_prompt: one("toolUsePromptTokenCount", "tool_use_prompt_token_count")?,
        candidates: one("candidatesTokenCount", "candidates_token_count")?,
        thoughts: one("thoughtsTokenCount", "thoughts_token_count")?,
        total: one("totalTokenCount", "total_token_count")?,
        cached: one("cachedContentTokenCount", "cached_content_token_count")?,
    }))
}

/// The number under `key` of an object of details.
fn within(details: Option<&str>, key: &'static str) -> Result<Option<u64>, WireError> {
    match details.filter(|details| ValueKind::of(details) == ValueKind::Object) {
        Some(details) => Ok(number(json::field(details, key)?)),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests;
