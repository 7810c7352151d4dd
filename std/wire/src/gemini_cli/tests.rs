//! Session files of Gemini CLI, read, changed and written back.

use epitome_message::{Message, Part, ToolCall, ToolResult};

use crate::openai_chat::tests::shown;
use crate::tests::support::{shown_in, written};
use crate::{
    Format, ReadOptions, Relation, SessionLines, Transcript, TranscriptEntry, WireErrorKind, detect, read,
    write_back,
};

const SESSION: &str = r#"{"sessionId": "s", "projectHash": "p", "messages": [
  {"id": "1", "type": "user", "content": "Go"},
  {"id": "n", "type": "info", "content": "note"},
  {"id": "2", "type": "gemini", "content": "Look.", "thoughts": [{"subject": "Plan", "description": "look"}],
   "tokens": {"input": 12350, "output": 51, "cached": 11820, "thoughts": 51, "tool": 0, "total": 12452}, "toolCalls": [
    {"id": "c1", "name": "ls", "args": {"dir": "."}, "status": "success", "resultDisplay": "a",
     "result": [{"functionResponse": {"id": "c1", "name": "ls", "response": {"output": "a.txt"}}}]},
    {"id": "c2", "name": "rm", "args": {}, "status": "error",
     "result": [{"functionResponse": {"id": "c2", "name": "rm", "response": {"error": "no"}}}]}]},
  {"id": "3", "type": "user", "content": [{"text": "And"}, "now"]}]}"#;

fn transcript() -> Transcript {
    assert_eq!(detect(SESSION).unwrap().format, Format::GeminiCli);
    let transcript = read(SESSION, &ReadOptions::default()).unwrap();
    assert_eq!(written(&transcript), SESSION);
    transcript
}

#[test]
fn a_record_of_the_model_is_its_words_and_its_results() {
    let transcript = transcript();
    let conversation = &transcript.conversations()[0];
    let of = |message: &Message| format!("{}: {}", message.role().as_str(), shown(message).join(" | "));
    let expected = [
        "user: text Go",
        "assistant: reasoning Plan\nlook | text Look. | call c1 ls {\"dir\": \".\"} | call c2 rm {}",
        "tool: result c1 [text a.txt]",
        "tool: result c2 [text no]",
        "user: text And | text now",
    ];
    assert_eq!(conversation.messages().map(of).collect::<Vec<_>>(), expected);
    assert!(conversation.entries[2].rejoin() && conversation.entries[3].rejoin());
    let report = conversation.usage[0];
    assert_eq!(
        (report.at, report.usage.input_total, report.usage.output_total),
        (1, Some(12_350), Some(102))
    );
}

#[test]
fn results_are_cleared_and_messages_added() {
    let mut transcript = transcript();
    let entries = &mut transcript.conversations_mut()[0].entries;
    let cleared = Part::ToolResult(ToolResult::new("c1", vec![Part::Text("-".into())]));
    entries[2] = entries[2].clone().with_message(entries[2].message().clone().with_parts(vec![cleared]));
    entries.insert(1, TranscriptEntry::new(Message::assistant("Yes.")));
    let result = r#"[{"functionResponse":{"id":"c1","name":"ls","response":{"output":"-"}}}]"#;
    let before = r#"[{"functionResponse": {"id": "c1", "name": "ls", "response": {"output": "a.txt"}}}]"#;
    let new = "\"content\": \"Go\"},\n  {\"type\":\"gemini\",\"content\":\"Yes.\"}";
    let expected = SESSION.replace(before, result).replace("\"content\": \"Go\"}", new);
    assert_eq!(written(&transcript), expected);
    transcript.conversations_mut()[0].entries.remove(4);
    assert_eq!(write_back(&transcript, &mut Vec::new()).unwrap_err().kind(), WireErrorKind::Unsupported);
}

#[test]
fn cleared_arguments_are_cleared_in_the_words_and_in_the_list_of_calls() {
    let text = SESSION.replace(
        r#""content": "Look.""#,
        r#""content": [{"text": "Look."}, {"functionCall": {"id": "c1", "name": "ls", "args": {"dir": "."}}},
    {"functionCall": {"name": "rm", "args": {}}}]"#,
    );
    for text in [SESSION, &text] {
        let mut transcript = read(text, &ReadOptions::default()).unwrap();
        let entry = &mut transcript.conversations_mut()[0].entries[1];
        let mut parts = entry.message().parts().to_vec();
        let call = parts.iter_mut().find(|part| matches!(part, Part::ToolCall(call) if *call.id == *"c1"));
        *call.unwrap() = Part::ToolCall(ToolCall::new("c1", "ls", "{}"));
        *entry = entry.clone().with_message(entry.message().clone().with_parts(parts));
        assert_eq!(written(&transcript), text.replace(r#"{"dir": "."}"#, "{}"));
    }
}

const LOG: &str = include_str!("../../../../fuzz/seeds/wire_gemini_cli/log.jsonl");
const COMPRESSED: &str = include_str!("../../../../fuzz/seeds/wire_gemini_cli/compressed.jsonl");

fn logged(text: &str) -> Transcript {
    assert_eq!(detect(text).unwrap().format, Format::GeminiCli);
    let transcript = read(text, &ReadOptions::default()).unwrap();
    assert_eq!(written(&transcript), text);
    transcript
}

/// The transcript of the file after it is written and read again.
fn read_again(transcript: &Transcript) -> Transcript {
    let text = written(transcript);
    assert!(text.starts_with(&**transcript.source()), "nothing in a log is taken out");
    read(text, &ReadOptions::default()).unwrap()
}

#[test]
fn a_log_is_its_latest_records_in_the_places_of_the_first() {
    let transcript = logged(LOG);
    let [active, rewound] = transcript.conversations() else { panic!("{transcript:?}") };
    let expected = [
        "user: text Go",
        "assistant: reasoning Plan\nlook | text Look. | call c1 ls {\"dir\":\".\"}",
        "tool: result c1 [text a.txt]",
        "assistant: text There is | text  one.",
    ];
    assert_eq!(shown_in(active), expected);
    assert_eq!((active.id.as_str(), active.label.as_str()), ("s", "Listing files"));
    let report = active.usage[0];
    assert_eq!((active.usage.len(), report.at, report.usage.input_total), (1, 1, Some(12_350)));
    assert_eq!(shown_in(rewound)[3], "assistant: reasoning hm | text Wrong.");
    assert_eq!((rewound.relation, rewound.active, rewound.id.as_str()), (Relation::Branch(0), false, "4"));
    let other = read(LOG, &ReadOptions::default().with_leaf("4")).unwrap();
    assert_eq!(shown_in(other.active().unwrap()), shown_in(rewound));
    let missing = read(LOG, &ReadOptions::default().with_leaf("9")).unwrap_err();
    assert_eq!(missing.kind(), WireErrorKind::NotFound);
}

#[test]
fn a_checkpoint_that_drops_records_is_a_compaction() {
    let transcript = logged(COMPRESSED);
    let [active, before] = transcript.conversations() else { panic!("{transcript:?}") };
    assert_eq!(shown_in(active), ["user: text Summary of both", "assistant: text Two", "user: text More"]);
    let compaction = active.compactions.get(0).unwrap();
    assert_eq!((compaction.dropped, compaction.tokens_before), (Some(3), Some(900)));
    let expected = [
        "user: text One",
        "assistant: reasoning  | call c1 ls {}",
        "tool: result c1 [text a.txt]",
        "assistant: text Two",
    ];
    assert_eq!(shown_in(before), expected);
    assert_eq!(before.label.as_str(), "before a compaction");
}

#[test]
fn a_rewind_to_nothing_known_leaves_nothing() {
    let text = format!("{LOG}{}\n", r#"{"$rewindTo":"?"}"#);
    let transcript = logged(&text);
    assert_eq!(transcript.active().unwrap().entries.len(), 0);
    assert_eq!(shown_in(&transcript.conversations()[1]).len(), 4);
    let head = logged(LOG.lines().next().unwrap());
    assert_eq!(head.active().unwrap().entries.len(), 0);
    assert_eq!(read_again(&with_new(head)).active().unwrap().entries.len(), 1);
}

fn with_new(mut transcript: Transcript) -> Transcript {
    transcript.conversations_mut()[0].entries.push(TranscriptEntry::new(Message::user("New")));
    transcript
}

#[test]
fn what_becomes_of_a_log_is_a_checkpoint_behind_it() {
    for text in [LOG, COMPRESSED] {
        let mut transcript = logged(text);
        let conversation = &mut transcript.conversations_mut()[0];
        conversation.entries.remove(0);
        conversation.entries.insert(0, TranscriptEntry::new(Message::user("Summary")));
        let last = conversation.entries.len() - 1;
        let mut parts = conversation.entries[last].message().parts().to_vec();
        *parts.last_mut().unwrap() = Part::Text("changed".into());
        let changed = conversation.entries[last].message().clone().with_parts(parts);
        conversation.entries[last] = conversation.entries[last].clone().with_message(changed);
        let expected = shown_in(conversation);
        let again = read_again(&transcript);
        assert_eq!(shown_in(again.active().unwrap()), expected);
        let names = again.active().unwrap().messages().filter_map(|message| message.id().map(str::to_owned));
        assert_eq!(names.collect::<Vec<_>>()[0], "epitome-1");
        let twice = read_again(&with_new(again));
        assert_eq!(shown_in(twice.active().unwrap())[0], "user: text Summary");
        assert_eq!(written(&twice).matches("epitome-2").count(), 1);
    }
}

#[test]
fn a_cleared_result_is_cleared_wherever_it_stands() {
    let mut transcript = logged(LOG);
    let entries = &mut transcript.conversations_mut()[0].entries;
    let cleared = Part::ToolResult(ToolResult::new("c1", vec![Part::Text("-".into())]));
    entries[2] = entries[2].clone().with_message(entries[2].message().clone().with_parts(vec![cleared]));
    let expected = shown_in(&transcript.conversations()[0]);
    let text = written(&transcript);
    let added = text.strip_prefix(LOG).unwrap();
    assert!(!added.contains("a.txt") && added.contains(r#""output":"-""#), "{added}");
    assert_eq!(shown_in(read_again(&transcript).active().unwrap()), expected);
}

#[test]
fn what_a_log_cannot_say_is_refused() {
    let refused = |change: fn(&mut Transcript)| {
        let mut transcript = logged(COMPRESSED);
        change(&mut transcript);
        write_back(&transcript, &mut Vec::new()).unwrap_err().to_string()
    };
    let branch = refused(|transcript| {
        transcript.conversations_mut()[1].entries.remove(0);
    });
    assert!(branch.contains("a conversation that does not go on"), "{branch}");
    let half = {
        let mut transcript = read(COMPRESSED, &ReadOptions::default().with_leaf("2")).unwrap();
        transcript.conversations_mut()[0].entries.truncate(2);
        write_back(&transcript, &mut Vec::new()).unwrap_err().to_string()
    };
    assert!(half.contains("part of a record"), "{half}");
    let called = refused(|transcript| {
        transcript.conversations_mut()[0].entries[0] = TranscriptEntry::new(Message::tool("c9", "x"));
    });
    assert!(called.contains("a new message"), "{called}");
}

#[test]
fn lines_are_read_one_by_one() {
    let mut lines = SessionLines::new(LOG.as_bytes(), Format::GeminiCli).unwrap();
    let mut found = Vec::new();
    while let Some(record) = lines.next_record().unwrap() {
        found.push((record.id.map(|id| id.to_string()), record.messages.len()));
    }
    assert_eq!(found[1], (Some("1".to_owned()), 1));
    assert_eq!(found[4], (Some("2".to_owned()), 2));
    assert_eq!((found[8].clone(), found.len()), ((None, 0), 11));
}
