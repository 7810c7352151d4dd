//! One call from C: every pointer, length and text is checked here before its first use.

use core::cell::Cell;
use core::ffi::c_char;
use core::marker::PhantomData;
use core::mem::MaybeUninit;

use crate::error::Error;
use crate::history::{History, SEAL};
use crate::tables::Bounded;

/// A text of the caller's. Without a pointer and without length it is absent.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Text {
    pub(crate) bytes: *const c_char,
    pub(crate) length: usize,
}

impl Text {
    pub(crate) const ABSENT: Self = Self { bytes: core::ptr::null(), length: 0 };

    /// Makes a text for C to read. It is valid while the memory of `text` does not change.
    pub(crate) const fn of(text: &str) -> Self {
        Self { bytes: text.as_ptr().cast(), length: text.len() }
    }
}

/// The pointers of one call for one history. Each reference is valid for `'c`, the time of the call.
pub(crate) struct Call<'c> {
    history: *mut History,
    pointers: PhantomData<&'c mut History>,
}

impl<'c> Call<'c> {
    /// # Safety
    /// Each pointer that is passed to the methods is null or follows the rules of the header: it points to memory of
    /// the given size, and no other code writes to that memory during the call. `history` is the result of
    /// `epitome_kernel_init`, or points to readable memory of the size of a history.
    pub(crate) const unsafe fn new(history: *const History) -> Self {
        Self { history: history.cast_mut(), pointers: PhantomData }
    }

    /// The history, for reading.
    pub(crate) fn history(&self) -> Result<&'c Bounded, Error> {
        self.check()?;
        // SAFETY: the seal shows that `init` has run; no other code changes the history during this call.
        Ok(unsafe { &(*self.history).bounded })
    }

    /// The history, for changes. `Streaming` if a text is being streamed.
    pub(crate) fn change(&mut self) -> Result<&mut Bounded, Error> {
        let history = self.change_stream()?;
        if history.is_suspended() { Err(Error::Streaming) } else { Ok(history) }
    }

    /// The history, for changes, also while a text is being streamed. `Busy` if the history is lent to a sink.
    pub(crate) fn change_stream(&mut self) -> Result<&mut Bounded, Error> {
        self.check()?;
        if self.lent()?.get() {
            return Err(Error::Busy);
        }
        // SAFETY: the seal shows that `init` has run, and the history is not lent to a sink: only this call uses it.
        Ok(unsafe { &mut (*self.history).bounded })
    }

    /// Whether the history is lent to a sink.
    pub(crate) fn lent(&self) -> Result<&'c Cell<bool>, Error> {
        self.check()?;
        // SAFETY: the seal shows that `init` has run; no other reference to this field allows a change without the
        // cell.
        Ok(unsafe { &(*self.history).lent })
    }

    fn check(&self) -> Result<(), Error> {
        if self.history.is_null() {
            return Err(Error::Null);
        }
        if !self.history.is_aligned() {
            return Err(Error::Misaligned);
        }
        // SAFETY: not null, aligned, and readable by the contract of `new`; any number is a valid value.
        let seal = unsafe { (&raw const (*self.history).seal).read() };
        if seal == SEAL { Ok(()) } else { Err(Error::NoHistory) }
    }

    /// Reads a text; `None` if it is absent.
    pub(crate) fn text(&self, text: Text) -> Result<Option<&'c str>, Error> {
        if text.bytes.is_null() && text.length == 0 {
            return Ok(None);
        }
        let bytes = self.bytes(text.bytes.cast(), text.length)?;
        core::str::from_utf8(bytes).map(Some).map_err(|_| Error::Utf8)
    }

    /// The bytes at a pointer, for reading.
    pub(crate) fn bytes(&self, bytes: *const u8, length: usize) -> Result<&'c [u8], Error> {
        self.apart(bytes.addr(), length)?;
        if length == 0 {
            return Ok(&[]);
        }
        // SAFETY: not null, of an allowed length, outside the history, and readable by the contract of `new`.
        Ok(unsafe { core::slice::from_raw_parts(bytes, length) })
    }

    /// The bytes at a pointer, for writing.
    pub(crate) fn bytes_out(&self, bytes: *mut u8, length: usize) -> Result<&'c mut [u8], Error> {
        if length == 0 {
            return Ok(&mut []);
        }
        self.apart(bytes.addr(), length)?;
        // SAFETY: not null, of an allowed length, outside the history, and writable by the contract of `new`.
        Ok(unsafe { core::slice::from_raw_parts_mut(bytes, length) })
    }

    /// Reads a value of a type for which any bytes are valid: numbers and pointers.
    pub(crate) fn value<T: Plain>(&self, value: *const T) -> Result<T, Error> {
        self.apart(value.addr(), size_of::<T>())?;
        if !value.is_aligned() {
            return Err(Error::Misaligned);
        }
        // SAFETY: not null, aligned, and readable by the contract of `new`; any bytes are a valid value.
        Ok(unsafe { value.read() })
    }

    /// An optional output parameter.
    pub(crate) fn out<T: Plain>(&self, to: *mut T) -> Result<Out<'c, T>, Error> {
        if to.is_null() {
            return Ok(Out(None));
        }
        self.apart(to.addr(), size_of::<T>())?;
        if !to.is_aligned() {
            return Err(Error::Misaligned);
        }
        // SAFETY: not null, aligned, outside the history, and writable by the contract of `new`; no initial value is
        // assumed.
        Ok(Out(Some(unsafe { &mut *to.cast::<MaybeUninit<T>>() })))
    }

    /// A required output parameter.
    pub(crate) fn needed<T: Plain>(&self, to: *mut T) -> Result<Out<'c, T>, Error> {
        if to.is_null() { Err(Error::Null) } else { self.out(to) }
    }

    /// Checks that the memory at `start` is valid and does not overlap the history.
    fn apart(&self, start: usize, length: usize) -> Result<(), Error> {
        if start == 0 {
            return Err(Error::Null);
        }
        let end =
            start.checked_add(length).filter(|_| isize::try_from(length).is_ok()).ok_or(Error::Length)?;
        let first = self.history.addr();
        let meets = start < first.saturating_add(size_of::<History>()) && first < end;
        if meets && first != 0 { Err(Error::Overlap) } else { Ok(()) }
    }
}

/// A type of numbers and pointers, for which any bytes are a valid value.
///
/// # Safety
/// No field has invalid values, as a `bool`, an enumeration or a reference has.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: numbers and pointers.
unsafe impl Plain for u64 {}
// SAFETY: numbers and pointers.
unsafe impl Plain for usize {}
// SAFETY: numbers and pointers.
unsafe impl Plain for u32 {}
// SAFETY: a pointer and a number.
unsafe impl Plain for Text {}
// SAFETY: four numbers.
unsafe impl Plain for crate::tables::Layout {}
// SAFETY: a pointer.
unsafe impl Plain for *mut History {}

/// An output parameter; `None` if the caller does not want the value.
pub(crate) struct Out<'c, T>(Option<&'c mut MaybeUninit<T>>);

impl<T> Out<'_, T> {
    pub(crate) fn put(self, value: T) {
        if let Some(to) = self.0 {
            to.write(value);
        }
    }
}
