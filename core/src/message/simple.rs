//! Messages of borrowed text, for tests, examples and the simplest devices.

use super::{MessageView, PartView, Parts, Role, ToolCallView, ToolResultView};
use crate::attribution::AttributionView;

/// A message of borrowed text in one role from the caller: for tests, examples and the simplest devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimpleMessage<'a> {
    role: Role,
    text: &'a str,
    calls: &'a [ToolCallView<'a>],
    answers: Option<&'a str>,
    attribution: AttributionView<'a>,
}

impl<'a> SimpleMessage<'a> {
    /// A system message with instructions.
    #[must_use]
    pub const fn system(text: &'a str) -> Self {
        Self::new(Role::System, text)
    }

    /// A user message.
    #[must_use]
    pub const fn user(text: &'a str) -> Self {
        Self::new(Role::User, text)
    }

    /// A message of the model.
    #[must_use]
    pub const fn assistant(text: &'a str) -> Self {
        Self::new(Role::Assistant, text)
    }

    /// A message of the model with calls.
    #[must_use]
    pub const fn calls(calls: &'a [ToolCallView<'a>]) -> Self {
        let mut message = Self::new(Role::Assistant, "");
        message.calls = calls;
        message
    }

    /// A tool message with the answer to the call `id`.
    #[must_use]
    pub const fn result(id: &'a str, text: &'a str) -> Self {
        let mut message = Self::new(Role::Tool, text);
        message.answers = Some(id);
        message
    }

    /// Sets the attribution.
    #[must_use]
    pub const fn with_attribution(mut self, attribution: AttributionView<'a>) -> Self {
        self.attribution = attribution;
        self
    }

    const fn new(role: Role, text: &'a str) -> Self {
        let attribution = AttributionView::caller(role.authority());
        Self { role, text, calls: &[], answers: None, attribution }
    }
}

impl Parts for SimpleMessage<'_> {
    fn for_each_part(&self, visit: &mut dyn FnMut(PartView<'_>)) {
        match self.answers {
            Some(id) => visit(PartView::ToolResult(ToolResultView::new(id, &Text(self.text)))),
            None if !self.text.is_empty() => visit(PartView::Text(self.text)),
            None => {}
        }
        for call in self.calls {
            visit(PartView::ToolCall(*call));
        }
    }
}

impl MessageView for SimpleMessage<'_> {
    fn role(&self) -> Role {
        self.role
    }

    fn attribution(&self) -> AttributionView<'_> {
        self.attribution
    }
}

/// One text as the whole content of a tool result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a text with a name: its one field is its meaning")]
pub struct Text<'a>(pub &'a str);

impl Parts for Text<'_> {
    fn for_each_part(&self, visit: &mut dyn FnMut(PartView<'_>)) {
        visit(PartView::Text(self.0));
    }
}
