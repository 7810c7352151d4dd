//! Tables of the errors of whole files and of single texts, with the usual rules of thumb for comparison.

use std::collections::BTreeMap;

use epitome_benches::corpus::Kind;

use crate::class::Class;
use crate::solve::Weights;
use crate::{Sample, SampledFile};

/// Prints one row for each kind: the error of a file's total (median and 95th percentile of its size, lowest, highest),
/// the error of a single text (5th, 50th, 95th percentile), and the lowest and highest error of chars/4 and bytes/4 on
/// the same files.
pub(crate) fn print<'a>(files: impl Iterator<Item = (&'a SampledFile, &'a Weights)>) {
    let mut rows = BTreeMap::<(Kind, bool), Row>::new();
    for (file, weights) in files {
        let small = file.total.tokens < FILE_TOKENS_SMALL;
        rows.entry((file.kind, small)).or_default().push(file, weights);
    }
    eprintln!("{HEADER}");
    let extremes: Vec<String> = rows
        .into_iter()
        .map(|((kind, small), row)| {
            row.print(&format!("{kind:?}{}", if small { " (small files)" } else { "" }))
        })
        .collect();
    eprintln!("\n{}", extremes.concat());
}

/// Prints one line for all files: the name of each file and the error of its total.
pub(crate) fn print_each(files: &[SampledFile], weights: &Weights) {
    let errors = files.iter().map(|file| format!("{} {:+.0} %", file.name, 100.0 * error_of(file, weights)));
    eprintln!("{}\n", errors.collect::<Vec<_>>().join(", "));
}

/// Prints a line for each JSON file with strings of 300 tokens or more: the error of its total, and the errors of
/// chars/4 and bytes/4. Then prints a line for all transcripts among them: the files whose name states their source
/// (`source__file.json`).
pub(crate) fn print_files<'a>(files: impl Iterator<Item = (&'a SampledFile, &'a Weights)>) {
    eprintln!("\n| transcript | tokens | estimate, % | chars/4, % | bytes/4, % |\n|---|---|---|---|---|");
    let strings =
        files.filter(|(file, _)| file.kind == Kind::JsonStrings && file.total.tokens >= FILE_TOKENS_SMALL);
    let mut transcripts = Vec::new();
    for (file, weights) in strings {
        let total = &file.total;
        let errors =
            [error_of(file, weights), error(total.chars / 4.0, total), error(total.bytes / 4.0, total)];
        let [estimate, chars, bytes] = errors.map(|error| 100.0 * error);
        eprintln!("| {} | {} | {estimate:+.1} | {chars:+.1} | {bytes:+.1} |", file.name, total.tokens);
        if file.name.rsplit('/').next().is_some_and(|name| name.contains("__")) {
            transcripts.push(errors);
        }
    }
    let columns: Vec<_> = (0..3).map(|at| summary(transcripts.iter().map(|errors| errors[at]))).collect();
    eprintln!("| {} transcripts | | {} |", transcripts.len(), columns.join(" | "));
}

/// The absolute size of errors (median, 95th percentile) and their range.
fn summary(errors: impl Iterator<Item = f64>) -> String {
    let errors = sorted(errors.collect());
    let sizes = sorted(errors.iter().map(|error| error.abs()).collect());
    let percent = |values: &[f64], place| 100.0 * percentile(values, place);
    format!(
        "{:.1}, {:.1}, {:+.1} to {:+.1}",
        percent(&sizes, 50),
        percent(&sizes, 95),
        percent(&errors, 0),
        percent(&errors, 100)
    )
}

/// Prints one line: the error of the total of each language.
pub(crate) fn print_languages<'a>(files: impl Iterator<Item = (&'a SampledFile, &'a Weights)>) {
    let mut sums = BTreeMap::<&str, (f64, f64)>::new();
    for (file, weights) in files.filter(|(file, _)| file.kind == Kind::Language) {
        let (estimate, tokens) = sums.entry(file.name.split('/').next().unwrap_or_default()).or_default();
        *estimate += (1.0 + error_of(file, weights)) * file.total.tokens;
        *tokens += file.total.tokens;
    }
    let errors = sums
        .iter()
        .map(|(name, (estimate, tokens))| format!("{name} {:+.0}", 100.0 * (estimate / tokens - 1.0)));
    eprintln!("\nLanguages, %: {}", errors.collect::<Vec<_>>().join(", "));
}

/// Prints a line for each class of message in transcripts. For messages of 10 tokens or more: the mean absolute error
/// of the estimate, of chars/4 and of bytes/4. For messages of 30 tokens or more: the range of the errors of the
/// estimate, and the share of errors within a fifth.
pub(crate) fn print_classes<'a>(files: impl Iterator<Item = (&'a SampledFile, &'a Weights)>) {
    let mut rows = BTreeMap::<Class, Messages>::new();
    for (file, weights) in files.filter(|(file, _)| file.kind == Kind::JsonStrings) {
        for sample in file.samples.iter().filter(|sample| sample.tokens >= MESSAGE_TOKENS_MIN) {
            rows.entry(sample.class).or_default().push(sample, weights);
        }
    }
    eprintln!(
        "\n| class | messages | estimate, mean absolute % | chars/4 | bytes/4 | of 30 tokens or more | p5 .. p50 .. p95, % | within 20 % |\n|---|---|---|---|---|---|---|---|"
    );
    for (class, row) in rows {
        row.print(&format!("{class:?}"));
    }
    eprintln!();
}

/// The messages of a class.
#[derive(Default)]
struct Messages {
    count: f64,
    /// Sums of the absolute errors of the estimate, chars/4 and bytes/4.
    sums: [f64; 3],
    /// The errors of the estimate for long messages.
    long: Vec<f64>,
}

impl Messages {
    fn push(&mut self, sample: &Sample, weights: &Weights) {
        self.count += 1.0;
        let estimates = [weights.estimate(sample), sample.chars / 4.0, sample.bytes / 4.0];
        let errors = estimates.map(|estimate| error(estimate, sample));
        self.sums.iter_mut().zip(errors).for_each(|(sum, error)| *sum += error.abs());
        if sample.tokens >= TEXT_TOKENS_MIN {
            self.long.push(errors[0]);
        }
    }

    fn print(self, class: &str) {
        let [estimate, chars, bytes] = self.sums.map(|sum| 100.0 * sum / self.count);
        let long = sorted(self.long);
        let [low, middle, high] = [5, 50, 95].map(|place| 100.0 * percentile(&long, place));
        let within = long.iter().filter(|error| error.abs() <= 0.2).count() as f64 / long.len() as f64;
        eprintln!(
            "| {class} | {} | {estimate:.1} | {chars:.1} | {bytes:.1} | {} | {low:+.1} .. {middle:+.1} .. {high:+.1} | {:.1} % |",
            self.count,
            long.len(),
            100.0 * within
        );
    }
}

#[derive(Default)]
struct Row {
    /// Error of the total and name, by file.
    files: Vec<(f64, String)>,
    texts: Vec<f64>,
    chars: Vec<f64>,
    bytes: Vec<f64>,
}

impl Row {
    fn push(&mut self, file: &SampledFile, weights: &Weights) {
        self.files.push((error_of(file, weights), file.name.clone()));
        let long = file.samples.iter().filter(|sample| sample.tokens >= TEXT_TOKENS_MIN);
        self.texts.extend(long.map(|sample| error(weights.estimate(sample), sample)));
        self.chars.push(error(file.total.chars / 4.0, &file.total));
        self.bytes.push(error(file.total.bytes / 4.0, &file.total));
    }

    fn print(mut self, name: &str) -> String {
        self.files.sort_by(|a, b| a.0.total_cmp(&b.0));
        let sizes = sorted(self.files.iter().map(|(error, _)| error.abs()).collect());
        let (texts, chars, bytes) =
            (sorted(self.texts.clone()), sorted(self.chars.clone()), sorted(self.bytes.clone()));
        let percent = |values: &[f64], place| format!("{:+.1}", 100.0 * percentile(values, place));
        eprintln!(
            "| {name} | {} | {} / {} | {:+.1} .. {:+.1} | {} .. {} .. {} | {} .. {} | {} .. {} |",
            self.files.len(),
            percent(&sizes, 50).trim_start_matches('+'),
            percent(&sizes, 95).trim_start_matches('+'),
            100.0 * self.files.first().map_or(0.0, |file| file.0),
            100.0 * self.files.last().map_or(0.0, |file| file.0),
            percent(&texts, 5),
            percent(&texts, 50),
            percent(&texts, 95),
            percent(&chars, 0),
            percent(&chars, 100),
            percent(&bytes, 0),
            percent(&bytes, 100),
        );
        self.extremes(name)
    }

    /// The files with the largest errors, by name.
    fn extremes(&self, name: &str) -> String {
        let named = |(error, file): &(f64, String)| format!("{file} {:+.1} %", 100.0 * error);
        let lowest: Vec<_> = self.files.iter().take(3).map(named).collect();
        let highest: Vec<_> = self.files.iter().rev().take(3).map(named).collect();
        if self.files.len() == 1 {
            return String::new();
        }
        format!("- {name}: lowest {}; highest {}\n", lowest.join(", "), highest.join(", "))
    }
}

fn error_of(file: &SampledFile, weights: &Weights) -> f64 {
    error(file.samples.iter().map(|sample| weights.estimate(sample)).sum(), &file.total)
}

fn error(estimate: f64, sample: &Sample) -> f64 {
    estimate / sample.tokens - 1.0
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

/// The value below which `place` percent of the sorted values lie.
fn percentile(values: &[f64], place: usize) -> f64 {
    values.get(values.len().saturating_sub(1) * place / 100).copied().unwrap_or_default()
}

const HEADER: &str = "| kind | files | total: median / p95 of size, % | total: lowest .. highest, % | text: p5 .. p50 .. p95, % | chars/4, % | bytes/4, % |
|---|---|---|---|---|---|---|";
/// Minimum size of a file in tokens: in a smaller file, one unusual line decides the error.
const FILE_TOKENS_SMALL: f64 = 300.0;
/// Minimum size of a text in tokens: the error of a smaller text is mostly rounding.
const TEXT_TOKENS_MIN: f64 = 30.0;
/// Minimum size of a message in tokens: in a smaller message, an error of one token is too large a share.
const MESSAGE_TOKENS_MIN: f64 = 10.0;
