//! The command line of `hook`.

use clap::Args as ClapArgs;

use super::RedactArgs;
use crate::amount::tokens;

#[derive(Debug, ClapArgs)]
pub(crate) struct HookArgs {
    /// The largest list of identifiers, in tokens
    #[arg(long, value_name = "N", default_value = "1500", value_parser = tokens)]
    pub(crate) tokens: u64,
    #[command(flatten)]
    pub(crate) redact: RedactArgs,
}
