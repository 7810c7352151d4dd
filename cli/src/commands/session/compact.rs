//! `epitome session compact`.

use core::ops::ControlFlow;

use epitome::core::{Basis, Planner, StandIn, SummaryGap, TokenCounter, count_message};
use epitome::history::{CompactionRecord, History, Notes, StoreErrorKind};
use futures::executor::block_on;

use super::store::{Access, Counter, Store, for_each_page, history, in_store, open};
use crate::args::{OneSessionArgs, PlanArgs, StoreArgs, SummaryArgs};
use crate::budget::Asked;
use crate::failure::{Failure, Result};
use crate::filled::Filled;
use crate::model;
use crate::output::{self, to_json};
use crate::pins::{self, Pin};
use crate::report::{Decided, Facts, Picture, Report};
use crate::scan::ESTIMATE;
use crate::strategy::Strategies;
use crate::summarizer::{self, Prompted};
use crate::visible::Printable;

pub(crate) fn run(
    args: &OneSessionArgs,
    (plan_args, summary): (&PlanArgs, &SummaryArgs),
    pins: &[Pin],
    dry_run: bool,
    require_goal: bool,
) -> Result<Printable> {
    if summary.summarizer.is_some() && dry_run {
        return Err(Failure::input(
            "--dry-run sends nothing to anybody: leave it out, or --summarizer; --strategy tool-digest asks no model",
        ));
    }
    let strategies = Strategies::parse(&plan_args.strategy)?;
    let summarizer = summarizer::open(summary, plan_args.model.model.as_deref())?;
    summarizer::check(&strategies, summarizer.as_ref())?;
    let found = model::find(&plan_args.model)?;
    let counter: Counter = model::counter(found.as_ref(), plan_args.tokenizer.as_deref(), ESTIMATE)?.into();
    let budget = model::budget(found.as_ref(), &plan_args.budget);
    let store = open(&args.store, Access::Write)?;
    let mut again = 1..TRIES_MAX;
    let report = loop {
        let mut history = history(store.clone(), args, counter.clone())?;
        let pinned = pins::in_session(pins, history.live())?;
        history.set_pins(pinned).map_err(|error| in_store(&args.store, error))?;
        // The share refers to the whole log, so that a repeated command has the same goal.
        let own = match plan_args.budget.keep {
            Some(_) => logged_tokens(&store, args, &*counter)?,
            None => history.index().tokens(),
        };
        let asked = Asked::new(&budget, own)?;
        let strategies = strategies.about(|texts| {
            for (position, live) in (0_u32..).zip(history.live()) {
                texts.look_through(position, &live.entry.message);
            }
            Ok(())
        })?;
        let (report, record) = plan(&args.store, &history, &asked, &strategies, summarizer.as_ref())?;
        if require_goal && let Err(failure) = report.require_goal() {
            output::say(to_printable(&report, args.json)?)?;
            return Err(failure.during(format_args!("session {:?}", args.session)));
        }
        let Some(record) = record.filter(|_| !dry_run) else { break report };
        let Err(error) = block_on(history.commit(&record)) else { break report };
        // A conflict: another process changed the session first. A model is not paid again for a second plan.
        if error.kind() != StoreErrorKind::Conflict {
            return Err(in_store(&args.store, error));
        }
        if summarizer.is_some() || again.next().is_none() {
            let failure = in_store(&args.store, error);
            return Err(failure.advise("the session was changed meanwhile: run the command again"));
        }
    };
    to_printable(&report, args.json)
}

fn to_printable(report: &Report, as_json: bool) -> Result<Printable> {
    if as_json { Ok(to_json(report)?.into()) } else { Ok(report.to_text(&Picture::for_stdout())) }
}

/// Maximum number of plans of a compaction while other processes change the same session.
const TRIES_MAX: u32 = 16;

type Planned = (Report, Option<CompactionRecord>);

fn plan(
    store: &StoreArgs,
    history: &History,
    asked: &Asked,
    strategies: &Strategies,
    summarizer: Option<&Prompted>,
) -> Result<Planned> {
    let view = history.index();
    let mut planner = Planner::new();
    let outcome = match asked.is_due(view.tokens()) {
        false => None,
        true => Some(
            strategies
                .with(|strategy| planner.plan(view, &asked.budget, asked.pass(), strategy))
                .map_err(|error| Failure::plan(&error, &asked.budget))?,
        ),
    };
    let decided = Decided::new(outcome.as_ref(), view, view.tokens(), asked);
    let filled = match decided {
        Decided::Planned(plan) => {
            let messages: Vec<_> = history.live().iter().map(|live| &live.entry.message).collect();
            let late = |gap: &SummaryGap<'_>| {
                let late = block_on(history.late_answers(gap.covers().flatten()));
                late.map_err(|error| in_store(store, error))
            };
            let written = summarizer::write(plan, &messages, summarizer, history.counter(), late)?;
            let summaries: Vec<_> =
                written.iter().map(|(text, tokens)| StandIn::new(text, *tokens)).collect();
            let filled = history.fill_with(*plan, &Notes::default(), &summaries, |ready| {
                let record = history.record(&ready, &strategies.names().join(","));
                Filled::new(&ready).map(|filled| (filled, record))
            });
            Some(filled.map_err(|error| Failure::input(format!("--strategy: {error}")))??)
        }
        _ => None,
    };
    let (filled, record) = filled.unzip();
    let sizes: Vec<_> = history.live().iter().map(|live| live.entry.count.tokens).collect();
    let counted = history.live().first().map(|live| live.entry.count.clone());
    let report = Report::new(Facts {
        index: view,
        decided,
        filled: filled.as_ref(),
        asked,
        strategies,
        sizes: &sizes,
        basis: history.live().iter().map(|live| live.entry.count.basis).min().unwrap_or(Basis::Estimated),
        uncounted: None,
        tokenizer: counted
            .map_or_else(|| history.counter().name().to_owned(), |count| count.counter.to_string()),
    });
    Ok((report, record))
}

/// All tokens of the log by `counter`, in the way in which the session counts visible messages.
fn logged_tokens(store: &Store, args: &OneSessionArgs, counter: &dyn TokenCounter) -> Result<u64> {
    let mut tokens = 0;
    for_each_page(store, args, |page| {
        for logged in page {
            let count = &logged.entry.count;
            let size = match count.counter == counter.name() {
                true => count.tokens,
                false => count_message(&logged.entry.message, counter),
            };
            tokens += size.as_u64();
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(tokens)
}
