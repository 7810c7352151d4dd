//! A conversation to be compacted: its messages, grouped and counted, and the budget of a share.

use epitome::core::message::PartView;
use epitome::core::{OpenCallTree, Protection, TokenCounter, Tokens, floors};
use epitome::message::Message;
use epitome::tokens::measure_with_parts;

use super::command::Given;
use super::words::text_of;
use crate::amount::Percent;
use crate::args::BudgetArgs;
use crate::budget::Asked;
use crate::failure::Result;
use crate::scan::{self, Index};

/// A message with its text and its size.
#[derive(Debug, Clone)]
pub(in crate::commands) struct CountedMessage {
    pub(in crate::commands) message: Message,
    /// All text of the message.
    pub(super) text: String,
    tokens: Tokens,
    part_tokens: Vec<Tokens>,
}

impl CountedMessage {
    pub(in crate::commands) fn of(message: Message, counter: &dyn TokenCounter) -> Self {
        let (amount, part_tokens) = measure_with_parts(&message, counter);
        let text = text_of(&message);
        Self { message, text, tokens: amount.tokens, part_tokens }
    }

    pub(in crate::commands) const fn tokens(&self) -> u64 {
        self.tokens.as_u64()
    }
}

/// The messages before a compaction.
pub(super) struct Prompt<'a> {
    pub(super) messages: Vec<&'a Message>,
    pub(super) counted: Vec<&'a CountedMessage>,
    pub(super) index: Index,
}

impl<'a> Prompt<'a> {
    pub(super) fn of(messages: impl IntoIterator<Item = &'a CountedMessage>) -> Result<Self> {
        let index = Index::with_parts(Vec::new(), OpenCallTree::new(), Vec::new());
        let mut prompt = Self { messages: Vec::new(), counted: Vec::new(), index };
        for counted in messages {
            let parts = &counted.part_tokens;
            let size =
                |ordinal: u32, _: PartView<'_>| parts.get(ordinal as usize).copied().unwrap_or(Tokens::ZERO);
            scan::placed(prompt.index.push_with_parts(&counted.message, counted.tokens, size))?;
            prompt.messages.push(&counted.message);
            prompt.counted.push(counted);
        }
        Ok(prompt)
    }

    pub(super) fn tokens(&self) -> u64 {
        self.index.view().tokens()
    }

    /// The messages of the request, in the form for external programs.
    pub(super) fn given(&self) -> Vec<Given> {
        let positions = self.index.view().projection().flatten();
        let given = positions.filter_map(|position| {
            let counted = (*self.counted.get(position as usize)?).clone();
            Some(Given { position: Some(position), counted })
        });
        given.collect()
    }

    /// The budget that keeps this share of the tokens.
    pub(super) fn budget(&self, keep: Percent) -> Result<Asked> {
        let args = BudgetArgs { window: None, reserve: None, trigger: None, goal: None, keep: Some(keep) };
        Asked::new(&args, self.tokens())
    }

    /// Whether the hard floor allows a strategy to keep no more than this share.
    pub(super) fn can_be_met(&self, keep: Percent) -> bool {
        let goal = self.budget(keep).ok().and_then(|asked| asked.budget.goal());
        goal.is_some_and(|goal| self.can_be_left(goal))
    }

    /// Whether the hard floor is at most `goal` tokens.
    pub(super) fn can_be_left(&self, goal: u64) -> bool {
        floors(self.index.view(), Protection::default()).hard <= goal
    }
}
