//! The lines of a file as conversations.

use std::sync::Arc;

use epitome_core::Usage;

use super::line::Line;
use super::tree::Tree;
use crate::message::{Message, Str};
use crate::wire::expect::share;
use crate::wire::forest::{self, Key};
use crate::wire::json;
use crate::wire::transcript::{Conversation, RecordId, Transcript, UsageEntry};
use crate::wire::{Format, WireError, anthropic, usage as reports};

/// All lines that have a name and a place in a tree, and what they say.
#[derive(Debug, Default)]
pub(super) struct Session {
    tree: Tree,
    said: Vec<(Said, Option<RecordId>)>,
}

impl Session {
    /// Reads the lines `text`, a slice of the source of `transcript`.
    pub(super) fn read(transcript: &mut Transcript, text: &str) -> Result<Self, WireError> {
        let mut session = Self::default();
        let source = Arc::clone(&transcript.source);
        forest::for_each_line(transcript, text, |transcript, (list, at), raw| {
            if let Some(said) = said(&mut session.tree, &source, raw)? {
                let record = said.holds.then(|| transcript.element(list, at, said.messages.len()));
                session.said.push((said, record));
            }
            Ok(())
        })?;
        Ok(session)
    }

    /// All conversations: the one that goes on, or that ends with the line `leaf`, first, at the place `base` of the list
    /// that they are for.
    pub(super) fn conversations(
        mut self,
        leaf: Option<&str>,
        base: usize,
    ) -> Result<Vec<Conversation>, WireError> {
        let Some(active) = self.tree.end(leaf)? else { return Ok(Vec::new()) };
        let ends = self.tree.ends(active);
        let mut compactions = self.tree.compactions(&ends);
        let other = |end: &usize| {
            let lines = self.tree.gather(*end);
            let said = |line: &usize| self.said.get(*line).cloned();
            let mut conversation = conversation(&self.tree, &lines, said);
            conversation.id = self.uuid(*end);
            conversation.label = self.tree.label(*end, &lines);
            conversation.relation = self.tree.relation(*end, base);
            conversation.active = false;
            conversation.compactions = compactions.remove(end).unwrap_or_default();
            conversation
        };
        let others: Vec<_> = ends.iter().skip(1).map(other).collect();
        let (id, lines) = (self.uuid(active), self.tree.gather(active));
        // Nobody asks for the messages again: what goes on is not held twice.
        let said = |line: &usize| self.said.get_mut(*line).map(core::mem::take);
        let mut first = conversation(&self.tree, &lines, said);
        (first.id, first.label) = (id, self.tree.title(active));
        first.compactions = compactions.remove(&active).unwrap_or_default();
        Ok([first].into_iter().chain(others).collect())
    }

    fn uuid(&self, line: usize) -> Str {
        self.said.get(line).map(|(said, _)| said.uuid.clone()).unwrap_or_default()
    }
}

/// The conversation of these lines. `said` gives what is said in one.
fn conversation(
    tree: &Tree,
    lines: &[usize],
    mut said: impl FnMut(&usize) -> Option<(Said, Option<RecordId>)>,
) -> Conversation {
    let mut conversation = Conversation::new(Format::ClaudeCode, "");
    let mut reports = Reports::new();
    for line in lines {
        let Some((said, Some(record))) = said(line) else { continue };
        conversation.extend(record, said.messages);
        if let Some(usage) = said.usage {
            let at = conversation.entries.len().saturating_sub(1);
            reports.push(tree.response(*line), UsageEntry::new(at, *usage));
        }
    }
    conversation.usage = reports.entries;
    conversation
}

/// What a line says.
#[derive(Debug, Clone, Default)]
pub(super) struct Said {
    uuid: Str,
    /// Whether there is a message in it that a model is to see.
    holds: bool,
    pub(super) messages: Vec<Message>,
    pub(super) usage: Option<Box<Usage>>,
}

/// Reads the line `raw`, a slice of `source`, and adds it to `tree`; `None` if it has no place there.
pub(super) fn said(tree: &mut Tree, source: &Arc<str>, raw: &str) -> Result<Option<Said>, WireError> {
    let line = Line::of(raw)?;
    if !tree.takes(&line) {
        return Ok(None);
    }
    let uuid = line.uuid.as_ref().map(|uuid| share(source, uuid)).unwrap_or_default();
    let mut said = Said { uuid, holds: line.message.is_some(), messages: Vec::new(), usage: None };
    if let Some(message) = line.message {
        let (messages, usage) =
            json::nested(raw, message, "/message", |message| anthropic::messages_and_usage(source, message))?;
        said.messages = messages;
        if let Some(first) = said.messages.first_mut() {
            let unnamed = core::mem::replace(first, Message::user(""));
            *first = unnamed.with_id(said.uuid.clone());
        }
        // A report that cannot be read is none: the messages are what counts.
        let usage = usage.and_then(|raw| reports::of(raw).ok()).filter(|_| !said.messages.is_empty());
        said.usage = usage.map(Box::new);
    }
    tree.push(&line, &said.messages);
    Ok(Some(said))
}

/// One report for each response: every line of it repeats the report, and the last is complete.
#[derive(Debug)]
pub(super) struct Reports<R> {
    pub(super) entries: Vec<R>,
    last: Option<Key>,
}

impl<R> Reports<R> {
    pub(super) const fn new() -> Self {
        Self { entries: Vec::new(), last: None }
    }

    pub(super) fn push(&mut self, response: Option<Key>, report: R) {
        match self.entries.last_mut().filter(|_| response.is_some() && response == self.last) {
            Some(entry) => *entry = report,
            None => self.entries.push(report),
        }
        self.last = response;
    }
}
