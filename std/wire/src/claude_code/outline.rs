//! The outline of a Claude Code session: its tree, and the offsets of its lines, without their contents.

use std::sync::Arc;

use epitome_message::Str;

use super::ends::Ends;
use super::session::{Reports, said};
use super::tree::Tree;
use crate::WireError;
use crate::json::Spans;
use crate::outline::{Outline, OutlinedConversation, Outliner, Place, TreeLines};

/// The lines of a file with a place in its tree.
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

    fn finish(self: Box<Self>, leaf: Option<&str>) -> Result<Outline, WireError> {
        let mut outline = Outline::default();
        let Some(active) = self.tree.end(leaf)? else { return Ok(outline) };
        let ends = Ends::of(&self.tree, active);
        let (titles, labels) = (self.tree.titles(), self.tree.labels());
        for (at, end) in ends.lines.iter().enumerate() {
            let messages = usize::try_from(ends.count(&self.tree, *end)).unwrap_or(usize::MAX);
            let mut found = match at {
                0 => OutlinedConversation::active(Str::default(), titles(*end), messages),
                _ => OutlinedConversation::other(labels(*end), self.tree.relation(*end, 0), messages),
            };
            found.named_by = self.lines.offset(*end);
            if at == 0 {
                let compactions = self.tree.compactions(|line| ends.count(&self.tree, line).into());
                found.compactions = compactions(self.tree.root(*end));
                self.place(&ends.lines(&self.tree, *end), &mut outline);
            }
            outline.conversations.push(found);
        }
        Ok(outline)
    }
}

impl Lines {
    /// Adds the places of the messages of these lines, and their reports of usage.
    fn place(&self, lines: &[usize], outline: &mut Outline) {
        let (mut reports, mut count) = (Reports::new(), 0_usize);
        for line in lines {
            let Some(offset) = self.lines.offset(*line) else { continue };
            let messages = self.tree.messages(*line);
            outline.places.push(Place::whole(offset, messages));
            count = count.saturating_add(usize::try_from(messages).unwrap_or(usize::MAX));
            if let Some(report) = self.lines.report(*line) {
                reports.push(self.tree.response(*line), (count.saturating_sub(1), report));
            }
        }
        outline.reports = reports.entries;
    }
}
