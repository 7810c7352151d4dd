//! Rules for the order of roles.

use super::ViolationKind;
use crate::profile::{First, Instructions, Neighbours, Rules};
use crate::shape::{Kind, Shape};

/// State of the messages so far on which the order of roles depends.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Grammar {
    /// The message before, instructions aside.
    previous: Option<Kind>,
    /// The latest message that counts if messages of tools do not.
    said: Option<Kind>,
    instructed: bool,
    /// Whether there was a user message, or a message that may take the place of the first one.
    user: bool,
}

impl Grammar {
    /// Checks instructions, if they must lead.
    pub(super) fn instruct(&mut self, rules: &Rules, found: &mut dyn FnMut(ViolationKind)) {
        if self.previous.is_some() {
            found(ViolationKind::LateInstruction);
        } else if self.instructed && rules.instructions == Instructions::OneLeading {
            found(ViolationKind::SecondInstruction);
        }
        self.instructed = true;
    }

    /// Checks any other message.
    pub(super) fn push(&mut self, rules: &Rules, shape: &Shape, found: &mut dyn FnMut(ViolationKind)) {
        let kind = shape.kind;
        let begins = kind == Kind::User || rules.first == First::UserOrCompaction && shape.compaction;
        let first = self.previous.is_none();
        if first && rules.first != First::Anyone && !begins {
            found(ViolationKind::FirstNotUser);
        }
        self.user |= kind == Kind::User || first && begins;
        match rules.neighbours {
            Neighbours::Free | Neighbours::Joined => {}
            Neighbours::Alternate => {
                if self.previous.is_some_and(|previous| same_role(previous, kind)) {
                    found(ViolationKind::SameRole);
                }
            }
            Neighbours::AlternateBesideTools => self.push_beside_tools(kind, found),
        }
        self.previous = Some(kind);
    }

    fn push_beside_tools(&mut self, kind: Kind, found: &mut dyn FnMut(ViolationKind)) {
        if kind == Kind::User && self.previous == Some(Kind::Result) {
            found(ViolationKind::UserAfterResult);
        }
        if matches!(kind, Kind::User | Kind::Says) {
            if self.said == Some(kind) {
                found(ViolationKind::SameRole);
            }
            self.said = Some(kind);
        }
    }

    /// Checks the rules that only the end of the request decides.
    pub(super) fn finish(self, rules: &Rules, found: &mut dyn FnMut(ViolationKind)) {
        if rules.first != First::Anyone && !self.user {
            found(ViolationKind::NoUser);
        }
    }
}

/// Whether both messages are of the model, or both are the user's own text, which may continue a turn of results.
fn same_role(previous: Kind, kind: Kind) -> bool {
    previous.is_model() && kind.is_model() || previous == Kind::User && kind == Kind::User
}
