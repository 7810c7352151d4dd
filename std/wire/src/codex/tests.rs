//! Rollout files of Codex, read, changed and written back.

use epitome_core::attribution::{Retention, SourceKind};
use epitome_message::{Message, Part, ToolResult};

use crate::tests::support::{shown_in, written};
use crate::{
    Format, ReadOptions, Relation, Transcript, TranscriptEntry, WireErrorKind, detect, read, write_back,
};

fn item(payload: &str) -> String {
    format!(r#"{{"timestamp":"2026-01-01T00:00:00.000Z","type":"response_item","payload":{payload}}}"#)
}

fn event(payload: &str) -> String {
    format!(r#"{{"timestamp":"2026-01-01T00:00:00.000Z","type":"event_msg","payload":{payload}}}"#)
}

fn says(role: &str, text: &str) -> String {
    let kind = if role == "assistant" { "output_text" } else { "input_text" };
    format!(r#"{{"type":"message","role":"{role}","content":[{{"type":"{kind}","text":"{text}"}}]}}"#)
}

fn report(input: u64) -> String {
    let last = format!(
        r#"{{"input_tokens":{input},"cached_input_tokens":64,"output_tokens":9,"reasoning_output_tokens":4,"total_tokens":{}}}"#,
        input + 9
    );
    event(&format!(
        r#"{{"type":"token_count","info":{{"total_token_usage":{last},"last_token_usage":{last}}}}}"#
    ))
}

const META: &str =
    r#"{"timestamp":"t","type":"session_meta","payload":{"id":"s-1","cwd":"/","instructions":null}}"#;
const REASONING: &str = r#"{"type":"reasoning","summary":[],"content":null,"encrypted_content":"gAAAA"}"#;
const CALL: &str =
    r#"{"type":"function_call","name":"shell","arguments":"{\"command\":[\"ls\"]}","call_id":"c1"}"#;
const OUTPUT: &str = r#"{"type":"function_call_output","call_id":"c1","output":"{\"output\":\"a.txt\"}"}"#;

/// A turn: the first usage report comes before the items of its response, the second one after them.
fn turn() -> Vec<String> {
    vec![
        META.to_owned(),
        item(&says("user", "list")),
        event(r#"{"type":"user_message","message":"list"}"#),
        r#"{"timestamp":"t","type":"turn_context","payload":{"cwd":"/","model":"m"}}"#.to_owned(),
        report(100),
        item(REASONING),
        item(CALL),
        item(OUTPUT),
        item(&says("assistant", "a.txt")),
        item(r#"{"type":"ghost_snapshot","ghost_commit":{"id":"x"}}"#),
        report(200),
        report(200),
    ]
}

fn transcript(lines: &[String]) -> Transcript {
    let text = lines.join("\n");
    assert_eq!(detect(&text).unwrap().format, Format::Codex);
    let transcript = read(text.as_str(), &ReadOptions::default()).unwrap();
    assert_eq!(written(&transcript), text, "what nobody changed is the source text");
    transcript
}

#[test]
fn items_are_messages_and_reports_find_their_responses() {
    let transcript = transcript(&turn());
    let [one] = transcript.conversations() else { panic!("{transcript:?}") };
    let expected = [
        "user: text list",
        "assistant: reasoning ",
        r#"assistant: call c1 shell {"command":["ls"]}"#,
        r#"tool: result c1 [text {"output":"a.txt"}]"#,
        "assistant: text a.txt",
    ];
    assert_eq!((shown_in(one), &*one.id), (expected.map(str::to_owned).to_vec(), "s-1"));
    let usage: Vec<_> = one.usage.iter().map(|entry| (entry.at, entry.usage.input_total)).collect();
    assert_eq!(usage, [(2, Some(100)), (4, Some(200))]);
    assert_eq!(one.usage[0].usage.cache_read, Some(64));
}

#[test]
fn the_older_layout_has_items_as_lines() {
    let head = r#"{"id":"s-2","timestamp":"t","instructions":null}"#.to_owned();
    let state = r#"{"record_type":"state"}"#.to_owned();
    let transcript = transcript(&[head, state.clone(), says("user", "a"), state, says("assistant", "b")]);
    assert_eq!(shown_in(&transcript.conversations()[0]), ["user: text a", "assistant: text b"]);
}

#[test]
fn a_compaction_begins_anew_and_what_was_before_is_a_branch() {
    let history = format!("[{},{}]", says("user", "list"), says("user", "summary"));
    let with = format!(
        r#"{{"timestamp":"t","type":"compacted","payload":{{"message":"","replacement_history":{history}}}}}"#
    );
    let without = r#"{"timestamp":"t","type":"compacted","payload":{"message":"so far"}}"#.to_owned();
    let mut lines = turn();
    lines.extend([with, item(&says("assistant", "more")), without, item(&says("user", "go on"))]);
    let mut transcript = transcript(&lines);
    let [active, first, second] = transcript.conversations() else { panic!("{transcript:?}") };
    assert_eq!(
        shown_in(active),
        ["user: text list", "user: text summary", "user: text so far", "user: text go on"]
    );
    let of = |one: &crate::ToolCompaction| (one.at, one.dropped, one.tokens_before);
    assert_eq!(
        active.compactions.iter().map(of).collect::<Vec<_>>(),
        [(0, Some(4), Some(200)), (2, Some(1), None)]
    );
    assert_eq!((first.entries.len(), second.entries.len()), (5, 3));
    assert_eq!((first.relation, second.compactions.len()), (Relation::Branch(0), 1));
    // The second message of the history is changed.
    let conversation = &mut transcript.conversations_mut()[0];
    let changed = conversation.entries[1].message().clone().with_parts(vec![Part::Text("short".into())]);
    conversation.entries[1] = conversation.entries[1].clone().with_message(changed);
    assert_eq!(written(&transcript), lines.join("\n").replace("\"summary\"}", "\"short\"}"));
    for conversation in transcript.conversations_mut() {
        conversation
            .entries
            .retain(|entry| !entry.message().parts().iter().any(|part| *part == Part::Text("so far".into())));
    }
    let error = write_back(&transcript, &mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), WireErrorKind::Unsupported);
}

#[test]
fn changed_dropped_and_new_messages_are_written() {
    let mut transcript = transcript(&turn());
    let entries = &mut transcript.conversations_mut()[0].entries;
    let cleared = Part::ToolResult(ToolResult::new("c1", vec![Part::Text("[cleared]".into())]));
    let changed = entries[3].message().clone().with_parts(vec![cleared]);
    entries[3] = entries[3].clone().with_message(changed);
    entries.remove(1);
    entries.insert(1, TranscriptEntry::new(Message::user("so far")));
    let mut lines = turn();
    lines[7] = lines[7].replace(r#"{\"output\":\"a.txt\"}"#, "[cleared]");
    lines.remove(5);
    let new = item(&says("user", "so far")).replace("2026-01-01", "1970-01-01");
    lines.insert(2, new);
    assert_eq!(written(&transcript), lines.join("\n"));
}

fn transcript_of_item(payload: &str) -> Message {
    transcript(&[META.to_owned(), item(payload)]).conversations()[0].messages().next().unwrap().clone()
}

#[test]
fn a_new_result_has_the_form_that_answers_its_call() {
    let call = r#"{"type":"custom_tool_call","call_id":"p","name":"apply_patch","input":"*** x"}"#;
    let mut lines = turn();
    lines.push(item(call));
    let mut transcript = transcript(&lines);
    transcript.conversations_mut()[0].entries.push(TranscriptEntry::new(Message::tool("p", "Done.")));
    let output = r#"{"type":"custom_tool_call_output","call_id":"p","output":"Done."}"#;
    lines.push(item(output).replace("2026-01-01", "1970-01-01"));
    assert_eq!(written(&transcript), lines.join("\n"));
    // Also for an item that was read from another file.
    let read = transcript_of_item(output);
    transcript.conversations_mut()[0].entries.push(TranscriptEntry::new(read));
    assert_eq!(written(&transcript), format!("{}\n{}", lines.join("\n"), lines.last().unwrap()));
}

#[test]
fn what_codex_says_in_the_users_place_is_no_request() {
    let environment = says("user", "<environment_context>\\n<cwd>/w</cwd>\\n</environment_context>");
    let rules = says("user", "# AGENTS.md instructions for /w\\n\\n<INSTRUCTIONS>\\nx\\n</INSTRUCTIONS>");
    let history = [&*rules, &*environment, &*says("user", "list")].join(",");
    let compacted = format!(
        r#"{{"timestamp":"t","type":"compacted","payload":{{"message":"","replacement_history":[{history}]}}}}"#
    );
    let lines = [META.to_owned(), item(&rules), item(&environment), item(&says("user", "list")), compacted];
    let resumed = transcript(&[&lines[..4], &[item(&rules)]].concat());
    let again = resumed.conversations()[0].messages().last().unwrap().attribution().clone();
    assert_eq!((again.source, again.retention), (SourceKind::Context, Retention::Normal));
    let without = lines[4].replace(&history, &says("user", "list"));
    let anew = transcript(&[&lines[..4], &[without, item(&rules)]].concat());
    let pinned = anew.conversations()[0].messages().last().unwrap().attribution().retention;
    assert_eq!(pinned, Retention::Pinned, "what replaced it has none");
    for conversation in transcript(&lines).conversations() {
        let marks: Vec<_> = conversation
            .messages()
            .map(|message| (message.attribution().source, message.attribution().retention))
            .collect();
        let expected = [
            (SourceKind::Context, Retention::Pinned),
            (SourceKind::Context, Retention::Normal),
            (SourceKind::Caller, Retention::Normal),
        ];
        assert_eq!(marks, expected);
    }
}

#[test]
fn base_instructions_stand_before_everything_and_stay_after_a_compaction() {
    let meta =
        META.replace("\"instructions\":null", "\"base_instructions\":{\"text\":\"Be brief.\",\"n\":1.0}");
    let compacted = r#"{"timestamp":"t","type":"compacted","payload":{"message":"so far"}}"#.to_owned();
    let lines = [
        meta,
        item(&says("user", "list")),
        item(&says("assistant", "a.txt")),
        compacted,
        item(&says("user", "go on")),
    ];
    let mut transcript = transcript(&lines);
    let [active, before] = transcript.conversations() else { panic!("{transcript:?}") };
    assert_eq!(
        shown_in(active),
        ["system: text Be brief.", "user: text list", "user: text so far", "user: text go on"]
    );
    assert_eq!(shown_in(before), ["system: text Be brief.", "user: text list", "assistant: text a.txt"]);
    let compaction = active.compactions.get(0).unwrap();
    assert_eq!((compaction.at, compaction.dropped), (2, Some(1)));
    let entry = &mut transcript.conversations_mut()[0].entries[0];
    let changed = entry.message().clone().with_parts(vec![Part::Text("Be long.".into())]);
    *entry = entry.clone().with_message(changed);
    assert_eq!(written(&transcript), lines.join("\n").replace("Be brief.", "Be long."));
    for conversation in transcript.conversations_mut() {
        conversation.entries.remove(0);
    }
    assert_eq!(write_back(&transcript, &mut Vec::new()).unwrap_err().kind(), WireErrorKind::Unsupported);
}

#[test]
fn turns_that_were_taken_back_are_refused() {
    let mut lines = turn();
    lines.push(event(r#"{"type":"thread_rolled_back","num_turns":1}"#));
    let error = read(lines.join("\n"), &ReadOptions::default()).unwrap_err();
    assert_eq!((error.kind(), error.line()), (WireErrorKind::Unsupported, Some(13)));
}

#[test]
fn a_message_that_stood_before_a_compaction_without_a_history_is_left_out_of_the_file() {
    let said = |text: &str| {
        format!(
            r#"{{"timestamp":"t","type":"response_item","payload":{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{text}"}}]}}}}"#
        )
    };
    let meta =
        r#"{"timestamp":"t","type":"session_meta","payload":{"id":"s-1","cwd":"/","instructions":null}}"#;
    let compacted = r#"{"timestamp":"t","type":"compacted","payload":{"message":"so far"}}"#;
    let lines = |said: &[String]| {
        [&[meta.to_owned()], said, &[compacted.to_owned(), String::new()]].concat().join("\n")
    };
    let text = lines(&[said("one"), said("two")]);
    let mut changed = read(text.as_str(), &ReadOptions::default()).unwrap();
    changed.conversations_mut()[0].entries.remove(1);
    assert_eq!(written(&changed), lines(&[said("one")]));
    // A note of the model before it would not be read again; the compaction leaves the users' messages.
    let note = TranscriptEntry::new(Message::assistant("note"));
    changed.conversations_mut()[0].entries.insert(1, note);
    assert_eq!(write_back(&changed, &mut Vec::new()).unwrap_err().kind(), WireErrorKind::Unsupported);
}
