//! Which lines are one conversation, and in which order. What they say is not held.

use std::collections::{HashMap, HashSet};

use epitome_core::message::Role;

use super::line::Line;
use crate::message::{Message, Part, Str};
use crate::wire::WireError;
use crate::wire::forest::{self, Forest, Key, Names};
use crate::wire::json;
use crate::wire::transcript::{Compactions, Relation, ToolCompaction, Ways};

/// All lines that have a name and a place in a tree: some eighty bytes for each.
#[derive(Debug, Default)]
pub(super) struct Tree {
    forest: Forest,
    nodes: Vec<Node>,
    names: Names,
    /// The calls of each line, and then what it answers.
    ids: Vec<Key>,
    cuts: HashMap<usize, Cut>,
    /// By the name of a conversation's last line.
    titles: HashMap<Key, Str>,
    /// What sub-agents' tasks are called, by what they were asked.
    tasks: HashMap<Key, Str>,
    /// What lines of side chains say that say one thing.
    asked: HashMap<usize, Key>,
}

/// A line.
#[derive(Debug, Clone, Copy)]
struct Node {
    /// The response that it is a line of.
    response: Option<Key>,
    /// Where its ids begin, how many calls it makes, and how many it answers.
    ids: u32,
    calls: u32,
    answers: u32,
    messages: u32,
    /// Whether it answers calls, and does nothing else.
    only_answers: bool,
    is_side: bool,
    /// Whether there is a message in it that a model is to see.
    holds: bool,
}

/// Where the conversation begins anew: what did it, and the line that it went on from before.
#[derive(Debug)]
struct Cut {
    before: Option<usize>,
    trigger: Str,
    tokens_before: Option<u64>,
}

impl Tree {
    /// Whether a line has a place in the tree. A title is noted, and a copy of an earlier line passed over.
    pub(super) fn takes(&mut self, line: &Line<'_>) -> bool {
        if let Some((title, leaf)) = &line.title {
            self.titles.insert(self.names.key(leaf), Str::from(&**title));
            return false;
        }
        line.uuid.as_ref().is_some_and(|uuid| self.names.find(uuid).is_none())
    }

    /// Adds a line that has a place and holds these messages, and gives its number: lines are counted from 0.
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
        let node = self.node_of(line, messages);
        self.nodes.push(node);
        if let (true, Some([Part::Text(text)])) = (line.is_side, messages.first().map(Message::parts)) {
            self.asked.insert(number, self.names.key(text));
        }
        number
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
            only_answers,
            is_side: line.is_side,
            holds: line.message.is_some(),
        }
    }

    /// The line that `leaf` names; without a name the one that the file goes on with.
    pub(super) fn end(&self, leaf: Option<&str>) -> Result<Option<usize>, WireError> {
        if let Some(leaf) = leaf {
            return forest::named(&self.names, leaf, ("line", "uuid")).map(Some);
        }
        let last = |side: bool| self.nodes.iter().rposition(|node| node.holds && (side || !node.is_side));
        // The file of a sub-agent has nothing but its thread.
        Ok(last(false).or_else(|| last(true)))
    }

    /// The ends of all conversations: `active` first, then the others in the order of the file.
    pub(super) fn ends(&self, active: usize) -> Vec<usize> {
        let mut found = Vec::new();
        let mut covered: HashSet<usize> = self.gather(active).into_iter().collect();
        // The latest first: an answer that hangs on its call is part of what went on after it.
        for leaf in self.forest.leaves().collect::<Vec<_>>().into_iter().rev() {
            let own = self.forest.up(leaf).find(|node| self.holds(*node));
            if let Some(own) = own.filter(|own| !covered.contains(own)) {
                covered.extend(self.gather(own));
                found.push(own);
            }
        }
        found.push(active);
        found.reverse();
        found
    }

    /// The lines that a model sees which goes on after `leaf`: those before it, and what belongs to the same responses.
    pub(super) fn gather(&self, leaf: usize) -> Vec<usize> {
        let path = self.forest.path(leaf);
        let answered: HashSet<Key> =
            path.iter().flat_map(|node| self.answers(*node).unwrap_or_default()).copied().collect();
        let mut all: HashSet<usize> = path.iter().copied().collect();
        let mut open = path;
        while let Some(node) = open.pop() {
            for child in self.forest.children(node) {
                if !all.contains(&child) && self.belongs(node, child, &answered) {
                    all.insert(child);
                    open.push(child);
                }
            }
        }
        let mut all: Vec<_> = all.into_iter().filter(|node| self.holds(*node)).collect();
        all.sort_unstable();
        self.in_order(&all)
    }

    /// Whether `child` is of the response of `node`, or answers a call of it that nobody else on the way answers.
    fn belongs(&self, node: usize, child: usize, answered: &HashSet<Key>) -> bool {
        if self.response(child).is_some() && self.response(child) == self.response(node) {
            return true;
        }
        self.answers(child).is_some_and(|answers| {
            answers.iter().all(|answer| !answered.contains(answer) && self.calls(node).contains(answer))
        })
    }

    /// The lines of the file in the order of the conversation: the lines of a response before the answers to its calls.
    fn in_order(&self, nodes: &[usize]) -> Vec<usize> {
        let mut ordered: Vec<usize> = Vec::with_capacity(nodes.len());
        let mut end: Option<(Key, usize)> = None;
        for node in nodes {
            match (self.response(*node), end) {
                (Some(response), Some((last, at))) if response == last => {
                    ordered.insert(at, *node);
                    end = Some((response, at.saturating_add(1)));
                    continue;
                }
                (Some(response), _) => end = Some((response, ordered.len().saturating_add(1))),
                (None, _) if self.answers(*node).is_none() => end = None,
                (None, _) => {}
            }
            ordered.push(*node);
        }
        ordered
    }

    /// What the tool compacted on the way to each of these ends. All of it is before the first message.
    pub(super) fn compactions(&self, ends: &[usize]) -> HashMap<usize, Compactions> {
        let mut ends = ends.to_vec();
        // The last way first: most of the others are its beginning.
        ends.sort_unstable_by_key(|end| core::cmp::Reverse(*end));
        let mut ways = Ways::default();
        let mut to = |end| ways.back(self.cuts_before(end), |cut| self.compaction(cut));
        ends.into_iter().map(|end| (end, to(end))).collect()
    }

    /// The cuts on the way to `leaf`, the latest first, each with its line.
    fn cuts_before(&self, leaf: usize) -> impl Iterator<Item = (usize, &Cut)> {
        let cut_before = |leaf: usize| {
            let root = self.forest.up(leaf).last()?;
            Some((root, self.cuts.get(&root)?))
        };
        core::iter::successors(cut_before(leaf), move |(_, cut)| cut_before(cut.before?))
    }

    fn compaction(&self, cut: &Cut) -> ToolCompaction {
        let mut compaction = ToolCompaction::new(0);
        compaction.trigger = cut.trigger.clone();
        compaction.tokens_before = cut.tokens_before;
        compaction.dropped = cut.before.map(|before| self.count(&self.gather(before)));
        compaction
    }

    /// How many messages these lines hold.
    pub(super) fn count(&self, lines: &[usize]) -> u64 {
        lines.iter().fold(0_u64, |sum, line| sum.saturating_add(self.messages(*line).into()))
    }

    /// How the conversation that ends with `leaf` belongs to the one at the place `base`.
    pub(super) fn relation(&self, leaf: usize, base: usize) -> Relation {
        match self.nodes.get(leaf).is_some_and(|node| node.is_side) {
            true => Relation::SideChain(base),
            false => Relation::Branch(base),
        }
    }

    /// What to call the conversation of these lines, which ends with `end`, where it is not the one that goes on: a side chain
    /// without a title is called what the task is that it was begun for.
    pub(super) fn label(&self, end: usize, lines: &[usize]) -> Str {
        let speaks = |line: &&usize| self.nodes.get(**line).is_some_and(|node| node.messages > 0);
        match self.title(end) {
            none if none.is_empty() => {
                let asked = lines.iter().find(speaks).and_then(|first| self.asked.get(first));
                asked.and_then(|asked| self.tasks.get(asked)).cloned().unwrap_or_default()
            }
            title => title,
        }
    }

    /// The title of the conversation that ends with `end`; empty if it has none.
    pub(super) fn title(&self, end: usize) -> Str {
        let titles = self.titles.iter().filter_map(|(key, title)| Some((self.names.known(*key)?, title)));
        let titles: HashMap<usize, &Str> = titles.collect();
        self.forest.up(end).find_map(|node| titles.get(&node).copied()).cloned().unwrap_or_default()
    }

    /// How many messages a line holds.
    pub(super) fn messages(&self, line: usize) -> u32 {
        self.nodes.get(line).map_or(0, |node| node.messages)
    }

    fn holds(&self, node: usize) -> bool {
        self.nodes.get(node).is_some_and(|node| node.holds)
    }

    /// The response that it is a line of.
    pub(super) fn response(&self, node: usize) -> Option<Key> {
        self.nodes.get(node)?.response
    }

    /// The calls that it makes.
    fn calls(&self, node: usize) -> &[Key] {
        let Some(node) = self.nodes.get(node) else { return &[] };
        let first = node.ids as usize;
        self.ids.get(first..first.saturating_add(node.calls as usize)).unwrap_or_default()
    }

    /// The calls that it answers, if that is all that it does.
    fn answers(&self, node: usize) -> Option<&[Key]> {
        let node = self.nodes.get(node).filter(|node| node.only_answers)?;
        let first = (node.ids as usize).saturating_add(node.calls as usize);
        self.ids.get(first..first.saturating_add(node.answers as usize))
    }
}

/// What a sub-agent was asked, and what its task is called.
fn task(arguments: &str, names: &Names) -> Option<(Key, Str)> {
    let [prompt, name] = json::fields(arguments, &["prompt", "description"]).ok()?;
    Some((names.key(&json::decode(prompt?)), Str::from(&*json::decode(name?))))
}
