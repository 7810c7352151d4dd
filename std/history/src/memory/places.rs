//! Places of the visible messages and summaries of a session.

use epitome_core::Seq;

/// The place of a visible message or summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Log,
    /// Numbers of four bytes keep a place small: each visible message has one.
    Summary {
        record: u32,
        summary: u32,
    },
}

/// The places of the visible messages, by ascending keys. Nearly all insertions are at the end.
#[derive(Debug, Default)]
pub(super) struct Places(Vec<(Seq, Place)>);

impl Places {
    /// Reserves memory for `count` more places.
    pub(super) fn reserve(&mut self, count: usize) {
        reserve(&mut self.0, count);
    }

    /// Adds a place, or replaces the place with this key.
    pub(super) fn insert(&mut self, key: Seq, place: Place) {
        if self.0.last().is_none_or(|(last, _)| *last < key) {
            self.0.push((key, place));
            return;
        }
        match self.0.binary_search_by_key(&key, |(key, _)| *key) {
            Ok(at) => self.0.get_mut(at).into_iter().for_each(|own| own.1 = place),
            Err(at) => self.0.insert(at, (key, place)),
        }
    }

    /// Adds messages of the log that have no place yet.
    pub(super) fn show(&mut self, keys: &[Seq]) {
        if keys.is_empty() {
            return;
        }
        self.0.extend(keys.iter().map(|key| (*key, Place::Log)));
        // The list consists of two ascending runs, so the sort is a merge.
        self.0.sort_by_key(|(key, _)| *key);
    }

    /// Removes the places of these keys, which are ascending.
    pub(super) fn hide(&mut self, keys: &[Seq]) {
        if keys.is_empty() {
            return;
        }
        let mut hidden = keys.iter().peekable();
        self.0.retain(|(key, _)| {
            while hidden.next_if(|hidden| *hidden < key).is_some() {}
            hidden.next_if_eq(&key).is_none()
        });
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (Seq, Place)> {
        self.0.iter().copied()
    }

    /// The places from a key on.
    pub(super) fn from(&self, first: Seq) -> impl Iterator<Item = (Seq, Place)> {
        let start = self.0.partition_point(|(key, _)| *key < first);
        self.0.get(start..).unwrap_or_default().iter().copied()
    }
}

/// Reserves memory for `count` more items. The list grows by a quarter, not to double its size, because a server keeps
/// many sessions that get no more appends.
pub(super) fn reserve<T>(list: &mut Vec<T>, count: usize) {
    if list.capacity().saturating_sub(list.len()) < count {
        list.reserve_exact(count.max(list.len() / 4));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn they_are_an_ordered_map(
            steps in prop::collection::vec((0..4_u8, prop::collection::btree_set(0..30_u64, 0..8)), 0..20),
        ) {
            let (mut places, mut map) = (Places::default(), BTreeMap::new());
            for (record, (step, keys)) in (0..).zip(steps) {
                let keys: Vec<Seq> = keys.into_iter().map(Seq).collect();
                match step {
                    0 => {
                        places.hide(&keys);
                        map.retain(|key, _| !keys.contains(key));
                    }
                    1 => {
                        let new: Vec<Seq> = keys.into_iter().filter(|key| !map.contains_key(key)).collect();
                        places.show(&new);
                        map.extend(new.into_iter().map(|key| (key, Place::Log)));
                    }
                    _ => for (summary, key) in (0..).zip(keys) {
                        places.insert(key, Place::Summary { record, summary });
                        map.insert(key, Place::Summary { record, summary });
                    }
                }
                prop_assert!(places.iter().eq(map.iter().map(|(key, place)| (*key, *place))));
                prop_assert!(places.from(Seq(15)).eq(map.range(Seq(15)..).map(|(key, place)| (*key, *place))));
            }
        }
    }
}
