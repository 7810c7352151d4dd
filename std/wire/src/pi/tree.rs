//! The entries of each conversation and their order, without their contents.

use std::borrow::Cow;
use std::collections::HashSet;

use epitome_message::Str;

use crate::WireError;
use crate::expect::{expect_object, number, optional_text};
use crate::forest::{self, Forest, NONE, Names, narrow};
use crate::json::{self, Spans, ValueKind};
use crate::transcript::{CompactionTree, ToolCompaction, ToolCompactions};

/// The members of an entry that the forest needs.
#[derive(Debug)]
pub(super) struct Line<'a> {
    /// Whether it is the first entry of a file.
    pub(super) is_session: bool,
    pub(super) name: Option<Cow<'a, str>>,
    parent: Option<Cow<'a, str>>,
    pub(super) content: Content<'a>,
}

/// The content of an entry.
#[derive(Debug)]
pub(super) enum Content<'a> {
    Nothing,
    Message(&'a str),
    /// A summary that replaces the messages before the entry `first`.
    Compaction {
        summary: &'a str,
        first: Option<Cow<'a, str>>,
        tokens_before: Option<u64>,
    },
}

impl<'a> Line<'a> {
    /// Reads a line, and adds its long values to `spans`.
    pub(super) fn of(spans: &mut Spans, raw: &'a str) -> Result<Self, WireError> {
        expect_object(raw, "an entry")?;
        let names = &["type", "id", "parentId", "message", "summary", "firstKeptEntryId", "tokensBefore"];
        let [kind, id, parent, said, summary, first, before] = json::noted_fields(spans, raw, names)?;
        let content = match (kind, said, summary) {
            (Some("\"message\""), Some(said), _) if ValueKind::of(said) == ValueKind::Object => {
                Content::Message(said)
            }
            (Some("\"compaction\""), _, Some(summary)) if ValueKind::of(summary) == ValueKind::Text => {
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

/// All entries of a file except the first, some sixty bytes each.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// The id of the session.
    pub(super) id: Str,
    forest: Forest,
    nodes: Vec<Node>,
    names: Names,
    cuts: Vec<Cut>,
    compactions: CompactionTree,
}

/// An entry, and the path to it from the first entry.
#[derive(Debug, Clone, Copy)]
struct Node {
    /// Whether it has a message that a model sees.
    holds: bool,
    /// Number of messages on the path, its own included, without summaries.
    depth: u32,
    /// The last entry on the path with a message; [`NONE`] if there is none.
    last: u32,
    /// The number of the last compaction on the path, its own included.
    cut: Option<u32>,
    /// An entry further back on the path, so that a search reaches a far entry in a few steps.
    jump: u32,
    /// Number of entries on the path.
    steps: u32,
    /// Number of messages of the entries before it in the file.
    entry: u32,
}

/// A compaction.
#[derive(Debug, Clone, Copy)]
struct Cut {
    node: usize,
    /// Number of messages on the path that this compaction and all earlier ones have dropped.
    dropped: u32,
}

/// The visible entries at an entry: a summary, and the messages behind the messages that it covers. The entry
/// determines all of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Visible {
    /// The last entry.
    pub(super) end: usize,
    /// Whether a compaction came after it.
    pub(super) is_before: bool,
}

impl Tree {
    /// Adds an entry. `holds` is whether it has a message.
    pub(super) fn push(&mut self, line: &Line<'_>, holds: bool) {
        let find = |name: &Option<Cow<'_, str>>| name.as_deref().and_then(|name| self.names.find(name));
        let parent = match line.name {
            Some(_) => find(&line.parent),
            // Without ids every entry follows the one before it.
            None => self.nodes.len().checked_sub(1),
        };
        let cut = match &line.content {
            Content::Compaction { first, tokens_before, .. } => Some((find(first), *tokens_before)),
            _ => None,
        };
        let number = self.forest.push(parent);
        let mut node = self.node_after(parent);
        node.holds = holds;
        if let Some((first, tokens)) = cut {
            node.cut = Some(self.cut(number, parent, (first, tokens)));
        } else if holds {
            (node.depth, node.last) = (node.depth.saturating_add(1), narrow(number));
        }
        self.nodes.push(node);
        if let Some(name) = &line.name {
            self.names.insert(name, number);
        }
    }

    /// An entry behind another, without a message.
    fn node_after(&self, parent: Option<usize>) -> Node {
        let entry = self.nodes.last().map_or(0, |last| last.entry.saturating_add(u32::from(last.holds)));
        let Some((number, node)) = parent.and_then(|parent| Some((parent, self.nodes.get(parent)?))) else {
            return Node { holds: false, depth: 0, last: NONE, cut: None, jump: NONE, steps: 0, entry };
        };
        // Two jumps of equal length are combined to one of the double length.
        let far = |jump: u32| self.nodes.get(jump as usize);
        let double = far(node.jump).and_then(|one| {
            let next = far(one.jump)?;
            let length = node.steps.saturating_sub(one.steps);
            Some(one.jump).filter(|_| length == one.steps.saturating_sub(next.steps))
        });
        Node { jump: double.unwrap_or(narrow(number)), steps: node.steps.saturating_add(1), entry, ..*node }
    }

    /// Adds the compaction at `number`, and returns its own number.
    fn cut(
        &mut self,
        number: usize,
        parent: Option<usize>,
        (first, tokens): (Option<usize>, Option<u64>),
    ) -> u32 {
        let node = parent.and_then(|parent| self.nodes.get(parent));
        let (depth, before) = node.map_or((0, None), |node| (node.depth, node.cut));
        let start = self.start(before);
        // The kept messages begin with this entry, or, if it is on another path, with the first entry behind it.
        let kept = first.map(|first| self.back(parent, |node, _| node < first));
        let kept = kept.map_or(depth, |node| self.depth(node)).max(start);
        let mut compaction = ToolCompaction::new(0);
        let dropped = kept.saturating_sub(start).saturating_add(u32::from(before.is_some()));
        compaction.dropped = Some(dropped.into());
        compaction.tokens_before = tokens;
        self.cuts.push(Cut { node: number, dropped: kept });
        self.compactions.push(before, compaction)
    }

    /// Number of messages that a compaction and all earlier ones have dropped.
    fn start(&self, cut: Option<u32>) -> u32 {
        cut.and_then(|cut| self.cuts.get(cut as usize)).map_or(0, |cut| cut.dropped)
    }

    fn depth(&self, node: Option<usize>) -> u32 {
        node.and_then(|node| self.nodes.get(node)).map_or(0, |node| node.depth)
    }

    /// The nearest entry on the path back for which `is_there` is true. It has to be true for all entries before it.
    fn back(&self, from: Option<usize>, is_there: impl Fn(usize, &Node) -> bool) -> Option<usize> {
        let mut here = from?;
        loop {
            let node = self.nodes.get(here)?;
            if is_there(here, node) {
                return Some(here);
            }
            let far = node.jump as usize;
            here = match self.nodes.get(far).is_some_and(|node| !is_there(far, node)) {
                true => far,
                false => self.forest.parent(here)?,
            };
        }
    }

    /// The entry with the id `leaf`. Without an id, the end of the active conversation: the last message of the file.
    pub(super) fn end(&self, leaf: Option<&str>) -> Result<Option<usize>, WireError> {
        match leaf {
            Some(leaf) => forest::named(&self.names, leaf, ("entry", "id")).map(Some),
            None => Ok(self.nodes.iter().rposition(|node| node.holds)),
        }
    }

    /// The beginning of the visible entries at `end`: the summary, and the number of hidden messages on the path.
    fn view(&self, end: usize) -> (Option<usize>, u32) {
        let cut = self.nodes.get(end).and_then(|node| self.cuts.get(node.cut? as usize));
        (cut.map(|cut| cut.node), cut.map_or(0, |cut| cut.dropped))
    }

    /// The entries that a model sees at `end`, in order.
    pub(super) fn seen(&self, end: usize) -> Vec<usize> {
        let (summary, start) = self.view(end);
        let mut seen = Vec::new();
        let mut here = Some(end).filter(|end| self.depth(Some(*end)) > start);
        while let Some((number, node)) = here.and_then(|here| Some((here, self.nodes.get(here)?))) {
            let is_said = node.last == narrow(number);
            if is_said {
                seen.push(number);
            }
            here = self.forest.parent(number).filter(|before| self.depth(Some(*before)) > start);
        }
        seen.extend(summary);
        seen.reverse();
        seen
    }

    /// Number of the entries that a model sees at `end`.
    pub(super) fn count(&self, end: usize) -> usize {
        let (summary, start) = self.view(end);
        let spoken = self.depth(Some(end)).saturating_sub(start) as usize;
        spoken.saturating_add(usize::from(summary.is_some()))
    }

    /// The last entry that a model sees at `end`.
    pub(super) fn last(&self, end: usize) -> Option<usize> {
        let (summary, start) = self.view(end);
        let last = self.nodes.get(end).filter(|node| node.depth > start).map(|node| node.last as usize);
        last.or(summary)
    }

    /// The number of the message of an entry, from 0.
    pub(super) fn entry(&self, node: usize) -> u32 {
        self.nodes.get(node).map_or(u32::MAX, |node| node.entry)
    }

    /// The compactions before an entry.
    pub(super) fn compactions(&mut self) -> impl Fn(&Self, usize) -> ToolCompactions + use<> {
        let lists = core::mem::take(&mut self.compactions).lists();
        move |tree, end| lists(tree.nodes.get(end).and_then(|node| node.cut))
    }

    /// All conversations. The first one ends with `active`. Then come the other ends in the order of the file, and the
    /// conversations before each compaction, if they have a message that no earlier one has.
    pub(super) fn conversations(&self, active: usize) -> Vec<Visible> {
        let (mut found, mut listed) = (Vec::new(), Listed::of(self));
        let mut passed = vec![false; self.cuts.len()];
        for leaf in core::iter::once(active).chain(self.forest.leaves()) {
            let (mut end, mut is_before) = (Some(leaf), false);
            while let Some(here) = end {
                let (summary, start) = self.view(here);
                let is_new = listed.add(self, here, (summary, start));
                if is_new || found.is_empty() {
                    found.push(Visible { end: here, is_before });
                }
                // If another path has already passed this compaction, everything before it was visited.
                let cut = self.nodes.get(here).and_then(|node| passed.get_mut(node.cut? as usize));
                end =
                    cut.is_some_and(|passed| !core::mem::replace(passed, true)).then_some(summary).flatten();
                end = end.and_then(|cut| self.forest.parent(cut));
                is_before = true;
            }
        }
        found
    }

    /// For each entry, the number of the conversations with these ends that have its message.
    pub(super) fn holders(&self, ends: &[usize]) -> Vec<u32> {
        let mut counts = vec![0_u32; self.nodes.len()];
        let mut minus = vec![0_u32; self.nodes.len()];
        let mut summaries = vec![0_u32; self.nodes.len()];
        let add = |counts: &mut Vec<u32>, node: Option<usize>| {
            if let Some(count) = node.and_then(|node| counts.get_mut(node)) {
                *count = count.saturating_add(1);
            }
        };
        for end in ends {
            let (summary, start) = self.view(*end);
            add(&mut summaries, summary);
            if self.depth(Some(*end)) > start {
                add(&mut counts, Some(*end));
                add(&mut minus, self.back(Some(*end), |_, node| node.depth <= start));
            }
        }
        for node in (0..self.nodes.len()).rev() {
            let own = counts.get(node).copied().unwrap_or_default();
            let own = own.saturating_sub(minus.get(node).copied().unwrap_or_default());
            if let Some(before) = self.forest.parent(node).and_then(|parent| counts.get_mut(parent)) {
                *before = before.saturating_add(own);
            }
            let is_said = self.nodes.get(node).is_some_and(|found| found.last == narrow(node));
            if let Some(count) = counts.get_mut(node) {
                *count = if is_said { own } else { summaries.get(node).copied().unwrap_or_default() };
            }
        }
        let holding = self.nodes.iter().zip(counts).filter(|(node, _)| node.holds);
        holding.map(|(_, count)| count).collect()
    }
}

/// The messages that any conversation has.
struct Listed {
    /// For each entry, the nearest entry on the path back that no conversation has, the entry itself included.
    open: Vec<u32>,
    summaries: HashSet<usize>,
}

impl Listed {
    fn of(tree: &Tree) -> Self {
        let open = |(number, node): (usize, &Node)| match node.last == narrow(number) {
            true => narrow(number),
            false => tree.forest.parent(number).map_or(NONE, narrow),
        };
        let open = tree.nodes.iter().enumerate().map(open).collect();
        Self { open, summaries: HashSet::new() }
    }

    /// Lists the messages that a model sees at `end`. Returns whether one of them was new.
    fn add(&mut self, tree: &Tree, end: usize, (summary, start): (Option<usize>, u32)) -> bool {
        let mut is_new = summary.is_some_and(|summary| self.summaries.insert(summary));
        let mut here = self.nearest(end);
        while let Some(node) = here.filter(|node| tree.depth(Some(*node)) > start) {
            is_new = true;
            if let Some(open) = self.open.get_mut(node) {
                *open = tree.forest.parent(node).map_or(NONE, narrow);
            }
            here = self.nearest(node);
        }
        is_new
    }

    /// The nearest entry that is not listed. The search shortens the steps for later searches.
    fn nearest(&mut self, from: usize) -> Option<usize> {
        let mut here = from;
        loop {
            let next = *self.open.get(here)?;
            if next as usize == here {
                return Some(here);
            }
            let after = self.open.get(next as usize).copied().unwrap_or(NONE);
            *self.open.get_mut(here)? = after;
            here = after as usize;
        }
    }
}
