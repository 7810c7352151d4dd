//! `epitome stats --tokenizer all`: the sizes of a transcript by every counter, and the deviation of each.

use epitome::core::{
    Basis, Budget, Head, ModelKey, Revision, Stamp, TokenCounter, Tokens, Usage, UsageLedger, measure_message,
};
use epitome::models::{Model, ModelCounter};
use epitome::tokens::UnknownCounter;
use serde::Serialize;

use super::{OneReport, REFERENCE, to_output};
use crate::amount::{counted, grouped};
use crate::args::StatsArgs;
use crate::failure::{ExitCode, Result};
use crate::model;
use crate::output;
use crate::request::Request;
use crate::scan::{self, Counter, ESTIMATE};
use crate::transcript::{Input, Transcript};

/// The name that selects all counters.
pub(super) const ALL: &str = "all";

/// Sizes of one conversation by all counters.
#[derive(Debug, Serialize)]
struct Comparison {
    path: String,
    messages: u64,
    /// Tokens of the tool definitions and of the framing of the request, by the reference counter.
    around: u64,
    reference: &'static str,
    counters: Vec<Row>,
    /// Input of the request as reported by the provider, if the file has the report.
    #[serde(skip_serializing_if = "Option::is_none")]
    reported_input: Option<u64>,
    /// Ratio of the provider's tokens to the estimator's, over the reports up to this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    correction: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Row {
    counter: String,
    tokens: u64,
    basis: Basis,
    error_percent: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_to_report_percent: Option<f64>,
}

pub(super) fn run(args: &StatsArgs, found: Option<&Model>) -> Result<ExitCode> {
    let counters = counters(found)?;
    let estimator = model::counter(found, Some(ESTIMATE), ESTIMATE)?;
    let mut ledger = UsageLedger::new(
        ModelKey::new(found.map_or("", |model| model.name.as_str()), &*estimator),
        Budget::default(),
    );
    let input = Input::open_to_look(&args.input)?;
    let transcripts = input.transcripts(&args.input)?;
    let mut all = Vec::with_capacity(transcripts.len());
    for transcript in transcripts {
        all.push(compare(transcript, &counters, &mut ledger)?);
    }
    output::say(to_output(args, &all, "\n")?)?;
    Ok(ExitCode::SUCCESS)
}

/// The estimator first, then the rules of thumb, then every exact counter.
fn counters(found: Option<&Model>) -> Result<Vec<Counter>> {
    let mut all: Vec<Counter> =
        vec![scan::counter(ESTIMATE)?, Box::new(Quarter::Chars), Box::new(Quarter::Bytes)];
    for name in UnknownCounter::KNOWN {
        let counter = scan::counter(name)?;
        if counter.basis() == Basis::Counted && !all.iter().any(|other| other.name() == counter.name()) {
            all.push(counter);
        }
    }
    Ok(match found {
        Some(model) => {
            all.into_iter().map(|inner| Box::new(ModelCounter::over(inner, model)) as Counter).collect()
        }
        None => all,
    })
}

fn compare(
    mut transcript: Transcript<'_>,
    counters: &[Counter],
    ledger: &mut UsageLedger,
) -> Result<Comparison> {
    let request = Request::around(&transcript)?;
    let mut sizes = Vec::with_capacity(counters.len());
    for counter in counters {
        let amount = request.overhead(&**counter)?;
        sizes.push((amount.tokens.as_u64(), amount.basis));
    }
    let reference = counters.iter().position(|counter| counter.name().starts_with(REFERENCE));
    let tokens_of = |sizes: &[(u64, Basis)]| reference.and_then(|at| sizes.get(at)).map_or(0, |size| size.0);
    let around = tokens_of(&sizes);
    let mut messages = 0;
    transcript.for_each(|message| {
        messages += 1;
        for (counter, (tokens, basis)) in counters.iter().zip(&mut sizes) {
            let amount = measure_message(message, &**counter);
            *tokens += amount.tokens.as_u64();
            *basis = amount.basis.min(*basis);
        }
        Ok(())
    })?;
    let reference = tokens_of(&sizes);
    let reported = request.usage.as_ref().and_then(|usage| usage.input_total);
    let row = |counter: &str, tokens, basis| Row {
        counter: counter.to_owned(),
        tokens,
        basis,
        error_percent: error(tokens, reference),
        error_to_report_percent: reported.map(|reported| error(tokens, reported)),
    };
    let named = counters.iter().zip(&sizes);
    let mut rows: Vec<Row> =
        named.map(|(counter, (tokens, basis))| row(counter.name(), *tokens, *basis)).collect();
    let estimate = sizes.first().map_or(0, |size| size.0);
    // The calibrated size is learned from the reports before this one; before the first report there is none.
    if ledger.spend().reports > 0 {
        let size = ledger.size(estimate, Stamp::new(Revision(u64::MAX), Head::default()));
        rows.insert(1, row("calibrated", size.tokens, size.basis));
    }
    let learned = request.usage.as_ref().map(|usage| learn(ledger, estimate, usage));
    Ok(Comparison {
        path: transcript.pointer().to_owned(),
        messages,
        around,
        reference: REFERENCE,
        counters: rows,
        reported_input: reported,
        correction: learned,
    })
}

/// Records a report, and returns the correction after it.
fn learn(ledger: &mut UsageLedger, estimate: u64, usage: &Usage) -> f64 {
    let request = ledger.begin_request(estimate, Stamp::new(Revision(0), Head::default()));
    ledger.record(request, usage);
    f64::from(ledger.correction().per_mille()) / 1_000.0
}

/// Deviation of `tokens` from `reference`, in percent with one digit.
fn error(tokens: u64, reference: u64) -> f64 {
    let error = if reference == 0 { 0.0 } else { (tokens as f64 / reference as f64 - 1.0) * 100.0 };
    (error * 10.0).round() / 10.0
}

impl OneReport for Comparison {
    fn path(&self) -> &str {
        &self.path
    }

    fn to_text(&self) -> String {
        let messages = counted(self.messages, "message");
        let around = counted(self.around, "token");
        let mut text =
            format!("{messages}, and {around} of the request around them; errors against {}", self.reference);
        if let Some(reported) = self.reported_input {
            text += &format!(" and the {} that the provider reported", grouped(reported));
        }
        text += "\n\n";
        let width = self.counters.iter().map(|row| row.counter.len()).max().unwrap_or(0).max(12);
        text += &format!("{:<width$}{:>12}  {:<10}{:>10}", "counter", "tokens", "basis", "error");
        text += if self.reported_input.is_some() { "  to report" } else { "" };
        for row in &self.counters {
            text += &format!(
                "\n{:<width$}{:>12}  {:<10}{:>+8.1} %",
                row.counter,
                grouped(row.tokens),
                row.basis.as_str(),
                row.error_percent
            );
            if let Some(error) = row.error_to_report_percent {
                text += &format!("{error:>+9.1} %");
            }
        }
        if let Some(correction) = self.correction {
            text += &format!(
                "\n\nThe provider has seen {correction:.3} tokens for each of the estimate's so far."
            );
        }
        text.push('\n');
        text
    }
}

/// The rules of thumb: a token is four characters, or four bytes.
#[derive(Debug, Clone, Copy)]
enum Quarter {
    Chars,
    Bytes,
}

impl TokenCounter for Quarter {
    fn name(&self) -> &str {
        match self {
            Self::Chars => "chars/4",
            Self::Bytes => "bytes/4",
        }
    }

    fn basis(&self) -> Basis {
        Basis::Estimated
    }

    fn count(&self, text: &str) -> Tokens {
        let length = match self {
            Self::Chars => text.chars().count(),
            Self::Bytes => text.len(),
        };
        Tokens::from_u64(length.div_ceil(4) as u64)
    }
}
