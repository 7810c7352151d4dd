//! Messages written as a few letters, for tables of cases and for generated conversations.

use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

use crate::attribution::AttributionView;
use crate::message::{
    ApprovalAnswerView, ApprovalView, CallKind, CompactionView, MessageView, PartView, Parts, ReasoningView,
    Role, Text, ToolCallView, ToolResultView,
};

/// A message: a role and its parts.
///
/// Notation: the role (`s`ystem, `d`eveloper, `u`ser, `a`ssistant, `t`ool), the parts, and `@` with the response id.
/// Parts are `t`ext, `r`easoning, `i` reasoning with an id, `o`paque reasoning, `c1` the call 1, `h1` a hosted call,
/// `1` the result of call 1, `k` the content of a compaction, `y` an answer to an approval. A role alone has one text.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct TestMessage {
    pub(crate) role: Role,
    pub(crate) parts: Vec<TestPart>,
    pub(crate) response: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TestPart {
    Text,
    Reasoning,
    Item,
    Opaque,
    Call(String),
    Hosted(String),
    Result(String),
    Compaction,
    Approval,
}

impl TestMessage {
    pub(crate) fn parse(text: &str) -> Self {
        let (body, response) = text.split_once('@').map_or((text, None), |(body, id)| (body, Some(id)));
        let mut letters = body.chars();
        let role = match letters.next() {
            Some('s') => Role::System,
            Some('d') => Role::Developer,
            Some('u') => Role::User,
            Some('a') => Role::Assistant,
            Some('t') => Role::Tool,
            other => panic!("no role: {other:?} in {text}"),
        };
        let mut parts = Vec::new();
        while let Some(letter) = letters.next() {
            let mut id = || letters.next().expect("an id").to_string();
            parts.push(match letter {
                't' => TestPart::Text,
                'r' => TestPart::Reasoning,
                'i' => TestPart::Item,
                'o' => TestPart::Opaque,
                'c' => TestPart::Call(id()),
                'h' => TestPart::Hosted(id()),
                'k' => TestPart::Compaction,
                'y' => TestPart::Approval,
                '1'..='9' => TestPart::Result(letter.to_string()),
                other => panic!("no part: {other:?} in {text}"),
            });
        }
        if parts.is_empty() && role != Role::Tool {
            parts.push(TestPart::Text);
        }
        Self { role, parts, response: response.map(str::to_string) }
    }

    pub(crate) fn parse_all(text: &str) -> Vec<Self> {
        text.split_whitespace().map(Self::parse).collect()
    }
}

#[cfg(feature = "alloc")]
impl TestMessage {
    pub(crate) fn new(role: Role, parts: impl Into<Vec<TestPart>>) -> Self {
        Self { role, parts: parts.into(), response: None }
    }

    pub(crate) fn is_reasoning(part: &TestPart) -> bool {
        matches!(part, TestPart::Reasoning | TestPart::Item | TestPart::Opaque)
    }

    pub(crate) fn calls(&self) -> Vec<&str> {
        let call = |part: &'_ TestPart| matches!(part, TestPart::Call(_)) && self.role == Role::Assistant;
        self.parts.iter().filter(|part| call(part)).map(TestPart::id).collect()
    }

    /// The id of the call that the message answers; empty for a tool message without a result.
    pub(crate) fn result(&self) -> Option<&str> {
        let result = |part: &&TestPart| matches!(part, TestPart::Result(_)) && self.role != Role::Assistant;
        let id = self.parts.iter().find(result).map(TestPart::id);
        id.or((self.role == Role::Tool).then_some(""))
    }
}

impl TestPart {
    fn view(&self, visit: &mut dyn FnMut(PartView<'_>)) {
        let reasoning = ReasoningView::new("Hm.");
        match self {
            Self::Text => visit(PartView::Text("Yes.")),
            Self::Reasoning => visit(PartView::Reasoning(reasoning)),
            Self::Item => visit(PartView::Reasoning(reasoning.with_id(Some("rs")))),
            Self::Opaque => visit(PartView::Reasoning(reasoning.with_opaque(Some("sig")))),
            Self::Call(id) => visit(PartView::ToolCall(ToolCallView::new(id, "read", "{}"))),
            Self::Hosted(id) => {
                visit(PartView::ToolCall(ToolCallView::new(id, "search", "{}").with_kind(CallKind::Hosted)));
            }
            Self::Result(id) => visit(PartView::ToolResult(ToolResultView::new(id, &Text("ok")))),
            Self::Compaction => visit(PartView::Compaction(CompactionView::new("p", "", Some("x")))),
            Self::Approval => {
                visit(PartView::ApprovalResponse(ApprovalAnswerView::new(ApprovalView::new("p1", "1"), true)))
            }
        }
    }

    fn letters(&self) -> String {
        match self {
            Self::Text => "t".into(),
            Self::Reasoning => "r".into(),
            Self::Item => "i".into(),
            Self::Opaque => "o".into(),
            Self::Call(id) => format!("c{id}"),
            Self::Hosted(id) => format!("h{id}"),
            Self::Result(id) => id.clone(),
            Self::Compaction => "k".into(),
            Self::Approval => "y".into(),
        }
    }
}

#[cfg(feature = "alloc")]
impl TestPart {
    fn id(&self) -> &str {
        match self {
            Self::Call(id) | Self::Hosted(id) | Self::Result(id) => id,
            _ => "",
        }
    }
}

impl core::fmt::Debug for TestMessage {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:.1}", self.role.as_str())?;
        self.parts.iter().try_for_each(|part| write!(f, "{}", part.letters()))?;
        self.response.as_ref().map_or(Ok(()), |id| write!(f, "@{id}"))
    }
}

impl Parts for TestMessage {
    fn for_each_part(&self, visit: &mut dyn FnMut(PartView<'_>)) {
        self.parts.iter().for_each(|part| part.view(visit));
    }
}

impl MessageView for TestMessage {
    fn role(&self) -> Role {
        self.role
    }

    fn attribution(&self) -> AttributionView<'_> {
        AttributionView::caller(self.role.authority())
    }

    fn response_id(&self) -> Option<&str> {
        self.response.as_deref()
    }
}
