//! Lists of the conversations of one file: the messages are stored once, and each conversation selects its own.

use core::fmt;
use core::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

use super::{SourceRecordId, TranscriptEntry, UsageEntry};

/// The messages of a file, and the selection of each of its conversations.
///
/// A file with thousands of branches or compactions has thousands of conversations, most of which have a common
/// beginning. The sum of their lengths grows with the square of the file, so a conversation's list is made at its first
/// use.
pub(crate) trait Stages: fmt::Debug + Send + Sync {
    /// All messages of the file.
    fn entries(&self) -> &[TranscriptEntry];

    /// The messages of a conversation in their order, by their places in [`entries`](Self::entries).
    fn places(&self, stage: u32) -> Vec<u32>;

    /// The reports on the responses in a conversation, whose messages have these places.
    fn reports(&self, stage: u32, places: &[u32]) -> Vec<UsageEntry>;

    /// For each message, the number of the conversations that have it.
    fn holders(&self) -> Vec<u32>;

    /// Whether the place of a record in the file decides that a conversation shows it, and not a link from another
    /// record. Then a record that one conversation has lost cannot stay for the others.
    fn is_by_place(&self) -> bool {
        false
    }
}

/// A conversation of a file at the time of reading.
#[derive(Debug, Clone)]
pub(crate) struct Stage {
    pub(crate) of: Arc<dyn Stages>,
    pub(crate) number: u32,
}

impl Stage {
    pub(crate) fn places(&self) -> Vec<u32> {
        self.of.places(self.number)
    }

    fn entry(&self, place: u32) -> Option<&TranscriptEntry> {
        self.of.entries().get(place as usize)
    }

    /// The messages of a record.
    pub(super) fn record(&self, id: SourceRecordId) -> Vec<TranscriptEntry> {
        let entries = self.of.entries();
        let first = entries.partition_point(|entry| entry.record() < Some(id));
        let own = entries.get(first..).unwrap_or_default().iter();
        own.take_while(|entry| entry.record() == Some(id)).cloned().collect()
    }

    /// The records from which the conversation was read, and the number of each message in its record.
    pub(crate) fn as_read(&self) -> impl Iterator<Item = (SourceRecordId, u32)> {
        let entry = |place| self.entry(place).and_then(TranscriptEntry::place);
        self.places().into_iter().filter_map(entry)
    }
}

/// A list of the messages of a conversation, or of the reports on them, which is made at its first use.
///
/// It dereferences to a `Vec`. [`len`](LazyList::len) and [`iter`](LazyList::iter) of messages do not make the list.
#[derive(Clone)]
pub struct LazyList<T> {
    own: Vec<T>,
    /// The source of the list until it is changed, its length, and the list itself once it is made.
    shared: Option<(Stage, usize, OnceLock<Vec<T>>)>,
}

/// An element type of a conversation's list.
pub(crate) trait Listed: Sized {
    fn list(stage: &Stage) -> Vec<Self>;
}

impl Listed for TranscriptEntry {
    fn list(stage: &Stage) -> Vec<Self> {
        stage.places().into_iter().filter_map(|place| stage.entry(place)).cloned().collect()
    }
}

impl Listed for UsageEntry {
    fn list(stage: &Stage) -> Vec<Self> {
        stage.of.reports(stage.number, &stage.places())
    }
}

impl<T> LazyList<T> {
    pub(crate) const fn new() -> Self {
        Self { own: Vec::new(), shared: None }
    }

    pub(crate) const fn of(stage: Stage, len: usize) -> Self {
        Self { own: Vec::new(), shared: Some((stage, len, OnceLock::new())) }
    }

    /// Whether the list is unchanged: no list was made for changes.
    pub(super) const fn is_shared(&self) -> bool {
        self.shared.is_some()
    }
}

impl LazyList<TranscriptEntry> {
    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.as_ref().map_or(self.own.len(), |(_, len, _)| *len)
    }

    /// Whether the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An iterator over the elements, in order.
    pub fn iter(&self) -> TranscriptEntries<'_> {
        TranscriptEntries(match &self.shared {
            Some((stage, _, made)) if made.get().is_none() => {
                Source::Shared(stage.of.entries(), stage.places().into_iter())
            }
            _ => Source::Own((**self).iter()),
        })
    }
}

impl<T> Default for LazyList<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Listed> Deref for LazyList<T> {
    type Target = Vec<T>;

    fn deref(&self) -> &Vec<T> {
        match &self.shared {
            Some((stage, _, made)) => made.get_or_init(|| T::list(stage)),
            None => &self.own,
        }
    }
}

impl<T: Listed> DerefMut for LazyList<T> {
    fn deref_mut(&mut self) -> &mut Vec<T> {
        if let Some((stage, _, made)) = self.shared.take() {
            self.own = made.into_inner().unwrap_or_else(|| T::list(&stage));
        }
        &mut self.own
    }
}

impl<T> From<Vec<T>> for LazyList<T> {
    fn from(own: Vec<T>) -> Self {
        Self { own, shared: None }
    }
}

impl<T> From<LazyList<T>> for Vec<T>
where
    LazyList<T>: DerefMut<Target = Self>,
{
    fn from(mut list: LazyList<T>) -> Self {
        core::mem::take(&mut *list)
    }
}

impl<'a> IntoIterator for &'a LazyList<TranscriptEntry> {
    type Item = &'a TranscriptEntry;
    type IntoIter = TranscriptEntries<'a>;

    fn into_iter(self) -> TranscriptEntries<'a> {
        self.iter()
    }
}

impl<'a> IntoIterator for &'a mut LazyList<TranscriptEntry> {
    type Item = &'a mut TranscriptEntry;
    type IntoIter = core::slice::IterMut<'a, TranscriptEntry>;

    fn into_iter(self) -> core::slice::IterMut<'a, TranscriptEntry> {
        (**self).iter_mut()
    }
}

impl<T: fmt::Debug> fmt::Debug for LazyList<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.shared {
            Some((_, len, made)) if made.get().is_none() => write!(f, "[{len} that no list is made of yet]"),
            Some((.., made)) => made.get().fmt(f),
            None => self.own.fmt(f),
        }
    }
}

/// An iterator over the messages of a conversation.
#[derive(Debug, Clone)]
pub struct TranscriptEntries<'a>(Source<'a>);

#[derive(Debug, Clone)]
enum Source<'a> {
    Own(core::slice::Iter<'a, TranscriptEntry>),
    Shared(&'a [TranscriptEntry], std::vec::IntoIter<u32>),
}

impl<'a> Iterator for TranscriptEntries<'a> {
    type Item = &'a TranscriptEntry;

    fn next(&mut self) -> Option<&'a TranscriptEntry> {
        match &mut self.0 {
            Source::Own(list) => list.next(),
            Source::Shared(list, places) => places.next().and_then(|place| list.get(place as usize)),
        }
    }

    fn nth(&mut self, count: usize) -> Option<&'a TranscriptEntry> {
        match &mut self.0 {
            Source::Own(list) => list.nth(count),
            Source::Shared(list, places) => places.nth(count).and_then(|place| list.get(place as usize)),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.0 {
            Source::Own(list) => list.size_hint(),
            Source::Shared(_, places) => places.size_hint(),
        }
    }
}

impl DoubleEndedIterator for TranscriptEntries<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            Source::Own(list) => list.next_back(),
            Source::Shared(list, places) => places.next_back().and_then(|place| list.get(place as usize)),
        }
    }
}

impl ExactSizeIterator for TranscriptEntries<'_> {}
