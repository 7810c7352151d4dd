//! Series of operations, for cases that single random operations seldom reach.

use epitome_core::message::Role;

use super::{Op, Owned, Then};

fn said(role: Role, text: &str) -> Op {
    let text = text.into();
    Op::Push(Owned { role, text, calls: Vec::new(), answers: None, response: None, pinned: false })
}

fn calls(id: &str) -> Op {
    let (role, calls) = (Role::Assistant, vec![id.into()]);
    Op::Push(Owned { role, text: String::new(), calls, answers: None, response: None, pinned: false })
}

fn answers(id: &str, text: &str) -> Op {
    let (role, answers, text) = (Role::Tool, Some(id.into()), text.into());
    Op::Push(Owned { role, text, calls: Vec::new(), answers, response: None, pinned: false })
}

/// A call that is dropped without an answer, and its late answer.
#[must_use]
pub fn answer_to_a_dropped_call(id: &str) -> Vec<Op> {
    let drop = Op::Plan { mask: u32::MAX, elide: 0, note: String::new(), then: Then::Compact };
    vec![calls(id), said(Role::User, "and now"), said(Role::Assistant, "yes"), drop, answers(id, "late")]
}

/// A result that is old enough to be cleared, and a compaction that puts a note in its place.
#[must_use]
pub fn cleared_result(id: &str, text: &str, note: &str) -> Vec<Op> {
    let clear = Op::Plan { mask: 0, elide: u32::MAX, note: note.into(), then: Then::Compact };
    vec![calls(id), answers(id, text), said(Role::User, "next"), said(Role::Assistant, "yes"), clear]
}
