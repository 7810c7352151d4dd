//! What is taken out of what is exported.

use std::path::PathBuf;

use clap::Args as ClapArgs;

#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct RedactArgs {
    /// Put [redacted:KIND] in the place of keys, tokens and passwords; standard error says how many of each kind, and what
    /// could not be searched
    #[arg(long)]
    pub(crate) redact: bool,
    /// The same, and also what this file lists: on each line a text, or a regular expression between slashes
    #[arg(long, value_name = "FILE")]
    pub(crate) redact_list: Option<PathBuf>,
}

impl RedactArgs {
    pub(crate) const fn is_asked(&self) -> bool {
        self.redact || self.redact_list.is_some()
    }
}
