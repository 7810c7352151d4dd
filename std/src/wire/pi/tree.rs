//! Which entries are one conversation, and in which order. What they say is not held.

use core::ops::Range;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use crate::message::Str;
use crate::wire::WireError;
use crate::wire::expect::{expect_object, number, optional_text};
use crate::wire::forest::{self, Forest, Names};
use crate::wire::json::{self, Kind};
use crate::wire::transcript::{Compactions, ToolCompaction, Ways};

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

/// What a model sees at some time: a summary, and the messages behind what that tells.
#[derive(Debug)]
pub(super) struct Visible<'p> {
    summary: Option<usize>,
    spoken: &'p [usize],
    pub(super) compactions: Compactions,
    /// Whether a compaction came after it.
    pub(super) is_before: bool,
}

/// The same, by its place among the messages on the way to an end.
#[derive(Debug, Default)]
struct Stage {
    summary: Option<usize>,
    spoken: Range<usize>,
    compactions: usize,
}

/// What there is on the way to an end.
#[derive(Debug, Default)]
struct Way {
    /// The messages, without summaries.
    spoken: Vec<usize>,
    stages: Vec<Stage>,
    /// Each compaction, and the entry that it is.
    compactions: Vec<(usize, ToolCompaction)>,
}

impl Visible<'_> {
    /// The entries, in the order in which a model sees them.
    pub(super) fn seen(&self) -> impl Iterator<Item = usize> {
        self.summary.into_iter().chain(self.spoken.iter().copied())
    }

    pub(super) fn count(&self) -> usize {
        self.spoken.len().saturating_add(usize::from(self.summary.is_some()))
    }

    pub(super) fn last(&self) -> Option<usize> {
        self.spoken.last().copied().or(self.summary)
    }
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
    fn way(&self, leaf: usize) -> Way {
        let mut way = Way::default();
        let mut now = Stage::default();
        for node in self.forest.path(leaf) {
            if !self.holds.get(node).is_some_and(|holds| *holds) {
                continue;
            }
            let Some((first, tokens)) = self.cuts.get(&node) else {
                way.spoken.push(node);
                continue;
            };
            now.spoken.end = way.spoken.len();
            let kept = |first: usize| way.spoken.partition_point(|spoken| *spoken < first);
            let kept = first.map_or(way.spoken.len(), kept).max(now.spoken.start);
            let mut compaction = ToolCompaction::new(0);
            let spoken = kept.saturating_sub(now.spoken.start);
            compaction.dropped =
                u64::try_from(spoken.saturating_add(usize::from(now.summary.is_some()))).ok();
            compaction.tokens_before = *tokens;
            way.compactions.push((node, compaction));
            let next = Stage { summary: Some(node), spoken: kept..0, compactions: way.compactions.len() };
            way.stages.push(core::mem::replace(&mut now, next));
        }
        now.spoken.end = way.spoken.len();
        way.stages.push(now);
        way
    }

    /// Visits all conversations: the one that ends with `active` first; then other ends in the order of the file, and what was
    /// there before each compaction. Most of them begin alike: what one sees is made when it is visited.
    pub(super) fn for_each_conversation(&self, active: usize, mut visit: impl FnMut(Visible<'_>)) {
        let mut listed: HashSet<usize> = HashSet::new();
        let mut ways = Ways::default();
        let mut lists = |way: &Way| {
            let newest_first = way.compactions.iter().rev().map(|(node, compaction)| (*node, compaction));
            ways.back(newest_first, Clone::clone)
        };
        if let Some(last) = self.forest.leaves().next_back() {
            lists(&self.way(last));
        }
        let mut is_first = true;
        for leaf in core::iter::once(active).chain(self.forest.leaves()) {
            let way = self.way(leaf);
            let all = lists(&way);
            for (later, stage) in way.stages.iter().rev().enumerate() {
                let visible = Visible {
                    summary: stage.summary,
                    spoken: way.spoken.get(stage.spoken.clone()).unwrap_or_default(),
                    compactions: all.first(stage.compactions),
                    is_before: later > 0,
                };
                if core::mem::take(&mut is_first) || visible.seen().any(|node| !listed.contains(&node)) {
                    listed.extend(visible.seen());
                    visit(visible);
                }
            }
        }
    }
}
