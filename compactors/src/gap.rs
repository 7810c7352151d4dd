//! Gaps of a plan, and their fillers.

use core::fmt;
use core::time::Duration;
use std::boxed::Box;
use std::format;
use std::string::String;
use std::sync::Arc;
use std::vec::Vec;

use async_trait::async_trait;
use epitome_core::{SummaryGap, Tokens};
use epitome_std::compaction::CompactionCx;
use epitome_std::message::{Message, Part, Str};
use epitome_std::models::Prices;
use epitome_std::session::{SessionError, SessionErrorKind};
use epitome_std::wire::ConversionLoss;

use crate::summary::DEADLINE;
use crate::{Summarizer, SummaryError, SummaryWriter};

/// Fills a gap of a plan with a message. [`Engine`](crate::Engine) calls it for each gap of a plan that it carries
/// out.
#[async_trait]
pub(crate) trait FillGap: Send + Sync + fmt::Debug {
    /// Writes the message of the gap, of at most the gap's allowance.
    async fn fill(&self, cx: GapCx<'_, '_>) -> Result<GapFilling, SessionError>;

    /// The price of a filling of `tokens` tokens for groups of `covered` tokens, in thousandths of an input token
    /// of the conversation's model: as [`Summarizer::price`].
    fn price(&self, prices: &Prices, covered: u64, tokens: u64, cached: Option<u64>) -> u64;
}

/// A gap of a plan, and the conversation around it.
#[derive(Clone, Copy)]
pub(crate) struct GapCx<'a, 'c> {
    pub(crate) gap: SummaryGap<'a>,
    /// The compaction of the plan, with the history that the plan was made for.
    pub(crate) compaction: &'a CompactionCx<'c>,
    /// The visible messages of the history, by position.
    pub(crate) messages: &'a [&'a Message],
    /// The name of the strategy, for errors.
    pub(crate) rule: &'a str,
    /// Exchanges that belong to the span but are not in its messages: late answers, and messages that a ledger
    /// covers.
    pub(crate) late: &'a [Vec<Message>],
}

impl GapCx<'_, '_> {
    pub(crate) fn no_summary(&self, error: SummaryError) -> SessionError {
        let context = format!("{}: there is no summary", self.rule);
        SessionError::new(SessionErrorKind::Unavailable, context).with_source(error)
    }
}

/// The message that replaces groups.
#[derive(Clone)]
pub(crate) struct GapFilling {
    /// Its parts.
    pub(crate) parts: Vec<Part>,
    /// Its size.
    pub(crate) tokens: Tokens,
    /// Parts of the conversation that its writer did not receive.
    pub(crate) losses: Vec<ConversionLoss>,
}

/// Text of a filling in a plan if its parts have no text.
const SEALED: &str = "[compaction]";

impl GapFilling {
    /// The text of the filling in a plan.
    pub(crate) fn text(&self) -> &str {
        let mut texts = self.parts.iter().rev().filter_map(|part| match part {
            Part::Text(text) => Some(text),
            Part::Compaction(left) => Some(&left.text),
            _ => None,
        });
        texts.find(|text| !text.trim().is_empty()).map_or(SEALED, Str::as_str)
    }
}

/// Fills gaps with texts: summaries of a summarizer, digests and ledgers.
#[derive(Debug, Clone)]
pub(crate) struct TextFiller {
    /// The summarizer. Without one there are only digests and ledgers.
    pub(crate) summarizer: Option<Arc<dyn Summarizer>>,
    pub(crate) deadline: Duration,
}

impl Default for TextFiller {
    fn default() -> Self {
        Self { summarizer: None, deadline: DEADLINE }
    }
}

impl TextFiller {
    pub(crate) async fn write(&self, cx: &GapCx<'_, '_>) -> Result<(String, Tokens), SessionError> {
        let compaction = cx.compaction;
        let history = compaction.as_history();
        let writer = SummaryWriter::new(history.counter())
            .with_history(history)
            .with_late_answers(cx.late)
            .with_summarizer(self.summarizer.as_deref())
            .with_deadline(self.deadline)
            .with_model(compaction.model())
            .with_live(compaction.request().map(|request| &**request))
            .with_focus(compaction.options().focus())
            .with_costs(compaction.costs());
        writer.write(&cx.gap, cx.messages).await.map_err(|error| cx.no_summary(error))
    }
}

#[async_trait]
impl FillGap for TextFiller {
    async fn fill(&self, cx: GapCx<'_, '_>) -> Result<GapFilling, SessionError> {
        let (text, tokens) = self.write(&cx).await?;
        Ok(GapFilling { parts: Vec::from([Part::Text(text.into())]), tokens, losses: Vec::new() })
    }

    fn price(&self, prices: &Prices, covered: u64, tokens: u64, cached: Option<u64>) -> u64 {
        let summarizer = self.summarizer.as_ref();
        summarizer.map_or(0, |summarizer| summarizer.price(prices, covered, tokens, cached))
    }
}
