//! An owned message for tests: small enough to print, rich enough for every rule of grouping.

use core::fmt;

use epitome_core::attribution::{AttributionView, Retention, SourceKind};
use epitome_core::message::{
    ApprovalAnswerView, ApprovalView, CallKind, CompactionView, MediaKind, MediaView, MessageView, PartView,
    Parts, ReasoningView, Role, Text, ToolCallView, ToolResultView, UnknownView,
};
use epitome_core::{BRIDGE, BRIDGE_USER, OpenKind, Repair, Tokens};

/// A message with its size.
#[derive(Clone, PartialEq, Eq)]
pub struct Message {
    /// The speaker.
    pub role: Role,
    /// The content.
    pub parts: Vec<Part>,
    /// The provider's id of the response.
    pub response: Option<String>,
    /// The kind of the component that added it.
    pub source: SourceKind,
    /// Its retention: normal, pinned or ephemeral.
    pub retention: Retention,
    /// Its size.
    pub tokens: u32,
    /// The sizes of its parts, where some have been shortened.
    pub sizes: Option<Vec<u32>>,
}

/// A piece of a message's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Text.
    Text(String),
    /// Readable reasoning.
    Reasoning(String),
    /// Reasoning that has an id, as an item of its own.
    Item,
    /// Reasoning with a signature over all that precedes it.
    Signed,
    /// The compaction item of a provider.
    Compacted,
    /// A part of an unknown kind.
    Unknown,
    /// A call that the caller runs.
    Call(String),
    /// A call that the provider runs.
    HostedCall(String),
    /// The answer to a call.
    Result(String),
    /// The result of a hosted tool, in a form that only its provider reads.
    Sealed(String),
    /// A picture.
    Image,
    /// A request for approval.
    Asks(String),
    /// A person's answer to it.
    Approves(String),
}

impl Message {
    /// A message of the caller.
    #[must_use]
    pub fn new(role: Role, parts: Vec<Part>, tokens: u32) -> Self {
        let (source, retention) = (SourceKind::Caller, Retention::Normal);
        Self { role, parts, response: None, source, retention, tokens, sizes: None }
    }

    /// The message in the place of a result that never came.
    #[must_use]
    pub fn aborted(id: &str) -> Self {
        Self::new(Role::Tool, vec![Part::Result(id.to_owned())], 1)
    }

    /// Sets another kind of component as the source.
    #[must_use]
    pub fn with_source(mut self, source: SourceKind) -> Self {
        self.source = source;
        self
    }

    /// A summary from outside.
    #[must_use]
    pub fn summary(tokens: u32) -> Self {
        let said = vec![Part::Text("S.".to_owned())];
        Self::new(Role::Assistant, said, tokens).with_source(SourceKind::Compaction)
    }

    /// Whether it comes from a compaction, and has no call or request for approval that awaits an answer.
    #[must_use]
    pub fn is_summary(&self) -> bool {
        self.source == SourceKind::Compaction && self.awaited().is_empty()
    }

    /// Its size.
    #[must_use]
    pub const fn size(&self) -> Tokens {
        Tokens(self.tokens)
    }

    /// The size of the part at `ordinal`: the same for all parts until one is shortened. The remainder of the message
    /// is framing.
    #[must_use]
    pub fn part_size(&self, ordinal: usize) -> Tokens {
        let parts = u32::try_from(self.parts.len()).unwrap_or(u32::MAX);
        let even = self.tokens.checked_div(parts).unwrap_or(0);
        Tokens(self.sizes.as_ref().map_or(even, |sizes| sizes[ordinal]))
    }

    /// Puts a note of this size in the place of a part. Without a note, removes the part (reasoning).
    ///
    /// # Panics
    /// If it has no such part.
    pub fn shorten(&mut self, ordinal: usize, note: Option<u32>) {
        let mut sizes: Vec<u32> = (0..self.parts.len()).map(|at| self.part_size(at).0).collect();
        self.tokens = self.tokens - sizes[ordinal] + note.unwrap_or(0);
        match (&self.parts[ordinal], note) {
            (_, None) => {
                self.parts.remove(ordinal);
                sizes.remove(ordinal);
            }
            (part, Some(note)) => {
                if !matches!(part, Part::Result(_) | Part::Call(_)) {
                    self.parts[ordinal] = Part::Text("[-]".into());
                }
                sizes[ordinal] = note;
            }
        }
        self.sizes = Some(sizes);
    }

    /// The ids of its calls that a result must follow, in order.
    #[must_use]
    pub fn calls(&self) -> Vec<&str> {
        let is_model = self.role == Role::Assistant;
        let id = |part: &'_ Part| matches!(part, Part::Call(_)) && is_model;
        self.parts.iter().filter(|part| id(part)).filter_map(Part::id).collect()
    }

    /// The calls and the requests for approval that await an answer, by their ids, in order.
    #[must_use]
    pub fn awaited(&self) -> Vec<(OpenKind, &str)> {
        let parts = self.parts.iter().filter(|_| self.role == Role::Assistant);
        let awaited = parts.filter_map(|part| match part {
            Part::Call(id) => Some((OpenKind::Call, id.as_str())),
            Part::Asks(id) => Some((OpenKind::Approval, id.as_str())),
            _ => None,
        });
        awaited.collect()
    }
}

impl Part {
    /// Whether it is reasoning of the model.
    #[must_use]
    pub const fn is_reasoning(&self) -> bool {
        matches!(self, Self::Reasoning(_) | Self::Item | Self::Signed)
    }

    fn id(&self) -> Option<&str> {
        match self {
            Self::Call(id)
            | Self::HostedCall(id)
            | Self::Result(id)
            | Self::Sealed(id)
            | Self::Asks(id)
            | Self::Approves(id) => Some(id),
            Self::Text(_)
            | Self::Reasoning(_)
            | Self::Item
            | Self::Signed
            | Self::Compacted
            | Self::Unknown
            | Self::Image => None,
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
                Part::Item => PartView::Reasoning(ReasoningView::new("Hm.").with_id(Some("rs_1"))),
                Part::Signed => PartView::Reasoning(ReasoningView::new("Hm.").with_opaque(Some("c2ln"))),
                Part::Compacted => PartView::Compaction(CompactionView::new("p", "", Some("b3BhcXVl"))),
                Part::Unknown => PartView::Unknown(UnknownView::new("p", "hologram", "{}")),
                Part::Call(id) => {
                    let tool = if id.starts_with('s') { "search" } else { "read" };
                    PartView::ToolCall(ToolCallView::new(id, tool, "{}"))
                }
                Part::HostedCall(id) => {
                    let tool = if id.starts_with('s') { "search" } else { "read" };
                    PartView::ToolCall(ToolCallView::new(id, tool, "{}").with_kind(CallKind::Hosted))
                }
                Part::Result(id) => PartView::ToolResult(ToolResultView::new(id, &Text("done"))),
                Part::Sealed(id) => PartView::ToolResult(ToolResultView::new(id, &Encrypted)),
                Part::Image => PartView::Media(MediaView::new(MediaKind::Image, "image/png")),
                // The id is often also the id of a call, which must not matter.
                Part::Asks(id) => PartView::ApprovalRequest(ApprovalView::new(id, "")),
                Part::Approves(id) => {
                    PartView::ApprovalResponse(ApprovalAnswerView::new(ApprovalView::new(id, ""), true))
                }
            });
        }
    }
}

/// Content of a sealed result.
struct Encrypted;

impl Parts for Encrypted {
    fn for_each_part(&self, visit: &mut dyn FnMut(PartView<'_>)) {
        visit(PartView::Unknown(UnknownView::new("p", "encrypted", "{}")));
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

/// Carries out `repairs`, and returns the request.
#[must_use]
pub fn repaired(messages: &[Message], repairs: &[Repair]) -> Vec<Message> {
    let mut out: Vec<Message> = Vec::new();
    for repair in repairs {
        match *repair {
            Repair::Keep(at) => out.push(messages[at as usize].clone()),
            Repair::Abort { position, call } | Repair::Unrecorded { position, call } => {
                out.push(Message::aborted(messages[position as usize].calls()[call as usize]));
            }
            Repair::Merge { position } => {
                let before = out.last_mut().expect("a message to join");
                before.parts.extend(messages[position as usize].parts.iter().cloned());
            }
            Repair::DropReasoning { position } => {
                let mut message = messages[position as usize].clone();
                message.parts.retain(|part| !part.is_reasoning());
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
