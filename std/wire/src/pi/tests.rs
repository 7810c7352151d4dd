//! Session files of pi, read, changed and written back.

use epitome_core::message::Role;
use epitome_message::{Message, Part, ToolCall, ToolResult};

use crate::json;
use crate::tests::support::{shown_in, written};
use crate::{
    Conversation, Format, ReadOptions, Relation, Transcript, TranscriptEntry, WireErrorKind, detect, read,
    write_back,
};

const HEAD: &str = r#"{"type":"session","id":"s","timestamp":"t","cwd":"/","provider":"anthropic"}"#;
const USER: &str =
    r#"{"type":"message","timestamp":"t","message":{"role":"user","content":[{"type":"text","text":"go"}]}}"#;
const CALL: &str = r#"{"type":"message","timestamp":"t","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm","thinkingSignature":"s"},{"type":"text","text":"look"},{"type":"toolCall","id":"c1","name":"ls","arguments":{"n":1.0}}],"usage":{"input":10,"output":5,"cacheRead":90,"cacheWrite":0},"stopReason":"toolUse"}}"#;
const RESULT: &str = r#"{"type":"message","timestamp":"t","message":{"role":"toolResult","toolCallId":"c1","toolName":"ls","content":[{"type":"text","text":"a.txt"}],"isError":false}}"#;
const ABORTED: &str = r#"{"type":"message","timestamp":"t","message":{"role":"assistant","content":[],"usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0},"stopReason":"aborted"}}"#;
const CHANGE: &str = r#"{"type":"model_change","timestamp":"t","provider":"openai","modelId":"m"}"#;

fn transcript(lines: &[String]) -> Transcript {
    let text = lines.join("\n");
    assert_eq!(detect(&text).unwrap().format, Format::Pi);
    let transcript = read(text.as_str(), &ReadOptions::default()).unwrap();
    assert_eq!(written(&transcript), text);
    transcript
}

/// The entry with this id, after the entry `parent`.
fn named(entry: &str, id: &str, parent: &str) -> String {
    let parent = if parent.is_empty() { "null".to_owned() } else { format!("\"{parent}\"") };
    entry.replacen('{', &format!("{{\"id\":\"{id}\",\"parentId\":{parent},"), 1)
}

#[test]
fn early_files_are_one_conversation() {
    let lines = [HEAD, USER, ABORTED, CHANGE, CALL, RESULT].map(str::to_owned);
    let mut transcript = transcript(&lines);
    let conversation = &mut transcript.conversations_mut()[0];
    let expected = [
        "user: text go",
        "assistant: reasoning hm | text look | call c1 ls {\"n\":1.0}",
        "tool: result c1 [text a.txt]",
    ];
    assert_eq!(shown_in(conversation), expected);
    assert_eq!((conversation.usage[0].at, conversation.usage[0].usage.input_total), (1, Some(100)));
    let cleared = Part::ToolResult(ToolResult::new("c1", vec![Part::Text("-".into())]));
    let changed = conversation.entries[2].message().clone().with_parts(vec![cleared]);
    conversation.entries[2] = conversation.entries[2].clone().with_message(changed);
    let mut parts = conversation.entries[1].message().parts().to_vec();
    parts[1] = Part::Text("Look.".into());
    conversation.entries[1] = conversation.entries[1]
        .clone()
        .with_message(conversation.entries[1].message().clone().with_parts(parts));
    conversation.entries.remove(0);
    let expected =
        [HEAD, ABORTED, CHANGE, &CALL.replace("\"look\"", "\"Look.\""), &RESULT.replace("a.txt", "-")]
            .join("\n");
    assert_eq!(written(&transcript), expected);
}

#[test]
fn entries_with_names_are_a_tree() {
    let lines = [
        HEAD.to_owned(),
        named(USER, "a", ""),
        named(CALL, "b", "a"),
        named(RESULT, "c", "b"),
        named(&USER.replace("go", "left"), "d", "c"),
        named(&USER.replace("go", "right"), "e", "c"),
    ];
    let mut transcript = transcript(&lines);
    let of = |one: &Conversation| (one.id.to_string(), one.relation, one.entries.len());
    let found: Vec<_> = transcript.conversations().iter().map(of).collect();
    assert_eq!(found, [("s".to_owned(), Relation::Own, 4), ("d".to_owned(), Relation::Branch(0), 4)]);
    let other = read(lines.join("\n"), &ReadOptions::default().with_leaf("d")).unwrap();
    assert_eq!(shown_in(other.active().unwrap())[3], "user: text left");
    for conversation in transcript.conversations_mut() {
        conversation.entries.drain(1..3);
    }
    let expected = [
        lines[0].clone(),
        lines[1].clone(),
        named(&USER.replace("go", "left"), "d", "a"),
        named(&USER.replace("go", "right"), "e", "a"),
    ];
    assert_eq!(written(&transcript), expected.join("\n"));
}

#[test]
fn a_new_message_stands_between_two_entries() {
    let lines = [
        HEAD.to_owned(),
        named(USER, "a", ""),
        named(CALL, "b", "a"),
        named(RESULT, "c", "b"),
        named(&USER.replace("go", "on"), "d", "c"),
    ];
    let mut transcript = transcript(&lines);
    let entries = &mut transcript.conversations_mut()[0].entries;
    entries.drain(1..3);
    entries.insert(1, TranscriptEntry::new(Message::assistant("seen: \"a.txt\"")));
    let out = written(&transcript);
    let line = out.lines().nth(2).unwrap();
    let name = json::decode(json::field(line, "id").unwrap().unwrap()).into_owned();
    assert_eq!(name.len(), 8);
    assert_eq!(
        line,
        format!(
            r#"{{"type":"message","id":"{name}","parentId":"a","timestamp":"t","message":{{"role":"assistant","content":[{{"type":"text","text":"seen: \"a.txt\""}}],"api":"","provider":"","model":"","usage":{{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}}},"stopReason":"stop"}}}}"#
        )
    );
    let expected = [
        lines[0].clone(),
        lines[1].clone(),
        line.to_owned(),
        lines[4].replace("\"c\"", &format!("\"{name}\"")),
    ];
    assert_eq!(out, expected.join("\n"));
    let again = read(out.as_str(), &ReadOptions::default()).unwrap();
    assert_eq!(shown_in(&again.conversations()[0]), shown_in(&transcript.conversations()[0]));
    // In a file without names, a new message has no name either.
    let mut early = self::transcript(&[HEAD, USER, CALL, RESULT].map(str::to_owned));
    for at in [0, 2, 5] {
        early.conversations_mut()[0]
            .entries
            .insert(at, TranscriptEntry::new(Message::user(format!("note {at}"))));
    }
    let out = written(&early);
    assert!(!out.contains("parentId"), "{out}");
    let again = read(out.as_str(), &ReadOptions::default()).unwrap();
    assert_eq!(shown_in(&again.conversations()[0]), shown_in(&early.conversations()[0]));
    early.conversations_mut()[0]
        .entries
        .push(TranscriptEntry::new(Message::new(Role::Developer, Vec::new())));
    assert_eq!(write_back(&early, &mut Vec::new()).unwrap_err().kind(), WireErrorKind::Unsupported);
}

#[test]
fn a_new_message_is_refused_where_entries_have_no_names_of_their_own() {
    let push = |lines: &[String]| {
        let mut new = transcript(lines);
        new.conversations_mut()[0].entries.push(TranscriptEntry::new(Message::user("note")));
        write_back(&new, &mut Vec::new()).map_err(|error| error.kind())
    };
    let one = |id, parent| named(USER, id, parent);
    assert_eq!(push(&[HEAD.to_owned(), one("a", ""), one("x", "a")]), Ok(()));
    let twice = [HEAD.to_owned(), one("a", ""), one("x", "a"), one("x", "x")];
    assert_eq!(push(&twice), Err(WireErrorKind::Unsupported));
    let mixed = [HEAD.to_owned(), one("a", ""), USER.to_owned(), one("b", "a")];
    assert_eq!(push(&mixed), Err(WireErrorKind::Unsupported));
}

#[test]
fn a_compaction_puts_its_summary_before_what_it_kept() {
    let compaction = r#"{"type":"compaction","timestamp":"t","summary":"so far","firstKeptEntryId":"d","tokensBefore":900}"#;
    let lines = [
        HEAD.to_owned(),
        named(USER, "a", ""),
        named(CALL, "b", "a"),
        named(RESULT, "c", "b"),
        named(&USER.replace("go", "kept"), "d", "c"),
        named(compaction, "e", "d"),
        named(&USER.replace("go", "after"), "f", "e"),
    ];
    let transcript = transcript(&lines);
    let [one, before] = transcript.conversations() else { panic!("{transcript:?}") };
    assert_eq!((before.entries.len(), &*before.id, before.relation), (4, "d", Relation::Branch(0)));
    assert_eq!(shown_in(one), ["user: text so far", "user: text kept", "user: text after"]);
    let found = one.compactions.get(0).unwrap();
    assert_eq!((found.at, found.dropped, found.tokens_before), (0, Some(3), Some(900)));
    for at in 0..=3 {
        let mut new = transcript.clone();
        new.conversations_mut()[0].entries.insert(at, TranscriptEntry::new(Message::user("note")));
        let mut out = Vec::new();
        match write_back(&new, &mut out) {
            Ok(()) => {
                let again = read(String::from_utf8(out).unwrap(), &ReadOptions::default()).unwrap();
                assert_eq!(shown_in(&again.conversations()[0]), shown_in(&new.conversations()[0]), "{at}");
            }
            // The kept messages of a compaction begin with an entry that the compaction names.
            Err(error) => assert_eq!((at < 2, error.kind()), (true, WireErrorKind::Unsupported)),
        }
    }
    // A branch beside it has the summary too.
    let beside = [&lines[..], &[named(&USER.replace("go", "beside"), "g", "e")]].concat();
    let mut replaced = self::transcript(&beside);
    replaced.conversations_mut()[0].entries.clear();
    replaced.conversations_mut()[0].entries.push(TranscriptEntry::new(Message::user("note")));
    let error = write_back(&replaced, &mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), WireErrorKind::Unsupported, "what was before would come back");
    let mut without = transcript.clone();
    without.conversations_mut()[0].entries.remove(0);
    let error = write_back(&without, &mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), WireErrorKind::Unsupported);
}

#[test]
fn a_compaction_names_the_first_of_those_that_are_left() {
    let compaction = r#"{"type":"compaction","timestamp":"t","summary":"so far","firstKeptEntryId":"b","tokensBefore":900}"#;
    let lines = [
        HEAD.to_owned(),
        named(USER, "a", ""),
        named(&USER.replace("go", "kept"), "b", "a"),
        named(CHANGE, "c", "b"),
        named(CALL, "d", "c"),
        named(RESULT, "e", "d"),
        named(compaction, "f", "e"),
        named(&USER.replace("go", "after"), "g", "f"),
    ];
    for (gone, first) in [(1..2, "d"), (3..4, "b"), (1..4, "b"), (4..5, "b")] {
        let mut new = transcript(&lines);
        new.conversations_mut()[0].entries.drain(gone.clone());
        let out = written(&new);
        let names = out.lines().filter_map(|line| json::field(line, "firstKeptEntryId").unwrap());
        assert_eq!(names.collect::<Vec<_>>(), [format!("\"{first}\"")], "{gone:?}");
        let again = read(out.as_str(), &ReadOptions::default()).unwrap();
        assert_eq!(shown_in(&again.conversations()[0]), shown_in(&new.conversations()[0]), "{gone:?}");
    }
}

#[test]
fn a_summary_is_not_kept_by_the_next_compaction() {
    let compaction = |first: &str| {
        format!(
            r#"{{"type":"compaction","timestamp":"t","summary":"up to {first}","firstKeptEntryId":"{first}"}}"#
        )
    };
    let lines = [
        HEAD.to_owned(),
        named(USER, "a", ""),
        named(CALL, "b", "a"),
        named(&compaction("b"), "c", "b"),
        named(RESULT, "d", "c"),
        named(&compaction("b"), "e", "d"),
    ];
    let transcript = transcript(&lines);
    let one = transcript.active().unwrap();
    assert_eq!(shown_in(one)[0], "user: text up to b");
    assert_eq!((one.entries.len(), transcript.conversations().len()), (3, 3));
    assert_eq!(one.compactions.iter().map(|one| one.dropped).collect::<Vec<_>>(), [Some(1), Some(1)]);
    let kept = shown_in(one).split_off(1);
    // Messages that an earlier compaction dropped do not come back if the next compaction names them.
    let named_again = [&lines[..5], &[named(&compaction("a"), "e", "d")]].concat();
    let transcript = self::transcript(&named_again);
    let mut shown = shown_in(transcript.active().unwrap());
    assert_eq!(shown.remove(0), "user: text up to a");
    assert_eq!(shown, kept);
}

#[test]
fn a_key_twice_is_an_error_where_it_is_read() {
    let twice = |from: &str, to: &str| {
        let line = named(&USER.replacen(from, to, 1), "a", "");
        read([HEAD, &line].join("\n"), &ReadOptions::default().with_from(Format::Pi))
    };
    let unused = twice(r#""role":"user""#, r#""toolCallId":1,"toolCallId":2,"role":"user""#);
    assert_eq!(unused.unwrap().conversations()[0].entries.len(), 1);
    let error = twice(r#""role":"user""#, r#""role":"user","role":"user""#).unwrap_err();
    assert_eq!(error.kind(), WireErrorKind::DuplicateKey);
}

#[test]
fn several_changes_of_a_message_are_all_written() {
    let said = r#"{"type":"message","timestamp":"t","message":{"role":"assistant","content":[{"type":"text","text":"Look."},
 {"type":"image","mimeType":"image/png","data":"AAAA"},{"type":"toolCall","id":"c1","name":"f","arguments":"text"},
 {"type":"toolCall","id":"c2","name":"g","arguments":{"n":1.0}}]}}"#.replace('\n', "");
    let lines = [HEAD.to_owned(), USER.to_owned(), said.clone()];
    let with = |parts: [Part; 4]| {
        let mut changed = transcript(&lines);
        let entry = &mut changed.conversations_mut()[0].entries[1];
        *entry = entry.clone().with_message(entry.message().clone().with_parts(parts.to_vec()));
        let mut out = Vec::new();
        write_back(&changed, &mut out).map_err(|error| error.kind())?;
        Ok::<_, WireErrorKind>(String::from_utf8(out).unwrap())
    };
    let call = |id: &str, name: &str| Part::ToolCall(ToolCall::new(id, name, "{}"));
    let text = |text: &str| Part::Text(text.into());
    let expected = said
        .replace("Look.", "")
        .replace(
            r#"{"type":"image","mimeType":"image/png","data":"AAAA"}"#,
            r#"{"type":"text","text":"[media]"}"#,
        )
        .replace(r#""arguments":"text""#, r#""arguments":{}"#)
        .replace(r#"{"n":1.0}"#, "{}");
    let out = with([text(""), text("[media]"), call("c1", "f"), call("c2", "g")]).unwrap();
    assert_eq!(out.lines().last(), Some(expected.as_str()));
    // Only the arguments of a call can change.
    for other in [call("c9", "f"), call("c1", "h"), text("f")] {
        let refused = with([text("Look."), text("[media]"), other, call("c2", "g")]);
        assert_eq!(refused, Err(WireErrorKind::Unsupported));
    }
}
