//! Resolves ids to positions, and checks a conversation with labelled questions.

use std::collections::HashMap;

use epitome::core::message::Role;
use epitome::message::{Message, Part};

use super::neutral::{Conversation, Question, Speaker};
use super::shape::Shape;
use super::{Labelled, LabelledMessage, LabelledQuestion, neutral};
use crate::failure::{Failure, Result};

/// The conversation with its labels as positions.
pub(super) fn resolve(conversation: Conversation, place: String, shape: &Shape) -> Result<Labelled> {
    let Conversation { messages, questions, .. } = conversation;
    if messages.is_empty() {
        return Err(Failure::input(format!(
            "{place}: it has no messages; give it those that its questions are about"
        )));
    }
    if questions.is_empty() {
        return Err(Failure::input(format!(
            "{place}: it has no questions; give it some, or leave `questions` out to measure it as a transcript"
        )));
    }
    let positions = positions(&messages, &place)?;
    let messages = spoken(messages, &place)?;
    let (mut labelled, mut unlabelled, mut unknown_labels) = (Vec::new(), 0, 0);
    for (number, question) in (1_u32..).zip(questions) {
        let (evidence, unknown) = evidence(&question, &positions);
        if let Some(id) = unknown.first().filter(|_| *shape == Shape::Neutral) {
            return Err(Failure::input(format!(
                "{place}: question {number} names {id:?} as evidence, and no message has that id; name one of its messages, \
                 or leave the id out"
            )));
        }
        unknown_labels += unknown.len() as u64;
        match evidence.is_empty() {
            true => unlabelled += 1,
            false => labelled.push(LabelledQuestion {
                text: question.text,
                answer: question.answer.map(|answer| answer.0),
                evidence,
                category: question.category.map(|category| category.0),
            }),
        }
    }
    Ok(Labelled { place, messages, questions: labelled, unlabelled, unknown_labels })
}

/// The position of each id.
fn positions(messages: &[neutral::Message], place: &str) -> Result<HashMap<String, u32>> {
    let mut positions = HashMap::new();
    for (position, message) in (0_u32..).zip(messages) {
        if positions.insert(message.id.0.clone(), position).is_some() {
            return Err(Failure::input(format!(
                "{place}: message {} has the id {:?} of an earlier one; give each message an id of its own",
                position + 1,
                message.id.0
            )));
        }
    }
    Ok(positions)
}

/// The positions that a question names, and the ids that name no message.
fn evidence<'q>(question: &'q Question, positions: &HashMap<String, u32>) -> (Vec<u32>, Vec<&'q str>) {
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    for id in &question.evidence {
        match positions.get(&id.0) {
            Some(position) => known.push(*position),
            None => unknown.push(&*id.0),
        }
    }
    known.sort_unstable();
    known.dedup();
    (known, unknown)
}

/// The messages as a model sees them: with the name of the speaker, and with the time if it has changed.
fn spoken(messages: Vec<neutral::Message>, place: &str) -> Result<Vec<LabelledMessage>> {
    let first_speaker = messages.iter().find_map(|message| message.speaker.clone());
    let mut time_before = None;
    let spoken = messages.into_iter().enumerate().map(|(at, message)| {
        let role = message.role.or_else(|| {
            let speaker = message.speaker.as_ref()?;
            Some(if Some(speaker) == first_speaker.as_ref() { Speaker::User } else { Speaker::Assistant })
        });
        let role = role.ok_or_else(|| {
            Failure::input(format!(
                "{place}: message {} has neither a role nor a speaker; give it `role` (system, user or assistant) or \
                 `speaker`",
                at + 1
            ))
        })?;
        let mut shown = String::new();
        if let Some(time) = message.time.filter(|time| time_before.as_ref() != Some(time)) {
            shown += &format!("[{time}] ");
            time_before = Some(time);
        }
        if let Some(speaker) = &message.speaker {
            shown += &format!("{speaker}: ");
        }
        shown += &message.text;
        let message_shown = Message::new(role.into(), vec![Part::Text(shown.into())]);
        Ok(LabelledMessage { id: message.id.0, text: message.text, message: message_shown })
    });
    spoken.collect()
}

impl From<Speaker> for Role {
    fn from(speaker: Speaker) -> Self {
        match speaker {
            Speaker::System => Self::System,
            Speaker::User => Self::User,
            Speaker::Assistant => Self::Assistant,
        }
    }
}
