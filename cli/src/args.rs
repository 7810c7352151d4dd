//! The command line.

#![expect(clippy::doc_markdown, reason = "these comments are the program's help, where backticks would show")]

mod bench;
mod eval;
mod hook;
mod names;
mod redact;
#[cfg(feature = "report")]
mod report;
mod search;
mod session;
mod sessions;
mod show;

use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use epitome::core::Profile;
use epitome::wire::Format;
use serde::Deserialize;

use crate::amount::{Amount, Percent, tokens};
use crate::pins::Pin;

pub(crate) use bench::BenchArgs;
pub(crate) use eval::{EvalArgs, PriceArgs};
pub(crate) use hook::HookArgs;
pub(crate) use names::From;
pub(crate) use redact::RedactArgs;
#[cfg(feature = "report")]
pub(crate) use report::ReportArgs;
#[cfg(feature = "mcp")]
pub(crate) use search::McpArgs;
pub(crate) use search::{Numbers, ScopeArgs, SearchArgs};
#[cfg(feature = "inspect")]
pub(crate) use session::InspectArgs;
pub(crate) use session::{
    CopyKeyArgs, KeepArgs, OneSessionArgs, OptionalStoreArgs, PlaceArgs, SessionArgs, SessionCommand,
    StoreArgs,
};
pub(crate) use sessions::SessionsArgs;
pub(crate) use show::ShowArgs;

/// Shrink, inspect and store the transcripts of LLM agents.
///
/// Exit codes: 0 done (also when nothing had to change, or the goal was missed), 1 a validation or a repair leaves violations, or a
/// search finds nothing, 2 bad input or usage, 3 the protected messages do not fit the window, 4 a file or store failed, 5 the result
/// would not read back as planned, 6 the goal was missed with --require-goal. After 5 and 6 nothing was written.
///
/// Settings file: $EPITOME_CONFIG, else $XDG_CONFIG_HOME/epitome/config.toml, else ~/.config/epitome/config.toml. Its keys are store,
/// key-file, color and pager. An option, or an environment variable EPITOME_.., overrides it.
#[derive(Debug, Parser)]
#[command(name = "epitome", version = env!("EPITOME_VERSION"), max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// When to color the output; auto: on a terminal, unless NO_COLOR is set or TERM is dumb [default: color in the settings file,
    /// else auto]
    #[arg(long, value_name = "WHEN", value_enum, global = true, default_value_t = Color::Auto, hide_default_value = true, display_order = 100)]
    pub(crate) color: Color,
    /// Print long texts on the terminal without a pager; which one is pager in the settings file, PAGER or less
    #[arg(long, global = true, display_order = 101)]
    pub(crate) no_pager: bool,
}

/// When the output has colors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Color {
    #[default]
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Shrink a transcript: report the plan, or write the result with -o
    Compact(Box<CompactArgs>),
    /// Compare two transcripts side by side: equal, shortened, removed and new messages
    Diff(DiffArgs),
    /// Print a transcript as readable text
    Show(ShowArgs),
    /// Count messages and tokens of a transcript by role and kind, and their price
    Stats(StatsArgs),
    /// Measure the time of each stage on a transcript, and the share that each strategy keeps
    Bench(Box<BenchArgs>),
    /// Measure how much of the information that the model used next survives a compaction
    Eval(Box<EvalArgs>),
    /// Write an HTML page: the context over time, the result of each strategy, tokens by kind and tool, lost identifiers
    #[cfg(feature = "report")]
    Report(Box<ReportArgs>),
    /// Check a transcript against the rules of a model provider
    Validate(ValidateArgs),
    /// Write a transcript in the format of another provider, and list the parts without a counterpart there
    Convert(ConvertArgs),
    /// Write a document for a new session that continues this one: requests, open calls, the work so far, files
    Handoff(HandoffArgs),
    /// List identifiers for an agent that compacts: answers a hook of Claude Code, and the extension of pi, whose event is standard input
    Hook(HookArgs),
    /// List the sessions of agents in the user's home, the newest first
    Sessions(SessionsArgs),
    /// Search the messages of the agents' sessions in the user's home, or of the sessions in a store
    Search(Box<SearchArgs>),
    /// Serve searches, lists, sizes and previews of compactions to an agent, by the Model Context Protocol (MCP)
    #[cfg(feature = "mcp")]
    Mcp(Box<McpArgs>),
    /// Keep transcripts in a store, and compact them there without losing anything
    Session(Box<SessionArgs>),
    /// Print the completions of a shell for this program
    #[cfg(feature = "manual")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write a page for each command
    #[cfg(feature = "manual")]
    Man {
        /// Write epitome.1, epitome-compact.1 and the others to this folder
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

impl Command {
    /// Whether the command ends only on an interrupt, or at the end of its standard input.
    pub(crate) const fn is_endless(&self) -> bool {
        match self {
            #[cfg(feature = "mcp")]
            Self::Mcp(_) => true,
            Self::Show(args) => args.follow,
            #[cfg(feature = "inspect")]
            Self::Session(args) => matches!(args.command, SessionCommand::Inspect(_)),
            _ => false,
        }
    }

    /// Whether the command prints a text that may be longer than a screen.
    pub(crate) const fn is_long(&self) -> bool {
        match self {
            Self::Show(args) => !args.follow,
            Self::Diff(_) => true,
            Self::Session(args) => matches!(
                args.command,
                SessionCommand::Show { .. } | SessionCommand::Log { .. } | SessionCommand::Expand { .. }
            ),
            _ => false,
        }
    }

    /// The options of redaction, for a command that has them.
    pub(crate) const fn redact(&self) -> Option<&RedactArgs> {
        match self {
            Self::Compact(args) => Some(&args.redact),
            Self::Show(args) => Some(&args.redact),
            Self::Convert(args) => Some(&args.redact),
            Self::Handoff(args) => Some(&args.redact),
            Self::Hook(args) => Some(&args.redact),
            #[cfg(feature = "report")]
            Self::Report(args) => Some(&args.redact),
            Self::Search(args) => Some(&args.redact),
            #[cfg(feature = "mcp")]
            Self::Mcp(args) => Some(&args.redact),
            Self::Session(args) => args.command.redact(),
            _ => None,
        }
    }
}

/// Which conversations of which file.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct InputArgs {
    /// The transcript, JSON or JSONL; the id of a session, as `epitome sessions` lists it, or the beginning of one; latest is the
    /// newest session of an agent in this folder, else of all; - reads standard input [default: standard input, if it is not a
    /// terminal]
    pub(crate) file: Option<PathBuf>,
    /// The project of `latest`: a folder, or the last part of its name
    #[arg(long, value_name = "P")]
    pub(crate) project: Option<String>,
    #[command(flatten)]
    pub(crate) part: PartArgs,
}

/// Which conversations of a file.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct PartArgs {
    /// The format; auto is the format that the file looks like
    #[arg(long, value_name = "FORMAT", default_value = "auto", value_parser = names::from())]
    pub(crate) from: From,
    /// The place of the conversation in the document, as a JSON pointer: /history, /0/traj; in JSONL the first key is the number of a line
    /// from 0: /3
    #[arg(long, value_name = "POINTER")]
    pub(crate) at: Option<String>,
    /// Take every element of the array, or every line, as a conversation; --at then counts from there
    #[arg(long)]
    pub(crate) each: bool,
    /// In a session file with branches or side chains, the one that ends with this id; stats lists them
    #[arg(long, value_name = "ID")]
    pub(crate) leaf: Option<String>,
}

/// The budget of a request.
#[derive(Debug, Clone, Copy, ClapArgs)]
pub(crate) struct BudgetArgs {
    /// The window of the model, in tokens [default: 128000; with --keep alone, at least the size of the transcript]
    #[arg(long, allow_hyphen_values = true, value_name = "N", value_parser = tokens)]
    pub(crate) window: Option<u64>,
    /// The tokens that stay free for the answer [default: an eighth of the window, at most 8192]
    #[arg(long, allow_hyphen_values = true, value_name = "N", value_parser = tokens)]
    pub(crate) reserve: Option<u64>,
    /// Compact only above this size; P% is of window - reserve [default: 78% of the window; with --goal or --keep: now]
    #[arg(long, allow_hyphen_values = true, value_name = "N|P%")]
    pub(crate) trigger: Option<Amount>,
    /// The size to reach, in tokens; P% is of window - reserve [default: half of the trigger]
    #[arg(long, allow_hyphen_values = true, value_name = "N|P%", conflicts_with = "keep")]
    pub(crate) goal: Option<Amount>,
    /// The share of the transcript's own tokens to keep; of a session, of all that is in its log
    #[arg(long, allow_hyphen_values = true, value_name = "P%")]
    pub(crate) keep: Option<Percent>,
}

/// Which model the figures are for.
#[derive(Debug, ClapArgs)]
pub(crate) struct ModelArgs {
    /// The model that receives the request: it sets window, reserve, token counter and image rules, unless these are given
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// More models: a file of name,profile,encoding,window,input,output,image,prices,source,date
    #[arg(long, value_name = "FILE", requires = "model")]
    pub(crate) models: Option<PathBuf>,
}

impl InputArgs {
    /// The path from the command line; `-` if none was given.
    pub(crate) fn path(&self) -> &Path {
        self.file.as_deref().unwrap_or(Path::new("-"))
    }
}

impl PartArgs {
    /// Options for a file of this format, without a place in the document.
    pub(crate) const fn of_format(format: Format, each: bool) -> Self {
        Self { from: From(Some(format)), at: None, each, leaf: None }
    }

    /// Options for these conversations of `file`.
    pub(crate) fn of(&self, file: &Path) -> InputArgs {
        InputArgs { file: Some(file.to_owned()), project: None, part: self.clone() }
    }
}

fn strategy_help() -> String {
    let known = names::strategies();
    format!(
        "The strategies to try, in this order, until the goal is met; a list as text, JSON or TOML. Known: {known}"
    )
}

#[derive(Debug, ClapArgs)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) budget: BudgetArgs,
    #[arg(long, value_name = "A|B", default_value = "truncate", help = strategy_help())]
    pub(crate) strategy: String,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// The token counter: estimate, o200k_base, cl100k_base, o200k_harmony [default: that of --model, else estimate]
    #[arg(long, value_name = "T")]
    pub(crate) tokenizer: Option<String>,
}

/// The model that writes the summaries of `--strategy summarize`.
#[derive(Debug, ClapArgs)]
pub(crate) struct SummaryArgs {
    /// An endpoint that speaks Chat Completions, like https://api.openai.com/v1: it receives the messages to summarize, whole and
    /// unredacted. The environment variable EPITOME_SUMMARIZER_KEY has its key
    #[arg(long, value_name = "URL")]
    pub(crate) summarizer: Option<String>,
    /// The model that writes summaries [default: that of --model]
    #[arg(long, value_name = "M", requires = "summarizer")]
    pub(crate) summary_model: Option<String>,
    /// The window of that model, in tokens [default: 128000]
    #[arg(long, value_name = "N", value_parser = tokens, requires = "summarizer")]
    pub(crate) summary_window: Option<u64>,
    /// The instructions of that model: structured, brief, or a text of your own [default: structured]
    #[arg(long, value_name = "TEXT", requires = "summarizer")]
    pub(crate) summary_prompt: Option<String>,
    /// The subject that the summary should attend to most
    #[arg(long, value_name = "TEXT", requires = "summarizer")]
    pub(crate) focus: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CompactArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// Write the compacted transcript there, in the form of the input; - is standard output
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
    /// Replace the file of -o if there is one
    #[arg(long)]
    pub(crate) force: bool,
    /// Write the transcript in this format instead, as convert does; standard error lists the parts without a counterpart there
    #[arg(long, value_name = "FORMAT", value_parser = names::target())]
    pub(crate) to: Option<Format>,
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
    /// A message that no strategy may remove or shorten, with its group: its number from 0 (12), a range (3-5), id:ID of a call
    /// or response, source:NAME of its source; may be given more than once
    #[arg(long, value_name = "WHICH", conflicts_with = "each")]
    pub(crate) pin: Vec<Pin>,
    /// Print the reason of each verdict
    #[arg(long)]
    pub(crate) why: bool,
    #[command(flatten)]
    pub(crate) summary: SummaryArgs,
    /// The provider whose rules --repair follows [default: the profile of the format that is written]
    #[arg(long, value_name = "PROFILE", value_parser = names::profile())]
    pub(crate) profile: Option<Profile>,
    /// Also repair the written transcript: results without a call are removed, calls without a result get an aborted one; if the
    /// provider requires it, neighbours are merged, reasoning is removed, messages are inserted
    #[arg(long)]
    pub(crate) repair: bool,
    /// Count only the messages that verdicts depend on, for long transcripts and exact counters; the report marks all other
    /// figures as estimates. Not with --keep: a share of all tokens needs all counts
    #[arg(long, conflicts_with = "keep")]
    pub(crate) lazy: bool,
    /// Report only, even with -o
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// If the goal is missed, print the report, write nothing and end with exit code 6
    #[arg(long)]
    pub(crate) require_goal: bool,
    /// Report as JSON; there, a budget.trigger of null means: now
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) redact: RedactArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DiffArgs {
    /// The transcript, as `epitome show` takes it
    pub(crate) file: PathBuf,
    /// The other transcript; --from, --at and --leaf are for both
    pub(crate) other: PathBuf,
    /// The project of `latest`: a folder, or the last part of its name
    #[arg(long, value_name = "P")]
    pub(crate) project: Option<String>,
    #[command(flatten)]
    pub(crate) part: PartArgs,
    /// Report as JSON, without texts
    #[arg(long)]
    pub(crate) json: bool,
}

/// By what statistics are split up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    Turn,
    Tool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// Break the figures down: by turn, or by tool
    #[arg(long, value_name = "turn|tool", value_enum)]
    pub(crate) by: Option<By>,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// The token counter, beside the estimate; all: every counter, and its deviation [default: that of --model, else o200k_base]
    #[arg(long, value_name = "T")]
    pub(crate) tokenizer: Option<String>,
    /// Report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ValidateArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// The provider whose rules are checked [default: the profile of the file's format]
    #[arg(long, value_name = "PROFILE", value_parser = names::profile())]
    pub(crate) profile: Option<Profile>,
    /// Report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ConvertArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// The format to write
    #[arg(long, value_name = "FORMAT", value_parser = names::target())]
    pub(crate) to: Format,
    /// Write there instead of standard output
    #[arg(short, long, value_name = "OUT", default_value = "-")]
    pub(crate) output: PathBuf,
    /// Replace the file of -o if there is one
    #[arg(long)]
    pub(crate) force: bool,
    /// List the losses as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) redact: RedactArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct HandoffArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// The largest size of the document, in tokens
    #[arg(long, value_name = "N", default_value = "4000", value_parser = tokens)]
    pub(crate) tokens: u64,
    /// Write there instead of standard output
    #[arg(short, long, value_name = "OUT", default_value = "-")]
    pub(crate) output: PathBuf,
    /// Replace the file of -o if there is one
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) summary: SummaryArgs,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// The token counter: estimate, o200k_base, cl100k_base, o200k_harmony [default: that of --model, else estimate]
    #[arg(long, value_name = "T")]
    pub(crate) tokenizer: Option<String>,
    #[command(flatten)]
    pub(crate) redact: RedactArgs,
}
