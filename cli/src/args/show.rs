//! The command line of `show`.

use clap::Args as ClapArgs;
use regex::Regex;

use super::{InputArgs, RedactArgs};

#[derive(Debug, ClapArgs)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// Only this turn; turn 0 is everything before the first request
    #[arg(long, value_name = "N")]
    pub(crate) turn: Option<u32>,
    /// Only messages in which this regular expression matches: texts, reasoning, arguments, results, names and ids; exit 1
    /// if there is none. (?i) before it ignores case
    #[arg(long, value_name = "RE", value_parser = pattern)]
    pub(crate) grep: Option<Regex>,
    /// Follow a session file: print new messages, until Ctrl-C or until the file is gone
    #[arg(long, conflicts_with = "each")]
    pub(crate) follow: bool,
    /// Print calls and results whole
    #[arg(long)]
    pub(crate) full: bool,
    #[command(flatten)]
    pub(crate) redact: RedactArgs,
}

fn pattern(text: &str) -> Result<Regex, String> {
    Regex::new(text).map_err(|error| match error {
        // The error of the crate shows the place on several lines; its last line has the reason.
        regex::Error::Syntax(why) => {
            why.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
        }
        other => other.to_string(),
    })
}
