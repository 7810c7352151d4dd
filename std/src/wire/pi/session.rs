//! The entries of a file as conversations.

use std::sync::Arc;

use epitome_core::Usage;
use epitome_core::message::Role;

use super::message::{message, reported};
use super::tree::{Content, Line, Tree};
use crate::message::{Message, Part, Str, WireText};
use crate::wire::expect::share;
use crate::wire::forest;
use crate::wire::json;
use crate::wire::transcript::{Conversation, RecordId, Relation, Transcript, UsageEntry};
use crate::wire::{Format, WireError};

/// All entries of a file, and what they say.
#[derive(Debug, Default)]
pub(super) struct Session {
    tree: Tree,
    said: Vec<(Said, Option<RecordId>)>,
}

impl Session {
    pub(super) fn read(transcript: &mut Transcript, text: &str) -> Result<Self, WireError> {
        let mut session = Self::default();
        let source = Arc::clone(&transcript.source);
        forest::for_each_line(transcript, text, |transcript, (list, at), raw| {
            let Some(said) = said(&mut session.tree, &source, raw)? else { return Ok(()) };
            let record = said.message.as_ref().map(|_| transcript.element(list, at, 1));
            // Without its record the entries before a compaction count again.
            if let Some(record) = record.filter(|_| said.is_compaction) {
                transcript.must_stay(record);
            }
            session.said.push((said, record));
            Ok(())
        })?;
        Ok(session)
    }

    /// All conversations: the one that goes on, or that ends with the entry `leaf`, first, at the place `base` of the list
    /// that they are for; then other ends, and what was there before each compaction.
    pub(super) fn conversations(
        mut self,
        leaf: Option<&str>,
        base: usize,
    ) -> Result<Vec<Conversation>, WireError> {
        let Some(active) = self.tree.end(leaf)? else { return Ok(Vec::new()) };
        let mut first: Option<(Vec<usize>, Conversation)> = None;
        let mut others = Vec::new();
        self.tree.for_each_conversation(active, |visible| {
            let mut found = Conversation::new(Format::Pi, "");
            found.compactions = visible.compactions.clone();
            if visible.is_before {
                found.label = Str::from(BEFORE);
            }
            if first.is_none() {
                first = Some((visible.seen().collect(), found));
                return;
            }
            add(&mut found, visible.seen(), |entry| self.said.get(entry).cloned());
            let last = visible.last().and_then(|last| self.said.get(last)?.0.name.clone());
            found.id = last.unwrap_or_default();
            found.relation = Relation::Branch(base);
            found.active = false;
            others.push(found);
        });
        let Some((seen, mut first)) = first else { return Ok(others) };
        // Nobody asks for the messages again: what goes on is not held twice.
        add(&mut first, seen.into_iter(), |entry| self.said.get_mut(entry).map(core::mem::take));
        first.id = self.tree.id;
        Ok(core::iter::once(first).chain(others).collect())
    }
}

/// Adds what is said in these entries. `said` gives what one says.
fn add(
    conversation: &mut Conversation,
    entries: impl Iterator<Item = usize>,
    said: impl FnMut(usize) -> Option<(Said, Option<RecordId>)>,
) {
    for (said, record) in entries.filter_map(said) {
        let (Some(message), Some(record)) = (said.message, record) else { continue };
        conversation.extend(record, [message]);
        if let Some(usage) = said.usage {
            conversation.usage.push(UsageEntry::new(conversation.entries.len().saturating_sub(1), *usage));
        }
    }
}

/// What an entry says.
#[derive(Debug, Clone, Default)]
pub(super) struct Said {
    name: Option<Str>,
    is_compaction: bool,
    message: Option<Message>,
    pub(super) usage: Option<Box<Usage>>,
}

/// Reads the entry `raw`, a slice of `source`, and adds it to `tree`; `None` for what a file begins with.
pub(super) fn said(tree: &mut Tree, source: &Arc<str>, raw: &str) -> Result<Option<Said>, WireError> {
    let line = Line::of(raw)?;
    let mut said = Said { name: line.name.as_ref().map(|name| share(source, name)), ..Said::default() };
    if line.is_session {
        tree.id = said.name.unwrap_or_default();
        return Ok(None);
    }
    match line.content {
        Content::Message(text) => {
            said.message = json::nested(raw, text, "/message", |text| message(source, text))?;
            let is_model = said.message.as_ref().is_some_and(|message| message.role() == Role::Assistant);
            said.usage = reported(text)?.filter(|_| is_model).map(Box::new);
        }
        Content::Compaction { summary, .. } => {
            let wire = WireText::new(Format::Pi.shared_name(), share(source, summary));
            let text = share(source, &json::decode(summary));
            said.message = Some(Message::new(Role::User, vec![Part::Text(text)]).with_wire(wire));
            said.is_compaction = true;
        }
        Content::Nothing => {}
    }
    said.message = match (said.message, &said.name) {
        (Some(message), Some(name)) => Some(message.with_id(name.clone())),
        (message, _) => message,
    };
    tree.push(&line, said.message.is_some());
    Ok(Some(said))
}

/// What a conversation is called that a compaction has shortened since.
pub(super) const BEFORE: &str = "before a compaction";
