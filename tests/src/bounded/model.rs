//! The reference list for a history of fixed capacity. `Vec` removes the messages; the list encodes, moves and counts
//! nothing.

use epitome_core::attribution::{Authority, SeqRange};
use epitome_core::message::{MessageView, PartView};
use epitome_core::{Group, PartKind, Placed, Seq, ToolName};

use super::History;

/// Entry of a message in the list.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) seq: u64,
    pub(super) anchor: u64,
    pub(super) turn: u32,
    pub(super) tokens: u32,
    pub(super) said: String,
    pub(super) elided: bool,
}

impl Entry {
    /// Text of a result, as `Debug` writes it.
    pub(super) fn result(&self) -> Option<&str> {
        let (before, text) = self.said.split_once("<Text(")?;
        before.contains("ToolResult").then_some(text)
    }
}

/// The list.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Model {
    pub(super) entries: Vec<Entry>,
    /// The sequence numbers, in projection order.
    pub(super) order: Vec<u64>,
    /// The parts that may be elided: place, size, whether it is an error, kind and tool.
    pub(super) rows: Vec<(u32, u32, bool, PartKind, Option<ToolName>)>,
}

pub(super) fn said<M: MessageView + ?Sized>(message: &M) -> String {
    let mut said = format!("{:?} {:?} {:?}", message.role(), message.attribution(), message.response_id());
    message.for_each_part(&mut |part| {
        said += &format!(" {part:?}");
        if let PartView::ToolResult(result) = part {
            result.content.for_each_part(&mut |part| said += &format!("<{part:?}>"));
        }
    });
    said
}

pub(super) const ALL: SeqRange = SeqRange { first: Seq(0), last: Seq(u64::MAX) };

/// The visible state of a history: its messages, their groups and order, and its parts.
pub(super) fn shown(history: &History) -> Model {
    let stored: Vec<_> = history.messages_in(ALL).collect();
    let mut entries: Vec<Entry> = Vec::new();
    for (at, message) in stored.iter().enumerate() {
        let at = u32::try_from(at).unwrap();
        let owner = |group: &Group<'_>| group.positions().any(|range| range.contains(&at));
        let mut groups = history.index().groups().filter(owner);
        let (group, None) = (groups.next().unwrap(), groups.next()) else { panic!("one group each") };
        let first = group.positions().next().unwrap().start as usize;
        entries.push(Entry {
            seq: message.seq().0,
            anchor: stored[first].seq().0,
            turn: group.turn().0,
            tokens: message.tokens().0,
            said: said(message),
            elided: message.is_elided(),
        });
    }
    let rows = history
        .index()
        .parts()
        .map(|part| (part.position(), part.tokens().0, part.is_error(), part.kind(), part.tool()));
    Model {
        entries,
        order: history.messages().map(|message| message.seq().0).collect(),
        rows: rows.collect(),
    }
}

/// Checks that the history has the messages and groups of the list, and that earlier messages keep their order.
pub(super) fn check(history: &History, model: &mut Model) {
    let now = shown(history);
    assert_eq!(now.entries, model.entries);
    assert_eq!(history.len(), model.entries.len());
    assert_eq!(history.tokens(), model.entries.iter().map(|entry| u64::from(entry.tokens)).sum::<u64>());
    // Each message is projected once, and earlier messages keep their order.
    let mut sorted = now.order.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, model.entries.iter().map(|entry| entry.seq).collect::<Vec<_>>());
    let kept = |order: &[u64], other: &[u64]| {
        order.iter().copied().filter(|seq| other.contains(seq)).collect::<Vec<_>>()
    };
    assert_eq!(kept(&now.order, &model.order), kept(&model.order, &now.order));
    model.order = now.order;
    let results =
        (0_u32..).zip(&model.entries).filter(|(_, entry)| !entry.elided && entry.result().is_some());
    model.rows = results
        .map(|(at, entry)| {
            let size = entry.tokens - epitome_core::MESSAGE_TOKENS;
            (at, size, false, PartKind::ToolResult, Some(ToolName::new("tool")))
        })
        .collect();
    assert_eq!(now.rows, model.rows);
    for group in history.index().groups() {
        let anchor = &model.entries[group.positions().next().unwrap().start as usize];
        let members = model.entries.iter().filter(|entry| entry.anchor == anchor.anchor);
        assert_eq!(group.tokens().0, members.map(|entry| entry.tokens).sum::<u32>());
    }
}

/// Adds the message that a push stored.
pub(super) fn note(history: &History, model: &mut Model, placed: Placed, expected: Option<String>) {
    if placed.orphan || placed.hidden {
        return;
    }
    let message = history.messages_in(ALL).last().unwrap();
    let said = expected.unwrap_or_else(|| said(&message));
    let (anchor, turn) = (placed.anchor.0, placed.turn.0);
    model.entries.push(Entry {
        seq: message.seq().0,
        anchor,
        turn,
        tokens: message.tokens().0,
        said,
        elided: false,
    });
}

/// The authority of the message of an entry.
pub(super) fn authority(entry: &Entry) -> Authority {
    let all = [
        Authority::Retrieved,
        Authority::Assistant,
        Authority::User,
        Authority::Developer,
        Authority::System,
    ];
    all.into_iter().find(|one| entry.said.contains(&format!("authority: {one:?}"))).unwrap()
}
