//! The messages that a plan is about, to be found again after more was said.

use std::collections::BTreeMap;
use std::vec::Vec;

use epitome_std::history::Live;
use epitome_std::message::Message;

use super::again::{Again, Key, key_of};

/// The messages from the first that verdicts are about to the last, as they were, with their numbers.
///
/// What a run sends has other numbers than what is stored, and in each run. So what they say tells where they are.
pub(super) struct Region(Vec<(Key, Message)>);

impl Region {
    pub(super) fn of(again: &Again, live: &[Live]) -> Self {
        let Some((first, last)) = again.extent() else { return Self(Vec::new()) };
        let keyed = live.iter().map(|live| (key_of(live), live));
        let within = keyed.filter(|(key, _)| (first..=last).contains(key));
        Self(within.map(|(key, live)| (key, live.entry.message.clone())).collect())
    }

    /// The numbers that these messages have among those that are visible; `None` if they do not stand there as they did.
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

/// The only place of several candidates; `None` if the same messages stand at more than one.
fn only(mut places: impl Iterator<Item = usize>) -> Option<usize> {
    places.next().filter(|_| places.next().is_none())
}

/// Whether two messages say the same with the same right. What a program pins for a pass is marked in the copy that it works on.
fn is_same(one: &Message, other: &Message) -> bool {
    let (of_one, of_other) = (one.attribution(), other.attribution());
    one.role() == other.role()
        && one.parts() == other.parts()
        && (of_one.source, of_one.authority) == (of_other.source, of_other.authority)
}
