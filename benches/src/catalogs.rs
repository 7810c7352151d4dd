//! Input texts in many languages: the translated messages of the installed programs (gettext's `.mo` files).

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use crate::corpus::{File, Kind, hash};

/// Reads catalogs under `root`, in the layout `LANGUAGE/LC_MESSAGES/PROGRAM.mo`: at most `LANGUAGE_BYTES_MAX` for each
/// of [`LANGUAGES`]. The source of a file is its program, so that no program is on both sides of a split. Unreadable
/// files are left out; on a system without catalogs the result is empty.
#[must_use]
pub fn read(root: &Path) -> Vec<File> {
    let mut files = Vec::new();
    for language in LANGUAGES {
        let folder = fs::read_dir(root.join(language).join("LC_MESSAGES"));
        let mut paths: Vec<_> = folder.into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        paths.sort_by_key(|path| hash(&path.to_string_lossy()));
        let mut bytes = 0_usize;
        for path in paths {
            let program =
                path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
            let texts = fs::read(&path).ok().and_then(|bytes| messages(&bytes)).unwrap_or_default();
            let size: usize = texts.iter().map(String::len).sum();
            // Lists of names are not natural language.
            if size < FILE_BYTES_MIN || program.starts_with("iso_") || program.starts_with("xkeyboard") {
                continue;
            }
            files.push(File {
                name: format!("{language}/{program}"),
                source: program,
                kind: Kind::Language,
                texts,
            });
            bytes += size;
            if bytes > LANGUAGE_BYTES_MAX {
                break;
            }
        }
    }
    files
}

/// The translations of a catalog that are sentences and differ from their originals, at most [`FILE_BYTES_MAX`].
fn messages(bytes: &[u8]) -> Option<Vec<String>> {
    let number = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize);
    let text = |table: usize, at: usize| {
        let (length, start) = (number(table + 8 * at)?, number(table + 8 * at + 4)?);
        let text = core::str::from_utf8(bytes.get(start..start.checked_add(length)?)?).ok()?;
        text.split('\0').next().map(str::to_owned)
    };
    if number(0)? != MAGIC {
        return None;
    }
    let (count, originals, translations) = (number(8)?, number(12)?, number(16)?);
    let mut seen = HashMap::new();
    let mut size = 0;
    let pairs = (0..count).map_while(|at| Some((text(originals, at), text(translations, at)?)));
    let translated = pairs.filter(|(original, text)| {
        original.as_deref().is_some_and(|original| !original.is_empty() && original != text)
    });
    Some(
        translated
            .map(|(_, text)| text)
            .filter(|text| is_language(text) && seen.insert(hash(text), ()).is_none())
            .take_while(|text| {
                size += text.len();
                size <= FILE_BYTES_MAX
            })
            .collect(),
    )
}

/// Whether a text is a sentence: mostly letters, and long enough.
fn is_language(text: &str) -> bool {
    let letters = text.chars().filter(|letter| letter.is_alphabetic() || *letter == ' ').count();
    text.len() >= TEXT_BYTES_MIN && letters * 100 >= text.chars().count() * 85
}

/// The languages with many translated messages, and at most one for each way of writing where there are dozens alike.
pub const LANGUAGES: &[&str] = &[
    "de", "fr", "es", "pt", "pt_BR", "it", "nl", "pl", "cs", "sv", "fi", "tr", "vi", "id", "ru", "uk", "el",
    "he", "th", "zh_CN", "zh_TW", "ja", "ko", "hu", "ro", "da", "nb", "sk", "hr", "ca", "lt", "et", "ar",
    "bg", "sr", "eu", "ms", "sl", "lv", "fa", "hi", "bn", "ta", "ka",
];

const MAGIC: usize = 0x9504_12DE;
const TEXT_BYTES_MIN: usize = 30;
const FILE_BYTES_MIN: usize = 1_500;
/// Maximum size of the messages of one program, in bytes, because its messages are similar.
const FILE_BYTES_MAX: usize = 12_000;
const LANGUAGE_BYTES_MAX: usize = 150_000;
