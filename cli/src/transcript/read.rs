//! Conversations of other formats than Chat Completions: read whole.

use core::cell::OnceCell;
use std::collections::BTreeMap;
use std::io::{self, Write};

use epitome::history::PartStandIn;
use epitome::message::Message;
use epitome::wire::document::{self, Document, Piece, Pointer};
use epitome::wire::{
    Conversation, Format, ReadOptions, Transcript, TranscriptEntry, WireError, WireErrorKind, detect,
    openai_chat, read, write_back,
};

use crate::args::InputArgs;

/// One conversation of a transcript, and the changes of its messages.
#[derive(Debug)]
pub(crate) struct ReadConversation<'a> {
    transcript: &'a Transcript,
    at: usize,
    /// Its messages, collected at the first access.
    entries: OnceCell<Vec<&'a TranscriptEntry>>,
    /// The messages to write; `None` if the conversation stays unchanged.
    kept: Option<Vec<TranscriptEntry>>,
    /// By index: the stand-ins of a message's parts when it is written.
    shortened: BTreeMap<u32, Vec<PartStandIn>>,
    /// By index: the message that replaces another when it is written.
    replaced: BTreeMap<usize, Message>,
}

/// The transcript in `text`, if it is of another format than Chat Completions. A text of no known format is left to the
/// reader of Chat Completions, whose errors name the place of a conversation.
pub(super) fn other_format(text: &str, args: &InputArgs) -> Result<Option<Transcript>, WireError> {
    let mut options = ReadOptions::default();
    options.each = args.part.each;
    options.leaf.clone_from(&args.part.leaf);
    options.at = args.part.at.as_deref().map(Pointer::parse).transpose()?;
    match args.part.from.0 {
        Some(Format::OpenaiChat) => {}
        Some(format) => return read(text, &options.with_from(format)).map(Some),
        None if looks_other(text, &options)? => match read(text, &options) {
            Ok(found) if found.conversations().iter().any(is_other) => return Ok(Some(found)),
            // Another reader would find less in a text of this format.
            Err(error) => return as_whole(text, options, error).map(Some),
            Ok(_) => {}
        },
        None => {}
    }
    // A response has its messages in a place that the reader of requests ignores.
    if !text.contains("\"choices\"") || document::looks_like_jsonl(text) {
        return Ok(None);
    }
    let found = read(text, &options.with_from(Format::OpenaiChat)).ok();
    Ok(found.filter(is_response))
}

/// The conversations of an export. A conversation without messages does not show its format; the others do.
fn as_whole(text: &str, options: ReadOptions, error: WireError) -> Result<Transcript, WireError> {
    match detect(text) {
        Ok(found) if options.each && found.format != Format::OpenaiChat => {
            read(text, &options.with_from(found.format)).map_err(|_| error)
        }
        _ => Err(error),
    }
}

/// Whether a part of the text is, or may be, of another format. A text of Chat Completions is not held twice.
///
/// # Errors
///
/// No format fits the messages. The reader of Chat Completions would take them, because it needs only roles.
fn looks_other(text: &str, options: &ReadOptions) -> Result<bool, WireError> {
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let other = |text: &str| match detect(text) {
        Ok(found) => Ok(found.format != Format::OpenaiChat),
        Err(error) if error.kind() == WireErrorKind::Ambiguous => Ok(true),
        Err(error) if is_unfit(text, &error) => Err(error),
        Err(_) => Ok(false),
    };
    let other_at = |document: &Document<'_>| other(document.text()).map_err(|error| document.place(error));
    // The other reader reports an error with its place.
    let at = |document: &Document<'_>| match &options.at {
        Some(at) => document.at(at).map_or(Ok(false), |there| other_at(&there)),
        None => other_at(document),
    };
    // The reader of Markdown reports that a text has no places and no elements.
    let is_markdown = || detect(text).is_ok_and(|found| found.format == Format::Aider);
    match (options.each, &options.at) {
        (true, _) => {
            let Ok(each) = document::each(text) else { return Ok(is_markdown()) };
            for one in each.filter_map(Result::ok) {
                if at(&one)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        (false, Some(pointer)) => {
            document::at(text, pointer).map_or_else(|_| Ok(is_markdown()), |there| other_at(&there))
        }
        (false, None) => other(text),
    }
}

/// Whether the error of a detection is about messages, and not about their place.
fn is_unfit(text: &str, error: &WireError) -> bool {
    let has_messages = |found: document::DocumentConversation<'_>| !found.is_empty();
    error.kind() == WireErrorKind::Shape && document::conversation(text).is_ok_and(has_messages)
}

fn is_other(conversation: &Conversation) -> bool {
    conversation.format != Format::OpenaiChat
}

fn is_response(transcript: &Transcript) -> bool {
    transcript.conversations().iter().any(|conversation| conversation.path.contains("/choices/"))
}

impl<'a> ReadConversation<'a> {
    pub(super) fn active(transcript: &'a Transcript) -> Option<Self> {
        let at = transcript.conversations().iter().position(|conversation| conversation.active)?;
        Some(Self::new(transcript, at))
    }

    const fn new(transcript: &'a Transcript, at: usize) -> Self {
        let entries = OnceCell::new();
        Self { transcript, at, entries, kept: None, shortened: BTreeMap::new(), replaced: BTreeMap::new() }
    }

    pub(super) fn all(transcript: &'a Transcript) -> Vec<super::Transcript<'a>> {
        let each = 0..transcript.conversations().len();
        each.map(|at| super::Transcript::Read(Self::new(transcript, at))).collect()
    }

    pub(super) fn pointer(&self) -> &'a str {
        self.conversation().map_or("", |conversation| conversation.path.as_str())
    }

    pub(super) fn len(&self) -> usize {
        self.conversation().map_or(0, |conversation| conversation.entries.len())
    }

    pub(super) fn messages(&self) -> impl Iterator<Item = &'a Message> {
        self.conversation().into_iter().flat_map(Conversation::messages)
    }

    /// The message with this index.
    pub(super) fn message(&self, at: usize) -> Option<&'a Message> {
        self.entry(at).map(TranscriptEntry::message)
    }

    fn entry(&self, at: usize) -> Option<&'a TranscriptEntry> {
        let entries = || self.conversation().map(|found| found.entries.iter().collect()).unwrap_or_default();
        self.entries.get_or_init(entries).get(at).copied()
    }

    pub(super) fn format(&self) -> Format {
        self.conversation().map_or(Format::OpenaiChat, |conversation| conversation.format)
    }

    /// Sets the stand-ins that are written in the place of parts of messages, and removes all other replacements.
    pub(super) fn shorten(&mut self, edits: &BTreeMap<u32, Vec<PartStandIn>>) {
        self.shortened.clone_from(edits);
        self.replaced.clear();
    }

    /// Checks that the text can be written with these pieces as its messages.
    pub(super) fn rehearse(&mut self, pieces: &[Piece<'_>]) -> io::Result<()> {
        self.keep(pieces)?;
        let written = Self::write_kept(self.transcript, [&*self], &mut io::sink());
        self.kept = None;
        written
    }

    /// Sets these pieces as the messages to write.
    pub(super) fn keep(&mut self, pieces: &[Piece<'_>]) -> io::Result<()> {
        let kept = pieces.iter().map(|piece| match piece {
            Piece::Original(at) => {
                let entry = self.entry(*at).ok_or_else(|| io::Error::other("no such message"))?;
                Ok(self.shortened_entry(*at, entry.clone()))
            }
            Piece::New(text) => openai_chat::read(text).map(TranscriptEntry::new).map_err(io::Error::other),
            other => Err(io::Error::other(format!("{other:?} cannot be written"))),
        });
        self.kept = Some(kept.collect::<io::Result<_>>()?);
        Ok(())
    }

    fn shortened_entry(&self, at: usize, entry: TranscriptEntry) -> TranscriptEntry {
        match self.edited(at) {
            Some(message) => entry.with_message(message),
            None => entry,
        }
    }

    /// Replaces the message at this index when everything is written.
    pub(super) fn replace(&mut self, at: usize, message: Message) {
        self.replaced.insert(at, message);
    }

    /// The message that replaces the one at this index; `None` if that stays unchanged.
    pub(super) fn edited(&self, at: usize) -> Option<Message> {
        let stand_ins = || {
            let stand_ins = self.shortened.get(&u32::try_from(at).ok()?)?;
            Some(PartStandIn::apply(stand_ins, self.message(at)?))
        };
        self.replaced.get(&at).cloned().or_else(stand_ins)
    }

    /// Writes the text with the changes of its conversations.
    pub(super) fn write_all(
        transcript: &Transcript,
        found: &[super::Transcript<'_>],
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let read = found.iter().filter_map(|one| match one {
            super::Transcript::Read(conversation) => Some(conversation),
            _ => None,
        });
        Self::write_kept(transcript, read, out)
    }

    fn write_kept<'c, 't: 'c>(
        transcript: &Transcript,
        found: impl IntoIterator<Item = &'c ReadConversation<'t>>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let mut changed = transcript.clone();
        for ReadConversation { at, kept, .. } in found {
            let conversation = changed.conversations_mut().get_mut(*at);
            if let (Some(conversation), Some(kept)) = (conversation, kept) {
                conversation.entries = kept.clone().into();
            }
        }
        write_back(&changed, out).map_err(io::Error::other)
    }

    /// The other conversations of the text: branches, side chains, other runs.
    pub(crate) fn others(&self) -> impl Iterator<Item = &'a Conversation> {
        let own = self.at;
        self.transcript
            .conversations()
            .iter()
            .enumerate()
            .filter(move |(at, _)| *at != own)
            .map(|(_, one)| one)
    }

    pub(crate) fn conversation(&self) -> Option<&'a Conversation> {
        self.transcript.conversations().get(self.at)
    }
}
