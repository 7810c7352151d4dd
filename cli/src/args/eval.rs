//! The command line of `eval`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::{ModelArgs, PartArgs};
use crate::amount::{Age, Percent, share, tokens};
use crate::commands::eval::CommandSpec;

#[derive(Debug, ClapArgs)]
pub(crate) struct EvalArgs {
    /// The transcripts, JSON or JSONL, or conversations with labelled questions; results are means over all of them [default:
    /// standard input]
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) part: PartArgs,
    /// The shares of the tokens before a cut that a strategy may keep
    #[arg(long, value_name = "P,P", default_value = "10,25,50", value_delimiter = ',', value_parser = share)]
    pub(crate) keep: Vec<Percent>,
    /// A strategy to measure, as `compact` takes it; may be given more than once [default: each strategy without a model, and
    /// combinations of two]
    #[arg(long, value_name = "A|B")]
    pub(crate) strategy: Vec<String>,
    /// Add a row for another program: it reads a request in each line, {"messages": [..], "tokens": [..], "goal_tokens": N}, and
    /// answers each with a line, {"keep": [0, 5, ..]} or {"messages": [..]}; may be given more than once
    #[arg(long, value_name = "NAME=COMMAND")]
    pub(crate) command: Vec<CommandSpec>,
    /// The time limit of such a program for one answer, in seconds
    #[arg(long, value_name = "N", default_value_t = 60, requires = "command", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) command_timeout: u64,
    #[command(flatten)]
    pub(crate) price: PriceArgs,
    /// The token counter: estimate, o200k_base, cl100k_base, o200k_harmony [default: that of --model, else o200k_base]
    #[arg(long, value_name = "T")]
    pub(crate) tokenizer: Option<String>,
    /// Plant rules, constraints, facts, goals and preferences in the conversations instead, and report which of them survive one
    /// compaction and five
    #[arg(long)]
    pub(crate) canaries: bool,
    /// Compact each conversation this many times, 2 to 5, with its own turns in between, and report the measure after each round
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(2..=5), conflicts_with = "canaries")]
    pub(crate) rounds: Option<u8>,
    /// How many losses to list for each strategy
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) lost: usize,
    /// Report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Options for the price of the requests that a replay of a conversation makes.
#[derive(Debug, ClapArgs)]
pub(crate) struct PriceArgs {
    /// Also report what the requests of each conversation would cost for this model, with each strategy
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// The window that requests are compacted in, in tokens [default: that of --model]
    #[arg(long, value_name = "N", value_parser = tokens, requires = "model")]
    pub(crate) window: Option<u64>,
    /// The pause before each user message: a prompt cache with a shorter lifetime has expired by then (90m, 12h) [default: the
    /// cache never expires]
    #[arg(long, value_name = "TIME", requires = "model")]
    pub(crate) pause: Option<Age>,
}
