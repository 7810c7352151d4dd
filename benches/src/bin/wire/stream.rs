//! Session files that are larger than the memory for reading them, and files of very many messages.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use epitome::wire::{Format, ReadOptions, SessionLines, read, write_back};
use epitome_benches::generated::{Messages, Pool, write_json};
use serde_json::{Value, json};

use crate::sessions::{SESSIONS, session};
use crate::speed::peak_here;

/// Reads a file of so many megabytes line by line in a separate process, for each of two formats. Shows that memory
/// does not grow with the file; matters because there are sessions of a gigabyte.
pub(crate) fn run(megabytes: u64) {
    println!("\n| format | MB | records | MB/s | longest line MB | peak MiB | allowed |");
    println!("|---|---:|---:|---:|---:|---:|---:|");
    let mut chat = Vec::new();
    write_json(Messages::new(&Pool::new(), 3).take(2_000), &mut chat).unwrap();
    let chat: Vec<Value> = match serde_json::from_slice(&chat).unwrap() {
        Value::Object(mut whole) => serde_json::from_value(whole.remove("messages").unwrap()).unwrap(),
        list => serde_json::from_value(list).unwrap(),
    };
    for format in [Format::Codex, Format::ClaudeCode] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("session.jsonl");
        let block = session(format, &chat);
        let mut out = BufWriter::new(File::create(&file).unwrap());
        let mut bytes = 0;
        while bytes < megabytes * 1_000_000 {
            out.write_all(block.as_bytes()).unwrap();
            bytes += block.len() as u64;
        }
        out.flush().unwrap();
        let longest = block.lines().map(str::len).max().unwrap_or(0) as u64;
        let start = Instant::now();
        let name = format.as_str();
        let ran =
            Command::new(std::env::current_exe().unwrap()).args(["--stream-read", name]).arg(&file).output();
        let seconds = start.elapsed().as_secs_f64();
        let said = String::from_utf8(ran.unwrap().stdout).unwrap();
        let mut figures = said.split_whitespace().map(|figure| figure.parse::<u64>().ok());
        let records = figures.next().flatten().unwrap();
        let allowed = (64 << 20) + longest;
        let peak = figures.next().flatten().map(|kilobytes| kilobytes * 1024);
        assert!(peak.is_none_or(|peak| peak <= allowed), "{format}: a peak of {peak:?} bytes, of {allowed}");
        println!(
            "| {format} | {:.0} | {records} | {:.0} | {:.2} | {} | {:.1} |",
            bytes as f64 / 1e6,
            bytes as f64 / 1e6 / seconds,
            longest as f64 / 1e6,
            peak.map_or_else(|| "unknown here".to_owned(), |peak| format!("{:.1}", mib(peak))),
            mib(allowed),
        );
    }
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// Reads a file line by line, and prints how many records have messages and the largest resident set in kilobytes.
pub(crate) fn read_lines(format: &str, file: &Path) {
    let reader = BufReader::with_capacity(1 << 20, File::open(file).unwrap());
    let mut lines = SessionLines::new(reader, Format::by_name(format).unwrap()).unwrap();
    let mut records = 0_u64;
    while let Some(record) = lines.next_record().unwrap() {
        records += u64::from(!record.messages.is_empty());
    }
    println!("{records} {}", peak_here());
}

/// Reads and writes a text of so many short messages in every format. Shows that nothing is quadratic.
pub(crate) fn many(messages: usize) {
    println!("\n| format | messages | MB | read s | write s |");
    println!("|---|---:|---:|---:|---:|");
    for (format, text) in short(messages) {
        let text: Arc<str> = Arc::from(text);
        let start = Instant::now();
        let transcript = read(Arc::clone(&text), &ReadOptions::default().with_from(format)).unwrap();
        let reading = start.elapsed();
        let found: usize = transcript.conversations().iter().map(|one| one.entries.len()).sum();
        assert_eq!(found, messages, "{format}");
        let start = Instant::now();
        let mut out = Vec::with_capacity(text.len());
        write_back(&transcript, &mut out).unwrap();
        assert!(out == text.as_bytes(), "{format}");
        let writing = start.elapsed();
        println!(
            "| {format} | {messages} | {:.1} | {:.2} | {:.2} |",
            text.len() as f64 / 1e6,
            reading.as_secs_f64(),
            writing.as_secs_f64()
        );
    }
}

/// Transcripts of `messages` short messages in every format.
fn short(messages: usize) -> impl Iterator<Item = (Format, String)> {
    let list = |message: Value| Value::from(vec![message; messages]);
    let chat = list(json!({"role": "user", "content": "a"}));
    let item = json!({"$type": "TextContent", "Text": "a"});
    let texts = [
        (Format::OpenaiChat, json!({"messages": chat})),
        (Format::Anthropic, json!({"messages": chat})),
        (Format::OpenaiResponses, json!({"input": chat})),
        (Format::Gemini, json!({"contents": list(json!({"role": "user", "parts": [{"text": "a"}]}))})),
        (Format::AgentFramework, list(json!({"role": "user", "contents": [{"type": "text", "text": "a"}]}))),
        (Format::LangChain, list(json!({"type": "human", "content": "a"}))),
        (Format::SemanticKernel, list(json!({"Role": {"Label": "user"}, "Items": [item]}))),
    ];
    let texts = texts.into_iter().map(|(format, text)| (format, text.to_string()));
    let chat: Vec<Value> = serde_json::from_value(chat).unwrap();
    texts.chain(SESSIONS.into_iter().map(move |format| (format, session(format, &chat))))
}

/// Texts of many megabytes in one place of each format.
pub(crate) fn long(megabytes: usize) {
    let short = [json!({"role": "user", "content": "x".repeat(megabytes * 1_000_000)})];
    for format in SESSIONS {
        let text = session(format, &short);
        let transcript = read(text.as_str(), &ReadOptions::default().with_from(format)).unwrap();
        let mut out = Vec::with_capacity(text.len());
        write_back(&transcript, &mut out).unwrap();
        assert!(out == text.as_bytes(), "{format}");
    }
}
