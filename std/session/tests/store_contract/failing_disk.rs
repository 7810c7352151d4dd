//! A disk that fails, and a process that is killed, at each single call that writes: `strace` injects these faults.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use crate::steps;

/// Outcome of a child.
struct Ended {
    acknowledged: usize,
    failed: usize,
    /// True if the fault was injected.
    is_injected: bool,
    whole: bool,
}

/// Runs a child with `fault` at the `number`th call of `call` for one of `paths`.
fn child(url: &str, paths: &[PathBuf], call: &str, fault: &str, number: usize) -> Ended {
    let log = tempfile::NamedTempFile::new().unwrap();
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-e", &format!("trace={call}"), "-o"]).arg(log.path());
    // Then other calls do not stop, which takes three quarters of the time. A signal would not be delivered.
    if !fault.starts_with("signal") {
        command.arg("--seccomp-bpf");
    }
    command.args(["-e", &format!("inject={call}:{fault}:when={number}")]);
    for path in paths {
        command.arg("-P").arg(path);
    }
    let output = steps::child(command, url, 0);
    let said = String::from_utf8_lossy(&output.stdout);
    let count = |what: &str| said.lines().filter(|line| line.starts_with(what)).count();
    let traced = std::fs::read_to_string(log.path()).unwrap();
    let is_killed = fault.starts_with("signal") && traced.contains("+++ killed");
    let is_injected = is_killed || traced.contains("(INJECTED)");
    let whole = output.status.success();
    assert!(
        whole || is_killed,
        "{call} {number} {fault}: {said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ended { acknowledged: count("acknowledged "), failed: count("failed "), is_injected, whole }
}

/// Every call of a kind fails, or kills the process, one after another. `files` are all files of a store in a folder.
fn survives(scheme: &str, files: &[&str], calls: &[&str], least: usize) {
    if !steps::can_trace() {
        return;
    }
    let faults = ["error=EIO", "error=ENOSPC", "signal=SIGKILL"];
    let (mut counts, mut told) = (BTreeMap::<_, usize>::new(), 0);
    for call in calls {
        for fault in faults {
            // A full disk fails for one write as for the next, so only every fifth write is tried.
            let stride = if fault == "error=ENOSPC" { 5 } else { 1 };
            for number in (1..).step_by(stride) {
                let folder = tempfile::tempdir().unwrap();
                let paths: Vec<PathBuf> = files.iter().map(|name| folder.path().join(name)).collect();
                let url = format!("{scheme}:{}", paths[0].display());
                let ended = child(&url, &paths, call, fault, number);
                if !ended.is_injected {
                    assert_eq!(ended.acknowledged, steps::STEPS);
                    break;
                }
                *counts.entry((*call, fault)).or_default() += 1;
                told += ended.failed;
                check(&url, &ended);
            }
        }
    }
    println!("{scheme}: {counts:?}, {told} steps failed and were repeated");
    let [errors, full, kills] =
        faults.map(|of| counts.iter().filter(|it| it.0.1 == of).map(|it| it.1).sum::<usize>());
    assert!(errors >= least && full >= 3 && kills >= least && told >= least, "fewer than {least}");
}

/// Acknowledged steps are in the store after any fault, and the other steps succeed now.
fn check(url: &str, ended: &Ended) {
    let found = steps::goes_on(url, ended.acknowledged);
    assert!(!ended.whole || found == steps::STEPS);
}

#[test]
fn a_directory_of_files_loses_nothing_at_any_call() {
    survives(
        "jsonl",
        &["store", "store/s.jsonl", "store/s.jsonl.new"],
        &["write", "fdatasync", "fsync", "rename"],
        12,
    );
}

#[cfg(feature = "sqlite")]
#[test]
fn a_database_file_loses_nothing_at_any_call() {
    survives("sqlite", &["s.db", "s.db-wal"], &["pwrite64", "fsync", "fdatasync", "ftruncate"], 20);
}
