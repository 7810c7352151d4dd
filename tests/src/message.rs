//! An owned message for tests: small enough to print, rich enough for every rule of grouping.

use core::fmt;

use epitome_core::attribution::{AttributionView, Retention, SourceKind};
use epitome_core::message::{
    ApprovalAnswerView, ApprovalView, CallKind, MediaKind, MediaView, MessageView, PartView, Parts,
    ReasoningView, Role, Text, ToolCallView, ToolResultView,
};
use epitome_core::{BRIDGE, BRIDGE_USER, Repair, Tokens};

/// A message with its size.
#[derive(Clone, PartialEq, Eq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What it holds.
    pub parts: Vec<Part>,
    /// The provider's id of the response.
    pub response: Option<String>,
    /// What kind of component added it.
    pub source: SourceKind,
    /// How long it must stay.
    pub retention: Retention,
    /// Its size.
    pub tokens: u32,
}

/// A piece of a message's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Text.
    Text(String),
    /// Readable reasoning.
    Reasoning(String),
    /// A call that the caller runs.
    Call(String),
    /// A call that the provider runs.
    HostedCall(String),
    /// The answer to a call.
    Result(String),
    /// A picture.
    Image,
    /// A question about a call.
    Asks(String),
    /// The answer to that question.
    Approves(String),
}

impl Message {
    /// A message of the caller.
    #[must_use]
    pub fn new(role: Role, parts: Vec<Part>, tokens: u32) -> Self {
        let (source, retention) = (SourceKind::Caller, Retention::Normal);
        Self { role, parts, response: None, source, retention, tokens }
    }

    /// What stands in the place of a result that never came.
    #[must_use]
    pub fn aborted(id: &str) -> Self {
        Self::new(Role::Tool, vec![Part::Result(id.to_owned())], 1)
    }

    /// The same message from another kind of component.
    #[must_use]
    pub fn with_source(mut self, source: SourceKind) -> Self {
        self.source = source;
        self
    }

    /// Its size.
    #[must_use]
    pub const fn size(&self) -> Tokens {
        Tokens(self.tokens)
    }

    /// The ids of its calls that a result must follow, in order.
    #[must_use]
    pub fn calls(&self) -> Vec<&str> {
        let is_model = self.role == Role::Assistant;
        let id = |part: &'_ Part| matches!(part, Part::Call(_)) && is_model;
        self.parts.iter().filter(|part| id(part)).filter_map(Part::id).collect()
    }
}

impl Part {
    fn id(&self) -> Option<&str> {
        match self {
            Self::Call(id)
            | Self::HostedCall(id)
            | Self::Result(id)
            | Self::Asks(id)
            | Self::Approves(id) => Some(id),
            Self::Text(_) | Self::Reasoning(_) | Self::Image => None,
        }
    }
}

/// On one line, so that a failing case can be read at a glance.
impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {:?}", self.role.as_str(), self.tokens, self.parts)?;
        if let Some(response) = &self.response {
            write!(f, " response={response}")?;
        }
        if self.source != SourceKind::Caller {
            write!(f, " {:?}", self.source)?;
        }
        if self.retention != Retention::Normal {
            write!(f, " {:?}", self.retention)?;
        }
        Ok(())
    }
}

impl Parts for Message {
    fn for_each_part(&self, visit: &mut dyn FnMut(PartView<'_>)) {
        for part in &self.parts {
            visit(match part {
                Part::Text(text) => PartView::Text(text),
                Part::Reasoning(text) => PartView::Reasoning(ReasoningView::new(text)),
                Part::Call(id) => PartView::ToolCall(ToolCallView::new(id, "read", "{}")),
                Part::HostedCall(id) => {
                    PartView::ToolCall(ToolCallView::new(id, "search", "{}").with_kind(CallKind::Hosted))
                }
                Part::Result(id) => PartView::ToolResult(ToolResultView::new(id, &Text("done"))),
                Part::Image => PartView::Media(MediaView::new(MediaKind::Image, "image/png")),
                Part::Asks(id) => PartView::ApprovalRequest(ApprovalView::new("approval", id)),
                Part::Approves(id) => PartView::ApprovalResponse(ApprovalAnswerView::new(
                    ApprovalView::new("approval", id),
                    true,
                )),
            });
        }
    }
}

impl MessageView for Message {
    fn role(&self) -> Role {
        self.role
    }

    fn attribution(&self) -> AttributionView<'_> {
        let mut attribution = AttributionView::caller(self.role.authority());
        attribution.source = self.source;
        attribution.retention = self.retention;
        attribution
    }

    fn response_id(&self) -> Option<&str> {
        self.response.as_deref()
    }
}

/// The request that `repairs` describe, written out.
#[must_use]
pub fn repaired(messages: &[Message], repairs: &[Repair]) -> Vec<Message> {
    let mut out: Vec<Message> = Vec::new();
    for repair in repairs {
        match *repair {
            Repair::Keep(at) => out.push(messages[at as usize].clone()),
            Repair::Abort { position, call } => {
                out.push(Message::aborted(messages[position as usize].calls()[call as usize]));
            }
            Repair::Merge { position } => {
                let before = out.last_mut().expect("a message to join");
                before.parts.extend(messages[position as usize].parts.iter().cloned());
            }
            Repair::DropReasoning { position } => {
                let mut message = messages[position as usize].clone();
                message.parts.retain(|part| !matches!(part, Part::Reasoning(_)));
                out.push(message);
            }
            Repair::BridgeUser => out.push(bridge(Role::User, BRIDGE_USER)),
            Repair::BridgeAssistant => out.push(bridge(Role::Assistant, BRIDGE)),
            _ => unreachable!("a repair of a new kind"),
        }
    }
    out
}

fn bridge(role: Role, text: &str) -> Message {
    Message::new(role, vec![Part::Text(text.to_owned())], 1)
}
