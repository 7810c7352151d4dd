//! A series of commands leaves the files and the versions of a naive twin: a map of texts, and a list of versions for each path.

mod naive;

use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::BTreeMap;
use std::sync::Arc;

use epitome::history::{Fsync, HistoryStore, JsonlOptions, JsonlStore, MemoryStore};
use epitome::memory::{FILE_BYTES_MAX, MemoryFolder};
use epitome_tests::cases::{Census, check};
use futures::executor::block_on;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use self::naive::Twin;
use super::{folder, say};

#[derive(Debug, Clone)]
enum Said {
    View(String, Option<(i64, i64)>),
    Create(String, String),
    Replace(String, String, String),
    Insert(String, i64, String),
    Delete(String),
    Rename(String, String),
    /// An application writes a file.
    Write(String, String),
    /// An application restores this version of a file, counted from the newest.
    Restore(String, usize),
    /// The process ends, and another one goes on.
    Reopen,
}

impl Said {
    /// The command with the paths and texts of existing files.
    fn resolved(mut self, files: &BTreeMap<String, String>) -> Self {
        let (Self::View(path, _)
        | Self::Create(path, _)
        | Self::Replace(path, ..)
        | Self::Insert(path, ..)
        | Self::Delete(path)
        | Self::Rename(path, _)
        | Self::Write(path, _)
        | Self::Restore(path, _)) = &mut self
        else {
            return self;
        };
        let nth = path.strip_prefix('#').and_then(|nth| nth.parse::<usize>().ok());
        if let Some(known) = nth.and_then(|nth| files.keys().nth(nth % files.len().max(1))) {
            path.clone_from(known);
        }
        if let Self::Replace(path, old, _) = &mut self
            && let Some(at) = old.strip_prefix('@').and_then(|at| at.parse().ok())
            && let Some(text) = files.get(path)
        {
            *old = text.chars().skip(at).take(2).collect();
        }
        self
    }

    fn arguments(&self) -> Option<Value> {
        Some(match self {
            Self::View(path, None) => json!({"command": "view", "path": path}),
            Self::View(path, Some(range)) => json!({"command": "view", "path": path, "view_range": range}),
            Self::Create(path, text) => json!({"command": "create", "path": path, "file_text": text}),
            Self::Replace(path, old, new) => {
                json!({"command": "str_replace", "path": path, "old_str": old, "new_str": new})
            }
            Self::Insert(path, line, text) => {
                json!({"command": "insert", "path": path, "insert_line": line, "insert_text": text})
            }
            Self::Delete(path) => json!({"command": "delete", "path": path}),
            Self::Rename(old, new) => json!({"command": "rename", "old_path": old, "new_path": new}),
            Self::Write(..) | Self::Restore(..) | Self::Reopen => return None,
        })
    }
}

const HOSTILE: &[&str] = &[
    "",
    "/",
    "a",
    "memories/a",
    "/etc/passwd",
    "/memoriesa",
    "/memories/..",
    "/memories/../a",
    "/memories/a/../../b",
    "/memories/./a",
    "/memories//a",
    "/memories/a//",
    "/memories/%2e%2e/a",
    "/memories/a%00",
    "/memories\\a",
    "/memories/a\\b",
    "/memories/a\0",
    "/memories/a\r\n0B\t/memories/b",
];

fn paths() -> impl Strategy<Value = String> {
    let name = || select(&["a", "b.md", "日本", "😀 x", ".hidden", "node_modules", "100%", "..."][..]);
    let below =
        || prop::collection::vec(name(), 1..4).prop_map(|names| format!("/memories/{}", names.join("/")));
    // Few, so that most commands find a file.
    let usual = [
        "/memories/a",
        "/memories/日本",
        "/memories/d/b.md",
        "/memories/d/😀 x",
        "/memories/d",
        "/memories/d/e/c",
    ];
    prop_oneof![
        24 => select(usual.map(str::to_owned).to_vec()),
        3 => below(),
        1 => below().prop_map(|path| format!("{path}/")),
        1 => Just("/memories".to_owned()),
        1 => select(HOSTILE).prop_map(str::to_owned),
        1 => (240_usize..270).prop_map(|length| format!("/memories/{}", "n".repeat(length - 10))),
    ]
}

/// Mostly the path of an existing file: `#2` is the third file.
fn known_paths() -> impl Strategy<Value = String> {
    prop_oneof![3 => (0_usize..6).prop_map(|nth| format!("#{nth}")), 1 => paths()]
}

/// A file or a directory.
fn moved() -> impl Strategy<Value = String> {
    prop_oneof![2 => known_paths(), 1 => select(&["/memories/d", "/memories/d/e"][..]).prop_map(str::to_owned)]
}

fn texts() -> impl Strategy<Value = String> {
    let line = || select(&["a", "tea", "日本語", "👨‍👩‍👧", "", "a\tb", "\u{feff}", "{\"a\": null}", "\0"][..]);
    let end = || select(&["\n", "\r\n", "\r", ""][..]);
    let lines = prop::collection::vec((line(), end()), 0..6);
    prop_oneof![
        12 => lines.prop_map(|lines| lines.into_iter().map(|(line, end)| format!("{line}{end}")).collect()),
        2 => Just(String::new()),
        1 => (0_usize..3).prop_map(|over| "x".repeat(FILE_BYTES_MAX - 1 + over)),
    ]
}

fn said() -> impl Strategy<Value = Said> {
    let old = || select(&["a", "tea", "\n", "\r\n", "日", "👨", "", "a\n", "zz", "語\na"][..]);
    let line = || prop_oneof![9 => -1_i64..6, 1 => select(&[i64::MIN, i64::MAX][..])];
    let range = prop::option::of((line(), line()));
    // `@4` are the two characters from the fifth on.
    let old = move || prop_oneof![2 => (0_usize..9).prop_map(|at| format!("@{at}")), 1 => old().prop_map(str::to_owned)];
    prop_oneof![
        3 => (known_paths(), range).prop_map(|(path, range)| Said::View(path, range)),
        6 => (paths(), texts()).prop_map(|(path, text)| Said::Create(path, text)),
        4 => (known_paths(), old(), texts()).prop_map(|(path, old, new)| Said::Replace(path, old, new)),
        4 => (known_paths(), line(), texts()).prop_map(|(path, line, text)| Said::Insert(path, line, text)),
        2 => moved().prop_map(Said::Delete),
        3 => (moved(), paths()).prop_map(|(old, new)| Said::Rename(old, new)),
        2 => (paths(), texts()).prop_map(|(path, text)| Said::Write(path, text)),
        2 => (known_paths(), 0_usize..4).prop_map(|(path, back)| Said::Restore(path, back)),
        1 => Just(Said::Reopen),
    ]
}

/// Answer of the folder; `None` if it refuses.
fn execute(of: &MemoryFolder, said: &Said) -> Option<String> {
    match (said.arguments(), said) {
        (Some(arguments), _) => block_on(say(of, &arguments)).ok(),
        (None, Said::Write(path, text)) => block_on(of.write(path, text)).ok().map(|()| String::new()),
        (None, Said::Restore(path, back)) => {
            let versions = block_on(of.versions(path)).unwrap();
            let number = versions.iter().rev().nth(*back)?.number;
            block_on(of.restore(path, number)).ok().map(|()| String::new())
        }
        _ => Some(String::new()),
    }
}

fn run(
    open: &dyn Fn() -> Arc<dyn HistoryStore>,
    series: &[Said],
    census: &Census,
) -> Result<(), TestCaseError> {
    let (mut twin, mut of) = (Twin::default(), folder(&open(), "al"));
    for said in series {
        if matches!(said, Said::Reopen) {
            drop(of);
            of = folder(&open(), "al");
        }
        let (said, before) = (&said.clone().resolved(&twin.files), twin.files.clone());
        let (expected, done) = (twin.execute(said), execute(&of, said));
        census.count("refused", expected.is_none());
        census.count("restored", matches!(said, Said::Restore(..)) && expected.is_some());
        census.count("renamed", matches!(said, Said::Rename(..)) && expected.is_some());
        let of_directory =
            matches!(said, Said::Delete(path) | Said::Rename(path, _) if !before.contains_key(path));
        census.count("directory deleted or renamed", of_directory && expected.is_some());
        census.count("edited", matches!(said, Said::Replace(..) | Said::Insert(..)) && expected.is_some());
        prop_assert_eq!(done.is_some(), expected.is_some(), "{:?}: {:?}", said, done);
        if matches!(said, Said::View(..)) {
            prop_assert_eq!(done, expected);
        }
        prop_assert_eq!(&block_on(of.files()).unwrap(), &twin.files);
    }
    drop(of);
    let of = folder(&open(), "al");
    prop_assert_eq!(&block_on(of.files()).unwrap(), &twin.files);
    for (path, expected) in &twin.versions {
        let versions = block_on(of.versions(path)).unwrap();
        let sizes: Vec<_> = versions.iter().map(|version| version.bytes).collect();
        let expected_sizes: Vec<_> = expected.iter().map(|text| text.as_ref().map(String::len)).collect();
        prop_assert_eq!(sizes, expected_sizes);
        for (version, text) in versions.iter().zip(expected) {
            prop_assert_eq!(&block_on(of.read_version(path, version.number)).ok(), text);
        }
    }
    Ok(())
}

#[test]
fn files_and_versions_are_those_of_a_map_of_texts() {
    let name = format!("epitome-memory-twin-{}", std::process::id());
    let (root, cases) = (std::env::temp_dir().join(name), AtomicUsize::new(0));
    let often = [
        ("refused", 900),
        ("edited", 350),
        ("renamed", 180),
        ("restored", 100),
        ("directory deleted or renamed", 100),
    ];
    check("memory files", prop::collection::vec(said(), 1..40), &often, |series, census| {
        let memory: Arc<dyn HistoryStore> = Arc::new(MemoryStore::new());
        run(&|| Arc::clone(&memory), &series, census)?;
        let path = root.join(cases.fetch_add(1, Ordering::Relaxed).to_string());
        let options = JsonlOptions::default().with_fsync(Fsync::Never);
        let open = || -> Arc<dyn HistoryStore> { Arc::new(JsonlStore::open_with(&path, options).unwrap()) };
        run(&open, &series, &Census::default())?;
        std::fs::remove_dir_all(&path).unwrap();
        Ok(())
    });
    std::fs::remove_dir_all(root).unwrap();
}
