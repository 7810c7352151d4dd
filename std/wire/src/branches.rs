//! Trees of messages in exports, which are only read. Each path from the root to an end is a conversation.
//!
//! The trees of session files are in the folders of their formats: there a compaction hides the messages before it.

use std::sync::Arc;

use epitome_message::{Message, Str};

use super::forest::{Forest, narrow};
use super::transcript::{
    Conversation, Relation, SourceRecordId, Stage, Stages, Transcript, TranscriptEntry, UsageEntry,
};
use super::{Format, WireError};

/// The messages of a tree. Each node stands behind its parent.
#[derive(Debug, Default)]
pub(crate) struct Branches {
    forest: Forest,
    nodes: Vec<Node>,
    entries: Vec<TranscriptEntry>,
    /// The last nodes of the conversations.
    ends: Vec<u32>,
}

#[derive(Debug)]
struct Node {
    name: Str,
    /// The first entry of the node, and the number of its entries.
    first: u32,
    own: u32,
    /// Number of messages from the root to this node, the node's own included.
    depth: u32,
    /// The place of the node in the file.
    at: u32,
}

/// A node in an order in which each node stands behind its parent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ordered<T> {
    /// The place of the node in the file.
    pub(crate) at: usize,
    /// The number of the parent in this order.
    pub(crate) parent: Option<usize>,
    pub(crate) node: T,
}

impl Branches {
    /// Adds a node with this name, from the place `at` in the file, with the messages of its record. `parent` is the
    /// number of a node that was added before.
    pub(crate) fn push(
        &mut self,
        (at, parent): (usize, Option<usize>),
        name: Str,
        said: Option<(SourceRecordId, Vec<Message>)>,
    ) {
        let first = narrow(self.entries.len());
        if let Some((record, messages)) = said {
            let pieces = messages.into_iter().zip(0..);
            self.entries.extend(pieces.map(|(message, piece)| TranscriptEntry::of(message, record, piece)));
        }
        let own = narrow(self.entries.len()).saturating_sub(first);
        let before = parent.and_then(|parent| self.nodes.get(parent)).map_or(0, |node| node.depth);
        self.nodes.push(Node { name, first, own, depth: before.saturating_add(own), at: narrow(at) });
        self.forest.push(parent);
    }

    /// Adds the conversation to `transcript`, and after it a branch for each other end that has messages. The
    /// conversation ends with the message `leaf`, or else with `current`, or else with the last end in the file.
    /// Returns whether `leaf` is the conversation's id or the id of a message.
    pub(crate) fn add_to(
        mut self,
        transcript: &mut Transcript,
        (format, path): (Format, &str),
        (id, label): (Str, Str),
        (leaf, current): (Option<&str>, Option<Str>),
    ) -> bool {
        let named = |name: &str| self.nodes.iter().position(|node| node.name == name);
        let leaf_end = leaf.and_then(named);
        let is_leaf = leaf_end.is_some() || leaf.is_some_and(|leaf| id == leaf);
        let mut ends: Vec<_> = self.forest.leaves().collect();
        let last = |end: &usize| self.nodes.get(*end).map(|node| node.at);
        let current = current.and_then(|current| named(&current));
        let active = leaf_end.or(current).or_else(|| ends.iter().copied().max_by_key(last));
        ends.retain(|end| Some(*end) != active && self.nodes.get(*end).is_some_and(|node| node.depth > 0));
        self.ends = active.into_iter().chain(ends).map(narrow).collect();
        // A file may have very many entries and nodes.
        self.entries.shrink_to_fit();
        self.nodes.shrink_to_fit();
        let (file, base) = (Arc::new(self), transcript.conversations.len());
        let of = |(at, end): (usize, &u32)| {
            let stage = Stage { of: Arc::<Self>::clone(&file), number: narrow(at) };
            let node = file.nodes.get(*end as usize);
            let len = node.map_or(0, |node| node.depth as usize);
            let mut branch = Conversation::new(format, path).with_stage(&stage, len);
            branch.id = node.map(|node| node.name.clone()).unwrap_or_default();
            (branch.relation, branch.active) = (Relation::Branch(base), false);
            branch
        };
        let mut found: Vec<_> = file.ends.iter().enumerate().map(of).collect();
        if found.is_empty() {
            found.push(Conversation::new(format, path));
        }
        if let Some(first) = found.first_mut() {
            (first.id, first.label, first.relation, first.active) = (id, label, Relation::Own, true);
        }
        transcript.push_all(found);
        is_leaf
    }

    /// The entries of a node.
    fn own(&self, node: usize) -> core::ops::Range<u32> {
        self.nodes.get(node).map_or(0..0, |node| node.first..node.first.saturating_add(node.own))
    }
}

impl Stages for Branches {
    fn entries(&self) -> &[TranscriptEntry] {
        &self.entries
    }

    fn places(&self, stage: u32) -> Vec<u32> {
        let end = self.ends.get(stage as usize).map(|end| *end as usize);
        let mut nodes: Vec<_> = end.into_iter().flat_map(|end| self.forest.up(end)).collect();
        nodes.reverse();
        nodes.into_iter().flat_map(|node| self.own(node)).collect()
    }

    fn reports(&self, _: u32, _: &[u32]) -> Vec<UsageEntry> {
        Vec::new()
    }

    fn holders(&self) -> Vec<u32> {
        let mut counts = vec![0_u32; self.nodes.len()];
        for end in &self.ends {
            if let Some(count) = counts.get_mut(*end as usize) {
                *count = count.saturating_add(1);
            }
        }
        // A node stands behind its parent.
        for node in (0..counts.len()).rev() {
            let own = counts.get(node).copied().unwrap_or_default();
            if let Some(count) = self.forest.parent(node).and_then(|parent| counts.get_mut(parent)) {
                *count = count.saturating_add(own);
            }
        }
        let of = |(node, count): (usize, &u32)| {
            let count = *count;
            self.own(node).map(move |_| count)
        };
        counts.iter().enumerate().flat_map(of).collect()
    }
}

/// Orders the nodes so that each stands behind its parent, and otherwise in the order of the file. Each node comes with
/// its parent's place in the file.
///
/// # Errors
/// `Shape` for a node that is its own ancestor.
pub(crate) fn parents_first<T>(nodes: Vec<(Option<usize>, T)>) -> Result<Vec<Ordered<T>>, WireError> {
    let count = nodes.len();
    let mut children = vec![Vec::new(); count];
    // The next nodes with the new numbers of their parents, in reverse order.
    let mut next = Vec::new();
    for (node, (parent, _)) in nodes.iter().enumerate().rev() {
        match parent.and_then(|parent| children.get_mut(parent)) {
            Some(of_parent) => of_parent.push(node),
            None => next.push((node, None)),
        }
    }
    let mut nodes: Vec<_> = nodes.into_iter().map(|(_, node)| Some(node)).collect();
    let mut ordered = Vec::with_capacity(count);
    while let Some((node, parent)) = next.pop() {
        let (at, number) = (node, ordered.len());
        let own = nodes.get_mut(at).and_then(Option::take);
        ordered.extend(own.map(|node| Ordered { at, parent, node }));
        let children = children.get_mut(at).map(core::mem::take).unwrap_or_default();
        next.extend(children.into_iter().map(|child| (child, Some(number))));
    }
    match ordered.len() == count {
        true => Ok(ordered),
        false => Err(WireError::shape("messages name each other as the message before them, in a circle")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_stand_first_in_the_order_of_the_file() {
        let nodes =
            vec![(Some(3), "b"), (None, "c"), (Some(0), "d"), (None, "a"), (Some(3), "e"), (Some(9), "f")];
        let ordered = parents_first(nodes).unwrap().into_iter().map(|it| (it.at, it.parent, it.node));
        let expected = [
            (1, None, "c"),
            (3, None, "a"),
            (0, Some(1), "b"),
            (2, Some(2), "d"),
            (4, Some(1), "e"),
            (5, None, "f"),
        ];
        assert_eq!(ordered.collect::<Vec<_>>(), expected);
        assert!(parents_first(vec![(None, "a"), (Some(2), "b"), (Some(1), "c")]).is_err());
        assert!(parents_first(vec![(Some(0), "a")]).is_err());
    }
}
