//! Sessions of Copilot CLI, read, changed and written back. The form is that of its sources; the contents are made up.

use epitome_core::attribution::SourceKind;
use epitome_message::{Message, Part, ToolResult};

use crate::tests::support::{change, shown_in, transcript_of, written};
use crate::{
    Entry, Format, ReadOptions, Relation, ToolCompaction, Transcript, WireErrorKind, read, write_back,
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

#[test]
fn what_the_form_cannot_say_is_refused() {
    let mut transcript = transcript(&lines(&[START, ASKS]));
    transcript.conversations_mut()[0].entries.push(Entry::new(Message::user("new")));
    let refused = write_back(&transcript, &mut Vec::new()).unwrap_err();
    assert_eq!(refused.kind(), WireErrorKind::Unsupported);
    let wrong = ASKS.replace("\"<now>t</now> go\"", "1");
    let error = read(lines(&[START, &wrong]), &ReadOptions::default()).unwrap_err();
    assert_eq!((error.kind(), error.line()), (WireErrorKind::Shape, Some(2)), "{error}");
}
