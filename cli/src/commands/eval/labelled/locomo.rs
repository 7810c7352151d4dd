//! LoCoMo, as in `locomo10.json`: two people, sessions `session_1`, `session_2` .. with times of their own, and `qa`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use super::neutral::{Conversation, Message, Question, Speaker};
use super::value::Label;

/// The sessions of one pair of people, and the questions about them.
#[derive(Debug, Deserialize)]
pub(super) struct Sample {
    #[serde(default)]
    sample_id: Option<String>,
    conversation: Sessions,
    qa: Vec<Asked>,
}

/// The sessions by number, each with its time and its turns.
#[derive(Debug, Default)]
struct Sessions {
    /// The speaker that stands for the user.
    first: Option<String>,
    sessions: BTreeMap<u32, Session>,
}

#[derive(Debug, Default)]
struct Session {
    time: Option<String>,
    turns: Vec<Turn>,
}

#[derive(Debug, Deserialize)]
struct Turn {
    dia_id: String,
    speaker: String,
    text: String,
    /// Caption of an image that was sent with the message.
    #[serde(default)]
    blip_caption: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Asked {
    question: String,
    /// The answer; a question that cannot be answered has none.
    #[serde(default)]
    answer: Option<Label>,
    #[serde(default)]
    evidence: Vec<String>,
    #[serde(default)]
    category: Option<Label>,
}

impl From<Sample> for Conversation {
    fn from(sample: Sample) -> Self {
        let Sessions { first, sessions } = sample.conversation;
        let messages = sessions.into_values().flat_map(|session| {
            let (first, time) = (first.clone(), session.time);
            session.turns.into_iter().map(move |turn| turn.into_message(first.as_deref(), time.clone()))
        });
        let questions = sample.qa.into_iter().map(|asked| Question {
            text: asked.question,
            answer: asked.answer,
            evidence: asked.evidence.iter().flat_map(|ids| ids_in(ids)).collect(),
            category: asked.category,
        });
        Self { id: sample.sample_id, messages: messages.collect(), questions: questions.collect() }
    }
}

impl Turn {
    fn into_message(self, first: Option<&str>, time: Option<String>) -> Message {
        let role = match first {
            Some(first) if first != self.speaker => Speaker::Assistant,
            _ => Speaker::User,
        };
        let text = match self.blip_caption {
            Some(caption) => format!("{} [image: {caption}]", self.text),
            None => self.text,
        };
        Message { id: Label(self.dia_id), role: Some(role), speaker: Some(self.speaker), time, text }
    }
}

/// The ids in a label: some labels hold several, `D8:6; D9:17`.
fn ids_in(label: &str) -> impl Iterator<Item = Label> {
    let ids = label.split([';', ',', ' ']).filter(|id| !id.is_empty());
    ids.map(|id| Label(id.to_owned()))
}

impl<'de> Deserialize<'de> for Sessions {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_map(SessionsVisitor)
    }
}

struct SessionsVisitor;

impl<'de> Visitor<'de> for SessionsVisitor {
    type Value = Sessions;

    fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("an object of sessions")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Sessions, A::Error> {
        let mut found = Sessions::default();
        while let Some(name) = map.next_key::<String>()? {
            let rest = name.strip_prefix("session_").unwrap_or_default();
            let (number, field) = rest.split_once('_').unwrap_or((rest, ""));
            match (&*name, number.parse::<u32>(), field) {
                ("speaker_a", ..) => found.first = Some(map.next_value()?),
                (_, Ok(number), "") => found.sessions.entry(number).or_default().turns = map.next_value()?,
                (_, Ok(number), "date_time") => {
                    found.sessions.entry(number).or_default().time = Some(map.next_value()?);
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(found)
    }
}
