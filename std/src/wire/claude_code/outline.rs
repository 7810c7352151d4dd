//! The outline of a Claude Code session: its tree, and where its lines begin. What they say is not held.

use std::sync::Arc;

use super::session::{Reports, said};
use super::tree::Tree;
use crate::message::Str;
use crate::wire::WireError;
use crate::wire::outline::{Outline, OutlinedConversation, Outliner, Place, TreeLines};

/// The lines of a file that have a place in its tree.
#[derive(Debug, Default)]
pub(super) struct Lines {
    tree: Tree,
    lines: TreeLines,
}

impl Outliner for Lines {
    fn push(&mut self, text: &Arc<str>, offset: u64) -> Result<(), WireError> {
        if let Some(said) = said(&mut self.tree, text, text)? {
            self.lines.push(offset, said.usage.is_some());
        }
        Ok(())
    }

    fn finish(self: Box<Self>, leaf: Option<&str>) -> Result<Outline, WireError> {
        let mut outline = Outline::default();
        let Some(active) = self.tree.end(leaf)? else { return Ok(outline) };
        for (at, end) in self.tree.ends(active).into_iter().enumerate() {
            let lines = self.tree.gather(end);
            let messages = usize::try_from(self.tree.count(&lines)).unwrap_or(usize::MAX);
            let mut found = match at {
                0 => OutlinedConversation::active(Str::default(), self.tree.title(end), messages),
                _ => {
                    let label = self.tree.label(end, &lines);
                    OutlinedConversation::other(label, self.tree.relation(end, 0), messages)
                }
            };
            found.named_by = self.lines.offset(end);
            if at == 0 {
                found.compactions = self.tree.compactions(&[end]).remove(&end).unwrap_or_default();
                self.place(&lines, &mut outline);
            }
            outline.conversations.push(found);
        }
        Ok(outline)
    }
}

impl Lines {
    /// Says where the messages of these lines stand, and what was reported of them.
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
