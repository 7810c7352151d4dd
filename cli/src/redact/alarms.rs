//! Findings in transcripts without known secrets: each finding is a false alarm, or was judged by hand.
//!
//! The transcripts are the fixtures and examples of this repository and, if the folder exists, those of
//! `../shared/data`. `EPITOME_TRANSCRIPTS=FOLDER` names a folder of yours. `cargo test -p epitome-cli alarms --
//! --nocapture` prints the surroundings of each finding.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use super::*;

/// The findings in all JSON files below a folder, and the number of bytes of these files.
#[derive(Debug, Default)]
struct Findings {
    bytes: u64,
    kinds: BTreeMap<&'static str, u64>,
    /// File and surroundings of each finding.
    places: Vec<String>,
}

impl Findings {
    fn look_through(&mut self, folder: &Path) {
        let mut paths: Vec<PathBuf> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        for path in paths {
            let is_json = path.extension().is_some_and(|end| end == "json" || end == "jsonl");
            if path.is_dir() {
                self.look_through(&path);
            } else if is_json && let Ok(text) = fs::read_to_string(&path) {
                self.look_at(&path, &text);
            }
        }
    }

    fn look_at(&mut self, path: &Path, text: &str) {
        let mut redactor = Redactor::default();
        let done = redactor.json(text);
        self.bytes += text.len() as u64;
        for (kind, count) in &redactor.found.redacted {
            *self.kinds.entry(kind).or_default() += count;
        }
        for (at, _) in done.match_indices("[redacted:") {
            let (from, to) =
                (done.floor_char_boundary(at.saturating_sub(70)), done.ceil_char_boundary(at + 60));
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            self.places.push(format!("{name}: {:?}", done.get(from..to.min(done.len())).unwrap()));
        }
    }

    fn tell(&self, what: &str) {
        self.places.iter().for_each(|place| println!("{place}"));
        println!("{what}: {} bytes, {:?}", self.bytes, self.kinds);
    }
}

#[test]
fn nothing_is_found_where_no_secret_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut own = Findings::default();
    own.look_through(&root.join("tests/fixtures"));
    own.look_through(&root.join("../examples"));
    own.tell("fixtures and examples");
    assert!(own.bytes > 50_000 && own.kinds.is_empty(), "{:#?}", own.places);

    let named = env::var_os("EPITOME_TRANSCRIPTS").map(PathBuf::from);
    let folder = named.clone().unwrap_or_else(|| root.join("../../shared/data"));
    if !folder.is_dir() {
        println!("skipped: the conversations of ../shared/data, which is not there");
        return;
    }
    let mut others = Findings::default();
    others.look_through(&folder);
    others.tell("transcripts");
    // One finding in these files is known: it is named a password, and is one.
    let known = BTreeMap::from([(context::ASSIGNMENT, 1)]);
    assert!(named.is_some() || others.kinds == known, "{:#?}", others.places);
}
