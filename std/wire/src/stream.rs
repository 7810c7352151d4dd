//! Reads session files line by line, with one record in memory at a time.
//!
//! ```
//! use epitome_wire::{Format, SessionLines};
//!
//! let file = concat!(
//!     r#"{"timestamp":"t","type":"session_meta","payload":{"id":"s","cwd":"/"}}"#, "\n",
//!     r#"{"timestamp":"t","type":"response_item","payload":{"type":"message","role":"user","content":"Hi"}}"#, "\n",
//! );
//! let mut lines = SessionLines::new(file.as_bytes(), Format::Codex)?;
//! let mut found = Vec::new();
//! while let Some(record) = lines.next_record()? {
//!     found.push((record.line, record.messages.len()));
//! }
//! assert_eq!(found, [(1, 0), (2, 1)]);
//! # Ok::<(), epitome_wire::WireError>(())
//! ```

use std::io::{BufRead, Seek};
use std::sync::Arc;

use epitome_core::Usage;
use epitome_message::{Message, Str};

use super::body::{Body, Content};
use super::document::Lines;
use super::spec::{self, FormatSpec};
use super::transcript::{ToolCompaction, Transcript};
use super::{Format, WireError, codex};

/// The records of JSONL, in the order of the file.
///
/// It reads a file of any length within the memory of its longest line, for sums, searches and tails. It does not
/// answer questions that need more than one line, as [`read`](super::read) does: the active branch, and, in files that
/// are a forest, the order of a conversation. A record names the record before it, so that a caller can follow a branch
/// in a second pass.
#[derive(Debug)]
pub struct SessionLines<R> {
    lines: Lines<R>,
    spec: &'static FormatSpec,
}

/// The contents of a line.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LineRecord {
    /// The number of the line, counted from 1.
    pub line: usize,
    /// The offset of the line in the file, in bytes.
    pub offset: usize,
    /// The messages of the line. It is empty if the line is only a report, or content of the tool that models do not
    /// see.
    pub messages: Vec<Message>,
    /// The id of the record, if the format has ids.
    pub id: Option<Str>,
    /// The id of the record before it.
    pub parent: Option<Str>,
    /// Whether the record belongs to a side chain, if the line has this information.
    pub is_aside: bool,
    /// The usage that a provider reported in the line. Every line of a response may repeat its report.
    pub usage: Option<Usage>,
    /// The compaction of the tool that this line records. A line alone does not identify the dropped messages.
    pub compaction: Option<ToolCompaction>,
}

impl<R: BufRead> SessionLines<R> {
    /// The formats of this crate whose files have one record per line.
    pub const FORMATS: [Format; 8] = [
        Format::OpenaiChat,
        Format::Anthropic,
        Format::AgentFramework,
        Format::LangChain,
        Format::Codex,
        Format::ClaudeCode,
        Format::GeminiCli,
        Format::Pi,
    ];

    /// Creates a reader for the records of `reader`. [`detect`](super::detect) finds the format from the first
    /// lines.
    ///
    /// # Errors
    /// `Unsupported` for a format that is not one of [`FORMATS`](Self::FORMATS), nor of another crate.
    pub fn new(reader: R, format: Format) -> Result<Self, WireError> {
        if !Self::FORMATS.contains(&format) && !matches!(format, Format::Custom(_)) {
            let names = Self::FORMATS.map(Format::as_str).join(", ");
            let what = format!("{format} is not read line by line: that is done for {names}");
            return Err(WireError::unsupported(what));
        }
        Ok(Self { lines: Lines::new(reader), spec: spec::of(format)? })
    }

    /// Sets the largest number of bytes of a line: see [`Lines::with_line_bytes_max`].
    #[must_use]
    pub fn with_line_bytes_max(mut self, line_bytes_max: usize) -> Self {
        self.lines = self.lines.with_line_bytes_max(line_bytes_max);
        self
    }

    /// The next record; `None` at the end.
    ///
    /// # Errors
    /// As [`Lines::next_line`], and errors of the format's reader, with the line. The next call continues after the
    /// line.
    pub fn next_record(&mut self) -> Result<Option<LineRecord>, WireError> {
        let spec = self.spec;
        self.next_with(|text, line, offset| {
            let mut record = read_line(spec, &Arc::from(text))?;
            (record.line, record.offset) = (line, offset);
            Ok(record)
        })
    }

    pub(crate) const fn spec(&self) -> &'static FormatSpec {
        self.spec
    }

    /// Calls `read` with the next line that is not blank, its number and its offset.
    fn next_with<T>(
        &mut self,
        read: impl FnOnce(&str, usize, usize) -> Result<T, WireError>,
    ) -> Result<Option<T>, WireError> {
        let Some(line) = self.lines.next_line()? else { return Ok(None) };
        let document = line.document()?;
        read(document.text(), line.number(), line.offset()).map(Some).map_err(|error| document.place(error))
    }

    /// Calls `read` with the next line that is not blank, and its offset; errors get their place in the file.
    pub(crate) fn next_text<T>(
        &mut self,
        read: impl FnOnce(&Arc<str>, u64) -> Result<T, WireError>,
    ) -> Result<Option<T>, WireError> {
        self.next_with(|text, _, offset| read(&Arc::from(text), u64::try_from(offset).unwrap_or(u64::MAX)))
    }
}

impl<R: BufRead + Seek> SessionLines<R> {
    /// The record of the line that begins at `offset`; `None` at the end of the file. The next call of
    /// [`next_record`](Self::next_record) continues behind it, and does not know the number of its line.
    ///
    /// # Errors
    /// As [`next_record`](Self::next_record); `Io` if the file has no such place.
    pub fn record_at(&mut self, offset: u64) -> Result<Option<LineRecord>, WireError> {
        self.lines.go_to(offset)?;
        self.next_record()
    }
}

/// Reads a line as a file of one line.
fn read_line(spec: &'static FormatSpec, text: &Arc<str>) -> Result<LineRecord, WireError> {
    let mut transcript = Transcript::empty(Arc::clone(text));
    spec.read(&mut Body::new(text, Content::Lines(text), None), &mut transcript)?;
    let names = spec.chain.and_then(|chain| chain.names(text));
    let (id, parent) =
        names.map_or((None, None), |(id, parent)| (Some(Str::from(id)), parent.map(Str::from)));
    let is_aside = spec.chain.is_some_and(|chain| chain.is_aside(text));
    let mut record = LineRecord {
        line: 0,
        offset: 0,
        messages: Vec::new(),
        id,
        parent,
        is_aside,
        usage: None,
        compaction: None,
    };
    if let Some(conversation) = transcript.conversations.into_iter().find(|conversation| conversation.active)
    {
        record.usage = conversation.usage.last().map(|entry| entry.usage);
        record.compaction = conversation.compactions.last().cloned().map(|mut compaction| {
            compaction.dropped = None;
            compaction
        });
        if record.id.is_none() && spec.log.is_some() {
            // The id of a record is the id of its message.
            let first = conversation.entries.first().and_then(|entry| entry.message().id());
            record.id = first.map(Str::from);
        }
        record.messages =
            Vec::from(conversation.entries).into_iter().map(super::TranscriptEntry::into_message).collect();
    }
    if spec.format() == Format::Codex {
        record.usage = codex::reported(text)?;
    }
    Ok(record)
}

#[cfg(test)]
mod tests {
    use epitome_message::Part;

    use super::*;
    use crate::{ReadOptions, read};

    fn records(text: &str, format: Format) -> Vec<LineRecord> {
        let mut lines = SessionLines::new(text.as_bytes(), format).unwrap();
        let mut found = Vec::new();
        while let Some(record) = lines.next_record().unwrap() {
            found.push(record);
        }
        found
    }

    fn parts<'m>(messages: impl IntoIterator<Item = &'m Message>) -> Vec<Vec<Part>> {
        messages.into_iter().map(|message| message.parts().to_vec()).collect()
    }

    #[test]
    fn linear_files_give_the_same_messages_as_when_they_are_read_whole() {
        let files = [
            (Format::Codex, include_str!("../../../fuzz/seeds/wire_codex/older.jsonl")),
            (Format::Pi, include_str!("../../../fuzz/seeds/wire_pi/early.jsonl")),
            (Format::OpenaiChat, include_str!("../../../fuzz/seeds/wire_openai_chat/support-chat.jsonl")),
            (Format::AgentFramework, include_str!("../../../fuzz/seeds/wire_agent_framework/list.jsonl")),
        ];
        for (format, text) in files {
            let records = records(text, format);
            let whole = read(text, &ReadOptions::default().with_from(format)).unwrap();
            let lines = parts(records.iter().flat_map(|record| &record.messages));
            assert_eq!(lines, parts(whole.active().unwrap().messages()), "{format}");
            assert!(!lines.is_empty(), "{format}");
        }
    }

    #[test]
    fn lines_of_a_forest_name_what_is_before_them() {
        let text = include_str!("../../../fuzz/seeds/wire_claude_code/branches.jsonl");
        let records = records(text, Format::ClaudeCode);
        let named =
            |at: usize| (records[at].id.as_deref(), records[at].parent.as_deref(), records[at].is_aside);
        assert_eq!(named(0), (None, None, false), "a title");
        assert_eq!(named(2), (Some("a1"), Some("u1"), false));
        assert_eq!(named(4), (Some("s1"), None, true));
        assert_eq!(records[2].usage.and_then(|usage| usage.input_total), Some(10));
        assert_eq!(
            (records[5].messages.len(), records[5].line),
            (2, 6),
            "a result, and what was said with it"
        );
        assert_eq!(text.get(records[5].offset..).map(|rest| rest.starts_with('{')), Some(true));
    }

    #[test]
    fn reports_and_compactions_are_records() {
        let text = include_str!("../../../fuzz/seeds/wire_codex/turn.jsonl");
        let records = records(text, Format::Codex);
        let reports: Vec<_> = records.iter().filter_map(|record| record.usage?.input_total).collect();
        assert_eq!(reports, [100]);
        let compactions: Vec<_> =
            records.iter().filter(|record| record.compaction.is_some()).map(|record| record.line).collect();
        assert_eq!(compactions, [9, 10]);
    }

    #[test]
    fn an_error_names_its_line_and_the_next_call_goes_on() {
        let text =
            "{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\n\n{\"role\":\"user\",\"content\":\"b\"}\n";
        let mut lines = SessionLines::new(text.as_bytes(), Format::OpenaiChat).unwrap();
        assert!(lines.next_record().unwrap().is_some());
        assert_eq!(lines.next_record().unwrap_err().line(), Some(2));
        assert_eq!(lines.next_record().unwrap().unwrap().line, 4);
        assert!(lines.next_record().unwrap().is_none());
        assert!(SessionLines::new(text.as_bytes(), Format::Gemini).is_err());
    }
}
