//! The validity sweep: every contender at 57 limits, with the faults of its results.

use epitome_core::message::Role;

use super::contender::{Contender, Limits, Unit};
use super::judge::{Given, Verdict};
use super::said::{Said, turns};
use crate::generated::Pool;

/// Number of turns of the conversation, each with two calls at once.
pub const TURNS: usize = 60;

/// The limits, in messages. A limit in tokens is the mean size of so many messages, by the contender's own count.
pub const LIMITS: core::ops::RangeInclusive<u64> = 4..=60;

/// The conversation of the sweep.
#[must_use]
pub fn conversation(pool: &Pool) -> Vec<Said> {
    turns(pool, SEED, TURNS, 1).concat()
}

const SEED: u64 = 57;

/// Results of one contender.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Swept {
    /// Number of limits at which the contender was called.
    pub limits: u32,
    /// Number of limits at which the contender refused with an error.
    pub refused: u32,
    /// Number of limits at which a result had no call.
    pub orphans: u32,
    /// Number of limits at which a call had no result.
    pub unanswered: u32,
    /// Number of limits at which an answer was there without its request.
    pub unasked: u32,
    /// Number of limits at which the system message was missing.
    pub system_lost: u32,
    /// Number of limits at which only the system message was left.
    pub empty: u32,
    /// Number of limits at which the first message after the system message was not the user's.
    pub not_user: u32,
    /// Number of limits at which the result exceeded the limit by the contender's own count; `None` for a limit of tool
    /// uses.
    pub over: Option<u32>,
}

impl Swept {
    /// Adds the result at one limit.
    pub fn add(&mut self, verdict: &Verdict, over: Option<bool>) {
        let count = |there: &mut u32, wrong: bool| *there += u32::from(wrong);
        count(&mut self.limits, true);
        count(&mut self.orphans, verdict.orphans > 0);
        count(&mut self.unanswered, verdict.unanswered > 0);
        count(&mut self.unasked, verdict.unasked > 0);
        count(&mut self.system_lost, !verdict.system_kept);
        count(&mut self.empty, verdict.first.is_none());
        count(&mut self.not_user, verdict.first.is_some_and(|first| first != Role::User));
        if let Some(over) = over {
            count(self.over.get_or_insert(0), over);
        }
    }

    /// Adds a limit at which the contender returned an error.
    pub const fn add_refusal(&mut self) {
        self.limits += 1;
        self.refused += 1;
    }

    /// Whether all calls had their results, and all results their calls, at every limit.
    #[must_use]
    pub const fn is_paired(&self) -> bool {
        self.orphans + self.unanswered == 0
    }

    /// Whether there was no fault at any limit.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        let wrong = self.unasked + self.system_lost + self.empty + self.not_user + self.over.unwrap_or(0);
        self.is_paired() && wrong == 0
    }
}

/// The limits for a contender that counts `own` tokens in the whole conversation of `messages` messages.
#[must_use]
pub fn limits(at: u64, own: u64, messages: usize) -> Limits {
    let tokens = own * at / (messages as u64).max(1);
    Limits { tokens, messages: at, tool_uses: at - 4 }
}

/// Sweeps one contender.
#[must_use]
pub fn sweep(contender: &dyn Contender, given: &Given) -> Swept {
    let (mut swept, unit) = (Swept::default(), contender.unit());
    let prepared = contender.prepare(given.said());
    assert_eq!(prepared.given(), given.said(), "{} was given something else", contender.call());
    let own = prepared.own_tokens().unwrap_or(0);
    for at in LIMITS {
        let limit = limits(at, own, given.said().len()).of(unit);
        match prepared.returned(limit) {
            Ok(returned) => {
                let over = (unit != Unit::ToolUses).then(|| returned.own.unwrap() > limit);
                swept.add(&given.judge(&returned.said), over);
            }
            Err(_) => swept.add_refusal(),
        }
    }
    swept
}
