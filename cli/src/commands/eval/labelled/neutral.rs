//! The neutral form: messages with ids, and questions with the ids of the messages that answer them.

use serde::Deserialize;

use super::value::Label;

/// A conversation and the questions about it. The other shapes are converted to this one.
#[derive(Debug, Deserialize)]
pub(super) struct Conversation {
    #[serde(default)]
    pub(super) id: Option<String>,
    pub(super) messages: Vec<Message>,
    pub(super) questions: Vec<Question>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Message {
    pub(super) id: Label,
    /// Without a role, the first speaker is the user, and every other speaker is the assistant.
    #[serde(default)]
    pub(super) role: Option<Speaker>,
    #[serde(default)]
    pub(super) speaker: Option<String>,
    #[serde(default)]
    pub(super) time: Option<String>,
    pub(super) text: String,
}

/// A role of a message. There is no tool: its results could not name a call here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Speaker {
    System,
    User,
    Assistant,
}

#[derive(Debug, Deserialize)]
pub(super) struct Question {
    pub(super) text: String,
    #[serde(default)]
    pub(super) answer: Option<Label>,
    /// The ids of the messages that answer the question.
    pub(super) evidence: Vec<Label>,
    #[serde(default)]
    pub(super) category: Option<Label>,
}
