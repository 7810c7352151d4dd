//! Shows that the fast exact counter and the reference give equal counts; matters because both have the same name, and
//! stored counts with that name are never made again.
//!
//! `counter_equality [--fuzz STRINGS] [--characters] FOLDER..` compares the counters for each encoding. The inputs are
//! every string in every JSON file under the folders, every other file and line, long texts of one kind, and that many
//! generated strings (default 1,000,000). With `--characters`, every character of Unicode next to every kind of
//! neighbour is added. It ends with an error at the first difference, and names the file, never the text.

#![expect(clippy::print_stdout, reason = "a command-line tool: its report is its output")]

use core::error::Error;
use std::path::{Path, PathBuf};

use epitome::core::{TokenCounter, Tokens};
use epitome::tokens::{FastTiktoken, Tiktoken};
use epitome_benches::nasty::Nasty;

type Result<T> = core::result::Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Result<()> {
    let (mut fuzz, mut characters, mut folders) = (1_000_000_u64, false, Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--fuzz" => fuzz = arguments.next().ok_or("--fuzz takes a number of strings")?.parse()?,
            "--characters" => characters = true,
            _ => folders.push(PathBuf::from(argument)),
        }
    }
    for kind in Nasty::LONG {
        let text = Nasty::new(1).long(kind, 1_000_000);
        for pair in PAIRS {
            // With o200k_base, the reference cannot split a million blanks in one piece, and cuts them.
            compare(pair, kind, &text)?;
        }
    }
    println!("{} kinds of text of 1 MB: equal", Nasty::LONG.len());
    if characters {
        let blocks: Vec<u32> = (0..0x11_0000 / BLOCK).collect();
        let (texts, bytes) = on_all_cores(&blocks, |block| every_character(*block))?;
        println!("every character in {} places, {texts} texts, {bytes} bytes: equal", PLACES.len());
    }
    let mut paths = Vec::new();
    for folder in &folders {
        list(folder, &mut paths)?;
    }
    paths.sort();
    let (texts, bytes) = on_all_cores(&paths, |path| file(path))?;
    println!("{} files, {texts} texts, {bytes} bytes: equal", paths.len());
    let seeds: Vec<u64> = (0..fuzz.div_ceil(SEED_STRINGS)).collect();
    let (texts, bytes) = on_all_cores(&seeds, |seed| made_up(*seed))?;
    println!("{texts} made-up strings, {bytes} bytes: equal");
    Ok(())
}

type Pair = (FastTiktoken, Tiktoken);

/// `o200k_harmony` equals `o200k_base` in both counters, except for its special tokens, which are text here.
const PAIRS: [Pair; 3] = [
    (FastTiktoken::o200k_base(), Tiktoken::o200k_base()),
    (FastTiktoken::o200k_harmony(), Tiktoken::o200k_harmony()),
    (FastTiktoken::cl100k_base(), Tiktoken::cl100k_base()),
];

/// Compares one text.
fn compare((fast, reference): Pair, what: &str, text: &str) -> Result<()> {
    let (fast_tokens, tokens) = (fast.count(text), reference.count(text));
    if fast_tokens != tokens {
        let hash = epitome_benches::corpus::hash(text);
        let name = reference.name();
        return Err(format!(
            "{what}, {} bytes, hash {hash:x}: {name} {tokens}, fast {fast_tokens}",
            text.len()
        )
        .into());
    }
    Ok(())
}

fn compare_all(what: &str, text: &str, seen: &mut (u64, u64)) -> Result<()> {
    *seen = (seen.0 + 1, seen.1 + text.len() as u64);
    PAIRS.into_iter().try_for_each(|pair| compare(pair, what, text))?;
    bounded(what, text)
}

/// Checks the bounds of a text, and counting up to a limit.
fn bounded(what: &str, text: &str) -> Result<()> {
    let (counter, _) = PAIRS[0];
    let (tokens, bounds) = (counter.count(text), counter.bounds(text));
    let stops = tokens == Tokens::ZERO || counter.count_up_to(text, Tokens(tokens.0 - 1)).is_none();
    let holds = bounds.lower <= tokens && tokens <= bounds.upper && stops;
    if holds && counter.count_up_to(text, tokens) == Some(tokens) {
        return Ok(());
    }
    Err(format!("{what}, {} bytes: {tokens} is not within {bounds:?} or not counted up to", text.len())
        .into())
}

fn file(path: &Path) -> Result<(u64, u64)> {
    let (what, mut seen) = (path.display().to_string(), (0, 0));
    let bytes = std::fs::read(path)?;
    let text = String::from_utf8_lossy(&bytes);
    compare_all(&what, &text, &mut seen)?;
    match serde_json::from_str(&text) {
        Ok(value) => strings(&value, &mut |string| compare_all(&what, string, &mut seen))?,
        Err(_) => {
            for line in text.lines() {
                compare_all(&what, line, &mut seen)?;
                if let Ok(value) = serde_json::from_str(line) {
                    strings(&value, &mut |string| compare_all(&what, string, &mut seen))?;
                }
            }
        }
    }
    Ok(seen)
}

fn strings(value: &serde_json::Value, visit: &mut impl FnMut(&str) -> Result<()>) -> Result<()> {
    match value {
        serde_json::Value::String(text) => visit(text),
        serde_json::Value::Array(items) => items.iter().try_for_each(|item| strings(item, visit)),
        serde_json::Value::Object(fields) => fields.values().try_for_each(|field| strings(field, visit)),
        _ => Ok(()),
    }
}

fn made_up(seed: u64) -> Result<(u64, u64)> {
    let (mut nasty, mut seen) = (Nasty::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)), (0, 0));
    for _ in 0..SEED_STRINGS {
        compare_all(&format!("made up from seed {seed}"), &nasty.text(), &mut seen)?;
    }
    Ok(seen)
}

/// Checks the characters of one block, each in every position.
fn every_character(block: u32) -> Result<(u64, u64)> {
    let mut seen = (0, 0);
    for code in (block * BLOCK..(block + 1) * BLOCK).filter_map(char::from_u32) {
        let mut buffer = [0; 4];
        let character: &str = code.encode_utf8(&mut buffer);
        for place in PLACES {
            let text = place.replace('@', character);
            seen = (seen.0 + 1, seen.1 + text.len() as u64);
            for pair in [PAIRS[0], PAIRS[2]] {
                compare(pair, place, &text)
                    .map_err(|error| format!("U+{:04X} in {error}", u32::from(code)))?;
            }
        }
    }
    Ok(seen)
}

/// Runs `work` on all items, and adds up the results.
fn on_all_cores<T: Sync>(items: &[T], work: impl Fn(&T) -> Result<(u64, u64)> + Sync) -> Result<(u64, u64)> {
    let next = core::sync::atomic::AtomicUsize::new(0);
    let threads = std::thread::available_parallelism()?.get();
    std::thread::scope(|scope| {
        let worker = || -> Result<(u64, u64)> {
            let mut seen = (0, 0);
            while let Some(item) = items.get(next.fetch_add(1, core::sync::atomic::Ordering::Relaxed)) {
                let (texts, bytes) = work(item)?;
                seen = (seen.0 + texts, seen.1 + bytes);
            }
            Ok(seen)
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        let mut sum = (0, 0);
        for worker in workers {
            let (texts, bytes) = worker.join().map_err(|_| "a thread has panicked")??;
            sum = (sum.0 + texts, sum.1 + bytes);
        }
        Ok(sum)
    })
}

fn list(folder: &Path, paths: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { list(&path, paths)? } else { paths.push(path) }
    }
    Ok(())
}

/// Positions of a character that a pattern distinguishes: alone, repeated, and beside letters of either case and of
/// none, marks, digits, signs, apostrophes, blanks and newlines, at the start, inside and at the end.
#[rustfmt::skip]
const PLACES: [&str; 32] = [
    "@", "@@", "@@@@", " @", "  @", "@ ", "@  a", "a @", "a@", "@a", "a@a", "A@", "@A", "Ab@Cd", "'@", "a'@", "a'@l", "@'s",
    "@'S a", "1@", "@1", "1@2@3", ".@", "@.", " .@/", "@\n", "\n@", "@\n@", "\n @ \n @", "中@", "@中", "e\u{301}@\u{301}",
];
/// Number of characters in one piece of work.
const BLOCK: u32 = 0x400;
/// Number of strings made from one seed.
const SEED_STRINGS: u64 = 1_000;
