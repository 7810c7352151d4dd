//! Recognizes refusals of requests that are too long.

use core::error::Error;
use core::fmt;

use super::json::{self, ValueKind};

/// A provider's refusal of a request that is longer than its model's window. An agent's client returns it as an error:
/// then the agent compacts and sends the request again.
///
/// ```
/// use epitome_wire::{ContextOverflow, context_overflow};
///
/// fn refused(status: u16, body: &str) -> Box<dyn std::error::Error + Send + Sync> {
///     context_overflow(status, body).map_or_else(|| format!("HTTP {status}").into(), Into::into)
/// }
///
/// let body = r#"{"error": {"message": "prompt is too long: 208310 tokens > 200000 maximum"}}"#;
/// let error = refused(400, body);
/// assert_eq!(error.to_string(), "the request of 208310 tokens is longer than the model's window of 200000");
/// assert!(error.is::<ContextOverflow>());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ContextOverflow {
    /// The window in tokens, if the message names it.
    pub limit: Option<u64>,
    /// The size of the request in tokens, if the message names it.
    pub sent: Option<u64>,
    /// The reserve of the request for its answer (`max_tokens`) in tokens, if the message names it.
    pub answer_max: Option<u64>,
}

impl ContextOverflow {
    /// Creates a refusal of a request of `sent` tokens, longer than a window of `limit`. Either is `None` if the
    /// provider does not name it.
    #[must_use]
    pub const fn new(limit: Option<u64>, sent: Option<u64>) -> Self {
        Self { limit, sent, answer_max: None }
    }

    /// Sets the tokens of the window that the request reserves for its answer.
    #[must_use]
    pub const fn with_answer_max(mut self, tokens: u64) -> Self {
        self.answer_max = Some(tokens);
        self
    }

    /// The limit of the request in tokens, if the message names the window: the window less the tokens for the answer.
    #[must_use]
    pub fn room(&self) -> Option<u64> {
        Some(self.limit?.saturating_sub(self.answer_max.unwrap_or_default()))
    }
}

impl fmt::Display for ContextOverflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sent {
            Some(sent) => write!(f, "the request of {sent} tokens is longer than the model's window")?,
            None => f.write_str("the request is longer than the model's window")?,
        }
        if let Some(limit) = self.limit {
            write!(f, " of {limit}")?;
        }
        self.answer_max.map_or(Ok(()), |answer| write!(f, ", of which the answer may have {answer}"))
    }
}

impl Error for ContextOverflow {}

/// Recognizes a response with this HTTP status and body that refuses a request as longer than the model's window.
///
/// In a streamed response the error is an event: pass the status 400 and the event.
///
/// Providers have no common code for this refusal. So the function searches for their messages, only in responses with
/// a known status, and only in the fields with error texts. The result is `None` for any other refusal.
///
/// ```
/// use epitome_wire::context_overflow;
///
/// let body = r#"{"type": "error", "error": {"type": "invalid_request_error",
///   "message": "prompt is too long: 208310 tokens > 200000 maximum"}}"#;
/// let overflow = context_overflow(400, body).ok_or("another error")?;
/// assert_eq!((overflow.limit, overflow.sent), (Some(200_000), Some(208_310)));
/// assert_eq!(context_overflow(429, body), None);
/// # Ok::<(), &str>(())
/// ```
///
/// The messages, as published:
///
/// - OpenAI: `This model's maximum context length is L tokens. However, your messages resulted in S tokens` (code
///   `context_length_exceeded`; for example <https://github.com/mckaywrigley/chatbot-ui/issues/102>);
///   `Input tokens exceed the configured limit of L tokens. Your messages resulted in S tokens`
///   (<https://github.com/cline/cline/issues/5474>); `Your input exceeds the context window of this model`.
/// - Anthropic: `prompt is too long: S tokens > L maximum` (Anthropic's documentation of context windows);
///   ``input length and `max_tokens` exceed context limit: I + M > L``
///   (<https://github.com/entropy-research/Devon/issues/88>).
/// - Gemini: `The input token count (S) exceeds the maximum number of tokens allowed (L)`
///   (<https://github.com/google-gemini/gemini-cli/issues/6678>).
/// - Bedrock: `Input is too long for requested model`, or the model vendor's own message behind
///   `The model returned the following errors:` (<https://github.com/continuedev/continue/issues/9592>,
///   <https://github.com/aaif-goose/goose/pull/7504>).
/// - vLLM: as OpenAI's, with `However, you requested S tokens`
///   (<https://github.com/ai-christianson/RA.Aid/issues/41>).
/// - llama.cpp: type `exceed_context_size_error` with `n_prompt_tokens` and `n_ctx`
///   (<https://github.com/ggml-org/llama.cpp/pull/15780>).
/// - `OpenRouter`: `This endpoint's maximum context length is L tokens. However, you requested about S tokens`, or the
///   provider's own body in `metadata.raw` (<https://github.com/OpenHands/OpenHands/issues/9937>).
#[must_use]
pub fn context_overflow(status: u16, body: &str) -> Option<ContextOverflow> {
    // 413: Bedrock and some gateways; 422: gateways that check a request themselves; 500: older llama.cpp.
    if !matches!(status, 400 | 413 | 422 | 500) {
        return None;
    }
    let texts = fields_of(body);
    if texts.iter().any(|(key, text)| matches!(*key, "type" | "code") && CODES.contains(&&**text)) {
        let in_words = texts.iter().find_map(|(key, text)| numbers(text).filter(|_| *key == "message"));
        return Some(numbered(body).or(in_words).unwrap_or_default());
    }
    texts.iter().filter(|(key, _)| !matches!(*key, "type" | "code")).find_map(|(_, text)| numbers(text))
}

/// The texts of the fields in which providers describe an error.
pub(super) fn fields_of(body: &str) -> Vec<(&'static str, String)> {
    let mut texts = Vec::new();
    collect(body, DEPTH_MAX, &mut texts);
    texts
}

/// Adds the texts of these fields of an object and of its nested objects.
fn collect(text: &str, depth: usize, found: &mut Vec<(&'static str, String)>) {
    match ValueKind::of(text) {
        ValueKind::Object => {
            // An error ends the search: a text that is no JSON has no fields.
            let _ = json::members(text, |key, value| {
                let Some(key) = FIELDS.iter().find(|field| **field == key) else { return Ok(()) };
                match ValueKind::of(value) {
                    // A text of a model is no error.
                    ValueKind::Text if *key == "response" => {}
                    ValueKind::Text => {
                        let text = json::decode(value).into_owned();
                        // A gateway sends the provider's body as a text.
                        if depth > 0 && text.starts_with('{') {
                            collect(&text, depth.saturating_sub(1), found);
                        }
                        found.push((*key, text));
                    }
                    ValueKind::Object | ValueKind::Array if depth > 0 => {
                        collect(value, depth.saturating_sub(1), found)
                    }
                    _ => {}
                }
                Ok(())
            });
        }
        // Gemini's endpoints return a list of one error.
        ValueKind::Array => {
            let _ = json::items(text, |item| {
                if depth > 0 {
                    collect(item, depth.saturating_sub(1), found);
                }
                Ok(())
            });
        }
        _ => {}
    }
}

/// The numbers of an error of llama.cpp, which has fields for them.
fn numbered(body: &str) -> Option<ContextOverflow> {
    let error = json::field(body, "error").ok()?.filter(|error| ValueKind::of(error) == ValueKind::Object)?;
    let [sent, limit] = json::fields(error, &["n_prompt_tokens", "n_ctx"]).ok()?;
    let (sent, limit) = (super::expect::number(sent), super::expect::number(limit));
    Some(ContextOverflow::new(limit, sent)).filter(|overflow| *overflow != ContextOverflow::default())
}

/// The numbers of one of the known messages.
fn numbers(text: &str) -> Option<ContextOverflow> {
    let text = text.to_ascii_lowercase();
    let after = |mark: &str| number_in(text.split_once(mark)?.1);
    let known = |mark: &&&str| text.contains(**mark);
    let mark = MESSAGES.iter().find(known)?;
    Some(match *mark {
        "maximum context length is" => {
            let limit = after("maximum context length is");
            let before = |mark: &str| number_before(text.split_once(mark)?.0);
            let prompt = after("prompt contains").filter(|_| !text.contains("characters"));
            if text.contains("output tokens and your prompt contains") {
                // "you requested 8192 output tokens and your prompt contains at least 24577 input tokens"
                return Some(ContextOverflow { limit, sent: prompt, answer_max: after("you requested") });
            }
            let sent = after("resulted in").or_else(|| after("you requested")).or(prompt);
            // "you requested 8500 tokens (7500 in the messages, 1000 in the completion)"
            let answer_max = before("in the completion").or_else(|| before("in the output"));
            let sent = sent.map(|sent| sent.saturating_sub(answer_max.unwrap_or_default()));
            ContextOverflow { limit, sent, answer_max }
        }
        "exceed the configured limit of" => {
            ContextOverflow::new(after("exceed the configured limit of"), after("resulted in"))
        }
        "prompt is too long" => ContextOverflow::new(after("tokens >"), after("prompt is too long")),
        "exceed context limit" => {
            let (sum, limit) = text.split_once("exceed context limit")?.1.split_once('>').unwrap_or_default();
            let (input, answer) = sum.split_once('+').unwrap_or((sum, ""));
            let (sent, answer_max) = (number_in(input), number_in(answer));
            ContextOverflow { limit: number_in(limit), sent, answer_max }
        }
        "exceeds the maximum number of tokens allowed" => {
            ContextOverflow::new(after("tokens allowed"), after("input token count"))
        }
        _ => ContextOverflow::default(),
    })
}

/// The first number of `text`, if it is near the beginning. Commas between its digits are ignored. A number with a
/// unit, such as `128k`, does not count.
fn number_in(text: &str) -> Option<u64> {
    let start = text.find(|character: char| character.is_ascii_digit()).filter(|start| *start <= NEAR_MAX)?;
    let digits = text.get(start..)?;
    let end = digits.find(|character: char| !character.is_ascii_digit() && character != ',');
    let (digits, rest) = digits.split_at_checked(end.unwrap_or(digits.len()))?;
    let has_unit = rest.starts_with(|character: char| character.is_alphabetic());
    digits.replace(',', "").parse().ok().filter(|_| !has_unit)
}

/// The number at the end of `text`.
fn number_before(text: &str) -> Option<u64> {
    let text = text.trim_end();
    let digits = text.rfind(|character: char| !character.is_ascii_digit() && character != ',');
    let start = digits.map_or(0, |at| at.saturating_add(1));
    text.get(start..)?.replace(',', "").parse().ok()
}

/// Codes and types with only this meaning.
const CODES: &[&str] = &["context_length_exceeded", "exceed_context_size_error"];

/// Phrases of the messages, in lower case.
const MESSAGES: &[&str] = &[
    "maximum context length is",
    "prompt is too long",
    "exceed context limit",
    "exceed the configured limit of",
    "exceeds the maximum number of tokens allowed",
    "exceeds the context window of this model",
    "exceeds the available context size",
    "input is too long for requested model",
];

/// Fields in which providers describe an error.
const FIELDS: &[&str] =
    &["error", "message", "Message", "type", "code", "metadata", "raw", "detail", "response"];

/// Maximum depth of the search: an error within an error within a body, twice.
const DEPTH_MAX: usize = 6;

/// Maximum distance between a phrase and its number, in bytes: ` (`, `: `, ` about `.
const NEAR_MAX: usize = 12;

#[cfg(test)]
mod tests;
