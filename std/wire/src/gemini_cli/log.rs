//! Newer session files: a log of records that only grows.

use core::ops::Range;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use epitome_core::message::Role;
use epitome_message::Str;

use super::message::{Record, record, results};
use crate::error::quoted;
use crate::expect::{expect_object, optional_text, share};
use crate::forest::narrow;
use crate::json::{self, ValueKind};
use crate::transcript::{
    CompactionTree, Conversation, Life, NEVER, Relation, Report, Stage, Stages, Timeline, ToolCompaction,
    Transcript, TranscriptEntry,
};
use crate::{Format, WireError, WireErrorKind, document};

/// The conversations of the lines of a log.
#[derive(Debug)]
pub(super) struct Log<'a> {
    timeline: Timeline,
    entries: Vec<TranscriptEntry>,
    reports: Vec<Report>,
    /// The present records in order, and their places in this list by their ids.
    now: Vec<Kept>,
    places: HashMap<Cow<'a, str>, usize>,
    /// Every record that was read, with the record before it at that time.
    read: Vec<Read<'a>>,
    /// Calls that are answered in records of users.
    answers: HashMap<Str, Answer>,
    /// Number of messages of the present records.
    messages: usize,
    /// Conversations that a rewind or a checkpoint ended, the oldest first.
    before: Vec<Before>,
    compactions: CompactionTree,
    last_compaction: Option<u32>,
    id: Str,
    label: Str,
}

/// A present record.
#[derive(Debug, Clone)]
struct Kept {
    /// Its number among all records that were read.
    read: usize,
    /// The lives of its messages, which are consecutive.
    lives: Range<usize>,
    /// Number of messages that no answer elsewhere hides.
    shown: usize,
    /// Ids of its own calls with a result in the record.
    own: Vec<Str>,
    /// Ids of the calls that it answers as the record of a user.
    told: Vec<Str>,
    report: Option<usize>,
}

#[derive(Debug)]
struct Read<'a> {
    id: Cow<'a, str>,
    before: Option<usize>,
}

/// The number of users' records that answer a call, and the number of records with its result in the call.
#[derive(Debug)]
struct Answer {
    users: usize,
    own: usize,
    hiding: u32,
}

/// The state before some records were taken out.
#[derive(Debug)]
struct Before {
    /// The last record; `None` if there was none.
    last: Option<usize>,
    stage: u32,
    messages: usize,
    label: Str,
    /// The last compaction before this state.
    compaction: Option<u32>,
}

impl<'a> Log<'a> {
    pub(super) fn read(transcript: &mut Transcript, text: &'a str) -> Result<Self, WireError> {
        let mut log = Self::new();
        for line in document::lines(text) {
            json::nested(text, line.text(), "", |raw| log.line(transcript, raw))?;
        }
        Ok(log)
    }

    fn new() -> Self {
        Self {
            timeline: Timeline::default(),
            entries: Vec::new(),
            reports: Vec::new(),
            now: Vec::new(),
            places: HashMap::new(),
            read: Vec::new(),
            answers: HashMap::new(),
            messages: 0,
            before: Vec::new(),
            compactions: CompactionTree::default(),
            last_compaction: None,
            id: Str::default(),
            label: Str::default(),
        }
    }

    fn line(&mut self, transcript: &mut Transcript, raw: &'a str) -> Result<(), WireError> {
        let source = &Arc::clone(&transcript.source);
        expect_object(raw, "a record")?;
        let names = &["$rewindTo", "id", "$set", "sessionId", "messages", "summary"];
        let [rewind, id, set, session, messages, summary] = json::fields(raw, names)?;
        if let Some(rewind) = text_of(rewind) {
            self.rewind(&rewind);
        } else if let Some(id) = text_of(id) {
            self.push(transcript, id, raw)?;
        } else if let Some(set) = set.filter(|set| ValueKind::of(set) == ValueKind::Object) {
            json::nested(raw, set, "/$set", |set| {
                let [messages, session, summary] = json::fields(set, &["messages", "sessionId", "summary"])?;
                self.describe(source, set, (session, summary))?;
                match messages.filter(|list| ValueKind::of(list) == ValueKind::Array) {
                    Some(list) => {
                        json::nested(set, list, "/messages", |list| self.checkpoint(transcript, list))
                    }
                    None => Ok(()),
                }
            })?;
        } else {
            self.describe(source, raw, (session, summary))?;
            // A file of one document, to which lines were added.
            if let Some(list) = messages.filter(|list| ValueKind::of(list) == ValueKind::Array) {
                json::nested(raw, list, "/messages", |list| self.add(transcript, list))?;
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

    fn add(&mut self, transcript: &mut Transcript, list: &'a str) -> Result<(), WireError> {
        let mut at = 0_usize;
        json::items(list, |raw| {
            json::nested(list, raw, format_args!("/{at}"), |raw| {
                let id = if ValueKind::of(raw) == ValueKind::Object { json::field(raw, "id")? } else { None };
                text_of(id).map_or(Ok(()), |id| self.push(transcript, id, raw))
            })?;
            at = at.saturating_add(1);
            Ok(())
        })
    }

    /// Adds a record, or replaces an earlier record with the same id.
    fn push(&mut self, transcript: &mut Transcript, id: Cow<'a, str>, raw: &str) -> Result<(), WireError> {
        let found = record(&transcript.source, raw)?;
        let place = self.places.get(&id).copied();
        let earlier = place.and_then(|place| self.now.get(place)).cloned();
        if let Some(earlier) = &earlier {
            self.end(earlier);
        }
        let slot = place.unwrap_or(self.now.len());
        let kept = self.begin(transcript, found, raw, slot);
        match (earlier, place.and_then(|place| self.now.get_mut(place))) {
            (Some(earlier), Some(now)) => *now = Kept { read: earlier.read, ..kept },
            _ => {
                let before = self.now.last().map(|last| last.read);
                let read = self.read.len();
                self.read.push(Read { id: id.clone(), before });
                self.places.insert(id, self.now.len());
                self.now.push(Kept { read, ..kept });
            }
        }
        Ok(())
    }

    /// Adds the messages of a record from the current stage on.
    fn begin(&mut self, transcript: &mut Transcript, found: Record, raw: &str, slot: usize) -> Kept {
        let is_model = found.messages.first().is_some_and(|first| first.role() == Role::Assistant);
        let (first, slot) = (self.entries.len(), narrow(slot));
        let mut kept =
            Kept { read: 0, lives: 0..0, shown: 0, own: Vec::new(), told: Vec::new(), report: None };
        if found.messages.is_empty() {
            return kept;
        }
        let record = transcript.logged(raw, found.messages.len());
        for (message, piece) in found.messages.into_iter().zip(0..) {
            let (entry, id) = (narrow(self.entries.len()), results(&message).next().cloned());
            if !is_model {
                kept.told.extend(results(&message).cloned());
            }
            // Newer versions store the output of a tool twice: with its call, and in a user's record behind it.
            let hiding = id.clone().filter(|_| is_model).map(|id| self.answer(&id).hiding);
            let life = self.timeline.begin_hidden_by(entry, slot, hiding.unwrap_or(NEVER));
            let from = if piece == 0 { life } else { kept.lives.start };
            kept.lives = from..life.saturating_add(1);
            match id.filter(|_| is_model) {
                Some(id) => kept.own.push(id),
                None => kept.shown = kept.shown.saturating_add(1),
            }
            self.entries.push(TranscriptEntry::of(message, record, piece));
        }
        if let Some(usage) = found.usage {
            kept.report = Some(self.reports.len());
            let (entry, from) = (narrow(first), self.timeline.now());
            self.reports.push(Report { entry, from, until: NEVER, usage });
        }
        self.count(&kept, true);
        kept
    }

    fn end(&mut self, kept: &Kept) {
        kept.lives.clone().for_each(|life| self.timeline.end(life));
        self.count(kept, false);
    }

    fn answer(&mut self, id: &Str) -> &mut Answer {
        if !self.answers.contains_key(id) {
            let hiding = self.timeline.hiding();
            self.answers.insert(id.clone(), Answer { users: 0, own: 0, hiding });
        }
        self.answers.entry(id.clone()).or_insert(Answer { users: 0, own: 0, hiding: NEVER })
    }

    /// Counts the messages of a record that begins or ends, and the messages that it hides or shows.
    fn count(&mut self, kept: &Kept, is_begun: bool) {
        let change = |count: &mut usize, by: usize| {
            *count = if is_begun { count.saturating_add(by) } else { count.saturating_sub(by) };
        };
        change(&mut self.messages, kept.shown);
        for id in &kept.own {
            let answer = self.answer(id);
            change(&mut answer.own, 1);
            let shown = usize::from(answer.users == 0);
            change(&mut self.messages, shown);
        }
        for id in &kept.told {
            let answer = self.answer(id);
            let was = answer.users;
            change(&mut answer.users, 1);
            if (was == 0) != (answer.users == 0) {
                let (own, hiding) = (answer.own, answer.hiding);
                self.timeline.toggle(hiding);
                // A result in a user's record replaces the result in the call.
                self.messages = if is_begun {
                    self.messages.saturating_sub(own)
                } else {
                    self.messages.saturating_add(own)
                };
            }
        }
    }

    /// Stores the present conversation, and begins the next stage.
    fn leave(&mut self, label: Str) {
        let (last, stage) = (self.now.last().map(|last| last.read), self.timeline.now());
        let (messages, compaction) = (self.messages, self.last_compaction);
        self.before.push(Before { last, stage, messages, label, compaction });
        self.timeline.advance();
    }

    /// Takes out the record with this id and the records behind it. If there is none, it takes out all records, as
    /// Gemini CLI does.
    fn rewind(&mut self, id: &str) {
        if self.now.is_empty() {
            return;
        }
        self.leave(Str::from("before a rewind"));
        let at = self.places.get(id).copied().unwrap_or(0);
        for gone in self.now.split_off(at.min(self.now.len())) {
            self.end(&gone);
            if let Some(read) = self.read.get(gone.read) {
                self.places.remove(&read.id);
            }
        }
    }

    /// Replaces all records by these.
    fn checkpoint(&mut self, transcript: &mut Transcript, list: &'a str) -> Result<(), WireError> {
        let mut shown = HashMap::new();
        let tokens = self.now.iter().rev().find_map(|kept| self.reports.get(kept.report?));
        let tokens = tokens.and_then(|report| report.usage.input_total);
        for kept in &self.now {
            let own =
                kept.own.iter().filter(|id| self.answers.get(*id).is_none_or(|one| one.users == 0)).count();
            shown.insert(kept.read, kept.shown.saturating_add(own));
        }
        self.leave(Str::from("before a compaction"));
        let was = core::mem::take(&mut self.now);
        self.places.clear();
        was.iter().for_each(|gone| self.end(gone));
        self.add(transcript, list)?;
        let is_gone =
            |kept: &&Kept| self.read.get(kept.read).is_some_and(|read| !self.places.contains_key(&read.id));
        let gone: Vec<_> = was.iter().filter(is_gone).collect();
        if gone.is_empty() {
            self.before.pop();
            return Ok(());
        }
        let mut compaction = ToolCompaction::new(0);
        let dropped = gone.iter().filter_map(|kept| shown.get(&kept.read)).sum::<usize>();
        compaction.dropped = u64::try_from(dropped).ok();
        compaction.tokens_before = tokens;
        self.last_compaction = Some(self.compactions.push(self.last_compaction, compaction));
        Ok(())
    }

    /// Adds all conversations. The first is the active one, or the one that ends with `leaf`. Then come the
    /// conversations before rewinds and checkpoints, if they hold a record that none of the others has.
    pub(super) fn conversations(
        mut self,
        transcript: &mut Transcript,
        leaf: Option<&str>,
    ) -> Result<(), WireError> {
        let base = transcript.conversations.len();
        let label = self.label.clone();
        self.leave(label);
        if let Some(leaf) = leaf {
            self.up_to(leaf)?;
        }
        let Self { read, before, .. } = &self;
        // The ids in any conversation so far, and the records that were visited.
        let (mut listed, mut passed) = (HashSet::new(), vec![false; read.len()]);
        let mut shown = Vec::new();
        for (at, before) in before.iter().enumerate().rev() {
            let (mut here, mut is_new) = (before.last, shown.is_empty());
            while let Some(record) = here.filter(|here| passed.get(*here) == Some(&false)) {
                if let Some(passed) = passed.get_mut(record) {
                    *passed = true;
                }
                is_new |= read.get(record).is_some_and(|read| listed.insert(&read.id));
                here = read.get(record).and_then(|read| read.before);
            }
            shown.extend(Some(at).filter(|_| is_new));
        }
        let names: Vec<_> =
            before.iter().map(|before| read.get(before.last?).map(|read| read.id.clone())).collect();
        let lists = self.compactions.lists();
        let file: Arc<dyn Stages> = Arc::new(self.timeline.finish(self.entries, self.reports));
        transcript.conversations.reserve_exact(shown.len());
        for at in shown {
            let (Some(before), Some(name)) = (self.before.get(at), names.get(at)) else { continue };
            let stage = Stage { of: Arc::clone(&file), number: before.stage };
            let mut found = Conversation::new(Format::GeminiCli, "").with_stage(&stage, before.messages);
            found.is_log = true;
            found.compactions = lists(before.compaction);
            found.label = before.label.clone();
            if transcript.conversations.len() == base {
                found.id = self.id.clone();
            } else {
                found.id = name.as_deref().map(Str::from).unwrap_or_default();
                found.relation = Relation::Branch(base);
                found.active = false;
            }
            transcript.push(found);
        }
        Ok(())
    }

    /// Makes a stage of the records up to the one with this id, in the state of the time when it was last there.
    fn up_to(&mut self, leaf: &str) -> Result<(), WireError> {
        let mut passed = vec![false; self.read.len()];
        let mut found = None;
        for before in self.before.iter().rev() {
            let mut here = before.last;
            while let Some((record, read)) = here.and_then(|here| Some((here, self.read.get(here)?))) {
                if passed.get_mut(record).is_none_or(|passed| core::mem::replace(passed, true)) {
                    break;
                }
                found = found.or_else(|| Some((record, before.stage)).filter(|_| read.id == leaf));
                here = read.before;
            }
        }
        let Some((last, stage)) = found else {
            let what = format!("no record has the `id` {}", quoted(leaf));
            return Err(WireError::new(WireErrorKind::NotFound, what));
        };
        let way = core::iter::successors(Some(last), |record| self.read.get(*record)?.before);
        let slots = narrow(way.count());
        let lives: Vec<_> = self.timeline.at(stage).into_iter().filter(|life| life.slot < slots).collect();
        let entry = |life: &Life| self.entries.get(life.entry as usize);
        // Only the result of a call in the model's own record can be hidden.
        let of_users = lives.iter().filter(|life| !life.can_be_hidden()).filter_map(entry);
        let told: HashSet<Str> = of_users.flat_map(|entry| results(entry.message())).cloned().collect();
        let is_told = |entry: &TranscriptEntry| results(entry.message()).any(|id| told.contains(id));
        let is_shown = |life: &&Life| !life.can_be_hidden() || !entry(life).is_some_and(is_told);
        let shown: Vec<_> = lives.iter().filter(is_shown).copied().collect();
        self.timeline.advance();
        for kept in core::mem::take(&mut self.now) {
            self.end(&kept);
        }
        for life in &shown {
            self.timeline.begin(life.entry, life.slot);
        }
        let stage = self.timeline.now();
        let (messages, label) = (shown.len(), Str::default());
        self.before.push(Before { last: Some(last), stage, messages, label, compaction: None });
        Ok(())
    }
}

fn text_of(raw: Option<&str>) -> Option<Cow<'_, str>> {
    raw.filter(|raw| ValueKind::of(raw) == ValueKind::Text).map(json::decode)
}
