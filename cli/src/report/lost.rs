//! Losses by kind and source: whole groups, and parts with the tokens that they lost.

use epitome::core::attribution::SourceKind;
use epitome::core::{Index, PartKind};
use serde::Serialize;

use super::GroupDetail;
use crate::filled::Filled;

/// A kind of group or part with losses.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct LossRow {
    pub(crate) kind: &'static str,
    pub(crate) source: SourceKind,
    pub(crate) count: u32,
    pub(crate) tokens: u64,
}

/// The rows for these groups, and for the parts that are shortened.
pub(super) fn rows(index: Index<'_>, details: &[GroupDetail], filled: Option<&Filled>) -> Vec<LossRow> {
    let groups = index.groups().zip(details).filter(|(_, detail)| matches!(detail.verdict, 'D' | 'R'));
    let groups = groups.map(|(group, _)| (group.kind().as_str(), group.source(), group.tokens().as_u64()));
    let parts = filled.into_iter().flat_map(|filled| &filled.shortened);
    let parts = parts.map(|part| (part.kind.as_str(), part.source, part.freed));
    let mut rows: Vec<LossRow> = Vec::new();
    for (kind, source, tokens) in groups.chain(parts) {
        match rows.iter_mut().find(|row| row.kind == kind && row.source == source) {
            Some(row) => {
                row.count = row.count.saturating_add(1);
                row.tokens = row.tokens.saturating_add(tokens);
            }
            None => rows.push(LossRow { kind, source, count: 1, tokens }),
        }
    }
    rows.sort_by_key(|row| place_of(row.kind));
    rows
}

/// The order of kinds: groups before parts, each in the order of the table.
fn place_of(kind: &str) -> usize {
    let groups = super::text::KINDS.iter().map(|(kind, _)| kind.as_str());
    let parts = PARTS.iter().map(|kind| kind.as_str());
    groups.chain(parts).position(|known| known == kind).unwrap_or(usize::MAX)
}

const PARTS: [PartKind; 5] =
    [PartKind::ToolResult, PartKind::ToolInput, PartKind::Reasoning, PartKind::Media, PartKind::Text];
