//! Summaries: their writers, their input, and their checks.

mod digest;
mod handle;
mod handoff;
mod identifiers;
mod instructions;
mod listing;
mod pieces;
mod prompted;
mod quotes;
mod span;
mod summarizer;
mod text;
mod transcript;
mod write;

pub use digest::DigestSummarizer;
pub use instructions::Instructions;
pub use prompted::PromptedSummarizer;
pub use summarizer::{Summarizer, SummaryError, SummaryRequest};
pub use write::SummaryWriter;

pub(crate) use text::is_ledger;
pub(crate) use write::DEADLINE;

use identifiers::Identifiers;
use text::{Earlier, checked};
