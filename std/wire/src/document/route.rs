//! Finds a conversation near a place without one, for its error.

use super::conversation::MESSAGES;
use super::looks::looks_like;
use super::{Document, Pointer};
use crate::WireError;
use crate::json::{self, ValueKind};

/// Whether `text` is an object with `role`.
pub(crate) fn is_message(text: &str) -> bool {
    ValueKind::of(text) == ValueKind::Object && has(text, "role")
}

/// Whether `text` is an object with a list under `messages`, or a list that begins with a message.
pub(super) fn is_conversation(text: &str) -> bool {
    messages_in(text).is_some()
}

/// The error for a value that is no conversation: the kind of the value, the expected kind, and a place to look at.
pub(crate) fn refusal(document: &Document<'_>) -> WireError {
    let (at, text) = (document.path(), document.text());
    let advice = advice(document).or_else(|| looks_like(at, text));
    // Without advice, the description of an array includes its first element.
    let inside =
        first(document.text()).filter(|item| advice.is_none() && ValueKind::of(item) == ValueKind::Object);
    let inside = inside.map(|item| format!(", the first {}", json::describe(item))).unwrap_or_default();
    let error = WireError::shape(format!(
        "found {}{inside}; expected a conversation: an array of messages (objects with `role`), or an object with \
         `messages`",
        json::describe(document.text()),
    ));
    document.place(match advice {
        Some(advice) => error.and(advice),
        None => error,
    })
}

/// Describes the place of a conversation below this line, which is one of many, if there is one.
pub(super) fn advice_for_lines(line: &str) -> Option<String> {
    let Route { at, each, messages } = search(line, LEVELS)?;
    let below = if each { Pointer::default().join("0") } else { Pointer::default() };
    let at = below.then(&at);
    Some(format!("{at} in it holds {}: try --each --at {at}", count_of(messages)))
}

/// Describes the place of a conversation below this value, if there is one.
pub(super) fn advice(document: &Document<'_>) -> Option<String> {
    if is_message(document.text()) {
        return Some("this is a single message".to_owned());
    }
    let route = search(document.text(), LEVELS)?;
    let count = count_of(route.messages);
    if route.each && document.path().is_root() {
        return Some(match route.at.is_root() {
            true => format!("its first element holds {count}: try --each"),
            false => format!("{0} in its first element holds {count}: try --each --at {0}", route.at),
        });
    }
    let below = if route.each { Pointer::default().join("0") } else { Pointer::default() };
    let at = document.path().then(&below).then(&route.at);
    Some(format!("{at} holds {count}: try --at {at}"))
}

fn count_of(messages: usize) -> String {
    match messages {
        1 => "1 message".to_owned(),
        count => format!("{count} messages"),
    }
}

/// A way from a value to a conversation below it.
struct Route {
    /// The pointer from the value, or from each of its elements.
    at: Pointer,
    each: bool,
    messages: usize,
}

/// The longest conversation at most `levels` below `text`. The nearest level with a conversation wins.
fn search(text: &str, levels: usize) -> Option<Route> {
    let mut level = vec![(Pointer::default(), text)];
    let mut each = false;
    for depth in 0..=levels {
        let here = level.iter().filter_map(|(at, value)| messages_in(value).map(|messages| (at, messages)));
        // Among equally long conversations the first one wins: `max_by_key` returns the last.
        if let Some((at, messages)) = here.rev().max_by_key(|(_, messages)| *messages) {
            return Some(Route { at: at.clone(), each, messages });
        }
        if depth == 0 && ValueKind::of(text) == ValueKind::Array {
            each = true;
            level = first(text).map(|value| (Pointer::default(), value)).into_iter().collect();
        } else {
            level = level.iter().flat_map(|(at, value)| children(at, value)).collect();
        }
    }
    None
}

/// The members of an object, or the first element of an array: the other elements most likely have the same form.
pub(super) fn children<'a>(at: &Pointer, text: &'a str) -> Vec<(Pointer, &'a str)> {
    let mut found = Vec::new();
    match ValueKind::of(text) {
        ValueKind::Array => found.extend(first(text).map(|value| (at.join("0"), value))),
        ValueKind::Object => {
            let _ = json::members(text, |key, value| {
                if found.len() < CHILDREN_MAX
                    && matches!(ValueKind::of(value), ValueKind::Object | ValueKind::Array)
                {
                    found.push((at.join(&key), value));
                }
                Ok(())
            });
        }
        _ => {}
    }
    found
}

/// Number of messages of the conversation `text`, if it is one.
fn messages_in(text: &str) -> Option<usize> {
    match ValueKind::of(text) {
        ValueKind::Array => first(text).filter(|item| is_message(item)).map(|_| json::count(text)),
        ValueKind::Object => {
            let list = json::field(text, MESSAGES).ok()??;
            first(list).filter(|item| is_message(item)).map(|_| json::count(list))
        }
        _ => None,
    }
}

fn first(text: &str) -> Option<&str> {
    let mut found = None;
    if ValueKind::of(text) == ValueKind::Array {
        let _ = json::items(text, |item| {
            found.get_or_insert(item);
            Ok(())
        });
    }
    found
}

fn has(text: &str, name: &str) -> bool {
    let mut found = false;
    // The error stops the scan: `role` is often the first key, before a long text.
    let _ = json::members(text, |key, _| match key == name {
        true => {
            found = true;
            Err(WireError::shape("found"))
        }
        false => Ok(()),
    });
    found
}

/// Maximum depth of a conversation below a place: the history of a run in a list of runs, under one or two keys.
pub(super) const LEVELS: usize = 4;

/// Maximum number of keys of one object to search. A table with thousands of keys holds no conversation.
const CHILDREN_MAX: usize = 64;
