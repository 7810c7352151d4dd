//! Joins records of one role that a change has made neighbours, for providers whose roles alternate.

use std::borrow::Cow;

use super::contents::Output;
use crate::WireError;
use crate::json::{self, ValueKind, patch};

/// The items of a list, with one record for neighbours of one role that were not neighbours in the source. `element`
/// returns the text of an element of the source.
pub(super) fn joined<'t>(
    items: &'t [Output],
    element: impl Fn(usize) -> &'t str,
) -> Result<Vec<Output>, WireError> {
    let place = |item: &Output| match item {
        Output::Kept(at) => Some(*at),
        Output::Text(at, _) => *at,
    };
    let turn = |item: &'t Output| {
        Turn::of(match item {
            Output::Kept(at) => element(*at),
            Output::Text(_, text) => text,
        })
    };
    let are_apart =
        |one, next| place(one).zip(place(next)).is_none_or(|(one, next)| one.checked_add(1) != Some(next));
    let joins = |one: &&'t Output, next: &&'t Output| {
        are_apart(*one, *next) && turn(one).zip(turn(next)).is_some_and(|(one, next)| one.role == next.role)
    };
    let items: Vec<&Output> = items.iter().collect();
    let records = items.chunk_by(joins).map(|chunk| match chunk {
        [one] => Ok((*one).clone()),
        several => {
            let turns: Vec<_> = several.iter().filter_map(|item| turn(item)).collect();
            let at = several.iter().find_map(|item| place(item));
            Ok(Output::Text(at, Turn::joined(&turns)?))
        }
    });
    records.collect()
}

/// A record with a role and a list of blocks.
struct Turn<'t> {
    record: &'t str,
    role: Cow<'t, str>,
    content: &'t str,
}

impl<'t> Turn<'t> {
    fn of(record: &'t str) -> Option<Self> {
        let [role, content] = json::fields(record, &["role", "content"]).ok()?;
        let content = content.filter(|content| ValueKind::of(content) == ValueKind::Array)?;
        Some(Self { record, role: json::decode(role?), content })
    }

    /// The first record with the blocks of all.
    fn joined(turns: &[Self]) -> Result<String, WireError> {
        let blocks = turns.iter().filter_map(|turn| {
            let inner = json::trim(turn.content).strip_prefix('[')?.strip_suffix(']')?;
            Some(json::trim(inner)).filter(|inner| !inner.is_empty())
        });
        let blocks = blocks.collect::<Vec<_>>().join(", ");
        let record = turns.first().map_or("{}", |turn| turn.record);
        patch(record, &[("content", Some(format!("[{blocks}]")))])
    }
}
