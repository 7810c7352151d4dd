//! Errors as tables: of whole files and of single texts, beside the usual rules of thumb.

use std::collections::BTreeMap;

use epitome_benches::corpus::Kind;

use crate::solve::Weights;
use crate::{Sample, SampledFile};

/// One row per kind: the error of a file's total (median and 95th percentile of its size, lowest, highest), the error of
/// a single text (5th, 50th, 95th percentile), and the lowest and highest of chars/4 and bytes/4 on the same files.
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

/// One line for all files: the name of each and the error of its total.
pub(crate) fn print_each(files: &[SampledFile], weights: &Weights) {
    let errors = files.iter().map(|file| format!("{} {:+.0} %", file.name, 100.0 * error_of(file, weights)));
    eprintln!("{}\n", errors.collect::<Vec<_>>().join(", "));
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
        let percent = |values: &[f64], place: usize| {
            let at = values.len().saturating_sub(1) * place / 100;
            format!("{:+.1}", 100.0 * values.get(at).copied().unwrap_or_default())
        };
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

    /// The files that are furthest off, by name.
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

const HEADER: &str = "| kind | files | total: median / p95 of size, % | total: lowest .. highest, % | text: p5 .. p50 .. p95, % | chars/4, % | bytes/4, % |
|---|---|---|---|---|---|---|";
/// Below it, one odd line decides the error of a file.
const FILE_TOKENS_SMALL: f64 = 300.0;
/// Below it, the error of a text is mostly rounding.
const TEXT_TOKENS_MIN: f64 = 30.0;
