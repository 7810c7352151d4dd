//! Odd values of every kind, in every place of a small text of each format: a transcript or an error, never a panic.

use core::fmt::Write as _;
use core::ops::Range;
use std::fs;
use std::path::Path;
use std::thread;

use super::super::spec::SPECS;
use super::formats::{first_difference, same_text};
use crate::json::{self, ValueKind};
use crate::{Format, ReadOptions, WireErrorKind, detect, read, write_back};

/// The small texts with which the fuzz target of a format begins.
fn seeds(format: Format) -> Vec<String> {
    let folder = format!("../../fuzz/seeds/wire_{}", format.as_str().replace('-', "_"));
    let mut paths: Vec<_> = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder))
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    paths.sort();
    paths.iter().map(|path| fs::read_to_string(path).unwrap()).collect()
}

/// The seeds of a format that are not refused as a whole.
fn readable(format: Format) -> impl Iterator<Item = String> {
    seeds(format).into_iter().filter(move |seed| answer(seed, format).is_none())
}

/// The places of all values in a text, and of all members, keys included.
#[derive(Debug, Default)]
struct Places {
    values: Vec<Range<usize>>,
    members: Vec<Range<usize>>,
}

impl Places {
    fn of(text: &str) -> Self {
        let mut places = Self::default();
        let body = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        match json::check(body) {
            Ok(()) => places.collect(text, json::trim(body)),
            Err(_) => body.lines().for_each(|line| places.collect(text, line.trim())),
        }
        places
    }

    fn collect(&mut self, whole: &str, value: &str) {
        let range = json::range_of(whole, value);
        self.values.push(range.clone());
        match ValueKind::of(value) {
            ValueKind::Object => json::raw_members(value, |key, inner| {
                self.members.push(json::offset_of(whole, key)..json::range_of(whole, inner).end);
                self.collect(whole, inner);
                Ok(())
            }),
            ValueKind::Array => json::items(value, |inner| {
                self.collect(whole, inner);
                Ok(())
            }),
            _ => Ok(()),
        }
        .unwrap();
    }
}

fn with(text: &str, range: &Range<usize>, new: &str) -> String {
    [&text[..range.start], new, &text[range.end..]].concat()
}

/// Reads a text. The result is an error, or a transcript that is written back unchanged.
fn answer(text: &str, format: Format) -> Option<WireErrorKind> {
    match read(text, &ReadOptions::default().with_from(format)) {
        Ok(transcript) => {
            let mut out = Vec::new();
            write_back(&transcript, &mut out).unwrap();
            assert!(out == text.as_bytes(), "{format}: {}", first_difference(&out, text.as_bytes()));
            None
        }
        Err(error) => {
            let _ = error.to_string();
            Some(error.kind())
        }
    }
}

#[test]
fn every_format_is_told_from_its_seeds() {
    for spec in SPECS {
        let told = readable(spec.format())
            .filter(|seed| detect(seed).is_ok_and(|found| found.format == spec.format()));
        assert!(told.count() > 0, "{}", spec.format());
    }
}

#[test]
fn odd_values_in_every_place() {
    let odd = [
        "null",
        "true",
        "-1e999999",
        "123456789012345678901234567890.10",
        "\"\"",
        r#""\u0000\u001f\ud83d \udc00""#,
        "[]",
        "{}",
        r#"["a",{"type":"text"},[1],null]"#,
        "\"\u{1}\"",
    ];
    // All values if `EPITOME_CASES` is set, and otherwise each value in some of the places.
    let some = if std::env::var_os("EPITOME_CASES").is_some() { odd.len() } else { 3 };
    let (mut read, mut refused) = (0, 0);
    for spec in SPECS {
        for seed in seeds(spec.format()) {
            for (at, place) in Places::of(&seed).values.into_iter().enumerate() {
                for value in odd.iter().cycle().skip(at * 3).take(some) {
                    let text = with(&seed, &place, value);
                    match answer(&text, spec.format()) {
                        None => {
                            read += 1;
                            same_text(&text, &ReadOptions::default().with_from(spec.format()));
                        }
                        Some(_) => refused += 1,
                    }
                }
            }
        }
    }
    assert!(read > 500 && refused > 500, "{read} read, {refused} refused");
}

#[test]
fn a_key_twice_is_refused_or_carried() {
    let (mut read, mut refused) = (0, 0);
    for spec in SPECS {
        for seed in readable(spec.format()) {
            for place in Places::of(&seed).members {
                let twice = format!("{0}, {0}", &seed[place.clone()]);
                let text = with(&seed, &place, &twice);
                match answer(&text, spec.format()) {
                    None => read += 1,
                    Some(WireErrorKind::DuplicateKey) => refused += 1,
                    Some(other) => panic!("{}: {other:?} for {twice}", spec.format()),
                }
                same_text(&text, &ReadOptions::default().with_from(spec.format()));
            }
        }
    }
    assert!(read > 100 && refused > 100, "{read} read, {refused} refused");
}

#[test]
fn depth_takes_no_stack() {
    // Under the names that readers search.
    let level = (r#"{"content":[{"parts":["#, "]}]}");
    let deep = [&level.0.repeat(DEEP / 4), "1", &level.1.repeat(DEEP / 4)].concat();
    let all = move || {
        for spec in SPECS {
            for seed in seeds(spec.format()) {
                for place in Places::of(&seed).values {
                    answer(&with(&seed, &place, &deep), spec.format());
                }
            }
        }
    };
    thread::Builder::new().stack_size(STACK_BYTES).spawn(all).unwrap().join().unwrap();
}

#[test]
fn long_texts_are_read_in_every_format() {
    let long = format!("\"{}\"", "x".repeat(1 << 20));
    for spec in SPECS {
        let seed = seeds(spec.format()).swap_remove(0);
        let places = Places::of(&seed).values;
        let texts = places.iter().filter(|place| seed[(*place).clone()].starts_with('"'));
        let longest = texts.max_by_key(|place| place.len()).unwrap();
        answer(&with(&seed, longest, &long), spec.format());
    }
}

#[test]
fn a_text_that_is_cut_off_is_an_answer() {
    for spec in SPECS {
        for seed in seeds(spec.format()) {
            for cut in (0..seed.len()).filter(|cut| seed.is_char_boundary(*cut)) {
                answer(&seed[..cut], spec.format());
            }
        }
    }
}

#[test]
fn the_text_of_one_format_is_an_answer_in_every_other() {
    for one in SPECS {
        for seed in seeds(one.format()) {
            for other in SPECS {
                answer(&seed, other.format());
            }
        }
    }
}

/// The time for many records is proportional to their number: ten times as many would take hundreds of times as long if
/// each record were compared with all others.
#[test]
fn many_records_are_read_in_every_format() {
    for spec in SPECS {
        let seed = seeds(spec.format()).swap_remove(0);
        let lines: Vec<&str> = seed.lines().collect();
        if lines.len() < 2 || json::check(lines[0]).is_err() {
            continue;
        }
        let mut text = String::new();
        for _ in 0..MANY / lines.len() {
            lines.iter().for_each(|line| writeln!(text, "{line}").unwrap());
        }
        answer(&text, spec.format());
    }
}

/// Deep enough that a function with a recursive call per level would need more than [`STACK_BYTES`].
const DEEP: usize = 2_000;

/// Less than 132 bytes for each of [`DEEP`] levels.
const STACK_BYTES: usize = 256 * 1024;

/// Number of elements at which a quadratic reader would visibly hang.
const MANY: usize = 20_000;

/// A text of any format is read as every format: a transcript or an error. The fuzz target `wire_more` begins in the
/// same way.
#[test]
fn the_seeds_of_all_formats_as_each_format() {
    for spec in SPECS {
        for seed in SPECS.iter().flat_map(|other| seeds(other.format())) {
            same_text(&seed, &ReadOptions::default().with_from(spec.format()));
        }
    }
}
