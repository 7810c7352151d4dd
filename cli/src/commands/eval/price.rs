//! The price of the requests of a conversation.

use epitome::core::Budget;
use epitome::models::{Model, Prices};
use serde::Serialize;

use super::case::Case;
use super::replay::Paid;
use crate::amount::{Amount, Percent, counted, grouped};
use crate::args::{BudgetArgs, PriceArgs};
use crate::budget::Asked;
use crate::failure::{Failure, Result};
use crate::model;

/// The prices of a model, and the window that requests are compacted in.
pub(super) struct Pricing {
    model: String,
    pub(super) prices: Prices,
    /// Whether the prompt cache has expired when the user writes a message.
    pub(super) expires: bool,
    window: BudgetArgs,
    budget: Budget,
}

/// Price of the requests of all conversations without a compaction. Its fields are the program's JSON.
#[derive(Debug, Serialize)]
pub(super) struct Priced {
    model: String,
    /// The trigger: a request with more tokens is compacted first.
    trigger: u64,
    requests: u64,
    /// Price in tokens of input that no cache holds.
    input_tokens: u64,
    /// Number of conversations in which a request has more tokens than the trigger.
    pub(super) full: u64,
}

/// Price of the requests with one strategy.
#[derive(Debug, Serialize)]
pub(super) struct Price {
    input_tokens: u64,
    /// Price in percent of the price without a compaction.
    pub(super) percent: Option<f64>,
    pub(super) compactions: u64,
}

impl Pricing {
    pub(super) fn new(model: &Model, args: &PriceArgs) -> Result<Self> {
        let Some(prices) = model.prices else {
            return Err(Failure::input(format!(
                "--model: no prices are known for {}: name another model, or give a row with prices in --models FILE",
                model.name
            )));
        };
        let own = BudgetArgs { window: args.window, reserve: None, trigger: None, goal: None, keep: None };
        let window = model::budget(Some(model), &own);
        let budget = Asked::new(&window, 0)?.budget;
        let outlived = |lifetime| args.pause.is_some_and(|pause| u128::from(pause.0) > lifetime);
        let expires = prices.lifetime.is_some_and(|lifetime| outlived(lifetime.as_millis()));
        Ok(Self { model: model.name.clone(), prices, expires, window, budget })
    }

    /// The trigger: a request with more tokens is compacted first.
    pub(super) const fn trigger(&self) -> u64 {
        self.budget.trigger()
    }

    /// The budget that keeps this share of a full window.
    pub(super) fn asked(&self, keep: Percent) -> Result<Asked> {
        let trigger = self.trigger();
        let goal = keep.of(trigger).min(trigger.saturating_sub(1));
        let (trigger, goal) = (Some(Amount::Tokens(trigger)), Some(Amount::Tokens(goal)));
        Asked::new(&BudgetArgs { trigger, goal, ..self.window }, 0)
    }

    /// Price of the requests of all conversations without a compaction.
    pub(super) fn without_compaction(&self, cases: &[Case]) -> Priced {
        let all: Vec<Paid> =
            cases.iter().map(|case| Paid::without_compaction(&case.messages, self)).collect();
        Priced {
            model: self.model.clone(),
            trigger: self.trigger(),
            requests: all.iter().map(|paid| paid.requests).sum(),
            input_tokens: all.iter().map(|paid| paid.thousandths).sum::<u64>() / THOUSANDTHS,
            full: all.iter().filter(|paid| paid.largest > self.trigger()).count() as u64,
        }
    }
}

impl Priced {
    /// The price with one strategy, compared with this price.
    pub(super) fn beside(&self, paid: &Paid) -> Price {
        let input_tokens = paid.thousandths / THOUSANDTHS;
        let share = input_tokens as f64 / self.input_tokens as f64;
        let percent = (self.input_tokens > 0).then(|| (share * 1_000.0).round() / 10.0);
        Price { input_tokens, percent, compactions: paid.compactions }
    }

    pub(super) fn to_text(&self) -> String {
        let mut text = format!(
            "Price: of the input of {} of {}, in percent of the price without a compaction ({} at the price of input).\n\
             A request of more than {} is compacted to the same share of that. Passes: the number of these compactions.\n",
            counted(self.requests, "request"),
            self.model,
            counted(self.input_tokens, "token"),
            counted(self.trigger, "token"),
        );
        if self.full == 0 {
            text += &format!(
                "No conversation has a request of more than {}, so that the prices are equal: --window N makes it less\n",
                grouped(self.trigger)
            );
        }
        text
    }
}

/// Prices are in thousandths of an input token.
const THOUSANDTHS: u64 = 1_000;
