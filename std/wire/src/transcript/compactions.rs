//! The compactions of a tool, in lists that the conversations of a file share: most lists have a common beginning.

use core::fmt;
use std::sync::Arc;

use super::ToolCompaction;

/// The compactions of a tool that led to a conversation, the oldest first.
///
/// A file with thousands of compactions has as many earlier conversations, each with all compactions before it. Each
/// compaction is stored only once, with a link to the one before it.
///
/// ```
/// use epitome_wire::{ToolCompaction, ToolCompactions};
///
/// let found = ToolCompactions::from(vec![ToolCompaction::new(0), ToolCompaction::new(3)]);
/// assert_eq!(found.iter().map(|one| one.at).collect::<Vec<_>>(), [0, 3]);
/// ```
#[derive(Clone, Default)]
pub struct ToolCompactions {
    tree: Arc<[Linked]>,
    /// The number of the last one in the tree, which links to those before it; `None` if there is none.
    end: Option<u32>,
    /// A compaction behind these that no other conversation has.
    last: Option<Box<ToolCompaction>>,
}

/// A compaction of a file, and the one before it.
#[derive(Debug, Clone)]
struct Linked {
    compaction: ToolCompaction,
    before: Option<u32>,
    /// Number of compactions before it.
    depth: u32,
}

/// The compactions of a file by their numbers, from 0. Each follows one of the earlier ones, or none.
#[derive(Debug, Default)]
pub(crate) struct CompactionTree(Vec<Linked>);

impl CompactionTree {
    /// Adds a compaction behind the one with the number `before`, and returns its number.
    pub(crate) fn push(&mut self, before: Option<u32>, compaction: ToolCompaction) -> u32 {
        let parent = before.and_then(|before| self.0.get(before as usize));
        let depth = parent.map_or(0, |parent| parent.depth.saturating_add(1));
        let before = before.filter(|_| parent.is_some());
        self.0.push(Linked { compaction, before, depth });
        u32::try_from(self.0.len().saturating_sub(1)).unwrap_or(u32::MAX)
    }

    /// Returns a function that makes the list that ends with a given compaction, or with none.
    pub(crate) fn lists(self) -> impl Fn(Option<u32>) -> ToolCompactions {
        let tree: Arc<[Linked]> = self.0.into();
        move |end| ToolCompactions { tree: Arc::clone(&tree), end, last: None }
    }
}

impl ToolCompactions {
    /// Sets the compaction behind these.
    pub(crate) fn and(mut self, last: Option<ToolCompaction>) -> Self {
        self.last = last.map(Box::new);
        self
    }

    /// Number of compactions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared().saturating_add(usize::from(self.last.is_some()))
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An iterator over the compactions, the oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &ToolCompaction> + Clone {
        let mut found: Vec<_> = self.back(self.end).map(|linked| &linked.compaction).collect();
        found.reverse();
        found.into_iter().chain(self.last.as_deref())
    }

    /// The compaction with this number, from 0.
    #[must_use]
    pub fn get(&self, at: usize) -> Option<&ToolCompaction> {
        match self.shared().checked_sub(at.saturating_add(1)) {
            Some(behind) => self.back(self.end).nth(behind).map(|linked| &linked.compaction),
            None => self.last.as_deref().filter(|_| at == self.shared()),
        }
    }

    /// The latest compaction.
    #[must_use]
    pub fn last(&self) -> Option<&ToolCompaction> {
        self.last.as_deref().or_else(|| self.back(self.end).next().map(|linked| &linked.compaction))
    }

    /// Number of the compactions in the tree.
    fn shared(&self) -> usize {
        self.back(self.end).next().map_or(0, |last| (last.depth as usize).saturating_add(1))
    }

    /// The compactions from this one back to the first.
    fn back(&self, end: Option<u32>) -> impl Iterator<Item = &Linked> {
        let at = |number: u32| self.tree.get(number as usize);
        core::iter::successors(end.and_then(at), move |linked| at(linked.before?))
    }
}

impl From<Vec<ToolCompaction>> for ToolCompactions {
    fn from(list: Vec<ToolCompaction>) -> Self {
        let mut tree = CompactionTree::default();
        let end = list.into_iter().fold(None, |before, compaction| Some(tree.push(before, compaction)));
        tree.lists()(end)
    }
}

impl PartialEq for ToolCompactions {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for ToolCompactions {}

impl fmt::Debug for ToolCompactions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(at: usize) -> ToolCompaction {
        ToolCompaction::new(at)
    }

    fn places(found: &ToolCompactions) -> Vec<usize> {
        found.iter().map(|one| one.at).collect()
    }

    #[test]
    fn compactions_that_begin_alike_share_their_beginning() {
        let mut tree = CompactionTree::default();
        for (before, at) in [(None, 2), (Some(0), 5), (Some(1), 9), (Some(1), 7)] {
            tree.push(before, of(at));
        }
        let lists = tree.lists();
        let found = [None, Some(1), Some(2), Some(3)].map(&lists);
        assert_eq!(found.each_ref().map(places), [&[][..], &[2, 5], &[2, 5, 9], &[2, 5, 7]]);
        assert_eq!(found.each_ref().map(ToolCompactions::len), [0, 2, 3, 3]);
        let behind = lists(Some(1)).and(Some(of(8)));
        let each: Vec<_> = (0..4).map(|at| behind.get(at).map(|one| one.at)).collect();
        assert_eq!(each, [Some(2), Some(5), Some(8), None]);
        assert_eq!(
            (behind.last(), &behind),
            (Some(&of(8)), &ToolCompactions::from(vec![of(2), of(5), of(8)]))
        );
        assert!(found[0].is_empty() && found[0].last().is_none() && lists(Some(0)).last() == Some(&of(2)));
    }
}
