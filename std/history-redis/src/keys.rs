//! The names of keys.

use sha2::{Digest, Sha256};

use epitome_history::files;
use epitome_history::rules::invalid;
use epitome_history::{SessionId, StoreError};

/// The prefix of the names of all keys of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Prefix(String);

/// The keys of a session. The scripts use the same numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    /// A hash: the session's counters.
    Session = 1,
    /// A hash: messages by their sequence numbers.
    Log,
    /// A hash: the group, the turn and the hiding revision of each message, by its number.
    Places,
    /// A sorted set: the visible messages and summaries, by key.
    Live,
    /// A sorted set: the messages and summaries that are hidden and not pruned, by the revision that hid them.
    Hidden,
    /// A hash: summaries by their keys and revisions.
    Summaries,
    /// A hash: stand-ins, by the numbers of messages.
    Edits,
    /// A sorted set: records by their revisions.
    Records,
    /// A sorted set: prunes by their revisions.
    Prunes,
    /// A hash: the answers to appends, by their tokens.
    Receipts,
    /// A sorted set: the tokens of appends by the numbers of their first messages.
    Appends,
    /// A hash: hidden calls without an answer.
    Open,
    /// A hash: the index of words, by blocks of messages.
    Words,
}

/// All keys of a session in the order of their numbers, followed by the key of the index that contains its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SessionKeys(Vec<String>);

/// Number of parts of the index of sessions. A session's keys and its part of the index share a slot of a cluster, so
/// that one script changes them all. More parts distribute the sessions more evenly over many servers, but a list must
/// request more parts. With 256 parts, a hundred servers differ by a tenth, and one batch of requests reads them all.
pub(super) const BUCKETS: u16 = 256;

const NAMES: [&str; 13] = [
    "session",
    "log",
    "places",
    "live",
    "hidden",
    "summaries",
    "edits",
    "records",
    "prunes",
    "receipts",
    "appends",
    "open",
    "words",
];

impl Prefix {
    /// # Errors
    /// `Invalid` if the prefix contains braces, because the text in braces decides in which slot a cluster keeps a key.
    pub(super) fn new(text: &str) -> Result<Self, StoreError> {
        if text.contains(['{', '}']) {
            return Err(invalid("open: there may be no braces in the prefix of keys"));
        }
        Ok(Self(text.to_owned()))
    }

    /// The key that holds the version of the layout.
    pub(super) fn layout(&self) -> String {
        format!("{}:layout", self.0)
    }

    /// The key of the index of this bucket's sessions.
    pub(super) fn index(&self, bucket: u8) -> String {
        format!("{}:{{{bucket:02x}}}:index", self.0)
    }

    /// The keys of all indexes, bucket by bucket.
    pub(super) fn indexes(&self) -> impl Iterator<Item = String> {
        (0..BUCKETS).filter_map(|bucket| u8::try_from(bucket).ok()).map(|bucket| self.index(bucket))
    }

    /// The keys of `session`. Each id has its own names, of at most some 170 bytes.
    pub(super) fn keys(&self, session: &SessionId) -> SessionKeys {
        let digest: [u8; 32] = Sha256::digest(session.as_str().as_bytes()).into();
        let [bucket, ..] = digest;
        let name = files::file_stem(session.as_str());
        let key = |kind: &&str| format!("{}:{{{bucket:02x}}}:{kind}:{name}", self.0);
        SessionKeys(NAMES.iter().map(key).chain([self.index(bucket)]).collect())
    }
}

impl SessionKeys {
    pub(super) fn all(&self) -> &[String] {
        &self.0
    }

    pub(super) fn one(&self, key: Key) -> &str {
        self.0.get((key as usize).saturating_sub(1)).map_or("", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_have_their_numbers_and_one_tag() {
        let keys = Prefix::new("app").unwrap().keys(&SessionId::new("demo"));
        assert_eq!(keys.one(Key::Session), "app:{2a}:session:demo");
        assert_eq!(keys.one(Key::Hidden), "app:{2a}:hidden:demo");
        assert_eq!(keys.one(Key::Open), "app:{2a}:open:demo");
        assert_eq!(keys.all().last().map(String::as_str), Some("app:{2a}:index"));
        assert_eq!(keys.all().len(), 14);
        assert!(Prefix::new("a{b}c").is_err());
        let all: BTreeSet<String> = Prefix::new("").unwrap().indexes().collect();
        assert_eq!((all.len(), all.first().unwrap().as_str()), (256, ":{00}:index"));
    }

    proptest! {
        #[test]
        fn no_two_sessions_share_a_key_and_all_of_one_share_a_slot(
            one in "[a-cA-C{}:\u{0}é ]{0,4}",
            other in "[a-cA-C{}:\u{0}é ]{0,4}",
        ) {
            let prefix = Prefix::new("epitome").unwrap();
            let keys = |id: &str| prefix.keys(&SessionId::new(id)).all()[..13].to_vec();
            let (first, second) = (keys(&one), keys(&other));
            prop_assert_eq!(one == other, first.iter().any(|key| second.contains(key)));
            // The text between the first opening brace and the next closing one.
            let tag = |key: &String| key.split_once('{').unwrap().1.split_once('}').unwrap().0.to_owned();
            let tags: BTreeSet<String> = prefix.keys(&SessionId::new(&*one)).all().iter().map(tag).collect();
            prop_assert_eq!(tags.len(), 1);
        }
    }
}
