//! Newer session files: a log of records that are only added.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use epitome_core::message::Role;

use super::message::{record, results, without_results};
use crate::message::{Message, Str};
use crate::wire::error::quoted;
use crate::wire::expect::{expect_object, optional_text, share};
use crate::wire::json::{self, Kind};
use crate::wire::transcript::{
    Compactions, Conversation, Entry, Relation, ToolCompaction, Transcript, UsageEntry,
};
use crate::wire::{Format, WireError, WireErrorKind, document};

/// What the lines of a log say together.
#[derive(Debug, Default)]
pub(super) struct Log<'a> {
    now: Records<'a>,
    /// What a rewind or a checkpoint left behind, the oldest first.
    before: Vec<Before<'a>>,
    id: Str,
    label: Str,
}

/// Records by their names: one that comes again stands in the place of the first.
#[derive(Debug, Default, Clone)]
struct Records<'a> {
    list: Vec<Kept<'a>>,
    places: HashMap<Cow<'a, str>, usize>,
}

#[derive(Debug, Clone)]
struct Kept<'a> {
    id: Cow<'a, str>,
    raw: &'a str,
    /// Where it stands in its line: the list, and the place in that.
    within: Option<(&'static str, usize)>,
}

/// The records before some of them were taken out.
#[derive(Debug)]
struct Before<'a> {
    records: Records<'a>,
    /// Those that a checkpoint took out; `None` if it was a rewind.
    dropped: Option<HashSet<Cow<'a, str>>>,
}

impl<'a> Records<'a> {
    fn push(&mut self, kept: Kept<'a>) {
        match self.places.get(&kept.id).and_then(|at| self.list.get_mut(*at)) {
            Some(earlier) => *earlier = kept,
            None => {
                self.places.insert(kept.id.clone(), self.list.len());
                self.list.push(kept);
            }
        }
    }

    /// Takes out the record of this name and what is behind it; if there is none, everything, as Gemini CLI does.
    fn rewind(&mut self, id: &str) {
        let at = self.places.get(id).copied().unwrap_or(0);
        for gone in self.list.drain(at..) {
            self.places.remove(&gone.id);
        }
    }
}

impl<'a> Log<'a> {
    pub(super) fn read(transcript: &Transcript, text: &'a str) -> Result<Self, WireError> {
        let mut log = Self::default();
        for line in document::lines(text) {
            json::nested(text, line.text(), "", |raw| log.push(&transcript.source, raw))?;
        }
        Ok(log)
    }

    fn push(&mut self, source: &Arc<str>, raw: &'a str) -> Result<(), WireError> {
        expect_object(raw, "a record")?;
        let names = &["$rewindTo", "id", "$set", "sessionId", "messages", "summary"];
        let [rewind, id, set, session, messages, summary] = json::fields(raw, names)?;
        if let Some(rewind) = text_of(rewind) {
            self.rewind(&rewind);
        } else if let Some(id) = text_of(id) {
            self.now.push(Kept { id, raw, within: None });
        } else if let Some(set) = set.filter(|set| Kind::of(set) == Kind::Object) {
            json::nested(raw, set, "/$set", |set| {
                let [messages, session, summary] = json::fields(set, &["messages", "sessionId", "summary"])?;
                self.describe(source, set, (session, summary))?;
                match messages.filter(|list| Kind::of(list) == Kind::Array) {
                    Some(list) => self.checkpoint(list),
                    None => Ok(()),
                }
            })?;
        } else {
            self.describe(source, raw, (session, summary))?;
            // A file of one document, to which lines were added.
            if let Some(list) = messages.filter(|list| Kind::of(list) == Kind::Array) {
                self.add(list, "/messages")?;
            }
        }
        Ok(())
    }

    fn describe(
        &mut self,
        source: &Arc<str>,
        raw: &str,
        (session, summary): (Option<&str>, Option<&str>),
    ) -> Result<(), WireError> {
        let read =
            |value, key| Ok::<_, WireError>(optional_text(raw, value, key)?.map(|text| share(source, &text)));
        if let Some(id) = read(session, "sessionId")? {
            self.id = id;
        }
        if let Some(summary) = read(summary, "summary")? {
            self.label = summary;
        }
        Ok(())
    }

    fn add(&mut self, list: &'a str, path: &'static str) -> Result<(), WireError> {
        let mut at = 0_usize;
        json::items(list, |raw| {
            let id = if Kind::of(raw) == Kind::Object { json::field(raw, "id") } else { Ok(None) };
            let id = id.map_err(|error| error.inside(format_args!("/{at}"), json::offset_of(list, raw)))?;
            if let Some(id) = text_of(id) {
                self.now.push(Kept { id, raw, within: Some((path, at)) });
            }
            at = at.saturating_add(1);
            Ok(())
        })
    }

    fn rewind(&mut self, id: &str) {
        if !self.now.list.is_empty() {
            self.before.push(Before { records: self.now.clone(), dropped: None });
            self.now.rewind(id);
        }
    }

    /// Puts these records in the place of all.
    fn checkpoint(&mut self, list: &'a str) -> Result<(), WireError> {
        let records = core::mem::take(&mut self.now);
        self.add(list, "/$set/messages")?;
        let is_gone = |kept: &&Kept<'a>| !self.now.places.contains_key(&kept.id);
        let dropped: HashSet<_> = records.list.iter().filter(is_gone).map(|kept| kept.id.clone()).collect();
        if !dropped.is_empty() {
            self.before.push(Before { records, dropped: Some(dropped) });
        }
        Ok(())
    }

    /// All conversations: the one that goes on, or that ends with `leaf`, first; then what rewinds and checkpoints left
    /// behind, where that holds a record which none of the others has.
    pub(super) fn conversations(
        mut self,
        transcript: &mut Transcript,
        text: &str,
        leaf: Option<&str>,
    ) -> Result<(), WireError> {
        let base = transcript.conversations.len();
        let chosen = leaf.map(|leaf| self.up_to(leaf)).transpose()?;
        let mut compactions = Vec::new();
        let mut stages = Vec::new();
        for before in core::mem::take(&mut self.before) {
            let mut conversation = conversation(transcript, text, &before.records)?;
            let count = compactions.len();
            conversation.label =
                Str::from(if before.dropped.is_some() { "before a compaction" } else { "before a rewind" });
            if let Some(dropped) = &before.dropped {
                compactions.push(compaction(&conversation, dropped));
            }
            stages.push((before.records, conversation, count));
        }
        let mut now = conversation(transcript, text, &self.now)?;
        (now.id, now.label) = (self.id.clone(), self.label);
        let mut listed: HashSet<Cow<'_, str>> = HashSet::new();
        if let Some(records) = chosen {
            listed.extend(records.list.iter().map(|kept| kept.id.clone()));
            let mut conversation = conversation(transcript, text, &records)?;
            conversation.id = self.id;
            transcript.push(conversation);
        }
        stages.push((self.now, now, compactions.len()));
        let compactions: Arc<[_]> = compactions.into();
        for (records, mut conversation, count) in stages.into_iter().rev() {
            let is_first = transcript.conversations.len() == base;
            if !is_first && records.list.iter().all(|kept| listed.contains(&kept.id)) {
                continue;
            }
            conversation.compactions = Compactions::first_of(&compactions, count);
            if !is_first {
                conversation.id = records.list.last().map(|kept| Str::from(&*kept.id)).unwrap_or_default();
                conversation.relation = Relation::Branch(base);
                conversation.active = false;
            }
            listed.extend(records.list.into_iter().map(|kept| kept.id));
            transcript.push(conversation);
        }
        Ok(())
    }

    /// The records up to the one of this name, as they were when it was last there.
    fn up_to(&self, leaf: &str) -> Result<Records<'a>, WireError> {
        let stages = self.before.iter().map(|before| &before.records).chain([&self.now]);
        let found = stages.rev().find_map(|records| records.places.get(leaf).map(|at| (records, *at)));
        let Some((records, at)) = found else {
            let what = format!("no record has the `id` {}", quoted(leaf));
            return Err(WireError::new(WireErrorKind::NotFound, what));
        };
        let mut records = records.clone();
        if let Some(next) = records.list.get(at.saturating_add(1)).map(|next| next.id.clone()) {
            records.rewind(&next);
        }
        Ok(records)
    }
}

/// What a checkpoint did to a conversation.
fn compaction(before: &Conversation, dropped: &HashSet<Cow<'_, str>>) -> ToolCompaction {
    let mut compaction = ToolCompaction::new(0);
    let records = before.entries.chunk_by(|one, next| one.record() == next.record());
    let gone = records.filter(|record| {
        let id = record.first().and_then(|first| first.message().id());
        id.is_some_and(|id| dropped.contains(id))
    });
    compaction.dropped = u64::try_from(gone.map(<[Entry]>::len).sum::<usize>()).ok();
    compaction.tokens_before = before.usage.last().and_then(|entry| entry.usage.input_total);
    compaction
}

/// The messages of `records`, whose texts are slices of `text`.
fn conversation(
    transcript: &mut Transcript,
    text: &str,
    records: &Records<'_>,
) -> Result<Conversation, WireError> {
    let source = Arc::clone(&transcript.source);
    let mut found = Vec::with_capacity(records.list.len());
    for kept in &records.list {
        let path = kept.within.map(|(path, at)| format!("{path}/{at}")).unwrap_or_default();
        found.push(json::nested(text, kept.raw, path, |raw| record(&source, raw))?);
    }
    // Newer versions keep what a tool returned twice: with its call, and in a record of the user's behind it.
    let is_users =
        |messages: &&Vec<Message>| messages.first().is_some_and(|first| first.role() != Role::Assistant);
    let of_users = found.iter().map(|found| &found.messages).filter(is_users).flatten();
    let answered: HashSet<Str> = of_users.flat_map(results).cloned().collect();
    let mut conversation = Conversation::new(Format::GeminiCli, "");
    conversation.is_log = true;
    for (kept, found) in records.list.iter().zip(found) {
        let (mut messages, usage) = (found.messages, found.usage);
        without_results(&mut messages, |id| answered.contains(id));
        if messages.is_empty() {
            continue;
        }
        let first = conversation.entries.len();
        conversation.usage.extend(usage.map(|usage| UsageEntry::new(first, usage)));
        let record = transcript.logged(kept.raw, messages.len());
        conversation.extend(record, messages);
    }
    Ok(conversation)
}

fn text_of(raw: Option<&str>) -> Option<Cow<'_, str>> {
    raw.filter(|raw| Kind::of(raw) == Kind::Text).map(json::decode)
}
