//! `epitome eval`: measures the information that a compacted conversation keeps for the next steps of the model.

mod baseline;
mod canaries;
mod case;
mod command;
mod contender;
mod degradation;
mod evidence;
mod labelled;
mod mean;
mod need;
mod needs;
mod ongoing;
mod price;
mod prompt;
mod replay;
mod rounds;
mod score;
mod shown;
mod stored;
mod text;
mod words;

use core::time::Duration;
use std::path::Path;
use std::sync::Arc;

use epitome::core::TokenCounter;
use epitome::tokens::CachedCounter;
use serde::Serialize;

use crate::amount::Percent;
use crate::args::EvalArgs;
use crate::failure::{ExitCode, Failure, Result};
use crate::model;
use crate::output::{self, to_json};
use crate::strategy::Strategies;
use crate::transcript::{Input, files};

use canaries::Canaries;
use command::Command;
use degradation::Degradation;
use evidence::{Evidence, QuestionedCase};
use price::Pricing;

/// Measurements of all kinds. Its fields are the program's JSON.
#[derive(Debug, Serialize)]
struct Eval {
    tokenizer: String,
    #[serde(flatten)]
    needs: Option<Needs>,
    /// Evidence of conversations with labelled questions.
    #[serde(skip_serializing_if = "Option::is_none")]
    evidence: Option<Evidence>,
    /// Survival of planted sentences, in the place of the other measurements.
    #[serde(skip_serializing_if = "Option::is_none")]
    canaries: Option<Canaries>,
    /// Results by round, in the place of the other measurements.
    #[serde(skip_serializing_if = "Option::is_none")]
    degradation: Option<Degradation>,
}

/// The measurements to make.
pub(super) struct Measure {
    pub(super) strategies: Vec<Strategies>,
    /// The programs of `--command`.
    commands: Vec<Command>,
    /// The shares of the tokens that a strategy may keep.
    pub(super) keep: Vec<Percent>,
    /// Number of losses that a row lists.
    lost_max: usize,
    pub(super) counter: Arc<dyn TokenCounter + Send + Sync>,
    /// Prices of requests, if a model was named.
    pricing: Option<Pricing>,
}

/// Default strategies: each kind that asks no model, and combinations of them.
const STRATEGIES: &[&str] = &[
    "truncate",
    "window",
    "tool-results",
    "tool-digest",
    "tool-results | truncate",
    "tool-results:inputs | truncate",
    "supersede | tool-results | truncate",
    "truncate:walk=newest-first",
    "agent",
    "salience",
    "chat",
];

/// The error for transcripts without anything to measure.
const NOTHING_NEEDED: &str = "nothing to measure: no conversation has a message of the model that repeats a name, a number or \
    five words of what was said before it; give a longer transcript of an agent";

/// The error for questions without evidence.
const NO_EVIDENCE: &str = "nothing to measure: no question names a message that answers it; give the ids of such messages in \
    `evidence`";

/// The error for conversations that are too short for planted sentences.
const TOO_SHORT: &str = "--canaries: nothing to measure: no conversation is long enough for five compactions; give a longer one, of \
    some dozens of messages";

/// The default counter, if neither a counter nor a model is named.
pub(super) const TOKENIZER: &str = "o200k_base";

/// Number of remembered counts of texts: for each strategy, a store counts the same texts again.
pub(super) const COUNTS_MAX: usize = 100_000;

pub(super) use case::Case;
pub(crate) use command::CommandSpec;
pub(super) use needs::Needs;
#[cfg(feature = "report")]
pub(super) use {prompt::CountedMessage, stored::Stored};

pub(crate) fn run(args: &EvalArgs) -> Result<ExitCode> {
    let measure = Measure::new(args)?;
    let (mut cases, mut questioned) = (Vec::new(), Vec::new());
    for file in &*files(&args.files)? {
        // An explicit place or format asks for a transcript, not for a file with labelled questions.
        let is_whole = args.part.from.0.is_none() && args.part.at.is_none() && args.part.leaf.is_none();
        let labelled = if is_whole { labelled::read(file)? } else { None };
        match labelled {
            Some(labelled) => {
                questioned.extend(labelled.into_iter().map(|one| QuestionedCase::of(one, &*measure.counter)))
            }
            None => cases.extend(read(file, args, &*measure.counter)?),
        }
    }
    let eval = match args.rounds {
        Some(rounds) => Eval::by_round(&cases, &questioned, usize::from(rounds), &measure)?,
        None if args.canaries => Eval::of_canaries(&cases, &questioned, &measure)?,
        None => Eval::of(&cases, &questioned, &measure)?,
    };
    let text = match args.json {
        true => to_json(&eval)?,
        false => eval.to_text(),
    };
    output::say(&text)?;
    Ok(ExitCode::SUCCESS)
}

impl Measure {
    fn new(args: &EvalArgs) -> Result<Self> {
        let model = model::find(&args.price.model)?;
        let counter = model::counter(model.as_ref(), args.tokenizer.as_deref(), TOKENIZER)?;
        // Only the measurement of the model's next needs has prices.
        let pricing = match &model {
            Some(model) if !args.canaries && args.rounds.is_none() => Some(Pricing::new(model, &args.price)?),
            _ => None,
        };
        Ok(Self {
            strategies: Strategies::without_model(&args.strategy, STRATEGIES, "eval")?,
            commands: Command::all(&args.command, Duration::from_secs(args.command_timeout))?,
            keep: args.keep.clone(),
            lost_max: args.lost,
            counter: Arc::new(CachedCounter::new(counter.into(), COUNTS_MAX)),
            pricing,
        })
    }
}

#[cfg(feature = "report")]
impl Measure {
    /// Measures these strategies at these shares.
    pub(super) const fn of_strategies(
        strategies: Vec<Strategies>,
        keep: Vec<Percent>,
        lost_max: usize,
        counter: Arc<dyn TokenCounter + Send + Sync>,
    ) -> Self {
        Self { strategies, commands: Vec::new(), keep, lost_max, counter, pricing: None }
    }
}

impl Eval {
    /// Measures the information that the model used next, and the evidence of labelled questions.
    fn of(cases: &[Case], questioned: &[QuestionedCase], measure: &Measure) -> Result<Self> {
        let (needs, evidence) = (Needs::of(cases, measure)?, Evidence::of(questioned, measure)?);
        if needs.is_none() && evidence.is_none() {
            let why = if questioned.is_empty() { NOTHING_NEEDED } else { NO_EVIDENCE };
            return Err(Failure::input(why));
        }
        Ok(Self { needs, evidence, ..Self::empty(measure) })
    }

    fn of_canaries(cases: &[Case], questioned: &[QuestionedCase], measure: &Measure) -> Result<Self> {
        let cases = cases.iter().map(|case| &*case.messages);
        let conversations: Vec<_> = cases.chain(questioned.iter().map(QuestionedCase::messages)).collect();
        let canaries = Canaries::of(&conversations, measure)?;
        if canaries.is_none() {
            return Err(Failure::input(TOO_SHORT));
        }
        Ok(Self { canaries, ..Self::empty(measure) })
    }

    fn by_round(
        cases: &[Case],
        questioned: &[QuestionedCase],
        rounds: usize,
        measure: &Measure,
    ) -> Result<Self> {
        if let Some(case) = questioned.first() {
            let place = case.place();
            return Err(Failure::input(format!(
                "--rounds: {place} has labelled questions, which say nothing of the turns behind a compaction: leave it out"
            )));
        }
        let degradation = Degradation::of(cases, rounds, measure)?;
        if degradation.is_none() {
            return Err(Failure::input(format!(
                "--rounds: nothing to measure: no conversation has enough messages of the model for {rounds} compactions; give a \
                 longer one, of some dozens of messages"
            )));
        }
        Ok(Self { degradation, ..Self::empty(measure) })
    }

    fn empty(measure: &Measure) -> Self {
        let tokenizer = measure.counter.name().to_owned();
        Self { tokenizer, needs: None, evidence: None, canaries: None, degradation: None }
    }
}

/// The conversations of a file.
fn read(file: &Path, args: &EvalArgs, counter: &dyn TokenCounter) -> Result<Vec<Case>> {
    let input_args = args.part.of(file);
    let input = Input::open(&input_args)?;
    let mut transcripts = input.transcripts(&input_args)?;
    let cases = transcripts.iter_mut().map(|transcript| {
        let place = format!("{}{}", file.display(), transcript.pointer());
        Case::of(place, transcript, counter)
    });
    cases.collect()
}
