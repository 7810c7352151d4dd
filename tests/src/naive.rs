//! The naive twin: quadratic, obviously right, and sharing only the message type with the code that it checks.
//!
//! Everything is computed from the list of messages each time, as the design describes it: four rules of grouping, drop
//! the oldest and add up again, results after their call.

mod join;
mod legal;
mod plan;
mod protected;
mod verdicts;

pub use join::Summary;
pub use legal::{PROFILES, as_pair, repair, violations};
pub use plan::{Outcome, Planned, Request, plan};
pub use protected::Protected;
pub use verdicts::{Attempt, NaiveDraft, Shortened};

use epitome_core::attribution::{Retention, SourceKind};
use epitome_core::message::Role;
use epitome_core::{GroupKind, OpenKind};

use crate::message::{Message, Part};

/// A conversation in its groups.
#[derive(Debug, Clone)]
pub struct Naive<'a> {
    /// The messages.
    pub messages: &'a [Message],
    /// The first message of each message's group.
    pub anchors: Vec<usize>,
    /// The turn of each message's group.
    pub turns: Vec<u32>,
    /// The call that each message answers, if it answers one.
    pub answers: Vec<Option<Call>>,
    /// The current turn.
    pub turn: u32,
}

/// A call or a request for approval: its message, and its place in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// The message.
    pub message: usize,
    /// Its place among the calls and requests of the message.
    pub nth: usize,
}

/// One group: positions of messages, in the order of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Its messages.
    pub members: Vec<usize>,
    /// The kind.
    pub kind: GroupKind,
    /// Its turn.
    pub turn: u32,
}

impl<'a> Naive<'a> {
    /// Puts every message in its group, one after another.
    #[must_use]
    pub fn new(messages: &'a [Message]) -> Self {
        let mut naive =
            Self { messages, anchors: Vec::new(), turns: Vec::new(), answers: Vec::new(), turn: 0 };
        for (at, message) in messages.iter().enumerate() {
            let call = naive.answered_call(at);
            naive.turn += u32::from(begins_turn(message));
            let host = call.map(|call| call.message).or_else(|| naive.joined(at));
            naive.anchors.push(host.map_or(at, |host| naive.anchors[host]));
            naive.turns.push(host.map_or(naive.turn, |host| naive.turns[host]));
            naive.answers.push(call);
        }
        naive
    }

    /// Rule 4: the first unanswered call, in call order, of the latest group of this turn that has one; else the only
    /// unanswered call of earlier turns.
    fn answered_call(&self, at: usize) -> Option<Call> {
        let answers = answers(&self.messages[at])?;
        let unanswered: Vec<Call> =
            self.unanswered().into_iter().filter(|call| self.awaited(*call) == answers).collect();
        let now = unanswered.iter().filter(|call| self.turns[call.message] == self.turn);
        let latest = now.clone().map(|call| self.anchors[call.message]).max();
        match (latest, unanswered.as_slice()) {
            (Some(latest), _) => now.clone().find(|call| self.anchors[call.message] == latest).copied(),
            (None, [only]) => Some(*only),
            _ => None,
        }
    }

    /// Rule 3: a message whose group this message of the model joins.
    fn joined(&self, at: usize) -> Option<usize> {
        let message = &self.messages[at];
        if !is_model(message) {
            return None;
        }
        if let Some(previous) = at.checked_sub(1).filter(|previous| is_model(&self.messages[*previous])) {
            let before = &self.messages[previous];
            // A hosted call without its result, and then a result without its call: the model paused in between.
            if surplus(before) > 0 && surplus(message) < 0 {
                return Some(previous);
            }
            let reasoning = self.members(self.anchors[previous]).any(|at| has_reasoning(&self.messages[at]));
            let joins = match (&before.response, &message.response) {
                (Some(before), Some(now)) => before == now,
                _ => reasoning || !before.calls().is_empty() && !message.calls().is_empty(),
            };
            if joins {
                return Some(previous);
            }
        }
        let latest = (0..at).rfind(|at| is_model(&self.messages[*at]) && self.turns[*at] == self.turn)?;
        let of_group = self.members(self.anchors[latest]).filter(|at| is_model(&self.messages[*at]));
        let response = of_group.filter_map(|at| self.messages[at].response.as_ref()).next_back()?;
        (message.response.as_ref() == Some(response)).then_some(latest)
    }

    /// The calls and requests without an answer, in call order.
    #[must_use]
    pub fn unanswered(&self) -> Vec<Call> {
        let grouped = 0..self.anchors.len();
        let calls = grouped.flat_map(|message| {
            (0..self.messages[message].awaited().len()).map(move |nth| Call { message, nth })
        });
        calls.filter(|call| !self.answers.contains(&Some(*call))).collect()
    }

    /// The kind and the id of the answer that a call or request awaits.
    #[must_use]
    pub fn awaited(&self, call: Call) -> (OpenKind, &str) {
        self.messages[call.message].awaited()[call.nth]
    }

    fn members(&self, anchor: usize) -> impl DoubleEndedIterator<Item = usize> {
        (0..self.anchors.len()).filter(move |at| self.anchors[*at] == anchor)
    }

    /// The groups, in the order of their first messages.
    #[must_use]
    pub fn groups(&self) -> Vec<Group> {
        let leaders = (0..self.messages.len()).filter(|at| self.anchors[*at] == *at);
        leaders
            .map(|anchor| Group {
                members: self.members(anchor).collect(),
                kind: self.kind(anchor),
                turn: self.turns[anchor],
            })
            .collect()
    }

    fn kind(&self, anchor: usize) -> GroupKind {
        let first = &self.messages[anchor];
        let calls = self.members(anchor).any(|at| !self.messages[at].calls().is_empty());
        let hosted = self.members(anchor).any(|at| {
            let is_hosted = |part: &Part| matches!(part, Part::HostedCall(_));
            is_model(&self.messages[at]) && self.messages[at].parts.iter().any(is_hosted)
        });
        match first.role {
            _ if claims_to_answer(first) => GroupKind::Orphan,
            _ if first.source == SourceKind::Compaction => GroupKind::Summary,
            Role::System | Role::Developer => GroupKind::System,
            Role::User => GroupKind::User,
            _ if calls => GroupKind::Exchange,
            _ if hosted => GroupKind::Hosted,
            _ => GroupKind::Assistant,
        }
    }

    /// The size of a group, up to the highest amount.
    #[must_use]
    pub fn tokens(&self, group: &Group) -> u64 {
        let sum: u64 = group.members.iter().map(|at| u64::from(self.messages[*at].tokens)).sum();
        sum.min(u64::from(u32::MAX))
    }

    /// Whether a group has a call without an answer.
    #[must_use]
    pub fn is_unanswered(&self, group: &Group) -> bool {
        self.unanswered().iter().any(|call| group.members.contains(&call.message))
    }

    /// Whether a group is work in progress.
    #[must_use]
    pub fn is_open(&self, group: &Group) -> bool {
        group.turn == self.turn && self.is_unanswered(group)
    }

    /// Whether a message has only reasoning.
    #[must_use]
    pub fn only_reasons(&self, message: usize) -> bool {
        self.messages[message].parts.iter().all(Part::is_reasoning)
    }

    /// Whether a message of a group is pinned.
    #[must_use]
    pub fn is_pinned(&self, group: &Group) -> bool {
        group.members.iter().any(|at| self.messages[*at].retention == Retention::Pinned)
    }

    /// The messages of these groups (by first message) in the order of a request: as in the log, but an answer that
    /// does not stand in one run of its group with its call comes directly after the run of its call.
    #[must_use]
    pub fn projection(&self, keep: &dyn Fn(usize) -> bool) -> Vec<usize> {
        let in_place: Vec<bool> = (0..self.messages.len()).map(|at| self.is_in_place(at)).collect();
        let run_end = |from: usize| {
            let stays = |at: &usize| in_place[*at] && self.anchors[*at] == self.anchors[from];
            (from..self.messages.len()).take_while(stays).last().unwrap_or(from)
        };
        let mut out = Vec::new();
        for at in (0..self.messages.len()).filter(|at| in_place[*at] && keep(self.anchors[*at])) {
            out.push(at);
            let moved = (0..self.messages.len()).filter(|late| !in_place[*late]);
            let is_last = run_end(at) == at;
            out.extend(moved.filter(|late| {
                is_last && self.answers[*late].is_some_and(|call| run_end(call.message) == at)
            }));
        }
        out
    }

    /// Whether these messages, in this order in a request, are one run of their group.
    #[must_use]
    pub fn is_one_run(&self, positions: &[usize]) -> bool {
        let one = |pair: &[usize]| {
            pair[0] + 1 == pair[1]
                && self.anchors[pair[0]] == self.anchors[pair[1]]
                && self.is_in_place(pair[0]) == self.is_in_place(pair[1])
        };
        positions.windows(2).all(one)
    }

    /// Whether only messages of its own group, themselves in place, stand between an answer and its call.
    fn is_in_place(&self, at: usize) -> bool {
        let Some(call) = self.answers[at] else { return true };
        let mut between = call.message + 1..at;
        between.all(|other| self.anchors[other] == self.anchors[at] && self.is_in_place(other))
    }

    /// The first messages of all groups that a request may hold.
    #[must_use]
    pub fn visible(&self) -> Vec<usize> {
        let visible = self.groups().into_iter().filter(|group| group.kind != GroupKind::Orphan);
        visible.map(|group| group.members[0]).collect()
    }
}

/// Whether a message answers a call or a request for approval, or claims to.
#[must_use]
pub fn claims_to_answer(message: &Message) -> bool {
    message.role == Role::Tool || answers(message).is_some()
}

/// Whether a message answers a call, or claims to. (Profiles have no rules for approvals.)
#[must_use]
pub fn is_answer(message: &Message) -> bool {
    message.role == Role::Tool || answer_id(message).is_some()
}

/// Whether a message begins a turn: it is a user message of the caller with content, and no answer.
#[must_use]
pub fn begins_turn(message: &Message) -> bool {
    let speaks = message.parts.iter().any(|part| matches!(part, Part::Text(_) | Part::Image | Part::Unknown));
    message.role == Role::User && message.source == SourceKind::Caller && speaks && answers(message).is_none()
}

/// The call or request that a message answers, by its id: the first result or approval in a tool's message or a user's.
#[must_use]
pub fn answers(message: &Message) -> Option<(OpenKind, &str)> {
    let may_answer = matches!(message.role, Role::Tool | Role::User);
    message.parts.iter().filter(|_| may_answer).find_map(|part| match part {
        Part::Result(id) | Part::Sealed(id) => Some((OpenKind::Call, id.as_str())),
        Part::Approves(id) => Some((OpenKind::Approval, id.as_str())),
        _ => None,
    })
}

/// The id of the call that a message answers. Only messages of tools and users can have results.
#[must_use]
pub fn answer_id(message: &Message) -> Option<&str> {
    let may_answer = matches!(message.role, Role::Tool | Role::User);
    message.parts.iter().filter(|_| may_answer).find_map(|part| match part {
        Part::Result(id) | Part::Sealed(id) => Some(id.as_str()),
        _ => None,
    })
}

fn is_model(message: &Message) -> bool {
    message.role == Role::Assistant && message.source != SourceKind::Compaction
}

/// The number of hosted calls less the number of results, in a message of the model.
fn surplus(message: &Message) -> i32 {
    let of = |part: &Part| match part {
        Part::HostedCall(_) => 1,
        Part::Result(_) | Part::Sealed(_) => -1,
        _ => 0,
    };
    message.parts.iter().map(of).sum()
}

fn has_reasoning(message: &Message) -> bool {
    message.parts.iter().any(Part::is_reasoning)
}
