//! The declarations of `epitome_kernel.h`, and places for the outputs of a function.
//!
//! The library notices a header of another version: it compares [`Layout`] with its own.

use core::ffi::{c_char, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use core::slice;

use epitome_kernel as _;

/// The sizes of the tables in `fuzz/kernel/build.rs`.
pub(super) const LAYOUT: Layout =
    Layout { version: 1, messages: MESSAGES, arena_bytes: ARENA_BYTES, results: RESULTS };
pub(super) const MESSAGES: u32 = 24;
pub(super) const ARENA_BYTES: u32 = 1200;
pub(super) const RESULTS: u32 = 8;
/// `EPITOME_KERNEL_CALLS_MAX`, and the longest id of a call.
pub(super) const CALLS_MAX: usize = 8;
pub(super) const CALL_ID_MAX: usize = 64;
pub(super) const STAGES_MAX: usize = 4;
/// `EPITOME_KERNEL_NONE`.
pub(super) const NONE: u64 = u64::MAX;

/// `EPITOME_KERNEL_ERROR_...`
pub(super) mod error {
    pub(crate) const OK: i32 = 0;
    pub(crate) const NULL: i32 = 1;
    pub(crate) const MISALIGNED: i32 = 2;
    pub(crate) const LENGTH: i32 = 3;
    pub(crate) const OVERLAP: i32 = 4;
    pub(crate) const UTF8: i32 = 5;
    pub(crate) const VALUE: i32 = 6;
    pub(crate) const ENTRY: i32 = 7;
    pub(crate) const LAYOUT: i32 = 8;
    pub(crate) const MEMORY: i32 = 9;
    pub(crate) const NO_HISTORY: i32 = 10;
    pub(crate) const BUSY: i32 = 11;
    pub(crate) const STREAMING: i32 = 12;
    pub(crate) const NOT_STREAMING: i32 = 13;
    pub(crate) const FULL: i32 = 14;
    pub(crate) const BUFFER: i32 = 15;
    pub(crate) const BUDGET_TRIGGER: i32 = 16;
    pub(crate) const BUDGET_GOAL: i32 = 17;
    pub(crate) const BUDGET_RECLAIM: i32 = 18;
    pub(crate) const STAGES: i32 = 19;
    pub(crate) const INFEASIBLE: i32 = 21;
    pub(crate) const NO_PLAN: i32 = 22;
    pub(crate) const NO_NOTE: i32 = 23;
    pub(crate) const BLANK: i32 = 24;
    pub(crate) const TOO_LARGE: i32 = 25;
    pub(crate) const NO_MESSAGES: i32 = 26;
    pub(crate) const NOT_WHOLE: i32 = 27;
    pub(crate) const PROTECTED: i32 = 28;
    pub(crate) const NOTHING_NEW: i32 = 29;
    pub(crate) const END: i32 = 30;
    pub(crate) const CORRUPT: i32 = 31;
    pub(crate) const VERSION: i32 = 32;
    pub(crate) const SINK: i32 = 33;
}

/// Structures of numbers and pointers, as in the header.
macro_rules! structures {
    ($($name:ident { $($field:ident: $kind:ty),* $(,)? })*) => {$(
        #[repr(C)]
        #[derive(Clone, Copy, Debug)]
        pub(super) struct $name { $(pub(super) $field: $kind),* }
    )*};
}

structures! {
    Text { bytes: *const c_char, length: usize }
    Layout { version: u32, messages: u32, arena_bytes: u32, results: u32 }
    Status {
        tokens: u64, next_seq: u64, messages: u32, free_messages: u32, free_bytes: u32, free_results: u32,
        is_streaming: u32,
    }
    ToolCall { id: Text, name: Text, arguments: Text }
    Entry {
        role: i32, retention: i32, text: Text, name: Text, calls: *const ToolCall, call_count: usize, call_id: Text,
        is_error: u32,
    }
    Placed { anchor: u64, turn: u32, outcome: i32 }
    Budget { window: u64, reserve: u64, trigger: u64, goal: u64, min_reclaim: u64 }
    Stage { strategy: i32, keep: u32 }
    PlanResult { outcome: i32, tokens_after: u64, floor: u64, limit: u64 }
    Compacted { tokens: u64, bytes: u32, messages: u32, results: u32 }
    Span { first: u64, last: u64 }
    Message { seq: u64, tokens: u32, role: i32, is_summary: u32, is_cleared: u32, name: Text }
    Part { kind: i32, is_error: u32, text: Text, id: Text, name: Text }
}

/// The history that `init` returns, opaque.
pub(super) type History = c_void;
pub(super) type Sink = unsafe extern "C" fn(*mut c_void, *const c_char, usize) -> i32;

unsafe extern "C" {
    pub(super) fn epitome_kernel_error_text(error: i32) -> *const c_char;
    pub(super) fn epitome_kernel_memory_bytes() -> usize;
    pub(super) fn epitome_kernel_memory_align() -> usize;
    pub(super) fn epitome_kernel_snapshot_bytes_max() -> usize;
    pub(super) fn epitome_kernel_init_layout(
        memory: *mut c_void,
        bytes: usize,
        layout: *const Layout,
        history: *mut *mut History,
    ) -> i32;
    pub(super) fn epitome_kernel_clear(history: *mut History) -> i32;
    pub(super) fn epitome_kernel_read_status(history: *const History, status: *mut Status) -> i32;
    pub(super) fn epitome_kernel_append(
        history: *mut History,
        entry: *const Entry,
        placed: *mut Placed,
    ) -> i32;
    pub(super) fn epitome_kernel_append_clamped(
        history: *mut History,
        entry: *const Entry,
        bytes_max: usize,
        placed: *mut Placed,
    ) -> i32;
    pub(super) fn epitome_kernel_begin(history: *mut History, role: i32) -> i32;
    pub(super) fn epitome_kernel_extend(history: *mut History, piece: Text) -> i32;
    pub(super) fn epitome_kernel_finish(history: *mut History, placed: *mut Placed) -> i32;
    pub(super) fn epitome_kernel_abandon(history: *mut History) -> i32;
    pub(super) fn epitome_kernel_budget_check(budget: *const Budget, checked: *mut Budget) -> i32;
    pub(super) fn epitome_kernel_is_due(
        history: *const History,
        budget: *const Budget,
        is_due: *mut u32,
    ) -> i32;
    pub(super) fn epitome_kernel_plan(
        history: *mut History,
        budget: *const Budget,
        pass: i32,
        stages: *const Stage,
        stage_count: usize,
        result: *mut PlanResult,
    ) -> i32;
    pub(super) fn epitome_kernel_compact(history: *mut History, note: Text, compacted: *mut Compacted)
    -> i32;
    pub(super) fn epitome_kernel_span_to_summarize(history: *const History, span: *mut Span) -> i32;
    pub(super) fn epitome_kernel_ledger(
        history: *const History,
        span: *const Span,
        to: *mut c_char,
        capacity: usize,
        length: *mut usize,
    ) -> i32;
    pub(super) fn epitome_kernel_summarize(
        history: *mut History,
        span: *const Span,
        text: Text,
        compacted: *mut Compacted,
    ) -> i32;
    pub(super) fn epitome_kernel_read_message(
        history: *const History,
        place: usize,
        message: *mut Message,
    ) -> i32;
    pub(super) fn epitome_kernel_read_message_in(
        history: *const History,
        span: *const Span,
        place: usize,
        message: *mut Message,
    ) -> i32;
    pub(super) fn epitome_kernel_read_part(
        history: *const History,
        seq: u64,
        place: usize,
        part: *mut Part,
    ) -> i32;
    pub(super) fn epitome_kernel_write_openai_chat(
        history: *const History,
        to: *mut c_char,
        capacity: usize,
        length: *mut usize,
    ) -> i32;
    pub(super) fn epitome_kernel_send_openai_chat(
        history: *const History,
        sink: Option<Sink>,
        context: *mut c_void,
    ) -> i32;
    pub(super) fn epitome_kernel_snapshot(
        history: *const History,
        to: *mut u8,
        capacity: usize,
        length: *mut usize,
    ) -> i32;
    pub(super) fn epitome_kernel_restore(history: *mut History, from: *const u8, length: usize) -> i32;
}

impl Text {
    pub(super) const ABSENT: Self = Self { bytes: ptr::null(), length: 0 };

    pub(super) const fn of(bytes: &[u8]) -> Self {
        Self { bytes: bytes.as_ptr().cast(), length: bytes.len() }
    }

    /// A copy of the text, because the text is valid only until the history changes.
    pub(super) fn read(self) -> Option<String> {
        if self.bytes.is_null() {
            assert_eq!(self.length, 0);
            return None;
        }
        // SAFETY: by the header, there are this many bytes.
        let bytes = unsafe { slice::from_raw_parts(self.bytes.cast::<u8>(), self.length) };
        Some(String::from_utf8(bytes.to_vec()).expect("texts are UTF-8"))
    }
}

/// The fault in the pointer of an output argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    No,
    Null,
    Misaligned,
    /// A pointer into the history.
    Inside,
}

impl Wrong {
    /// The error for this fault.
    pub(super) const fn error(self) -> Option<i32> {
        match self {
            Self::No => None,
            Self::Null => Some(error::NULL),
            Self::Misaligned => Some(error::MISALIGNED),
            Self::Inside => Some(error::OVERLAP),
        }
    }
}

/// A place for a value. Its bytes show whether a value was written.
pub(super) struct Place<T> {
    value: MaybeUninit<[T; 2]>,
}

impl<T: Copy> Place<T> {
    const UNTOUCHED: u8 = 0xA5;

    pub(super) fn new() -> Self {
        let mut value = MaybeUninit::uninit();
        // SAFETY: the whole value, byte by byte.
        unsafe { ptr::write_bytes(value.as_mut_ptr(), Self::UNTOUCHED, 1) };
        Self { value }
    }

    /// The pointer for a call.
    pub(super) fn pointer(&mut self, wrong: Wrong, history: *mut History) -> *mut T {
        let start = self.value.as_mut_ptr().cast::<T>();
        match wrong {
            Wrong::No => start,
            Wrong::Null => ptr::null_mut(),
            Wrong::Misaligned => start.wrapping_byte_add(1),
            Wrong::Inside => history.wrapping_byte_add(64).cast(),
        }
    }

    /// The value that a successful call has written.
    pub(super) fn value(&self) -> T {
        // SAFETY: numbers and pointers, each of whose bytes is initialized.
        unsafe { self.value.as_ptr().cast::<T>().read() }
    }

    pub(super) fn is_untouched(&self) -> bool {
        // SAFETY: nothing was written but by `new`, or the answer is that something was.
        let bytes = unsafe { slice::from_raw_parts(self.value.as_ptr().cast::<u8>(), size_of::<[T; 2]>()) };
        bytes.iter().all(|byte| *byte == Self::UNTOUCHED)
    }
}
