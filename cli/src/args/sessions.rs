//! The command line of `sessions`.

use clap::Args as ClapArgs;

#[derive(Debug, ClapArgs)]
pub(crate) struct SessionsArgs {
    /// Only those of this project: a folder, or the last part of its name
    #[arg(long, value_name = "P")]
    pub(crate) project: Option<String>,
    /// How many to list, the newest first; 0 for all
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,
    /// List as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
