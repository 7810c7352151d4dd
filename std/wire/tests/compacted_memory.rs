//! Memory of a session that its tool has compacted thousands of times. A separate test, because it counts the
//! allocations of its process.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use core::cell::Cell;
use core::fmt::Write as _;
use std::alloc::System;
use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom};
use std::rc::Rc;
use std::sync::Arc;

use epitome_wire::{Format, Outline, ReadOptions, SessionLines, read};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn held() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated.saturating_sub(stats.bytes_deallocated)
}

/// The text of one compaction and of the lines up to it, by its number.
type Round = fn(usize) -> String;

fn claude_code(at: usize) -> String {
    let before = at.wrapping_sub(1);
    [
        format!(r#"{{"uuid":"b{at}","parentUuid":null,"logicalParentUuid":"a{before}","type":"system","subtype":"compact_boundary","compactMetadata":{{"trigger":"auto","preTokens":9}}}}"#),
        format!(r#"{{"uuid":"s{at}","parentUuid":"b{at}","type":"user","isCompactSummary":true,"message":{{"role":"user","content":"so far"}}}}"#),
        format!(r#"{{"uuid":"a{at}","parentUuid":"s{at}","type":"assistant","message":{{"id":"r{at}","role":"assistant","content":[{{"type":"text","text":"more"}}]}}}}"#),
    ]
    .join("\n")
}

fn codex_said(role: &str, text: &str) -> String {
    format!(r#"{{"type":"message","role":"{role}","content":"{text}"}}"#)
}

fn codex(at: usize) -> String {
    let item = codex_said("assistant", "more");
    let history = codex_said("user", &format!("so far {at}"));
    format!(
        "{{\"type\":\"response_item\",\"payload\":{item}}}\n\
         {{\"type\":\"compacted\",\"payload\":{{\"message\":\"\",\"replacement_history\":[{history}]}}}}"
    )
}

/// A round in the form of older versions, in which the users' messages stay.
fn codex_older(at: usize) -> String {
    let item = codex_said("user", "go on");
    format!(
        "{{\"type\":\"response_item\",\"payload\":{item}}}\n\
         {{\"type\":\"compacted\",\"payload\":{{\"message\":\"so far {at}\"}}}}"
    )
}

fn pi(at: usize) -> String {
    let before = at.wrapping_sub(1);
    [
        format!(r#"{{"type":"message","id":"u{at}","parentId":"c{before}","message":{{"role":"user","content":"go on"}}}}"#),
        format!(r#"{{"type":"message","id":"a{at}","parentId":"u{at}","message":{{"role":"assistant","content":[{{"type":"text","text":"more"}}]}}}}"#),
        format!(r#"{{"type":"compaction","id":"c{at}","parentId":"a{at}","summary":"so far","firstKeptEntryId":"a{at}","tokensBefore":9}}"#),
    ]
    .join("\n")
}

/// Each compaction keeps the whole session, and puts a summary before it.
fn pi_keeping(at: usize) -> String {
    pi(at).replace(&format!(r#""firstKeptEntryId":"a{at}""#), r#""firstKeptEntryId":"u0""#)
}

fn gemini_cli(at: usize) -> String {
    format!(
        "{{\"id\":\"u{at}\",\"type\":\"user\",\"content\":\"go on\"}}\n\
         {{\"$set\":{{\"messages\":[{{\"id\":\"s{at}\",\"type\":\"user\",\"content\":\"so far\"}}]}}}}"
    )
}

/// A count of a session with this number of compactions.
type Measure = fn(Format, &str, usize) -> usize;

/// A session with this number of compactions.
fn session(head: &str, round: Round, compactions: usize) -> String {
    let mut text = head.to_owned();
    for at in 0..compactions {
        write!(text, "\n{}", round(at)).unwrap();
    }
    text.trim_start().to_owned()
}

/// The bytes that a session holds after it is read.
fn taken(format: Format, text: &str, compactions: usize) -> usize {
    let source: Arc<str> = Arc::from(text);
    let before = held();
    let transcript = read(source, &ReadOptions::default().with_from(format)).unwrap();
    assert_eq!(transcript.active().unwrap().compactions.len(), compactions, "{format}");
    held() - before
}

/// A file that records the held memory at every read.
struct Watched<'t> {
    file: Cursor<&'t str>,
    held: Rc<Cell<usize>>,
}

impl Read for Watched<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.held.set(self.held.get().max(held()));
        self.file.read(into)
    }
}

impl Seek for Watched<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

fn outline(format: Format, text: &str, compactions: usize, held: &Rc<Cell<usize>>) -> Outline {
    let file = Watched { file: Cursor::new(text), held: Rc::clone(held) };
    let mut lines = SessionLines::new(BufReader::with_capacity(BUFFER_BYTES, file), format).unwrap();
    let outline = Outline::read(&mut lines, None).unwrap();
    assert_eq!(outline.conversations().first().unwrap().compactions.len(), compactions, "{format}");
    outline
}

/// The most bytes that are held while a session is outlined.
fn outlined(format: Format, text: &str, compactions: usize) -> usize {
    let peak = Rc::new(Cell::new(0));
    let before = held();
    drop(outline(format, text, compactions, &peak));
    peak.get() - before
}

/// The total of allocated bytes: a read does not show the memory that a tree takes at its end.
fn allocated(format: Format, text: &str, compactions: usize) -> usize {
    let before = ALLOCATOR.stats();
    drop(outline(format, text, compactions, &Rc::default()));
    (ALLOCATOR.stats() - before).bytes_allocated
}

#[test]
fn compactions_take_memory_with_their_number() {
    let claude_head = r#"{"uuid":"a18446744073709551615","parentUuid":null,"type":"user","message":{"role":"user","content":"go"}}"#;
    let pi_head = r#"{"type":"session","id":"s","timestamp":"t","cwd":"/"}"#;
    let gemini_head = r#"{"sessionId":"s","projectHash":"p"}"#;
    let sessions: [(&str, Format, &str, Round, Measure); 9] = [
        ("claude-code", Format::ClaudeCode, claude_head, claude_code, taken),
        ("claude-code, not held", Format::ClaudeCode, claude_head, claude_code, allocated),
        ("codex", Format::Codex, "", codex, taken),
        ("codex, not held", Format::Codex, "", codex, outlined),
        ("older codex, not held", Format::Codex, "", codex_older, outlined),
        ("pi", Format::Pi, pi_head, pi, taken),
        ("pi, not held", Format::Pi, pi_head, pi, allocated),
        ("pi that keeps all, not held", Format::Pi, pi_head, pi_keeping, allocated),
        ("gemini-cli", Format::GeminiCli, gemini_head, gemini_cli, taken),
    ];
    let mut failed = Vec::new();
    for (name, format, head, round, measure) in sessions {
        let [some, twice] =
            [COMPACTIONS, 2 * COMPACTIONS].map(|count| measure(format, &session(head, round, count), count));
        println!("{name}: {some} bytes for {COMPACTIONS} compactions, {twice} for twice as many");
        // Vectors and maps grow by doubling.
        if twice > some * 5 / 2 {
            failed.push(name);
        }
    }
    assert!(failed.is_empty(), "with their square: {failed:?}");
}

const COMPACTIONS: usize = 400;
const BUFFER_BYTES: usize = 8 << 10;
