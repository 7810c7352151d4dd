//! A table of terms and their numbers.

use core::hash::BuildHasher as _;
use std::collections::hash_map::RandomState;

use super::each_term;

/// The terms of texts, numbered from 0 in the order of their first occurrence.
///
/// Each term has a slot in a table with open addressing, the first free one from its place on. A look-up reads one
/// cache line, where a map of the standard library reads two. *Memory*: 24 to 48 bytes for each term.
#[derive(Debug, Clone)]
pub(super) struct Vocabulary {
    /// The slots: a power of two, at most two thirds of them in use.
    slots: Vec<Slot>,
    len: u32,
    /// Random key of the places. The author of a text can choose the hashes of its terms, but cannot put many terms
    /// in one place.
    random: [u64; 2],
    /// Buffer for the hashes of terms.
    hashes: Vec<u64>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    /// The hash of a term.
    term: u64,
    /// The number of the term plus 1; 0 for a free slot.
    number: u32,
}

/// Number of slots of the first table.
const SLOTS_MIN: usize = 64;

impl Default for Vocabulary {
    fn default() -> Self {
        let random = RandomState::new();
        let random = [random.hash_one(0_u64), random.hash_one(1_u64) | 1];
        Self { slots: Vec::new(), len: 0, random, hashes: Vec::new() }
    }
}

impl Vocabulary {
    /// Adds the number of each term of a text to `numbers`, in order. A new term gets the next number.
    ///
    /// All terms are hashed before the first look-up, so that the processor reads several places in memory at once.
    pub(super) fn numbers(&mut self, text: &str, numbers: &mut Vec<u32>) {
        let mut hashes = core::mem::take(&mut self.hashes);
        hashes.clear();
        each_term(text, |term| hashes.push(term));
        numbers.extend(hashes.iter().map(|term| self.number(*term)));
        self.hashes = hashes;
    }

    /// The number of a term; a new term gets the next number.
    #[inline]
    pub(super) fn number(&mut self, term: u64) -> u32 {
        if self.len().saturating_mul(3) >= self.slots.len().saturating_mul(2) {
            self.grow();
        }
        let len = self.len;
        let Some(slot) = self.slot(term) else { return len };
        let number = slot.number;
        match number.checked_sub(1) {
            Some(number) => number,
            None => {
                *slot = Slot { term, number: len.saturating_add(1) };
                self.len = len.saturating_add(1);
                len
            }
        }
    }

    /// The number of a known term.
    pub(super) fn find(&self, term: u64) -> Option<u32> {
        let at = self.slot_at(term)?;
        self.slots.get(at)?.number.checked_sub(1)
    }

    pub(super) const fn len(&self) -> usize {
        self.len as usize
    }

    fn slot(&mut self, term: u64) -> Option<&mut Slot> {
        let at = self.slot_at(term)?;
        self.slots.get_mut(at)
    }

    /// The slot of a term, or the free slot for it. `None` only for a table without slots.
    #[inline]
    fn slot_at(&self, term: u64) -> Option<usize> {
        let last = self.slots.len().checked_sub(1)?;
        let [added, factor] = self.random;
        let product = u128::from(term ^ added).wrapping_mul(u128::from(factor));
        let mut at = (product >> 64) as usize ^ product as usize;
        loop {
            at &= last;
            let slot = self.slots.get(at)?;
            if slot.term == term && slot.number > 0 || slot.number == 0 {
                return Some(at);
            }
            at = at.wrapping_add(1);
        }
    }

    #[inline(never)]
    fn grow(&mut self) {
        let slots = self.slots.len().saturating_mul(2).max(SLOTS_MIN);
        let before = core::mem::replace(&mut self.slots, vec![Slot::default(); slots]);
        for own in before.into_iter().filter(|slot| slot.number > 0) {
            if let Some(slot) = self.slot(own.term) {
                *slot = own;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_numbers_terms_as_a_map_does(terms in prop::collection::vec(prop_oneof![0_u64..90, any::<u64>()], 0..400)) {
            let (mut vocabulary, mut map) = (Vocabulary::default(), HashMap::new());
            for term in &terms {
                prop_assert_eq!(vocabulary.find(*term), map.get(term).copied());
                let next = map.len() as u32;
                let number = *map.entry(*term).or_insert(next);
                prop_assert_eq!(vocabulary.number(*term), number);
                prop_assert_eq!((vocabulary.find(*term), vocabulary.len()), (Some(number), map.len()));
            }
        }
    }
}
