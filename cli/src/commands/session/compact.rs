//! `epitome session compact`.

use epitome::core::{Basis, TokenCounter, count_message};
use epitome::std::history::{CompactionRecord, History, Notes};
use futures::executor::block_on;

use super::line::to_json;
use super::store::{Counter, Missing, More, Store, for_each_page, history, in_store, open};
use crate::args::{OneSessionArgs, PlanArgs};
use crate::budget::Asked;
use crate::failure::{Failure, Result};
use crate::filled::Filled;
use crate::model;
use crate::report::{Decided, Facts, Picture, Report};
use crate::scan::ESTIMATE;
use crate::strategy::Strategies;

pub(super) fn run(args: &OneSessionArgs, plan_args: &PlanArgs, dry_run: bool) -> Result<String> {
    let strategies = Strategies::parse(&plan_args.strategy)?;
    if strategies.replace() {
        return Err(Failure::input(
            "--strategy: a stored session is given no summary or digest here: take one that drops or shortens",
        ));
    }
    let found = model::find(&plan_args.model)?;
    let counter: Counter = model::counter(found.as_ref(), plan_args.tokenizer.as_deref(), ESTIMATE)?.into();
    let budget = model::budget(found.as_ref(), &plan_args.budget);
    let store = open(&args.store, Missing::Refuse)?;
    let mut history = history(store.clone(), args, counter.clone())?;
    // A share is of all that was said, so that the same command twice asks for the same.
    let own = match plan_args.budget.keep {
        Some(_) => logged_tokens(&store, args, &*counter)?,
        None => history.index().tokens(),
    };
    let asked = Asked::new(&budget, own)?;
    let strategies = strategies.about(|things| {
        for (position, live) in (0_u32..).zip(history.live()) {
            things.look_through(position, &live.entry.message);
        }
        Ok(())
    })?;
    let (report, record) = plan(&history, &asked, &strategies)?;
    if let Some(record) = record.filter(|_| !dry_run) {
        block_on(history.commit(&record)).map_err(|error| in_store(&args.store, error))?;
    }
    if args.json { to_json(&report) } else { Ok(report.to_text(&Picture::for_stdout())) }
}

type Planned = (Report, Option<CompactionRecord>);

fn plan(history: &History, asked: &Asked, strategies: &Strategies) -> Result<Planned> {
    let view = history.index();
    let mut cells = Vec::new();
    let outcome = match asked.is_due(view.tokens()) {
        false => None,
        true => Some(
            strategies
                .with(|strategy| history.plan(&asked.budget, asked.pass(), strategy, &mut cells))
                .map_err(|error| Failure::plan(&error, &asked.budget))?,
        ),
    };
    let decided = Decided::new(outcome.as_ref(), view, view.tokens(), asked);
    let filled = match decided {
        Decided::Planned(plan) => Some(
            history
                .fill(*plan, &Notes::default(), |ready| {
                    let record = history.record(&ready, &strategies.names().join(","));
                    Filled::new(&ready).map(|filled| (filled, record))
                })
                .map_err(|error| Failure::input(format!("--strategy: {error}")))??,
        ),
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
        tokenizer: counted.map_or_else(String::new, |count| count.counter.to_string()),
    });
    Ok((report, record))
}

/// All tokens of the log by `counter`, as the session itself counts what it shows.
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
        Ok(More::Wanted)
    })?;
    Ok(tokens)
}
