//! `epitome report`: an HTML page about conversations: the growth and the compactions of the context, the results of
//! strategies, the origins of the tokens, and the information that the model needed and no longer had.

mod chart;
mod context;
mod conversation;
mod kind;
mod origin;
mod page;
mod source;
mod strip;

use std::sync::Arc;

use epitome::models::{Model, Prices};
use epitome::tokens::CachedCounter;
use serde::Serialize;

use crate::amount::counted;
use crate::args::{BudgetArgs, ReportArgs};
use crate::commands::{eval, session};
use crate::failure::{ExitCode, Failure, Result};
use crate::model;
use crate::output::{self, to_json};
use crate::redact::Redactor;
use crate::strategy::Strategies;

use conversation::Conversation;
use source::{Source, Sources};

/// The contents of a page. Its fields are the program's JSON.
#[derive(Debug, Serialize)]
struct Report {
    conversations: Vec<Conversation>,
    /// The files in folders that are no transcripts, and the sessions that cannot be shown, each with the reason.
    left_out: Vec<LeftOut>,
}

/// A file or session that is not shown.
#[derive(Debug, Serialize)]
struct LeftOut {
    file: String,
    why: String,
}

/// The measurements for each conversation.
struct Asking {
    measure: eval::Measure,
    /// The strategy for the drawing of the context over time.
    first: Strategies,
    model: Option<Model>,
    /// The window for the drawing of the context over time.
    window: BudgetArgs,
}

/// Default strategies of a report.
const STRATEGIES: [&str; 3] = ["agent", "chat", "truncate"];

/// Number of lost identifiers that a page lists for each strategy and budget.
const LOST_MAX: usize = 10;

pub(crate) fn run(args: &ReportArgs) -> Result<ExitCode> {
    let asking = Asking::new(args)?;
    let mut redactor = Redactor::new(&args.redact)?;
    let sources = Sources::find(args)?;
    let output = sources.output(args)?;
    if !args.json {
        output.check()?;
    }
    let report = Report::of(args, sources, &asking, redactor.as_mut())?;
    if args.json {
        output::say(to_json(&report)?)?;
    } else {
        let page = page::html(&report)?;
        output::write_private(output, |out| out.write_all(page.as_bytes()))?;
        if !output.is_stdout() {
            let size = counted(page.len().div_ceil(1_000) as u64, "kilobyte");
            output::tell(format!("epitome: wrote {} ({size}): open it in a browser", output.path.display()));
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
        sources: Sources,
        asking: &Asking,
        mut redactor: Option<&mut Redactor>,
    ) -> Result<Self> {
        let mut report = Self { conversations: Vec::new(), left_out: sources.left_out };
        for source in &sources.found {
            match read(source, args, asking, redactor.as_deref_mut()) {
                Ok(found) => report.conversations.extend(found),
                Err(failure) if source.is_named() => return Err(failure),
                Err(failure) => report.left_out.push(LeftOut::new(source.place(), failure.message())),
            }
            // A browser cannot hold the messages of many conversations.
            if report.conversations.len() > 1 {
                report.conversations.iter_mut().for_each(|conversation| conversation.said = Vec::new());
            }
        }
        if report.conversations.is_empty() {
            return Err(report.nothing_found(args));
        }
        if let Some(redactor) = redactor {
            let texts = report.left_out.iter_mut().flat_map(|LeftOut { file, why }| [file, why]);
            texts.for_each(|text| *text = redactor.value(None, text).unwrap_or_else(|| text.clone()));
        }
        Ok(report)
    }

    /// The failure of a report without conversations.
    fn nothing_found(&self, args: &ReportArgs) -> Failure {
        if let Some(store) = args.store.given() {
            let store = session::store::shown(&store);
            return Failure::input(match self.left_out.first() {
                Some(LeftOut { file, why }) => format!("{file}: {why}"),
                None => format!("{store}: no sessions"),
            });
        }
        let folders: Vec<_> = args.files.iter().map(|file| file.display().to_string()).collect();
        let folders = folders.join(", ");
        Failure::input(match self.left_out.first() {
            Some(LeftOut { file, why }) => format!(
                "{folders}: no transcript among {}; the first is {file}: {why}",
                counted(self.left_out.len() as u64, "file")
            ),
            None => {
                format!(
                    "{folders}: no file in it ends in {}",
                    source::ENDS.map(|end| format!(".{end}")).join(", ")
                )
            }
        })
    }
}

impl LeftOut {
    fn new(place: String, why: &str) -> Self {
        // Most reasons begin with the place.
        let why = why.strip_prefix(&format!("{place}: ")).unwrap_or(why).to_owned();
        Self { file: place, why }
    }
}

/// The conversations of a file or a session.
fn read(
    source: &Source,
    args: &ReportArgs,
    asking: &Asking,
    mut redactor: Option<&mut Redactor>,
) -> Result<Vec<Conversation>> {
    let input_args = source.input_args(&args.part);
    let input = source.open(&input_args)?;
    let mut transcripts = input.transcripts(&input_args)?;
    let conversations = transcripts.iter_mut().map(|transcript| {
        let place = input.place(transcript.pointer());
        Conversation::of(&place, transcript, asking, redactor.as_deref_mut())
    });
    conversations.collect()
}
