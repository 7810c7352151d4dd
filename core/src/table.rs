//! Tables of plain data in memory that the caller provides.

use core::fmt;

/// A table has no room, or does not take the value: the function that returns this error says when. Nothing has been
/// changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "it has nothing to say but its name")]
pub struct Full;

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is no room: compact, or give the table more")
    }
}

impl core::error::Error for Full {}

/// A growing run of values: on the heap, in a borrowed slice or in a fixed-capacity array.
///
/// ```
/// use epitome_core::{Full, SliceTable, Table};
///
/// let mut room = [0; 2];
/// let mut table = SliceTable::new(&mut room);
/// table.push(7)?;
/// table.push(8)?;
/// assert_eq!(table.push(9), Err(Full));
/// assert_eq!(table.as_slice(), [7, 8]);
/// # Ok::<(), Full>(())
/// ```
pub trait Table<T> {
    /// Whether the index of this table of parts reads the calls and results of hosted tools.
    ///
    /// If it does, there are groups of the kind [`GroupKind::Hosted`](crate::GroupKind::Hosted), the results of these
    /// tools have rows, and a result in the model's next message joins its call.
    const READS_HOSTED: bool = true;

    /// The values.
    fn as_slice(&self) -> &[T];

    /// The values, for changes in place.
    fn as_mut_slice(&mut self) -> &mut [T];

    /// Adds a value at the end.
    ///
    /// # Errors
    /// [`Full`] when there is no room.
    fn push(&mut self, value: T) -> Result<(), Full>;

    /// Removes all values from the number `len` on.
    fn truncate(&mut self, len: usize);

    /// Removes all values; the memory remains.
    fn clear(&mut self);
}

/// A table in borrowed memory: a static array, a stack buffer, an arena.
#[derive(Debug)]
pub struct SliceTable<'a, T> {
    room: &'a mut [T],
    len: usize,
}

impl<'a, T> SliceTable<'a, T> {
    /// An empty table in `room`.
    #[must_use]
    pub const fn new(room: &'a mut [T]) -> Self {
        Self { room, len: 0 }
    }
}

impl<T> Table<T> for SliceTable<'_, T> {
    fn as_slice(&self) -> &[T] {
        self.room.get(..self.len).unwrap_or_default()
    }

    fn as_mut_slice(&mut self) -> &mut [T] {
        self.room.get_mut(..self.len).unwrap_or_default()
    }

    fn push(&mut self, value: T) -> Result<(), Full> {
        *self.room.get_mut(self.len).ok_or(Full)? = value;
        self.len = self.len.saturating_add(1);
        Ok(())
    }

    fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    fn clear(&mut self) {
        self.len = 0;
    }
}

/// A table of at most `N` values, stored in place. A table without room does not compile, nor does a memory for no
/// call:
///
/// ```compile_fail,E0080
/// let table = epitome_core::ArrayTable::<u8, 0>::default();
/// ```
/// ```compile_fail,E0080
/// let calls = epitome_core::OpenCallSlots::<0>::new();
/// ```
#[derive(Debug, Clone, Copy)]
pub struct ArrayTable<T, const N: usize> {
    room: [T; N],
    len: usize,
}

impl<T, const N: usize> ArrayTable<T, N> {
    /// An empty table in `room`.
    pub(crate) const fn in_room(room: [T; N]) -> Self {
        Self { room, len: 0 }
    }
}

impl<T: Copy + Default, const N: usize> Default for ArrayTable<T, N> {
    fn default() -> Self {
        const { assert!(N > 0, "a table without room") };
        Self { room: [T::default(); N], len: 0 }
    }
}

impl<T, const N: usize> Table<T> for ArrayTable<T, N> {
    fn as_slice(&self) -> &[T] {
        self.room.get(..self.len).unwrap_or_default()
    }

    fn as_mut_slice(&mut self) -> &mut [T] {
        self.room.get_mut(..self.len).unwrap_or_default()
    }

    fn push(&mut self, value: T) -> Result<(), Full> {
        *self.room.get_mut(self.len).ok_or(Full)? = value;
        self.len = self.len.saturating_add(1);
        Ok(())
    }

    fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    fn clear(&mut self) {
        self.len = 0;
    }
}

#[cfg(feature = "alloc")]
impl<T> Table<T> for alloc::vec::Vec<T> {
    fn as_slice(&self) -> &[T] {
        self
    }

    fn as_mut_slice(&mut self) -> &mut [T] {
        self
    }

    fn push(&mut self, value: T) -> Result<(), Full> {
        Self::push(self, value);
        Ok(())
    }

    fn truncate(&mut self, len: usize) {
        Self::truncate(self, len);
    }

    fn clear(&mut self) {
        Self::clear(self);
    }
}

#[cfg(feature = "heapless")]
impl<T, const N: usize> Table<T> for heapless::Vec<T, N> {
    fn as_slice(&self) -> &[T] {
        self
    }

    fn as_mut_slice(&mut self) -> &mut [T] {
        self
    }

    fn push(&mut self, value: T) -> Result<(), Full> {
        Self::push(self, value).map_err(|_| Full)
    }

    fn truncate(&mut self, len: usize) {
        Self::truncate(self, len);
    }

    fn clear(&mut self) {
        Self::clear(self);
    }
}
