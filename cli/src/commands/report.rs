//! `epitome report`: a page for the browser that shows conversations: how the context grows and is compacted, what strategies keep,
//! where the tokens are, and what the model needed and no longer had.

mod chart;
mod context;
mod conversation;
mod kind;
mod origin;
mod page;
mod strip;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use epitome::std::models::{Model, Prices};
use epitome::std::tokens::CachedCounter;
use serde::Serialize;

use crate::amount::counted;
use crate::args::{BudgetArgs, InputArgs, REPORT_OUTPUT, ReportArgs};
use crate::commands::eval;
use crate::failure::{ExitCode, Failure, Result, code};
use crate::model;
use crate::output;
use crate::redact::Redactor;
use crate::strategy::Strategies;
use crate::transcript::Input;

use conversation::Conversation;

/// All that a page shows. Its fields are the program's JSON.
#[derive(Debug, Serialize)]
struct Report {
    conversations: Vec<Conversation>,
    /// The files of folders that are no transcripts, with the reason.
    left_out: Vec<LeftOut>,
}

/// A file of a folder that is no transcript.
#[derive(Debug, Serialize)]
struct LeftOut {
    file: String,
    why: String,
}

/// What is asked of each conversation.
struct Asking {
    measure: eval::Measure,
    /// The strategy that the context over time is drawn with.
    first: Strategies,
    model: Option<Model>,
    /// The window that the context over time is drawn in.
    window: BudgetArgs,
}

/// What is shown where no strategy is named.
const STRATEGIES: [&str; 3] = ["agent", "chat", "truncate"];

/// How many lost identifiers a page lists for each strategy and budget.
const LOST_MAX: usize = 10;

pub(crate) fn run(args: &ReportArgs) -> Result<ExitCode> {
    let output = output_of(args)?;
    let asking = Asking::new(args)?;
    let mut redactor = Redactor::new(&args.redact)?;
    let report = Report::of(args, &asking, redactor.as_mut())?;
    if args.json {
        let json = serde_json::to_string_pretty(&report);
        output::say(json.map_err(|error| Failure::new(code::IO, error.to_string()))?)?;
    } else {
        let page = page::html(&report)?;
        output::write_private(&output, |out| out.write_all(page.as_bytes()))?;
        if output != Path::new("-") {
            let size = counted(page.len().div_ceil(1_000) as u64, "kilobyte");
            output::tell(format!("epitome: wrote {} ({size}): open it in a browser", output.display()));
        }
    }
    if let Some(redactor) = &redactor {
        redactor.found().tell();
    }
    Ok(ExitCode::SUCCESS)
}

/// Where the page goes. No file is replaced that was not named.
fn output_of(args: &ReportArgs) -> Result<PathBuf> {
    match &args.output {
        Some(output) => Ok(output.clone()),
        None if !args.json && fs::symlink_metadata(REPORT_OUTPUT).is_ok() => Err(Failure::input(format!(
            "{REPORT_OUTPUT} is there already: replace it with -o {REPORT_OUTPUT}, or name another file"
        ))),
        None => Ok(REPORT_OUTPUT.into()),
    }
}

impl Asking {
    fn new(args: &ReportArgs) -> Result<Self> {
        let model = model::find(&args.model)?;
        let counter = model::counter(model.as_ref(), args.tokenizer.as_deref(), eval::TOKENIZER)?;
        let own = BudgetArgs { window: args.window, reserve: None, trigger: None, goal: None, keep: None };
        let strategies = Strategies::without_model(&args.strategy, &STRATEGIES, "report")?;
        let [first, ..] = strategies.as_slice() else { return Err(Failure::input("--strategy: name one")) };
        Ok(Self {
            first: first.about(|_| Ok(()))?,
            measure: eval::Measure::of_strategies(
                strategies,
                args.keep.clone(),
                LOST_MAX,
                Arc::new(CachedCounter::new(counter.into(), eval::COUNTS_MAX)),
            ),
            window: model::budget(model.as_ref(), &own),
            model,
        })
    }

    const fn first(&self) -> &Strategies {
        &self.first
    }

    fn prices(&self) -> Option<Prices> {
        self.model.as_ref().and_then(|model| model.prices)
    }
}

impl Report {
    fn of(args: &ReportArgs, asking: &Asking, mut redactor: Option<&mut Redactor>) -> Result<Self> {
        let mut report = Self { conversations: Vec::new(), left_out: Vec::new() };
        for file in &args.files {
            match fs::metadata(file).is_ok_and(|about| about.is_dir()) {
                false => {
                    let found = read(file, args, asking, redactor.as_deref_mut())?;
                    report.conversations.extend(found);
                }
                true => {
                    for file in transcripts_in(file)? {
                        match read(&file, args, asking, redactor.as_deref_mut()) {
                            Ok(found) => report.conversations.extend(found),
                            Err(failure) if failure.code() == code::INPUT => report.left_out.push(LeftOut {
                                file: file.display().to_string(),
                                why: failure.message().to_owned(),
                            }),
                            Err(failure) => return Err(failure),
                        }
                    }
                }
            }
            // The messages of many conversations are more than a browser holds.
            if report.conversations.len() > 1 {
                report.conversations.iter_mut().for_each(|conversation| conversation.said = Vec::new());
            }
        }
        match report.conversations.is_empty() {
            true => Err(report.nothing_found(&args.files)),
            false => Ok(report),
        }
    }

    /// Why there is nothing to show.
    fn nothing_found(&self, files: &[PathBuf]) -> Failure {
        let folders: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
        let folders = folders.join(", ");
        Failure::input(match self.left_out.first() {
            Some(first) => format!(
                "{folders}: no transcript among {}; the first: {}",
                counted(self.left_out.len() as u64, "file"),
                first.why
            ),
            None => format!("{folders}: no file in it ends in .json or .jsonl"),
        })
    }
}

/// The conversations of a file.
fn read(
    file: &Path,
    args: &ReportArgs,
    asking: &Asking,
    mut redactor: Option<&mut Redactor>,
) -> Result<Vec<Conversation>> {
    let input_args = InputArgs::of_file(file, args.from, args.each);
    let input = Input::open(&input_args)?;
    let mut transcripts = input.transcripts(&input_args)?;
    let conversations = transcripts.iter_mut().map(|transcript| {
        let place = input.place(transcript.pointer());
        Conversation::of(&place, transcript, asking, redactor.as_deref_mut())
    });
    conversations.collect()
}

/// The files in a folder, and in its folders, that may be transcripts, by name.
fn transcripts_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let fail = |error| Failure::io(folder, &error);
    let mut files = Vec::new();
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut entries = entries.map_err(fail)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, kind) = (entry.path(), entry.file_type().map_err(fail)?);
        let is_transcript = path.extension().is_some_and(|end| end == "json" || end == "jsonl");
        if kind.is_dir() {
            files.extend(transcripts_in(&path)?);
        } else if kind.is_file() && is_transcript {
            files.push(path);
        }
    }
    Ok(files)
}
