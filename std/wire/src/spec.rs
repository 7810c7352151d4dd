//! The description of a format: how its texts are recognised, read and written.

use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};

use epitome_core::Profile;
use epitome_message::Message;
use serde::Deserialize;

use super::body::Body;
pub(crate) use super::format::SPECS;
use super::format::is_same;
use super::json::{self, Spans};
use super::outline::Outliner;
use super::rewrite::form;
use super::slots::{self, ReadRecord};
use super::transcript::{Chain, Conversation, Log, Transcript};
use super::{Format, WireError, WireErrorKind};

/// The functions of one format: how it is recognised, read and written.
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
    /// The links between its records, if they name each other.
    pub(crate) chain: Option<Chain>,
    /// The log of the format, where it is only added to.
    pub(crate) log: Option<Log>,
    /// The outliner of its lines, where a file may be too long to hold.
    pub(crate) outliner: Option<fn() -> Box<dyn Outliner>>,
}

/// The format that a row is of.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FormatName {
    BuiltIn(Format),
    Custom { name: &'static str, profile: Profile },
}

/// The functions that recognise and read a text.
pub(crate) enum Reader {
    /// By functions that look at all of it.
    Own {
        /// Whether a text is of the format, and by which sign.
        sign: fn(&Body<'_>) -> Fit,
        /// Adds the conversations of a text. Errors carry paths and offsets in the body's text.
        read: fn(&mut Transcript, &Body<'_>) -> Result<(), WireError>,
    },
    /// A text is one conversation, a list of records: under `key` of an object, an array, or lines.
    List {
        key: &'static str,
        /// The key, beside the list, under which the object has a system prompt.
        system: Option<&'static str>,
        sign: fn(&Sample<'_>) -> Fit,
        record: ReadRecord,
    },
}

/// The way in which a changed record is written.
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
    /// messages of a record; a record without messages stays where it is. Other fields of the object stay too, and are not read, except for
    /// a system prompt ([`with_system`](Self::with_system)).
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
            reader: Reader::List { key, system: None, sign, record: read },
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

    /// Sets the key of a system prompt: a text in the object around the list. It is read as a system message before those of the list. The
    /// message can be changed, and left out with its key. There is no message if the text is empty, or the value is `null`; any other
    /// value, and the key twice, are errors.
    ///
    /// ```
    /// use epitome_core::message::Role;
    /// use epitome_wire::custom::{Fit, FormatSpec, RecordMessage, RecordPart};
    /// use epitome_wire::{Format, ReadOptions, WireError, read, write_back};
    ///
    /// /// Texts of users: `{"prompt":"..","said":["..",".."]}`.
    /// static SAID: FormatSpec = FormatSpec::new("said", "said", |_| Fit::No, |source, record| {
    ///     Ok(vec![RecordMessage::new(Role::User, record).with_parts(RecordPart::text(source, Some(record)))])
    /// })
    /// .with_system("prompt");
    ///
    /// let text = r#"{"prompt": "Be brief.", "said": ["Hi"]}"#;
    /// let mut transcript = read(text, &ReadOptions::default().with_from(Format::Custom(&SAID)))?;
    /// let entries = &mut transcript.conversations_mut()[0].entries;
    /// assert_eq!((entries.len(), entries[0].message().role()), (2, Role::System));
    /// entries.remove(0);
    /// let mut written = Vec::new();
    /// write_back(&transcript, &mut written)?;
    /// assert_eq!(written, br#"{"said": ["Hi"]}"#);
    /// # Ok::<(), WireError>(())
    /// ```
    ///
    /// # Panics
    /// If `key` is empty or the key of the list, or if there is no object around the list. In a `static` that is an error of the compiler.
    #[must_use]
    pub const fn with_system(mut self, key: &'static str) -> Self {
        if let Reader::List { key: list, system, .. } = &mut self.reader {
            assert!(!list.is_empty(), "a system prompt stands in an object around the list");
            assert!(
                !key.is_empty() && !is_same(list.as_bytes(), key.as_bytes()),
                "a system prompt needs a key of its own"
            );
            *system = Some(key);
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

    /// The fit of `body`, with its sign.
    pub(crate) fn fit(&self, body: &Body<'_>) -> Fit {
        match &self.reader {
            Reader::Own { sign, .. } => sign(body),
            Reader::List { key, sign, .. } => {
                let records = body.sample(key).filter(|records| !records.is_empty());
                records.map_or(Fit::No, |records| sign(&Sample { records, object: body.object() }))
            }
        }
    }

    /// The fit of the object `body` as the only record of a text. `None` if it is an object around a list of records, no object, or of a
    /// format that is not read as a list.
    pub(crate) fn fit_of_record(&self, body: &Body<'_>) -> Option<Fit> {
        let Reader::List { key, sign, .. } = &self.reader else { return None };
        let record = body.object().filter(|_| body.members.iter().all(|(name, ..)| name != key))?;
        Some(sign(&Sample { records: vec![record], object: None }))
    }

    /// Adds the conversations of `body` to `transcript`.
    pub(crate) fn read(
        &'static self,
        body: &mut Body<'_>,
        transcript: &mut Transcript,
    ) -> Result<(), WireError> {
        let (list, system) = match &self.reader {
            Reader::List { key, system, .. } => (Some(key), system.as_ref()),
            Reader::Own { .. } => (None, None),
        };
        body.check_keys(self.keys.iter().chain(list).chain(system))?;
        (transcript.arrays, transcript.spans) = (body.take_arrays(), body.take_spans());
        let read = match &self.reader {
            Reader::Own { read, .. } => read(transcript, body),
            Reader::List { key, system, record, .. } => {
                let mut conversation = Conversation::new(self.format(), "");
                let read = match system.filter(|_| body.field(key).is_some()) {
                    Some(system) => slots::read_system(transcript, body, &mut conversation, system),
                    None => Ok(()),
                };
                let read =
                    read.and_then(|()| slots::read_list(transcript, body, &mut conversation, key, *record));
                if read.is_ok() {
                    transcript.push(conversation);
                }
                read
            }
        };
        (transcript.arrays, transcript.spans) = (Vec::new(), Spans::default());
        match read {
            Ok(()) if body.ignores_leaf() => Err(self.no_branches()),
            read => read,
        }
    }

    /// The refusal of a leaf.
    pub(crate) fn no_branches(&self) -> WireError {
        let what = format!(
            "a leaf was given, and this text of {} has no branches: read it without one (--leaf)",
            self.name()
        );
        WireError::new(WireErrorKind::NotFound, what)
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

    /// The text of a record in the object around the list, as [`write`](Self::write).
    pub(crate) fn write_field(
        &self,
        record: Option<&str>,
        now: &[&Message],
    ) -> Result<Option<String>, WireError> {
        match self.reader {
            Reader::List { .. } => slots::write(record, now, slots::system),
            Reader::Own { .. } => self.write(record, now),
        }
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

/// The degree to which a text fits a format. The words complete "it is FORMAT because ..", for people.
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
