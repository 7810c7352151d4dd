//! Reads the entries of a file as conversations.

use std::sync::Arc;

use epitome_core::Usage;
use epitome_core::message::Role;
use epitome_message::{Message, Part, Str, WireText};

use super::message::{FIELDS, message_of, reported};
use super::tree::{Content, Line, Tree, Visible};
use crate::expect::share;
use crate::forest;
use crate::json::known::{Members, Value};
use crate::json::{self, Spans};
use crate::transcript::{Conversation, Relation, Stage, Stages, Transcript, TranscriptEntry, UsageEntry};
use crate::{Format, WireError};

/// All entries of a file, and their contents.
#[derive(Debug, Default)]
pub(super) struct Session {
    tree: Tree,
    entries: Vec<TranscriptEntry>,
    /// The reports, each with the number of its message.
    reports: Vec<(u32, Usage)>,
    /// The last entry of each conversation.
    ends: Vec<usize>,
}

impl Session {
    pub(super) fn read(transcript: &mut Transcript, text: &str) -> Result<Self, WireError> {
        let mut session = Self::default();
        let source = Arc::clone(&transcript.source);
        let mut spans = Spans::default();
        forest::for_each_line(transcript, text, |transcript, (list, at), raw| {
            let Some(said) = said((&mut session.tree, &mut spans), &source, raw)? else { return Ok(()) };
            let Some(message) = said.message else { return Ok(()) };
            let record = transcript.element(list, at, 1);
            // Without this record the entries before the compaction would be visible again.
            if said.is_compaction {
                transcript.must_stay(record);
                transcript.begin_with(record);
            }
            let number = u32::try_from(session.entries.len()).unwrap_or(u32::MAX);
            session.reports.extend(said.usage.map(|usage| (number, *usage)));
            session.entries.push(TranscriptEntry::of(message, record, 0));
            Ok(())
        })?;
        Ok(session)
    }

    /// All conversations. The first one is the active conversation, or the one that ends with the entry `leaf`. Then
    /// come the other ends, and the conversations before each compaction. `base` is the index of the first one in the
    /// final list.
    pub(super) fn conversations(
        mut self,
        leaf: Option<&str>,
        base: usize,
    ) -> Result<Vec<Conversation>, WireError> {
        let Some(active) = self.tree.end(leaf)? else { return Ok(Vec::new()) };
        let ends = self.tree.conversations(active);
        let compactions = self.tree.compactions();
        self.ends = ends.iter().map(|visible| visible.end).collect();
        let file = Arc::new(self);
        let of = |(at, visible): (usize, Visible)| {
            let (of, number) = (Arc::clone(&file), u32::try_from(at).unwrap_or(u32::MAX));
            let count = file.tree.count(visible.end);
            let mut found = Conversation::new(Format::Pi, "").with_stage(&Stage { of, number }, count);
            found.compactions = compactions(&file.tree, visible.end);
            if visible.is_before {
                found.label = Str::from(BEFORE);
            }
            if at == 0 {
                found.id = file.tree.id.clone();
                return found;
            }
            let last = file.tree.last(visible.end).map(|last| file.tree.entry(last));
            let last = last.and_then(|last| file.entries.get(last as usize));
            found.id = last.and_then(|last| last.message().id()).map(Str::from).unwrap_or_default();
            found.relation = Relation::Branch(base);
            found.active = false;
            found
        };
        Ok(ends.into_iter().enumerate().map(of).collect())
    }
}

impl Stages for Session {
    fn entries(&self) -> &[TranscriptEntry] {
        &self.entries
    }

    fn places(&self, stage: u32) -> Vec<u32> {
        let seen = self.ends.get(stage as usize).map(|end| self.tree.seen(*end)).unwrap_or_default();
        seen.into_iter().map(|node| self.tree.entry(node)).collect()
    }

    fn reports(&self, _: u32, places: &[u32]) -> Vec<UsageEntry> {
        let of = |(at, entry): (usize, &u32)| {
            let found = self.reports.binary_search_by_key(entry, |(entry, _)| *entry).ok()?;
            self.reports.get(found).map(|(_, usage)| UsageEntry::new(at, *usage))
        };
        places.iter().enumerate().filter_map(of).collect()
    }

    fn holders(&self) -> Vec<u32> {
        self.tree.holders(&self.ends)
    }
}

/// The content of an entry.
#[derive(Debug, Clone, Default)]
pub(super) struct Said {
    name: Option<Str>,
    is_compaction: bool,
    message: Option<Message>,
    pub(super) usage: Option<Box<Usage>>,
}

/// Reads the entry `raw`, a slice of `source`, and adds it to `tree`. `None` for the first entry of a file. `spans`
/// gets the notes of this entry only.
pub(super) fn said(
    (tree, spans): (&mut Tree, &mut Spans),
    source: &Arc<str>,
    raw: &str,
) -> Result<Option<Said>, WireError> {
    let line = Line::of(spans, raw)?;
    let mut said = Said { name: line.name.as_ref().map(|name| share(source, name)), ..Said::default() };
    if line.is_session {
        tree.id = said.name.unwrap_or_default();
        return Ok(None);
    }
    match line.content {
        Content::Message(text) => {
            let found = Members::of(Value::noted(raw, spans, 0).within(text), &FIELDS);
            said.message = json::nested(raw, text, "/message", |_| message_of(source, &found))?;
            let is_model = said.message.as_ref().is_some_and(|message| message.role() == Role::Assistant);
            said.usage = reported(&found)?.filter(|_| is_model).map(Box::new);
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

/// Label of a conversation that a later compaction has shortened.
pub(super) const BEFORE: &str = "before a compaction";
