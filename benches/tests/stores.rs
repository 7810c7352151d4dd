//! The proofs about stores, as long as a test may take; `stores` has them at any length.
#![expect(clippy::unwrap_used, reason = "tests: a failed expectation ends the test")]

use std::process::Command;

/// Runs the program; its last line.
fn stores(words: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_stores")).args(words).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    said.lines().last().unwrap().to_owned()
}

/// A url in a folder that is gone at the end.
fn at(scheme: &str, proof: impl FnOnce(&str)) {
    let folder = tempfile::tempdir().unwrap();
    proof(&format!("{scheme}:{}", folder.path().join("store").display()));
}

fn survives_kills(scheme: &str) {
    at(scheme, |url| assert!(stores(&["crash", url, "--kills", "10"]).contains("10 kills")));
}

#[test]
fn files_survive_kills() {
    survives_kills("jsonl");
}

#[test]
fn a_database_file_survives_kills() {
    survives_kills("sqlite");
}

#[test]
fn encrypted_files_survive_kills() {
    survives_kills("encrypted:jsonl");
    survives_kills("encrypted:sqlite");
}

fn takes_turns(url: &str, processes: &str) {
    let words =
        ["writers", url, "--millis", "1000", "--processes", processes, "--writers", "4", "--compactors", "2"];
    assert!(stores(&words).contains("nothing lost, nothing twice, in order"));
}

#[test]
fn memory_lets_everybody_write() {
    takes_turns("memory:", "1");
}

#[test]
fn files_let_everybody_write() {
    at("jsonl", |url| takes_turns(url, "2"));
}

#[test]
fn a_database_file_lets_everybody_write() {
    at("sqlite", |url| takes_turns(url, "2"));
}
