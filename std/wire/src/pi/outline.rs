//! The outline of a pi session: its tree, and the offsets of its entries, without their contents.

use std::sync::Arc;

use epitome_message::Str;

use super::session::{BEFORE, said};
use super::tree::Tree;
use crate::WireError;
use crate::json::Spans;
use crate::outline::{Outline, OutlinedConversation, Outliner, Place, TreeLines};
use crate::transcript::Relation;

/// The entries of a file except the first.
#[derive(Debug, Default)]
pub(super) struct Lines {
    tree: Tree,
    lines: TreeLines,
    /// The long values of the current line.
    spans: Spans,
}

impl Outliner for Lines {
    fn push(&mut self, text: &Arc<str>, offset: u64) -> Result<(), WireError> {
        if let Some(said) = said((&mut self.tree, &mut self.spans), text, text)? {
            self.lines.push(offset, said.usage.is_some());
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, leaf: Option<&str>) -> Result<Outline, WireError> {
        let mut outline = Outline::default();
        let Some(active) = self.tree.end(leaf)? else { return Ok(outline) };
        let compactions = self.tree.compactions();
        for visible in self.tree.conversations(active) {
            let label = if visible.is_before { Str::from(BEFORE) } else { Str::default() };
            let count = self.tree.count(visible.end);
            if !outline.conversations.is_empty() {
                let mut other = OutlinedConversation::other(label, Relation::Branch(0), count);
                other.named_by = self.tree.last(visible.end).and_then(|last| self.lines.offset(last));
                outline.conversations.push(other);
                continue;
            }
            let seen = self.tree.seen(visible.end);
            let offsets = seen.iter().filter_map(|entry| self.lines.offset(*entry));
            outline.places = offsets.map(|offset| Place::whole(offset, 1)).collect();
            let report = |(at, entry): (usize, &usize)| Some((at, self.lines.report(*entry)?));
            outline.reports = seen.iter().enumerate().filter_map(report).collect();
            let mut found = OutlinedConversation::active(self.tree.id.clone(), label, count);
            found.compactions = compactions(&self.tree, visible.end);
            outline.conversations.push(found);
        }
        Ok(outline)
    }
}
