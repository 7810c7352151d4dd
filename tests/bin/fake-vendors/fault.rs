//! Faults on request. The header `x-faults` lists the faults of the first, second, and later requests with the same
//! `x-case`, with commas between them. A request without a fault succeeds.
//!
//! | fault | effect |
//! |---|---|
//! | `ok` | nothing |
//! | a status, such as `503` | that status; `429` asks to wait for 30 ms |
//! | `429-long`, `429-date` | the same for ten minutes, in seconds or as a date |
//! | `context` | a refusal because of the length |
//! | `disconnect` | the connection breaks off in the middle of the body |
//! | `hang` | no answer |
//! | `garbage` | no JSON |
//! | `forget` | Responses: the response in `previous_response_id` is no longer stored |
//! | `none`, `two`, `other` | an answer without a compaction, with two, or with an item of another kind |
//! | `unavailable` | Anthropic: status 529 |
//! | `failed`, `unsigned`, `empty` | Anthropic: a compaction without content, signature or text |

use core::future::pending;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};

/// Number of requests of each case.
static SENT: Mutex<Option<HashMap<String, usize>>> = Mutex::new(None);

/// A header's text.
pub(crate) fn header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// Fault of this request.
pub(crate) fn of(headers: &HeaderMap) -> String {
    let (Some(case), Some(faults)) = (header(headers, "x-case"), header(headers, "x-faults")) else {
        return "ok".into();
    };
    let mut sent = SENT.lock().unwrap_or_else(PoisonError::into_inner);
    let count = sent.get_or_insert_default().entry(case.into()).or_default();
    let fault = faults.split(',').nth(*count).unwrap_or("ok");
    *count += 1;
    fault.into()
}

/// The response with this fault. `None`: the request succeeds, or the fault concerns the content of the answer.
pub(crate) async fn answer(fault: &str) -> Option<Response> {
    let refused = |status: StatusCode, code: &str| {
        let error = json!({"error": {"code": code, "message": "what was said: SECRET-WORDS", "type": code}});
        (status, error.to_string())
    };
    Some(match fault {
        "429" => {
            let refused = refused(StatusCode::TOO_MANY_REQUESTS, "rate_limit_exceeded");
            ([("retry-after-ms", "30")], refused).into_response()
        }
        "429-long" => {
            let refused = refused(StatusCode::TOO_MANY_REQUESTS, "rate_limit_exceeded");
            ([("retry-after", "600")], refused).into_response()
        }
        "429-date" => {
            let refused = refused(StatusCode::TOO_MANY_REQUESTS, "rate_limit_exceeded");
            let dates =
                [("date", "Wed, 21 Oct 2026 07:28:00 GMT"), ("retry-after", "Wed, 21 Oct 2026 07:38:00 GMT")];
            (dates, refused).into_response()
        }
        "context" => refused(StatusCode::BAD_REQUEST, "context_length_exceeded").into_response(),
        "disconnect" => broken_off(),
        "hang" => pending().await,
        "garbage" => (StatusCode::OK, "<html>SECRET-WORDS</html>").into_response(),
        status => {
            let status = StatusCode::from_bytes(status.as_bytes()).ok()?;
            refused(status, "server_error").into_response()
        }
    })
}

/// A response whose connection ends in the middle of the body.
fn broken_off() -> Response {
    let pieces = [Ok(Bytes::from_static(b"{\"id\":\"resp")), Err(std::io::Error::other("gone"))];
    Response::new(Body::from_stream(futures::stream::iter(pieces)))
}

/// Puts this fault into an output.
pub(crate) fn output(fault: &str, mut output: Vec<Value>) -> Vec<Value> {
    match fault {
        "none" => drop(output.pop()),
        "two" => output.extend(output.last().cloned()),
        "other" => output.push(json!({"type": "hologram"})),
        _ => {}
    }
    output
}
