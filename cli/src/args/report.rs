//! The command line of `report`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::{ModelArgs, OptionalStoreArgs, PartArgs, RedactArgs};
use crate::amount::{Percent, share, tokens};

#[derive(Debug, ClapArgs)]
pub(crate) struct ReportArgs {
    /// The transcripts, JSON or JSONL, or folders of them; - reads standard input; latest is the newest session of an agent in this
    /// folder, else of all. A report on several conversations is an overview, without their messages [default: standard input]
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) store: OptionalStoreArgs,
    /// Only this session of the store
    #[arg(long, value_name = "ID", requires = "store")]
    pub(crate) session: Option<String>,
    /// Write the page there; - is standard output
    #[arg(short, long, value_name = "OUT", default_value = "report.html")]
    pub(crate) output: PathBuf,
    /// Replace the file of -o if there is one
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) part: PartArgs,
    /// A strategy to show, as `compact` takes it; may be given more than once. The context over time is drawn with the first
    /// [default: agent, chat, truncate]
    #[arg(long, value_name = "A|B")]
    pub(crate) strategy: Vec<String>,
    /// The shares of the tokens that a strategy may keep
    #[arg(long, value_name = "P,P", default_value = "10,25,50", value_delimiter = ',', value_parser = share)]
    pub(crate) keep: Vec<Percent>,
    /// The window of the model, in tokens [default: that of --model, else 128000]
    #[arg(long, value_name = "N", value_parser = tokens)]
    pub(crate) window: Option<u64>,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// The token counter: estimate, o200k_base, cl100k_base, o200k_harmony [default: that of --model, else o200k_base]
    #[arg(long, value_name = "T")]
    pub(crate) tokenizer: Option<String>,
    /// Print the figures of the page as JSON instead of writing it, without the messages
    #[arg(long, conflicts_with = "output")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) redact: RedactArgs,
}
