//! Legal requests of a provider, and the steps of a repair, by definition.

use epitome_core::{OpenKind, Pending, Profile, Repair, Violation, ViolationKind};

use epitome_core::message::Role;

use super::{Naive, answer_id, begins_turn, is_answer};
use crate::message::{Message, Part};

/// The profiles whose rules the twin knows. The others have twins beside their rules, in core.
pub const PROFILES: [Profile; 2] = [Profile::OpenaiChat, Profile::Permissive];

/// The violations of a request, sorted.
#[must_use]
pub fn violations(profile: Profile, messages: &[Message]) -> Vec<(u32, ViolationKind)> {
    let mut found = match profile {
        Profile::OpenaiChat => steps(messages),
        _ => pairs_anywhere(messages),
    };
    found.sort_unstable();
    found
}

/// A violation as a pair, which can be sorted.
#[must_use]
pub const fn as_pair(violation: Violation) -> (u32, ViolationKind) {
    (violation.position, violation.kind)
}

/// A step is a message and the run of results after it; each result needs a call in its own step.
fn steps(messages: &[Message]) -> Vec<(u32, ViolationKind)> {
    let mut found = Vec::new();
    let starts: Vec<usize> =
        (0..messages.len()).filter(|at| *at == 0 || !is_answer(&messages[*at])).collect();
    for start in starts {
        let own = usize::from(!is_answer(&messages[start]));
        let results = messages[start + own..].iter().take_while(|message| is_answer(message)).count();
        let end = start + own + results;
        let mut waiting = messages[start].calls();
        let mut done: Vec<&str> = Vec::new();
        for (at, message) in messages.iter().enumerate().take(end).skip(start + own) {
            let id = answer_id(message);
            if let Some(call) = waiting.iter().position(|call| Some(*call) == id) {
                done.push(waiting.remove(call));
            } else {
                found.push((position(at), not_paired(id, &done)));
            }
        }
        let kind =
            if end == messages.len() { ViolationKind::PendingCall } else { ViolationKind::UnansweredCall };
        found.extend(waiting.iter().map(|_| (position(start), kind)));
    }
    found
}

/// Each result needs a call somewhere before it.
fn pairs_anywhere(messages: &[Message]) -> Vec<(u32, ViolationKind)> {
    let (mut found, mut waiting, mut done) = (Vec::new(), Vec::<(usize, &str)>::new(), Vec::new());
    for (at, message) in messages.iter().enumerate() {
        if is_answer(message) {
            let id = answer_id(message);
            let latest = waiting.iter().filter(|call| Some(call.1) == id).map(|call| call.0).max();
            let call = waiting.iter().position(|call| Some(call.0) == latest && Some(call.1) == id);
            match call {
                Some(call) => done.push(waiting.remove(call).1),
                None => found.push((position(at), not_paired(id, &done))),
            }
        }
        waiting.extend(message.calls().into_iter().map(|id| (at, id)));
    }
    found.extend(waiting.iter().map(|call| (position(call.0), ViolationKind::PendingCall)));
    found
}

fn not_paired(id: Option<&str>, done: &[&str]) -> ViolationKind {
    let second = id.is_some_and(|id| done.contains(&id));
    if second { ViolationKind::DuplicateResult } else { ViolationKind::OrphanResult }
}

/// The steps of a repair. Calls and results are paired. Results without a call are dropped. A result follows the
/// message of its call; for the permissive profile it stays in its place. A missing result is invented after the
/// message of its call.
#[must_use]
pub fn repair(profile: Profile, messages: &[Message], pending: Pending) -> Vec<Repair> {
    let pairs = pairs(messages);
    let is_paired = |at: usize| pairs.iter().any(|pair| pair.2 == at);
    let mut out = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        if is_answer(message) {
            if profile == Profile::Permissive && is_paired(at) {
                out.push(Repair::Keep(position(at)));
            }
            continue;
        }
        out.push(Repair::Keep(position(at)));
        if profile != Profile::Permissive {
            let results = pairs.iter().filter(|pair| pair.0 == at).map(|pair| pair.2);
            out.extend(results.map(|result| Repair::Keep(position(result))));
        }
        let runs = pending == Pending::Running && !messages[at + 1..].iter().any(begins_turn);
        if !runs {
            let missing = (0..message.calls().len())
                .filter(|nth| !pairs.iter().any(|pair| (pair.0, pair.1) == (at, *nth)));
            let is_followed = may_be_answered_aside(messages, at, is_paired);
            out.extend(missing.map(|nth| match (position(at), position(nth)) {
                (position, call) if is_followed => Repair::Unrecorded { position, call },
                (position, call) => Repair::Abort { position, call },
            }));
        }
    }
    out
}

/// Whether there is a user text, or a result without a call, between the run of the model's messages from `at` on and
/// its next message.
fn may_be_answered_aside(messages: &[Message], at: usize, is_paired: impl Fn(usize) -> bool) -> bool {
    let is_model = |at: &usize| messages[*at].role == Role::Assistant;
    let behind = (at..messages.len()).skip_while(is_model).take_while(|at| !is_model(at));
    let mut may_hold = behind.map(|at| match is_answer(&messages[at]) {
        true => !is_paired(at) || speaks(&messages[at]),
        false => speaks(&messages[at]),
    });
    may_hold.any(|may_hold| may_hold)
}

fn speaks(message: &Message) -> bool {
    let says = |part: &Part| matches!(part, Part::Text(_) | Part::Image | Part::Unknown);
    message.role == Role::User && message.parts.iter().any(says)
}

/// Pairs of calls and results, as the rules of grouping make them: the message of the call, the place of the call in
/// it, and the message of the result. In the order of the results.
fn pairs(messages: &[Message]) -> Vec<(usize, usize, usize)> {
    let naive = Naive::new(messages);
    let is_call = |awaited: &(OpenKind, &str)| awaited.0 == OpenKind::Call;
    let mut pairs = Vec::new();
    for (at, call) in naive.answers.iter().enumerate() {
        if let Some(call) = call.filter(|call| is_call(&naive.awaited(*call))) {
            let before = messages[call.message].awaited().into_iter().take(call.nth);
            pairs.push((call.message, before.filter(is_call).count(), at));
        }
    }
    pairs
}

fn position(at: usize) -> u32 {
    u32::try_from(at).unwrap()
}
