//! Requests to services, for providers over them: with a key, a limit of time, repetitions where these do no harm, and errors that hold
//! neither a key nor a text. It runs on tokio.

mod endpoint;
mod key;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

pub use endpoint::{Endpoint, Repeat};
pub use key::{Key, KeyFuture, KeyHeader};

/// At most so many bytes of what a service has found, and a mark if that is not all.
///
/// ```
/// assert_eq!(epitome_http::cut("tea", 3), "tea");
/// assert_eq!(epitome_http::cut("thé vert", 3), "th [..]");
/// ```
#[must_use]
pub fn cut(text: &str, bytes_max: usize) -> Cow<'_, str> {
    match text.get(..text.floor_char_boundary(bytes_max)) {
        Some(start) if start.len() < text.len() => format!("{start} [..]").into(),
        _ => text.into(),
    }
}
