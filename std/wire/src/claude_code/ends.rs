//! Finds all conversations of a tree of lines in a single walk, because most conversations have a common beginning.
//!
//! A conversation is the path to its end. All linked lines of one response belong to each path over one of them. In
//! addition to the path it has *spurs*: answers whose parent is the line of their call, while the path continues
//! elsewhere. The latest answer to a call is its spur. The conversation has the spur unless a line of the path answers
//! the call again.

use std::collections::{HashMap, HashSet};

use super::tree::Tree;
use crate::forest::{Key, KeyMap, NONE, narrow, wide};

/// The ends of the conversations of a file, and the number of messages up to each line.
#[derive(Debug, Default)]
pub(super) struct Ends {
    /// The end of the active conversation, and then the other ends in the order of the file.
    pub(super) lines: Vec<usize>,
    /// For each line, the number of messages of a conversation that ends there.
    counts: Vec<u32>,
    /// For each line, the number of conversations that have it.
    pub(super) holders: Vec<u32>,
    /// The spurs, grouped by line, and for each line the range of its spurs.
    spurs: Vec<u32>,
    first: HashMap<usize, (u32, u32)>,
}

/// The state of a walk over a tree, at its current line.
struct Walk<'t> {
    tree: &'t Tree,
    ends: Ends,
    /// For each line, whether a conversation ends there.
    is_end: Vec<bool>,
    /// Number of messages of a conversation that would end here.
    messages: u32,
    /// Number of ends that the walk has passed.
    passed: u32,
    /// The calls on the path, each with the spurs of the lines that make it.
    calls: KeyMap<Vec<u32>>,
    /// For each spur: the number of answers on the path, the ends passed when it was last unanswered, and the number of
    /// conversations with it until then.
    states: HashMap<u32, State>,
}

#[derive(Debug, Clone, Copy, Default)]
struct State {
    answered: u32,
    since: u32,
    holders: u32,
}

impl Ends {
    /// The ends of the conversations of `tree`. The conversation that ends with `active` is the active one.
    pub(super) fn of(tree: &Tree, active: usize) -> Self {
        let (spurs, first) = spurs(tree);
        let is_spur: HashSet<u32> = spurs.iter().copied().collect();
        let mut is_end = leaves(tree);
        for (line, is_end) in is_end.iter_mut().enumerate() {
            *is_end &= !is_spur.contains(&narrow(line));
        }
        // If a line has no message, the message before it is the end.
        let own = tree.top(tree.forest.up(active).find(|line| tree.holds(*line)).unwrap_or(active));
        if let Some(is_end) = is_end.get_mut(own) {
            *is_end = true;
        }
        let ends = Self {
            lines: Vec::new(),
            counts: vec![0; tree.len()],
            holders: vec![0; tree.len()],
            spurs,
            first,
        };
        let (calls, states) = (KeyMap::default(), HashMap::new());
        let mut walk = Walk { tree, ends, is_end, messages: 0, passed: 0, calls, states };
        walk.over_all();
        let Walk { mut ends, is_end, .. } = walk;
        let last = |top: usize| tree.response_lines(top).filter(|line| tree.holds(*line)).max();
        let tops = is_end.iter().enumerate().filter(|(top, is_end)| **is_end && *top != own);
        ends.lines = tops.filter_map(|(top, _)| last(top)).collect();
        ends.lines.sort_unstable();
        ends.lines.insert(0, active);
        ends
    }

    /// Number of messages of the conversation that ends with `line`.
    pub(super) fn count(&self, tree: &Tree, line: usize) -> u32 {
        self.counts.get(tree.top(line)).copied().unwrap_or_default()
    }

    /// The lines of the conversation that ends with `end`, in order.
    pub(super) fn lines(&self, tree: &Tree, end: usize) -> Vec<usize> {
        let mut tops: Vec<_> = tree.forest.up(end).map(|line| tree.top(line)).collect();
        tops.dedup();
        tops.reverse();
        let (mut lines, mut spurs, mut answered) = (Vec::new(), HashMap::new(), HashSet::new());
        let mut hanging: HashSet<u32> = HashSet::new();
        let on_way: HashSet<usize> = tops.iter().copied().collect();
        for top in tops {
            let is_spur = !hanging.insert(narrow(top));
            for answer in tree.answers(top).unwrap_or_default().iter().filter(|_| !is_spur) {
                answered.extend(spurs.get(answer).copied().flatten());
            }
            for line in tree.response_lines(top) {
                lines.push(line);
                let own = self.spurs_of(line);
                let of_call =
                    own.iter().flat_map(|spur| calls_of(tree, *spur).map(move |call| (call, *spur)));
                let of_call: KeyMap<u32> = of_call.collect();
                for call in tree.calls(line) {
                    spurs.insert(*call, of_call.get(call).copied());
                }
                hanging.extend(own);
                let aside = own.iter().filter_map(|spur| wide(*spur));
                lines.extend(aside.filter(|spur| !on_way.contains(spur)));
            }
        }
        lines.retain(|line| tree.holds(*line) && !answered_off_way(*line, &answered, &on_way));
        lines.sort_unstable();
        tree.in_order(&lines)
    }

    fn spurs_of(&self, line: usize) -> &[u32] {
        let (first, end) = self.first.get(&line).copied().unwrap_or_default();
        self.spurs.get(first as usize..end as usize).unwrap_or_default()
    }
}

fn answered_off_way(line: usize, answered: &HashSet<u32>, on_way: &HashSet<usize>) -> bool {
    answered.contains(&narrow(line)) && !on_way.contains(&line)
}

fn calls_of(tree: &Tree, answers: u32) -> impl Iterator<Item = Key> {
    tree.answers(answers as usize).unwrap_or_default().iter().copied()
}

/// For the first line of each response, whether it has a message and no later line has one.
fn leaves(tree: &Tree) -> Vec<bool> {
    let (mut holds, mut below) = (vec![false; tree.len()], vec![false; tree.len()]);
    for line in (0..tree.len()).rev() {
        let top = tree.top(line);
        let set = |list: &mut Vec<bool>, at: usize, now: bool| {
            if let Some(is) = list.get_mut(at) {
                *is |= now;
            }
        };
        set(&mut holds, top, tree.holds(line));
        let followed = |list: &[bool]| list.get(line) == Some(&true);
        if top == line
            && let Some(parent) = tree.forest.parent(line)
        {
            let now = followed(&holds) || followed(&below);
            set(&mut below, tree.top(parent), now);
        }
    }
    holds.iter().zip(below).map(|(holds, below)| *holds && !below).collect()
}

/// The spurs of a tree. Candidates are the children of a line that only answer its calls. A spur is the latest answer
/// to each of its calls.
fn spurs(tree: &Tree) -> (Vec<u32>, HashMap<usize, (u32, u32)>) {
    let (mut spurs, mut first) = (Vec::new(), HashMap::new());
    for line in (0..tree.len()).filter(|line| !tree.calls(*line).is_empty()) {
        let mut open: HashSet<Key> = tree.calls(line).iter().copied().collect();
        let begin = narrow(spurs.len());
        for child in tree.forest.children(line) {
            let answers = tree.answers(child).unwrap_or_default();
            if !answers.is_empty() && tree.holds(child) && answers.iter().all(|answer| open.contains(answer))
            {
                for answer in answers {
                    open.remove(answer);
                }
                spurs.push(narrow(child));
            }
        }
        let end = narrow(spurs.len());
        if end > begin {
            first.insert(line, (begin, end));
        }
    }
    (spurs, first)
}

/// A step of the walk.
enum Step {
    Enter(usize),
    Leave(usize),
}

impl Walk<'_> {
    fn over_all(&mut self) {
        let roots = (0..self.tree.len()).filter(|line| self.tree.forest.parent(*line).is_none());
        let mut open: Vec<_> = roots.map(Step::Enter).collect();
        while let Some(step) = open.pop() {
            let top = match step {
                Step::Leave(top) => {
                    self.leave(top);
                    continue;
                }
                Step::Enter(top) => top,
            };
            self.enter(top);
            open.push(Step::Leave(top));
            for line in self.tree.response_lines(top) {
                let others = self.tree.forest.children(line).filter(|child| self.tree.top(*child) != top);
                open.extend(others.map(Step::Enter));
            }
        }
    }

    fn enter(&mut self, top: usize) {
        let tree = self.tree;
        // The answers come first: a line does not answer its own calls.
        self.answers(top, true);
        for line in tree.response_lines(top) {
            self.messages = self.messages.saturating_add(tree.messages(line));
            let own = self.ends.spurs_of(line).to_vec();
            let of_call = own.iter().flat_map(|spur| calls_of(tree, *spur).map(move |call| (call, *spur)));
            let of_call: KeyMap<u32> = of_call.collect();
            for call in tree.calls(line) {
                self.calls.entry(*call).or_default().push(of_call.get(call).copied().unwrap_or(NONE));
            }
            for spur in own {
                self.messages = self.messages.saturating_add(tree.messages(spur as usize));
                self.states.insert(spur, State { since: self.passed, ..State::default() });
            }
        }
        if let Some(count) = self.ends.counts.get_mut(top) {
            *count = self.messages;
        }
        if self.is_end.get(top) == Some(&true) {
            self.passed = self.passed.saturating_add(1);
        }
        // Until the line is left, its value is the number of ends that were passed before it.
        if let Some(holders) = self.ends.holders.get_mut(top) {
            *holders = self.passed.saturating_sub(u32::from(self.is_end.get(top) == Some(&true)));
        }
    }

    fn leave(&mut self, top: usize) {
        let tree = self.tree;
        let mut aside = Vec::new();
        for line in tree.response_lines(top) {
            let own = self.ends.spurs_of(line).to_vec();
            for call in tree.calls(line) {
                let calls = self.calls.get_mut(call);
                if let Some(calls) = calls {
                    calls.pop();
                }
            }
            for spur in &own {
                self.messages = self.messages.saturating_sub(tree.messages(*spur as usize));
            }
            aside.extend(own);
            self.messages = self.messages.saturating_sub(tree.messages(line));
        }
        self.list_spurs(top, aside);
        self.answers(top, false);
        let passed = self.passed;
        if let Some(holders) = self.ends.holders.get_mut(top) {
            *holders = passed.saturating_sub(*holders);
        }
    }

    /// Counts the conversations that have these spurs of the response `top`. If some spurs are in none, the latest of
    /// them is the end of a conversation, which has the others too.
    fn list_spurs(&mut self, top: usize, mut spurs: Vec<u32>) {
        spurs.sort_unstable();
        let held = |walk: &Self, spur: u32| {
            let state = walk.states.get(&spur).copied().unwrap_or_default();
            state.holders.saturating_add(walk.passed.saturating_sub(state.since))
        };
        let is_lost = |spur: &&u32| {
            let on_way = self.ends.holders.get(**spur as usize).copied().unwrap_or_default();
            held(self, **spur) == 0 && on_way == 0
        };
        let lost = spurs.iter().rev().find(is_lost).copied();
        if let Some(lost) = lost {
            self.passed = self.passed.saturating_add(1);
            if let Some(is_end) = self.is_end.get_mut(lost as usize) {
                *is_end = true;
            }
        }
        debug_assert!(lost.is_none() || lost != Some(narrow(top)), "nothing hangs on itself");
        for spur in spurs {
            let count = held(self, spur);
            self.states.remove(&spur);
            if let Some(holders) = self.ends.holders.get_mut(spur as usize) {
                *holders = holders.saturating_add(count);
            }
        }
    }

    /// Enters or leaves a line of the path that answers calls.
    fn answers(&mut self, top: usize, is_entered: bool) {
        let Some(calls) = self.tree.answers(top) else { return };
        // A spur on the path is in its own place.
        if self.states.contains_key(&narrow(top)) {
            return self.answer(narrow(top), is_entered);
        }
        for call in calls {
            let nearest = self.calls.get(call).and_then(|calls| calls.last()).copied();
            nearest.into_iter().for_each(|spur| self.answer(spur, is_entered));
        }
    }

    /// Enters or leaves an answer on the path to the call of a spur: the spur is removed or restored.
    fn answer(&mut self, spur: u32, is_entered: bool) {
        let Some(state) = self.states.get_mut(&spur) else { return };
        let messages = self.tree.messages(spur as usize);
        match is_entered {
            true => {
                if state.answered == 0 {
                    self.messages = self.messages.saturating_sub(messages);
                    state.holders = state.holders.saturating_add(self.passed.saturating_sub(state.since));
                }
                state.answered = state.answered.saturating_add(1);
            }
            false => {
                state.answered = state.answered.saturating_sub(1);
                if state.answered == 0 {
                    self.messages = self.messages.saturating_add(messages);
                    state.since = self.passed;
                }
            }
        }
    }
}
