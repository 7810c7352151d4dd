//! Logs that only grow: the new state of a conversation is a line at the end.

use std::borrow::Cow;

use super::write::groups;
use super::{Conversation, Transcript, TranscriptEntry};
use crate::WireError;
use crate::rewrite::form;
use crate::spec::WriteRecord;

/// The functions that write the new state of a conversation in a format's log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Log {
    /// Writes the text of a record with these messages, like [`FormatSpec::write`](crate::spec::FormatSpec::write).
    pub(crate) record: WriteRecord,
    /// Writes the line that replaces all earlier records by these.
    pub(crate) line: fn(&[Cow<'_, str>]) -> Result<String, WireError>,
}

impl Log {
    /// The line to append to the source, with its line break; `None` if the conversation is unchanged.
    pub(super) fn addition(
        self,
        transcript: &Transcript,
        conversation: &Conversation,
    ) -> Result<Option<String>, WireError> {
        if conversation.entries.is_shared() {
            return Ok(None);
        }
        let mut is_changed = !conversation.is_in_order();
        let mut records = Vec::new();
        let partial = conversation.partial(&transcript.records);
        for group in groups(&conversation.entries) {
            let id = group.first().and_then(TranscriptEntry::record);
            let source = id.map(|id| transcript.record(id));
            let had = id.and_then(|id| partial.get(&id)).map(Vec::len);
            if id.is_some_and(|id| had.unwrap_or_else(|| transcript.pieces(id)) != group.len()) {
                return Err(form("part of a record that is several messages"));
            }
            match source.filter(|_| id.is_some_and(|id| transcript.is_intact(id, group, had))) {
                Some(source) => records.push(Cow::Borrowed(source)),
                None => {
                    let messages: Vec<_> = group.iter().map(TranscriptEntry::message).collect();
                    let text = (self.record)(source, &messages)?;
                    is_changed |= text.as_deref() != source;
                    records.extend(text.map(Cow::Owned));
                }
            }
        }
        if !is_changed {
            return Ok(None);
        }
        if !conversation.active {
            return Err(form("a change to a conversation that does not go on"));
        }
        let line = (self.line)(&records)?;
        Ok(Some(match transcript.source.ends_with('\n') {
            true => format!("{line}\n"),
            false => format!("\n{line}"),
        }))
    }
}
