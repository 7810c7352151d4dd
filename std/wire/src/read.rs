//! Reads a text of any format, and detects the format.

use std::sync::Arc;

use epitome_message::Message;
use memchr::memchr;

use super::body::{Body, Content};
use super::document::{self, Document, LineKind, Pointer};
use super::spec::{self, Fit, FormatSpec, SPECS};
use super::transcript::{Conversation, Transcript};
use super::{Format, WireError, WireErrorKind, aider};

/// The part of a text to read, and its format.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ReadOptions {
    /// The format. Without it, the format is detected.
    pub from: Option<Format>,
    /// The place of the conversation. Without it, the whole text. With [`each`](Self::each), the place in each element.
    pub at: Option<Pointer>,
    /// Whether every element of the array, or every line, is a text of its own.
    pub each: bool,
    /// The id of the last message of the branch to read, in a session file with branches. Without it, the active branch
    /// is read. A text without branches has no leaf (`NotFound`).
    pub leaf: Option<String>,
    /// Formats of other crates, which are recognised by the same rules as those of this crate: see [`detect`].
    pub formats: Vec<&'static FormatSpec>,
}

impl ReadOptions {
    /// Sets the format.
    #[must_use]
    pub const fn with_from(mut self, from: Format) -> Self {
        self.from = Some(from);
        self
    }

    /// Sets the place of the conversation.
    #[must_use]
    pub fn with_at(mut self, at: Pointer) -> Self {
        self.at = Some(at);
        self
    }

    /// Reads every element or line as a conversation.
    #[must_use]
    pub const fn with_each(mut self) -> Self {
        self.each = true;
        self
    }

    /// Sets the leaf.
    #[must_use]
    pub fn with_leaf(mut self, leaf: impl Into<String>) -> Self {
        self.leaf = Some(leaf.into());
        self
    }

    /// Adds a format of another crate to the formats that are recognised: see [`custom`](crate::custom).
    #[must_use]
    pub fn with_format(mut self, spec: &'static FormatSpec) -> Self {
        self.formats.push(spec);
        self
    }

    /// Detects the format of `text`, among the formats of this crate and [`formats`](Self::formats). The place, the
    /// leaf and [`from`](Self::from) have no effect.
    ///
    /// # Errors
    /// As [`detect`].
    pub fn detect(&self, text: &str) -> Result<Detection, WireError> {
        // The search for signs uses the text itself: it may be too large for a copy.
        let source = Arc::from("");
        let whole = Self { formats: self.formats.clone(), ..Self::default() };
        let bodies = bodies(text, &source, &whole)?;
        let body = bodies.first().ok_or_else(nothing)?;
        let (spec, reason) = self.choose(body)?;
        Ok(Detection { format: spec.format(), reason })
    }

    /// Whether `body` is one record of a format of another crate, and no format fits it as a list.
    fn is_record(&self, body: &Body<'_>) -> bool {
        match self.from {
            Some(Format::Custom(spec)) => spec.fit_of_record(body).is_some(),
            Some(_) => false,
            None => {
                let has_sign = |fit| matches!(fit, Some(Fit::Certain(_) | Fit::Likely(_)));
                self.formats.iter().any(|spec| has_sign(spec.fit_of_record(body)))
                    && self.all().all(|spec| spec.fit(body) == Fit::No)
            }
        }
    }

    /// The rows of all formats.
    fn all(&self) -> impl Iterator<Item = &'static FormatSpec> {
        self.formats.iter().copied().chain(SPECS)
    }

    /// The spec of each body. If a body fits several formats, it has the format of all bodies with a certain sign, if
    /// they agree.
    fn specs(&self, bodies: &[Body<'_>]) -> Result<Vec<&'static FormatSpec>, WireError> {
        if let Some(format) = self.from {
            let spec = spec::of(format)?;
            return Ok(vec![spec; bodies.len()]);
        }
        let mut certain: Vec<_> =
            bodies.iter().filter_map(|body| self.certain_of(body).ok().flatten()).collect();
        certain.dedup_by_key(|(spec, _)| *spec);
        let agreed = match certain.as_slice() {
            [(spec, _)] if bodies.len() > 1 => Some(*spec),
            _ => None,
        };
        let each = bodies.iter().map(|body| match agreed.filter(|spec| spec.fit(body) != Fit::No) {
            Some(spec) => Ok(spec),
            None => self.choose(body).map(|(spec, _)| spec),
        });
        each.collect()
    }

    /// The only spec with a certain sign. Without any certain sign, the only likely spec. Several such specs are an
    /// error.
    fn certain_of(&self, body: &Body<'_>) -> Result<Option<(&'static FormatSpec, &'static str)>, WireError> {
        let (mut certain, mut likely) = (Vec::new(), Vec::new());
        for spec in self.all() {
            match spec.fit(body) {
                Fit::Certain(why) => certain.push((spec, why)),
                Fit::Likely(why) => likely.push((spec, why)),
                Fit::Possible(_) | Fit::No => {}
            }
        }
        let deciding = if certain.is_empty() { likely } else { certain };
        match deciding.as_slice() {
            [] => Ok(None),
            [one] => Ok(Some(*one)),
            several => Err(body.place(ambiguous(several))),
        }
    }

    /// The spec for a body, with the reason.
    fn choose(&self, body: &Body<'_>) -> Result<(&'static FormatSpec, String), WireError> {
        if let Some((spec, why)) = self.certain_of(body)? {
            return Ok((spec, why.to_owned()));
        }
        let possible: Vec<_> = self
            .all()
            .filter_map(|spec| match spec.fit(body) {
                Fit::Possible(why) => Some((spec, why)),
                _ => None,
            })
            .collect();
        match possible.as_slice() {
            [] => Err(refusal(body)),
            [(spec, why)] => Ok((spec, (*why).to_owned())),
            [(spec, why), others @ ..] => {
                let first = reading(spec, body);
                if first.is_ok() && others.iter().all(|(other, _)| same(&first, &reading(other, body))) {
                    let names: Vec<_> = others.iter().map(|(other, _)| other.name()).collect();
                    let also = names.join(" and ");
                    return Ok((spec, format!("{why}; {also} would read the same messages")));
                }
                Err(body.place(ambiguous(&possible)))
            }
        }
    }
}

/// The format of a text, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Detection {
    /// The format.
    pub format: Format,
    /// The sign in the text, in words for people: "its messages have `tool_calls`".
    pub reason: String,
}

/// Detects the format of `text`.
///
/// A sign that only one format has decides. Without such a sign, several formats may fit: a user and an assistant that
/// exchange plain texts look the same in Chat Completions and in Anthropic's format. If all fitting formats read the
/// same messages from the text, the result is the first one of the table, with formats of other crates before it, and
/// the reason says so. Otherwise the result is an error with the names of the formats.
///
/// ```
/// use epitome_wire::{Format, detect};
///
/// let found = detect(r#"{"messages": [{"role": "tool", "tool_call_id": "c", "content": "42"}]}"#)?;
/// assert_eq!(found.format, Format::OpenaiChat);
/// # Ok::<(), epitome_wire::WireError>(())
/// ```
///
/// # Errors
/// `Ambiguous` if several formats fit and read different messages. `Shape` if no format fits, with the place of a
/// conversation if there is one. As [`Document::parse`] for a text that is not JSON.
pub fn detect(text: &str) -> Result<Detection, WireError> {
    ReadOptions::default().detect(text)
}

/// Reads the conversations of `text`.
///
/// ```
/// use epitome_core::message::Role;
/// use epitome_wire::{ReadOptions, read};
///
/// let text = r#"{"system": "Be brief.", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9}"#;
/// let transcript = read(text, &ReadOptions::default())?;
/// let roles: Vec<_> = transcript.conversations()[0].messages().map(|message| message.role()).collect();
/// assert_eq!(roles, [Role::System, Role::User]);
/// # Ok::<(), epitome_wire::WireError>(())
/// ```
///
/// # Errors
/// As [`detect`] without a format in `options`. `NotFound` for a place or a leaf that does not exist. Errors of the
/// format's reader, with line, column and path.
pub fn read(text: impl Into<Arc<str>>, options: &ReadOptions) -> Result<Transcript, WireError> {
    let source: Arc<str> = text.into();
    let bodies = bodies(&source, &source, options)?;
    let mut transcript = Transcript::empty(Arc::clone(&source));
    let specs = options.specs(&bodies)?;
    // If texts are read one by one, one text with the leaf is enough.
    let (is_one_enough, mut missing) = (options.each && options.leaf.is_some(), Vec::new());
    let count = bodies.len();
    for (mut body, spec) in bodies.into_iter().zip(specs) {
        match spec.read(&mut body, &mut transcript).map_err(|error| body.place(error)) {
            Err(error) if is_one_enough && error.kind() == WireErrorKind::NotFound => missing.push(error),
            read => read?,
        }
    }
    let is_nowhere = missing.len() == count;
    if let Some(error) = missing.pop().filter(|_| is_nowhere) {
        return Err(error);
    }
    transcript.conversations.iter_mut().for_each(Conversation::seal);
    Ok(transcript)
}

/// The texts to read.
fn bodies<'a>(
    text: &'a str,
    source: &'a Arc<str>,
    options: &'a ReadOptions,
) -> Result<Vec<Body<'a>>, WireError> {
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let leaf = options.leaf.as_deref();
    let body = |content| Body::new(source, content, leaf);
    if options.from == Some(Format::Aider) || (options.from.is_none() && aider::is_history(text)) {
        return match options.each || options.at.is_some() {
            false => Ok(vec![body(Content::Lines(text))]),
            true => Err(WireError::shape(
                "a chat history of aider is markdown, and one conversation: it has no places and elements of JSON; read all of it \
                 (without --at and --each)",
            )),
        };
    }
    let at = |document: Document<'a>| match &options.at {
        Some(at) => document.at(at),
        None => Ok(document),
    };
    if options.each {
        let each = document::each(text)?.map(|element| Ok(body(Content::Value(at(element?)?))));
        return each.collect();
    }
    if let Some(at) = &options.at {
        return Ok(vec![body(Content::Value(document::at(text, at)?))]);
    }
    if !document::looks_like_jsonl(text) {
        let whole = Body::parse(source, text, leaf)?;
        // A log of messages after its first message.
        let is_line = (whole.is_message() || options.is_record(&whole))
            && memchr(b'\n', text.trim().as_bytes()).is_none();
        return Ok(vec![if is_line { body(Content::Lines(text)) } else { whole }]);
    }
    Ok(vec![body(Content::Lines(text))])
}

/// The messages that a spec reads from a body, without the source texts.
fn reading(spec: &'static FormatSpec, body: &Body<'_>) -> Result<Vec<Vec<Message>>, WireError> {
    let source: Arc<str> = Arc::from(body.text());
    let content = match &body.content {
        Content::Value(_) => Content::Value(Document::parse(&source)?),
        Content::Lines(_) => Content::Lines(&source),
    };
    let mut transcript = Transcript::empty(Arc::clone(&source));
    spec.read(&mut Body::new(&source, content, None), &mut transcript)?;
    let of = |conversation: Conversation| {
        Vec::from(conversation.entries).into_iter().map(|entry| entry.into_message().without_wire()).collect()
    };
    Ok(transcript.conversations.into_iter().map(of).collect())
}

fn same(one: &Result<Vec<Vec<Message>>, WireError>, other: &Result<Vec<Vec<Message>>, WireError>) -> bool {
    matches!((one, other), (Ok(one), Ok(other)) if one == other)
}

fn ambiguous(fitting: &[(&'static FormatSpec, &'static str)]) -> WireError {
    let each: Vec<_> = fitting.iter().map(|(spec, why)| format!("{} because {why}", spec.name())).collect();
    let what = format!("several formats fit: {}", each.join(", or "));
    WireError::new(WireErrorKind::Ambiguous, what).with_offset(0)
}

fn refusal(body: &Body<'_>) -> WireError {
    let unfit = || WireError::shape(UNFIT).with_offset(0);
    match &body.content {
        Content::Value(document) => match document.conversation() {
            Ok(found) if !found.is_empty() => {
                body.place(document::foreign_in_value(document.text()).unwrap_or_else(unfit))
            }
            _ => document::refusal(document),
        },
        Content::Lines(text) => match document::lines(text).next().map(|line| line.kind()) {
            Some(Err(error)) => error,
            Some(Ok(LineKind::Message)) => body.place(document::foreign_in_lines(text).unwrap_or_else(unfit)),
            _ => body.place(WireError::shape("found lines of no known format").with_offset(0)),
        },
    }
}

fn nothing() -> WireError {
    WireError::new(WireErrorKind::Empty, "there is no JSON: the text is empty")
}

/// The error for messages with roles that fit no format.
const UNFIT: &str = "no known format fits all of these messages: each needs a `content`, or they mix the forms of \
    several formats; mend them, or give the format to read them as (--from)";
