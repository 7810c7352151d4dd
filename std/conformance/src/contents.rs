//! Scenarios of the content of messages and records: a store returns all of it unchanged.

use epitome_core::attribution::{Authority, Retention, SourceKind};
use epitome_core::message::{CallKind, MediaKind, Role};
use epitome_core::{Basis, Revision, Seq, Tokens, Turn};
use epitome_history::{Committed, Entry, TokenCount};
use epitome_message::{
    Approval, ApprovalAnswer, Attribution, CompactionPart, Media, MediaSource, Message, Part, Reasoning,
    ToolCall, ToolResult, UnknownPart, WireText,
};

use super::support::{
    Room, append, commit, edit, edited, entry, load, log, range, record, records, summarized, user,
};

/// Texts with a special meaning in databases, formats and languages.
const TEXTS: [&str; 12] = [
    "",
    "\0",
    "before\0after",
    "'; DROP TABLE messages; --",
    "\"\\u0000\\",
    "{\"role\":\"system\"}\n{}",
    "\r\n\u{85}\u{2028}\u{2029}\t ",
    "\u{feff}\u{fffd}\u{fffe}",
    "e\u{301} \u{e9} \u{1f642}\u{200d}\u{10ffff}",
    "\u{202e}\u{61c}",
    "%s $1 :name ?",
    "NULL",
];

/// Checks that the store returns all entries, in the projection and in the log.
async fn come_back(room: &Room<'_>, entries: &[Entry]) {
    append(room, "all", 0, entries).await.unwrap();
    for room in [room, &room.another().await] {
        assert!(load(room).await.live.iter().map(|live| &live.entry).eq(entries));
        assert!(log(room).await.iter().map(|logged| &logged.entry).eq(entries));
    }
}

pub(super) async fn any_text_is_kept(room: &Room<'_>) {
    let said = |(seq, text): (u64, &str)| {
        let parts = vec![Part::Text(text.into()), Part::ToolCall(ToolCall::new(text, text, text))];
        let message = Message::new(Role::Assistant, parts).with_id(text).with_name(text);
        let mut entry = entry(message.with_response_id(text).with_label(text), seq, 1);
        entry.count.counter = text.into();
        entry
    };
    let entries: Vec<Entry> = (0..).zip(TEXTS).map(said).collect();
    come_back(room, &entries).await;
    for (head, token) in (entries.len() as u64..).zip(TEXTS) {
        append(room, token, head, &[user(head)]).await.unwrap();
        assert_eq!(append(room, token, 0, &[user(head)]).await.unwrap().first, Seq(head));
    }
}

pub(super) async fn any_text_of_a_record_is_kept(room: &Room<'_>) {
    let texts = TEXTS.len() as u64;
    // Texts of the model may become any text.
    let said = (texts..2 * texts).map(|seq| entry(Message::assistant(format!("answer {seq}")), seq, 1));
    let entries: Vec<Entry> = (0..texts).map(user).chain(said).collect();
    append(room, "t", 0, &entries).await.unwrap();
    let head = entries.len() as u64;
    let mut committed = Vec::new();
    for (parent, text) in (0..).zip(TEXTS) {
        let mut record = summarized(record(parent, head, &[(parent, parent)]), &[&[(parent, parent)]]);
        let message = record.summaries[0].message.clone();
        record.summaries[0].message = message.with_parts(vec![Part::Text(text.into())]);
        record.strategy = text.into();
        if !text.trim().is_empty() {
            record = edited(record, &[edit(parent + texts, &[(0, Some(text))], 9)]);
        }
        commit(room, &record).await.unwrap();
        committed.push(Committed::new(Revision(parent + 1), record));
    }
    for room in [room, &room.another().await] {
        assert_eq!(records(room).await, committed);
        let loaded = load(room).await;
        for (text, summary) in TEXTS.iter().zip(&loaded.live) {
            assert_eq!(summary.entry.message.parts(), [Part::Text((*text).into())]);
        }
        for (text, shown) in TEXTS.iter().zip(&loaded.live[TEXTS.len()..]) {
            if !text.trim().is_empty() {
                assert_eq!(shown.entry.message.parts(), [Part::Text((*text).into())]);
            }
        }
    }
}

pub(super) async fn every_kind_of_part_is_kept(room: &Room<'_>) {
    let mut sealed = Reasoning::new("Hm.");
    (sealed.id, sealed.opaque) = (Some("r1".into()), Some("c2VhbGVk".into()));
    let mut hosted = ToolCall::new("h", "search", r#"{ "q" : 1.0e2 }"#);
    hosted.kind = CallKind::Hosted;
    let mut failed = ToolResult::new("h", vec![Part::Text("no".into()), Part::Text("such page".into())]);
    failed.is_error = true;
    let mut image = Media::new(MediaKind::Image, "image/png", MediaSource::Base64("iVBORw0=".into()));
    (image.extent.pixels, image.extent.low_detail) = (Some((640, 480)), true);
    let sound = Media::new(MediaKind::Audio, "", MediaSource::Uri("file-1".into()));
    let approval = Approval::new("p", "c");
    let said = vec![
        Part::Reasoning(sealed),
        Part::Text("Words.".into()),
        Part::ToolCall(hosted),
        Part::ToolResult(failed),
        Part::ToolCall(ToolCall::new("c", "read", "not json")),
        Part::ApprovalRequest(approval.clone()),
        Part::Compaction(CompactionPart::new("openai", "", Some("b3BhcXVl".into()))),
        Part::Unknown(UnknownPart::new("gemini", "executableCode", r#"{"code": "1"}"#)),
    ];
    let shown = vec![Part::Media(image), Part::Media(sound), Part::Text("What is it?".into())];
    let entries = [
        entry(Message::new(Role::User, shown), 0, 1),
        entry(Message::new(Role::Assistant, said), 1, 1),
        entry(
            Message::new(Role::User, vec![Part::ApprovalResponse(ApprovalAnswer::new(approval, true))]),
            1,
            1,
        ),
        entry(Message::tool("c", ""), 1, 1),
        entry(Message::new(Role::Developer, vec![]), 4, 2),
    ];
    come_back(room, &entries).await;
}

pub(super) async fn what_a_message_says_of_itself_is_kept(room: &Room<'_>) {
    let pinned = Attribution::new("notes", SourceKind::Context, Authority::Retrieved)
        .with_retention(Retention::Pinned)
        .with_derived_from(vec![range(3, 5), range(9, 9)])
        .with_label("important");
    let raw = r#"{"role" : "user", "content":"Hi", "extra":1.50}"#;
    let mut wire = WireText::new("openai-chat".into(), raw.into()).with_rejoin(true);
    wire.touched = true;
    let entries = [
        entry(Message::user("Hi").with_attribution(pinned), 0, 1),
        entry(Message::user("Hi").with_wire(wire), 1, 2),
        entry(Message::assistant("It is").with_incomplete(true).with_response_id("resp_1"), 2, 2),
        entry(Message::system("Be brief.").with_name("operator").with_id("m1"), 3, 2),
    ];
    come_back(room, &entries).await;
}

pub(super) async fn counts_are_kept_as_they_are_given(room: &Room<'_>) {
    let bases = [(0, Basis::Estimated), (1, Basis::Counted), (2, Basis::Reported)];
    let entries = bases.map(|(seq, basis)| {
        let mut entry = user(seq);
        entry.count = TokenCount::new(Tokens(u32::MAX), basis, format!("counter {seq}").into());
        entry.turn = Turn(u32::MAX);
        entry.part_tokens = vec![Tokens(u32::MAX)];
        entry
    });
    come_back(room, &entries).await;
    let info = &room.list(None, 1).await.unwrap()[0];
    assert_eq!((info.live_messages, info.live_tokens), (3, 3 * u64::from(u32::MAX)));
}

pub(super) async fn a_thousand_messages_are_one_append(room: &Room<'_>) {
    let entries: Vec<Entry> = (0..1_000).map(user).collect();
    come_back(room, &entries).await;
    let hides: Vec<(u64, u64)> = (0..499).map(|pair| (2 * pair, 2 * pair)).collect();
    commit(room, &record(0, 1_000, &hides)).await.unwrap();
    let info = &room.list(None, 1).await.unwrap()[0];
    assert_eq!((info.head, info.live_messages, info.live_tokens), (Seq(1_000), 501, 5_010));
    assert_eq!(load(room).await.live.len(), 501);
}
