//! Messages to index: their terms, and the marks of their roles and tools.

use core::hash::Hash;
use std::collections::{BTreeMap, HashMap, HashSet};

use epitome_message::search::Postings;
use epitome_message::{Message, Str};

use super::{role_mark, tool_mark};
use crate::store::{calls, results};

/// Messages to index, with their groups. A result belongs to the tool of its call, which is earlier in its group. `K`
/// identifies a group.
#[derive(Debug)]
pub struct Indexed<K> {
    pub postings: Postings,
    /// The calls of each group: the sequence number of the message, the id of the call, the name of the tool.
    calls: HashMap<K, Vec<(i64, Str, Str)>>,
    /// The groups whose first message is indexed here.
    begun: HashSet<K>,
    /// The results after the first message of their group: group, sequence number and place of the message, and the id
    /// of the call.
    results: Vec<(K, i64, u32, Str)>,
}

impl<K: Copy + Eq + Ord + Hash> Indexed<K> {
    /// Makes an empty set of messages.
    pub fn new() -> Self {
        Self { postings: Postings::new(), calls: HashMap::new(), begun: HashSet::new(), results: Vec::new() }
    }

    /// Adds the terms of a message and the mark of its role. Returns whether the message has terms.
    pub fn add(&mut self, place: u32, message: &Message) -> bool {
        let says_something = self.postings.add(place, message);
        if says_something {
            self.postings.mark(place, role_mark(message.role()));
        }
        says_something
    }

    /// Whether a message has calls or results, so that its group matters.
    pub fn has_tools(message: &Message) -> bool {
        calls(message).next().is_some() || results(message).next().is_some()
    }

    /// Adds the calls and the results of the message `seq` of a group. The group begins with the message `first`.
    pub fn add_tools(&mut self, place: u32, message: &Message, group: K, (seq, first): (i64, i64)) {
        calls(message).for_each(|call| self.postings.mark(place, tool_mark(&call.name)));
        self.add_calls(message, group, seq);
        if seq == first {
            self.begun.insert(group);
        } else {
            let results = results(message).map(|result| (group, seq, place, result.call_id.clone()));
            self.results.extend(results);
        }
    }

    /// Adds the calls of a message that is in a group but not indexed here.
    pub fn add_calls(&mut self, message: &Message, group: K, seq: i64) {
        let own = calls(message).map(|call| (seq, call.id.clone(), call.name.clone()));
        let mut own = own.peekable();
        if own.peek().is_some() {
            self.calls.entry(group).or_default().extend(own);
        }
    }

    /// The groups with results here whose calls may be in earlier messages, each with the number of its last result
    /// here.
    pub fn missing(&self) -> BTreeMap<K, i64> {
        let mut missing = BTreeMap::new();
        for (group, seq, ..) in &self.results {
            if !self.begun.contains(group) {
                let last = missing.entry(*group).or_insert(*seq);
                *last = (*last).max(*seq);
            }
        }
        missing
    }

    /// The tools of the calls with this id before a message of a group.
    fn tools(&self, group: K, before: i64, id: &str) -> impl Iterator<Item = &Str> {
        let calls = self.calls.get(&group).into_iter().flatten();
        calls.filter(move |(seq, own, _)| *seq < before && **own == *id).map(|(_, _, tool)| tool)
    }

    /// Returns the postings, with the marks of the tools.
    pub fn finish(mut self) -> Postings {
        let results = core::mem::take(&mut self.results);
        let mut marks = Vec::new();
        for (group, seq, place, id) in &results {
            marks.extend(self.tools(*group, *seq, id).map(|tool| (*place, tool_mark(tool))));
        }
        marks.into_iter().for_each(|(place, mark)| self.postings.mark(place, mark));
        self.postings
    }
}

impl<K: Copy + Eq + Ord + Hash> Default for Indexed<K> {
    fn default() -> Self {
        Self::new()
    }
}
