//! The kinds of content that a page has a colour for.

use epitome::core::attribution::SourceKind;
use epitome::core::message::{PartView, Role};
use epitome::core::{TokenCounter, measure_each};
use epitome::message::Message;
use serde::{Serialize, Serializer};

/// The kind of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    Instructions,
    User,
    Answers,
    Reasoning,
    Calls,
    Results,
    Media,
    /// Messages that a compaction wrote: summaries, digests, ledgers.
    Summaries,
    Other,
}

impl Kind {
    /// All kinds, in the order of charts and lists.
    pub(super) const ALL: [Self; 9] = [
        Self::Instructions,
        Self::Summaries,
        Self::User,
        Self::Answers,
        Self::Reasoning,
        Self::Calls,
        Self::Results,
        Self::Media,
        Self::Other,
    ];

    /// The name for people.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Instructions => "instructions",
            Self::User => "user",
            Self::Answers => "answers",
            Self::Reasoning => "reasoning",
            Self::Calls => "tool calls",
            Self::Results => "tool results",
            Self::Media => "media",
            Self::Summaries => "summaries",
            Self::Other => "other",
        }
    }

    /// The class in the style sheet.
    pub(super) const fn class(self) -> &'static str {
        match self {
            Self::Instructions => "k-instructions",
            Self::User => "k-user",
            Self::Answers => "k-answers",
            Self::Reasoning => "k-reasoning",
            Self::Calls => "k-calls",
            Self::Results => "k-results",
            Self::Media => "k-media",
            Self::Summaries => "k-summaries",
            Self::Other => "k-other",
        }
    }

    fn of(part: PartView<'_>, message: &Message) -> Self {
        if message.attribution().source == SourceKind::Compaction {
            return Self::Summaries;
        }
        match part {
            PartView::Text(_) => match message.role() {
                Role::System | Role::Developer => Self::Instructions,
                Role::Assistant => Self::Answers,
                Role::Tool => Self::Results,
                _ => Self::User,
            },
            PartView::Reasoning(_) => Self::Reasoning,
            PartView::ToolCall(_) => Self::Calls,
            PartView::ToolResult(_) => Self::Results,
            PartView::Media(_) => Self::Media,
            PartView::Compaction(_) => Self::Summaries,
            _ => Self::Other,
        }
    }
}

/// Tokens by kind, in the order of [`Kind::ALL`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ByKind([u64; Kind::ALL.len()]);

/// A map by name, without the kinds that have no tokens.
impl Serialize for ByKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.rows().filter(|(_, tokens)| *tokens > 0))
    }
}

impl ByKind {
    /// Tokens of a message by kind. The framing of the message counts for its first part.
    pub(super) fn of(message: &Message, counter: &(dyn TokenCounter + Send + Sync)) -> Self {
        let (mut by_kind, mut first, mut parts) = (Self::default(), None, 0);
        let amount = measure_each(message, counter, &mut |part, size| {
            let kind = Kind::of(part, message);
            first.get_or_insert(kind);
            parts += size.as_u64();
            by_kind.add(kind, size.as_u64());
        });
        by_kind.add(first.unwrap_or(Kind::Other), amount.tokens.as_u64().saturating_sub(parts));
        by_kind
    }

    fn add(&mut self, kind: Kind, tokens: u64) {
        let rows = Kind::ALL.iter().zip(&mut self.0);
        rows.filter(|(one, _)| **one == kind).for_each(|(_, sum)| *sum += tokens);
    }

    pub(super) fn add_all(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, more)| *sum += more);
    }

    pub(super) fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = (Kind, u64)> {
        Kind::ALL.into_iter().zip(self.0)
    }
}
