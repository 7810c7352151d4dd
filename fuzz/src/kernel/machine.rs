//! A history in memory of its exact size, and the list of its expected messages.

use core::ffi::CStr;
use std::collections::BTreeMap;

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use serde_json::Value;

use super::border::*;
use super::words;

pub(super) const SYSTEM: i32 = 1;
pub(super) const DEVELOPER: i32 = 2;
pub(super) const USER: i32 = 3;
pub(super) const ASSISTANT: i32 = 4;
pub(super) const TOOL: i32 = 5;
const ROLES: [&str; 6] = ["", "system", "developer", "user", "assistant", "tool"];

/// A message with its parts, as the library returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) seq: u64,
    pub(super) tokens: u32,
    pub(super) role: i32,
    pub(super) is_summary: bool,
    pub(super) is_cleared: bool,
    pub(super) name: Option<String>,
    /// Kind, text, id, name, and whether the part is an error.
    pub(super) parts: Vec<(i32, Option<String>, Option<String>, Option<String>, u32)>,
}

pub(super) struct Machine {
    memory: Vec<u64>,
    pub(super) history: *mut History,
    /// The messages by their numbers, in their last known state.
    pub(super) messages: BTreeMap<u64, Shown>,
    pub(super) pinned: Vec<u64>,
    /// True after a forged snapshot: its pins are unknown then, and any role may have any part.
    pub(super) is_forged: bool,
    /// The text of an open stream, and its role.
    pub(super) stream: Option<(i32, Vec<u8>)>,
    pub(super) next_seq: u64,
}

impl Machine {
    pub(super) fn new() -> Self {
        // SAFETY: it takes no pointer.
        let (bytes, align) = unsafe { (epitome_kernel_memory_bytes(), epitome_kernel_memory_align()) };
        assert!(align <= 8 && bytes <= memory_macro(), "{bytes}, {align}");
        let mut memory = vec![u64::MAX; bytes.div_ceil(8)];
        let mut history = Place::new();
        // SAFETY: memory of this length, and places for the output.
        let error = unsafe {
            epitome_kernel_init_layout(
                memory.as_mut_ptr().cast(),
                bytes,
                &LAYOUT,
                history.pointer(Wrong::No, core::ptr::null_mut()),
            )
        };
        assert_eq!(error, error::OK);
        assert_eq!(history.value(), memory.as_mut_ptr().cast());
        let history = history.value();
        Self {
            memory,
            history,
            messages: BTreeMap::new(),
            pinned: Vec::new(),
            is_forged: false,
            stream: None,
            next_seq: 0,
        }
    }

    /// Makes a call that may fail. Its error is one of `expected` and changes nothing; without an error there was
    /// nothing to refuse.
    pub(super) fn call(
        &mut self,
        expected: &[i32],
        allowed: &[i32],
        call: impl FnOnce(*mut History) -> i32,
    ) -> i32 {
        let before = self.state();
        let error = call(self.history);
        if expected.is_empty() {
            assert!(error == error::OK || allowed.contains(&error), "{error}, of {allowed:?}");
        } else {
            assert!(expected.contains(&error), "{error}, and not one of {expected:?}");
        }
        if error != error::OK {
            assert_eq!(self.state(), before, "error {error} has changed something");
        }
        error
    }

    /// The whole history except a plan and an open stream, and its sizes.
    pub(super) fn state(&self) -> (Vec<u8>, String) {
        (self.snapshot(), format!("{:?}", self.status()))
    }

    pub(super) fn snapshot(&self) -> Vec<u8> {
        // SAFETY: it takes no pointer.
        let mut page = vec![0; unsafe { epitome_kernel_snapshot_bytes_max() }];
        let mut length = Place::new();
        // SAFETY: a buffer of this length, and a place for the output.
        let error = unsafe {
            let length = length.pointer(Wrong::No, self.history);
            epitome_kernel_snapshot(self.history, page.as_mut_ptr(), page.len(), length)
        };
        assert_eq!(error, error::OK);
        page.truncate(length.value());
        page
    }

    pub(super) fn status(&self) -> Status {
        let mut status = Place::new();
        // SAFETY: a place for the output.
        let error =
            unsafe { epitome_kernel_read_status(self.history, status.pointer(Wrong::No, self.history)) };
        assert_eq!(error, error::OK);
        status.value()
    }

    /// All messages, in the order of the request.
    pub(super) fn shown(&self) -> Vec<Shown> {
        let mut shown = Vec::new();
        loop {
            let mut message = Place::new();
            // SAFETY: a place for the output.
            let error = unsafe {
                epitome_kernel_read_message(
                    self.history,
                    shown.len(),
                    message.pointer(Wrong::No, self.history),
                )
            };
            if error != error::OK {
                assert!(error == error::END && message.is_untouched());
                return shown;
            }
            let Message { seq, tokens, role, is_summary, is_cleared, name } = message.value();
            assert!((SYSTEM..=TOOL).contains(&role) && is_summary <= 1 && is_cleared <= 1);
            let (is_summary, is_cleared) = (is_summary == 1, is_cleared == 1);
            let (name, parts) = (name.read(), self.parts(seq));
            shown.push(Shown { seq, tokens, role, is_summary, is_cleared, name, parts });
        }
    }

    fn parts(&self, seq: u64) -> Vec<(i32, Option<String>, Option<String>, Option<String>, u32)> {
        let mut parts = Vec::new();
        loop {
            let mut part = Place::new();
            // SAFETY: a place for the output.
            let error = unsafe {
                epitome_kernel_read_part(
                    self.history,
                    seq,
                    parts.len(),
                    part.pointer(Wrong::No, self.history),
                )
            };
            if error != error::OK {
                assert!(error == error::END && part.is_untouched());
                return parts;
            }
            let Part { kind, is_error, text, id, name } = part.value();
            parts.push((kind, text.read(), id.read(), name.read(), is_error));
        }
    }

    /// Checks the invariants that hold after every call.
    pub(super) fn check(&self) {
        let (status, shown) = (self.status(), self.shown());
        assert_eq!(status.messages as usize, shown.len());
        assert_eq!(status.messages + status.free_messages, MESSAGES);
        assert!(status.free_bytes <= ARENA_BYTES && status.free_results <= RESULTS);
        assert_eq!(status.tokens, shown.iter().map(|message| u64::from(message.tokens)).sum::<u64>());
        assert_eq!(status.is_streaming == 1, self.stream.is_some());
        assert_eq!(status.next_seq, self.next_seq);
        let by_number: BTreeMap<_, _> = shown.iter().map(|message| (message.seq, message.clone())).collect();
        assert_eq!(by_number, self.messages);
        if !self.is_forged {
            legal(&shown);
        }
        self.check_request(&shown);
    }

    /// The request is an array with one element per message, which has the message's role and texts.
    fn check_request(&self, shown: &[Shown]) {
        let request = super::requests::written(self.history);
        let Value::Array(messages) = serde_json::from_slice(&request).expect("a request is JSON") else {
            panic!("a request is an array")
        };
        if self.is_forged {
            return;
        }
        assert_eq!(messages.len(), shown.len());
        for (written, message) in messages.iter().zip(shown) {
            assert_eq!(written["role"], ROLES[message.role as usize]);
            let all = written.to_string();
            for text in message.parts.iter().filter_map(|part| part.1.as_deref()) {
                let text = Value::from(text).to_string();
                let quoted = text.trim_matches('"');
                assert!(all.contains(quoted), "{quoted} is not in {all}");
            }
        }
    }

    /// Clears the history, also during a stream.
    pub(super) fn clear(&mut self, _: &mut Unstructured<'_>) -> Result<()> {
        // SAFETY: a history.
        assert_eq!(unsafe { epitome_kernel_clear(self.history) }, error::OK);
        self.messages.clear();
        self.pinned.clear();
        (self.stream, self.next_seq, self.is_forged) = (None, 0, false);
        Ok(())
    }

    /// An `init` with a wrong argument writes nothing, and no function accepts memory without a history.
    pub(super) fn init_wrongly(&mut self, program: &mut Unstructured<'_>) -> Result<()> {
        let (wrong, short) = (words::wrong(program)?, program.int_in_range(0..=2_usize)?);
        let mut layout = LAYOUT;
        let changed = program.int_in_range(0..=4)?;
        *[&mut layout.version, &mut layout.messages, &mut layout.arena_bytes, &mut layout.results, &mut 0]
            [changed] += 1;
        let mut expected: Vec<i32> = wrong.error().into_iter().collect();
        expected.extend((changed < 4).then_some(error::LAYOUT));
        expected.extend((short > 0).then_some(error::MEMORY));
        if expected.is_empty() {
            return Ok(());
        }
        // SAFETY: it takes no pointer.
        let mut memory = vec![0_u64; unsafe { epitome_kernel_memory_bytes() }.div_ceil(8)];
        let (start, bytes) = (memory.as_mut_ptr().cast(), memory.len() * 8 - short * 8);
        let mut history = Place::new();
        // SAFETY: memory of at least this length.
        let error =
            unsafe { epitome_kernel_init_layout(start, bytes, &layout, history.pointer(wrong, start)) };
        assert!(expected.contains(&error), "{error}, and not one of {expected:?}");
        assert!(history.is_untouched() && memory.iter().all(|number| *number == 0));
        // SAFETY: memory in the size of a history.
        assert_eq!(unsafe { epitome_kernel_clear(memory.as_mut_ptr().cast()) }, error::NO_HISTORY);
        // SAFETY: a number; the text is valid forever.
        let text = unsafe { CStr::from_ptr(epitome_kernel_error_text(program.arbitrary()?)) };
        assert!(text.to_str().is_ok_and(|text| !text.is_empty()));
        Ok(())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        assert_eq!(self.memory.as_mut_ptr().cast(), self.history);
    }
}

/// `EPITOME_KERNEL_MEMORY_BYTES`.
const fn memory_macro() -> usize {
    (1280 + MESSAGES as usize * 45 + RESULTS as usize * 13 + ARENA_BYTES as usize).next_multiple_of(8)
}

/// Each result follows a call of its id that has no other result, without a request of the user between them. A call
/// without a result in its turn never gets one in a later turn.
fn legal(shown: &[Shown]) {
    let mut open: Vec<&str> = Vec::new();
    for message in shown {
        match message.role {
            USER => open.clear(),
            TOOL => {
                let id = message.parts.iter().find_map(|part| part.2.as_deref()).unwrap_or_default();
                let at = open.iter().position(|waiting| *waiting == id);
                open.swap_remove(at.unwrap_or_else(|| panic!("a result without its call: {shown:#?}")));
            }
            _ => open
                .extend(message.parts.iter().filter(|part| part.0 == 2).filter_map(|part| part.2.as_deref())),
        }
    }
}
