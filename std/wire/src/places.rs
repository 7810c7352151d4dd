//! Finds the elements of one list in another list that is mostly equal.

use core::hash::Hash;
use std::collections::HashMap;

/// The places of `keys`. A search in their order finds each place in constant time. The first search in another order
/// builds a map, so that a long list is not scanned for every element.
#[derive(Debug)]
pub(crate) struct Places<'k, K> {
    keys: &'k [K],
    map: Option<HashMap<&'k K, Vec<usize>>>,
}

impl<'k, K: Eq + Hash> Places<'k, K> {
    pub(crate) const fn new(keys: &'k [K]) -> Self {
        Self { keys, map: None }
    }

    /// The place of `wanted`: at `next` or the first place after it, otherwise the first place in the list.
    pub(crate) fn find(&mut self, wanted: &K, next: usize) -> Option<usize> {
        if self.keys.get(next) == Some(wanted) {
            return Some(next);
        }
        let places = self.map.get_or_insert_with(|| by_key(self.keys)).get(wanted)?;
        let later = places.partition_point(|place| *place < next);
        places.get(later).or_else(|| places.first()).copied()
    }
}

fn by_key<K: Eq + Hash>(keys: &[K]) -> HashMap<&K, Vec<usize>> {
    let mut map = HashMap::<_, Vec<usize>>::with_capacity(keys.len());
    for (place, key) in keys.iter().enumerate() {
        map.entry(key).or_default().push(place);
    }
    map
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn naive(keys: &[u8], wanted: u8, next: usize) -> Option<usize> {
        let is = |place: &usize| keys[*place] == wanted;
        (next..keys.len()).find(is).or_else(|| (0..keys.len()).find(is))
    }

    proptest! {
        #[test]
        fn it_finds_what_a_search_finds(keys in vec(0_u8..6, 0..20), wanted in vec((0_u8..7, 0_usize..22), 0..20)) {
            let mut places = Places::new(&keys);
            for (wanted, next) in wanted {
                prop_assert_eq!(places.find(&wanted, next), naive(&keys, wanted, next));
            }
        }
    }
}
