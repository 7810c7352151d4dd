//! Sessions of Copilot CLI, read, changed and written back. The form is that of its sources; the contents are made up.

use epitome_core::attribution::SourceKind;
use epitome_core::message::Role;
use epitome_message::{Message, Part, ToolResult};

use crate::json;
use crate::tests::support::{change, shown_in, transcript_of, written};
use crate::{
    Format, ReadOptions, Relation, ToolCompaction, Transcript, TranscriptEntry, WireErrorKind, read,
    write_back,
};

const START: &str = r#"{"type":"session.start","data":{"sessionId":"s1","version":1,"producer":"copilot-agent","copilotVersion":"0.0.1"},"id":"e0","timestamp":"t","parentId":null}"#;
const ASKS: &str = r#"{"type":"user.message","data":{"content":"go","transformedContent":"<now>t</now> go","attachments":[]},"id":"e1","timestamp":"t","parentId":"e0"}"#;
const TURN: &str =
    r#"{"type":"assistant.turn_start","data":{"turnId":"0"},"id":"e2","timestamp":"t","parentId":"e1"}"#;
const CALLS: &str = r#"{"type":"assistant.message","data":{"messageId":"m1","content":"look","toolRequests":[{"toolCallId":"c1","name":"bash","arguments":{"n":1.0},"type":"function"},{"toolCallId":"c2","name":"patch","arguments":"*** x","type":"custom"}],"reasoningText":"hm","reasoningOpaque":"s"},"id":"e3","timestamp":"t","parentId":"e2"}"#;
const RUNS: &str = r#"{"type":"tool.execution_start","data":{"toolCallId":"c1","toolName":"bash","arguments":{"n":1.0}},"id":"e4","timestamp":"t","parentId":"e3"}"#;
const FIRST: &str = r#"{"type":"tool.execution_complete","data":{"toolCallId":"c1","success":true,"result":{"content":"a.txt","detailedContent":"a.txt in full","binaryResultsForLlm":[{"type":"image","data":"AAAA","mimeType":"image/png"}]}},"id":"e5","timestamp":"t","parentId":"e4"}"#;
const SECOND: &str = r#"{"type":"tool.execution_complete","data":{"toolCallId":"c2","success":false,"error":{"message":"no","code":"failure"}},"id":"e6","timestamp":"t","parentId":"e5"}"#;
const SIDE: &str = r#"{"type":"assistant.message","data":{"messageId":"m2","content":"aside"},"agentId":"a1","id":"e7","timestamp":"t","parentId":"e6"}"#;
const ANSWER: &str = r#"{"type":"assistant.message","data":{"messageId":"m3","content":"done"},"id":"e8","timestamp":"t","parentId":"e7"}"#;
const BEGINS: &str =
    r#"{"type":"session.compaction_start","data":{},"id":"e9","timestamp":"t","parentId":"e8"}"#;
const SKILL: &str = r#"{"type":"user.message","data":{"content":"a skill","source":"skill-pdf"},"id":"e10","timestamp":"t","parentId":"e9"}"#;
const COMPACTED: &str = r#"{"type":"session.compaction_complete","data":{"success":true,"preCompactionTokens":900,"postCompactionTokens":90,"summaryContent":"so far","trigger":"auto"},"id":"e11","timestamp":"t","parentId":"e10"}"#;

fn lines(events: &[&str]) -> String {
    events.iter().map(|event| format!("{event}\n")).collect()
}

fn transcript(text: &str) -> Transcript {
    transcript_of(text, Format::CopilotCli)
}

#[test]
fn events_are_messages() {
    let transcript = transcript(&lines(&[START, ASKS, TURN, CALLS, RUNS, FIRST, SECOND, SIDE, ANSWER]));
    let conversation = &transcript.conversations()[0];
    let said = shown_in(conversation);
    assert_eq!(said.len(), 5, "{said:?}");
    assert_eq!(said[0], "user: text <now>t</now> go");
    assert!(said[1].ends_with("text look | call c1 bash {\"n\":1.0} | call c2 patch *** x"), "{said:?}");
    assert!(said[2].contains("a.txt") && said[3].contains("no"), "{said:?}");
    assert!(
        matches!(conversation.entries[3].message().parts(), [Part::ToolResult(result)] if result.is_error)
    );
    assert_eq!(conversation.id.as_str(), "s1");
    let side = &transcript.conversations()[1];
    assert_eq!((side.relation, side.id.as_str(), side.active), (Relation::SideChain(0), "a1", false));
}

#[test]
fn changes_are_patched_in_place() {
    let mut transcript = transcript(&lines(&[START, ASKS, TURN, CALLS, RUNS, FIRST, SECOND, ANSWER]));
    let conversation = &mut transcript.conversations_mut()[0];
    let texts = |texts: &[&str]| texts.iter().map(|text| Part::Text((*text).into())).collect::<Vec<_>>();
    change(conversation, 2, vec![Part::ToolResult(ToolResult::new("c1", texts(&["-"])))]);
    change(conversation, 4, texts(&["Done."]));
    let first = FIRST
        .replace("\"content\":\"a.txt\"", "\"content\":\"-\"")
        .replace(r#"[{"type":"image","data":"AAAA","mimeType":"image/png"}]"#, "[]");
    let answer = ANSWER.replace("done", "Done.");
    assert_eq!(written(&transcript), lines(&[START, ASKS, TURN, CALLS, RUNS, &first, SECOND, &answer]));
}

#[test]
fn what_is_left_out_is_bridged() {
    let answer = ANSWER.replace("\"e7\"", "\"e6\"");
    let mut transcript = transcript(&lines(&[START, ASKS, TURN, CALLS, RUNS, FIRST, SECOND, &answer]));
    transcript.conversations_mut()[0].entries.drain(1..4);
    let out = written(&transcript);
    let runs = RUNS.replace("\"parentId\":\"e3\"", "\"parentId\":\"e2\"");
    let answer = ANSWER.replace("\"e7\"", "\"e2\"");
    assert_eq!(out, lines(&[START, ASKS, TURN, &runs, &answer]));
    assert_eq!(read(out, &ReadOptions::default()).unwrap().conversations()[0].entries.len(), 2);
}

#[test]
fn a_compaction_stands_for_what_was_before_its_beginning() {
    let mut transcript = transcript(&lines(&[START, ASKS, ANSWER, BEGINS, SKILL, COMPACTED, ANSWER]));
    let conversation = &transcript.conversations()[0];
    let said = shown_in(conversation);
    assert_eq!(said, ["user: text a skill", "user: text so far", "assistant: text done"]);
    assert_eq!(conversation.entries[0].message().attribution().source, SourceKind::Context);
    let of = |one: &ToolCompaction| (one.at, one.dropped, one.tokens_before, one.trigger.to_string());
    let compactions: Vec<_> = conversation.compactions.iter().map(of).collect();
    assert_eq!(compactions, [(1, Some(2), Some(900), "auto".to_owned())]);
    let before = &transcript.conversations()[1];
    assert_eq!((before.relation, before.entries.len()), (Relation::Branch(0), 2));
    transcript.conversations_mut()[0].entries.remove(2);
    assert_eq!(written(&transcript), lines(&[START, ASKS, ANSWER, BEGINS, SKILL, COMPACTED]));
    transcript.conversations_mut()[0].entries.remove(1);
    assert_eq!(write_back(&transcript, &mut Vec::new()).unwrap_err().kind(), WireErrorKind::Unsupported);
}

/// A session continues with its own events, even if a sub-agent has written last.
#[test]
fn the_end_of_a_session_may_be_left_out() {
    let mut transcript = transcript(&lines(&[START, ASKS, SIDE, ANSWER]));
    transcript.conversations_mut()[0].entries.pop();
    assert_eq!(written(&transcript), lines(&[START, ASKS, SIDE]));
    transcript.conversations_mut()[0].entries.clear();
    assert_eq!(written(&transcript), lines(&[START, SIDE]));
}

#[test]
fn a_new_message_is_an_event_of_its_agent() {
    let events = [START, ASKS, TURN, CALLS, RUNS, FIRST, SECOND, SIDE, ANSWER];
    let mut transcript = transcript(&lines(&events));
    let [own, side] = transcript.conversations_mut() else { panic!("a session and a sub-agent") };
    own.entries.drain(1..4);
    own.entries.insert(1, TranscriptEntry::new(Message::assistant("seen: \"a.txt\"")));
    own.entries.push(TranscriptEntry::new(Message::user("go on")));
    side.entries.insert(0, TranscriptEntry::new(Message::user("note")));
    let out = written(&transcript);
    let new: Vec<_> = out.lines().filter(|line| !line.contains("\"id\":\"e")).collect();
    let name = |line: &str| json::decode(json::field(line, "id").unwrap().unwrap()).into_owned();
    let [note, seen, goes] = new[..] else { panic!("{out}") };
    let event = |kind: &str, data: &str, rest: &str, line: &str, parent: &str| {
        let name = name(line);
        format!(
            r#"{{"type":"{kind}","data":{{{}}}{rest},"id":"{name}","timestamp":"t","parentId":"{parent}"}}"#,
            data.replace("ID", &name)
        )
    };
    let data = r#""messageId":"ID","content":"seen: \"a.txt\"","toolRequests":[]"#;
    assert_eq!(seen, event("assistant.message", data, "", seen, "e2"));
    let data = r#""content":"note","attachments":[]"#;
    assert_eq!(note, event("user.message", data, r#","agentId":"a1""#, note, "e4"));
    assert_eq!(goes, event("user.message", r#""content":"go on","attachments":[]"#, "", goes, "e8"));
    assert!(out.ends_with(&format!("{goes}\n")), "{out}");
    let again = read(out.as_str(), &ReadOptions::default()).unwrap();
    for (now, wanted) in again.conversations().iter().zip(transcript.conversations()) {
        assert_eq!(shown_in(now), shown_in(wanted), "{out}");
    }
    assert_eq!(out, written(&transcript), "the same names each time");
}

/// At every place of a session with a compaction, a new message is read at its place, or refused.
#[test]
fn a_new_message_does_not_slip_behind_a_compaction() {
    let events = lines(&[START, ASKS, ANSWER, BEGINS, SKILL, COMPACTED, ANSWER]);
    let count = transcript(&events).conversations()[0].entries.len();
    let mut put = 0;
    for (at, gone) in (0..=count).flat_map(|at| [(at, None), (at, Some(0)), (at, Some(count))]) {
        let mut new = transcript(&events);
        let entries = &mut new.conversations_mut()[0].entries;
        entries.insert(at, TranscriptEntry::new(Message::user("note")));
        if let Some(gone) = gone.filter(|gone| *gone != at) {
            entries.remove(gone);
        }
        let mut out = Vec::new();
        if write_back(&new, &mut out).is_err() {
            continue;
        }
        put += 1;
        let again = read(String::from_utf8(out).unwrap(), &ReadOptions::default()).unwrap();
        assert_eq!(shown_in(&again.conversations()[0]), shown_in(&new.conversations()[0]), "{at} {gone:?}");
    }
    assert!(put >= 8, "{put} of {}", 3 * (count + 1));
}

#[test]
fn what_the_form_cannot_say_is_refused() {
    let mut transcript = transcript(&lines(&[START, ASKS]));
    transcript.conversations_mut()[0]
        .entries
        .push(TranscriptEntry::new(Message::new(Role::Developer, vec![Part::Text("a".into())])));
    let refused = write_back(&transcript, &mut Vec::new()).unwrap_err();
    assert_eq!(refused.kind(), WireErrorKind::Unsupported);
    let wrong = ASKS.replace("\"<now>t</now> go\"", "1");
    let error = read(lines(&[START, &wrong]), &ReadOptions::default()).unwrap_err();
    assert_eq!((error.kind(), error.line()), (WireErrorKind::Shape, Some(2)), "{error}");
}
