//! Messages of an unfinished run that are still to be stored: in its session, and in the session's JSON.

use epitome_core::Seq;
use serde::{Deserialize, Serialize};
use serde_json::Map;

use super::{ContextMessages, Progress, SessionContext};
use crate::history::stored::{self, StoredError};
use crate::message::{Message, Str};
use crate::session::{AgentResponse, AgentSession};

/// A run that was left, as JSON. Messages are in their stored form.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeptRun {
    token: Str,
    input: Vec<String>,
    context: Vec<KeptContext>,
    response: Vec<String>,
    progress: Vec<KeptProgress>,
}

/// A source, whether its messages were loaded, and the messages.
#[derive(Serialize, Deserialize)]
struct KeptContext(Str, bool, Vec<String>);

/// A history provider, the numbers that it has stored, and the end of an append that got no answer.
#[derive(Serialize, Deserialize)]
struct KeptProgress(Str, Vec<u64>, Option<usize>);

impl SessionContext {
    /// The part of a run that is to be stored. It has the context of the sources that `stores` accepts; all sources stay in their places.
    pub(crate) fn to_be_stored(&self, stores: impl Fn(&ContextMessages) -> bool) -> Self {
        let context = self.context.iter().map(|source| match stores(source) {
            true => source.clone(),
            false => ContextMessages { messages: Vec::new(), ..source.clone() },
        });
        Self {
            session_id: self.session_id.clone(),
            service_session_id: self.service_session_id.clone(),
            run_token: self.run_token.clone(),
            input_messages: self.input_messages.clone(),
            context: context.collect(),
            instructions: Vec::new(),
            tools: Vec::new(),
            response: self.response.clone(),
            options: Map::new(),
            metadata: Map::new(),
            progress: self.progress.clone(),
            histories: Vec::new(),
            was_read: self.was_read,
            states_not_kept: Vec::new(),
        }
    }

    /// Whether it was read with its session.
    pub(crate) const fn was_read(&self) -> bool {
        self.was_read
    }

    /// The run as JSON, with `arrived` at the end of the response.
    pub(crate) fn to_kept(&self, arrived: &[Message]) -> Result<KeptRun, StoredError> {
        let context = self.context.iter().map(|ContextMessages { source_id, messages, loaded }| {
            Ok(KeptContext(source_id.clone(), *loaded, encode(messages)?))
        });
        let said = self.response.iter().flat_map(|response| &response.messages);
        let progress = self.progress.iter().map(|(source_id, Progress { seqs, attempted })| {
            KeptProgress(source_id.clone(), seqs.iter().map(|seq| seq.0).collect(), *attempted)
        });
        Ok(KeptRun {
            token: self.run_token.clone(),
            input: encode(&self.input_messages)?,
            context: context.collect::<Result<_, StoredError>>()?,
            response: encode(said.chain(arrived))?,
            progress: progress.collect(),
        })
    }

    /// Reads a run of `session` that [`SessionContext::to_kept`] has written.
    pub(crate) fn of_kept(session: &AgentSession, kept: &KeptRun) -> Result<Self, StoredError> {
        let mut context = Self::new(session, kept.token.clone(), decode(&kept.input)?);
        for KeptContext(source_id, loaded, messages) in &kept.context {
            let (source_id, messages, loaded) = (source_id.clone(), decode(messages)?, *loaded);
            context.context.push(ContextMessages { source_id, messages, loaded });
        }
        context.was_read = true;
        context.response = Some(AgentResponse::new(decode(&kept.response)?));
        for KeptProgress(source_id, seqs, attempted) in &kept.progress {
            let seqs = seqs.iter().copied().map(Seq).collect();
            context.progress.push((source_id.clone(), Progress { seqs, attempted: *attempted }));
        }
        Ok(context)
    }
}

impl Progress {
    /// Whether an append got no answer.
    pub(crate) const fn is_in_doubt(&self) -> bool {
        self.attempted.is_some()
    }
}

fn encode<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Result<Vec<String>, StoredError> {
    messages.into_iter().map(stored::encode).collect()
}

fn decode(texts: &[String]) -> Result<Vec<Message>, StoredError> {
    texts.iter().map(|text| stored::decode(text)).collect()
}
