//! Sizes of the tables, chosen when the library is built.

use epitome_core::BoundedHistory;

/// How many messages a history holds: `EPITOME_KERNEL_MESSAGES`.
pub(crate) const MESSAGES: usize = number(option_env!("EPITOME_KERNEL_MESSAGES"), 96);
/// Bytes for the content of messages: `EPITOME_KERNEL_ARENA_BYTES`.
pub(crate) const ARENA_BYTES: usize = number(option_env!("EPITOME_KERNEL_ARENA_BYTES"), 10_504);
/// How many results of tools may be cleared: `EPITOME_KERNEL_RESULTS`.
pub(crate) const RESULTS: usize = number(option_env!("EPITOME_KERNEL_RESULTS"), 36);

/// The history type with these sizes.
pub(crate) type Bounded = BoundedHistory<MESSAGES, ARENA_BYTES, RESULTS>;

/// Version of the declarations in the header. Raised with each change that a compiled program would notice.
pub(crate) const VERSION: u32 = 1;

/// The tables as the caller's header describes them.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    version: u32,
    messages: u32,
    arena_bytes: u32,
    results: u32,
}

impl Layout {
    /// The tables of this library.
    pub(crate) const BUILT: Self = Self {
        version: VERSION,
        messages: MESSAGES as u32,
        arena_bytes: ARENA_BYTES as u32,
        results: RESULTS as u32,
    };
}

/// The memory that the header asks for; its macro `EPITOME_KERNEL_MEMORY_BYTES` has the same formula.
const MEMORY_BYTES: usize =
    (FIXED_BYTES + MESSAGES * MESSAGE_BYTES + RESULTS * RESULT_BYTES + ARENA_BYTES).next_multiple_of(8);
const FIXED_BYTES: usize = 1_280;
const MESSAGE_BYTES: usize = 45;
const RESULT_BYTES: usize = 13;

const _: () =
    assert!(size_of::<crate::history::History>() <= MEMORY_BYTES, "the header asks for too little memory");
const _: () = assert!(align_of::<crate::history::History>() <= 8, "the header asks for too little alignment");
const _: () =
    assert!(MESSAGES <= MAX && ARENA_BYTES <= MAX && RESULTS <= MAX, "a size has more than 24 bits");
const MAX: usize = 1 << 24;

/// Parses a decimal number; the default if the text is absent.
#[expect(clippy::panic, reason = "while the library is built, not while it runs")]
const fn number(text: Option<&str>, default: usize) -> usize {
    let Some(text) = text else { return default };
    match usize::from_str_radix(text, 10) {
        Ok(number) => number,
        Err(_) => panic!("the size of a table is not a number"),
    }
}
