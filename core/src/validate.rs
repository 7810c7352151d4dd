//! Check whether a provider would accept a request.

mod grammar;
mod pairing;
#[cfg(test)]
mod table_test;
mod thinking;
mod violation;

pub use violation::{Violation, ViolationKind};

use grammar::Grammar;
use pairing::Pairing;
use thinking::Thinking;

use crate::message::MessageView;
use crate::open_calls::OpenCalls;
use crate::profile::{Instructions, Profile, Rules};
use crate::shape::{Kind, Shape};
use crate::table::Full;

/// Checks a request against a profile, message by message, and reports every breach of its rules.
///
/// ```
/// use epitome_core::message::{SimpleMessage, ToolCallView};
/// use epitome_core::{OpenCallSlots, Profile, Validator, ViolationKind};
///
/// let calls = [ToolCallView::new("c1", "read", "a.txt")];
/// let mut found = Vec::new();
/// let mut validator = Validator::<OpenCallSlots<8>>::new(Profile::OpenaiChat);
/// for message in [SimpleMessage::user("Read a.txt."), SimpleMessage::calls(&calls), SimpleMessage::user("Hello?")] {
///     validator.push(&message, &mut |violation| found.push(violation))?;
/// }
/// validator.finish(&mut |violation| found.push(violation));
/// assert_eq!((found[0].position, found[0].kind), (1, ViolationKind::UnansweredCall));
/// # Ok::<(), epitome_core::Full>(())
/// ```
#[derive(Debug, Clone)]
pub struct Validator<C> {
    rules: &'static Rules,
    pairing: Pairing<C>,
    grammar: Grammar,
    thinking: Thinking,
    position: u32,
}

impl<C: OpenCalls + Default> Validator<C> {
    /// A validator at the beginning of a request.
    #[must_use]
    pub fn new(profile: Profile) -> Self {
        Self {
            rules: profile.rules(),
            pairing: Pairing::default(),
            grammar: Grammar::default(),
            thinking: Thinking::default(),
            position: 0,
        }
    }
}

impl<C: OpenCalls> Validator<C> {
    /// Sets the first position from which on the request differs from the content that the provider has seen before: a
    /// message there was edited, left out, inserted or moved.
    ///
    /// Where signatures of reasoning cover everything before it ([`Profile::Anthropic`]), signed reasoning at or after
    /// this position is then a [`ViolationKind::BoundThinking`]. Without this call, all signed reasoning counts as
    /// unchanged and in its original place.
    #[must_use]
    pub const fn with_edit(mut self, first_changed: u32) -> Self {
        self.thinking = self.thinking.with_edit(first_changed);
        self
    }

    /// Checks the next message, and calls `found` with each violation that has become certain.
    ///
    /// A missing result becomes certain when another message comes in its place.
    ///
    /// # Errors
    /// [`Full`] if there is no room to remember the calls. The following messages cannot be checked then.
    pub fn push<M: MessageView + ?Sized>(
        &mut self,
        message: &M,
        found: &mut dyn FnMut(Violation),
    ) -> Result<(), Full> {
        let (shape, position) = (Shape::of(message), self.position);
        self.position = position.saturating_add(1);
        let mut here = |kind| found(Violation::new(position, kind));
        if shape.kind == Kind::Instruction && self.rules.instructions != Instructions::Anywhere {
            // Instructions are sent apart, and so never separate two other messages.
            self.grammar.instruct(self.rules, &mut here);
            return Ok(());
        }
        self.grammar.push(self.rules, &shape, &mut here);
        self.thinking.push(self.rules, &shape, position, found);
        self.pairing.push(self.rules, shape.kind, message, position, found)
    }

    /// Ends the request, and calls `found` with the remaining violations.
    pub fn finish(self, found: &mut dyn FnMut(Violation)) {
        let last = self.position.saturating_sub(1);
        self.grammar.finish(self.rules, &mut |kind| found(Violation::new(last, kind)));
        self.thinking.finish(self.rules, self.position, found);
        self.pairing.finish(found);
    }
}
