//! The texts that a store keeps of a folder: its files as the state of a session, and each change as a message.

use std::collections::BTreeMap;

use epitome_core::attribution::{Authority, SourceKind};
use epitome_core::message::Role;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Files;
use crate::message::{Attribution, Message, Part};
use crate::provider::source_id;

/// The files that a change writes, by path; `None` for a file that it deletes.
pub(super) type FileTexts = BTreeMap<String, Option<String>>;

/// The version of both forms that this release writes, and the highest that it reads.
const VERSION: u64 = 1;

/// The files after a number of changes.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FolderState {
    #[serde(rename = "memory_files")]
    version: u64,
    /// Number of messages of the log that the files include. A store that saves the state in a separate step may have
    /// more messages.
    pub(super) head: u64,
    pub(super) files: Files,
}

/// One change.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Change {
    #[serde(rename = "memory_files")]
    version: u64,
    /// The answer to the model: a repeated command gets it again.
    pub(super) answer: String,
    pub(super) files: FileTexts,
}

impl FolderState {
    pub(super) const fn new(head: u64, files: Files) -> Self {
        Self { version: VERSION, head, files }
    }

    /// `None` for a text of another kind.
    pub(super) fn from_json(text: &str) -> Option<Self> {
        read(text).filter(|state: &Self| state.version <= VERSION)
    }
}

impl Change {
    pub(super) const fn new(answer: String, files: FileTexts) -> Self {
        Self { version: VERSION, answer, files }
    }

    /// `None` for a message of another kind.
    pub(super) fn from_message(message: &Message) -> Option<Self> {
        let [Part::Text(text)] = message.parts() else { return None };
        read(text).filter(|change: &Self| change.version <= VERSION)
    }

    /// The message of this change. Its attribution marks it as data for every reader of the log.
    pub(super) fn to_message(&self) -> Result<Message, serde_json::Error> {
        let text = serde_json::to_string(self)?;
        let attribution = Attribution::new(source_id::MEMORY_TOOL, SourceKind::Context, Authority::Retrieved);
        Ok(Message::new(Role::User, vec![Part::Text(text.into())]).with_attribution(attribution))
    }

    /// Makes this change to `files`.
    pub(super) fn apply_to(&self, files: &mut Files) {
        for (path, text) in &self.files {
            match text {
                Some(text) => files.insert(path.clone(), text.clone()),
                None => files.remove(path),
            };
        }
    }
}

fn read<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_str(text).ok()
}
