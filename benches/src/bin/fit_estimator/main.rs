//! Fits the table of `ClassEstimator` and reports its error on unseen sources.
//!
//! `fit_estimator [--table FILE] FOLDER..` reads the text and JSON files under the folders, counts their texts with
//! tiktoken-rs (`o200k_base`), and adds the translated messages of the installed programs. It divides the sources into
//! folds and, for each fold, fits a table without that fold and measures it on that fold. Then it fits the final table
//! on all sources and writes it to FILE (or standard output) as Rust source. The report on standard error has each
//! kind, transcript, language and class of message. The same files give the same table.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool: table and report are its output"
)]
#![expect(
    clippy::indexing_slicing,
    reason = "dense matrices; a wrong index is a bug of the tool and stops it"
)]

mod class;
mod made;
mod report;
mod solve;

use core::error::Error;
use std::collections::{HashMap, HashSet};
use std::path::Path;

use epitome_benches::catalogs;
use epitome_benches::corpus::{self, File, Kind};
use epitome_core::estimate::{CELLS_COUNT, visit_cells};

use class::Class;
use solve::{Equations, Weights};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).peekable();
    let table_path = arguments.next_if_eq("--table").and_then(|_| arguments.next());
    let mut files = Vec::new();
    for folder in arguments {
        files.extend(corpus::read(Path::new(&folder), source_bytes_max(&folder))?);
    }
    let oracle = Oracle::new();
    files.extend(catalogs::read(Path::new(CATALOGS)));
    let real = samples(files, &oracle)?;
    let languages = samples(made::languages(), &oracle)?;
    let trained = samples(made::synthetic(TRAIN_SEED), &oracle)?;
    let unseen = samples(made::synthetic(TEST_SEED), &oracle)?;

    let mut folds: Vec<Equations> = (0..FOLDS).map(|_| Equations::new()).collect();
    for file in &real {
        file.add_to(&mut folds[file.fold()]);
    }
    let mut total = Equations::new();
    languages.iter().chain(&trained).for_each(|file| file.add_to(&mut total));
    for fold in &folds {
        total.add(fold, 1.0);
    }

    let without: Vec<Weights> = folds.iter().map(|fold| total.clone().add(fold, -1.0).solve()).collect();
    let weights = total.solve();

    eprintln!("## Sources left out of the fit ({FOLDS} folds)");
    report::print(real.iter().map(|file| (file, &without[file.fold()])));
    report::print_files(real.iter().map(|file| (file, &without[file.fold()])));
    report::print_languages(real.iter().map(|file| (file, &without[file.fold()])));
    report::print_classes(real.iter().map(|file| (file, &without[file.fold()])));
    eprintln!("## Generated from a seed left out of the fit");
    report::print(unseen.iter().map(|file| (file, &weights)));
    eprintln!("## Languages, as fitted");
    report::print_each(&languages, &weights);
    eprintln!("## All sources, as fitted");
    report::print(real.iter().map(|file| (file, &weights)));

    let source = weights.to_rust();
    match table_path {
        Some(path) => std::fs::write(path, source)?,
        None => println!("{source}"),
    }
    Ok(())
}

/// One text: how often it uses each cell, and its number of tokens.
struct Sample {
    cells: Vec<(usize, f64)>,
    tokens: f64,
    chars: f64,
    bytes: f64,
    class: Class,
    /// Whether an earlier text of the file is equal: a repeated text adds nothing to the fit.
    again: bool,
}

struct SampledFile {
    name: String,
    source: String,
    kind: Kind,
    samples: Vec<Sample>,
    total: Sample,
}

impl SampledFile {
    fn fold(&self) -> usize {
        (corpus::hash(&self.source) >> 7) as usize % FOLDS
    }

    /// Adds an equation for every text, and one for the file as a whole, because small errors of equal sign must not
    /// add up. The counts are slightly increased: an estimate that is too low is worse than one that is too high.
    fn add_to(&self, equations: &mut Equations) {
        let (of_texts, of_total) = match self.kind {
            Kind::Json | Kind::JsonStrings => (5.0, 500.0),
            // Random characters occur in no real text: they show the weight of a rare character, and little about the
            // others.
            Kind::Made("random ideographs" | "rare scripts") => (0.3, 60.0),
            Kind::Made(_) => (1.0, 300.0),
            Kind::Language => (0.6, 150.0),
            Kind::Prose | Kind::Code | Kind::Toml => {
                (1.0, if self.total.tokens > 300.0 { 100.0 } else { 10.0 })
            }
        };
        // A long file has more weight, up to a bound.
        let share = (FILE_TOKENS_FULL / self.total.tokens).min(1.0);
        for sample in self.samples.iter().filter(|sample| !sample.again) {
            // The error of a text grows with the square root of its length: divide by the variance.
            equations.add_sample(sample, of_texts * share / (sample.tokens + SAMPLE_TOKENS_SMALL));
        }
        equations.add_sample(&self.total, of_total / self.total.tokens.powi(2));
    }
}

struct Oracle {
    encoding: &'static tiktoken_rs::CoreBPE,
    none: HashSet<&'static str>,
}

impl Oracle {
    fn new() -> Self {
        Self { encoding: tiktoken_rs::o200k_base_singleton(), none: HashSet::new() }
    }

    fn sample(&self, text: &str, again: bool) -> Result<Sample, Box<dyn Error>> {
        let mut counts = [0_u32; CELLS_COUNT];
        visit_cells(text, |cell| counts[cell] += 1);
        Ok(Sample {
            cells: sparse(&counts),
            tokens: self.encoding.count(text, &self.none)? as f64,
            chars: text.chars().count() as f64,
            bytes: text.len() as f64,
            class: Class::of(text),
            again,
        })
    }
}

fn sparse(counts: &[u32]) -> Vec<(usize, f64)> {
    counts
        .iter()
        .enumerate()
        .filter(|(_, count)| **count > 0)
        .map(|(cell, count)| (cell, f64::from(*count)))
        .collect()
}

fn samples(files: Vec<File>, oracle: &Oracle) -> Result<Vec<SampledFile>, Box<dyn Error>> {
    let mut sampled = Vec::new();
    for File { name, source, kind, texts } in files {
        let mut seen = HashSet::new();
        let samples = texts
            .iter()
            .map(|text| oracle.sample(text, !seen.insert(corpus::hash(text))))
            .collect::<Result<Vec<_>, _>>()?;
        let total = sum(&samples);
        sampled.push(SampledFile { name, source, kind, samples, total });
    }
    Ok(sampled)
}

fn sum(samples: &[Sample]) -> Sample {
    let mut cells = HashMap::<usize, f64>::new();
    for (cell, count) in samples.iter().flat_map(|sample| &sample.cells) {
        *cells.entry(*cell).or_default() += count;
    }
    let mut cells: Vec<_> = cells.into_iter().collect();
    cells.sort_by_key(|(cell, _)| *cell);
    Sample {
        cells,
        tokens: samples.iter().map(|sample| sample.tokens).sum(),
        chars: samples.iter().map(|sample| sample.chars).sum(),
        bytes: samples.iter().map(|sample| sample.bytes).sum(),
        class: Class::Prose,
        again: false,
    }
}

/// Maximum number of bytes of one source: a small part of each crate in a registry, all of any other source.
fn source_bytes_max(folder: &str) -> usize {
    if folder.contains("registry") { 150_000 } else { usize::MAX }
}

const CATALOGS: &str = "/usr/share/locale";
const FOLDS: usize = 4;
const TRAIN_SEED: u64 = 1;
const TEST_SEED: u64 = 2;
/// The factor by which the fit increases the counts.
const UPWARD: f64 = 1.01;
const FILE_TOKENS_FULL: f64 = 20_000.0;
const SAMPLE_TOKENS_SMALL: f64 = 30.0;
