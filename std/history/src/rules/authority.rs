//! The rule of authority: the messages that no commit may hide or shorten, and the highest authority of a summary.

use epitome_core::attribution::{Authority, Retention, SeqRange, SourceKind};
use epitome_core::message::Role;
use epitome_message::Message;

use super::{HiddenRows, VisibleMessage, VisibleSummary, hides, hides_all, hides_some, invalid};
use crate::visible::joined;
use crate::{CompactionRecord, StoreError, Summary};

/// The part of a message's attribution that a commit needs. A store keeps it with the message's size, as a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    authority: Authority,
    /// Whether the message is an instruction of the caller, or pinned.
    stays: bool,
}

/// The authorities, by their stored numbers.
const AUTHORITIES: [Authority; 5] =
    [Authority::Retrieved, Authority::Assistant, Authority::User, Authority::Developer, Authority::System];

/// The bit that is set in the stored number of an instruction or a pin.
const STAYS: usize = 8;

impl Standing {
    /// The standing of `message`.
    pub fn of(message: &Message) -> Self {
        let attribution = message.attribution();
        let instructs = matches!(message.role(), Role::System | Role::Developer)
            && attribution.source == SourceKind::Caller;
        let stays = instructs || attribution.retention == Retention::Pinned;
        Self { authority: attribution.authority, stays }
    }

    /// The number of the standing, for a store.
    pub fn number(self) -> u8 {
        let authority = AUTHORITIES.iter().position(|known| *known == self.authority).unwrap_or_default();
        u8::try_from(if self.stays { authority | STAYS } else { authority }).unwrap_or_default()
    }

    /// Decodes a number of [`Standing::number`].
    pub fn parse(number: u64) -> Option<Self> {
        let number = usize::try_from(number).ok().filter(|number| *number < STAYS.saturating_mul(2))?;
        let authority = *AUTHORITIES.get(number % STAYS)?;
        Some(Self { authority, stays: number >= STAYS })
    }
}

/// Checks the rule for the messages that `edit` hides, and for the summaries of `record`.
pub(super) fn check_authority(
    record: &CompactionRecord,
    messages: &[VisibleMessage],
    summaries: &[VisibleSummary],
    edit: &HiddenRows,
) -> Result<(), StoreError> {
    check_stays(record, messages, summaries)?;
    if record.summaries.is_empty() {
        return Ok(());
    }
    let replaced: Vec<&VisibleSummary> =
        summaries.iter().filter(|it| edit.summaries.binary_search(&it.key).is_ok()).collect();
    let shown = messages.iter().filter(|it| hides(&record.hides, it.seq)).map(VisibleMessage::range);
    let shown = joined(shown.chain(replaced.iter().flat_map(|it| it.covers.iter().copied())).collect());
    for summary in &record.summaries {
        check_form(summary)?;
        let covers = &summary.message.attribution().derived_from;
        if !covers.iter().all(|range| hides_all(&shown, *range)) {
            return Err(refused(summary, "covers what is not visible; name what the record hides for it"));
        }
        let of_messages = messages.iter().filter(|it| hides(covers, it.seq)).map(|it| it.standing.authority);
        let is_source = |it: &&&VisibleSummary| it.covers.iter().any(|range| hides_some(covers, *range));
        let of_summaries = replaced.iter().filter(is_source).map(|it| it.standing.authority);
        if summary.message.attribution().authority > Authority::of_summary(of_messages.chain(of_summaries)) {
            let why =
                "claims more authority than a summary of what it covers has; give it the least of theirs";
            return Err(refused(summary, why));
        }
    }
    Ok(())
}

/// Checks that the record neither hides nor shortens instructions of the caller and pins. The exception is a record
/// that takes back: it hides every group from its first hidden message up to its head, and it neither shortens nor
/// replaces any message.
fn check_stays(
    record: &CompactionRecord,
    messages: &[VisibleMessage],
    summaries: &[VisibleSummary],
) -> Result<(), StoreError> {
    let first = record.hides.first().map_or(record.head, |range| range.first);
    let is_left =
        |it: &VisibleMessage| it.anchor >= first && it.seq < record.head && !hides(&record.hides, it.seq);
    let is_shown = |it: &VisibleSummary| {
        it.key >= first && !it.covers.iter().all(|range| hides_all(&record.hides, *range))
    };
    let takes_back = record.summaries.is_empty()
        && record.edits.is_empty()
        && !messages.iter().any(is_left)
        && !summaries.iter().any(is_shown);
    let is_edited = |it: &VisibleMessage| record.edits.binary_search_by_key(&it.seq, |edit| edit.seq).is_ok();
    let touched = |it: &&VisibleMessage| it.standing.stays && (hides(&record.hides, it.seq) || is_edited(it));
    match messages.iter().find(touched) {
        Some(message) if !takes_back => Err(invalid(format!(
            "commit: message {} is an instruction of the caller, or pinned; leave it as it is",
            message.seq
        ))),
        _ => Ok(()),
    }
}

fn check_form(summary: &Summary) -> Result<(), StoreError> {
    let attribution = summary.message.attribution();
    if summary.message.role() != Role::Assistant {
        return Err(refused(summary, "has a role that no summary has; make it a message of the model"));
    }
    if attribution.source != SourceKind::Compaction {
        return Err(refused(summary, "claims another source; say that a compaction made it"));
    }
    if attribution.retention == Retention::Pinned {
        return Err(refused(summary, "is pinned, and nothing that it covers was; do not pin it"));
    }
    Ok(())
}

fn refused(summary: &Summary, why: &str) -> StoreError {
    invalid(format!("commit: the summary {} {why}", summary.key))
}

impl VisibleMessage {
    const fn range(&self) -> SeqRange {
        SeqRange { first: self.seq, last: self.seq }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standing_is_its_number() {
        for authority in AUTHORITIES {
            for stays in [false, true] {
                let standing = Standing { authority, stays };
                assert_eq!(Standing::parse(standing.number().into()), Some(standing));
            }
        }
        let known: Vec<u64> = (0..300).filter(|number| Standing::parse(*number).is_some()).collect();
        assert_eq!(known, [0, 1, 2, 3, 4, 8, 9, 10, 11, 12]);
    }
}
