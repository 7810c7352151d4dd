//! The short texts that the store keeps for its decisions. Numbers are decimal. The scripts rely on the first fields.

use core::fmt;

use epitome_core::attribution::SeqRange;
use epitome_core::{Head, Revision, Seq, Tokens, Turn};

use epitome_history::kernel::{SaidBefore, Visible};
use epitome_history::rules::{Anchor, Standing, VisibleMessage, VisibleSummary, corrupt};
use epitome_history::{Appended, Entry, StoreError, Timestamp};

/// A visible message or summary, as a member of the sorted set of visible items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Member {
    /// `m SEQ ANCHOR TURN TOKENS FLAGS STANDING`, where the flags are `e` (shortened), `l` (a late answer) or `-`.
    Message {
        seq: Seq,
        anchor: Seq,
        turn: Turn,
        tokens: Tokens,
        edited: bool,
        late: bool,
        standing: Standing,
    },
    /// `s KEY REVISION TURN TOKENS COVERS STANDING`, where the coverage has the form `FIRST-LAST,..`.
    Summary {
        key: Seq,
        revision: Revision,
        turn: Turn,
        tokens: Tokens,
        covers: Vec<SeqRange>,
        standing: Standing,
    },
}

impl Member {
    /// The member of a new message at `seq`.
    pub(super) fn of(seq: Seq, entry: &Entry) -> Self {
        let Entry { anchor, turn, late, .. } = *entry;
        let (tokens, standing) = (entry.count.tokens, Standing::of(&entry.message));
        Self::Message { seq, anchor, turn, tokens, edited: false, late, standing }
    }

    /// Its key, which orders the set.
    pub(super) const fn key(&self) -> Seq {
        match *self {
            Self::Message { seq, .. } => seq,
            Self::Summary { key, .. } => key,
        }
    }

    /// The place of a message that the revision `hidden_by` has hidden; a summary has none.
    pub(super) const fn place(&self, hidden_by: Option<Revision>) -> Option<(Seq, Place)> {
        match *self {
            Self::Message { seq, anchor, turn, .. } => Some((seq, Place { anchor, hidden_by, turn })),
            Self::Summary { .. } => None,
        }
    }

    /// The message with another visible size, `tokens`; `edited` is true for a shortened message.
    pub(super) fn shown(&self, tokens: Tokens, edited: bool) -> Self {
        match *self {
            Self::Message { seq, anchor, turn, late, standing, .. } => {
                Self::Message { seq, anchor, turn, tokens, edited, late, standing }
            }
            Self::Summary { .. } => self.clone(),
        }
    }

    pub(super) fn parse(text: &str) -> Result<Self, StoreError> {
        parse(text).ok_or_else(|| corrupt("what is visible cannot be read"))
    }

    /// The messages and summaries in the form that the checks of a commit use.
    pub(super) fn visible(members: &[Self]) -> Visible {
        let (mut messages, mut summaries) = (Vec::new(), Vec::new());
        for member in members {
            match member {
                Self::Message { seq, anchor, tokens, standing, .. } => {
                    let (seq, anchor, tokens, standing) = (*seq, *anchor, *tokens, *standing);
                    messages.push(VisibleMessage { seq, anchor, tokens, standing });
                }
                Self::Summary { key, revision: made, tokens, covers, standing, .. } => {
                    let (key, made, tokens, standing) = (*key, *made, *tokens, *standing);
                    summaries.push(VisibleSummary { key, made, covers: covers.clone(), tokens, standing });
                }
            }
        }
        Visible { messages, summaries }
    }
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message { seq, anchor, turn, tokens, edited, late, standing } => {
                let flags = match (edited, late) {
                    (true, true) => "el",
                    (true, false) => "e",
                    (false, true) => "l",
                    (false, false) => "-",
                };
                write!(f, "m {seq} {anchor} {} {} {flags} {}", turn.0, tokens.0, standing.number())
            }
            Self::Summary { key, revision, turn, tokens, covers, standing } => {
                write!(f, "s {key} {revision} {} {} ", turn.0, tokens.0)?;
                for (at, range) in covers.iter().enumerate() {
                    let comma = if at == 0 { "" } else { "," };
                    write!(f, "{comma}{}-{}", range.first, range.last)?;
                }
                write!(f, " {}", standing.number())
            }
        }
    }
}

fn parse(text: &str) -> Option<Member> {
    let mut words = text.split(' ');
    let kind = words.next()?;
    let (key, of) = (Seq(words.next()?.parse().ok()?), words.next()?.parse().ok()?);
    let (turn, tokens) = (Turn(words.next()?.parse().ok()?), Tokens(words.next()?.parse().ok()?));
    let (last, standing, None) = (words.next()?, words.next()?, words.next()) else { return None };
    let standing = Standing::parse(standing.parse().ok()?)?;
    match kind {
        "m" => {
            let (edited, late) = match last {
                "-" => (false, false),
                "e" => (true, false),
                "l" => (false, true),
                "el" => (true, true),
                _ => return None,
            };
            Some(Member::Message { seq: key, anchor: Seq(of), turn, tokens, edited, late, standing })
        }
        "s" => {
            let covers = last.split(',').map(parse_range).collect::<Option<_>>()?;
            Some(Member::Summary { key, revision: Revision(of), turn, tokens, covers, standing })
        }
        _ => None,
    }
}

fn parse_range(text: &str) -> Option<SeqRange> {
    let (first, last) = text.split_once('-')?;
    Some(SeqRange { first: Seq(first.parse().ok()?), last: Seq(last.parse().ok()?) })
}

/// The place of a message: its group, the revision that hid it, and its turn, as `ANCHOR REVISION TURN`. 0 stands for a
/// message that is not hidden, because no compaction has the revision 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) anchor: Seq,
    pub(super) hidden_by: Option<Revision>,
    pub(super) turn: Turn,
}

impl Place {
    pub(super) fn parse(text: &str) -> Result<Self, StoreError> {
        let mut words = text.split(' ');
        let mut number = || words.next().and_then(|word| word.parse::<u64>().ok());
        let (anchor, hidden_by, turn) = (number(), number(), number());
        match (anchor, hidden_by, turn.and_then(|turn| u32::try_from(turn).ok()), words.next()) {
            (Some(anchor), Some(hidden_by), Some(turn), None) => Ok(Self {
                anchor: Seq(anchor),
                hidden_by: Some(Revision(hidden_by)).filter(|revision| *revision != Revision(0)),
                turn: Turn(turn),
            }),
            _ => Err(corrupt("the place of a message cannot be read")),
        }
    }

    pub(super) const fn anchor(&self) -> Anchor {
        Anchor { anchor: self.anchor, hidden_by: self.hidden_by }
    }

    /// The beginning of the text of a place: its group, and the revision that hid it.
    pub(super) fn beginning(anchor: Anchor) -> String {
        format!("{} {}", anchor.anchor, anchor.hidden_by.unwrap_or_default())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", Self::beginning(self.anchor()), self.turn.0)
    }
}

/// The answer to an append, and its time: `DIGEST FIRST HEAD REVISION TIME`. The digest is `-` if one of the messages
/// was pruned; the time is `-` if it is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Receipt {
    pub(super) digest: String,
    pub(super) appended: Appended,
    pub(super) time: Option<Timestamp>,
}

impl Receipt {
    /// The text without the revision and the time, which the script adds.
    pub(super) fn beginning(digest: &str, first: Seq, head: Head) -> String {
        format!("{digest} {first} {head}")
    }

    /// Compares messages with this digest with the messages of the receipt.
    pub(super) fn compared(&self, digest: &str) -> SaidBefore {
        match self.digest.as_str() {
            PRUNED => SaidBefore::Pruned,
            known if known == digest => SaidBefore::Same,
            _ => SaidBefore::Other,
        }
    }

    /// The receipt after one of its messages was pruned.
    pub(super) fn into_pruned(self) -> Self {
        Self { digest: PRUNED.into(), ..self }
    }

    pub(super) fn parse(text: &str) -> Result<Self, StoreError> {
        let mut words = text.split(' ');
        let digest = words.next().unwrap_or_default().to_owned();
        let mut number = || words.next().and_then(|word| word.parse::<u64>().ok());
        let numbers = (number(), number(), number());
        let time = words.next().and_then(|word| match word {
            "-" => Some(None),
            word => word.parse().ok().map(|time| Some(Timestamp(time))),
        });
        match (numbers, time, words.next()) {
            ((Some(first), Some(head), Some(revision)), Some(time), None) => {
                Ok(Self { digest, appended: Appended::new(Seq(first), Seq(head), Revision(revision)), time })
            }
            _ => Err(corrupt("the answer to an append cannot be read")),
        }
    }
}

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Appended { first, head, revision, .. } = self.appended;
        write!(f, "{} {revision} ", Self::beginning(&self.digest, first, head))?;
        match self.time {
            Some(Timestamp(time)) => time.fmt(f),
            None => f.write_str("-"),
        }
    }
}

const PRUNED: &str = "-";

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn member() -> impl Strategy<Value = Member> {
        let numbers = (any::<u64>(), any::<u64>(), any::<u32>(), any::<u32>());
        let range =
            any::<(u64, u64)>().prop_map(|(one, other)| SeqRange { first: Seq(one), last: Seq(other) });
        let standing = (0_u64..13).prop_filter_map("no standing", Standing::parse);
        (numbers, any::<(bool, bool, bool)>(), vec(range, 1..4), standing).prop_map(
            |((key, of, turn, tokens), (summary, edited, late), covers, standing)| {
                let (key, turn, tokens) = (Seq(key), Turn(turn), Tokens(tokens));
                if summary {
                    Member::Summary { key, revision: Revision(of), turn, tokens, covers, standing }
                } else {
                    Member::Message { seq: key, anchor: Seq(of), turn, tokens, edited, late, standing }
                }
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(member in member(), anchor: u64, hidden_by: u64, turn: u32) {
            prop_assert_eq!(Member::parse(&member.to_string()).unwrap(), member);
            let hidden_by = Some(Revision(hidden_by % 5)).filter(|revision| *revision != Revision(0));
            let place = Place { anchor: Seq(anchor), hidden_by, turn: Turn(turn) };
            prop_assert_eq!(Place::parse(&place.to_string()).unwrap(), place);
            let appended = Appended::new(Seq(anchor), Seq(7), Revision(turn.into()));
            let time = Some(Timestamp(anchor)).filter(|_| turn % 2 == 0);
            let receipt = Receipt { digest: "d0".into(), appended, time };
            prop_assert_eq!(&Receipt::parse(&receipt.to_string()).unwrap(), &receipt);
            let said = [receipt.compared("d0"), receipt.compared("d1"), receipt.into_pruned().compared("d1")];
            prop_assert_eq!(said, [SaidBefore::Same, SaidBefore::Other, SaidBefore::Pruned]);
        }

        #[test]
        fn nothing_is_read_from_what_nobody_wrote(text in "[ms0-9 el,-]{0,16}") {
            if let Ok(member) = Member::parse(&text) {
                prop_assert_eq!(Member::parse(&member.to_string()).unwrap(), member);
            }
            if let Ok(place) = Place::parse(&text) {
                prop_assert_eq!(Place::parse(&place.to_string()).unwrap(), place);
            }
            if let Ok(receipt) = Receipt::parse(&text) {
                prop_assert_eq!(Receipt::parse(&receipt.to_string()).unwrap(), receipt);
            }
        }
    }
}
