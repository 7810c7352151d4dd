//! Session files of Claude Code: the conversations in them, and the text that is written back.

mod inserted;
mod random;
mod removed;

use epitome_core::attribution::SourceKind;
use epitome_message::{Part, ToolResult};

use crate::tests::support::{shown_in, written};
use crate::{
    Conversation, Format, ReadOptions, Relation, Transcript, TranscriptEntry, WireErrorKind, detect, read,
};

fn line(kind: &str, uuid: &str, parent: &str, message: &str) -> String {
    let parent = if parent.is_empty() { "null".to_owned() } else { format!("\"{parent}\"") };
    format!(
        r#"{{"parentUuid":{parent},"isSidechain":false,"sessionId":"s","type":"{kind}","message":{message},"uuid":"{uuid}","n":1.50}}"#
    )
}

fn user(uuid: &str, parent: &str, text: &str) -> String {
    line("user", uuid, parent, &format!(r#"{{"role":"user","content":"{text}"}}"#))
}

fn result(uuid: &str, parent: &str, call: &str) -> String {
    let content = format!(r#"[{{"tool_use_id":"{call}","type":"tool_result","content":"of {call}"}}]"#);
    let line = line("user", uuid, parent, &format!(r#"{{"role":"user","content":{content}}}"#));
    line.replace(r#""n":1.50"#, r#""toolUseResult":{"stdout":"x"}"#)
}

/// One line of the response `id`.
fn says(uuid: &str, parent: &str, id: &str, block: &str) -> String {
    let usage = r#"{"input_tokens":10,"cache_read_input_tokens":90,"output_tokens":7}"#;
    let message = format!(
        r#"{{"id":"{id}","type":"message","role":"assistant","content":[{block}],"stop_reason":null,"usage":{usage}}}"#
    );
    line("assistant", uuid, parent, &message)
}

fn call(id: &str) -> String {
    format!(
        r#"{{"type":"tool_use","id":"{id}","name":"Task","input":{{"prompt":"find it","description":"Finding"}}}}"#
    )
}

fn side(line: &str) -> String {
    line.replace("\"isSidechain\":false", "\"isSidechain\":true")
}

fn text(lines: &[String]) -> String {
    let mut text = r#"{"type":"file-history-snapshot","messageId":"m","snapshot":{}}"#.to_owned();
    lines.iter().for_each(|line| text = format!("{text}\n{line}"));
    text
}

fn transcript(text: &str) -> Transcript {
    assert_eq!(detect(text).unwrap().format, Format::ClaudeCode);
    let transcript = read(text, &ReadOptions::default()).unwrap();
    assert_eq!(written(&transcript), text, "what nobody changed is the source text");
    transcript
}

/// A response with a thought and two calls in three lines. The results refer to their calls, and one comes early.
fn parallel() -> Vec<String> {
    vec![
        user("u1", "", "go"),
        says("a1", "u1", "r1", r#"{"type":"thinking","thinking":"hm","signature":"s"}"#),
        says("a2", "a1", "r1", &call("c1")),
        result("t1", "a2", "c1"),
        says("a3", "a2", "r1", &call("c2")),
        result("t2", "a3", "c2"),
        says("a4", "t2", "r2", r#"{"type":"text","text":"done"}"#),
    ]
}

#[test]
fn what_the_tool_says_in_the_users_place_is_no_request() {
    let lines = [
        user("u1", "", "<command-name>/clear</command-name><command-args></command-args>"),
        user("u2", "u1", "<local-command-stdout>done</local-command-stdout>"),
        user("u3", "u2", "Go"),
        user("u4", "u3", "[Request interrupted by user]"),
    ];
    let transcript = transcript(&text(&lines));
    let sources = transcript.conversations()[0].messages().map(|message| message.attribution().source);
    let (context, tool, caller) = (SourceKind::Context, SourceKind::Tool, SourceKind::Caller);
    assert_eq!(sources.collect::<Vec<_>>(), [context, tool, caller, context]);
    assert_eq!(transcript.conversations()[0].entries[0].message().id(), Some("u1"));
}

#[test]
fn the_lines_of_a_response_stand_together_and_their_answers_behind_them() {
    let transcript = transcript(&text(&parallel()));
    let [one] = transcript.conversations() else { panic!("{transcript:?}") };
    let task = r#"Task {"prompt":"find it","description":"Finding"}"#;
    let expected = [
        "user: text go".to_owned(),
        "assistant: reasoning hm".to_owned(),
        format!("assistant: call c1 {task}"),
        format!("assistant: call c2 {task}"),
        "tool: result c1 [text of c1]".to_owned(),
        "tool: result c2 [text of c2]".to_owned(),
        "assistant: text done".to_owned(),
    ];
    assert_eq!(shown_in(one), expected);
    let responses: Vec<_> = one.messages().map(|message| message.response_id().unwrap_or("-")).collect();
    assert_eq!(responses, ["-", "r1", "r1", "r1", "-", "-", "r2"]);
    let usage: Vec<_> = one.usage.iter().map(|entry| (entry.at, entry.usage.input_total)).collect();
    assert_eq!(usage, [(3, Some(100)), (6, Some(100))], "one report for each response, at its last line");
}

#[test]
fn a_message_that_mixes_results_and_words_is_split() {
    let content =
        r#"[{"type":"tool_result","tool_use_id":"c1","content":"x"},{"type":"text","text":"and now?"}]"#;
    let mixed = line("user", "m", "a", &format!(r#"{{"role":"user","content":{content}}}"#));
    let mut transcript = transcript(&text(&[user("u", "", "go"), says("a", "u", "r", &call("c1")), mixed]));
    let entries = &mut transcript.conversations_mut()[0].entries;
    assert_eq!(entries.iter().map(TranscriptEntry::rejoin).collect::<Vec<_>>(), [false, false, false, true]);
    assert!(entries[3].message().wire().unwrap().rejoin);
    let before = transcript.source().to_string();
    transcript.conversations_mut()[0].entries.truncate(3);
    assert_eq!(written(&transcript), before.replace(r#",{"type":"text","text":"and now?"}"#, ""));
}

#[test]
fn side_chains_and_abandoned_branches_are_conversations_of_their_own() {
    let mut lines = parallel();
    lines.insert(1, side(&user("s1", "", "find it")));
    lines.insert(4, side(&says("s2", "s1", "rs", r#"{"type":"text","text":"found"}"#)));
    lines.push(user("b1", "a4", "wrong"));
    lines.push(user("b2", "a4", "right"));
    let all = text(&lines);
    let transcript = transcript(&all);
    let of = |one: &Conversation| {
        (one.id.to_string(), one.relation, one.active, one.label.to_string(), one.entries.len())
    };
    let found: Vec<_> = transcript.conversations().iter().map(of).collect();
    let expected = [
        ("b2".to_owned(), Relation::Own, true, String::new(), 8),
        ("s2".to_owned(), Relation::SideChain(0), false, "Finding".to_owned(), 2),
        ("b1".to_owned(), Relation::Branch(0), false, String::new(), 8),
    ];
    assert_eq!(found, expected);
    let other = read(all.as_str(), &ReadOptions::default().with_leaf("b1")).unwrap();
    assert_eq!(shown_in(other.active().unwrap()).last().unwrap(), "user: text wrong");
    assert_eq!(other.conversations().len(), 3);
    let error = read(all.as_str(), &ReadOptions::default().with_leaf("zz")).unwrap_err();
    assert_eq!(error.kind(), WireErrorKind::NotFound);
}

#[test]
fn the_tools_own_compactions_say_what_they_dropped() {
    let boundary = |uuid: &str, before: &str| {
        format!(
            r#"{{"parentUuid":null,"logicalParentUuid":"{before}","isSidechain":false,"sessionId":"s","type":"system","subtype":"compact_boundary","compactMetadata":{{"trigger":"auto","preTokens":1000}},"uuid":"{uuid}"}}"#
        )
    };
    let summary = |uuid: &str, parent: &str| {
        user(uuid, parent, "so far").replace("\"n\":1.50", "\"isCompactSummary\":true")
    };
    let mut lines = parallel();
    lines.extend([boundary("b1", "a4"), summary("s1", "b1"), user("u2", "s1", "more")]);
    // Older files have a summary without a boundary.
    lines.extend([summary("s2", "u2"), user("u3", "s2", "and more")]);
    lines.push(r#"{"type":"summary","summary":"A title","leafUuid":"u3"}"#.to_owned());
    let transcript = transcript(&text(&lines));
    let active = transcript.active().unwrap();
    assert_eq!((shown_in(active).len(), &*active.label), (2, "A title"));
    let of = |one: &crate::ToolCompaction| (one.at, one.trigger.to_string(), one.dropped, one.tokens_before);
    let found: Vec<_> = active.compactions.iter().map(of).collect();
    assert_eq!(found, [(0, "auto".to_owned(), Some(7), Some(1000)), (0, String::new(), Some(2), None)]);
    let before: Vec<_> =
        transcript.conversations()[1..].iter().map(|one| (one.relation, one.entries.len())).collect();
    assert_eq!(before, [(Relation::Branch(0), 7), (Relation::Branch(0), 2)]);
}

#[test]
fn resumed_files_go_on_and_copies_are_passed_over() {
    let mut lines = parallel();
    lines.push(user("u1", "", "go").replace("\"sessionId\":\"s\"", "\"sessionId\":\"t\""));
    lines.push(user("u2", "a4", "again").replace("\"sessionId\":\"s\"", "\"sessionId\":\"t\""));
    lines.push(
        user("e", "u2", "x")
            .replace("\"type\":\"user\",", "\"type\":\"assistant\",\"isApiErrorMessage\":true,"),
    );
    let resumed = transcript(&text(&lines));
    assert_eq!(resumed.conversations().len(), 1);
    assert_eq!(shown_in(&resumed.conversations()[0]).len(), 8);
    let elsewhere = transcript(&text(&[user("u9", "of another file", "go on")]));
    assert_eq!(elsewhere.conversations()[0].entries.len(), 1);
}

#[test]
fn what_follows_a_gap_names_the_message_before_it() {
    let mut transcript = transcript(&text(&parallel()));
    let conversation = &mut transcript.conversations_mut()[0];
    let cleared = Part::ToolResult(ToolResult::new("c2", vec![Part::Text("[cleared]".into())]));
    let changed = conversation.entries[5].message().clone().with_parts(vec![cleared]);
    conversation.entries[5] = conversation.entries[5].clone().with_message(changed);
    // The call c1 and its result.
    conversation.entries.remove(4);
    conversation.entries.remove(2);
    let shorter = written(&transcript);
    let lines = parallel();
    let kept = [
        lines[0].clone(),
        lines[1].clone(),
        lines[4].replace("\"parentUuid\":\"a2\"", "\"parentUuid\":\"a1\""),
        lines[5].replace("of c2", "[cleared]"),
        lines[6].clone(),
    ];
    assert_eq!(shorter, text(&kept));
    let again = read(shorter, &ReadOptions::default()).unwrap();
    assert_eq!(shown_in(&again.conversations()[0]), shown_in(&transcript.conversations()[0]));
}

/// A line without a message, as hooks leave one after each turn.
fn hook(uuid: &str, parent: &str) -> String {
    format!(
        r#"{{"parentUuid":"{parent}","isSidechain":false,"sessionId":"s","type":"system","subtype":"stop_hook_summary","uuid":"{uuid}"}}"#
    )
}

/// Lines, each with the line that it names.
type Links = &'static [(&'static str, &'static str)];

/// The removed messages, and the line that each remaining line names afterwards.
const LEFT_OUT: &[(&[usize], Links)] = &[
    (
        &[0, 1],
        &[
            ("h1", ""),
            ("u2", ""),
            ("a2", "u2"),
            ("h2", "a2"),
            ("h3", "h2"),
            ("u3", "h3"),
            ("a3", "u3"),
            ("h4", "a3"),
        ],
    ),
    (
        &[3],
        &[
            ("u1", ""),
            ("a1", "u1"),
            ("h1", "a1"),
            ("u2", "h1"),
            ("h2", "u2"),
            ("h3", "h2"),
            ("u3", "u2"),
            ("a3", "u3"),
            ("h4", "a3"),
        ],
    ),
    (
        &[1, 2, 3],
        &[("u1", ""), ("h1", "u1"), ("h2", "h1"), ("h3", "h2"), ("u3", "u1"), ("a3", "u3"), ("h4", "a3")],
    ),
    (
        &[5],
        &[
            ("u1", ""),
            ("a1", "u1"),
            ("h1", "a1"),
            ("u2", "h1"),
            ("a2", "u2"),
            ("h2", "a2"),
            ("h3", "h2"),
            ("u3", "h3"),
            ("h4", "u3"),
        ],
    ),
];

#[test]
fn lines_without_a_message_name_a_line_that_is_still_there() {
    let words = |text: &str| format!(r#"{{"type":"text","text":"{text}"}}"#);
    let lines = vec![
        user("u1", "", "go"),
        says("a1", "u1", "r1", &words("one")),
        hook("h1", "a1"),
        user("u2", "h1", "on"),
        says("a2", "u2", "r2", &words("two")),
        hook("h2", "a2"),
        hook("h3", "h2"),
        user("u3", "h3", "more"),
        says("a3", "u3", "r3", &words("three")),
        hook("h4", "a3"),
    ];
    for (gone, expected) in LEFT_OUT {
        let mut transcript = transcript(&text(&lines));
        let conversation = &mut transcript.conversations_mut()[0];
        gone.iter().rev().for_each(|at| drop(conversation.entries.remove(*at)));
        let shorter = written(&transcript);
        let links: Vec<_> = shorter
            .lines()
            .filter_map(|line| {
                let line: serde_json::Value = serde_json::from_str(line).unwrap();
                let parent = line["parentUuid"].as_str().unwrap_or_default().to_owned();
                Some((line["uuid"].as_str()?.to_owned(), parent))
            })
            .collect();
        let links: Vec<_> = links.iter().map(|(name, parent)| (name.as_str(), parent.as_str())).collect();
        assert_eq!(links, *expected, "without {gone:?}");
        let again = read(shorter, &ReadOptions::default()).unwrap();
        assert_eq!(
            shown_in(again.active().unwrap()),
            shown_in(transcript.active().unwrap()),
            "without {gone:?}"
        );
    }
}

#[test]
fn errors_name_the_line() {
    let broken = line("user", "u", "", r#"{"role":"narrator","content":"x"}"#);
    let error = read(text(&[user("u0", "", "go"), broken]), &ReadOptions::default()).unwrap_err();
    assert_eq!((error.line(), error.path()), (Some(3), "/message/role"));
}
