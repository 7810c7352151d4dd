//! Describes a value that is a conversation of no known format.

use super::Pointer;
use super::route::{LEVELS, children};
use crate::json::{self, ValueKind};

/// A description of the value at `at`, if users often pass such a value.
pub(super) fn looks_like(at: &Pointer, text: &str) -> Option<String> {
    let (place, count, first) = dialogue(at, text)?;
    let place = if place.is_root() { "this".to_owned() } else { place.to_string() };
    let found = json::describe(first);
    Some(format!(
        "{place} looks like a dialogue of {count} without roles ({found}): give each element a `role`"
    ))
}

/// The nearest list of objects with texts: its place, its length, and its first element.
fn dialogue<'a>(at: &Pointer, text: &'a str) -> Option<(Pointer, usize, &'a str)> {
    let mut level = vec![(at.clone(), text)];
    for _ in 0..=LEVELS {
        for (at, value) in &level {
            let mut first = None;
            if ValueKind::of(value) == ValueKind::Array {
                let _ = json::items(value, |item| {
                    first.get_or_insert(item);
                    Ok(())
                });
            }
            let says = |key: &&str| {
                first
                    .and_then(|item| member(item, key))
                    .is_some_and(|said| ValueKind::of(said) == ValueKind::Text)
            };
            if let Some(first) = first.filter(|_| SAYS.iter().any(says)) {
                return Some((at.clone(), json::count(value), first));
            }
        }
        level = level.iter().flat_map(|(at, value)| children(at, value)).collect();
    }
    None
}

fn member<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    if ValueKind::of(text) == ValueKind::Object { json::field(text, key).ok().flatten() } else { None }
}

/// The members with the texts of dialogues.
const SAYS: &[&str] = &["content", "text", "message", "utterance", "query"];
