//! The command line of `bench`.

use core::num::NonZeroU32;

use clap::Args as ClapArgs;
use epitome::core::Profile;

use super::{BudgetArgs, InputArgs, ModelArgs, names};
use crate::amount::{Amount, Percent, positive, tokens};

#[derive(Debug, ClapArgs)]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// The window of the model, in tokens [default: 128000; without --goal, at least the size of the transcript]
    #[arg(long, allow_hyphen_values = true, value_name = "N", value_parser = tokens)]
    pub(crate) window: Option<u64>,
    /// The tokens that stay free for the answer [default: an eighth of the window, at most 8192]
    #[arg(long, allow_hyphen_values = true, value_name = "N", value_parser = tokens)]
    pub(crate) reserve: Option<u64>,
    /// The size to reach, in tokens; P% is of window - reserve
    #[arg(long, allow_hyphen_values = true, value_name = "N|P%", conflicts_with = "keep")]
    pub(crate) goal: Option<Amount>,
    /// The share of the transcript's own tokens to keep
    #[arg(long, allow_hyphen_values = true, value_name = "P%", default_value = "50%")]
    pub(crate) keep: Percent,
    /// A strategy to measure, as `compact` takes it; may be given more than once [default: each strategy without a model and
    /// without required parameters, and a combination of two]
    #[arg(long, value_name = "A|B")]
    pub(crate) strategy: Vec<String>,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// The token counter: estimate, o200k_base, cl100k_base, o200k_harmony [default: that of --model, else estimate]
    #[arg(long, value_name = "T")]
    pub(crate) tokenizer: Option<String>,
    /// The provider whose rules are checked [default: the profile of the file's format]
    #[arg(long, value_name = "PROFILE", value_parser = names::profile())]
    pub(crate) profile: Option<Profile>,
    /// How often each stage is measured [default: for half a second, at least 3 times and at most 31]
    #[arg(long, value_name = "N", value_parser = positive::<NonZeroU32>)]
    pub(crate) rounds: Option<NonZeroU32>,
    /// Report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl BenchArgs {
    /// The budget options in the form of those of `compact`.
    pub(crate) fn budget(&self) -> BudgetArgs {
        BudgetArgs {
            window: self.window,
            reserve: self.reserve,
            trigger: None,
            goal: self.goal,
            keep: if self.goal.is_some() { None } else { Some(self.keep) },
        }
    }
}
