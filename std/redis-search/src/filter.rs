//! Scopes as filters of a search, and as fields of what is stored.

use std::collections::HashMap;

use epitome_std::memory::Scope;
use epitome_std::session::SessionError;

use crate::service::invalid;

/// The fields that what is found must have, with their values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Filter(Vec<(&'static str, Box<str>)>);

impl Filter {
    /// The filter of this scope, which has an application, an agent or a user.
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

    /// Whether what was found has these ids. Redis compares them without regard to case.
    pub(crate) fn takes(&self, found: &HashMap<String, String>) -> bool {
        self.0.iter().all(|(field, id)| found.get(*field).is_some_and(|value| **value == **id))
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(field, id)| (*field, &**id))
    }
}

/// Whether Redis keeps it as one id, as it is but for its case: it cuts what is stored at commas, and white space at its ends; and of several
/// backslashes in a row before punctuation in a query it takes none.
fn is_one_tag(id: &str) -> bool {
    let is_escape =
        |(first, second): (u8, u8)| first == b'\\' && (second.is_ascii_punctuation() || second == b' ');
    let is_whole = id.trim() == id && !id.contains(|letter: char| letter == ',' || letter.is_control());
    is_whole && !id.bytes().zip(id.bytes().skip(1)).any(is_escape)
}

/// A tag as it stands in a query: nothing in it can end it, or begin another one.
fn escaped(id: &str) -> String {
    // An underscore is a letter, but for one alone.
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
