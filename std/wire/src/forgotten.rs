//! Detects refusals of a request whose earlier response the service no longer stores.

use super::overflow::fields_of;

/// Whether a response with this HTTP status and body reports that the service does not know the earlier response that
/// the request continues: it was never stored, or no longer is. Then the caller has to send the whole history.
///
/// ```
/// use epitome_wire::session_forgotten;
///
/// let body = r#"{"error": {"message": "Previous response with id 'resp_1' not found.",
///   "type": "invalid_request_error", "param": "previous_response_id", "code": "previous_response_not_found"}}"#;
/// assert!(session_forgotten(400, body));
/// assert!(!session_forgotten(500, body));
/// assert!(!session_forgotten(400, r#"{"error": {"message": "previous_response_not_found", "code": null}}"#));
/// ```
///
/// The error code is that of OpenAI and of servers with its form. See for example
/// <https://github.com/maximhq/bifrost/issues/2441>. Gateways answer with 404 too.
#[must_use]
pub fn session_forgotten(status: u16, body: &str) -> bool {
    matches!(status, 400 | 404)
        && fields_of(body).iter().any(|(key, text)| *key == "code" && text == "previous_response_not_found")
}
