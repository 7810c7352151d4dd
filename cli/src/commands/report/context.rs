//! The context over time: the contents of each request, if a request that fills the window is compacted first.

use epitome::core::message::Role;
use serde::Serialize;

use super::Asking;
use super::kind::ByKind;
use crate::budget::Asked;
use crate::commands::eval::{CountedMessage, Stored};
use crate::failure::Result;
use crate::report::Pays;

/// The requests of a conversation, replayed with one strategy.
#[derive(Debug, Serialize)]
pub(super) struct Context {
    pub(super) strategy: String,
    /// The size of the model's window, in tokens.
    pub(super) window: u64,
    /// The trigger: a request with more tokens is compacted first.
    pub(super) trigger: u64,
    pub(super) requests: Vec<Request>,
    pub(super) compactions: Vec<Compaction>,
}

/// A request to the model. The last one has no answer if the conversation does not end with a message of the model.
#[derive(Debug, Serialize)]
pub(super) struct Request {
    /// The number of messages before the request.
    pub(super) messages_before: u64,
    pub(super) tokens: ByKind,
}

/// A compaction before a request.
#[derive(Debug, Serialize)]
pub(super) struct Compaction {
    /// The number of messages before the request.
    pub(super) messages_before: u64,
    pub(super) before: ByKind,
    pub(super) after: ByKind,
    /// Tokens of the unchanged messages at the beginning: a prompt cache still covers them.
    pub(super) stable_prefix_tokens: u64,
    /// Price and saving of the compaction, if the prices of the model are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pays: Option<Pays>,
}

/// Divisor of the growth: a request that no pass brings under the trigger is compacted again after it has grown by an
/// eighth.
const AGAIN: u64 = 8;

impl Context {
    /// Replays these messages.
    pub(super) fn of(messages: &[CountedMessage], asking: &Asking) -> Result<Self> {
        let (strategies, counter, prices) = (&asking.first, &asking.measure.counter, asking.prices());
        let asked = &Asked::new(&asking.window, 0)?;
        let mut session = Stored::new(counter)?;
        let (mut tokens, mut said, mut try_above) = (ByKind::default(), 0, 0);
        let (mut requests, mut compactions) = (Vec::new(), Vec::new());
        for at in requests_of(messages) {
            let new = messages.get(said..at).unwrap_or_default();
            session.append_up_to(messages.iter().take(at))?;
            new.iter().for_each(|counted| tokens.add_all(&ByKind::of(&counted.message, &**counter)));
            said = at;
            let messages_before = at as u64;
            let before = tokens;
            if before.total() > asked.budget.trigger().max(try_above) {
                if let Some(stable_prefix_tokens) = session.compact_to_prefix(strategies, asked)? {
                    tokens = ByKind::default();
                    session.visible().for_each(|live| {
                        tokens.add_all(&ByKind::of(&live.entry.message, &**counter));
                    });
                    let figures = (before.total(), tokens.total(), stable_prefix_tokens);
                    let pays = prices.as_ref().map(|prices| Pays::new(prices, figures, 0));
                    compactions.push(Compaction {
                        messages_before,
                        before,
                        after: tokens,
                        stable_prefix_tokens,
                        pays,
                    });
                }
                let is_under = tokens.total() <= asked.budget.trigger();
                try_above = if is_under { 0 } else { tokens.total() + tokens.total() / AGAIN };
            }
            requests.push(Request { messages_before, tokens });
        }
        Ok(Self {
            strategy: strategies.names().join(" | "),
            window: asked.budget.window(),
            trigger: asked.budget.trigger(),
            requests,
            compactions,
        })
    }

    /// Number of requests with more than `tokens`.
    pub(super) fn over(&self, tokens: u64) -> u64 {
        self.requests.iter().filter(|request| request.tokens.total() > tokens).count() as u64
    }

    /// The size of the largest request.
    pub(super) fn largest(&self) -> u64 {
        let before = self.compactions.iter().map(|compaction| compaction.before.total());
        self.requests.iter().map(|request| request.tokens.total()).chain(before).max().unwrap_or(0)
    }
}

/// Number of messages before each request. Consecutive messages of the model are one answer. After other messages at
/// the end there is a request without an answer.
fn requests_of(messages: &[CountedMessage]) -> impl Iterator<Item = usize> {
    let by_model = |counted: &CountedMessage| counted.message.role() == Role::Assistant;
    let pairs = messages.iter().zip(messages.iter().skip(1)).enumerate();
    let answered = pairs.filter(move |(_, (before, next))| by_model(next) && !by_model(before));
    let open = messages.last().filter(|last| !by_model(last)).map(|_| messages.len());
    answered.map(|(at, _)| at + 1).chain(open)
}
