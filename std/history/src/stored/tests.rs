//! The stored form of version 1, as fixed texts.

mod drawn;

use epitome_core::message::{CallKind, MediaKind};
use epitome_core::{Basis, Revision, Tokens, Turn};
use epitome_message::{
    Approval, ApprovalAnswer, CompactionPart, Media, MediaSource, Reasoning, ToolCall, ToolResult,
    UnknownPart,
};
use proptest::prelude::*;

use super::*;
use crate::{CompactionRecord, MessageEdit, PartStandIn, Summary, TokenCount, UnansweredCall};

/// One part of each kind with every field set, and its form in version 1. These lines are on the disks of users: lines
/// may be added, never changed.
fn parts_v1() -> Vec<(Part, &'static str)> {
    let mut call = ToolCall::new("c1", "search", r#"{"q":"x"}"#);
    call.kind = CallKind::Hosted;
    let mut result = ToolResult::new("c1", vec![Part::Text("42".into())]);
    result.is_error = true;
    let mut image = Media::new(MediaKind::Image, "image/png", MediaSource::Base64("iVBO".into()));
    image.extent.pixels = Some((640, 480));
    image.extent.low_detail = true;
    let mut paper = Media::new(MediaKind::Document, "", MediaSource::Uri("https://a.example/p.pdf".into()));
    paper.extent.pages = Some(3);
    let mut sound = Media::new(MediaKind::Audio, "audio/wav", MediaSource::Uri("file-1".into()));
    sound.extent.millis = Some(1500);
    let film = Media::new(MediaKind::Video, "video/mp4", MediaSource::Uri("file-2".into()));
    let mut sealed = Reasoning::new("Hm.");
    sealed.id = Some("r1".into());
    sealed.opaque = Some("c2ln".into());
    let approval = Approval::new("a1", "c1");
    vec![
        (Part::Text("Hi\n\u{0}\u{1F642}".into()), r#"{"text":"Hi\n\u0000🙂"}"#),
        (Part::Reasoning(Reasoning::new("Hm.")), r#"{"reasoning":{"text":"Hm."}}"#),
        (Part::Reasoning(sealed), r#"{"reasoning":{"id":"r1","text":"Hm.","opaque":"c2ln"}}"#),
        (
            Part::ToolCall(ToolCall::new("c1", "ls", "{}")),
            r#"{"tool_call":{"id":"c1","name":"ls","arguments":"{}"}}"#,
        ),
        (
            Part::ToolCall(call),
            r#"{"tool_call":{"id":"c1","name":"search","arguments":"{\"q\":\"x\"}","kind":"hosted"}}"#,
        ),
        (
            Part::ToolResult(result),
            r#"{"tool_result":{"call_id":"c1","parts":[{"text":"42"}],"is_error":true}}"#,
        ),
        (
            Part::Media(image),
            r#"{"media":{"kind":"image","mime":"image/png","source":{"base64":"iVBO"},"pixels":[640,480],"low_detail":true}}"#,
        ),
        (
            Part::Media(paper),
            r#"{"media":{"kind":"document","source":{"uri":"https://a.example/p.pdf"},"pages":3}}"#,
        ),
        (
            Part::Media(sound),
            r#"{"media":{"kind":"audio","mime":"audio/wav","source":{"uri":"file-1"},"millis":1500}}"#,
        ),
        (Part::Media(film), r#"{"media":{"kind":"video","mime":"video/mp4","source":{"uri":"file-2"}}}"#),
        (Part::ApprovalRequest(approval.clone()), r#"{"approval_request":{"id":"a1","call_id":"c1"}}"#),
        (
            Part::ApprovalResponse(ApprovalAnswer::new(approval, true)),
            r#"{"approval_response":{"id":"a1","call_id":"c1","approved":true}}"#,
        ),
        (
            Part::Compaction(CompactionPart::new("openai", "so far", Some("b3Bh".into()))),
            r#"{"compaction":{"provider":"openai","text":"so far","opaque":"b3Bh"}}"#,
        ),
        (
            Part::Compaction(CompactionPart::new("openai", "", Some("b3Bh".into())).with_model("m")),
            r#"{"compaction":{"provider":"openai","model":"m","opaque":"b3Bh"}}"#,
        ),
        (
            Part::Compaction(
                CompactionPart::new("openai", "", Some("b3Bh".into())).with_tokens(Some(Tokens(700))),
            ),
            r#"{"compaction":{"provider":"openai","opaque":"b3Bh","tokens":700}}"#,
        ),
        (
            Part::Unknown(UnknownPart::new("gemini", "hologram", r#"{"z":1.0}"#)),
            r#"{"unknown":{"format":"gemini","kind":"hologram","raw":"{\"z\":1.0}"}}"#,
        ),
        (
            // The form before formats were written.
            Part::Unknown(UnknownPart::new("", "hologram", r#"{"z":1.0}"#)),
            r#"{"unknown":{"kind":"hologram","raw":"{\"z\":1.0}"}}"#,
        ),
    ]
}

#[test]
fn each_kind_of_part_is_written_as_version_1_says() {
    for (part, expected) in parts_v1() {
        let message = Message::new(Role::Assistant, vec![part]);
        let text = format!(
            r#"{{"v":1,"role":"assistant","parts":[{expected}],"attr":{{"source":"caller","authority":"assistant"}}}}"#
        );
        assert_eq!(encode(&message).unwrap(), text);
        assert_eq!(decode(&text).unwrap(), message);
    }
}

#[test]
fn every_field_of_a_message_is_written_as_version_1_says() {
    let attribution = Attribution::new("summaries", SourceKind::Compaction, Authority::Retrieved)
        .with_retention(Retention::Pinned)
        .with_derived_from(vec![SeqRange { first: Seq(3), last: Seq(9) }])
        .with_label("important");
    let mut wire = WireText::new("openai-chat".into(), r#"{"role":"user"}"#.into());
    wire.touched = true;
    let message = Message::new(Role::User, vec![])
        .with_attribution(attribution)
        .with_id("m1")
        .with_response_id("r1")
        .with_name("Ada")
        .with_wire(wire);
    let text = concat!(
        r#"{"v":1,"role":"user","parts":[],"attr":{"source_id":"summaries","source":"compaction","#,
        r#""authority":"retrieved","retention":"pinned","derived_from":[[3,9]],"label":"important"},"#,
        r#""id":"m1","response_id":"r1","name":"Ada","#,
        r#""wire":{"format":"openai-chat","text":"{\"role\":\"user\"}","touched":true}}"#
    );
    assert_eq!(encode(&message).unwrap(), text);
    assert_eq!(decode(text).unwrap(), message);
}

fn record() -> CompactionRecord {
    let mut record = CompactionRecord::new(Revision(4), Seq(12));
    record.hides = vec![SeqRange { first: Seq(0), last: Seq(3) }, SeqRange { first: Seq(5), last: Seq(8) }];
    let count = TokenCount::new(Tokens(7), Basis::Estimated, "default".into());
    record.summaries = vec![Summary::new(Seq(5), Message::assistant("so far"), count)];
    record.unanswered = vec![UnansweredCall::new("c1".into(), Seq(6), Turn(2), 1)];
    record.strategy = "summarization".into();
    record.tokens_before = 900;
    record.tokens_after = 100;
    record
}

#[test]
fn a_record_is_written_as_version_1_says() {
    let text = concat!(
        r#"{"v":1,"parent":4,"head":12,"hides":[[0,3],[5,8]],"#,
        r#""summaries":[{"key":5,"message":{"v":1,"role":"assistant","parts":[{"text":"so far"}],"#,
        r#""attr":{"source":"caller","authority":"assistant"}},"tokens":7,"basis":"estimated","counter":"default"}],"#,
        r#""unanswered":[{"id":"c1","anchor":6,"turn":2,"ordinal":1}],"#,
        r#""strategy":"summarization","tokens_before":900,"tokens_after":100}"#
    );
    assert_eq!(encode_record(&record()).unwrap(), text);
    assert_eq!(decode_record(text).unwrap(), record());
    let newer = text.replacen(r#""message":{"v":1"#, r#""message":{"v":3"#, 1);
    assert_eq!(decode_record(&newer), Err(StoredError::Version { found: 3 }));
}

fn editing_record() -> CompactionRecord {
    let mut record = CompactionRecord::new(Revision(4), Seq(12));
    let count = TokenCount::new(Tokens(7), Basis::Counted, "o200k_base".into());
    let stand_ins = vec![PartStandIn::new(0, None), PartStandIn::new(2, Some("{}".into()))];
    record.edits = vec![MessageEdit::new(Seq(3), stand_ins, count)];
    record
}

#[test]
fn a_record_that_shortens_parts_is_written_as_version_2_says() {
    let text = concat!(
        r#"{"v":2,"parent":4,"head":12,"hides":[],"#,
        r#""edits":[{"seq":3,"stand_ins":[[0,null],[2,"{}"]],"tokens":7,"basis":"counted","counter":"o200k_base"}],"#,
        r#""strategy":"","tokens_before":0,"tokens_after":0}"#
    );
    assert_eq!(encode_record(&editing_record()).unwrap(), text);
    assert_eq!(decode_record(text).unwrap(), editing_record());
    let id = record_id(&editing_record()).unwrap();
    let changes: [fn(&mut MessageEdit); 5] = [
        |edit| edit.seq = Seq(4),
        |edit| edit.stand_ins[0].text = Some("".into()),
        |edit| edit.stand_ins[1].text = Some("[]".into()),
        |edit| edit.stand_ins[1].ordinal = 1,
        |edit| edit.stand_ins.truncate(1),
    ];
    for change in changes {
        let mut other = editing_record();
        change(&mut other.edits[0]);
        assert_ne!(record_id(&other).unwrap(), id);
    }
    let mut same = editing_record();
    same.edits[0].count.tokens = Tokens(8);
    assert_eq!(record_id(&same).unwrap(), id, "sizes are notes");
}

#[test]
fn a_record_is_named_by_what_it_does() {
    let id = record_id(&record()).unwrap();
    assert_eq!(id.to_string(), "db89f9fd2b16bd591f4f78e787a63c4d");
    let mut same = record();
    same.strategy = "other".into();
    same.tokens_after = 0;
    assert_eq!(record_id(&same).unwrap(), id);
    let changes: [fn(&mut CompactionRecord); 5] = [
        |record| record.parent = Revision(5),
        |record| record.head = Seq(13),
        |record| record.hides.truncate(1),
        |record| record.summaries.clear(),
        |record| record.summaries[0].message = Message::assistant("so fa"),
    ];
    for change in changes {
        let mut other = record();
        change(&mut other);
        assert_ne!(record_id(&other).unwrap(), id);
    }
}

#[test]
fn unknown_fields_are_passed_over() {
    let text = r#"{"v":1,"mood":{"x":[1]},"role":"user","parts":[{"tool_call":{"id":"c","name":"n","arguments":"","then":0}}],"attr":{"source":"caller","authority":"user","from":"here"}}"#;
    let message = Message::new(Role::User, vec![Part::ToolCall(ToolCall::new("c", "n", ""))]);
    assert_eq!(decode(text).unwrap(), message);
}

#[test]
fn a_newer_version_is_named_and_damage_is_located_without_quoting() {
    let newer = [
        r#"{"v":7,"role":"user","parts":[],"attr":{"source":"caller","authority":"user"}}"#,
        r#"{"v":7,"content":"secret"}"#,
    ];
    for text in newer {
        assert_eq!(decode(text), Err(StoredError::Version { found: 7 }));
    }
    let damaged = [
        "",
        "{",
        "secret",
        r#"{"v":"secret"}"#,
        r#"{"v":1,"role":"secret","parts":[],"attr":{"source":"caller","authority":"user"}}"#,
        r#"{"v":1,"attr":{"source":"caller","authority":"user"}}"#,
        r#"{"v":1,"role":"user","parts":[{"secret":1}],"attr":{"source":"caller","authority":"user"}}"#,
    ];
    for text in damaged {
        let error = decode(text).unwrap_err();
        assert!(matches!(error, StoredError::Malformed { .. }), "{text}: {error:?}");
        assert!(!format!("{error} {error:?}").contains("secret"));
    }
}

/// A format for this test: the text is a message of the user.
fn plain(format: &str) -> Option<Reader> {
    let read: Reader = |text| {
        let wire = WireText::new("plain".into(), text.into());
        (text != "?").then(|| Message::user(text).with_wire(wire))
    };
    (format == "plain").then_some(read)
}

#[test]
fn an_untouched_message_of_a_registered_format_is_stored_as_its_text() {
    let read = plain("plain").unwrap()("Hello").unwrap();
    let message = read.with_attribution(Attribution::caller(Authority::User).with_label("kept"));
    let text = to_json(&StoredMessage::of(&message, plain).unwrap()).unwrap();
    assert_eq!(
        text,
        r#"{"v":1,"attr":{"source":"caller","authority":"user","label":"kept"},"wire":{"format":"plain","text":"Hello"}}"#
    );
    let stored: StoredMessage = from_json(&text).unwrap();
    assert_eq!(stored.into_message(plain).unwrap(), message);
    assert_eq!(decode(&text), Err(StoredError::Unread { format: "plain".into() }));
}

#[test]
fn ids_stand_beside_a_text_that_is_held_once() {
    let read = plain("plain").unwrap()("Hello").unwrap();
    let message = read.with_id("m1").with_response_id("r1");
    assert!(!message.wire().unwrap().touched);
    let text = to_json(&StoredMessage::of(&message, plain).unwrap()).unwrap();
    assert_eq!(
        text,
        r#"{"v":1,"attr":{"source":"caller","authority":"user"},"id":"m1","response_id":"r1","wire":{"format":"plain","text":"Hello"}}"#
    );
    assert_eq!(from_json::<StoredMessage>(&text).unwrap().into_message(plain).unwrap(), message);
}

#[test]
fn version_0_is_damage_and_not_newer() {
    let whole = encode(&Message::user("x")).unwrap().replace(r#""v":1"#, r#""v":0"#);
    for text in [whole.as_str(), r#"{"v":0,"content":"secret"}"#] {
        assert_eq!(decode(text), Err(StoredError::Malformed { column: 0 }));
    }
    let text = encode_record(&record()).unwrap().replace(r#""message":{"v":1"#, r#""message":{"v":0"#);
    assert_eq!(decode_record(&text), Err(StoredError::Malformed { column: 0 }));
}

#[test]
fn a_message_that_its_reader_would_not_give_again_is_written_out() {
    let wire = || WireText::new("plain".into(), "Hello".into());
    let touched = Message::user("Hello").with_wire(wire()).with_name("Ada");
    let other = Message::user("Bye").with_wire(wire());
    let foreign = Message::user("Hello").with_wire(WireText::new("other".into(), "Hello".into()));
    let unreadable = Message::user("?").with_wire(WireText::new("plain".into(), "?".into()));
    for message in [touched, other, foreign, unreadable] {
        let text = to_json(&StoredMessage::of(&message, plain).unwrap()).unwrap();
        assert!(text.contains(r#""parts""#));
        assert_eq!(from_json::<StoredMessage>(&text).unwrap().into_message(plain).unwrap(), message);
    }
}

#[test]
fn what_could_not_be_read_again_is_not_written() {
    let nest = |levels: usize| {
        (0..levels).fold(Part::Text("x".into()), |part, _| Part::ToolResult(ToolResult::new("c", vec![part])))
    };
    let deepest = Message::new(Role::Tool, vec![nest(NESTING_MAX)]);
    assert_eq!(decode(&encode(&deepest).unwrap()).unwrap(), deepest);
    let deeper = Message::new(Role::Tool, vec![nest(NESTING_MAX + 1)]);
    assert_eq!(encode(&deeper), Err(StoredError::TooDeep));
}
