//! The contents of a session file besides the active conversation.

use epitome::wire::Relation;
use serde::Serialize;

use crate::amount::{counted, grouped};
use crate::transcript::{self, Transcript};

/// A session file: its other conversations, and the compactions of the tool that wrote it.
#[derive(Debug, Serialize, Default)]
pub(super) struct Session {
    /// Compactions of the tool, the oldest first.
    compactions: Vec<Compaction>,
    /// The other conversations: branches, side chains, other runs.
    others: Vec<Other>,
}

#[derive(Debug, Serialize)]
struct Compaction {
    /// The message after the compaction.
    before_message: usize,
    trigger: String,
    messages_dropped: Option<u64>,
    tokens_before: Option<u64>,
    tokens_after: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Other {
    /// The id for `--leaf`.
    id: String,
    relation: &'static str,
    label: String,
    path: String,
    messages: usize,
}

impl Session {
    /// The other contents of the file of `transcript`; `None` if there are none.
    pub(super) fn of(transcript: &Transcript<'_>) -> Option<Self> {
        let compactions = transcript.compactions();
        let compactions = compactions.iter().map(|found| Compaction {
            before_message: found.at,
            trigger: found.trigger.as_str().to_owned(),
            messages_dropped: found.dropped,
            tokens_before: found.tokens_before,
            tokens_after: found.tokens_after,
        });
        let others = transcript.others().into_iter().map(Other::of);
        let session = Self { compactions: compactions.collect(), others: others.collect() };
        Some(session).filter(|session| !session.compactions.is_empty() || !session.others.is_empty())
    }

    pub(super) fn to_text(&self) -> String {
        let mut text = String::new();
        if !self.compactions.is_empty() {
            text += "\ncompacted by the tool that wrote it\n";
        }
        for found in &self.compactions {
            let dropped = found.messages_dropped.map_or_else(
                || "an unknown number of messages".to_owned(),
                |dropped| counted(dropped, "message"),
            );
            text += &format!("  before message {}: {dropped} dropped", found.before_message);
            for (what, tokens) in [("before", found.tokens_before), ("after", found.tokens_after)] {
                if let Some(tokens) = tokens {
                    text += &format!(", {} tokens {what}", grouped(tokens));
                }
            }
            if !found.trigger.is_empty() {
                text += &format!(" ({})", found.trigger.escape_debug());
            }
            text.push('\n');
        }
        if !self.others.is_empty() {
            text += "\nother conversations of the file; --leaf ID takes one that has an id\n";
        }
        for Other { id, relation, label, path, messages } in &self.others {
            let names = [id, label, path].into_iter().filter(|name| !name.is_empty());
            let names: Vec<_> = names.map(|name| name.escape_debug().to_string()).collect();
            text += &format!("  {relation:<12}{:>6}  {}\n", messages, names.join("  "));
        }
        text
    }
}

impl Other {
    fn of(other: transcript::Other) -> Self {
        let relation = match other.relation {
            Relation::SideChain(_) => "side chain",
            Relation::Branch(_) => "branch",
            _ => "other run",
        };
        Self {
            id: other.id.as_str().to_owned(),
            relation,
            label: other.label.as_str().to_owned(),
            path: other.path,
            messages: other.messages,
        }
    }
}
