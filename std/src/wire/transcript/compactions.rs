//! The compactions of a tool, in lists that conversations of a file share: what one of them was begins most of the others.

use core::fmt;
use std::collections::HashMap;
use std::sync::Arc;

use super::ToolCompaction;

/// What a tool compacted before a conversation was what it is, the oldest first.
///
/// Each of the conversations that thousands of compactions left behind has all that came before it: they share one list.
///
/// ```
/// use epitome_std::wire::{Compactions, ToolCompaction};
///
/// let found = Compactions::from(vec![ToolCompaction::new(0), ToolCompaction::new(3)]);
/// assert_eq!(found.iter().map(|one| one.at).collect::<Vec<_>>(), [0, 3]);
/// ```
#[derive(Clone, Default)]
pub struct Compactions {
    list: Arc<[ToolCompaction]>,
    /// How many of the list are its own.
    count: usize,
    /// What is behind these, where no other conversation has it so.
    last: Option<ToolCompaction>,
}

impl Compactions {
    /// The first `count` of a list.
    pub(crate) fn first_of(list: &Arc<[ToolCompaction]>, count: usize) -> Self {
        Self { list: Arc::clone(list), count: count.min(list.len()), last: None }
    }

    /// The first `count` of them, of those that others have too.
    pub(crate) fn first(&self, count: usize) -> Self {
        Self::first_of(&self.list, self.count.min(count))
    }

    /// The same, and this one behind them.
    pub(crate) fn and(mut self, last: Option<ToolCompaction>) -> Self {
        self.last = last;
        self
    }

    /// How many they are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count.saturating_add(usize::from(self.last.is_some()))
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Each of them, the oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &ToolCompaction> + Clone {
        self.list.iter().take(self.count).chain(&self.last)
    }

    /// The one with this number, counted from 0.
    #[must_use]
    pub fn get(&self, at: usize) -> Option<&ToolCompaction> {
        self.list
            .get(at)
            .filter(|_| at < self.count)
            .or_else(|| self.last.as_ref().filter(|_| at == self.count))
    }

    /// The latest.
    #[must_use]
    pub fn last(&self) -> Option<&ToolCompaction> {
        self.iter().next_back()
    }
}

impl From<Vec<ToolCompaction>> for Compactions {
    fn from(list: Vec<ToolCompaction>) -> Self {
        Self { count: list.len(), list: list.into(), last: None }
    }
}

impl PartialEq for Compactions {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Compactions {}

impl fmt::Debug for Compactions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// The lists of a file that is a tree: what was compacted on the way to each of its ends, by the number of the record that
/// the last of it is. Where the longest list is asked for first, the others are its beginning.
#[derive(Debug, Default)]
pub(crate) struct Ways {
    known: HashMap<usize, Compactions>,
}

impl Ways {
    /// What was compacted on the way that leads back over these records. Only what is not known yet is made.
    pub(crate) fn back<T>(
        &mut self,
        newest_first: impl Iterator<Item = (usize, T)>,
        mut make: impl FnMut(T) -> ToolCompaction,
    ) -> Compactions {
        let mut before = Compactions::default();
        let mut new = Vec::new();
        for (record, found) in newest_first {
            if let Some(known) = self.known.get(&record) {
                before = known.clone();
                break;
            }
            new.push((record, make(found)));
        }
        if new.is_empty() {
            return before;
        }
        let own = new.iter().rev().map(|(_, compaction)| compaction.clone());
        let list: Arc<[_]> = before.iter().cloned().chain(own).collect();
        let counts = before.len().saturating_add(1)..;
        for (count, (record, _)) in counts.zip(new.iter().rev()) {
            self.known.insert(*record, Compactions::first_of(&list, count));
        }
        Compactions::first_of(&list, list.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(at: usize) -> ToolCompaction {
        ToolCompaction::new(at)
    }

    fn places(found: &Compactions) -> Vec<usize> {
        found.iter().map(|one| one.at).collect()
    }

    #[test]
    fn the_beginning_of_a_list_is_a_list() {
        let list: Arc<[_]> = [of(1), of(2), of(3)].into();
        let found = Compactions::first_of(&list, 2).and(Some(of(7)));
        assert_eq!((places(&found), found.len()), (vec![1, 2, 7], 3));
        let each: Vec<_> = (0..4).map(|at| found.get(at).map(|one| one.at)).collect();
        assert_eq!(each, [Some(1), Some(2), Some(7), None]);
        assert_eq!((found.last(), &found), (Some(&of(7)), &Compactions::from(vec![of(1), of(2), of(7)])));
        assert!(Compactions::first_of(&list, 0).is_empty() && Compactions::default().last().is_none());
    }

    #[test]
    fn ways_that_begin_alike_share_their_list() {
        let mut ways = Ways::default();
        let mut made = 0;
        let mut back = |records: &[usize]| {
            ways.back(records.iter().map(|record| (*record, *record)), |record| {
                made += 1;
                of(record)
            })
        };
        let longest = back(&[9, 5, 2]);
        let [begins, branch, none] = [back(&[5, 2]), back(&[7, 5, 2]), back(&[])];
        assert_eq!(
            [&longest, &begins, &branch, &none].map(places),
            [&[2, 5, 9][..], &[2, 5], &[2, 5, 7], &[]]
        );
        assert!(Arc::ptr_eq(&longest.list, &begins.list) && made == 4);
    }
}
