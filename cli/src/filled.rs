//! A plan with notes in place of the parts that it shortens: its texts, and its size.

use std::collections::BTreeMap;

use epitome::core::attribution::SourceKind;
use epitome::core::{PartKind, PlannedEdit, ReadyPlan};
use epitome::history::{PartStandIn, shortened_messages};
use epitome::message::Message;
use epitome::wire::openai_chat;

use crate::failure::{Failure, Result};

/// Effects of a filled plan on the messages that stay.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filled {
    /// Tokens of the conversation after the plan.
    pub(crate) tokens_after: u64,
    /// For each position, the stand-ins of the message's parts.
    pub(crate) edits: BTreeMap<u32, Vec<PartStandIn>>,
    /// The summaries, by position.
    pub(crate) summaries: BTreeMap<u32, WrittenSummary>,
    /// The parts that stay with fewer tokens.
    pub(crate) shortened: Vec<ShortenedPart>,
    /// By leader: tokens of the summary that replaces this group and the groups after it.
    replaced: BTreeMap<u32, u64>,
}

/// A part that stays with fewer tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShortenedPart {
    pub(crate) kind: PartKind,
    /// Source of its group.
    pub(crate) source: SourceKind,
    leader: u32,
    /// Number of tokens that the part lost.
    pub(crate) freed: u64,
}

/// A written summary.
#[derive(Debug, Clone)]
pub(crate) struct WrittenSummary {
    /// The summary as a message of Chat Completions.
    pub(crate) message: String,
}

impl Filled {
    pub(crate) fn new(ready: &ReadyPlan<'_, '_>) -> Result<Self> {
        let left = ready.edits().filter_map(|edit| match edit {
            PlannedEdit::Part(part) => Some(part.stand_in.map_or(0, |stand_in| stand_in.tokens.as_u64())),
            _ => None,
        });
        let shortened = ready.plan().shortened().zip(left).map(|((part, _), left)| ShortenedPart {
            kind: part.kind(),
            source: part.group().map_or(SourceKind::Caller, |group| group.source()),
            leader: part.leader(),
            freed: part.tokens().as_u64().saturating_sub(left),
        });
        let (mut summaries, mut replaced) = (BTreeMap::new(), BTreeMap::new());
        let written = ready.edits().filter_map(|edit| match edit {
            PlannedEdit::Summary(summary) => Some((summary.position, summary.stand_in)),
            _ => None,
        });
        for (gap, (position, stand_in)) in ready.plan().summaries().zip(written) {
            let message = openai_chat::write(&Message::assistant(stand_in.text))
                .map_err(|error| Failure::input(error.to_string()))?
                .into_owned();
            summaries.insert(position, WrittenSummary { message });
            replaced.insert(gap.first.leader(), stand_in.tokens.as_u64());
        }
        Ok(Self {
            tokens_after: ready.tokens_after(),
            edits: shortened_messages(ready).into_iter().collect(),
            summaries,
            shortened: shortened.collect(),
            replaced,
        })
    }

    /// Tokens of the summary that replaces the group and the groups after it.
    pub(crate) fn replaced(&self, leader: u32) -> u64 {
        self.replaced.get(&leader).copied().unwrap_or_default()
    }

    /// Number of tokens that each group with shortened parts lost, by leader.
    pub(crate) fn freed(&self) -> BTreeMap<u32, u64> {
        let mut freed = BTreeMap::new();
        for part in &self.shortened {
            *freed.entry(part.leader).or_default() += part.freed;
        }
        freed
    }
}
