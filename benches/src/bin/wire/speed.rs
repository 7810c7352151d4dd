//! Megabytes per second, and the peak of memory.

use core::hint::black_box;
use core::time::Duration;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use epitome::wire::{Format, ReadOptions, Transcript, convert, read, write_back};
use epitome_benches::generated::{Messages, Pool, write_json};
use serde_json::Value;

use crate::TARGETS;
use crate::sessions::{SESSIONS, session};

/// Measures each format on a conversation of so many messages. Each result is the fastest of `rounds`: on a shared
/// machine, the slower rounds include the work of other programs.
pub(crate) fn run(messages: usize, rounds: usize) {
    println!(
        "| format | MB | read MB/s | as Value | x | write MB/s | as Value | x | change all MB/s | peak |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    let mut chat = Vec::new();
    write_json(Messages::new(&Pool::new(), SEED).take(messages), &mut chat).unwrap();
    let chat: Arc<str> = Arc::from(String::from_utf8(chat).unwrap());
    let source = read(Arc::clone(&chat), &ReadOptions::default().with_from(Format::OpenaiChat)).unwrap();
    for format in TARGETS {
        let text = match format {
            Format::OpenaiChat => Arc::clone(&chat),
            other => Arc::from(convert(source.active().unwrap().messages(), other).unwrap().text),
        };
        row(format, &text, rounds);
    }
    let list: Vec<Value> = match serde_json::from_str(&chat).unwrap() {
        Value::Object(mut whole) => serde_json::from_value(whole.remove("messages").unwrap()).unwrap(),
        list => serde_json::from_value(list).unwrap(),
    };
    for format in SESSIONS {
        row(format, &Arc::from(session(format, &list)), rounds);
    }
}

fn row(format: Format, text: &Arc<str>, rounds: usize) {
    let options = ReadOptions::default().with_from(format);
    let transcript = read(Arc::clone(text), &options).unwrap();
    let value = values(text);
    let mut same = Vec::new();
    write_back(&transcript, &mut same).unwrap();
    assert!(same == text.as_bytes(), "{format}: what is read is written back as it was");
    let touched = touched(&transcript);
    let mut again = Vec::new();
    write_back(&touched, &mut again).unwrap();
    assert_eq!(values(core::str::from_utf8(&again).unwrap()), value, "{format}: nor does patching change it");

    let reading = fastest(rounds, || read(Arc::clone(text), &options).unwrap());
    let parsing = fastest(rounds, || values(text));
    let writing = fastest(rounds, || {
        let mut out = Vec::with_capacity(text.len());
        write_back(&transcript, &mut out).unwrap();
        out
    });
    let printing = fastest(rounds, || {
        let mut out = Vec::with_capacity(text.len());
        for value in &value {
            serde_json::to_writer(&mut out, value).unwrap();
        }
        out
    });
    let patching = fastest(rounds.min(3), || {
        let mut out = Vec::with_capacity(text.len());
        write_back(&touched, &mut out).unwrap();
        out
    });
    let mb = |time: Duration| text.len() as f64 / 1e6 / time.as_secs_f64();
    println!(
        "| {format} | {:.1} | {:.0} | {:.0} | {:.2} | {:.0} | {:.0} | {:.2} | {:.0} | {} |",
        text.len() as f64 / 1e6,
        mb(reading),
        mb(parsing),
        mb(reading) / mb(parsing),
        mb(writing),
        mb(printing),
        mb(writing) / mb(printing),
        mb(patching),
        peak_of(format, text),
    );
}

/// The JSON values of a text: one value, or one for each line.
fn values(text: &str) -> Vec<Value> {
    serde_json::Deserializer::from_str(text).into_iter().collect::<Result<_, _>>().unwrap()
}

/// A copy of the transcript in which every message was changed to its own content.
fn touched(transcript: &Transcript) -> Transcript {
    let mut touched = transcript.clone();
    for entry in touched.conversations_mut().iter_mut().flat_map(|conversation| &mut conversation.entries) {
        let message = entry.message().clone();
        let parts = message.parts().to_vec();
        *entry = entry.clone().with_message(message.with_parts(parts));
    }
    touched
}

fn fastest<T>(rounds: usize, run: impl Fn() -> T) -> Duration {
    let each = (0..rounds.max(1)).map(|_| {
        let start = Instant::now();
        let made = black_box(run());
        let time = start.elapsed();
        drop(made);
        time
    });
    each.min().unwrap_or_default()
}

/// The peak memory of a process that reads the text from a file and writes it back, as a multiple of the file.
fn peak_of(format: Format, text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(format!("{format}.json"));
    fs::write(&file, text).unwrap();
    let ran = Command::new(std::env::current_exe().unwrap()).arg("--peak").arg(&file).output().unwrap();
    let said = String::from_utf8(ran.stdout).unwrap();
    match said.trim().parse::<u64>() {
        Ok(kilobytes) => format!("{:.2}x", kilobytes as f64 * 1024.0 / text.len() as f64),
        Err(_) => "unknown here".to_owned(),
    }
}

/// Reads a file, serializes it without storing the result, and prints the largest resident set in kilobytes, if the
/// system reports it.
pub(crate) fn peak(file: &Path) {
    let name = file.file_stem().unwrap().to_str().unwrap();
    let text: Arc<str> = Arc::from(fs::read_to_string(file).unwrap());
    let options = ReadOptions::default().with_from(Format::by_name(name).unwrap());
    let transcript = read(text, &options).unwrap();
    write_back(&transcript, &mut std::io::sink()).unwrap();
    println!("{}", peak_here());
    drop(transcript);
}

/// The largest resident set of this process in kilobytes, if the system reports it.
pub(crate) fn peak_here() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.unwrap_or_default().trim().trim_end_matches(" kB").to_owned()
}

const SEED: u64 = 7;
