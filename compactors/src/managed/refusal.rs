//! Errors for the refusals of a service, by the next step of the caller.

use core::time::Duration;
use std::format;
use std::string::String;

use epitome_std::wire::{context_overflow, session_forgotten};
use serde::Deserialize;

use super::{ServiceError, ServiceErrorKind as Kind};

/// Converts a response of `provider` with an HTTP status of failure to an error. The error contains only the code
/// of the body, because the body's message may repeat the conversation.
pub(super) fn refused(
    provider: &str,
    status: u16,
    retry_after: Option<Duration>,
    body: &str,
) -> ServiceError {
    let code = code(body);
    let kind = match status {
        _ if context_overflow(status, body).is_some() => Kind::ContextTooLong,
        _ if session_forgotten(status, body) => Kind::Forgotten,
        401 | 403 => Kind::Authentication,
        429 if code == "insufficient_quota" => Kind::Invalid(code.clone()),
        429 => Kind::RateLimited { retry_after },
        // Anthropic's endpoint serves other requests than compactions too.
        404 if code == "not_found_error" => Kind::Invalid(code.clone()),
        404 | 405 | 501 if code != "model_not_found" => Kind::Unsupported,
        413 => Kind::ContextTooLong,
        503 | 529 => Kind::Overloaded,
        408 | 409 | 500.. => Kind::Unavailable,
        // A temporary problem of Anthropic's compaction, with any status.
        _ if code == "compaction_unavailable" => Kind::Unavailable,
        _ => Kind::Invalid(code.clone()),
    };
    let comma = if code.is_empty() { "" } else { ", " };
    ServiceError::new(kind, format!("{provider}: HTTP {status}{comma}{code}"))
}

/// The pause in the headers `retry-after`, in seconds or as a date, and `retry-after-ms`. The pause until a date is
/// counted from `date`, the header of this name in the same response: both come from the same clock.
///
/// ```
/// use core::time::Duration;
/// use epitome_compactors::managed::openai::retry_after;
///
/// let until = Some("Wed, 21 Oct 2026 07:28:30 GMT");
/// let wait = retry_after(until, None, Some("Wed, 21 Oct 2026 07:28:00 GMT"));
/// assert_eq!(wait, Some(Duration::from_secs(30)));
/// assert_eq!(retry_after(Some("2"), None, None), Some(Duration::from_secs(2)));
/// ```
#[must_use]
pub fn retry_after(after: Option<&str>, millis: Option<&str>, date: Option<&str>) -> Option<Duration> {
    let number = |text: Option<&str>| text?.trim().parse::<f64>().ok();
    let seconds = number(millis).map(|millis| millis / 1_000.0).or_else(|| number(after));
    if let Some(seconds) = seconds {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let time = |text: Option<&str>| httpdate::parse_http_date(text?.trim()).ok();
    // A date in the past means no pause.
    Some(time(after)?.duration_since(time(date)?).unwrap_or_default())
}

#[derive(Deserialize)]
struct Refusal {
    error: Reason,
}

#[derive(Deserialize)]
struct Reason {
    #[serde(default)]
    code: Option<String>,
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    details: Option<Details>,
}

/// Details with Anthropic's code of a failed compaction.
#[derive(Deserialize)]
struct Details {
    #[serde(default)]
    error_code: Option<String>,
}

/// The code in a body; empty if the body has no text in the form of a code.
fn code(body: &str) -> String {
    let reason = serde_json::from_str(body).map(|Refusal { error }: Refusal| {
        error.details.and_then(|details| details.error_code).or(error.code).or(error.kind)
    });
    let is_code = |code: &String| {
        code.len() <= CODE_BYTES_MAX
            && code.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
    };
    reason.ok().flatten().filter(is_code).unwrap_or_default()
}

/// Maximum bytes of a code. All published codes are shorter; a longer value may be message text.
const CODE_BYTES_MAX: usize = 64;
