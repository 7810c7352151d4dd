//! Memory of the outline of a long session file. A separate test, because it counts the allocations of its process.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use core::cell::Cell;
use std::alloc::System;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::rc::Rc;

use epitome_wire::{Format, Outline, SessionLines};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// A session of a gigabyte with lines of 2.6 KB may take 64 MiB and its longest line; this is the 128th part of one.
const LINES: usize = 3_125;
const LINE_BYTES: usize = 2_684;
const ALLOWED_BYTES: usize = 512 << 10;
/// Not part of the outline: the buffer of the reader, and the memory of the test itself.
const BUFFER_BYTES: usize = 8 << 10;

fn held() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated.saturating_sub(stats.bytes_deallocated)
}

/// A line of a session file by its number, with `#` in the place of its text.
type Line = fn(usize) -> String;

/// A file that is generated while it is read, without a copy in memory. It records the held memory at every read.
struct Made {
    line: Line,
    at: usize,
    peak: Rc<Cell<usize>>,
}

impl Read for Made {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.peak.set(self.peak.get().max(held()));
        let (number, within) = (self.at / LINE_BYTES, self.at % LINE_BYTES);
        if number == LINES {
            return Ok(0);
        }
        let line = padded((self.line)(number));
        let rest = &line.as_bytes()[within..];
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        Ok(count)
    }
}

impl Seek for Made {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let SeekFrom::Current(by) = to else { return Err(io::ErrorKind::Unsupported.into()) };
        self.at = self.at.checked_add_signed(isize::try_from(by).unwrap()).unwrap();
        Ok(self.at as u64)
    }
}

/// The line with its text in the place of `#`. The text is so long that all lines have one length.
fn padded(line: String) -> String {
    let missing = LINE_BYTES - 1 - (line.len() - 1);
    line.replacen('#', &"x".repeat(missing), 1) + "\n"
}

fn claude_code(at: usize) -> String {
    let links = format!(
        r#""parentUuid":"{:036}","uuid":"{at:036}","sessionId":"s","isSidechain":false"#,
        at.wrapping_sub(1) % LINES
    );
    let text = r##"{"type":"text","text":"#"}"##;
    match at % 3 {
        0 => format!(r#"{{{links},"type":"user","message":{{"role":"user","content":[{text}]}}}}"#),
        1 => format!(
            r#"{{{links},"type":"assistant","message":{{"id":"r{at}","role":"assistant","content":[{text},{{"type":"tool_use","id":"c{at}","name":"f","input":{{}}}}],"usage":{{"input_tokens":9,"output_tokens":1}}}}}}"#
        ),
        _ => {
            let call = at - 1;
            format!(
                r##"{{{links},"type":"user","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"c{call}","content":"#"}}]}}}}"##
            )
        }
    }
}

fn codex(at: usize) -> String {
    match at {
        0 => r##"{"timestamp":"t","type":"session_meta","payload":{"id":"s","cwd":"#"}}"##.to_owned(),
        _ if at.is_multiple_of(3) => r##"{"timestamp":"#","type":"event_msg","payload":{"type":"token_count","info":{"last_token_usage":{"input_tokens":9,"output_tokens":1,"total_tokens":10}}}}"##.to_owned(),
        _ => {
            let role = if at % 3 == 1 { "user" } else { "assistant" };
            format!(r##"{{"timestamp":"t","type":"response_item","payload":{{"type":"message","role":"{role}","content":"#"}}}}"##)
        }
    }
}

fn pi(at: usize) -> String {
    match at {
        0 => r##"{"type":"session","id":"s","timestamp":"t","cwd":"#"}"##.to_owned(),
        _ => {
            let parent = at - 1;
            let said = if at.is_multiple_of(2) {
                r##""role":"user","content":"#""##
            } else {
                r##""role":"assistant","content":[{"type":"text","text":"#"}],"usage":{"input":9,"output":1}"##
            };
            format!(r#"{{"type":"message","id":"{at:08}","parentId":"{parent:08}","message":{{{said}}}}}"#)
        }
    }
}

#[test]
fn a_long_session_is_outlined_and_read_within_its_part_of_64_mib() {
    let formats: [(Format, Line, usize); 3] = [
        (Format::ClaudeCode, claude_code, LINES),
        (Format::Codex, codex, LINES - LINES.div_ceil(3)),
        (Format::Pi, pi, LINES - 1),
    ];
    for (format, line, messages) in formats {
        let before = held();
        let peak = Rc::new(Cell::new(0));
        let made = Made { line, at: 0, peak: Rc::clone(&peak) };
        let reader = BufReader::with_capacity(BUFFER_BYTES, made);
        let mut lines = SessionLines::new(reader, format).unwrap();
        let outline = Outline::read(&mut lines, None).unwrap();
        assert_eq!(outline.conversations()[0].messages, messages, "{format}");
        let mut read = 0;
        for message in outline.messages(&mut lines) {
            message.unwrap();
            peak.set(peak.get().max(held()));
            read += 1;
        }
        assert_eq!(read, messages, "{format}");
        // A line is held in a buffer, in the text that its messages share, and during its generation here.
        let allowed = ALLOWED_BYTES + 4 * LINE_BYTES + 2 * BUFFER_BYTES;
        let peak = peak.get() - before;
        println!("{format}: {peak} bytes of {allowed}");
        assert!(peak <= allowed, "{format}: {peak} bytes of {allowed}");
    }
}
