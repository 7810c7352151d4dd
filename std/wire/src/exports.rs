//! Files of many conversations, one object each: exports and datasets. The format of a conversation reads the object.

use std::sync::Arc;

use epitome_message::Str;

use super::body::{Body, Content};
use super::error::quoted;
use super::expect::{expect_object, share};
use super::json::{self, ValueKind};
use super::spec::Fit;
use super::transcript::Transcript;
use super::{WireError, WireErrorKind, document};

/// Calls `visit` with each conversation of `body` and its place: the object itself, each element of an array, or each
/// line.
///
/// `visit` adds the conversation to `transcript`, and returns whether the conversation has the requested leaf or is the
/// leaf itself. If a leaf is requested, the conversations without it are not active.
///
/// # Errors
/// Those of `visit`. `NotFound` if a leaf is requested and no conversation has it.
pub(crate) fn for_each(
    transcript: &mut Transcript,
    body: &Body<'_>,
    mut visit: impl FnMut(&mut Transcript, &str, &str) -> Result<bool, WireError>,
) -> Result<(), WireError> {
    let mut is_found = body.leaf().is_none();
    each(body, |path, raw| {
        let first = transcript.conversations.len();
        let has_it = visit(transcript, path, raw)?;
        is_found |= has_it;
        if body.leaf().is_some() && !has_it {
            transcript.conversations.iter_mut().skip(first).for_each(|other| other.active = false);
        }
        Ok(())
    })?;
    match body.leaf() {
        Some(leaf) if !is_found => {
            let what = format!("no conversation, and no message, has the id {}", quoted(leaf));
            Err(WireError::new(WireErrorKind::NotFound, what))
        }
        _ => Ok(()),
    }
}

fn each(
    body: &Body<'_>,
    mut visit: impl FnMut(&str, &str) -> Result<(), WireError>,
) -> Result<(), WireError> {
    match &body.content {
        Content::Lines(text) => document::lines(text).try_for_each(|line| {
            json::nested(text, line.text(), "", |raw| {
                json::check(raw)?;
                visit("", raw)
            })
        }),
        Content::Value(document) if ValueKind::of(document.text()) == ValueKind::Array => {
            let mut at = 0_usize;
            json::items(document.text(), |raw| {
                let path = format!("{}/{at}", body.path());
                json::nested(document.text(), raw, format_args!("/{at}"), |raw| visit(&path, raw))?;
                at = at.saturating_add(1);
                Ok(())
            })
        }
        Content::Value(document) => visit(body.path(), document.text()),
    }
}

/// Returns `Certain` with the reason `why` if the first elements of `body` are conversations and one of them has
/// messages. `is_one` returns whether a conversation has messages; `None` for a value that is no conversation.
pub(crate) fn fit(body: &Body<'_>, why: &'static str, is_one: impl Fn(&str) -> Option<bool>) -> Fit {
    let found = match body.value().filter(|value| ValueKind::of(value) == ValueKind::Object) {
        Some(object) => vec![object],
        None => body.sample("").unwrap_or_default(),
    };
    let is_one = |raw: &&str| is_one(Some(*raw).filter(|raw| ValueKind::of(raw) == ValueKind::Object)?);
    let has_messages = found.iter().map(is_one).try_fold(false, |any, one| one.map(|one| any || one));
    if has_messages == Some(true) { Fit::Certain(why) } else { Fit::No }
}

/// The value of `key` in the object `raw`, if it is of this kind.
///
/// # Errors
/// `DuplicateKey`.
pub(crate) fn value_of<'a>(
    raw: &'a str,
    key: &'static str,
    kind: ValueKind,
) -> Result<Option<&'a str>, WireError> {
    Ok(json::field(raw, key)?.filter(|value| ValueKind::of(value) == kind))
}

/// The value of `key`, which holds the messages of the conversation `raw`.
///
/// # Errors
/// `Shape` if `raw` is no object with a value of this kind under `key`; `DuplicateKey`.
pub(crate) fn messages_of<'a>(
    raw: &'a str,
    key: &'static str,
    kind: ValueKind,
) -> Result<&'a str, WireError> {
    expect_object(raw, "a conversation")?;
    value_of(raw, key, kind)?.ok_or_else(|| {
        let (a, found) = (if kind == ValueKind::Array { "a list" } else { "an object" }, json::describe(raw));
        WireError::shape(format!("expected a conversation with `{key}`, {a}, found {found}"))
    })
}

/// The name under `key` in the object `raw`: a text, or a number as it is written. It is empty if there is none.
///
/// # Errors
/// As [`value_of`].
pub(crate) fn name(source: &Arc<str>, raw: &str, key: &'static str) -> Result<Str, WireError> {
    let value = json::field(raw, key)?;
    Ok(match value.map(ValueKind::of) {
        Some(ValueKind::Text) => share(source, &json::decode(value.unwrap_or_default())),
        Some(ValueKind::Number) => share(source, value.unwrap_or_default()),
        _ => Str::default(),
    })
}
