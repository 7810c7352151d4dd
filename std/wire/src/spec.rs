//! What is known of a format: how a text of it is recognised, read and written.

use core::cell::RefCell;
use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};
use std::borrow::Cow;
use std::sync::Arc;

use epitome_core::Profile;
use epitome_message::{Message, Str};
use serde::Deserialize;

use super::document::Document;
use super::expect::{optional_text, share};
pub(crate) use super::format::SPECS;
use super::json::{self, Kind};
use super::outline::Outliner;
use super::rewrite::form;
use super::slots::{self, ReadRecord};
use super::transcript::{Chain, Conversation, KnownArray, Log, Transcript};
use super::{Format, WireError};

/// How one format is recognised, read and written.
///
/// Another crate defines a format with [`FormatSpec::new`] in a `static`, and reads texts of the format with
/// [`ReadOptions::with_format`](crate::ReadOptions::with_format): see [`custom`](crate::custom). Two specs are equal if they have the
/// same name.
pub struct FormatSpec {
    pub(crate) name: FormatName,
    /// The keys of an object around the messages that the reader looks at.
    pub(crate) keys: &'static [&'static str],
    pub(crate) reader: Reader,
    pub(crate) writer: Writer,
    /// The text of a record that is new, where the writer does not give it: of this message, and with the fields that the record
    /// beside it has.
    pub(crate) fresh: Option<FreshRecord>,
    /// How its records name each other, if they do.
    pub(crate) chain: Option<Chain>,
    /// How it says what has become of a conversation, where it is a log that is only added to.
    pub(crate) log: Option<Log>,
    /// How its lines are outlined, where a file may be too long to hold.
    pub(crate) outliner: Option<fn() -> Box<dyn Outliner>>,
}

/// The format that a row is of.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FormatName {
    BuiltIn(Format),
    Custom { name: &'static str, profile: Profile },
}

/// How a text is recognised and read.
pub(crate) enum Reader {
    /// By functions that look at all of it.
    Own {
        /// Whether a text is of the format, and by which sign.
        sign: fn(&Body<'_>) -> Fit,
        /// Adds the conversations of a text. Errors carry paths and offsets in the body's text.
        read: fn(&mut Transcript, &Body<'_>) -> Result<(), WireError>,
    },
    /// As one conversation, a list of records: under `key` of an object, an array, or lines.
    List { key: &'static str, sign: fn(&Sample<'_>) -> Fit, record: ReadRecord },
}

/// How a record is written that has to change.
pub(crate) enum Writer {
    /// With other values in the slots that this function finds in it.
    Slots(ReadRecord),
    /// The text of a record that holds these messages: the record of this text patched, or without one a new record.
    /// `None` if there is nothing to write: then the record is left out.
    Own(WriteRecord),
    /// Not at all: the format is only read.
    ReadOnly,
}

/// See [`Writer::Own`].
pub(crate) type WriteRecord = fn(Option<&str>, &[&Message]) -> Result<Option<String>, WireError>;

/// See [`FormatSpec::with_new_record`].
pub type FreshRecord = fn(&Message, Option<&str>) -> Result<String, WireError>;

impl FormatSpec {
    /// A format called `name`, whose text is one conversation: a list of records. The list is a JSON array, JSONL, or the array under
    /// `key` in an object; with an empty `key` there is no such object. `sign` tells whether a text is of the format. `read` gives the
    /// messages of a record; a record without messages stays where it is. Other fields of the object stay too, and are not read.
    ///
    /// A changed part that has a slot can be written, and so can a list without some of its messages. A message can be written without one
    /// of its parts if the part has an element or an absence. A new message is written by the function of
    /// [`with_new_record`](Self::with_new_record). Any other change is an `Unsupported` error, and nothing is written.
    ///
    /// # Panics
    /// If `name` is empty or the name of a format of this crate. In a `static` that is an error of the compiler:
    ///
    /// ```compile_fail,E0080
    /// # use epitome_wire::custom::{Fit, FormatSpec};
    /// static MINE: FormatSpec = FormatSpec::new("anthropic", "", |_| Fit::No, |_, _| Ok(Vec::new()));
    /// ```
    #[must_use]
    pub const fn new(
        name: &'static str,
        key: &'static str,
        sign: fn(&Sample<'_>) -> Fit,
        read: ReadRecord,
    ) -> Self {
        assert!(!name.is_empty(), "a format needs a name");
        assert!(Format::by_name(name).is_none(), "a format of epitome-wire has this name");
        Self {
            name: FormatName::Custom { name, profile: Profile::Permissive },
            keys: &[],
            reader: Reader::List { key, sign, record: read },
            writer: Writer::Slots(read),
            fresh: None,
            chain: None,
            log: None,
            outliner: None,
        }
    }

    /// Sets the profile of the provider that conversations of the format are sent to; [`Profile::Permissive`] without it.
    #[must_use]
    pub const fn with_profile(mut self, profile: Profile) -> Self {
        if let FormatName::Custom { name, .. } = self.name {
            self.name = FormatName::Custom { name, profile };
        }
        self
    }

    /// Sets the function that gives the JSON text of a new record for a message, such as a summary. Its second argument is a record beside
    /// it, if there is one: the function may copy a field that every record has. For a message that the format cannot say, it returns
    /// an `Unsupported` error.
    #[must_use]
    pub const fn with_new_record(mut self, write: FreshRecord) -> Self {
        self.fresh = Some(write);
        self
    }

    /// The format that it describes.
    #[must_use]
    pub const fn format(&'static self) -> Format {
        match self.name {
            FormatName::BuiltIn(format) => format,
            FormatName::Custom { .. } => Format::Custom(self),
        }
    }

    /// The name of the format.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self.name {
            FormatName::BuiltIn(format) => format.as_str(),
            FormatName::Custom { name, .. } => name,
        }
    }

    pub(crate) const fn profile(&self) -> Profile {
        match self.name {
            FormatName::BuiltIn(format) => format.profile(),
            FormatName::Custom { profile, .. } => profile,
        }
    }

    /// How well `body` fits, and by which sign.
    pub(crate) fn fit(&self, body: &Body<'_>) -> Fit {
        match &self.reader {
            Reader::Own { sign, .. } => sign(body),
            Reader::List { key, sign, .. } => {
                let records = body.sample(key).filter(|records| !records.is_empty());
                records.map_or(Fit::No, |records| sign(&Sample { records, object: body.object() }))
            }
        }
    }

    /// How well the object `body` fits as the only record of a text. `None` if it is an object around a list of records, no object, or
    /// of a format that is not read as a list.
    pub(crate) fn fit_of_record(&self, body: &Body<'_>) -> Option<Fit> {
        let Reader::List { key, sign, .. } = &self.reader else { return None };
        let record = body.object().filter(|_| body.members.iter().all(|(name, ..)| name != key))?;
        Some(sign(&Sample { records: vec![record], object: None }))
    }

    /// The text of a record that holds the messages `now`; `None` if it is left out.
    pub(crate) fn write(&self, record: Option<&str>, now: &[&Message]) -> Result<Option<String>, WireError> {
        let written = match self.writer {
            Writer::Slots(read) => slots::write(record, now, read)?,
            Writer::Own(write) => write(record, now)?,
            Writer::ReadOnly => return Err(form("a change: it is an export, which is only read")),
        };
        written.map(|text| self.checked(text)).transpose()
    }

    /// The text of a new record for `message`, beside the record `like`; `None` where the writer gives it.
    pub(crate) fn write_new(
        &self,
        message: &Message,
        like: Option<&str>,
    ) -> Option<Result<String, WireError>> {
        let written = self.fresh?(message, like).and_then(|text| self.checked(text));
        Some(match self.name {
            FormatName::BuiltIn(_) => written,
            // Between the values of JSON a line break is a space, and a record may be a line.
            FormatName::Custom { .. } => written.map(|text| text.replace(['\n', '\r'], " ")),
        })
    }

    /// `text`, unless a format of another crate has written it and it is not JSON.
    fn checked(&self, text: String) -> Result<String, WireError> {
        if matches!(self.name, FormatName::BuiltIn(_)) || json::check(&text).is_ok() {
            return Ok(text);
        }
        let name = self.name();
        Err(WireError::unsupported(format!("the writer of {name} wrote a record that is not JSON")))
    }
}

/// The beginning of a text, by which its format is recognised.
#[derive(Debug)]
pub struct Sample<'a> {
    records: Vec<&'a str>,
    object: Option<&'a str>,
}

impl<'a> Sample<'a> {
    /// The JSON texts of the first records, 256 at most; at least one. A line may hold something that is not JSON.
    #[must_use]
    pub fn records(&self) -> &[&'a str] {
        &self.records
    }

    /// The JSON text of the object that the list stands in, if it stands in one.
    #[must_use]
    pub const fn object(&self) -> Option<&'a str> {
        self.object
    }

    /// Whether a record is `T`, for each of the first records.
    pub fn all_are<T: Deserialize<'a>>(&self) -> bool {
        self.records.iter().all(|record| serde_json::from_str::<T>(record).is_ok())
    }
}

/// How well a text fits a format. The words complete "it is FORMAT because ..", for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fit {
    /// The text is not of the format.
    No,
    /// The text can be read so, but nothing in it says that it is not another format.
    Possible(&'static str),
    /// The text has a field that only this format defines, but that other programs might add to theirs. It decides if no format is
    /// certain.
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
    pub(crate) fn read(
        &mut self,
        spec: &'static FormatSpec,
        transcript: &mut Transcript,
    ) -> Result<(), WireError> {
        transcript.arrays = core::mem::take(&mut self.arrays);
        let list = match &spec.reader {
            Reader::List { key, .. } => Some(key),
            Reader::Own { .. } => None,
        };
        for key in spec.keys.iter().chain(list) {
            if let Some((.., again)) = self.members.iter().filter(|(name, ..)| name == key).nth(1) {
                return Err(json::duplicate(key).with_offset(json::offset_of(self.text(), again)));
            }
        }
        let done = match &spec.reader {
            Reader::Own { read, .. } => read(transcript, self),
            Reader::List { key, record, .. } => {
                let mut conversation = Conversation::new(spec.format(), "");
                slots::read_list(transcript, self, &mut conversation, key, *record).map(|()| {
                    transcript.push(conversation);
                })
            }
        };
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

    /// All of it, if it is an object.
    fn object(&self) -> Option<&'a str> {
        self.value().filter(|value| Kind::of(value) == Kind::Object)
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
    if let Format::Custom(spec) = format {
        return Ok(spec);
    }
    SPECS
        .iter()
        .find(|spec| spec.format() == format)
        .ok_or_else(|| WireError::unsupported(format!("this build has no reader and no writer for {format}")))
}

/// How many elements of a list are looked at for signs of a format.
const SAMPLE_MAX: usize = 256;

impl fmt::Debug for FormatSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FormatSpec").field(&self.name()).finish()
    }
}

impl PartialEq for FormatSpec {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for FormatSpec {}

impl PartialOrd for FormatSpec {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for FormatSpec {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name().cmp(other.name())
    }
}

impl Hash for FormatSpec {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}
