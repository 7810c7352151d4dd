//! The table of formats: one row, and one folder, for each.

use core::cell::RefCell;
use std::borrow::Cow;
use std::sync::Arc;

use epitome_message::{Message, Str};

use super::document::Document;
use super::expect::{optional_text, share};
use super::json::{self, Kind};
use super::outline::Outliner;
use super::transcript::{Chain, KnownArray, Log, Transcript};
use super::{Format, WireError};

/// What is known of one format. A new format is a folder with these functions, and its row in [`SPECS`].
pub(crate) struct FormatSpec {
    pub(crate) format: Format,
    /// The keys of an object around the messages that `read` looks at.
    pub(crate) keys: &'static [&'static str],
    /// Whether a text is of the format, and by which sign.
    pub(crate) sign: fn(&Body<'_>) -> Fit,
    /// Adds the conversations of a text. Errors carry paths and offsets in the body's text.
    pub(crate) read: fn(&mut Transcript, &Body<'_>) -> Result<(), WireError>,
    /// The text of a record that holds these messages: the record of this text patched, or without one a new record.
    /// `None` if there is nothing to write: then the record is left out.
    pub(crate) write: WriteRecord,
    /// The text of a record that is new, where `write` does not give it: of this message, and with the fields that the record beside
    /// it has.
    pub(crate) fresh: Option<FreshRecord>,
    /// How its records name each other, if they do.
    pub(crate) chain: Option<Chain>,
    /// How it says what has become of a conversation, where it is a log that is only added to.
    pub(crate) log: Option<Log>,
    /// How its lines are outlined, where a file may be too long to hold.
    pub(crate) outliner: Option<fn() -> Box<dyn Outliner>>,
}

/// See [`FormatSpec::write`].
pub(crate) type WriteRecord = fn(Option<&str>, &[&Message]) -> Result<Option<String>, WireError>;

/// See [`FormatSpec::fresh`].
pub(crate) type FreshRecord = fn(&Message, Option<&str>) -> Result<String, WireError>;

/// How well a text fits a format. The words complete "it is FORMAT because ..".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    No,
    /// The text can be read so, but nothing in it says that it is not another format.
    Possible(&'static str),
    /// The text has what only this format has, though programs that add fields of their own may write it into another. It decides
    /// where nothing is certain.
    Likely(&'static str),
    /// The text has a sign that no other format has.
    Certain(&'static str),
}

/// A text that is to be read: one JSON value, or lines of them.
#[derive(Debug, Clone)]
pub(crate) struct Body<'a> {
    /// The text that everything is a slice of.
    pub(crate) source: &'a Arc<str>,
    pub(crate) content: Content<'a>,
    /// The name of the leaf whose branch is asked for.
    pub(crate) leaf: Option<&'a str>,
    /// The members of its object, if it is one: each key, also as it is written, and its value.
    pub(crate) members: Vec<(Cow<'a, str>, &'a str, &'a str)>,
    /// The elements of the arrays in its object, or of the array that it is, where they were seen already.
    arrays: Vec<KnownArray>,
}

#[derive(Debug, Clone)]
pub(crate) enum Content<'a> {
    Value(Document<'a>),
    Lines(&'a str),
}

impl<'a> Body<'a> {
    pub(crate) fn new(source: &'a Arc<str>, content: Content<'a>, leaf: Option<&'a str>) -> Self {
        let mut members = Vec::new();
        if let Content::Value(document) = &content
            && Kind::of(document.text()) == Kind::Object
        {
            // What is no object after all has no members; its reader says what is wrong with it.
            let _ = json::raw_members(document.text(), |key, value| {
                members.push((json::decode(key), key, value));
                Ok(())
            });
        }
        Self { source, content, leaf, members, arrays: Vec::new() }
    }

    /// The one JSON value that `text` is, looked at once: a text may be large.
    ///
    /// # Errors
    /// As [`Document::parse`].
    pub(crate) fn parse(
        source: &'a Arc<str>,
        text: &'a str,
        leaf: Option<&'a str>,
    ) -> Result<Self, WireError> {
        let place = |error: WireError| error.positioned(text, 1);
        let (mut members, mut arrays) = (Vec::new(), Vec::new());
        let elements = RefCell::new(Vec::new());
        let note = |item| elements.borrow_mut().push(json::range_of(source, item));
        let mut end = |array| {
            arrays.push(KnownArray { outer: json::range_of(source, array), elements: elements.take() });
        };
        match Kind::of(text) {
            Kind::Object => json::members_and_items(text, note, |key, value| {
                if Kind::of(value) == Kind::Array {
                    end(value);
                }
                members.push((json::decode(key), key, value));
                Ok(())
            })
            .map_err(place)?,
            Kind::Array => {
                json::items(text, |item| {
                    note(item);
                    Ok(())
                })
                .map_err(place)?;
                end(json::trim(text));
            }
            _ => return Ok(Self::new(source, Content::Value(Document::parse(text)?), leaf)),
        }
        let content = Content::Value(Document::known(text));
        Ok(Self { source, content, leaf, members, arrays })
    }

    /// Whether it is an object with `role`.
    pub(crate) fn is_message(&self) -> bool {
        self.members.iter().any(|(name, ..)| name == "role")
    }

    /// What `spec` reads of it.
    pub(crate) fn read(&mut self, spec: &FormatSpec, transcript: &mut Transcript) -> Result<(), WireError> {
        transcript.arrays = core::mem::take(&mut self.arrays);
        for key in spec.keys {
            if let Some((.., again)) = self.members.iter().filter(|(name, ..)| name == key).nth(1) {
                return Err(json::duplicate(key).with_offset(json::offset_of(self.text(), again)));
            }
        }
        let done = (spec.read)(transcript, self);
        transcript.arrays = Vec::new();
        done
    }

    /// All of it.
    pub(crate) fn text(&self) -> &'a str {
        match &self.content {
            Content::Value(document) => document.text(),
            Content::Lines(text) => text,
        }
    }

    /// The one value that it is; `None` if it is lines.
    pub(crate) fn value(&self) -> Option<&'a str> {
        match &self.content {
            Content::Value(document) => Some(document.text()),
            Content::Lines(_) => None,
        }
    }

    /// Its place in the source, as a JSON pointer.
    pub(crate) fn path(&self) -> &str {
        match &self.content {
            Content::Value(document) => document.path().as_str(),
            Content::Lines(_) => "",
        }
    }

    /// The value of `key`, if it is one object that has it once.
    pub(crate) fn field(&self, key: &'static str) -> Option<&'a str> {
        let mut values = self.members.iter().filter(|(name, ..)| name == key).map(|(.., value)| *value);
        let once = values.next().filter(|_| values.next().is_none());
        once.filter(|value| *value != "null")
    }

    /// The text under `key`, one of the format's [`keys`](FormatSpec::keys), as [`field`](Self::field); empty, if there is none.
    ///
    /// # Errors
    /// `Shape` for what is no text.
    pub(crate) fn text_of(&self, key: &'static str) -> Result<Str, WireError> {
        let text = optional_text(self.text(), self.field(key), key)?;
        Ok(text.map(|text| share(self.source, &text)).unwrap_or_default())
    }

    /// The first elements of its list, enough to know them by: of the array under `key` in its object, of the array that
    /// it is, or of its lines. `None` if it has no such list.
    pub(crate) fn sample(&self, key: &'static str) -> Option<Vec<&'a str>> {
        let list = match (&self.content, self.field(key)) {
            (Content::Lines(text), _) => {
                return Some(super::document::lines(text).take(SAMPLE_MAX).map(|line| line.text()).collect());
            }
            (Content::Value(_), Some(list)) => list,
            (Content::Value(document), None) => document.text(),
        };
        first_of(list)
    }

    /// `error`, about the body's text, with its place in the source.
    pub(crate) fn place(&self, error: WireError) -> WireError {
        match &self.content {
            Content::Value(document) => document.place(error),
            Content::Lines(text) => error.positioned(text, 1),
        }
    }
}

/// The first elements of an array, enough to know them by; `None` if it is none.
pub(crate) fn first_of(list: &str) -> Option<Vec<&str>> {
    if Kind::of(list) != Kind::Array {
        return None;
    }
    let mut sample = Vec::new();
    // The error only ends the scan.
    let _ = json::items(list, |item| match sample.len() < SAMPLE_MAX {
        true => {
            sample.push(item);
            Ok(())
        }
        false => Err(WireError::shape("enough")),
    });
    Some(sample)
}

/// The row of a format.
pub(crate) fn of(format: Format) -> Result<&'static FormatSpec, WireError> {
    SPECS
        .iter()
        .find(|spec| spec.format == format)
        .ok_or_else(|| WireError::unsupported(format!("this build has no reader and no writer for {format}")))
}

/// One row for each format, the format that wins a tie of equal readings first.
pub(crate) static SPECS: &[FormatSpec] = &[
    super::openai_chat::SPEC,
    super::openai_responses::SPEC,
    super::anthropic::SPEC,
    super::gemini::SPEC,
    super::agent_framework::SPEC,
    super::langchain::SPEC,
    super::semantic_kernel::SPEC,
    super::codex::SPEC,
    super::claude_code::SPEC,
    super::gemini_cli::SPEC,
    super::openhands::SPEC,
    super::pi::SPEC,
    super::swe_agent::SPEC,
    super::goose::SPEC,
    super::ai_sdk::SPEC,
    super::bedrock_converse::SPEC,
    super::otel_genai::SPEC,
    super::cline::SPEC,
    super::cursor::SPEC,
    super::opencode::SPEC,
    super::pydantic_ai::SPEC,
    super::adk::SPEC,
    super::continue_dev::SPEC,
    super::copilot_cli::SPEC,
    super::copilot_chat::SPEC,
];

/// How many elements of a list are looked at for signs of a format.
const SAMPLE_MAX: usize = 256;

impl core::fmt::Debug for FormatSpec {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("FormatSpec").field("format", &self.format).finish_non_exhaustive()
    }
}
