//! Input texts: the files under given folders, as the strings of an agent's history.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Origin of a text, as far as the error of an estimate depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "of a tool, not of a library")]
pub enum Kind {
    /// The strings inside a JSON file, each on its own.
    JsonStrings,
    /// A JSON file as it is.
    Json,
    /// Markdown or plain text.
    Prose,
    /// Rust or C.
    Code,
    /// TOML.
    Toml,
    /// Messages of programs, translated.
    Language,
    /// Generated from a seed, or written for the purpose.
    Made(&'static str),
}

/// A file, as texts that are counted one by one.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "of a tool, not of a library")]
pub struct File {
    /// Path of the file below the given folder.
    pub name: String,
    /// Origin of the file: files of one source are similar and must not be on both sides of a split.
    pub source: String,
    /// Kind of the texts.
    pub kind: Kind,
    /// The texts.
    pub texts: Vec<String>,
}

/// Reads every text and JSON file under `root`, in an order that depends only on file names; equal files are read once.
/// At most `source_bytes_max` bytes are taken from each source.
///
/// # Errors
/// An error occurs if a folder cannot be listed. Files that are not UTF-8 are skipped.
pub fn read(root: &Path, source_bytes_max: usize) -> io::Result<Vec<File>> {
    let mut paths = Vec::new();
    list(root, &mut paths)?;
    paths.sort_by_key(|path| hash(&path.to_string_lossy()));
    let mut taken = HashMap::<String, usize>::new();
    let mut seen = HashSet::new();
    let mut files = Vec::new();
    for path in paths {
        let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let source = source_of(&name);
        let bytes = taken.entry(source.clone()).or_default();
        if text.len() < FILE_BYTES_MIN
            || seen.contains(&hash(&text))
            || bytes.saturating_add(text.len()) > source_bytes_max
        {
            continue;
        }
        seen.insert(hash(&text));
        *bytes += text.len();
        files.extend(split(&name, &source, text.trim_start_matches('\u{feff}')));
    }
    Ok(files)
}

/// A stable hash (FNV-1a), so that a split never moves.
#[must_use]
pub fn hash(text: &str) -> u64 {
    let mixed = text.bytes().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    });
    mixed ^ (mixed >> 29)
}

fn list(folder: &Path, paths: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            list(&path, paths)?;
        } else {
            paths.push(path);
        }
    }
    Ok(())
}

/// The source of a file: the prefix of a name like `source__file.json`, otherwise the first folder below the root. Two
/// versions of a crate (`name-1.2.3`) are one source.
fn source_of(name: &str) -> String {
    let file = name.rsplit('/').next().unwrap_or(name);
    let folder = name.split('/').next().unwrap_or(name);
    let unversioned = folder
        .rsplit_once('-')
        .filter(|(_, version)| version.starts_with(|first: char| first.is_ascii_digit()));
    let source = file.split_once("__").or(unversioned).map_or(folder, |(source, _)| source);
    source.to_owned()
}

fn split(name: &str, source: &str, text: &str) -> Vec<File> {
    let file = |kind, texts| File { name: name.to_owned(), source: source.to_owned(), kind, texts };
    let kind = match name.rsplit('.').next() {
        Some("json" | "jsonl" | "traj") => Kind::Json,
        Some("md" | "txt") => Kind::Prose,
        Some("rs" | "c" | "h") => Kind::Code,
        Some("toml") => Kind::Toml,
        _ => return Vec::new(),
    };
    let mut files = vec![file(kind, pieces(&text[..text.floor_char_boundary(RAW_BYTES_MAX)]))];
    if kind == Kind::Json {
        let mut strings = Vec::new();
        match serde_json::from_str(text) {
            Ok(value) => collect(&value, &mut strings),
            Err(_) => text
                .lines()
                .filter_map(|line| serde_json::from_str(line).ok())
                .for_each(|value| collect(&value, &mut strings)),
        }
        if !strings.is_empty() {
            files.push(file(Kind::JsonStrings, strings));
        }
    }
    files
}

fn collect(value: &serde_json::Value, strings: &mut Vec<String>) {
    match value {
        serde_json::Value::String(text) if text.chars().count() > 8 => strings.push(text.clone()),
        serde_json::Value::Array(items) => items.iter().for_each(|item| collect(item, strings)),
        serde_json::Value::Object(fields) => fields.values().for_each(|field| collect(field, strings)),
        _ => {}
    }
}

/// Splits `text` at line ends into pieces of about [`PIECE_BYTES`].
fn pieces(text: &str) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for line in text.split_inclusive('\n') {
        match pieces.last_mut() {
            Some(piece) if piece.is_empty() || piece.len() + line.len() <= PIECE_BYTES => {
                piece.push_str(line)
            }
            _ => pieces.push(line.to_owned()),
        }
    }
    pieces
}

/// Minimum size of a file in bytes. A smaller file shows more about its first line than about its source.
const FILE_BYTES_MIN: usize = 200;
/// Maximum number of bytes of a file that is read as a whole, enough to represent it. All strings of a JSON file are
/// taken.
const RAW_BYTES_MAX: usize = 400_000;
/// The size of a long message, in bytes.
const PIECE_BYTES: usize = 4000;
