//! The command line.

#![expect(clippy::doc_markdown, reason = "these comments are the program's help, where backticks would show")]

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

use crate::amount::{Amount, Percent, tokens};

/// Shrink, inspect and store the transcripts of LLM agents.
///
/// Exit codes: 0 done (also when nothing had to change), 1 validation found violations, 2 bad input or usage,
/// 3 what is protected does not fit the window, 4 a file or store failed.
#[derive(Debug, Parser)]
#[command(name = "epitome", version, max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Shrink a transcript: report what would stay, or write it with -o
    Compact(CompactArgs),
    /// Say what a transcript consists of, and what it costs
    Stats(StatsArgs),
    /// Check a transcript against the rules of the provider that is to receive it
    Validate(ValidateArgs),
    /// Keep transcripts in a store, and compact them there without losing anything
    Session(SessionArgs),
}

/// Which conversations of which file.
#[derive(Debug, ClapArgs)]
pub(crate) struct InputArgs {
    /// The transcript, JSON or JSONL; - reads standard input
    pub(crate) file: PathBuf,
    /// The format of the messages
    #[arg(long, value_name = "FORMAT", default_value = "auto")]
    pub(crate) from: Format,
    /// Where the conversation stands in the document, as a JSON pointer: /history, /0/traj
    #[arg(long, value_name = "POINTER")]
    pub(crate) at: Option<String>,
    /// Take every element of the array, or every line, as a conversation; --at then counts from there
    #[arg(long)]
    pub(crate) each: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Whatever the file looks like
    Auto,
    /// OpenAI Chat Completions: a JSON array of messages, a request, or JSONL
    OpenaiChat,
}

/// The budget of a request.
#[derive(Debug, Clone, Copy, ClapArgs)]
pub(crate) struct BudgetArgs {
    /// What the model takes, in tokens [default: 128000; with --keep alone, no less than the transcript needs]
    #[arg(long, allow_hyphen_values = true, value_name = "N", value_parser = tokens)]
    pub(crate) window: Option<u64>,
    /// What stays free for the answer [default: an eighth of the window, at most 8192]
    #[arg(long, allow_hyphen_values = true, value_name = "N", value_parser = tokens)]
    pub(crate) reserve: Option<u64>,
    /// Compact only above this size; P% is of window - reserve [default: 78% of the window; with --goal or --keep: now]
    #[arg(long, allow_hyphen_values = true, value_name = "N|P%")]
    pub(crate) trigger: Option<Amount>,
    /// The size to reach; P% is of window - reserve [default: half of the trigger]
    #[arg(long, allow_hyphen_values = true, value_name = "N|P%", conflicts_with = "keep")]
    pub(crate) goal: Option<Amount>,
    /// The share of the transcript's own tokens to keep; of a session, of all that is in its log
    #[arg(long, allow_hyphen_values = true, value_name = "P%")]
    pub(crate) keep: Option<Percent>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) budget: BudgetArgs,
    /// What to try, in this order, until the goal is met: truncate[:recent=N], window[:turns=N|groups=N|tokens=N]
    #[arg(long, value_name = "A,B", default_value = "truncate")]
    pub(crate) strategy: String,
    /// Who counts: estimate, o200k_base, cl100k_base, o200k_harmony
    #[arg(long, value_name = "T", default_value = "estimate")]
    pub(crate) tokenizer: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CompactArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// Write the compacted transcript there, in the form of the input; - is standard output
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
    /// Whose rules --repair follows: openai-chat, permissive
    #[arg(long, value_name = "PROFILE", default_value = "openai-chat")]
    pub(crate) profile: String,
    /// Also make what is written legal: results without a call are left out, calls without one get an aborted one
    #[arg(long)]
    pub(crate) repair: bool,
    /// Report only, even with -o
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Report as JSON; there, a budget.trigger of null means: now
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// The exact counter to compare the estimate with
    #[arg(long, value_name = "T", default_value = "o200k_base")]
    pub(crate) tokenizer: String,
    /// Report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ValidateArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// Whose rules: openai-chat, openai-responses, anthropic, gemini, mistral, qwen, deepseek, bedrock-converse,
    /// permissive
    #[arg(long, value_name = "PROFILE", default_value = "openai-chat")]
    pub(crate) profile: String,
    /// Report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct SessionArgs {
    #[command(subcommand)]
    pub(crate) command: SessionCommand,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct StoreArgs {
    /// Where the sessions are kept: sqlite:PATH
    #[arg(long, value_name = "URL")]
    pub(crate) store: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct OneSessionArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// The session's name
    #[arg(long, value_name = "ID")]
    pub(crate) session: String,
    /// Report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// List the sessions
    List {
        #[command(flatten)]
        store: StoreArgs,
        /// Report as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show what the next request would contain; with --json, as Chat Completions messages
    Show(OneSessionArgs),
    /// Append a transcript to a session; to repeat the import that it began with changes nothing
    Import {
        #[command(flatten)]
        input: InputArgs,
        #[command(flatten)]
        session: OneSessionArgs,
        /// Append even if the session has messages already
        #[arg(long)]
        append: bool,
        /// Who counts: estimate, o200k_base, cl100k_base, o200k_harmony
        #[arg(long, value_name = "T", default_value = "estimate")]
        tokenizer: String,
    },
    /// Compact a session: nothing is deleted, the log keeps all of it
    Compact {
        #[command(flatten)]
        session: OneSessionArgs,
        #[command(flatten)]
        plan: PlanArgs,
        /// Report only
        #[arg(long)]
        dry_run: bool,
    },
    /// Show the full log, with what hides each message; with --json, a line per message
    Log(OneSessionArgs),
    /// Delete a session with everything that belongs to it
    Delete(OneSessionArgs),
}
