//! New messages in a file whose records name each other: their places, and the links of the records around them.

use std::collections::{HashMap, HashSet};

use epitome_message::Message;

use super::contents::Contents;
use super::relink::{Chain, Links};
use super::write::no_list;
use super::{Conversation, Place, SourceRecordId, Transcript, TranscriptEntry};
use crate::WireError;
use crate::rewrite::form;

/// The records and messages that conversations have inserted between the records of a file.
#[derive(Debug, Default)]
pub(super) struct Inserted {
    /// The ids of new records.
    names: HashSet<String>,
    /// The place of each written record: the id of the record before it, and the new messages between them.
    behind: HashMap<SourceRecordId, (Option<String>, Vec<Message>)>,
}

/// The new messages of a conversation that wait for the record behind them.
#[derive(Debug)]
pub(super) struct Waiting<'t> {
    transcript: &'t Transcript,
    conversation: &'t Conversation,
    /// `None` if records do not name each other: then this type does nothing.
    chain: Option<Chain>,
    links: Option<Links<'t>>,
    messages: Vec<Message>,
    /// The response id of the record before them.
    response: Option<String>,
}

/// The text of a record: `None` if it is unchanged, and `Some(None)` if it is left out.
type NewText = Option<Option<String>>;

impl<'t> Waiting<'t> {
    pub(super) fn of(
        transcript: &'t Transcript,
        conversation: &'t Conversation,
        chain: Option<Chain>,
    ) -> Result<Self, WireError> {
        let links = chain.and_then(|chain| Links::of(transcript, conversation, chain));
        if links.is_some() {
            let mut read = conversation.as_read();
            let mut now = conversation.entries.iter().filter_map(TranscriptEntry::place);
            if !now.all(|own| read.any(|place| place == own)) {
                return Err(form("messages in another order"));
            }
        }
        Ok(Self { transcript, conversation, chain, links, messages: Vec::new(), response: None })
    }

    /// Takes a new message, if the records of its format name each other. Returns whether it did.
    pub(super) fn takes(&mut self, entry: &TranscriptEntry) -> Result<bool, WireError> {
        let Some(new) = self.chain.and_then(|chain| chain.new) else { return Ok(false) };
        if !new.unnamed && self.links.as_ref().is_some_and(Links::is_unnamed) {
            return Ok(false);
        }
        self.messages.push(entry.message().clone());
        Ok(true)
    }

    /// Fails if new messages are between the messages of one record.
    pub(super) fn splits_no_record(&self) -> Result<(), WireError> {
        if self.messages.is_empty() { Ok(()) } else { Err(form("a new message within a record")) }
    }

    /// Continues with a record that this conversation is the first to write. Fails if new messages are within a
    /// response.
    pub(super) fn meets(
        &mut self,
        inserted: &mut Inserted,
        id: SourceRecordId,
        group: &[TranscriptEntry],
    ) -> Result<(), WireError> {
        let Some(chain) = self.chain else { return Ok(()) };
        let response = group.first().and_then(|entry| entry.message().response_id());
        let is_same = response.is_some() && response == self.response.as_deref();
        self.response = response.map(str::to_owned);
        if is_same && !self.messages.is_empty() {
            return Err(form("a new message within a response"));
        }
        let behind = self.behind(chain, id);
        inserted.behind.entry(id).or_insert_with(|| (behind, self.messages.clone()));
        Ok(())
    }

    /// Continues with a record that another conversation has written. Fails if the other conversation put it behind a
    /// different record or different new messages.
    pub(super) fn agrees(&mut self, inserted: &Inserted, id: SourceRecordId) -> Result<(), WireError> {
        let Some(chain) = self.chain else { return Ok(()) };
        let here = self.behind(chain, id);
        let there = inserted.behind.get(&id);
        if there.is_some_and(|(behind, messages)| *behind != here || *messages != self.messages) {
            return Err(form("a record that two branches share and want after different messages"));
        }
        self.messages.clear();
        Ok(())
    }

    /// The id of the record that is now before this record, without new messages.
    fn behind(&self, chain: Chain, id: SourceRecordId) -> Option<String> {
        let record = self.transcript.record(id);
        match &self.links {
            Some(links) => links.parent_now(record).flatten(),
            None => chain.names(record).and_then(|(_, parent)| parent),
        }
    }

    /// The text of a record, changed or not, with a link to the record that is now before it.
    pub(super) fn relinked(&self, id: Option<SourceRecordId>, text: NewText) -> Result<NewText, WireError> {
        let (Some(links), Some(id)) = (&self.links, id) else { return Ok(text) };
        let new = match &text {
            None => links.relink(self.transcript.record(id))?,
            Some(Some(text)) => links.relink(text)?,
            Some(None) => None,
        };
        Ok(new.map(Some).or(text))
    }

    /// Puts the messages before a record, the element `at`, and returns the record's text, which then names the last of
    /// the new records.
    pub(super) fn put(
        &mut self,
        contents: &mut Contents,
        inserted: &mut Inserted,
        (id, at): (Option<SourceRecordId>, u32),
        text: NewText,
    ) -> Result<NewText, WireError> {
        let (Some(links), Some(id)) = (&self.links, id) else { return Ok(text) };
        if self.messages.is_empty() || text == Some(None) {
            return Ok(text);
        }
        if !links.is_cut(at) {
            return Err(form("a new message at this place"));
        }
        let record = self.transcript.record(id);
        let now = text.as_ref().and_then(Option::as_deref).unwrap_or(record);
        let (new, name) =
            links.new_records(&self.messages, links.parent_now(now), now, &mut inserted.names)?;
        self.messages.clear();
        new.into_iter().for_each(|text| contents.push_before(at as usize, text));
        let linked = name.map(|name| links.linked(now, name.as_deref())).transpose()?;
        Ok(linked.map(Some).or(text))
    }

    /// Puts the remaining messages behind the last record of the conversation in the file, or in the place of its first
    /// record.
    pub(super) fn put_at_end(
        self,
        lists: &mut HashMap<u32, Contents>,
        inserted: &mut Inserted,
    ) -> Result<(), WireError> {
        let Some(links) = self.links.filter(|_| !self.messages.is_empty()) else { return Ok(()) };
        let (transcript, conversation) = (self.transcript, self.conversation);
        let last = conversation.entries.iter().filter_map(TranscriptEntry::record).max();
        let (mut first, mut like) = (None, None);
        for (id, _) in conversation.as_read() {
            first = first.or(Some(id));
            like = like.max(Some(id));
        }
        let (id, like) = last.or(first).zip(like).ok_or_else(no_list)?;
        let record = transcript.records.get(id.0 as usize).ok_or_else(no_list)?;
        let Place::Element { list, at } = record.place else { return Err(no_list()) };
        let text = transcript.record(id);
        let parent = match last {
            Some(_) => links.own_name(text, at)?,
            None if record.begins => {
                return Err(form("a new message in the place of what a compaction has left"));
            }
            None => links.parent_now(text),
        };
        // The active conversation is the one at the end of the file.
        let end = transcript.lists.get(list as usize).map(|list| list.elements.len().saturating_sub(1));
        let mut cursor = if conversation.active { end } else { Some(at as usize) };
        let contents = Contents::of(lists, transcript, list);
        let like = transcript.record(like);
        for text in links.new_records(&self.messages, parent, like, &mut inserted.names)?.0 {
            contents.push(&mut cursor, None, Some(Some(text)));
        }
        Ok(())
    }
}
