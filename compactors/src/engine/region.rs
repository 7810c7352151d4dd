//! The messages of a plan, which are found again after further messages were appended.

use std::collections::BTreeMap;
use std::vec::Vec;

use epitome_std::history::Live;
use epitome_std::message::Message;

use super::again::{Again, Key, key_of};

/// A copy of the messages from the first to the last with a verdict, with their keys.
///
/// Messages in a run have other sequence numbers than in the store, and new ones in each run. The messages are
/// therefore found by their content.
pub(super) struct Region(Vec<(Key, Message)>);

impl Region {
    pub(super) fn of(again: &Again, live: &[Live]) -> Self {
        let Some((first, last)) = again.extent() else { return Self(Vec::new()) };
        let keyed = live.iter().map(|live| (key_of(live), live));
        let within = keyed.filter(|(key, _)| (first..=last).contains(key));
        Self(within.map(|(key, live)| (key, live.entry.message.clone())).collect())
    }

    /// The keys of these messages among the visible ones; `None` if they are not there as one run in
    /// the same order, or if such a run occurs twice and none is at the old place.
    pub(super) fn numbers_in(&self, live: &[Live]) -> Option<BTreeMap<Key, Key>> {
        let (first, _) = self.0.first()?;
        let stands_at = |at: &usize| {
            let here = at.checked_add(self.0.len()).and_then(|end| live.get(*at..end));
            here.is_some_and(|here| {
                self.0.iter().zip(here).all(|((_, was), is)| is_same(was, &is.entry.message))
            })
        };
        let same_number = live.binary_search_by_key(first, key_of).ok().filter(stands_at);
        let at = same_number.or_else(|| only((0..live.len()).filter(stands_at)))?;
        let here = live.get(at..)?.iter().map(key_of);
        Some(self.0.iter().map(|(key, _)| *key).zip(here).collect())
    }
}

/// The only one of several candidate places; `None` if the same messages are at more than one place.
fn only(mut places: impl Iterator<Item = usize>) -> Option<usize> {
    places.next().filter(|_| places.next().is_none())
}

/// Whether two messages have the same content, source and authority. Pins are not compared: a pin for one pass is a
/// mark in the pass's copy.
fn is_same(one: &Message, other: &Message) -> bool {
    let (of_one, of_other) = (one.attribution(), other.attribution());
    one.role() == other.role()
        && one.parts() == other.parts()
        && (of_one.source, of_one.authority) == (of_other.source, of_other.authority)
}
