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

use epitome::models::{Model, Prices};
use epitome::tokens::CachedCounter;
use serde::Serialize;

use crate::amount::counted;
use crate::args::{BudgetArgs, REPORT_OUTPUT, ReportArgs};
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
    let asking = Asking::new(args)?;
    let mut redactor = Redactor::new(&args.redact)?;
    let files = Files::find(&args.files)?;
    let output = files.output(args)?;
    let report = Report::of(args, files, &asking, redactor.as_mut())?;
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

    fn prices(&self) -> Option<Prices> {
        self.model.as_ref().and_then(|model| model.prices)
    }
}

impl Report {
    fn of(
        args: &ReportArgs,
        files: Files,
        asking: &Asking,
        mut redactor: Option<&mut Redactor>,
    ) -> Result<Self> {
        let mut report = Self { conversations: Vec::new(), left_out: files.left_out };
        for file in &files.found {
            match read(&file.path, args, asking, redactor.as_deref_mut()) {
                Ok(found) => report.conversations.extend(found),
                Err(failure) if file.is_named => return Err(failure),
                Err(failure) => report.left_out.push(LeftOut::new(&file.path, failure.message())),
            }
            // The messages of many conversations are more than a browser holds.
            if report.conversations.len() > 1 {
                report.conversations.iter_mut().for_each(|conversation| conversation.said = Vec::new());
            }
        }
        if report.conversations.is_empty() {
            return Err(report.nothing_found(&args.files));
        }
        if let Some(redactor) = redactor {
            let texts = report.left_out.iter_mut().flat_map(|LeftOut { file, why }| [file, why]);
            texts.for_each(|text| *text = redactor.value(None, text).unwrap_or_else(|| text.clone()));
        }
        Ok(report)
    }

    /// Why there is nothing to show.
    fn nothing_found(&self, files: &[PathBuf]) -> Failure {
        let folders: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
        let folders = folders.join(", ");
        Failure::input(match self.left_out.first() {
            Some(LeftOut { file, why }) => format!(
                "{folders}: no transcript among {}; the first is {file}: {why}",
                counted(self.left_out.len() as u64, "file")
            ),
            None => {
                format!("{folders}: no file in it ends in {}", ENDS.map(|end| format!(".{end}")).join(", "))
            }
        })
    }
}

impl LeftOut {
    fn new(file: &Path, why: &str) -> Self {
        let file = file.display().to_string();
        // Most reasons begin with the file.
        let why = why.strip_prefix(&format!("{file}: ")).unwrap_or(why).to_owned();
        Self { file, why }
    }
}

/// The files to read.
struct Files {
    found: Vec<Transcribed>,
    left_out: Vec<LeftOut>,
}

/// A file that is, or may be, a transcript.
struct Transcribed {
    path: PathBuf,
    /// Whether the user named it, and not a folder that it is in.
    is_named: bool,
}

/// How the names of transcripts end.
const ENDS: [&str; 4] = ["json", "jsonl", "ndjson", "traj"];

impl Files {
    /// Those that were named, and those in folders that were named, by name. Links in folders are not followed.
    fn find(named: &[PathBuf]) -> Result<Self> {
        let mut files = Self { found: Vec::new(), left_out: Vec::new() };
        for path in named {
            match fs::metadata(path).is_ok_and(|about| about.is_dir()) {
                true => files.add_folder(path).map_err(|error| Failure::io(path, &error))?,
                false => files.found.push(Transcribed { path: path.clone(), is_named: true }),
            }
        }
        Ok(files)
    }

    fn add_folder(&mut self, folder: &Path) -> io::Result<()> {
        let mut entries: Vec<_> = fs::read_dir(folder)?.collect::<io::Result<_>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let (path, kind) = (entry.path(), entry.file_type()?);
            let end = path.extension().map(|end| end.to_string_lossy().to_lowercase());
            if kind.is_dir() {
                if let Err(error) = self.add_folder(&path) {
                    self.left_out.push(LeftOut::new(&path, &error.to_string()));
                }
            } else if kind.is_file() && end.is_some_and(|end| ENDS.contains(&&*end)) {
                self.found.push(Transcribed { path, is_named: false });
            }
        }
        Ok(())
    }

    /// Where the page goes. Neither a transcript is replaced nor a file that was not named.
    fn output(&self, args: &ReportArgs) -> Result<PathBuf> {
        let Some(output) = &args.output else {
            return match !args.json && fs::symlink_metadata(REPORT_OUTPUT).is_ok() {
                true => Err(Failure::input(format!(
                    "{REPORT_OUTPUT} is there already: replace it with -o {REPORT_OUTPUT}, or name another file"
                ))),
                false => Ok(REPORT_OUTPUT.into()),
            };
        };
        let place = fs::canonicalize(output).ok();
        let is_read = |file: &Transcribed| place.is_some() && fs::canonicalize(&file.path).ok() == place;
        match self.found.iter().any(is_read) {
            true => Err(Failure::input(format!(
                "-o {}: this is a transcript that the report is about: name another file",
                output.display()
            ))),
            false => Ok(output.clone()),
        }
    }
}

/// The conversations of a file.
fn read(
    file: &Path,
    args: &ReportArgs,
    asking: &Asking,
    mut redactor: Option<&mut Redactor>,
) -> Result<Vec<Conversation>> {
    let input_args = args.part.of(file);
    let input = Input::open(&input_args)?;
    let mut transcripts = input.transcripts(&input_args)?;
    let conversations = transcripts.iter_mut().map(|transcript| {
        let place = input.place(transcript.pointer());
        Conversation::of(&place, transcript, asking, redactor.as_deref_mut())
    });
    conversations.collect()
}
