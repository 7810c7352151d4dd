//! Compares turns with a store to turns with obvious alternatives: the cost of a turn in a long conversation.

use core::time::Duration;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use epitome::history::stored;
use epitome::history::{Entry, HistoryStore, SessionId};
use epitome::message::Message;
use epitome_conformance::fixtures::{entry, user};
use futures::executor::block_on;
use serde_json::value::RawValue;

use crate::sessions::{append, fresh, in_its_turn, open};

/// Length of an agent's answer, in words.
const WORDS: usize = 120;

/// Measures turns: each turn loads the history, and stores a question and its answer.
pub(crate) fn measure(url: &str, turns: u64) {
    println!("| {turns} turns: load, append two messages | the first tenth | the last tenth |");
    println!("|---|---|---|");
    let store = open(url);
    let session = fresh("beside");
    row(url.split(':').next().unwrap_or_default(), turns, |turn| stored_turn(&*store, &session, turn));
    let kept = block_on(store.load(&session)).unwrap().live;
    block_on(store.delete(&session)).unwrap();
    for is_synced in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("session.json");
        let synced = if is_synced { ", made to last" } else { "" };
        row(&format!("one JSON file, written anew{synced}"), turns, |turn| {
            blob_turn(&path, is_synced, turn);
        });
        assert!(blob(&path).iter().eq(kept.iter().map(|live| &live.entry.message)));
    }
    python(turns);
}

fn said(turn: u64) -> [Message; 2] {
    let [question, _] = [2 * turn, 2 * turn + 1].map(|seq| user(seq).message);
    [question, Message::assistant("word ".repeat(WORDS))]
}

fn stored_turn(store: &dyn HistoryStore, session: &SessionId, turn: u64) {
    if turn > 0 {
        assert_eq!(block_on(store.load(session)).unwrap().live.len() as u64, 2 * turn);
    }
    let head = 2 * turn;
    let entries: Vec<Entry> =
        (head..).zip(said(turn)).map(|(seq, message)| in_its_turn(entry(message, seq, 1), turn)).collect();
    append(store, session, &turn.to_string(), head, &entries).unwrap();
}

/// Reads all messages of the file.
fn blob(path: &Path) -> Vec<Message> {
    let Ok(text) = std::fs::read_to_string(path) else { return Vec::new() };
    let messages: Vec<&RawValue> = serde_json::from_str(&text).unwrap();
    messages.iter().map(|message| stored::decode(message.get()).unwrap()).collect()
}

/// Reads the file, and writes a new file with two more messages in its place.
fn blob_turn(path: &Path, is_synced: bool, turn: u64) {
    let mut messages = blob(path);
    assert_eq!(messages.len() as u64, 2 * turn);
    messages.extend(said(turn));
    let texts: Vec<String> = messages.iter().map(|message| stored::encode(message).unwrap()).collect();
    let beside = path.with_extension("new");
    let mut file = File::create(&beside).unwrap();
    file.write_all(format!("[{}]", texts.join(",")).as_bytes()).unwrap();
    if is_synced {
        file.sync_all().unwrap();
    }
    std::fs::rename(beside, path).unwrap();
    if is_synced {
        File::open(path.parent().unwrap()).unwrap().sync_all().unwrap();
    }
}

fn row(name: &str, turns: u64, mut turn: impl FnMut(u64)) {
    let times: Vec<Duration> = (0..turns)
        .map(|number| {
            let began = Instant::now();
            turn(number);
            began.elapsed()
        })
        .collect();
    let tenth = times.len().div_ceil(10);
    let mean = |times: &[Duration]| times.iter().sum::<Duration>().as_secs_f64() * 1e3 / times.len() as f64;
    println!("| {name} | {:.3} ms | {:.3} ms |", mean(&times[..tenth]), mean(&times[times.len() - tenth..]));
}

/// Measures the file provider of Microsoft Agent Framework, if `benches/compare/python.sh` has installed it.
fn python(turns: u64) {
    let compare = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("compare");
    let python = compare.join(".venv/bin/python");
    if !python.exists() {
        println!(
            "skipped: agent-framework's file provider: run benches/compare/python.sh once, which installs it"
        );
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(python);
    let (script, turns, words) = (compare.join("file_history.py"), turns.to_string(), WORDS.to_string());
    let output = command.arg(script).arg(folder.path()).args([turns, words]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    print!("{}", String::from_utf8_lossy(&output.stdout));
}
