//! The naive twin of a store: it keeps the events, and computes everything from them again, one number at a time.

use std::collections::{BTreeMap, BTreeSet};

use epitome_core::attribution::{Authority, Retention, SeqRange, SourceKind};
use epitome_core::message::{CallKind, Role};
use epitome_core::{Head, Revision, Seq};
use epitome_message::{Message, Part};

use epitome_history::StoreErrorKind::{self, Conflict, Invalid};
use epitome_history::{
    Appended, Committed, CompactionRecord, Entry, Live, Loaded, Logged, MessageEdit, PartStandIn, Summary,
    TokenCount,
};

/// The events of one session.
#[derive(Default)]
pub(super) struct Twin {
    events: Vec<Event>,
}

enum Event {
    Append { token: String, entries: Vec<Entry>, appended: Appended },
    Commit(CompactionRecord),
}

/// The state of a session after its events.
pub(super) struct State {
    pub(super) loaded: Loaded,
    pub(super) log: Vec<Logged>,
    /// The summaries that are visible.
    pub(super) summaries: Vec<Summary>,
    /// For each message the stand-ins of its parts, and the size of the message with them.
    edits: BTreeMap<u64, (BTreeMap<u32, Option<String>>, TokenCount)>,
}

impl Twin {
    pub(super) fn append(
        &mut self,
        token: &str,
        head: Head,
        entries: &[Entry],
    ) -> Result<Appended, StoreErrorKind> {
        for event in &self.events {
            if let Event::Append { token: known, entries: given, appended } = event
                && known == token
            {
                // The groups are not compared, because the caller may have grouped the messages again.
                let said =
                    |entries: &[Entry]| entries.iter().map(|entry| entry.message.clone()).collect::<Vec<_>>();
                return if said(given) == said(entries) { Ok(*appended) } else { Err(Invalid) };
            }
        }
        let state = self.state();
        if head != state.loaded.head {
            return Err(Conflict);
        }
        let mut all: Vec<&Entry> = state.log.iter().map(|logged| &logged.entry).collect();
        all.extend(entries);
        let leads = |entry: &&Entry| {
            all.get(entry.anchor.0 as usize).is_some_and(|leader| leader.anchor == entry.anchor)
        };
        let in_order = (head.0..).zip(entries).all(|(seq, entry)| entry.anchor.0 <= seq);
        if entries.is_empty() || !in_order || !entries.iter().all(|entry| leads(&entry)) {
            return Err(Invalid);
        }
        let late = entries.iter().any(|entry| entry.late && !entry.orphan);
        let revision = Revision(state.loaded.revision.0 + u64::from(late));
        let appended = Appended::new(head, Seq(head.0 + entries.len() as u64), revision);
        self.events.push(Event::Append { token: token.into(), entries: entries.to_vec(), appended });
        Ok(appended)
    }

    pub(super) fn commit(&mut self, record: &CompactionRecord) -> Result<Revision, StoreErrorKind> {
        let mut commits = self.events.iter().filter_map(|event| match event {
            Event::Commit(record) => Some(record),
            Event::Append { .. } => None,
        });
        if let Some(known) = commits.find(|known| does_the_same(known, record)) {
            return Ok(known.parent.next());
        }
        let state = self.state();
        if record.parent != state.loaded.revision {
            return Err(Conflict);
        }
        check(record, &state)?;
        self.events.push(Event::Commit(record.clone()));
        Ok(record.parent.next())
    }

    pub(super) fn records(&self) -> Vec<Committed> {
        let committed = |event: &Event| match event {
            Event::Commit(record) => Some(Committed::new(record.parent.next(), record.clone())),
            Event::Append { .. } => None,
        };
        self.events.iter().filter_map(committed).collect()
    }

    pub(super) fn state(&self) -> State {
        let (loaded, edits) = (Loaded::new(Seq(0), Revision(0)), BTreeMap::new());
        let mut state = State { loaded, log: Vec::new(), summaries: Vec::new(), edits };
        for event in &self.events {
            match event {
                Event::Append { entries, appended, .. } => state.add(entries, appended.revision),
                Event::Commit(record) => state.fold(record),
            }
        }
        state.project();
        state
    }
}

impl State {
    fn add(&mut self, entries: &[Entry], revision: Revision) {
        for entry in entries {
            let seq = self.loaded.head;
            let leader = self.log.get(entry.anchor.0 as usize);
            let hidden_by = leader.and_then(|leader| leader.hidden_by).filter(|_| !entry.orphan);
            if hidden_by.is_some() {
                for part in entry.message.parts() {
                    let Part::ToolResult(result) = part else { continue };
                    let open = &mut self.loaded.unanswered;
                    let first =
                        open.iter().position(|call| call.anchor == entry.anchor && call.id == result.call_id);
                    first.map(|first| open.remove(first));
                }
            }
            self.log.push(Logged::new(seq, entry.clone(), hidden_by));
            self.loaded.head = seq.next();
        }
        self.loaded.revision = revision;
    }

    fn fold(&mut self, record: &CompactionRecord) {
        let revision = record.parent.next();
        let hidden = numbers(&record.hides);
        for logged in &mut self.log {
            if hidden.contains(&logged.seq.0) && logged.hidden_by.is_none() && !logged.entry.orphan {
                logged.hidden_by = Some(revision);
            }
        }
        self.summaries.retain(|summary| !hidden.contains(&summary.key.0));
        self.summaries.extend(record.summaries.iter().cloned());
        for edit in &record.edits {
            let (parts, count) =
                self.edits.entry(edit.seq.0).or_insert_with(|| (BTreeMap::new(), edit.count.clone()));
            for stand_in in &edit.stand_ins {
                parts.insert(stand_in.ordinal, stand_in.text.as_ref().map(|text| text.to_string()));
            }
            *count = edit.count.clone();
            self.log[edit.seq.0 as usize].edited_by = Some(revision);
        }
        for call in &record.unanswered {
            self.loaded
                .unanswered
                .retain(|known| (known.anchor, known.ordinal) != (call.anchor, call.ordinal));
            self.loaded.unanswered.push(call.clone());
        }
        self.loaded.unanswered.sort_by_key(|call| (call.anchor, call.ordinal));
        self.loaded.revision = revision;
    }

    fn project(&mut self) {
        for logged in self.log.iter().filter(|logged| logged.hidden_by.is_none() && !logged.entry.orphan) {
            let mut live = Live::new(logged.seq, logged.entry.clone());
            if let Some((parts, count)) = self.edits.get(&logged.seq.0) {
                live.entry.message = without(&logged.entry.message, parts);
                live.entry.count = count.clone();
                live.stand_ins = parts
                    .iter()
                    .map(|(ordinal, text)| PartStandIn::new(*ordinal, text.as_deref().map(Into::into)))
                    .collect();
            }
            self.loaded.live.push(live);
        }
        for summary in &self.summaries {
            let turn = self.log[summary.key.0 as usize].entry.turn;
            let entry = Entry::new(summary.message.clone(), summary.key, turn, summary.count.clone());
            let covers = summary.message.attribution().derived_from.clone();
            self.loaded.live.push(Live::summary(summary.key, entry, covers));
        }
        self.loaded.live.sort_by_key(|live| live.key);
    }
}

/// The message with these stand-ins for its parts.
fn without(message: &Message, texts: &BTreeMap<u32, Option<String>>) -> Message {
    let mut parts = message.parts().to_vec();
    for (ordinal, text) in texts.iter().rev() {
        let at = *ordinal as usize;
        match (&mut parts[at], text) {
            (_, None) => drop(parts.remove(at)),
            (Part::ToolResult(result), Some(text)) => result.parts = vec![Part::Text(text.as_str().into())],
            (Part::ToolCall(call), Some(text)) => call.arguments = text.as_str().into(),
            (part, Some(text)) => *part = Part::Text(text.as_str().into()),
        }
    }
    message.clone().with_parts(parts)
}

fn does_the_same(one: &CompactionRecord, other: &CompactionRecord) -> bool {
    let shown = |record: &CompactionRecord| -> Vec<_> {
        record.summaries.iter().map(|summary| (summary.key, summary.message.clone())).collect()
    };
    let edited = |record: &CompactionRecord| -> Vec<_> {
        record.edits.iter().map(|edit| (edit.seq, edit.stand_ins.clone())).collect()
    };
    (one.parent, one.head, &one.hides) == (other.parent, other.head, &other.hides)
        && shown(one) == shown(other)
        && edited(one) == edited(other)
}

fn check(record: &CompactionRecord, state: &State) -> Result<(), StoreErrorKind> {
    let hidden = numbers(&record.hides);
    let apart = record.hides.windows(2).all(|pair| pair[0].last.0 + 1 < pair[1].first.0);
    let below = hidden.iter().all(|seq| *seq < record.head.0);
    let backwards = record.hides.iter().any(|range| range.first > range.last);
    let stands_for = |live: &Live| match live.covers.as_slice() {
        [] => BTreeSet::from([live.key.0]),
        covers => numbers(covers),
    };
    let visible: BTreeSet<u64> = state.loaded.live.iter().flat_map(stands_for).collect();
    let all_hide = record.hides.iter().all(|range| numbers(&[*range]).intersection(&visible).count() > 0);
    if record.head > state.loaded.head
        || (record.hides.is_empty() && record.edits.is_empty())
        || backwards
        || !apart
        || !below
        || !all_hide
    {
        return Err(Invalid);
    }
    let mut last_key = None;
    let mut covered = BTreeSet::new();
    for summary in &record.summaries {
        let ranges = &summary.message.attribution().derived_from;
        let covers = numbers(ranges);
        let good = covers.first() == Some(&summary.key.0)
            && covers.is_subset(&hidden)
            && covers.is_disjoint(&covered)
            && last_key < Some(summary.key)
            && ranges.is_sorted();
        if !good {
            return Err(Invalid);
        }
        last_key = Some(summary.key);
        covered.extend(covers);
    }
    if !within_authority(record, state, &hidden) {
        return Err(Invalid);
    }
    for summary in &state.summaries {
        let covers = numbers(&summary.message.attribution().derived_from);
        if !covers.is_subset(&hidden) && !covers.is_disjoint(&hidden) {
            return Err(Invalid);
        }
    }
    let mut edited = BTreeSet::new();
    for edit in &record.edits {
        let in_order = edited.last() < Some(&edit.seq.0);
        edited.insert(edit.seq.0);
        if !in_order || edit.seq >= record.head || hidden.contains(&edit.seq.0) || !may_edit(edit, state) {
            return Err(Invalid);
        }
    }
    // The calls must be in groups that the record hides and that were visible.
    let shown =
        |seq: u64| state.loaded.live.iter().any(|live| live.key == Seq(seq) && live.covers.is_empty());
    if record.unanswered.iter().any(|call| !hidden.contains(&call.anchor.0) || !shown(call.anchor.0)) {
        return Err(Invalid);
    }
    check_groups(record, state, &hidden)
}

/// Whether instructions and pins stay, and summaries do not exceed their authority.
fn within_authority(record: &CompactionRecord, state: &State, hidden: &BTreeSet<u64>) -> bool {
    let stands_for = |live: &Live| match live.covers.as_slice() {
        [] => BTreeSet::from([live.key.0]),
        covers => numbers(covers),
    };
    let live = &state.loaded.live;
    let is_behind = |live: &&Live| {
        hidden.first().is_some_and(|first| live.entry.anchor.0 >= *first) && live.key < record.head
    };
    let takes_back = record.summaries.is_empty()
        && record.edits.is_empty()
        && live.iter().filter(is_behind).all(|live| stands_for(live).is_subset(hidden));
    let touched =
        |live: &&Live| hidden.contains(&live.key.0) || record.edits.iter().any(|edit| edit.seq == live.key);
    let may_go = |live: &Live| {
        let attribution = live.entry.message.attribution();
        let instructs = matches!(live.entry.message.role(), Role::System | Role::Developer)
            && attribution.source == SourceKind::Caller;
        !instructs && attribution.retention != Retention::Pinned
    };
    let gone = || live.iter().filter(|live| stands_for(live).is_subset(hidden));
    let shown: BTreeSet<u64> = gone().flat_map(stands_for).collect();
    let is_humble = |summary: &Summary| {
        let attribution = summary.message.attribution();
        let covers = numbers(&attribution.derived_from);
        let sources = gone().filter(|live| !stands_for(live).is_disjoint(&covers));
        let sources = sources.map(|live| live.entry.message.attribution().authority);
        summary.message.role() == Role::Assistant
            && attribution.source == SourceKind::Compaction
            && attribution.retention != Retention::Pinned
            && covers.is_subset(&shown)
            && attribution.authority <= Authority::of_summary(sources)
    };
    (takes_back || live.iter().filter(touched).all(may_go)) && record.summaries.iter().all(is_humble)
}

fn may_edit(edit: &MessageEdit, state: &State) -> bool {
    let shown = state.loaded.live.iter().find(|live| live.key == edit.seq && live.covers.is_empty());
    let Some(shown) = shown else { return false };
    let parts = state.log[edit.seq.0 as usize].entry.message.parts();
    let message = &shown.entry.message;
    let is_guarded = !matches!(message.role(), Role::Assistant | Role::Tool)
        || message.attribution().authority >= Authority::User;
    let now = |ordinal| {
        let stands = shown.stand_ins.iter().find(|it| it.ordinal == ordinal)?;
        stands.text.as_ref().map(|text| text.to_string())
    };
    let is_honest = |stand_in: &PartStandIn| {
        let text = stand_in.text.as_deref().unwrap_or_default();
        match parts.get(stand_in.ordinal as usize) {
            Some(Part::Text(original)) if is_guarded => {
                let left = now(stand_in.ordinal).is_some_and(|now| is_left_of(&now, text));
                is_word_in_brackets(text) || is_left_of(original, text) || left
            }
            Some(Part::Media(_)) if is_guarded => is_word_in_brackets(text),
            _ => true,
        }
    };
    let allowed = |stand_in: &PartStandIn| match (parts.get(stand_in.ordinal as usize), &stand_in.text) {
        (Some(Part::Reasoning(_)), None) => true,
        (Some(Part::ToolCall(call)), Some(text)) => call.kind == CallKind::Function && !text.is_empty(),
        (Some(Part::Text(_) | Part::Media(_) | Part::ToolResult(_)), Some(text)) => !text.trim().is_empty(),
        _ => false,
    };
    let ordinals: Vec<_> = edit.stand_ins.iter().map(|stand_in| stand_in.ordinal).collect();
    let only_removes = edit.stand_ins.iter().all(|stand_in| stand_in.text.is_none());
    let (before, after) = (&shown.entry.count, &edit.count);
    let smaller = after.tokens < before.tokens || only_removes && after.tokens == before.tokens;
    !ordinals.is_empty()
        && ordinals.windows(2).all(|pair| pair[0] < pair[1])
        && edit.stand_ins.iter().all(allowed)
        && edit.stand_ins.iter().all(is_honest)
        && (smaller || before.counter != after.counter)
}

/// Whether `text` is all of another text, or its beginning, a word in brackets and its end.
fn is_left_of(whole: &str, text: &str) -> bool {
    let between = |from: usize, to: usize| {
        let pieces = (text.get(..from), text.get(from..to), text.get(to..));
        matches!(pieces, (Some(head), Some(note), Some(tail)) if head.len() + tail.len() <= whole.len()
            && whole.starts_with(head) && whole.ends_with(tail) && is_word_in_brackets(note.trim()))
    };
    text == whole || (0..=text.len()).any(|from| (from..=text.len()).any(|to| between(from, to)))
}

fn is_word_in_brackets(text: &str) -> bool {
    let Some(inner) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) else { return false };
    let word = inner.trim_matches([' ', '.', '…']);
    let is_letter = |one: char| !one.is_whitespace() && !one.is_control() && one != '[' && one != ']';
    inner.len() <= 24 && !word.is_empty() && word.chars().all(is_letter)
}

fn check_groups(
    record: &CompactionRecord,
    state: &State,
    hidden: &BTreeSet<u64>,
) -> Result<(), StoreErrorKind> {
    let visible = || state.log.iter().filter(|logged| logged.hidden_by.is_none() && !logged.entry.orphan);
    for left in visible().filter(|logged| !hidden.contains(&logged.seq.0)) {
        let split = visible()
            .any(|logged| logged.entry.anchor == left.entry.anchor && hidden.contains(&logged.seq.0));
        if split {
            return Err(if left.seq >= record.head { Conflict } else { Invalid });
        }
    }
    Ok(())
}

fn numbers(ranges: &[SeqRange]) -> BTreeSet<u64> {
    ranges.iter().flat_map(|range| range.first.0..=range.last.0).collect()
}
