//! The contents of a file besides the messages of one conversation.

use epitome::message::Str;
use epitome::wire::{Conversation, OutlinedConversation, Relation, ToolCompactions, UsageEntry};

use super::Transcript;
use crate::amount::counted;
use crate::failure::Result;
use crate::output;

/// Another conversation of the file: a branch, a side chain, another run.
#[derive(Debug, Clone)]
pub(crate) struct Other {
    pub(crate) id: Str,
    pub(crate) label: Str,
    pub(crate) path: String,
    pub(crate) relation: Relation,
    pub(crate) messages: usize,
}

impl Transcript<'_> {
    /// Compactions of the tool that wrote it.
    pub(crate) fn compactions(&self) -> ToolCompactions {
        let found = match self {
            Self::Read(read) => read.conversation().map(|found| &found.compactions),
            Self::Session(session) => session.conversations().first().map(|found| &found.compactions),
            Self::Memory { .. } | Self::Lines(_) => None,
        };
        found.cloned().unwrap_or_default()
    }

    /// Usage of the responses in the conversation, as reported by providers.
    pub(crate) fn usage(&mut self) -> Result<Vec<UsageEntry>> {
        match self {
            Self::Read(read) => Ok(read.conversation().map_or_else(Vec::new, |found| found.usage.to_vec())),
            Self::Session(session) => session.usage(),
            Self::Memory { .. } | Self::Lines(_) => Ok(Vec::new()),
        }
    }

    /// Reports on standard error, apart from the output, that the file has other conversations.
    pub(crate) fn mention_others(&self) {
        let others = self.others().len() as u64;
        if others > 0 {
            let others = counted(others, "other conversation");
            output::tell(format!(
                "epitome: the file has {others}; `epitome stats` lists them, --leaf takes one that has an id"
            ));
        }
    }

    /// The other conversations of its file.
    pub(crate) fn others(&self) -> Vec<Other> {
        match self {
            Self::Read(read) => read.others().map(Other::of).collect(),
            Self::Session(session) => session.conversations().iter().skip(1).map(Other::outlined).collect(),
            Self::Memory { .. } | Self::Lines(_) => Vec::new(),
        }
    }
}

impl Other {
    fn of(found: &Conversation) -> Self {
        let (id, label, path) = (found.id.clone(), found.label.clone(), found.path.clone());
        Self { id, label, path, relation: found.relation, messages: found.entries.len() }
    }

    fn outlined(found: &OutlinedConversation) -> Self {
        let (id, label) = (found.id.clone(), found.label.clone());
        Self { id, label, path: String::new(), relation: found.relation, messages: found.messages }
    }
}
