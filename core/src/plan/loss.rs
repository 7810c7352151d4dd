//! Losses of a plan, as figures: no message text.

use core::fmt;

use super::Plan;
use crate::attribution::SourceKind;
use crate::draft::{Cell, Verdict, left_of};
use crate::index::{GroupKind, PartKind};

/// The kind of lost content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum LossKind {
    /// A whole group of this kind.
    Group(GroupKind),
    /// A part of a kept group, removed or shortened.
    Part(PartKind),
}

impl LossKind {
    /// The name of the kind.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Group(kind) => kind.as_str(),
            Self::Part(kind) => kind.as_str(),
        }
    }
}

/// One row of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// The kind of the lost content.
    pub kind: LossKind,
    /// The source of the content: that of the first message of its group.
    pub source: SourceKind,
    /// The number of lost groups or parts.
    pub count: u32,
    /// The size of the lost groups; for parts, the least amount by which they become smaller.
    pub tokens: u64,
}

/// The losses of a plan: one row for each kind and source.
///
/// Displayed, it is one line such as `2 exchange (420 tokens), 1 tool_result of context (90 tokens)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LossReport {
    /// By kind, and within it by source.
    rows: [[(u32, u64); SOURCES.len()]; KINDS.len()],
    newest_steps: u32,
}

const KINDS: [LossKind; 11] = [
    LossKind::Group(GroupKind::System),
    LossKind::Group(GroupKind::User),
    LossKind::Group(GroupKind::Assistant),
    LossKind::Group(GroupKind::Exchange),
    LossKind::Group(GroupKind::Hosted),
    LossKind::Group(GroupKind::Summary),
    LossKind::Part(PartKind::ToolResult),
    LossKind::Part(PartKind::ToolInput),
    LossKind::Part(PartKind::Reasoning),
    LossKind::Part(PartKind::Media),
    LossKind::Part(PartKind::Text),
];

const SOURCES: [SourceKind; 5] =
    [SourceKind::Caller, SourceKind::History, SourceKind::Context, SourceKind::Tool, SourceKind::Compaction];

impl LossReport {
    pub(super) fn of(plan: &Plan<'_>) -> Self {
        let mut report = Self { rows: [[(0, 0); SOURCES.len()]; KINDS.len()], newest_steps: 0 };
        for group in plan.index.groups() {
            // Orphans are in no request, so that they cannot be lost from one.
            if plan.verdict(&group) != Verdict::Keep && group.kind() != GroupKind::Orphan {
                report.add(LossKind::Group(group.kind()), group.source(), group.tokens().as_u64());
                let held = plan.cell(group.leader()).has(Cell::HELD);
                report.newest_steps = report.newest_steps.saturating_add(u32::from(held));
            }
        }
        for (part, verdict) in plan.shortened() {
            let source = part.group().map_or(SourceKind::Caller, |group| group.source());
            let left = left_of(verdict, part.tokens()).as_u64();
            report.add(LossKind::Part(part.kind()), source, part.tokens().as_u64().saturating_sub(left));
        }
        report
    }

    /// The losses, by kind and source.
    pub fn rows(&self) -> impl Iterator<Item = Loss> {
        let rows = KINDS.iter().zip(&self.rows).flat_map(|(kind, of_kind)| {
            let sources = SOURCES.iter().zip(of_kind);
            sources.map(|(source, (count, tokens))| Loss {
                kind: *kind,
                source: *source,
                count: *count,
                tokens: *tokens,
            })
        });
        rows.filter(|row| row.count > 0)
    }

    /// Number of the newest steps that are hidden. These steps stay as long as the request fits.
    #[must_use]
    pub const fn newest_steps(&self) -> u32 {
        self.newest_steps
    }

    fn add(&mut self, kind: LossKind, source: SourceKind, tokens: u64) {
        let row = KINDS.iter().zip(&mut self.rows).find(|(known, _)| **known == kind).map(|(_, row)| row);
        let cell = row.and_then(|row| SOURCES.iter().zip(row).find(|(known, _)| **known == source));
        if let Some((_, (count, sum))) = cell {
            *count = count.saturating_add(1);
            *sum = sum.saturating_add(tokens);
        }
    }
}

impl fmt::Display for LossReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for Loss { kind, source, count, tokens } in self.rows() {
            write!(f, "{separator}{count} {}", kind.as_str())?;
            match source {
                SourceKind::Caller => {}
                SourceKind::History => f.write_str(" of history")?,
                SourceKind::Context => f.write_str(" of context")?,
                SourceKind::Tool => f.write_str(" of a tool")?,
                SourceKind::Compaction => f.write_str(" of a compaction")?,
            }
            write!(f, " ({tokens} tokens)")?;
            separator = ", ";
        }
        if separator.is_empty() { f.write_str("nothing") } else { Ok(()) }
    }
}
