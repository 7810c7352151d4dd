//! The format of `docs/jsonl.md`, written here by hand.

use std::fs;

use epitome_core::{Basis, Revision, Seq, Tokens, Turn};
use epitome_std::history::StoreErrorKind::{Corrupt, Invalid};
use epitome_std::history::stored;
use epitome_std::history::{Entry, HistoryStore, TokenCount};
use epitome_std::message::Message;
use futures::executor::block_on;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::quick;
use crate::support::{append, fails, keys, load, records, session, user};

/// Lines of a file; the first one is about the session.
fn file(lines: &[Value]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut id = Uuid::nil();
    for line in lines {
        let data = line.to_string();
        let mut hash = Sha256::new();
        hash.update(id.as_bytes());
        hash.update((file.len() as u64).to_le_bytes());
        hash.update(&data);
        let sum: String = hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        file.extend(format!("{{\"sum\":\"{sum}\",\"len\":{},\"data\":{data}}}\n", data.len()).into_bytes());
        id = Uuid::from_u128(5);
    }
    file
}

fn header(v: u64) -> Value {
    json!({"session": {"v": v, "id": "s", "file": Uuid::from_u128(5).simple().to_string()}})
}

fn message(seq: u64, text: &str) -> Value {
    let attr = json!({"source": "caller", "authority": "user"});
    let message = json!({"v": 1, "role": "user", "parts": [{"text": text}], "attr": attr});
    json!({"message": {
        "seq": seq, "anchor": seq, "turn": seq + 1, "tokens": 5, "basis": "counted", "counter": "c", "message": message,
    }})
}

fn appended(token: &str, first: u64, count: u64) -> Value {
    json!({"append": {"token": token, "first": first, "count": count, "revision": 0}})
}

fn lines() -> Vec<Value> {
    let record = json!({
        "v": 1, "parent": 0, "head": 2, "hides": [[0, 0]], "strategy": "", "tokens_before": 10, "tokens_after": 5,
    });
    let id = stored::record_id(&stored::decode_record(&record.to_string()).unwrap()).unwrap().to_string();
    let commit = json!({"commit": {"revision": 1, "id": id, "record": record}});
    vec![header(1), message(0, "one"), message(1, "two"), appended("t", 0, 2), commit]
}

fn store(lines: &[Value]) -> (tempfile::TempDir, epitome_std::history::JsonlStore) {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("s.jsonl"), file(lines)).unwrap();
    let store = quick(directory.path());
    (directory, store)
}

/// A file of the first version: two messages, of which one is hidden.
pub(super) fn version_1() -> Vec<u8> {
    file(&lines())
}

#[test]
fn a_file_written_by_hand_is_a_session() {
    let (_directory, store) = store(&lines());
    let loaded = load(&store);
    assert_eq!((loaded.head, loaded.revision, keys(&store)), (Seq(2), Revision(1), vec![1]));
    let count = TokenCount::new(Tokens(5), Basis::Counted, "c".into());
    let entry = |text: &str, seq: u64| {
        Entry::new(Message::user(text), Seq(seq), Turn(u32::try_from(seq).unwrap() + 1), count.clone())
    };
    assert_eq!(loaded.live[0].entry, entry("two", 1));
    assert_eq!(records(&store).len(), 1);
    let answer = append(&store, "t", 9, &[entry("one", 0), entry("two", 1)]).unwrap();
    assert_eq!((answer.first, answer.head, answer.revision), (Seq(0), Seq(2), Revision(0)));
    append(&store, "u", 2, &[user(2)]).unwrap();
}

#[test]
fn fields_of_later_releases_are_ignored() {
    let mut lines = lines();
    lines[0]["session"]["made_by"] = "later".into();
    lines[1]["message"]["mood"] = json!([1]);
    lines[3]["append"]["at"] = 7.into();
    lines[4]["commit"]["why"] = Value::Null;
    let (_directory, store) = store(&lines);
    assert_eq!(keys(&store), [1]);
}

#[test]
fn a_newer_format_is_refused_and_left_alone() {
    let newer = json!({"session": {"v": 6, "name": ["s"]}});
    let (directory, store) = store(&[newer, json!({"other": 1})]);
    let before = fs::read(directory.path().join("s.jsonl")).unwrap();
    for error in [
        block_on(store.load(&session())).unwrap_err(),
        append(&store, "t", 0, &[user(0)]).unwrap_err(),
        block_on(store.list(None, 9)).unwrap_err(),
    ] {
        assert_eq!(error.kind(), Invalid);
        assert!(error.to_string().contains("newer version: format 6, this one reads up to 5"), "{error}");
    }
    assert!(fs::read(directory.path().join("s.jsonl")).unwrap() == before);
}

/// Files in which each line is valid, and the lines contradict each other.
fn contradictions() -> Vec<Vec<Value>> {
    let change = |at: usize, path: &str, value: Value| {
        let mut lines = lines();
        *lines[at].pointer_mut(path).unwrap() = value;
        lines
    };
    let without = |at: usize| {
        let mut lines = lines();
        lines.remove(at);
        lines
    };
    let with = |more: &[Value]| [lines(), more.to_vec()].concat();
    let undone = |revision: u64, made: u64| json!({"uncompact": {"revision": revision, "made": made}});
    let pruned = |revision: u64, through: u64, messages: u64| json!({"prune": {"revision": revision, "through": through, "messages": messages, "summaries": 0}});
    let mut again = lines();
    again.push(header(1));
    let mut unfinished = lines();
    unfinished.swap(3, 4);
    vec![
        // By its version, this file is encrypted.
        change(0, "/session/v", 3.into()),
        change(0, "/session/v", 0.into()),
        change(0, "/session/file", "x".into()),
        change(0, "/session/id", "t".into()),
        change(1, "/message/seq", 1.into()),
        change(1, "/message/anchor", 1.into()),
        change(3, "/append/first", 1.into()),
        change(3, "/append/count", 3.into()),
        change(3, "/append/revision", 2.into()),
        change(4, "/commit/revision", 2.into()),
        change(4, "/commit/id", "00".into()),
        change(4, "/commit/record/parent", 1.into()),
        change(4, "/commit/record/head", 3.into()),
        change(4, "/commit/record/hides", json!([[0, 7]])),
        change(4, "/commit/record/v", 9.into()),
        without(0),
        without(1),
        without(2),
        without(3),
        with(&[undone(3, 1)]),
        with(&[undone(2, 0)]),
        with(&[undone(2, 1), undone(3, 1)]),
        with(&[message(2, "three"), undone(2, 1)]),
        with(&[pruned(3, 1, 1)]),
        with(&[pruned(2, 1, 2)]),
        with(&[pruned(2, 2, 1)]),
        with(&[pruned(2, 0, 0)]),
        with(&[pruned(2, 1, 1), undone(3, 1)]),
        with(&[message(2, "three"), pruned(2, 1, 1)]),
        again,
        unfinished,
        vec![header(1), json!({"note": {}})],
    ]
}

#[test]
fn lines_that_contradict_each_other_are_corrupt() {
    for (at, lines) in contradictions().into_iter().enumerate() {
        let (_directory, store) = store(&lines);
        let loaded = block_on(store.load(&session()));
        assert!(loaded.is_err(), "case {at}");
        fails(loaded, Corrupt);
    }
}
