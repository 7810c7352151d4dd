//! One call from C: every pointer, length and text is checked here before anything is done with it.

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

    /// A text for C to look at, as long as what it lies in does not change.
    pub(crate) const fn of(text: &str) -> Self {
        Self { bytes: text.as_ptr().cast(), length: text.len() }
    }
}

/// The pointers of one call, about one history. Each reference is good for `'c`, the time of the call.
pub(crate) struct Call<'c> {
    history: *mut History,
    pointers: PhantomData<&'c mut History>,
}

impl<'c> Call<'c> {
    /// # Safety
    /// Each pointer that is given to the methods is, where it is not null, what the header asks for: it leads to so many
    /// bytes that nothing else writes while the call lasts. `history` is what `epitome_kernel_init` gave, or memory
    /// that may be read in the size of a history.
    pub(crate) const unsafe fn new(history: *const History) -> Self {
        Self { history: history.cast_mut(), pointers: PhantomData }
    }

    /// The history, to be looked at.
    pub(crate) fn history(&self) -> Result<&'c Bounded, Error> {
        self.check()?;
        // SAFETY: the seal says that `init` was here; nobody changes the history while this call lasts.
        Ok(unsafe { &(*self.history).bounded })
    }

    /// The history, to be changed; no text is being streamed.
    pub(crate) fn change(&mut self) -> Result<&mut Bounded, Error> {
        let history = self.change_stream()?;
        if history.is_suspended() { Err(Error::Streaming) } else { Ok(history) }
    }

    /// The history, to be changed whether a text is being streamed or not.
    pub(crate) fn change_stream(&mut self) -> Result<&mut Bounded, Error> {
        self.check()?;
        if self.lent()?.get() {
            return Err(Error::Busy);
        }
        // SAFETY: the seal says that `init` was here, and it is lent to no sink: this call alone has it.
        Ok(unsafe { &mut (*self.history).bounded })
    }

    /// Whether the history is lent to a sink.
    pub(crate) fn lent(&self) -> Result<&'c Cell<bool>, Error> {
        self.check()?;
        // SAFETY: the seal says that `init` was here; no other reference to this field allows a change without the cell.
        Ok(unsafe { &(*self.history).lent })
    }

    fn check(&self) -> Result<(), Error> {
        if self.history.is_null() {
            return Err(Error::Null);
        }
        if !self.history.is_aligned() {
            return Err(Error::Misaligned);
        }
        // SAFETY: not null, aligned, and readable as `new` was promised; any number may stand there.
        let seal = unsafe { (&raw const (*self.history).seal).read() };
        if seal == SEAL { Ok(()) } else { Err(Error::NoHistory) }
    }

    /// A text, or `None` where it is absent.
    pub(crate) fn text(&self, text: Text) -> Result<Option<&'c str>, Error> {
        if text.bytes.is_null() && text.length == 0 {
            return Ok(None);
        }
        let bytes = self.bytes(text.bytes.cast(), text.length)?;
        core::str::from_utf8(bytes).map(Some).map_err(|_| Error::Utf8)
    }

    /// Bytes to be read.
    pub(crate) fn bytes(&self, bytes: *const u8, length: usize) -> Result<&'c [u8], Error> {
        self.apart(bytes.addr(), length)?;
        if length == 0 {
            return Ok(&[]);
        }
        // SAFETY: not null, of a possible length, outside the history, and readable as `new` was promised.
        Ok(unsafe { core::slice::from_raw_parts(bytes, length) })
    }

    /// Bytes to be written.
    pub(crate) fn bytes_out(&self, bytes: *mut u8, length: usize) -> Result<&'c mut [u8], Error> {
        if length == 0 {
            return Ok(&mut []);
        }
        self.apart(bytes.addr(), length)?;
        // SAFETY: not null, of a possible length, outside the history, and writable as `new` was promised.
        Ok(unsafe { core::slice::from_raw_parts_mut(bytes, length) })
    }

    /// One value of a structure in which any bytes have a meaning: numbers and pointers.
    pub(crate) fn value<T: Plain>(&self, value: *const T) -> Result<T, Error> {
        self.apart(value.addr(), size_of::<T>())?;
        if !value.is_aligned() {
            return Err(Error::Misaligned);
        }
        // SAFETY: not null, aligned, and readable as `new` was promised; any bytes are a value of it.
        Ok(unsafe { value.read() })
    }

    /// A place for a value, which may be absent.
    pub(crate) fn out<T: Plain>(&self, to: *mut T) -> Result<Out<'c, T>, Error> {
        if to.is_null() {
            return Ok(Out(None));
        }
        self.apart(to.addr(), size_of::<T>())?;
        if !to.is_aligned() {
            return Err(Error::Misaligned);
        }
        // SAFETY: not null, aligned, outside the history, and writable as `new` was promised; no initial value is assumed.
        Ok(Out(Some(unsafe { &mut *to.cast::<MaybeUninit<T>>() })))
    }

    /// A place for a value, which must be there.
    pub(crate) fn needed<T: Plain>(&self, to: *mut T) -> Result<Out<'c, T>, Error> {
        if to.is_null() { Err(Error::Null) } else { self.out(to) }
    }

    /// Whether the bytes at `start` are some, and none of the history.
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

/// A structure of numbers and pointers: any bytes are a value of it.
///
/// # Safety
/// No field has a value that is not allowed, such as that of a `bool`, of an enumeration or of a reference.
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

/// Place for an output value that the caller may not want.
pub(crate) struct Out<'c, T>(Option<&'c mut MaybeUninit<T>>);

impl<T> Out<'_, T> {
    pub(crate) fn put(self, value: T) {
        if let Some(to) = self.0 {
            to.write(value);
        }
    }
}
