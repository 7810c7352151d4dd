//! Reads the lines of a file as conversations.

use std::collections::HashMap;
use std::sync::Arc;

use epitome_core::Usage;
use epitome_message::{Message, Str};

use super::ends::Ends;
use super::line::Line;
use super::tree::Tree;
use crate::expect::share;
use crate::forest::{self, Key, narrow};
use crate::json::known::Value;
use crate::json::{self, Spans};
use crate::transcript::{Conversation, Stage, Stages, Transcript, TranscriptEntry, UsageEntry};
use crate::{Format, WireError, anthropic, injected, usage as reports};

/// All lines with an id and a place in the tree, and their contents.
#[derive(Debug, Default)]
pub(super) struct Session {
    tree: Tree,
    ends: Ends,
    entries: Vec<TranscriptEntry>,
    /// For each line, the usage of its response.
    reports: HashMap<usize, Usage>,
}

impl Session {
    /// Reads the lines `text`, a slice of the source of `transcript`, and returns the ids of the lines in the tree.
    pub(super) fn read(transcript: &mut Transcript, text: &str) -> Result<(Self, Vec<Str>), WireError> {
        let (mut session, mut names) = (Self::default(), Vec::new());
        let source = Arc::clone(&transcript.source);
        let mut spans = Spans::default();
        forest::for_each_line(transcript, text, |transcript, (list, at), raw| {
            let Some(said) = said((&mut session.tree, &mut spans), &source, raw)? else { return Ok(()) };
            session.reports.extend(said.usage.map(|usage| (names.len(), *usage)));
            names.push(said.uuid);
            if said.holds {
                let record = transcript.element(list, at, said.messages.len());
                if said.is_summary {
                    transcript.begin_with(record);
                }
                // Without this line, and without another line that marks the cut, the conversation would begin with the
                // messages before it.
                if session.tree.is_cut(names.len().saturating_sub(1)) {
                    transcript.must_stay(record);
                }
                let pieces = said.messages.into_iter().zip(0..);
                session
                    .entries
                    .extend(pieces.map(|(message, piece)| TranscriptEntry::of(message, record, piece)));
            }
            Ok(())
        })?;
        Ok((session, names))
    }

    /// All conversations. The first one is the active conversation, or the one that ends with the line `leaf`. `base`
    /// is its index in the final list.
    pub(super) fn conversations(
        mut self,
        names: &[Str],
        leaf: Option<&str>,
        base: usize,
    ) -> Result<Vec<Conversation>, WireError> {
        let Some(active) = self.tree.end(leaf)? else { return Ok(Vec::new()) };
        self.ends = Ends::of(&self.tree, active);
        let file = Arc::new(self);
        let (tree, ends) = (&file.tree, &file.ends);
        let compactions = tree.compactions(|line| ends.count(tree, line).into());
        let (titles, labels) = (tree.titles(), tree.labels());
        let of = |(at, end): (usize, &usize)| {
            let stage = Stage { of: Arc::<Self>::clone(&file), number: narrow(at) };
            let count = usize::try_from(ends.count(tree, *end)).unwrap_or(usize::MAX);
            let mut found = Conversation::new(Format::ClaudeCode, "").with_stage(&stage, count);
            found.id = names.get(*end).cloned().unwrap_or_default();
            found.compactions = compactions(tree.root(*end));
            found.label = if at == 0 { titles(*end) } else { labels(*end) };
            if at > 0 {
                found.relation = tree.relation(*end, base);
                found.active = false;
            }
            found
        };
        Ok(ends.lines.iter().enumerate().map(of).collect())
    }
}

impl Stages for Session {
    fn entries(&self) -> &[TranscriptEntry] {
        &self.entries
    }

    fn places(&self, stage: u32) -> Vec<u32> {
        let end = self.ends.lines.get(stage as usize);
        let lines = end.map(|end| self.ends.lines(&self.tree, *end)).unwrap_or_default();
        lines.into_iter().flat_map(|line| self.tree.entries(line)).collect()
    }

    fn reports(&self, stage: u32, _: &[u32]) -> Vec<UsageEntry> {
        let end = self.ends.lines.get(stage as usize);
        let lines = end.map(|end| self.ends.lines(&self.tree, *end)).unwrap_or_default();
        let (mut reports, mut count) = (Reports::new(), 0_usize);
        for line in lines {
            count = count.saturating_add(self.tree.messages(line) as usize);
            if let Some(usage) = self.reports.get(&line) {
                let at = count.saturating_sub(1);
                reports.push(self.tree.response(line), UsageEntry::new(at, *usage));
            }
        }
        reports.entries
    }

    fn holders(&self) -> Vec<u32> {
        let of = |line| {
            let count = self.ends.holders.get(self.tree.top(line)).copied().unwrap_or_default();
            self.tree.entries(line).map(move |_| count)
        };
        (0..self.tree.len()).flat_map(of).collect()
    }
}

/// The content of a line.
#[derive(Debug, Clone, Default)]
pub(super) struct Said {
    uuid: Str,
    /// Whether the line has a message that a model sees.
    holds: bool,
    /// Whether a compaction has written the line.
    is_summary: bool,
    pub(super) messages: Vec<Message>,
    pub(super) usage: Option<Box<Usage>>,
}

/// Reads the line `raw`, a slice of `source`, and adds it to `tree`. `None` if it has no place there. `spans` gets the
/// notes of this line only.
pub(super) fn said(
    (tree, spans): (&mut Tree, &mut Spans),
    source: &Arc<str>,
    raw: &str,
) -> Result<Option<Said>, WireError> {
    let line = Line::of(spans, raw)?;
    if !tree.takes(&line) {
        return Ok(None);
    }
    let uuid = line.uuid.as_ref().map(|uuid| share(source, uuid)).unwrap_or_default();
    let (holds, is_summary) = (line.message.is_some(), line.is_summary);
    let mut said = Said { uuid, holds, is_summary, messages: Vec::new(), usage: None };
    if let Some(message) = line.message {
        let known = Value::noted(raw, spans, 0).within(message);
        let (messages, usage) =
            json::nested(raw, message, "/message", |_| anthropic::messages_and_usage(source, known))?;
        said.messages = messages.into_iter().map(|it| injected::marked(it, Format::ClaudeCode)).collect();
        if let Some(first) = said.messages.first_mut() {
            let unnamed = core::mem::replace(first, Message::new(first.role(), Vec::new()));
            *first = unnamed.with_id(said.uuid.clone());
        }
        // An unreadable report is ignored: the messages are more important. A report without tokens does not belong to
        // a response of a model.
        let usage = usage.and_then(|raw| reports::of(raw).ok()).filter(|_| !said.messages.is_empty());
        let usage = usage.filter(|usage| usage.total.is_none_or(|total| total > 0));
        said.usage = usage.map(Box::new);
    }
    tree.push(&line, &said.messages);
    Ok(Some(said))
}

/// One report for each response. Every line of a response repeats the report, and the last one is complete.
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
