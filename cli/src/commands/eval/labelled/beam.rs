//! BEAM, as in its repository: `chat.json`, and the questions beside it in `probing_questions/probing_questions.json`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::neutral::{Conversation, Message, Question, Speaker};
use super::shape::Shape;
use super::value::{self, Label};
use super::whole;
use crate::failure::{Failure, Result};

/// Path of the questions, from the folder of the conversation.
const QUESTIONS: &str = "probing_questions/probing_questions.json";

/// The conversation in `text`, the contents of `path`, with its questions.
pub(super) fn read(path: &Path, text: &str) -> Result<Conversation> {
    let batches: Vec<Batch> = value::read(path, text, &Shape::Beam)?;
    let beside = path.with_file_name(QUESTIONS);
    if !beside.is_file() {
        return Err(Failure::input(format!(
            "{}: a conversation of BEAM without its questions; expected them in {}",
            path.display(),
            beside.display()
        )));
    }
    let asked: BTreeMap<String, Vec<Asked>> = value::read(&beside, &whole(&beside)?, &Shape::Beam)?;
    let messages = batches.into_iter().flat_map(|batch| batch.turns).flatten().map(|turn| Message {
        id: turn.id,
        role: Some(turn.role),
        speaker: None,
        time: turn.time_anchor,
        text: turn.content,
    });
    let questions = asked.into_iter().flat_map(|(category, asked)| {
        asked.into_iter().map(move |asked| asked.into_question(category.clone()))
    });
    Ok(Conversation { id: None, messages: messages.collect(), questions: questions.collect() })
}

#[derive(Debug, Deserialize)]
struct Batch {
    turns: Vec<Vec<Turn>>,
}

#[derive(Debug, Deserialize)]
struct Turn {
    id: Label,
    role: Speaker,
    content: String,
    #[serde(default)]
    time_anchor: Option<String>,
}

/// A question. Its answer has another field name in each category. A description of a good answer is not an answer.
#[derive(Debug, Deserialize)]
struct Asked {
    question: String,
    #[serde(default, alias = "ideal_answer", alias = "ideal_response", alias = "ideal_summary")]
    answer: Option<Label>,
    #[serde(default)]
    source_chat_ids: Option<Sources>,
}

/// Ids of messages: a list, or lists by their purpose.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Sources {
    One(Label),
    Many(Vec<Self>),
    Named(BTreeMap<String, Self>),
}

impl Asked {
    fn into_question(self, category: String) -> Question {
        let mut evidence = Vec::new();
        if let Some(sources) = self.source_chat_ids {
            sources.add_to(&mut evidence);
        }
        Question { text: self.question, answer: self.answer, evidence, category: Some(Label(category)) }
    }
}

impl Sources {
    fn add_to(self, ids: &mut Vec<Label>) {
        match self {
            Self::One(id) => ids.push(id),
            Self::Many(all) => all.into_iter().for_each(|one| one.add_to(ids)),
            Self::Named(all) => all.into_values().for_each(|one| one.add_to(ids)),
        }
    }
}
