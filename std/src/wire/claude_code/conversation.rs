//! Which lines are one conversation, and in which order.

use std::collections::{HashMap, HashSet};

use super::session::Session;
use crate::message::{Part, Str};
use crate::wire::Format;
use crate::wire::json;
use crate::wire::transcript::{Conversation, Relation, ToolCompaction, UsageEntry};

impl Session<'_> {
    /// The lines that a model sees which goes on after `leaf`: those before it, and what belongs to the same responses.
    pub(super) fn gather(&self, leaf: usize) -> Vec<usize> {
        let path = self.forest.path(leaf);
        let answered: HashSet<&Str> =
            path.iter().filter_map(|node| self.node(*node)?.answers()).flatten().collect();
        let mut all: HashSet<usize> = path.iter().copied().collect();
        let mut open = path;
        while let Some(node) = open.pop() {
            for child in self.forest.children(node) {
                if !all.contains(child) && self.belongs(node, *child, &answered) {
                    all.insert(*child);
                    open.push(*child);
                }
            }
        }
        let mut all: Vec<_> = all.into_iter().filter(|node| self.holds(*node)).collect();
        all.sort_unstable();
        self.in_order(&all)
    }

    /// Whether `child` is of the response of `node`, or answers a call of it that nobody else on the way answers.
    fn belongs(&self, node: usize, child: usize, answered: &HashSet<&Str>) -> bool {
        let (Some(node), Some(child)) = (self.node(node), self.node(child)) else { return false };
        if child.response().is_some() && child.response() == node.response() {
            return true;
        }
        child.answers().is_some_and(|answers| {
            answers
                .iter()
                .all(|answer| !answered.contains(answer) && node.calls().any(|call| call == *answer))
        })
    }

    /// The lines of the file in the order of the conversation: the lines of a response before the answers to its calls.
    fn in_order(&self, nodes: &[usize]) -> Vec<usize> {
        let mut ordered: Vec<usize> = Vec::with_capacity(nodes.len());
        let mut end: Option<(&str, usize)> = None;
        for node in nodes {
            let Some(line) = self.node(*node) else { continue };
            match (line.response(), end) {
                (Some(response), Some((last, at))) if response == last => {
                    ordered.insert(at, *node);
                    end = Some((response, at.saturating_add(1)));
                    continue;
                }
                (Some(response), _) => end = Some((response, ordered.len().saturating_add(1))),
                (None, _) if line.answers().is_none() => end = None,
                (None, _) => {}
            }
            ordered.push(*node);
        }
        ordered
    }

    /// The conversation that ends with `leaf`.
    pub(super) fn conversation(&self, leaf: usize) -> Conversation {
        let mut conversation = Conversation::new(Format::ClaudeCode, "");
        conversation.id = self.node(leaf).map(|node| Str::from(&*node.uuid)).unwrap_or_default();
        let title = self.forest.up(leaf).find_map(|node| self.titles.get(&self.node(node)?.uuid));
        conversation.label = title.map(|title| Str::from(&**title)).unwrap_or_default();
        let mut last: Option<(&str, usize)> = None;
        for node in self.gather(leaf) {
            let Some((node, record)) = self.node(node).and_then(|node| Some((node, node.record?))) else {
                continue;
            };
            conversation.extend(record, node.messages.iter().cloned());
            let at = conversation.entries.len().saturating_sub(1);
            let Some(usage) = node.usage.filter(|_| !node.messages.is_empty()) else { continue };
            // Every line of a response repeats its report, and the last is complete.
            match (node.response(), last) {
                (Some(response), Some((before, place))) if response == before => {
                    if let Some(entry) = conversation.usage.get_mut(place) {
                        *entry = UsageEntry::new(at, usage);
                    }
                }
                (response, _) => {
                    last = response.map(|response| (response, conversation.usage.len()));
                    conversation.usage.push(UsageEntry::new(at, usage));
                }
            }
        }
        conversation.compactions = self.compactions(leaf);
        conversation
    }

    /// What the tool compacted on the way to `leaf`, the oldest first. All of it is before the first message.
    fn compactions(&self, leaf: usize) -> Vec<ToolCompaction> {
        let mut found = Vec::new();
        let mut root = self.forest.up(leaf).last();
        while let Some(cut) = root.and_then(|root| self.node(root)).and_then(|node| node.cut.as_ref()) {
            let mut compaction = ToolCompaction::new(0);
            compaction.trigger = Str::from(&*cut.boundary.trigger);
            compaction.tokens_before = cut.boundary.tokens_before;
            compaction.dropped = cut.before.map(|before| {
                let lines = self.gather(before);
                let messages = lines.iter().filter_map(|node| Some(self.node(*node)?.messages.len()));
                messages
                    .fold(0_u64, |sum, count| sum.saturating_add(u64::try_from(count).unwrap_or(u64::MAX)))
            });
            found.push(compaction);
            root = cut.before.and_then(|before| self.forest.up(before).last());
        }
        found.reverse();
        found
    }

    /// All conversations: the one that ends with `active` first, at the place `base` of the list that they are for.
    pub(super) fn conversations(&self, active: usize, base: usize) -> Vec<Conversation> {
        let mut found = vec![self.conversation(active)];
        let mut covered: HashSet<usize> = self.gather(active).into_iter().collect();
        let tasks = self.tasks();
        // The latest first: an answer that hangs on its call is part of what went on after it.
        for leaf in self.forest.leaves().collect::<Vec<_>>().into_iter().rev() {
            let own = self.forest.up(leaf).find(|node| self.holds(*node));
            let Some(own) = own.filter(|own| !covered.contains(own)) else { continue };
            let mut conversation = self.conversation(own);
            covered.extend(self.gather(own));
            conversation.active = false;
            let is_side = self.node(own).is_some_and(|node| node.is_side);
            conversation.relation = if is_side { Relation::SideChain(base) } else { Relation::Branch(base) };
            if conversation.label.is_empty() && is_side {
                let asked = conversation.messages().next().and_then(|message| match message.parts() {
                    [Part::Text(text)] => tasks.get(text.as_str()),
                    _ => None,
                });
                conversation.label = asked.cloned().unwrap_or_default();
            }
            found.push(conversation);
        }
        if let Some(others) = found.get_mut(1..) {
            others.reverse();
        }
        found
    }

    /// What sub-agents were asked, and what their tasks are called.
    fn tasks(&self) -> HashMap<String, Str> {
        let parts = self.nodes.iter().flat_map(|node| &node.messages).flat_map(|message| message.parts());
        let calls = parts.filter_map(|part| if let Part::ToolCall(call) = part { Some(call) } else { None });
        let of = |arguments: &str| {
            let [prompt, name] = json::fields(arguments, &["prompt", "description"]).ok()?;
            Some((json::decode(prompt?).into_owned(), Str::from(&*json::decode(name?))))
        };
        calls
            .filter(|call| matches!(&*call.name, "Task" | "Agent"))
            .filter_map(|call| of(&call.arguments))
            .collect()
    }
}
