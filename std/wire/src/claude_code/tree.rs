//! The lines of each conversation and their order, without their contents.

use core::ops::Range;
use std::collections::HashMap;

use epitome_core::message::Role;
use epitome_message::{Message, Part, Str};

use super::line::Line;
use crate::WireError;
use crate::forest::{self, Forest, Key, KeyMap, NONE, Names, narrow, wide};
use crate::json;
use crate::transcript::{CompactionTree, Relation, ToolCompaction, ToolCompactions};

/// All lines with an id and a place in the tree, some eighty bytes each.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) forest: Forest,
    nodes: Vec<Node>,
    names: Names,
    /// The calls of each line, followed by the calls that it answers.
    ids: Vec<Key>,
    cuts: HashMap<usize, Cut>,
    /// The titles by the id of a conversation's last line.
    titles: KeyMap<Str>,
    /// Names of sub-agents' tasks, by their prompts.
    tasks: KeyMap<Str>,
    /// Keys of the texts of side-chain lines that have one text.
    asked: HashMap<usize, Key>,
}

/// A line.
#[derive(Debug, Clone, Copy)]
struct Node {
    /// The response of the line.
    response: Option<Key>,
    /// Index of the first id, number of calls, and number of answers.
    ids: u32,
    calls: u32,
    answers: u32,
    messages: u32,
    /// Number of messages of the lines before it.
    entry: u32,
    /// The first line of its response, on the path back over lines of the same response; the line itself if there is
    /// none.
    top: u32,
    /// The next linked line of its response; [`NONE`] if there is none.
    next: u32,
    /// The first line of its path.
    root: u32,
    /// The first line of its path with a message; [`NONE`] if there is none.
    speaker: u32,
    /// Whether the line only answers calls.
    only_answers: bool,
    is_side: bool,
    /// Whether the line has a message that a model sees.
    holds: bool,
}

/// A new beginning of the conversation: its cause, and the line before it.
#[derive(Debug)]
struct Cut {
    before: Option<usize>,
    trigger: Str,
    tokens_before: Option<u64>,
}

impl Tree {
    /// Whether a line has a place in the tree. A title is stored, and a copy of an earlier line skipped.
    pub(super) fn takes(&mut self, line: &Line<'_>) -> bool {
        if let Some((title, leaf)) = &line.title {
            self.titles.insert(self.names.key(leaf), Str::from(&**title));
            return false;
        }
        line.uuid.as_ref().is_some_and(|uuid| self.names.find(uuid).is_none())
    }

    /// Adds a line that has a place and these messages, and returns its number, from 0.
    pub(super) fn push(&mut self, line: &Line<'_>, messages: &[Message]) -> usize {
        let find = |name: &Option<_>| name.as_deref().and_then(|name| self.names.find(name));
        let (parent, logical) = (find(&line.parent), find(&line.logical));
        let after_boundary = parent.is_some_and(|parent| self.cuts.contains_key(&parent));
        let cut = match &line.boundary {
            Some(boundary) => Some(Cut {
                before: logical.or(parent),
                trigger: Str::from(&*boundary.trigger),
                tokens_before: boundary.tokens_before,
            }),
            None if line.is_summary && !after_boundary => {
                Some(Cut { before: parent.or(logical), trigger: Str::default(), tokens_before: None })
            }
            None => None,
        };
        let number = self.forest.push(parent.filter(|_| cut.is_none()));
        self.names.insert(line.uuid.as_deref().unwrap_or_default(), number);
        self.cuts.extend(cut.map(|cut| (number, cut)));
        let mut node = self.node_of(line, messages);
        self.hang(&mut node, number);
        self.nodes.push(node);
        if let (true, Some([Part::Text(text)])) = (line.is_side, messages.first().map(Message::parts)) {
            self.asked.insert(number, self.names.key(text));
        }
        number
    }

    /// Whether the conversation begins anew with this line.
    pub(super) fn is_cut(&self, line: usize) -> bool {
        self.cuts.contains_key(&line)
    }

    /// Sets the values that the line with this number inherits from its parent.
    fn hang(&mut self, node: &mut Node, number: usize) {
        let own = narrow(number);
        let before = self.nodes.last().map_or(0, |last| last.entry.saturating_add(last.messages));
        (node.entry, node.top, node.root) = (before, own, own);
        if let Some(parent) = self.forest.parent(number).and_then(|parent| self.nodes.get(parent)) {
            (node.root, node.speaker) = (parent.root, parent.speaker);
            if node.response.is_some() && node.response == parent.response {
                node.top = parent.top;
            }
        }
        if node.speaker == NONE && node.messages > 0 {
            node.speaker = own;
        }
        if node.top != own {
            // The list has no order: its users sort it into the order of the file.
            let top = self.nodes.get_mut(node.top as usize);
            if let Some(top) = top {
                node.next = core::mem::replace(&mut top.next, own);
            }
        }
    }

    fn node_of(&mut self, line: &Line<'_>, messages: &[Message]) -> Node {
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let first = self.ids.len();
        let parts = || messages.iter().flat_map(Message::parts);
        for part in parts() {
            if let Part::ToolCall(call) = part {
                self.ids.push(self.names.key(&call.id));
                if matches!(&*call.name, "Task" | "Agent") {
                    self.tasks.extend(task(&call.arguments, &self.names));
                }
            }
        }
        let calls = self.ids.len();
        let only_answers =
            !messages.is_empty() && messages.iter().all(|message| message.role() == Role::Tool);
        for part in parts().filter(|_| only_answers) {
            if let Part::ToolResult(result) = part {
                self.ids.push(self.names.key(&result.call_id));
            }
        }
        let response = messages.first().filter(|message| message.role() == Role::Assistant);
        Node {
            response: response.and_then(Message::response_id).map(|id| self.names.key(id)),
            ids: count(first),
            calls: count(calls.saturating_sub(first)),
            answers: count(self.ids.len().saturating_sub(calls)),
            messages: count(messages.len()),
            entry: 0,
            top: NONE,
            next: NONE,
            root: NONE,
            speaker: NONE,
            only_answers,
            is_side: line.is_side,
            holds: line.message.is_some(),
        }
    }

    /// The line with the id `leaf`, or without one the end of the active conversation.
    pub(super) fn end(&self, leaf: Option<&str>) -> Result<Option<usize>, WireError> {
        if let Some(leaf) = leaf {
            return forest::named(&self.names, leaf, ("line", "uuid")).map(Some);
        }
        let last = |side: bool| self.nodes.iter().rposition(|node| node.holds && (side || !node.is_side));
        // The file of a sub-agent has only its thread.
        Ok(last(false).or_else(|| last(true)))
    }

    /// The linked lines of a response, the first of which is `top`.
    pub(super) fn response_lines(&self, top: usize) -> impl Iterator<Item = usize> {
        let next = |line: &usize| self.nodes.get(*line).and_then(|node| wide(node.next));
        core::iter::successors(Some(top), next)
    }

    /// The first line of the response of a line.
    pub(super) fn top(&self, line: usize) -> usize {
        self.nodes.get(line).map_or(line, |node| node.top as usize)
    }

    /// The lines in the order of the conversation: the lines of a response before the answers to its calls.
    pub(super) fn in_order(&self, nodes: &[usize]) -> Vec<usize> {
        let mut ordered: Vec<usize> = Vec::with_capacity(nodes.len());
        let (mut response, mut answers) = (None, Vec::new());
        for node in nodes {
            match self.response(*node) {
                Some(own) if Some(own) == response => ordered.push(*node),
                None if response.is_some() && self.answers(*node).is_some() => answers.push(*node),
                own => {
                    ordered.append(&mut answers);
                    ordered.push(*node);
                    response = own;
                }
            }
        }
        ordered.append(&mut answers);
        ordered
    }

    /// The tool's compactions on the path to an end. All are before the first message. `count` returns the number of
    /// messages of the conversation that ends with a line.
    pub(super) fn compactions(&self, count: impl Fn(usize) -> u64) -> impl Fn(usize) -> ToolCompactions {
        let mut cuts: Vec<_> = self.cuts.iter().collect();
        cuts.sort_unstable_by_key(|(line, _)| **line);
        let (mut tree, mut numbers) = (CompactionTree::default(), HashMap::new());
        for (line, cut) in cuts {
            let mut compaction = ToolCompaction::new(0);
            compaction.trigger = cut.trigger.clone();
            compaction.tokens_before = cut.tokens_before;
            compaction.dropped = cut.before.map(&count);
            let before = cut.before.and_then(|before| numbers.get(&self.root(before)).copied());
            numbers.insert(*line, tree.push(before, compaction));
        }
        let lists = tree.lists();
        move |end| lists(numbers.get(&end).copied())
    }

    /// The first line on the path to a line.
    pub(super) fn root(&self, line: usize) -> usize {
        self.nodes.get(line).map_or(line, |node| node.root as usize)
    }

    /// The relation of the conversation that ends with `leaf` to the conversation with the index `base`.
    pub(super) fn relation(&self, leaf: usize, base: usize) -> Relation {
        match self.nodes.get(leaf).is_some_and(|node| node.is_side) {
            true => Relation::SideChain(base),
            false => Relation::Branch(base),
        }
    }

    /// The labels of all conversations except the active one, by their ends. A side chain without a title has the name
    /// of its task.
    pub(super) fn labels(&self) -> impl Fn(usize) -> Str {
        let titles = self.titles();
        move |end| match titles(end) {
            none if none.is_empty() => {
                let first = self.nodes.get(end).and_then(|node| wide(node.speaker));
                let asked = first.and_then(|first| self.asked.get(&first));
                asked.and_then(|asked| self.tasks.get(asked)).cloned().unwrap_or_default()
            }
            title => title,
        }
    }

    /// The titles of the conversations by their ends: the nearest title on the path; empty if there is none.
    pub(super) fn titles(&self) -> impl Fn(usize) -> Str {
        let own = self.titles.iter().filter_map(|(key, title)| Some((self.names.known(*key)?, title)));
        let own: HashMap<usize, &Str> = own.collect();
        // For each line, the nearest line with a title on the path to it, the line itself included.
        let mut nearest: Vec<u32> = Vec::new();
        for line in 0..if own.is_empty() { 0 } else { self.nodes.len() } {
            let before = self.forest.parent(line).and_then(|parent| nearest.get(parent).copied());
            nearest.push(if own.contains_key(&line) { narrow(line) } else { before.unwrap_or(NONE) });
        }
        move |end| {
            let titled = nearest.get(end).and_then(|line| wide(*line));
            titled.and_then(|line| own.get(&line)).map(|title| (*title).clone()).unwrap_or_default()
        }
    }

    /// The numbers of the messages of a line, from 0.
    pub(super) fn entries(&self, line: usize) -> Range<u32> {
        self.nodes.get(line).map_or(0..0, |node| node.entry..node.entry.saturating_add(node.messages))
    }

    /// Number of lines.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Number of messages of a line.
    pub(super) fn messages(&self, line: usize) -> u32 {
        self.nodes.get(line).map_or(0, |node| node.messages)
    }

    pub(super) fn holds(&self, node: usize) -> bool {
        self.nodes.get(node).is_some_and(|node| node.holds)
    }

    /// The response of a line.
    pub(super) fn response(&self, node: usize) -> Option<Key> {
        self.nodes.get(node)?.response
    }

    /// The calls of a line.
    pub(super) fn calls(&self, node: usize) -> &[Key] {
        let Some(node) = self.nodes.get(node) else { return &[] };
        let first = node.ids as usize;
        self.ids.get(first..first.saturating_add(node.calls as usize)).unwrap_or_default()
    }

    /// The calls that a line answers, if it only answers calls.
    pub(super) fn answers(&self, node: usize) -> Option<&[Key]> {
        let node = self.nodes.get(node).filter(|node| node.only_answers)?;
        let first = (node.ids as usize).saturating_add(node.calls as usize);
        self.ids.get(first..first.saturating_add(node.answers as usize))
    }
}

/// The prompt of a sub-agent and the name of its task.
fn task(arguments: &str, names: &Names) -> Option<(Key, Str)> {
    let [prompt, name] = json::fields(arguments, &["prompt", "description"]).ok()?;
    Some((names.key(&json::decode(prompt?)), Str::from(&*json::decode(name?))))
}
