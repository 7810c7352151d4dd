//! The description of a format: the functions that recognise, read and write its texts.

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

/// The functions that recognise, read and write texts of one format.
///
/// Another crate defines a format with [`FormatSpec::new`] in a `static`, and reads texts of the format with
/// [`ReadOptions::with_format`](crate::ReadOptions::with_format): see [`custom`](crate::custom). Two specs are equal if they have the
/// same name.
pub struct FormatSpec {
    pub(crate) name: FormatName,
    /// The keys that the reader uses in the object around the messages.
    pub(crate) keys: &'static [&'static str],
    pub(crate) reader: Reader,
    pub(crate) writer: Writer,
    /// Writes the text of a new record, if the writer does not. The arguments are the message and an adjacent record as
    /// an example of the fields.
    pub(crate) fresh: Option<FreshRecord>,
    /// The links between the records, if they name each other.
    pub(crate) chain: Option<Chain>,
    /// The log of the format, if its files only grow.
    pub(crate) log: Option<Log>,
    /// The outliner of the format, if a file may be too long for the memory.
    pub(crate) outliner: Option<fn() -> Box<dyn Outliner>>,
}

/// The format of a row.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FormatName {
    BuiltIn(Format),
    Custom { name: &'static str, profile: Profile },
}

/// The functions that recognise and read a text.
pub(crate) enum Reader {
    /// Functions that look at the whole text.
    Own {
        /// The fit of a text, with its sign.
        sign: SignText,
        /// Adds the conversations of a text. Errors carry paths and offsets in the body's text.
        read: ReadText,
    },
    /// A text is one conversation, a list of records: an array under `key` of an object, an array, or lines.
    List {
        key: &'static str,
        /// The key of the system prompt in the object around the list.
        system: Option<&'static str>,
        sign: fn(&Sample<'_>) -> Fit,
        record: ReadRecord,
    },
}

/// The way in which a changed record is written.
pub(crate) enum Writer {
    /// Replaces the values in the slots that this function finds in the record.
    Slots(ReadRecord),
    /// Works like `Slots`, and joins neighbours of one role that a change brings together, because the provider refuses
    /// them. A record is an object with a `role` and a list under `content`.
    Turns(ReadRecord),
    /// Returns the text of a record with these messages: the patched text of the given record, or a new record if there
    /// is none. `None` if there is nothing to write: then the record is left out.
    Own(WriteRecord),
    /// No writer: the format is only read.
    ReadOnly,
}

/// See [`Reader::Own`].
pub(crate) type SignText = fn(&Body<'_>) -> Fit;

/// See [`Reader::Own`].
pub(crate) type ReadText = fn(&mut Transcript, &Body<'_>) -> Result<(), WireError>;

/// See [`Writer::Own`].
pub(crate) type WriteRecord = fn(Option<&str>, &[&Message]) -> Result<Option<String>, WireError>;

/// See [`FormatSpec::with_new_record`].
pub type FreshRecord = fn(&Message, Option<&str>) -> Result<String, WireError>;

impl FormatSpec {
    /// Creates a format with the name `name`, whose text is one conversation: a list of records. The list is a JSON
    /// array, JSONL, or the array under `key` in an object; with an empty `key` there is no such object.
    ///
    /// `sign` returns whether a text is of the format. `read` returns the messages of a record; a record without
    /// messages stays in its place. Other fields of the object stay too, and are not read, except for a system prompt
    /// ([`with_system`](Self::with_system)).
    ///
    /// The writer supports a changed part with a slot, and a list without some of its messages. It leaves out a part of
    /// a message if the part has an element or an absence. The function of [`with_new_record`](Self::with_new_record)
    /// writes a new message. Any other change is an `Unsupported` error, and nothing is written.
    ///
    /// # Panics
    /// If `name` is empty or the name of a format of this crate. In a `static` that is a compile error:
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
        let reader = Reader::List { key, system: None, sign, record: read };
        let name = FormatName::Custom { name, profile: Profile::Permissive };
        Self::row(name, &[], reader, Writer::Slots(read))
    }

    /// Creates the row of a format of this crate. `keys` are the keys that the reader uses in the object around the
    /// messages.
    pub(crate) const fn built_in(
        format: Format,
        keys: &'static [&'static str],
        (sign, read): (SignText, ReadText),
        writer: Writer,
    ) -> Self {
        Self::row(FormatName::BuiltIn(format), keys, Reader::Own { sign, read }, writer)
    }

    const fn row(name: FormatName, keys: &'static [&'static str], reader: Reader, writer: Writer) -> Self {
        Self { name, keys, reader, writer, fresh: None, chain: None, log: None, outliner: None }
    }

    /// Sets the links between the records, which name each other.
    pub(crate) const fn with_chain(mut self, chain: Chain) -> Self {
        self.chain = Some(chain);
        self
    }

    /// Sets the log of the format, whose files only grow.
    pub(crate) const fn with_log(mut self, log: Log) -> Self {
        self.log = Some(log);
        self
    }

    /// Sets the outliner of the format, whose files may be too long for the memory.
    pub(crate) const fn with_outliner(mut self, outliner: fn() -> Box<dyn Outliner>) -> Self {
        self.outliner = Some(outliner);
        self
    }

    /// Sets the profile of the provider that receives conversations of the format. The default is
    /// [`Profile::Permissive`].
    #[must_use]
    pub const fn with_profile(mut self, profile: Profile) -> Self {
        if let FormatName::Custom { name, .. } = self.name {
            self.name = FormatName::Custom { name, profile };
        }
        self
    }

    /// Sets the key of a system prompt: a text in the object around the list.
    ///
    /// The text is read as a system message before those of the list. The message can be changed, and left out with its
    /// key. There is no message if the text is empty or the value is `null`. Any other value, and a repeated key, are
    /// errors.
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
    /// If `key` is empty or the key of the list, or if there is no object around the list. In a `static` that is a
    /// compile error.
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

    /// Sets the function that returns the JSON text of a new record for a message, such as a summary.
    ///
    /// Its second argument is an adjacent record, if there is one: the function may copy a field that every record has.
    /// For a message that the format cannot represent, it returns an `Unsupported` error.
    #[must_use]
    pub const fn with_new_record(mut self, write: FreshRecord) -> Self {
        self.fresh = Some(write);
        self
    }

    /// The format of this spec.
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

    /// The fit of the object `body` as the only record of a text. `None` if it is no object, or an object around a list
    /// of records, or if the format is not read as a list.
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

    /// The error for a leaf in a text without branches.
    pub(crate) fn no_branches(&self) -> WireError {
        let what = format!(
            "a leaf was given, and this text of {} has no branches: read it without one (--leaf)",
            self.name()
        );
        WireError::new(WireErrorKind::NotFound, what)
    }

    /// The text of a record with the messages `now`; `None` if it is left out.
    pub(crate) fn write(&self, record: Option<&str>, now: &[&Message]) -> Result<Option<String>, WireError> {
        let written = match self.writer {
            Writer::Slots(read) | Writer::Turns(read) => slots::write(record, now, read)?,
            Writer::Own(write) => write(record, now)?,
            Writer::ReadOnly => return Err(form("a change: it is an export, which is only read")),
        };
        written.map(|text| self.checked(text)).transpose()
    }

    /// Works like [`write`](Self::write), for a record in the object around the list.
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

    /// The text of a new record for `message`, next to the record `like`; `None` if the writer writes it.
    pub(crate) fn write_new(
        &self,
        message: &Message,
        like: Option<&str>,
    ) -> Option<Result<String, WireError>> {
        let written = self.fresh?(message, like).and_then(|text| self.checked(text));
        Some(match self.name {
            FormatName::BuiltIn(_) => written,
            // Between JSON values a line break is a space, and a record may be a line.
            FormatName::Custom { .. } => written.map(|text| text.replace(['\n', '\r'], " ")),
        })
    }

    /// Returns `text`. Fails if a format of another crate has written it and it is not JSON.
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
    /// The JSON texts of the first records, at least one and 256 at most. A line may hold a text that is not JSON.
    #[must_use]
    pub fn records(&self) -> &[&'a str] {
        &self.records
    }

    /// The JSON text of the object that contains the list, if there is one.
    #[must_use]
    pub const fn object(&self) -> Option<&'a str> {
        self.object
    }

    /// Whether each of the first records is a `T`.
    pub fn all_are<T: Deserialize<'a>>(&self) -> bool {
        self.records.iter().all(|record| serde_json::from_str::<T>(record).is_ok())
    }
}

/// The degree to which a text fits a format. The texts complete "it is FORMAT because ..", for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fit {
    /// The text is not of the format.
    No,
    /// The format can read the text, but the text has no sign that excludes another format.
    Possible(&'static str),
    /// The text has a field that only this format defines, but other programs might add it to theirs. It decides if no
    /// format is certain.
    Likely(&'static str),
    /// The text has a sign that no other format has.
    Certain(&'static str),
}

/// The row of a format in the table of formats.
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
