//! Scopes as filters of a search and as fields of stored memories.

use std::collections::HashMap;

use epitome_std::memory::Scope;
use epitome_std::session::SessionError;

use crate::service::invalid;

/// The fields that a found memory must have, with their values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Filter(Vec<(&'static str, Box<str>)>);

impl Filter {
    /// The filter of a scope, which must have an application, an agent or a user; otherwise `Invalid`. An id that Redis
    /// would change is `Invalid` too.
    pub(crate) fn of(scope: &Scope) -> Result<Self, SessionError> {
        if scope.application().or(scope.agent()).or(scope.user()).is_none() {
            return Err(invalid(
                "nothing says whose memories these are: with_scope does, by an application, an agent or a user",
            ));
        }
        let ids = [
            ("application_id", scope.application()),
            ("agent_id", scope.agent()),
            ("user_id", scope.user()),
            ("thread_id", scope.thread()),
        ];
        let given: Vec<_> = ids.into_iter().filter_map(|(field, id)| Some((field, id?))).collect();
        match given.iter().find(|(_, id)| !is_one_tag(id)) {
            None => Ok(Self(given.into_iter().map(|(field, id)| (field, id.into())).collect())),
            Some((field, _)) => Err(invalid(&format!(
                "the {field} of the scope has a comma, a control character, a backslash before punctuation, or white space at an end: Redis makes another id of it"
            ))),
        }
    }

    /// The filter in the query language: in parentheses if it has several conditions.
    pub(crate) fn expression(&self) -> String {
        let one = |(field, id): &(&str, Box<str>)| format!("@{field}:{{{}}}", escaped(id));
        let all = self.0.iter().map(one).reduce(|all, one| format!("({all} {one})"));
        all.unwrap_or_default()
    }

    /// Whether a found memory has exactly these ids. This check is needed because Redis compares ids without regard to
    /// case.
    pub(crate) fn takes(&self, found: &HashMap<String, String>) -> bool {
        self.0.iter().all(|(field, id)| found.get(*field).is_some_and(|value| **value == **id))
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(field, id)| (*field, &**id))
    }
}

/// Whether Redis stores the id unchanged, except for its case. Redis splits stored ids at commas and trims white space.
/// In a query, it drops all of several backslashes in a row before punctuation.
fn is_one_tag(id: &str) -> bool {
    let is_escape =
        |(first, second): (u8, u8)| first == b'\\' && (second.is_ascii_punctuation() || second == b' ');
    let is_whole = id.trim() == id && !id.contains(|letter: char| letter == ',' || letter.is_control());
    is_whole && !id.bytes().zip(id.bytes().skip(1)).any(is_escape)
}

/// Escapes a tag for a query, so that no character in it can end the tag or begin another one.
fn escaped(id: &str) -> String {
    // An underscore is a letter, unless it is the whole id.
    let is_letter = |letter: char| letter == '_' && id.len() > 1;
    let is_plain = |letter: char| is_letter(letter) || !(letter.is_ascii_punctuation() || letter == ' ');
    let mut text = String::with_capacity(id.len());
    for letter in id.chars() {
        if !is_plain(letter) {
            text.push('\\');
        }
        text.push(letter);
    }
    text
}
