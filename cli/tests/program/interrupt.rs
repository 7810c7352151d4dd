//! Ctrl-C and other signals: no partial file and no temporary file remain, and the old output is intact.

use core::time::Duration;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::json;

use super::support::*;

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

/// The exit code of `child`, which must end within a minute.
fn end_of(child: &mut Child) -> Option<i32> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        assert!(started.elapsed() < Duration::from_secs(60), "it does not end");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

/// A file of 24 MB: a debug build with optimized parts cannot read and write it in a moment.
fn big(folder: &Folder) -> std::path::PathBuf {
    let some = jsonl(&messages(500));
    folder.file("big.jsonl", some.repeat(24_000_000 / some.len()))
}

#[test]
fn an_interrupt_at_any_moment_leaves_the_old_output() {
    let folder = Folder::new();
    let file = big(&folder);
    let out = folder.file("out.jsonl", "old");
    let (mut interrupted, mut while_writing) = (0, 0);
    for wait in [1, 50, 400] {
        let args = ["compact", text(&file), "--keep", "90%", "-o", text(&out), "--force"];
        let mut child = program(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::park_timeout(Duration::from_millis(wait));
        signal(&child, "-INT");
        match end_of(&mut child) {
            // Before the program has set up its handler, a signal ends it at once.
            None | Some(130) => {
                interrupted += 1;
                assert_eq!(read(&out), "old");
            }
            code => assert_eq!((code, read(&out) != "old"), (Some(0), true), "it was faster than the signal"),
        }
        assert_eq!(folder.names(), ["big.jsonl", "out.jsonl"]);
        folder.file("out.jsonl", "old");
    }
    // A signal during the write: the partial file exists first, and is removed.
    for name in ["-INT", "-TERM", "-HUP"] {
        let args = ["compact", text(&file), "--keep", "90%", "-o", text(&out), "--force"];
        let mut child = program(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while folder.names().len() == 2 && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        signal(&child, name);
        match end_of(&mut child) {
            Some(130) => {
                while_writing += 1;
                assert_eq!(read(&out), "old");
            }
            code => assert_eq!((code, read(&out) != "old"), (Some(0), true), "it was faster than the signal"),
        }
        assert_eq!(folder.names(), ["big.jsonl", "out.jsonl"]);
        folder.file("out.jsonl", "old");
    }
    assert!(interrupted > 0 && while_writing > 0);
}

#[test]
fn an_interrupt_while_it_waits_for_input() {
    let mut command = program(&["compact", "-"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::park_timeout(Duration::from_millis(300));
    signal(&child, "-INT");
    assert_eq!(end_of(&mut child), Some(130));
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(said, "");
}

#[test]
fn an_interrupt_says_what_was_redacted_until_then() {
    let folder = Folder::new();
    let said = json!({"role": "user", "content": format!("the key is sk-ant-api03-{}", "aB3".repeat(12))});
    let file = folder.file("in.jsonl", format!("{said}\n"));
    let mut command = program(&["show", text(&file), "--follow", "--redact"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let shown = lines.find(|line| line.as_ref().is_ok_and(|line| line.contains("[redacted:")));
    assert!(shown.is_some());
    signal(&child, "-INT");
    assert_eq!(end_of(&mut child), Some(130));
    let mut told = String::new();
    child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert!(told.starts_with("epitome: redacted 1 "), "{told}");
}
