//! Records that name the record before them: session files in which somebody went back and on in another way.

use std::borrow::Cow;
use std::collections::HashMap;

use super::error::quoted;
use super::json::{self, Kind};
use super::transcript::Transcript;
use super::{WireError, WireErrorKind, document};

/// Calls `visit` for each line of `text`, a slice of the source of `transcript`, with its place in the list of lines.
pub(crate) fn for_each_line<'a>(
    transcript: &mut Transcript,
    text: &'a str,
    mut visit: impl FnMut(&mut Transcript, (u32, usize), &'a str) -> Result<(), WireError>,
) -> Result<(), WireError> {
    let list = transcript.forest(text);
    for (at, line) in document::lines(text).enumerate() {
        json::nested(text, line.text(), "", |raw| visit(transcript, (list, at), raw))?;
    }
    Ok(())
}

/// Records by their place in the file. A parent stands before its children: a name that is not known by then is that of
/// a record in another file, and its child begins a tree.
#[derive(Debug, Default)]
pub(crate) struct Forest {
    parents: Vec<Option<usize>>,
    children: Vec<Vec<usize>>,
}

impl Forest {
    /// Adds a record, and gives its number.
    pub(crate) fn push(&mut self, parent: Option<usize>) -> usize {
        let number = self.parents.len();
        if let Some(children) = parent.and_then(|parent| self.children.get_mut(parent)) {
            children.push(number);
        }
        self.parents.push(parent.filter(|parent| *parent < number));
        self.children.push(Vec::new());
        number
    }

    pub(crate) fn parent(&self, node: usize) -> Option<usize> {
        self.parents.get(node).copied().flatten()
    }

    pub(crate) fn children(&self, node: usize) -> &[usize] {
        self.children.get(node).map(Vec::as_slice).unwrap_or_default()
    }

    /// `node` and what is before it, up to the root: the newest first.
    pub(crate) fn up(&self, node: usize) -> impl Iterator<Item = usize> {
        core::iter::successors(Some(node), |node| self.parent(*node))
    }

    /// From the root to `node`.
    pub(crate) fn path(&self, node: usize) -> Vec<usize> {
        let mut path: Vec<_> = self.up(node).collect();
        path.reverse();
        path
    }

    /// The records that nobody calls a parent, in the order of the file.
    pub(crate) fn leaves(&self) -> impl Iterator<Item = usize> {
        self.children.iter().enumerate().filter(|(_, children)| children.is_empty()).map(|(node, _)| node)
    }
}

/// The record that `leaf` names.
pub(crate) fn named(
    names: &HashMap<Cow<'_, str>, usize>,
    leaf: &str,
    (what, key): (&str, &str),
) -> Result<usize, WireError> {
    names.get(leaf).copied().ok_or_else(|| {
        let what = format!("no {what} has the `{key}` {}", quoted(leaf));
        WireError::new(WireErrorKind::NotFound, what)
    })
}

/// The name that `raw` has under the first of these keys, and that of the record before it under the second.
pub(crate) fn names(raw: &str, keys: &[&'static str; 2]) -> Option<(String, Option<String>)> {
    let [name, parent] = json::fields(raw, keys).ok()?;
    let text =
        |raw: &str| if Kind::of(raw) == Kind::Text { Some(json::decode(raw).into_owned()) } else { None };
    Some((name.and_then(text)?, parent.and_then(text)))
}

/// The record `raw` after the record of this name, which stands under `key`, or after none.
pub(crate) fn linked(raw: &str, key: &str, parent: Option<&str>) -> Result<String, WireError> {
    json::patch(raw, &[(key, Some(parent.map_or_else(|| "null".to_owned(), json::quote)))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_leaves() {
        let mut forest = Forest::default();
        for parent in [None, Some(0), Some(1), Some(1), None, Some(9)] {
            forest.push(parent);
        }
        assert_eq!(forest.path(3), [0, 1, 3]);
        assert_eq!(forest.leaves().collect::<Vec<_>>(), [2, 3, 4, 5]);
        assert_eq!(forest.children(1), [2, 3]);
        assert_eq!(forest.path(5), [5], "a parent that comes later is none");
    }
}
