//! The options that take secrets out of exported texts.

use std::path::PathBuf;

use clap::Args as ClapArgs;

#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct RedactArgs {
    /// Replace keys, tokens and passwords by [redacted:KIND]; standard error counts them by kind, and the parts that could not be
    /// searched
    #[arg(long)]
    pub(crate) redact: bool,
    /// Redact the entries of this file too: on each line a text, or a regular expression between slashes
    #[arg(long, value_name = "FILE")]
    pub(crate) redact_list: Option<PathBuf>,
}

impl RedactArgs {
    pub(crate) const fn is_asked(&self) -> bool {
        self.redact || self.redact_list.is_some()
    }
}
