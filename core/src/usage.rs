//! Token reports of providers, and the size of the next request.
//!
//! Three questions, three types: [`UsageLedger`] has the size of the next request, which triggers read. Its [`Spend`]
//! has the tokens that were paid for. [`Tally`] is the plain rule "the input of the latest report". None of them uses
//! the sum of all inputs as a size.

mod correction;
mod ledger;
mod report;
mod spend;
#[cfg(test)]
mod tests;

pub use correction::Correction;
pub use ledger::{ModelKey, SavedUsageLedger, Size, Stamp, UsageHandle, UsageLedger};
pub use report::{AnthropicTokens, GeminiTokens, OpenAiTokens, Usage};
pub use spend::{Spend, Tally};
