//! Changes of some elements in a list of content.

use core::hash::Hash;
use std::borrow::Cow;

use super::WireError;
use super::json::{self, rebuild};
use super::places::Places;

/// The functions that recognise and write the elements of a list. `U` is the content of one element.
pub(crate) struct Elements<U> {
    /// The identity of an element, which stays when its content changes: the id of the call that it makes or answers.
    pub(crate) key: fn(&U) -> Option<(bool, &str)>,
    /// The text of a new element.
    pub(crate) fresh: fn(&U) -> Result<String, WireError>,
    /// The text of a changed element, made from the old text of the element with the same key.
    pub(crate) patched: fn(&str, &U) -> Result<String, WireError>,
}

impl<U: Eq + Hash> Elements<U> {
    /// The array `list` with the content `wanted`. `known` are its present elements. Unchanged elements keep their
    /// text, and elements with the same key are patched.
    pub(crate) fn patch(
        &self,
        list: &str,
        known: &[(Option<U>, &str)],
        wanted: &[U],
    ) -> Result<String, WireError> {
        let ranges: Vec<_> = known.iter().map(|(_, raw)| json::range_of(list, raw)).collect();
        let said: Vec<_> = known.iter().map(|(unit, _)| unit.as_ref()).collect();
        let keys: Vec<_> = said.iter().map(|unit| unit.and_then(|unit| (self.key)(unit))).collect();
        let (mut same, mut similar, mut next) = (Places::new(&said), Places::new(&keys), 0);
        let mut pieces = Vec::with_capacity(wanted.len());
        for unit in wanted {
            let exact = same.find(&Some(unit), next);
            let near = || (self.key)(unit).and_then(|key| similar.find(&Some(key), next));
            let place = exact.or_else(near);
            pieces.push(match place.and_then(|at| Some((at, known.get(at)?.1))) {
                Some((at, raw)) => {
                    next = at.saturating_add(1);
                    let text = match exact {
                        Some(_) => Cow::Borrowed(raw),
                        None => Cow::Owned((self.patched)(raw, unit)?),
                    };
                    (Some(at), text)
                }
                None => (None, Cow::Owned((self.fresh)(unit)?)),
            });
        }
        Ok(rebuild(list, &ranges, pieces.iter().map(|(at, text)| (*at, &**text))))
    }
}
