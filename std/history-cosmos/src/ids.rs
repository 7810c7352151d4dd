//! The ids of items, and the partition key of a session.

use epitome_core::{Revision, Seq};
use epitome_history::files::{file_stem, hex};
use epitome_history::{AppendToken, SessionId};
use sha2::{Digest, Sha256};

pub(crate) const SESSION_ID: &str = "session";
pub(crate) const STATE_ID: &str = "state";

pub(crate) fn row_id(seq: Seq, stage: Option<&str>) -> String {
    match stage {
        Some(stage) => format!("message.{seq}.{stage}"),
        None => format!("message.{seq}"),
    }
}

pub(crate) fn append_id(token: &AppendToken) -> String {
    format!("append.{}", hex(&Sha256::digest(token.as_str().as_bytes())))
}

pub(crate) fn record_id(revision: Revision) -> String {
    format!("record.{revision}")
}

pub(crate) fn stand_ins_id(revision: Revision) -> String {
    format!("stand_ins.{revision}")
}

pub(crate) fn prune_id(revision: Revision) -> String {
    format!("prune.{revision}")
}

pub(crate) fn stage_id(stage: &str) -> String {
    format!("stage.{stage}")
}

pub(crate) fn piece_id(stage: &str, at: u32) -> String {
    format!("piece.{stage}.{at}")
}

/// The partition key of a session: the session id, or a digest if the id is empty, long, has control characters or
/// begins with `~`.
pub(crate) fn partition(session: &SessionId) -> String {
    let id = session.as_str();
    let is_shown = !id.is_empty() && id.len() <= PARTITION_BYTES_MAX && !id.chars().any(char::is_control);
    // A partition key that begins with `~` is a digest.
    if is_shown && !id.starts_with('~') {
        return id.to_owned();
    }
    Some(file_stem(id))
        .filter(|stem| stem.starts_with('~'))
        .unwrap_or_else(|| format!("~{}", hex(&Sha256::digest(id.as_bytes()))))
}

/// The id of a session in hexadecimal, so that ids sort in the order of their bytes.
pub(crate) fn name_hex(session: &SessionId) -> String {
    hex(session.as_str().as_bytes())
}

/// Maximum length of a session id that is its own partition key, in bytes. Containers with keys of version 1 use only
/// the first 101 bytes of a key.
const PARTITION_BYTES_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_two_sessions_share_a_partition(one in "[~aA\u{0}é/-]{0,4}|a{98,103}", other in "[~aA\u{0}é/-]{0,4}|~a-[0-9a-f]{32}") {
            let (one, other) = (SessionId::new(one), SessionId::new(other));
            prop_assert_eq!(partition(&one) == partition(&other), one == other);
            let name = SessionId::new(partition(&one));
            prop_assert!(name == one || partition(&name) != partition(&one), "{}", partition(&name));
            prop_assert_eq!(name_hex(&one).cmp(&name_hex(&other)), one.cmp(&other));
            prop_assert!(!partition(&one).is_empty() && partition(&one).len() <= PARTITION_BYTES_MAX);
        }
    }
}
