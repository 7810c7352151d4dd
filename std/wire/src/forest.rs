//! Records that name the record before them. Session files have this form, because a user may go back and continue
//! differently.

use core::hash::{BuildHasher as _, BuildHasherDefault, Hasher};
use core::num::NonZero;
use std::collections::HashMap;
use std::hash::RandomState;

use super::error::quoted;
use super::json;
use super::transcript::Transcript;
use super::{WireError, WireErrorKind, document};

/// Calls `visit` with each line of `text` and the line's place in the list of lines. `text` is a slice of the source of
/// `transcript`.
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

/// Records by their place in the file. A parent stands before its children. An unknown parent is a record of another
/// file, and its child begins a tree. Each record takes twelve bytes.
#[derive(Debug, Default)]
pub(crate) struct Forest {
    links: Vec<Links>,
}

/// Numbers of related records. [`NONE`] stands for no record.
#[derive(Debug, Clone, Copy)]
struct Links {
    parent: u32,
    /// The latest child, and the previous child of the same parent.
    child: u32,
    sibling: u32,
}

impl Forest {
    /// Adds a record, and returns its number.
    pub(crate) fn push(&mut self, parent: Option<usize>) -> usize {
        let number = self.links.len();
        let own = narrow(number);
        let mut links = Links { parent: NONE, child: NONE, sibling: NONE };
        let parent = parent.and_then(|parent| Some((parent, self.links.get_mut(parent)?)));
        if let Some((parent, of_parent)) = parent {
            (links.parent, links.sibling) = (narrow(parent), of_parent.child);
            of_parent.child = own;
        }
        self.links.push(links);
        number
    }

    pub(crate) fn parent(&self, node: usize) -> Option<usize> {
        self.links.get(node).and_then(|links| wide(links.parent))
    }

    /// The children of `node`, the latest first.
    pub(crate) fn children(&self, node: usize) -> impl Iterator<Item = usize> {
        let first = self.links.get(node).and_then(|links| wide(links.child));
        core::iter::successors(first, |child| self.links.get(*child).and_then(|links| wide(links.sibling)))
    }

    /// `node` and its ancestors up to the root, beginning with `node`.
    pub(crate) fn up(&self, node: usize) -> impl Iterator<Item = usize> {
        core::iter::successors(Some(node), |node| self.parent(*node))
    }

    /// The records without children, in the order of the file.
    pub(crate) fn leaves(&self) -> impl DoubleEndedIterator<Item = usize> {
        self.links.iter().enumerate().filter(|(_, links)| links.child == NONE).map(|(node, _)| node)
    }
}

/// The number that stands for no record.
pub(crate) const NONE: u32 = u32::MAX;

pub(crate) fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(NONE)
}

pub(crate) fn wide(number: u32) -> Option<usize> {
    usize::try_from(number).ok().filter(|_| number != NONE)
}

/// Key of a name, for comparisons only: 64 bits of its hash, with a secret that is drawn for each file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key(NonZero<u64>);

/// A map whose keys are hashes already.
pub(crate) type KeyMap<V> = HashMap<Key, V, BuildHasherDefault<KeyHasher>>;

/// The hash of a [`Key`]: the key itself.
#[derive(Debug, Default)]
pub(crate) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, byte| hash.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The numbers of records by the keys of their names. The names themselves are not stored.
#[derive(Debug, Default)]
pub(crate) struct Names {
    secret: RandomState,
    numbers: KeyMap<u32>,
}

impl Names {
    pub(crate) fn key(&self, name: &str) -> Key {
        Key(NonZero::new(self.secret.hash_one(name)).unwrap_or(NonZero::<u64>::MIN))
    }

    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.known(self.key(name))
    }

    /// The record whose name has this key.
    pub(crate) fn known(&self, key: Key) -> Option<usize> {
        self.numbers.get(&key).copied().and_then(wide)
    }

    /// Adds the name of a record, unless an earlier record has the name.
    pub(crate) fn insert(&mut self, name: &str, number: usize) {
        let key = self.key(name);
        self.numbers.entry(key).or_insert_with(|| narrow(number));
    }
}

/// The record with the name `leaf`.
pub(crate) fn named(names: &Names, leaf: &str, (what, key): (&str, &str)) -> Result<usize, WireError> {
    names.find(leaf).ok_or_else(|| {
        let what = format!("no {what} has the `{key}` {}", quoted(leaf));
        WireError::new(WireErrorKind::NotFound, what)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_not_hashed_again() {
        let key = Names::default().key("call_1");
        assert_eq!(KeyMap::<u32>::default().hasher().hash_one(key), key.0.get());
    }

    #[test]
    fn paths_and_leaves() {
        let mut forest = Forest::default();
        for parent in [None, Some(0), Some(1), Some(1), None, Some(9)] {
            forest.push(parent);
        }
        assert_eq!(forest.up(3).collect::<Vec<_>>(), [3, 1, 0]);
        assert_eq!(forest.leaves().collect::<Vec<_>>(), [2, 3, 4, 5]);
        assert_eq!(forest.children(1).collect::<Vec<_>>(), [3, 2]);
        assert_eq!(forest.up(5).collect::<Vec<_>>(), [5], "a parent that comes later is none");
    }
}
