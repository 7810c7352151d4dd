//! Which entries are one conversation, and in which order. What they say is not held.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use crate::message::Str;
use crate::wire::WireError;
use crate::wire::expect::{expect_object, number, optional_text};
use crate::wire::forest::{self, Forest, Names};
use crate::wire::json::{self, Kind};
use crate::wire::transcript::ToolCompaction;

/// An entry, as far as the forest needs it.
#[derive(Debug)]
pub(super) struct Line<'a> {
    /// Whether it is what a file begins with.
    pub(super) is_session: bool,
    pub(super) name: Option<Cow<'a, str>>,
    parent: Option<Cow<'a, str>>,
    pub(super) content: Content<'a>,
}

/// What an entry says.
#[derive(Debug)]
pub(super) enum Content<'a> {
    Nothing,
    Message(&'a str),
    /// A summary in the place of what is before the entry `first`.
    Compaction {
        summary: &'a str,
        first: Option<Cow<'a, str>>,
        tokens_before: Option<u64>,
    },
}

impl<'a> Line<'a> {
    pub(super) fn of(raw: &'a str) -> Result<Self, WireError> {
        expect_object(raw, "an entry")?;
        let names = &["type", "id", "parentId", "message", "summary", "firstKeptEntryId", "tokensBefore"];
        let [kind, id, parent, said, summary, first, before] = json::fields(raw, names)?;
        let content = match (kind, said, summary) {
            (Some("\"message\""), Some(said), _) if Kind::of(said) == Kind::Object => Content::Message(said),
            (Some("\"compaction\""), _, Some(summary)) if Kind::of(summary) == Kind::Text => {
                let first = optional_text(raw, first, "firstKeptEntryId")?;
                Content::Compaction { summary, first, tokens_before: number(before) }
            }
            _ => Content::Nothing,
        };
        let is_session = kind == Some("\"session\"");
        let parent = if is_session { None } else { optional_text(raw, parent, "parentId")? };
        Ok(Self { is_session, name: optional_text(raw, id, "id")?, parent, content })
    }
}

/// All entries of a file but the first: some forty bytes for each.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// The name of the session.
    pub(super) id: Str,
    forest: Forest,
    /// Which entries hold a message that a model is to see.
    holds: Vec<bool>,
    names: Names,
    /// Of compactions: the first entry that they kept, and the size before them.
    cuts: HashMap<usize, (Option<usize>, Option<u64>)>,
}

/// What a model sees at some time.
#[derive(Debug)]
pub(super) struct Visible {
    pub(super) seen: Vec<usize>,
    pub(super) compactions: Vec<ToolCompaction>,
    /// Whether a compaction came after it.
    pub(super) is_before: bool,
}

impl Tree {
    /// Adds an entry. `holds` is whether it holds a message.
    pub(super) fn push(&mut self, line: &Line<'_>, holds: bool) {
        let find = |name: &Option<Cow<'_, str>>| name.as_deref().and_then(|name| self.names.find(name));
        let parent = match line.name {
            Some(_) => find(&line.parent),
            // Without names every entry follows the one before it.
            None => self.holds.len().checked_sub(1),
        };
        let cut = match &line.content {
            Content::Compaction { first, tokens_before, .. } => Some((find(first), *tokens_before)),
            _ => None,
        };
        let number = self.forest.push(parent);
        self.holds.push(holds);
        self.cuts.extend(cut.map(|cut| (number, cut)));
        if let Some(name) = &line.name {
            self.names.insert(name, number);
        }
    }

    /// The entry that `leaf` names; without a name the one that the file goes on with: its last message.
    pub(super) fn end(&self, leaf: Option<&str>) -> Result<Option<usize>, WireError> {
        match leaf {
            Some(leaf) => forest::named(&self.names, leaf, ("entry", "id")).map(Some),
            None => Ok(self.holds.iter().rposition(|holds| *holds)),
        }
    }

    /// What a model saw before each compaction on the way to `leaf`, and what it sees there: the summary of the last, what
    /// it kept, and what came after it.
    fn visible(&self, leaf: usize) -> Vec<Visible> {
        let mut stages = Vec::new();
        let (mut seen, mut compactions): (Vec<usize>, Vec<ToolCompaction>) = (Vec::new(), Vec::new());
        for node in self.forest.path(leaf) {
            if !self.holds.get(node).is_some_and(|holds| *holds) {
                continue;
            }
            let Some((first, tokens)) = self.cuts.get(&node) else {
                seen.push(node);
                continue;
            };
            let kept =
                first.and_then(|first| seen.iter().position(|seen| *seen >= first)).unwrap_or(seen.len());
            let mut compaction = ToolCompaction::new(0);
            compaction.dropped = u64::try_from(kept).ok();
            compaction.tokens_before = *tokens;
            stages.push(Visible { seen: seen.clone(), compactions: compactions.clone(), is_before: true });
            compactions.push(compaction);
            seen.drain(..kept);
            seen.insert(0, node);
        }
        stages.push(Visible { seen, compactions, is_before: false });
        stages
    }

    /// All conversations: the one that ends with `active` first; then other ends in the order of the file, and what was there
    /// before each compaction.
    pub(super) fn conversations(&self, active: usize) -> Vec<Visible> {
        let mut listed: HashSet<usize> = HashSet::new();
        let mut found = Vec::new();
        for leaf in core::iter::once(active).chain(self.forest.leaves()) {
            for visible in self.visible(leaf).into_iter().rev() {
                let is_new = visible.seen.iter().any(|node| !listed.contains(node));
                if is_new || found.is_empty() {
                    listed.extend(&visible.seen);
                    found.push(visible);
                }
            }
        }
        found
    }
}
