//! The entries of a file as a forest of messages.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use epitome_core::Usage;
use epitome_core::message::Role;

use super::message::{message, reported};
use crate::message::{Message, Part, Str, WireText};
use crate::wire::expect::{expect_object, number, optional_text, share};
use crate::wire::forest::{self, Forest};
use crate::wire::json::{self, Kind};
use crate::wire::transcript::{Conversation, RecordId, Relation, ToolCompaction, Transcript, UsageEntry};
use crate::wire::{Format, WireError};

/// All entries of a file.
#[derive(Debug, Default)]
pub(super) struct Session<'a> {
    forest: Forest,
    nodes: Vec<Node<'a>>,
    pub(super) names: HashMap<Cow<'a, str>, usize>,
    id: Str,
}

#[derive(Debug)]
struct Node<'a> {
    name: Option<Cow<'a, str>>,
    record: Option<RecordId>,
    message: Option<Message>,
    usage: Option<Usage>,
    /// Of a compaction: the first entry that it kept, and the size before it.
    cut: Option<(Option<usize>, Option<u64>)>,
}

impl Node<'_> {
    /// Takes the record of a message. That of a compaction has to stay: without it the entries before it count again.
    fn find_record(&mut self, transcript: &mut Transcript, (list, at): (u32, usize)) {
        let Some(message) = self.message.take() else { return };
        let record = transcript.element(list, at, 1);
        if self.cut.is_some() {
            transcript.must_stay(record);
        }
        self.record = Some(record);
        self.message = Some(match &self.name {
            Some(name) => message.with_id(share(&transcript.source, name)),
            None => message,
        });
    }
}

impl<'a> Session<'a> {
    pub(super) fn read(transcript: &mut Transcript, text: &'a str) -> Result<Self, WireError> {
        let mut session = Self::default();
        forest::for_each_line(transcript, text, |transcript, at, raw| session.push(transcript, at, raw))?;
        Ok(session)
    }

    fn push(
        &mut self,
        transcript: &mut Transcript,
        (list, at): (u32, usize),
        raw: &'a str,
    ) -> Result<(), WireError> {
        expect_object(raw, "an entry")?;
        let names = &["type", "id", "parentId", "message", "summary", "firstKeptEntryId", "tokensBefore"];
        let [kind, id, parent, said, summary, first, before] = json::fields(raw, names)?;
        let name = optional_text(raw, id, "id")?;
        let source = Arc::clone(&transcript.source);
        if kind == Some("\"session\"") {
            self.id = name.map(|name| share(&source, &name)).unwrap_or_default();
            return Ok(());
        }
        let named = optional_text(raw, parent, "parentId")?;
        let parent = match name {
            Some(_) => named.and_then(|parent| self.names.get(&parent).copied()),
            // Without names every entry follows the one before it.
            None => self.nodes.len().checked_sub(1),
        };
        let mut node = Node { name: name.clone(), record: None, message: None, usage: None, cut: None };
        match (kind, said, summary) {
            (Some("\"message\""), Some(said), _) if Kind::of(said) == Kind::Object => {
                node.message = json::nested(raw, said, "/message", |said| message(&source, said))?;
                node.usage = reported(said)?;
            }
            (Some("\"compaction\""), _, Some(summary)) if Kind::of(summary) == Kind::Text => {
                let first = optional_text(raw, first, "firstKeptEntryId")?;
                node.cut = Some((first.and_then(|first| self.names.get(&first).copied()), number(before)));
                let wire = WireText::new(Format::Pi.shared_name(), share(&source, summary));
                let text = share(&source, &json::decode(summary));
                node.message = Some(Message::new(Role::User, vec![Part::Text(text)]).with_wire(wire));
            }
            _ => {}
        }
        node.find_record(transcript, (list, at));
        let number = self.forest.push(parent);
        if let Some(name) = name {
            self.names.entry(name).or_insert(number);
        }
        self.nodes.push(node);
        Ok(())
    }

    /// The entry that the file goes on with: its last message.
    pub(super) fn last(&self) -> Option<usize> {
        self.nodes.iter().rposition(|node| node.record.is_some())
    }

    /// What a model saw before each compaction on the way to `leaf`, and what it sees there: the summary of the last, what
    /// it kept, and what came after it.
    fn visible(&self, leaf: usize) -> Vec<Visible> {
        let mut stages = Vec::new();
        let (mut seen, mut compactions): (Vec<usize>, Vec<ToolCompaction>) = (Vec::new(), Vec::new());
        for node in self.forest.path(leaf) {
            let Some(entry) = self.nodes.get(node).filter(|entry| entry.record.is_some()) else { continue };
            let Some((first, tokens)) = entry.cut else {
                seen.push(node);
                continue;
            };
            let kept =
                first.and_then(|first| seen.iter().position(|seen| *seen >= first)).unwrap_or(seen.len());
            let mut compaction = ToolCompaction::new(0);
            compaction.dropped = u64::try_from(kept).ok();
            compaction.tokens_before = tokens;
            stages.push(Visible { seen: seen.clone(), compactions: compactions.clone() });
            compactions.push(compaction);
            seen.drain(..kept);
            seen.insert(0, node);
        }
        stages.push(Visible { seen, compactions });
        stages
    }

    fn conversation(&self, visible: Visible) -> Conversation {
        let mut conversation = Conversation::new(Format::Pi, "");
        conversation.compactions = visible.compactions;
        for node in visible.seen {
            let Some(entry) = self.nodes.get(node) else { continue };
            let (Some(record), Some(message)) = (entry.record, entry.message.clone()) else { continue };
            let is_model = message.role() == Role::Assistant;
            conversation.extend(record, [message]);
            if let Some(usage) = entry.usage.filter(|_| is_model) {
                conversation.usage.push(UsageEntry::new(conversation.entries.len().saturating_sub(1), usage));
            }
        }
        conversation
    }

    /// All conversations: the one that ends with `active` first, at the place `base` of the list that they are for; then
    /// other ends, and what was there before each compaction.
    pub(super) fn conversations(&self, active: usize, base: usize) -> Vec<Conversation> {
        let mut listed: HashSet<usize> = HashSet::new();
        let mut found: Vec<Conversation> = Vec::new();
        // What goes on first, then the ends in the order of the file.
        for leaf in core::iter::once(active).chain(self.forest.leaves()) {
            for (age, visible) in self.visible(leaf).into_iter().rev().enumerate() {
                let is_new = visible.seen.iter().any(|node| !listed.contains(node));
                if !is_new && !found.is_empty() {
                    continue;
                }
                listed.extend(&visible.seen);
                let last = visible.seen.last().and_then(|node| self.nodes.get(*node)?.name.as_deref());
                let name = last.map(Str::from).unwrap_or_default();
                let mut conversation = self.conversation(visible);
                match found.is_empty() {
                    true => conversation.id = self.id.clone(),
                    false => {
                        conversation.id = name;
                        conversation.relation = Relation::Branch(base);
                        conversation.active = false;
                    }
                }
                if age > 0 {
                    conversation.label = Str::from("before a compaction");
                }
                found.push(conversation);
            }
        }
        found
    }
}

/// What a model sees at some time.
#[derive(Debug)]
struct Visible {
    seen: Vec<usize>,
    compactions: Vec<ToolCompaction>,
}
