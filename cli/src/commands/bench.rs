//! `epitome bench`: the time of each stage on a transcript, and the share of it that each strategy keeps.

mod clock;
mod kept;
mod stages;
mod text;

use std::path::{Path, PathBuf};

use epitome::core::{Basis, Profile, TokenCounter};
use serde::Serialize;

use crate::args::{BenchArgs, InputArgs};
use crate::failure::{ExitCode, Failure, Result};
use crate::model;
use crate::output::{self, to_json};
use crate::scan::ESTIMATE;
use crate::strategy::Strategies;
use crate::transcript::{self, Input, Transcript};

use clock::Rounds;
use kept::Kept;
use stages::{Stage, Work};

/// Measurements of the stages. Its fields are the program's JSON.
#[derive(Debug, Serialize)]
struct Bench {
    conversations: u64,
    messages: u64,
    turns: u64,
    user_messages: u64,
    tool_exchanges: u64,
    tokens: u64,
    token_basis: Basis,
    tokenizer: String,
    /// Bytes of the whole text, including everything around its conversations.
    bytes: u64,
    /// Goal of the strategies, in tokens: the sum over all conversations.
    goal: u64,
    stages: Vec<Stage>,
    strategies: Vec<Kept>,
}

/// Default strategies: each kind that neither asks a model nor needs a parameter.
const STRATEGIES: &[&str] = &[
    "truncate",
    "window",
    "tool-results",
    "supersede",
    "tool-drop",
    "tool-digest",
    "tool-results | truncate",
];

/// Source of the text, which can be read repeatedly.
#[derive(Debug)]
enum Source {
    File(InputArgs),
    /// Bytes of an input that can be read only once.
    Bytes(PathBuf, Vec<u8>, InputArgs),
}

pub(crate) fn run(args: &BenchArgs) -> Result<ExitCode> {
    if cfg!(target_family = "wasm") {
        return Err(Failure::input("WebAssembly has no clock: measure with the program `epitome`"));
    }
    let found = model::find(&args.model)?;
    let counter = model::counter(found.as_ref(), args.tokenizer.as_deref(), ESTIMATE)?;
    let budget = model::budget(found.as_ref(), &args.budget());
    let strategies = Strategies::without_model(&args.strategy, STRATEGIES, "bench")?;
    let source = Source::new(&args.input)?;
    let input = source.open()?;
    let mut transcripts = source.transcripts(&input)?;
    let works = transcripts.iter_mut().map(|one| Work::of(one, &*counter, &budget));
    let works = works.collect::<Result<Vec<_>>>()?;

    let own = transcripts.first().map_or(Profile::Permissive, |one| one.format().profile());
    let profile = args.profile.unwrap_or(own);
    let all = stages::All { source: &source, input: &input, works: &works, counter: &*counter, profile };
    let stages = all.measure(&mut transcripts, &strategies, Rounds::new(args.rounds))?;
    let estimator = || model::counter(found.as_ref(), Some(ESTIMATE), ESTIMATE);
    let mut kept = Vec::with_capacity(strategies.len());
    for strategies in strategies {
        kept.push(Kept::of(&mut transcripts, &works, strategies, budget, (&*counter, estimator()?))?);
    }
    let bench = Bench::new(&works, &*counter, source.bytes()?, stages, kept);
    let text = match args.json {
        true => to_json(&bench)?,
        false => bench.to_text(),
    };
    output::say(&text)?;
    Ok(ExitCode::SUCCESS)
}

impl Bench {
    fn new(
        works: &[Work],
        counter: &dyn TokenCounter,
        bytes: u64,
        stages: Vec<Stage>,
        strategies: Vec<Kept>,
    ) -> Self {
        let sum = |of: fn(&Work) -> u64| works.iter().map(of).sum();
        Self {
            conversations: works.len() as u64,
            messages: sum(Work::messages),
            turns: sum(Work::turns),
            user_messages: sum(|work| work.groups(epitome::core::GroupKind::User)),
            tool_exchanges: sum(|work| work.groups(epitome::core::GroupKind::Exchange)),
            tokens: sum(Work::tokens),
            token_basis: works.iter().map(Work::basis).min().unwrap_or(counter.basis()),
            tokenizer: counter.name().to_owned(),
            bytes,
            goal: sum(Work::goal),
            stages,
            strategies,
        }
    }
}

impl Source {
    fn new(args: &InputArgs) -> Result<Self> {
        let args = Input::resolve(args)?.into_owned();
        let path = args.path().to_owned();
        if path == Path::new("-") {
            return Ok(Self::Bytes(PathBuf::from(transcript::STDIN), transcript::stdin()?, args));
        }
        match std::fs::metadata(&path) {
            // A pipe can be read only once. Any other error is reported when the file is opened.
            Ok(about) if !about.is_file() && !about.is_dir() => {
                let bytes = std::fs::read(&path).map_err(|error| Failure::io(&path, &error))?;
                Ok(Self::Bytes(path, bytes, args))
            }
            _ => Ok(Self::File(args)),
        }
    }

    fn open(&self) -> Result<Input> {
        match self {
            Self::File(args) => Input::open(args),
            Self::Bytes(path, bytes, args) => Input::from_bytes(path.clone(), bytes.clone(), args),
        }
    }

    const fn args(&self) -> &InputArgs {
        match self {
            Self::File(args) | Self::Bytes(_, _, args) => args,
        }
    }

    /// The conversations that the options select.
    fn transcripts<'a>(&self, input: &'a Input) -> Result<Vec<Transcript<'a>>> {
        input.transcripts(self.args())
    }

    fn bytes(&self) -> Result<u64> {
        match self {
            Self::File(args) => {
                let about = std::fs::metadata(args.path());
                Ok(about.map_err(|error| Failure::io(args.path(), &error))?.len())
            }
            Self::Bytes(_, bytes, _) => Ok(bytes.len() as u64),
        }
    }
}
