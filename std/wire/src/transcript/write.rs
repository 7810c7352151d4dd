//! Writes a transcript back into its source text.

use core::ops::Range;
use std::collections::{HashMap, HashSet};
use std::io::Write;

use super::contents::{Contents, Output};
use super::held::Held;
use super::inserted::{Inserted, Waiting};
use super::turns;
use super::{
    AsRead, Conversation, Insertion, List, Partial, Place, SourceRecordId, Transcript, TranscriptEntry,
};
use crate::json::ElementPlaces;
use crate::openai_responses::CustomCalls;
use crate::rewrite::form;
use crate::spec::{self, Writer};
use crate::{WireError, WireErrorKind};

/// Writes the source text of `transcript` with the present entries of its conversations.
///
/// Unchanged records stay byte for byte: a transcript without changes results in its whole source text. A record with
/// changed messages is patched. A record without messages is removed with its separator. A new entry stands behind the
/// entry before it. A record of several conversations is written in the form of the first changed one, and stays while
/// an unchanged one has it. Nothing is written until all changes are known to be writable.
///
/// ```
/// use epitome_wire::{ReadOptions, read, write_back};
///
/// let text = r#"{"model": "m", "messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]}"#;
/// let mut transcript = read(text, &ReadOptions::default())?;
/// transcript.conversations_mut()[0].entries.remove(0);
/// let mut out = Vec::new();
/// write_back(&transcript, &mut out)?;
/// assert_eq!(out, br#"{"model": "m", "messages": [{"role": "user", "content": "b"}]}"#);
/// # Ok::<(), epitome_wire::WireError>(())
/// ```
///
/// # Errors
/// `Unsupported` for content that the format cannot represent, or for a value that cannot be left out; `Io` if `out`
/// fails.
pub fn write_back(transcript: &Transcript, out: &mut (impl Write + ?Sized)) -> Result<(), WireError> {
    if transcript.is_as_read() {
        return emit(&transcript.source, out);
    }
    let mut edits = Edits::of(transcript)?;
    edits.sort();
    let mut here = 0;
    for edit in &edits.0 {
        let range = edit.range();
        emit(transcript.slice(here..range.start), out)?;
        edit.write(transcript, out)?;
        here = range.end;
    }
    emit(transcript.slice(here..transcript.source.len()), out)
}

/// The edits of the source.
#[derive(Debug, Default)]
struct Edits<'t>(Vec<Edit<'t>>);

#[derive(Debug)]
enum Edit<'t> {
    Text(Range<usize>, String),
    List(&'t List, Vec<Output>),
}

impl<'t> Edits<'t> {
    fn of(transcript: &'t Transcript) -> Result<Self, WireError> {
        let mut lists: HashMap<u32, Contents> = HashMap::new();
        let mut edits = Self::default();
        let (mut written, mut inserted) = (HashSet::new(), Inserted::default());
        let is_changed = |one: &&Conversation| !transcript.is_untouched(one);
        for conversation in transcript.conversations.iter().filter(is_changed) {
            edits.conversation(transcript, conversation, &mut lists, (&mut written, &mut inserted))?;
        }
        let held = Held::of(transcript);
        let dropped = transcript.dropped();
        let is_held = |id: SourceRecordId| held.has(id) && !dropped.contains(&id);
        let is_there = |id: SourceRecordId| written.contains(&id) || is_held(id);
        edits.absent(transcript, is_there)?;
        let mut stays: Vec<_> = transcript.lists.iter().map(|list| vec![true; list.elements.len()]).collect();
        for (id, record) in (0_u32..).map(SourceRecordId).zip(&transcript.records) {
            // A record without messages stays.
            if let Place::Element { list, at } = record.place
                && let Some(stays) = stays.get_mut(list as usize).and_then(|list| list.get_mut(at as usize))
            {
                *stays &= match record.hidden_by {
                    Some(by) => is_there(by),
                    None => record.pieces == 0 || (is_held(id) && !written.contains(&id)),
                };
            }
        }
        let (mut chain, mut has_turns) = (None, false);
        for conversation in transcript.conversations.iter().filter(is_changed) {
            let spec = spec::of(conversation.format)?;
            has_turns |= matches!(spec.writer, Writer::Turns(_));
            let Some(own) = spec.chain else { continue };
            own.goes_on(transcript, conversation, is_there)?;
            chain = Some(own);
        }
        for ((number, list), stays) in (0_u32..).zip(&transcript.lists).zip(stays) {
            let mut contents = lists.remove(&number).unwrap_or_default();
            contents.keep(&stays);
            if let Some(chain) = chain {
                contents.bridge(transcript, list, chain)?;
            }
            if contents.changes(list) {
                let outputs = contents.into_outputs();
                let element = |at: usize| list.elements.get(at).map_or("", |at| transcript.slice(at.clone()));
                let outputs = if has_turns { turns::joined(&outputs, element)? } else { outputs };
                edits.0.push(Edit::List(list, outputs));
            }
        }
        Ok(edits)
    }

    fn conversation(
        &mut self,
        transcript: &'t Transcript,
        conversation: &Conversation,
        lists: &mut HashMap<u32, Contents>,
        (written, inserted): (&mut HashSet<SourceRecordId>, &mut Inserted),
    ) -> Result<(), WireError> {
        let spec = spec::of(conversation.format)?;
        if matches!(spec.writer, Writer::ReadOnly) {
            // Also if another branch still has a message that this one has lost.
            written.extend(conversation.entries.iter().filter_map(TranscriptEntry::record));
            return if conversation.says_the_same() { Ok(()) } else { spec.write(None, &[]).map(drop) };
        }
        if let Some(log) = spec.log.filter(|_| conversation.is_log) {
            let end = transcript.source.len();
            self.0.extend(log.addition(transcript, conversation)?.map(|line| Edit::Text(end..end, line)));
            return Ok(());
        }
        let (mut list, mut cursor, mut near) = (conversation.first_list(transcript), None, None);
        let (mut own, mut has_new, mut is_behind_new) = (HashSet::new(), false, false);
        // The new record before this one: the next new record has its form.
        let mut newest: Option<String> = None;
        let mut waiting = Waiting::of(transcript, conversation, spec.chain)?;
        let partial = conversation.partial(&transcript.records);
        // A new result takes the form that answers its call.
        let mut calls =
            conversation.entries.iter().any(|entry| entry.record.is_none()).then(CustomCalls::default);
        for group in groups(&conversation.entries) {
            let id = group.first().and_then(TranscriptEntry::record);
            if let Some(calls) = &mut calls {
                group.iter().for_each(|entry| calls.push(&entry.message));
            }
            let answered = match (group, &calls) {
                ([entry], Some(calls)) => {
                    calls.answered(&entry.message).map(|message| [entry.clone().with_message(message)])
                }
                _ => None,
            };
            let group = answered.as_ref().map_or(group, |answered| answered.as_slice());
            let record = id.and_then(|id| transcript.records.get(id.0 as usize));
            if id.is_none() && conversation.insertion == Insertion::Nowhere {
                return Err(form("a new message"));
            }
            if let Some(id) = id {
                let again = !own.insert(id);
                if again {
                    waiting.splits_no_record()?;
                    if is_behind_new && conversation.insertion == Insertion::BetweenRecords {
                        return Err(form("a new message within a record"));
                    }
                }
                if !written.insert(id) && !again {
                    waiting.agrees(inserted, id)?;
                    // Another conversation with this record has already written it.
                    if let Some(Place::Element { at, .. }) = record.map(|record| &record.place) {
                        let at = Some(*at as usize);
                        cursor = if list_is_free(transcript, record) { at } else { cursor.max(at) };
                    }
                    continue;
                }
            }
            is_behind_new = id.is_none();
            has_new |= is_behind_new;
            if has_new && record.is_some_and(|record| record.begins) {
                return Err(form("a new message before what a compaction has left"));
            }
            match (group, id) {
                (group, Some(id)) => waiting.meets(inserted, id, group)?,
                ([entry], None) if waiting.takes(entry)? => continue,
                _ => {}
            }
            let like =
                near.or_else(|| conversation.first_element(transcript)).map(|id| transcript.record(id));
            let fresh = match (group, id) {
                ([entry], None) => spec.write_new(entry.message(), newest.as_deref().or(like)),
                _ => None,
            };
            let text = match fresh {
                Some(fresh) => Some(Some(fresh?)),
                None => new_text(transcript, conversation, id.zip(Some(&partial)), group)
                    .map_err(|error| placed(error, transcript, conversation, record))?,
            };
            let text = waiting.relinked(id, text)?;
            newest = if id.is_none() { text.clone().flatten() } else { None };
            match record.map(|record| (&record.place, record)) {
                Some((Place::Field { .. } | Place::Value, record)) => match text {
                    None => {}
                    Some(Some(text)) => self.0.push(Edit::Text(record.text.clone(), text)),
                    Some(None) => self.leave_out(&record.place)?,
                },
                Some((Place::Element { list: number, at }, _)) => {
                    (list, near) = (Some(*number), id);
                    let contents = Contents::of(lists, transcript, *number);
                    let text = waiting.put(contents, inserted, (id, *at), text)?;
                    contents.push(&mut cursor, Some(*at as usize), text);
                }
                Some((Place::Logged, _)) | None => {
                    let number = list.ok_or_else(no_list)?;
                    Contents::of(lists, transcript, number).push(&mut cursor, None, text);
                }
            }
        }
        waiting.put_at_end(lists, inserted)
    }

    /// Removes the records outside of lists that no conversation has any more.
    fn absent(
        &mut self,
        transcript: &Transcript,
        is_there: impl Fn(SourceRecordId) -> bool,
    ) -> Result<(), WireError> {
        for (id, record) in (0_u32..).zip(&transcript.records) {
            if record.pieces > 0 && !is_there(SourceRecordId(id)) {
                if record.stays {
                    return Err(WireError::unsupported(
                        "this record cannot be left out: without it the text says something else",
                    ));
                }
                self.leave_out(&record.place)?;
            }
        }
        Ok(())
    }

    fn leave_out(&mut self, place: &Place) -> Result<(), WireError> {
        match place {
            Place::Element { .. } | Place::Logged => Ok(()),
            Place::Field { cut } => {
                self.0.push(Edit::Text(cut.clone(), String::new()));
                Ok(())
            }
            Place::Value => {
                Err(WireError::unsupported("the text is this one message: it cannot be left out"))
            }
        }
    }

    fn sort(&mut self) {
        self.0.sort_by_key(|edit| edit.range().start);
    }
}

impl Edit<'_> {
    fn range(&self) -> Range<usize> {
        match self {
            Self::Text(range, _) => range.clone(),
            Self::List(list, _) => list.inner.clone(),
        }
    }

    fn write(&self, transcript: &Transcript, out: &mut (impl Write + ?Sized)) -> Result<(), WireError> {
        let (list, outputs) = match self {
            Self::Text(_, text) => return emit(text, out),
            Self::List(list, outputs) => (list, outputs),
        };
        let (start, end) = (list.inner.start, list.inner.end);
        let places = ElementPlaces {
            text: &transcript.source,
            start,
            end,
            elements: &list.elements,
            separator: list.separator,
        };
        let pieces = outputs.iter().map(|output| match output {
            Output::Kept(at) => {
                let range = list.elements.get(*at).cloned().unwrap_or_default();
                (Some(*at), transcript.slice(range))
            }
            Output::Text(at, text) => (*at, text.as_str()),
        });
        places.emit(pieces, &mut |text| emit(text, out))
    }
}

impl Transcript {
    /// The messages of a record: `group` for its own `pieces`, and the others from a conversation that has the whole
    /// record.
    fn completed(
        &self,
        id: SourceRecordId,
        group: &[TranscriptEntry],
        pieces: &[u32],
    ) -> Result<Vec<TranscriptEntry>, WireError> {
        let count = self.pieces(id);
        let of = |conversation: &Conversation| -> Vec<TranscriptEntry> {
            conversation.entries.iter().filter(|entry| entry.record == Some(id)).cloned().collect()
        };
        // Conversations that share their messages have the whole record.
        let shared = self.conversations.iter().find_map(|one| match &one.as_read {
            AsRead::Shared(stage) => Some(stage.record(id)).filter(|entries| entries.len() == count),
            AsRead::Own(_) => None,
        });
        let own = || self.conversations.iter().map(of).find(|entries| entries.len() == count);
        let Some(whole) = shared.or_else(own) else {
            let what = "a change in one of several messages of a record whose others are in no conversation any more";
            return Err(WireError::unsupported(what));
        };
        let now = |entry: TranscriptEntry| match pieces.contains(&entry.piece) {
            true => group.iter().find(|own| own.piece == entry.piece).cloned(),
            false => Some(entry),
        };
        Ok(whole.into_iter().filter_map(now).collect())
    }
}

impl Conversation {
    /// The first record of the conversation that is an element of a list.
    fn first_element(&self, transcript: &Transcript) -> Option<SourceRecordId> {
        let place = |id: &SourceRecordId| transcript.records.get(id.0 as usize).map(|record| &record.place);
        let is_element = |id: &SourceRecordId| matches!(place(id), Some(Place::Element { .. }));
        self.entries.iter().filter_map(TranscriptEntry::record).find(is_element)
    }

    fn first_list(&self, transcript: &Transcript) -> Option<u32> {
        let list = |id: SourceRecordId| match transcript.records.get(id.0 as usize)?.place {
            Place::Element { list, .. } => Some(list),
            _ => None,
        };
        // If none of the messages is left, the list that held them.
        let had = || self.as_read().find_map(|(id, _)| list(id));
        match (self.first_element(transcript).and_then(list).or_else(had), transcript.lists.len()) {
            (Some(list), _) => Some(list),
            (_, 1) => Some(0),
            _ => None,
        }
    }
}

/// Splits the entries into groups that are written together: pieces of one record, in order, or one new message.
pub(super) fn groups(entries: &[TranscriptEntry]) -> impl Iterator<Item = &[TranscriptEntry]> {
    entries.chunk_by(|one, next| one.record.is_some() && one.record == next.record && one.piece < next.piece)
}

/// The text of a changed group; `None` if it is left out.
fn written_text(
    transcript: &Transcript,
    conversation: &Conversation,
    id: Option<SourceRecordId>,
    group: &[TranscriptEntry],
) -> Result<Option<String>, WireError> {
    let spec = spec::of(conversation.format)?;
    let messages: Vec<_> = group.iter().map(TranscriptEntry::message).collect();
    let record = id.and_then(|id| transcript.records.get(id.0 as usize));
    let text = id.map(|id| transcript.record(id));
    match record.map(|record| &record.place) {
        Some(Place::Field { .. }) => spec.write_field(text, &messages),
        _ => spec.write(text, &messages),
    }
}

/// The text of a group. `None` if its record is unchanged, and `Some(None)` if it is left out.
fn new_text(
    transcript: &Transcript,
    conversation: &Conversation,
    record: Option<(SourceRecordId, &Partial)>,
    group: &[TranscriptEntry],
) -> Result<Option<Option<String>>, WireError> {
    let id = record.map(|(id, _)| id);
    let pieces = record.and_then(|(id, partial)| partial.get(&id)).map(Vec::as_slice);
    if id.is_some_and(|id| transcript.is_intact(id, group, pieces.map(<[_]>::len))) {
        return Ok(None);
    }
    if let (Some(id), Some(pieces)) = (id, pieces) {
        let all = transcript.completed(id, group, pieces)?;
        return written_text(transcript, conversation, Some(id), &all).map(Some);
    }
    written_text(transcript, conversation, id, group).map(Some)
}

/// Adds the place of the record to an error of its writer.
fn placed(
    error: WireError,
    transcript: &Transcript,
    conversation: &Conversation,
    record: Option<&super::Record>,
) -> WireError {
    let Some(record) = record else { return error };
    let path = match &record.place {
        Place::Element { at, .. } if !conversation.path.is_empty() => format!("{}/{at}", conversation.path),
        _ => conversation.path.clone(),
    };
    error.inside(path, record.text.start).positioned(&transcript.source, 1)
}

fn list_is_free(transcript: &Transcript, record: Option<&super::Record>) -> bool {
    match record.map(|record| &record.place) {
        Some(Place::Element { list, .. }) => {
            transcript.lists.get(*list as usize).is_some_and(|list| list.free)
        }
        _ => false,
    }
}

pub(super) fn no_list() -> WireError {
    WireError::unsupported("a new message in a conversation without a list to put it in")
}

fn emit(text: &str, out: &mut (impl Write + ?Sized)) -> Result<(), WireError> {
    out.write_all(text.as_bytes())
        .map_err(|error| WireError::new(WireErrorKind::Io, "writing failed").because(error))
}
