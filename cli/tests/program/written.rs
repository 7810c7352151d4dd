//! Files that `compact` writes. For every format, strategy and profile, the file reads back as planned, or the command
//! is refused and writes nothing.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::path::Path;
use std::thread;

use serde_json::Value;

use crate::samples::{self, PROFILES, Sample, strategies};
use crate::support::*;

/// True if the whole text is JSON, or each of its lines.
fn is_json(text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}');
    let is_value = |text: &str| serde_json::from_str::<Value>(text).is_ok();
    is_value(text) || text.lines().filter(|line| !line.is_empty()).all(is_value)
}

/// Strategies that drop messages, add messages and shorten messages. A repair depends on nothing else in a strategy.
const REPAIRED: [&str; 3] = ["truncate", "tool-digest:keep=1", "tool-results:keep=1"];

/// Files that cannot hold the result of a strategy: a request with half of its answer.
const WITHOUT_FORM: [(&str, &str); 2] =
    [("copilot-chat.json", "agent"), ("copilot-chat.json", "tool-digest:keep=1")];

#[test]
fn a_table_of_formats_strategies_and_profiles() {
    let (samples, strategies) = (samples::all(3), strategies());
    let refused = AtomicUsize::new(0);
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(sample) = samples.get(next.fetch_add(1, Relaxed)) {
                    refused.fetch_add(rows_of(sample, &strategies), Relaxed);
                }
            });
        }
    });
    // Most rows of the table are written. A repair under the rules of another provider may need messages that a format
    // cannot hold.
    let rows = samples.len() * (strategies.len() + REPAIRED.len() * PROFILES.len());
    assert!(refused.load(Relaxed) * 3 < rows, "{refused:?} of {rows} rows are refused");
}

/// Checks all rows of a sample, and returns the number of refused rows.
fn rows_of(sample: &Sample, strategies: &[String]) -> usize {
    let folder = Folder::new();
    let file = folder.file(&sample.name, &sample.text);
    let plain = strategies.iter().map(|strategy| (strategy.as_str(), None));
    let repaired = REPAIRED.iter().flat_map(|strategy| PROFILES.map(|profile| (*strategy, Some(profile))));
    let refused = |(strategy, profile): &(&str, Option<&str>)| {
        let is_written = row(&folder, &file, sample, strategy, *profile);
        let has_form = !WITHOUT_FORM.contains(&(sample.name.as_str(), strategy));
        assert!(
            profile.is_some() || is_written == has_form,
            "{} {strategy}: written {is_written}",
            sample.name
        );
        !is_written
    };
    plain.chain(repaired).filter(refused).count()
}

/// Checks a row, and returns true if its file was written.
fn row(folder: &Folder, file: &Path, sample: &Sample, strategy: &str, profile: Option<&str>) -> bool {
    let (out, what) = (folder.file(&format!("out-{}", sample.name), "was here"), sample.name.as_str());
    let what = format!("{what} {strategy} {profile:?}");
    let mut args =
        vec!["compact", text(file), "--from", sample.from, "--keep", "40%", "--strategy", strategy];
    args.extend(["-o", text(&out), "--json"]);
    args.extend(profile.into_iter().flat_map(|profile| ["--repair", "--profile", profile]));
    let done = run(&args);
    let written = read(&out);
    if profile.is_none() {
        let dry = run(&[&args[..], &["--dry-run"]].concat());
        let wrote = format!("epitome: wrote {}\n", text(&out));
        let name = |err: &str| err.replace(&wrote, "").replace(text(&out), "standard output");
        assert_eq!(
            (done.code, name(&done.err)),
            (dry.code, name(&dry.err)),
            "{what}: a dry run says something else"
        );
    }
    if ![0, 1].contains(&done.code) {
        assert_eq!(written, "was here", "{what}");
        assert!([2, 5].contains(&done.code) && done.err.lines().count() == 1, "{what}: {}", done.err);
        assert!(!done.err.contains("cannot be read again"), "{what}: {}", done.err);
        return false;
    }
    // A history of aider is markdown.
    assert_eq!(is_json(&written), sample.name != "aider.md", "{what}: {written}");
    // A check of the file finds the violations that the repair has left.
    let mut check = vec!["validate", text(&out), "--from", sample.from, "--json"];
    check.extend(profile.into_iter().flat_map(|profile| ["--profile", profile]));
    let found = run(&check);
    let valid: Value = serde_json::from_str(&found.out).unwrap();
    assert!(valid["messages"].as_u64() > Some(0), "{what}");
    if profile.is_some() {
        assert_eq!(done.code, found.code, "{what}: {valid}");
    }
    true
}
