//! The form of texts in the files of stores: plain or encrypted.

#[cfg(feature = "encryption")]
mod key;

use uuid::Uuid;

#[cfg(feature = "encryption")]
use self::key::SessionKey;
#[cfg(feature = "encryption")]
pub use self::key::StoreKey;
use super::StoreError;
use super::rules::invalid;

/// The name of the cipher, as files contain it.
pub const CIPHER: &str = "XChaCha20-Poly1305";

/// The form in which a store keeps texts.
#[derive(Debug, Clone, Default)]
pub enum Vault {
    /// Plain texts.
    #[default]
    Plain,
    /// Encrypted texts.
    #[cfg(feature = "encryption")]
    Keyed(StoreKey),
}

impl Vault {
    pub const fn is_plain(&self) -> bool {
        matches!(self, Self::Plain)
    }

    /// The form of the texts of `session` in the file with this file id.
    #[cfg_attr(not(feature = "encryption"), expect(unused_variables, reason = "there are no keys"))]
    pub fn seal(&self, file: Uuid, session: &[u8]) -> Seal {
        match self {
            Self::Plain => Seal::Plain,
            #[cfg(feature = "encryption")]
            Self::Keyed(key) => Seal::Keyed(Box::new(key.of(file, session))),
        }
    }
}

/// The form of the texts of one session in one file.
#[derive(Debug, Clone, Default)]
pub enum Seal {
    #[default]
    Plain,
    #[cfg(feature = "encryption")]
    Keyed(Box<SessionKey>),
}

impl Seal {
    pub const fn is_plain(&self) -> bool {
        matches!(self, Self::Plain)
    }

    /// The stored form of `text` at `place`.
    ///
    /// # Errors
    /// `Unavailable` if the system has no random numbers.
    #[cfg_attr(not(feature = "encryption"), expect(unused_variables, reason = "there are no keys"))]
    pub fn close(&self, place: Place, text: String) -> Result<String, StoreError> {
        match self {
            Self::Plain => Ok(text),
            #[cfg(feature = "encryption")]
            Self::Keyed(key) => key.close(place, text.as_bytes()),
        }
    }

    /// The text that was written at `place` as `stored`. An encrypted text is `None` if it was changed, or was written
    /// at another place or with another key. A plain text is returned without a check.
    #[cfg_attr(not(feature = "encryption"), expect(unused_variables, reason = "there are no keys"))]
    pub fn open(&self, place: Place, stored: String) -> Option<String> {
        match self {
            Self::Plain => Some(stored),
            #[cfg(feature = "encryption")]
            Self::Keyed(key) => String::from_utf8(key.open(place, stored.as_bytes())?).ok(),
        }
    }

    /// A form of `digest` that does not reveal the text without the key.
    pub fn digest(&self, digest: [u8; 32]) -> [u8; 32] {
        match self {
            Self::Plain => digest,
            #[cfg(feature = "encryption")]
            Self::Keyed(key) => key.digest(&digest),
        }
    }
}

/// The place of a text. An encrypted text from another place cannot be opened here.
#[derive(Debug, Clone, Copy)]
pub struct Place(Kind, [u64; 2]);

/// The kind of a text.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Check = 0,
    Line = 1,
    Message = 2,
    Summary = 3,
    StandIns = 4,
    Record = 5,
    RecordId = 6,
    Call = 7,
    State = 8,
}

impl Place {
    /// Place of the text by which a store recognizes a wrong key.
    pub const CHECK: Self = Self(Kind::Check, [0, 0]);

    /// The place of the line at byte `at`.
    pub const fn line(at: u64) -> Self {
        Self(Kind::Line, [at, 0])
    }

    /// The bytes that are authenticated with the text: the kind and two numbers, little-endian.
    #[cfg(feature = "encryption")]
    fn bytes(self) -> [u8; 17] {
        let mut bytes = [self.0 as u8; 17];
        let (_, numbers) = bytes.split_at_mut(1);
        for (to, from) in numbers.chunks_exact_mut(8).zip(self.1) {
            to.copy_from_slice(&from.to_le_bytes());
        }
        bytes
    }
}

impl core::fmt::Display for Place {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self(kind, [number, key]) = self;
        match kind {
            Kind::Check => f.write_str("the check of the key"),
            Kind::Line => write!(f, "the line at byte {number}"),
            Kind::Message => write!(f, "message {number}"),
            Kind::Summary => write!(f, "the summary at {key} of revision {number}"),
            Kind::StandIns => write!(f, "what stands in place of parts of message {number}"),
            Kind::Record => write!(f, "the record of revision {number}"),
            Kind::RecordId => write!(f, "the id of the record of revision {number}"),
            Kind::State => write!(f, "the state of its revision {number}"),
            Kind::Call => write!(f, "an unanswered call of the group at {number}"),
        }
    }
}

impl Place {
    pub const fn message(seq: u64) -> Self {
        Self(Kind::Message, [seq, 0])
    }

    pub const fn summary(revision: u64, key: u64) -> Self {
        Self(Kind::Summary, [revision, key])
    }

    pub const fn stand_ins(seq: u64) -> Self {
        Self(Kind::StandIns, [seq, 0])
    }

    pub const fn record(revision: u64) -> Self {
        Self(Kind::Record, [revision, 0])
    }

    pub const fn record_id(revision: u64) -> Self {
        Self(Kind::RecordId, [revision, 0])
    }

    pub const fn state(revision: u64) -> Self {
        Self(Kind::State, [revision, 0])
    }

    pub const fn call(anchor: u64, ordinal: u64) -> Self {
        Self(Kind::Call, [anchor, ordinal])
    }
}

/// Checks that a file can be read with `vault`. `found` is the check text of the file, `None` for a file with plain
/// texts. `seal` is the seal of the file under `vault`.
///
/// # Errors
/// `Invalid` if the file cannot be read with `vault`. The error names the next step.
pub fn check(vault: &Vault, seal: &Seal, found: Option<&str>, what: &str) -> Result<(), StoreError> {
    match (vault.is_plain(), found) {
        (true, None) => Ok(()),
        (true, Some(_)) if cfg!(feature = "encryption") => {
            Err(invalid(format!("{what} is encrypted; open the store with its key")))
        }
        (true, Some(_)) => Err(invalid(format!(
            "{what} is encrypted; open the store with its key, in a build with the feature `encryption`"
        ))),
        (false, None) => Err(invalid(format!(
            "{what} is not encrypted; open the store without a key, or copy its sessions into a new store that is opened \
             with one: `epitome session copy --to-key-file`, or `HistoryStoreExt::copy` in Rust"
        ))),
        (false, Some(check)) => match seal.open(Place::CHECK, check.to_owned()) {
            Some(_) => Ok(()),
            None => {
                Err(invalid(format!("{what} was encrypted with another key; open the store with that one")))
            }
        },
    }
}
