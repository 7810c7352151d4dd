//! A message that can be made of any text.

use epitome_core::attribution::{AttributionView, Retention, SourceKind};
use epitome_core::message::{MessageView, PartView, Parts, Role, Text, ToolCallView, ToolResultView};

/// A message that can be made of any text.
#[derive(Debug, Clone)]
pub struct Owned {
    /// The speaker.
    pub role: Role,
    /// The text.
    pub text: String,
    /// The ids of its calls.
    pub calls: Vec<String>,
    /// The id of the call that it answers.
    pub answers: Option<String>,
    /// The provider's id of the response.
    pub response: Option<String>,
    /// Whether it is pinned.
    pub pinned: bool,
}

impl Parts for Owned {
    fn for_each_part(&self, visit: &mut dyn FnMut(PartView<'_>)) {
        match &self.answers {
            Some(id) => visit(PartView::ToolResult(ToolResultView::new(id, &Text(&self.text)))),
            None => visit(PartView::Text(&self.text)),
        }
        for id in &self.calls {
            visit(PartView::ToolCall(ToolCallView::new(id, "tool", &self.text)));
        }
    }
}

impl MessageView for Owned {
    fn role(&self) -> Role {
        self.role
    }

    fn attribution(&self) -> AttributionView<'_> {
        let mut attribution = AttributionView::caller(self.role.authority());
        if self.role == Role::System {
            attribution.source = SourceKind::Context;
        }
        if self.pinned {
            attribution.retention = Retention::Pinned;
        }
        attribution
    }

    fn response_id(&self) -> Option<&str> {
        self.response.as_deref()
    }
}
