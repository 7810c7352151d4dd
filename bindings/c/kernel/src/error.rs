//! Results of the functions.

use core::ffi::{CStr, c_char};

use epitome_core::{BoundedSummaryError, BudgetError, CompactError, Full, PlanError, SnapshotError};

/// The return value of a function.
#[repr(i32)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Error {
    Ok = 0,
    Null = 1,
    Misaligned = 2,
    Length = 3,
    Overlap = 4,
    Utf8 = 5,
    Value = 6,
    Entry = 7,
    Layout = 8,
    Memory = 9,
    NoHistory = 10,
    Busy = 11,
    Streaming = 12,
    NotStreaming = 13,
    Full = 14,
    Buffer = 15,
    BudgetTrigger = 16,
    BudgetGoal = 17,
    BudgetReclaim = 18,
    Stages = 19,
    #[allow(dead_code, reason = "every strategy may be built in")]
    NotBuilt = 20,
    Infeasible = 21,
    NoPlan = 22,
    NoNote = 23,
    Blank = 24,
    TooLarge = 25,
    NoMessages = 26,
    NotWhole = 27,
    Protected = 28,
    NothingNew = 29,
    End = 30,
    Corrupt = 31,
    Version = 32,
    Sink = 33,
}

/// The text of an error: the fault, and the remedy.
#[unsafe(no_mangle)]
pub extern "C" fn epitome_kernel_error_text(error: i32) -> *const c_char {
    let text = usize::try_from(error).ok().and_then(|at| TEXTS.get(at).copied());
    text.unwrap_or(c"unknown error: header and library may differ").as_ptr()
}

/// In the order of the errors.
const TEXTS: [&CStr; 34] = [
    c"ok",
    c"a pointer is null that must not be",
    c"a pointer is not aligned for its type",
    c"a length is larger than memory can be: check the argument",
    c"a pointer leads into the memory of the history: copy the text first",
    c"a text is not UTF-8: split it between characters",
    c"a number is none of its enumeration",
    c"an entry contradicts itself: calls need the role assistant, a call id the role tool",
    c"header and library differ in version or table sizes: build both with the same",
    c"the memory is too small: give EPITOME_KERNEL_MEMORY_BYTES",
    c"there is no history at this address: call epitome_kernel_init first",
    c"the history is being written to a sink: change it after that",
    c"a streamed text is open: finish or abandon it first",
    c"no streamed text is open: begin one first",
    c"there is no room: compact, or choose larger tables",
    c"the buffer is too small: the needed length is in its place",
    c"the trigger is above window - reserve: lower it, or raise the window",
    c"the goal must be under the trigger: lower it",
    c"min_reclaim is above what a pass can free (trigger - goal): lower it",
    c"a plan needs one to EPITOME_KERNEL_STAGES_MAX stages",
    c"the strategy was left out of this library: build it with its feature",
    c"what is protected does not fit the window: no compaction helps",
    c"there is no plan of what the history holds now: plan again",
    c"the plan clears results: compact with a note",
    c"the text is blank",
    c"the text is not smaller than what it replaces: shorten it",
    c"there are no such messages: they were removed, or there is no plan",
    c"the messages are not whole groups: choose again",
    c"a message to summarize must stay as it is: choose others",
    c"there is nothing to summarize but a summary",
    c"there is no message or part with such a number",
    c"the snapshot is torn or damaged: take an older one",
    c"a newer version wrote the snapshot",
    c"the sink has failed",
];

/// Converts a result to the return code for C.
pub(crate) fn code(result: Result<(), Error>) -> Error {
    match result {
        Ok(()) => Error::Ok,
        Err(error) => error,
    }
}

impl From<Full> for Error {
    fn from(_: Full) -> Self {
        Self::Full
    }
}

impl From<BudgetError> for Error {
    fn from(error: BudgetError) -> Self {
        match error {
            BudgetError::GoalOverTrigger { .. } => Self::BudgetGoal,
            BudgetError::ReclaimOverRoom { .. } => Self::BudgetReclaim,
            _ => Self::BudgetTrigger,
        }
    }
}

impl From<PlanError> for Error {
    fn from(_: PlanError) -> Self {
        // The history has enough cells, so that no other error is possible.
        Self::Infeasible
    }
}

impl From<CompactError> for Error {
    fn from(error: CompactError) -> Self {
        match error {
            CompactError::NoNote => Self::NoNote,
            CompactError::Blank => Self::Blank,
            CompactError::NoteTooLarge => Self::TooLarge,
            _ => Self::NoPlan,
        }
    }
}

impl From<BoundedSummaryError> for Error {
    fn from(error: BoundedSummaryError) -> Self {
        match error {
            BoundedSummaryError::NotWhole => Self::NotWhole,
            BoundedSummaryError::Protected => Self::Protected,
            BoundedSummaryError::NothingNew => Self::NothingNew,
            BoundedSummaryError::Blank => Self::Blank,
            BoundedSummaryError::TooLarge => Self::TooLarge,
            _ => Self::NoMessages,
        }
    }
}

impl From<SnapshotError> for Error {
    fn from(error: SnapshotError) -> Self {
        match error {
            SnapshotError::Version => Self::Version,
            SnapshotError::Full => Self::Full,
            _ => Self::Corrupt,
        }
    }
}
