//! Rules for the content that reasoning must come with.

use super::{Violation, ViolationKind};
use crate::index::ResponseId;
use crate::profile::{Reasoning, Rules};
use crate::shape::{Kind, Shape};

/// State of the messages so far on which the rules of reasoning depend. It holds only the state for the profile's own
/// rule.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Thinking {
    /// The messages just before that end with reasoning.
    dangling: Option<Dangling>,
    turn: Turn,
    /// The first position at which the content differs from that which the provider has seen.
    first_changed: Option<u32>,
}

/// Neighbours that wait for the content that their reasoning led to.
#[derive(Debug, Clone, Copy)]
struct Dangling {
    first: u32,
    response: Option<ResponseId>,
}

/// The messages with calls since the user's last one.
#[derive(Debug, Clone, Copy, Default)]
struct Turn {
    reasoned: bool,
    /// The first message without reasoning.
    without: Option<u32>,
}

impl Thinking {
    pub(super) const fn with_edit(mut self, first_changed: u32) -> Self {
        self.first_changed = Some(first_changed);
        self
    }

    pub(super) fn push(&mut self, rules: &Rules, shape: &Shape, at: u32, found: &mut dyn FnMut(Violation)) {
        match rules.reasoning {
            Reasoning::Free => {}
            Reasoning::WithNext => self.push_item(shape, at, found),
            Reasoning::WithCalls => self.turn.push(shape, at),
            Reasoning::Bound => {
                if shape.opaque && self.first_changed.is_some_and(|first| at >= first) {
                    found(Violation::new(at, ViolationKind::BoundThinking));
                }
            }
        }
    }

    fn push_item(&mut self, shape: &Shape, at: u32, found: &mut dyn FnMut(Violation)) {
        let before = self.dangling.and_then(|dangling| dangling.response);
        if !shape.kind.is_model() || !shape.is_of(before) {
            self.end_item(at, found);
        }
        self.dangling = match self.dangling.filter(|_| shape.only_reasoning) {
            Some(before) => Some(Dangling { response: before.response.or(shape.response), ..before }),
            None if shape.dangling => Some(Dangling { first: at, response: shape.response }),
            None => None,
        };
    }

    /// Reports the reasoning that no other content followed before `end`.
    fn end_item(&mut self, end: u32, found: &mut dyn FnMut(Violation)) {
        if let Some(dangling) = self.dangling.take() {
            (dangling.first..end).for_each(|at| found(Violation::new(at, ViolationKind::LoneReasoning)));
        }
    }

    /// `end` is the number of messages.
    pub(super) fn finish(mut self, rules: &Rules, end: u32, found: &mut dyn FnMut(Violation)) {
        match rules.reasoning {
            Reasoning::WithNext => self.end_item(end, found),
            Reasoning::WithCalls => {
                if let Some(without) = self.turn.without.filter(|_| self.turn.reasoned) {
                    found(Violation::new(without, ViolationKind::MissingReasoning));
                }
            }
            Reasoning::Free | Reasoning::Bound => {}
        }
    }
}

impl Turn {
    fn push(&mut self, shape: &Shape, at: u32) {
        match shape.kind {
            Kind::User => *self = Self::default(),
            Kind::Calls if shape.reasoning => self.reasoned = true,
            Kind::Calls => self.without = self.without.or(Some(at)),
            Kind::Instruction | Kind::Says | Kind::Result => {}
        }
    }
}
