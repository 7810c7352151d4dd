//! LongMemEval: one question for each history of sessions. The field `has_answer` marks the turns that answer it.

use serde::Deserialize;

use super::neutral::{Conversation, Message, Question, Speaker};
use super::value::Label;

/// One question with its history.
#[derive(Debug, Deserialize)]
pub(super) struct Instance {
    question_id: String,
    question: String,
    #[serde(default)]
    answer: Option<Label>,
    #[serde(default)]
    question_type: Option<Label>,
    /// The time of each session.
    #[serde(default)]
    haystack_dates: Vec<String>,
    haystack_sessions: Vec<Vec<Turn>>,
}

#[derive(Debug, Deserialize)]
struct Turn {
    role: Speaker,
    content: String,
    #[serde(default)]
    has_answer: bool,
}

impl From<Instance> for Conversation {
    fn from(instance: Instance) -> Self {
        let mut dates = instance.haystack_dates.into_iter();
        let (mut messages, mut evidence) = (Vec::new(), Vec::new());
        for (number, session) in (1_u32..).zip(instance.haystack_sessions) {
            let time = dates.next();
            for (turn, Turn { role, content, has_answer }) in (1_u32..).zip(session) {
                let id = Label(format!("{number}:{turn}"));
                if has_answer {
                    evidence.push(id.clone());
                }
                messages.push(Message {
                    id,
                    role: Some(role),
                    speaker: None,
                    time: time.clone(),
                    text: content,
                });
            }
        }
        let question = Question {
            text: instance.question,
            answer: instance.answer,
            evidence,
            category: instance.question_type,
        };
        Self { id: Some(instance.question_id), messages, questions: vec![question] }
    }
}
