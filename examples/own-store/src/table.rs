//! One table of ordered keys for the rows of all sessions.

use redb::{ReadableTable, Table, TableDefinition};
use serde::Serialize;
use serde::de::DeserializeOwned;

use epitome_history::kernel::corrupt;
use epitome_history::{StoreError, StoreErrorKind};

/// The name of the session, and the key of a row within it.
pub(crate) type Key = (&'static str, &'static [u8]);

/// The sessions by name, with the data for a list.
pub(crate) const SESSIONS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("sessions");

/// All other rows.
pub(crate) const ROWS: TableDefinition<'_, Key, &[u8]> = TableDefinition::new("rows");

/// A table that is read, in a transaction of either kind.
pub(crate) trait Readable: ReadableTable<Key, &'static [u8]> {}

impl<T: ReadableTable<Key, &'static [u8]>> Readable for T {}

/// The kinds of rows. The kind is the first byte of a key, and its numbers follow, so that a range of numbers is a range of keys.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
pub(crate) enum Kind {
    /// A message of the log, by its number.
    Message = 1,
    /// The place of a visible message or summary, by its key.
    Live,
    /// A summary, by the revision of its record and its key.
    Summary,
    /// The message that a revision has hidden, by that revision and its number.
    Hidden,
    /// The summary that a revision has hidden, by that revision, the one of its record, and its key.
    HiddenSummary,
    /// A record, by the revision that it made.
    Record,
    /// A hidden call without an answer, by its group and its place in it.
    Call,
    /// An append, by the head of the session after it.
    Append,
    /// The append of a token.
    Token,
    /// A prune, by the revision that it made.
    Prune,
    /// The state of the session.
    State,
}

impl Kind {
    pub(crate) fn key<const N: usize>(self, numbers: [u64; N]) -> Vec<u8> {
        let mut key = vec![self as u8];
        key.extend(numbers.iter().flat_map(|number| number.to_be_bytes()));
        key
    }

    pub(crate) fn named(self, name: &str) -> Vec<u8> {
        let mut key = vec![self as u8];
        key.extend_from_slice(name.as_bytes());
        key
    }

    /// The first key after all keys of this kind.
    fn end(self) -> Vec<u8> {
        vec![(self as u8).saturating_add(1)]
    }
}

/// A range of the keys of one kind, by their first number.
pub(crate) struct KeyRange {
    from: Vec<u8>,
    /// Not in the range.
    to: Vec<u8>,
}

impl KeyRange {
    pub(crate) fn all(kind: Kind) -> Self {
        Self { from: kind.key([]), to: kind.end() }
    }

    pub(crate) fn from(kind: Kind, from: u64) -> Self {
        Self { from: kind.key([from]), to: kind.end() }
    }

    /// From `from` to before `to`.
    pub(crate) fn from_to(kind: Kind, from: u64, to: u64) -> Self {
        Self { from: kind.key([from]), to: kind.key([to.max(from)]) }
    }

    pub(crate) fn behind(kind: Kind, after: Option<u64>) -> Self {
        match after.map(|after| after.checked_add(1)) {
            None => Self::all(kind),
            Some(Some(from)) => Self::from(kind, from),
            Some(None) => Self { from: kind.end(), to: kind.end() },
        }
    }
}

/// The rows of one session.
pub(crate) struct Rows<'s, T> {
    session: &'s str,
    table: T,
}

impl<'s, T> Rows<'s, T> {
    pub(crate) const fn new(session: &'s str, table: T) -> Self {
        Self { session, table }
    }
}

impl<T: Readable> Rows<'_, T> {
    pub(crate) fn get<R: DeserializeOwned>(&self, key: &[u8]) -> Result<Option<R>, StoreError> {
        let found = self.table.get((self.session, key)).map_err(medium)?;
        found.map(|found| decoded(found.value())).transpose()
    }

    /// A row that another row names, so that it must exist.
    pub(crate) fn must<R: DeserializeOwned>(&self, key: &[u8]) -> Result<R, StoreError> {
        self.get(key)?.ok_or_else(|| corrupt("a row that another one names is missing"))
    }

    pub(crate) fn range<R: DeserializeOwned>(
        &self,
        keys: KeyRange,
    ) -> Result<impl DoubleEndedIterator<Item = Result<R, StoreError>>, StoreError> {
        let found = self.table.range((self.session, &*keys.from)..(self.session, &*keys.to));
        Ok(found.map_err(medium)?.map(|found| decoded(found.map_err(medium)?.1.value())))
    }
}

impl Rows<'_, Table<'_, Key, &'static [u8]>> {
    pub(crate) fn put(&mut self, key: &[u8], row: &impl Serialize) -> Result<(), StoreError> {
        let text = serde_json::to_vec(row).map_err(unwritable)?;
        self.table.insert((self.session, key), &*text).map_err(medium)?;
        Ok(())
    }

    pub(crate) fn remove(&mut self, key: &[u8]) -> Result<(), StoreError> {
        self.table.remove((self.session, key)).map_err(medium)?;
        Ok(())
    }

    /// Removes all rows of the session.
    pub(crate) fn clear(&mut self) -> Result<(), StoreError> {
        let keys = (self.session, &[][..])..=(self.session, &[u8::MAX][..]);
        self.table.retain_in(keys, |_, _| false).map_err(medium)
    }
}

pub(crate) fn decoded<R: DeserializeOwned>(row: &[u8]) -> Result<R, StoreError> {
    serde_json::from_slice(row).map_err(|_| corrupt("a row cannot be read"))
}

/// A number or a text always has a JSON form.
pub(crate) fn unwritable(_: serde_json::Error) -> StoreError {
    StoreError::new(StoreErrorKind::Invalid, "a row cannot be written")
}

/// Converts an error of redb into an error kind with an action for the caller.
pub(crate) fn medium(error: impl Into<redb::Error>) -> StoreError {
    let error = error.into();
    let kind = match error {
        redb::Error::Corrupted(_) => StoreErrorKind::Corrupt,
        redb::Error::ValueTooLarge(_) => StoreErrorKind::Invalid,
        _ => StoreErrorKind::Unavailable,
    };
    StoreError::new(kind, "redb").with_source(error)
}
