//! Exports of OpenCode, read, changed and written back. The form is that of its sources; the contents are made up.

use epitome_core::attribution::{Authority, Retention, SourceKind};
use epitome_message::{Attribution, Message, Part, ToolResult};

use crate::json;
use crate::tests::support::{change, shown_in, transcript_of, written};
use crate::{
    Format, ReadOptions, ToolCompaction, Transcript, TranscriptEntry, WireErrorKind, read, write_back,
};

const USER: &str = r#"{"info":{"id":"msg_1","sessionID":"ses_1","role":"user","time":{"created":1},"agent":"build"},
 "parts":[{"id":"prt_1","type":"text","text":"go"},{"id":"prt_2","type":"text","text":"shown to people","ignored":true},
 {"id":"prt_3","type":"file","mime":"image/png","filename":"a.png","url":"data:image/png;base64,AAAA"},
 {"id":"prt_4","type":"file","mime":"text/plain","url":"file:///a.txt"},{"id":"prt_5","type":"agent","name":"plan"}]}"#;

/// Two steps, as older versions have them in one message.
const STEPS: &str = r#"{"info":{"id":"msg_2","role":"assistant","parentID":"msg_1","finish":"stop","cost":0.10,
 "tokens":{"total":1110,"input":100,"output":6,"reasoning":4,"cache":{"read":900,"write":100}}},"parts":[
 {"id":"p1","type":"step-start"},{"id":"p2","type":"reasoning","text":"hm","metadata":{"anthropic":{"signature":"s"}}},
 {"id":"p3","type":"text","text":"look"},
 {"id":"p4","type":"tool","callID":"c1","tool":"bash","state":{"status":"completed","input":{"n":1.0},"output":"a.txt","title":"t",
  "metadata":{},"time":{"start":1,"end":2}}},
 {"id":"p5","type":"tool","callID":"c2","tool":"read","state":{"status":"error","input":{},"error":"no","time":{"start":1,"end":2}}},
 {"id":"p6","type":"step-finish","reason":"tool-calls"},{"id":"p7","type":"step-start"},
 {"id":"p8","type":"tool","callID":"c3","tool":"view","state":{"status":"completed","input":{},"output":"a picture",
  "time":{"start":1,"end":2},"attachments":[{"type":"file","mime":"image/png","url":"data:image/png;base64,BBBB"}]}},
 {"id":"p9","type":"tool","callID":"c4","tool":"bash","state":{"status":"completed","input":{},"output":"long ago",
  "time":{"start":1,"end":2,"compacted":3}}},
 {"id":"p10","type":"tool","callID":"c5","tool":"bash","state":{"status":"running","input":{},"time":{"start":1}}},
 {"id":"p11","type":"text","text":"done"}]}"#;

const FAILED: &str = r#"{"info":{"id":"msg_3","role":"assistant","parentID":"msg_1","error":{"name":"APIError","data":{}}},"parts":[{"type":"text","text":"half"}]}"#;
const ASKS: &str =
    r#"{"info":{"id":"msg_4","role":"user"},"parts":[{"id":"q1","type":"compaction","auto":true}]}"#;
const SUMMARY: &str = r#"{"info":{"id":"msg_5","role":"assistant","parentID":"msg_4","summary":true,"finish":"stop"},"parts":[{"id":"q2","type":"text","text":"so far"}]}"#;
const GO_ON: &str = r#"{"info":{"id":"msg_6","role":"user"},"parts":[{"id":"q3","type":"text","synthetic":true,"text":"Continue"}]}"#;

fn export(messages: &[&str]) -> String {
    format!(
        r#"{{"info":{{"id":"ses_1","title":"Look around"}}, "messages":[{}],"todos":[]}}"#,
        messages.join(", ")
    )
}

fn transcript(text: &str) -> Transcript {
    transcript_of(text, Format::OpenCode)
}

fn cleared(id: &str) -> Vec<Part> {
    vec![Part::ToolResult(ToolResult::new(id, vec![Part::Text("-".into())]))]
}

#[test]
fn steps_are_messages_and_their_results() {
    let transcript = transcript(&export(&[USER, STEPS, FAILED]));
    let conversation = &transcript.conversations()[0];
    let said = shown_in(conversation);
    assert_eq!(said.len(), 8, "{said:?}");
    assert!(said[0].starts_with("user: text go | ") && !said[0].contains("people"), "{said:?}");
    assert!(said[1].contains("text look | call c1 bash {\"n\":1.0} | call c2 read {}"), "{said:?}");
    assert!(said[2].starts_with("tool: result c1") && said[3].starts_with("tool: result c2"));
    assert!(said[4].ends_with("call c5 bash {} | text done"), "{said:?}");
    assert!(said[5].contains("a picture") && said[6].contains("[Old tool result content cleared]"));
    assert!(said[7].contains("was interrupted"), "{said:?}");
    let failed = |at: usize| matches!(conversation.entries[at].message().parts(), [Part::ToolResult(result)] if result.is_error);
    assert_eq!([2, 3, 5, 6, 7].map(failed), [false, true, false, false, true]);
    assert_eq!((conversation.id.as_str(), conversation.label.as_str()), ("ses_1", "Look around"));
    let usage = &conversation.usage[0];
    assert_eq!((usage.at, usage.usage.input_total, usage.usage.output_total), (4, Some(1100), Some(10)));
    let list = format!("[{USER}]");
    assert_eq!(read(&*list, &ReadOptions::default()).unwrap().conversations()[0].path, "");
}

#[test]
fn changes_are_patched_in_place() {
    let mut transcript = transcript(&export(&[USER, STEPS, FAILED]));
    let conversation = &mut transcript.conversations_mut()[0];
    change(conversation, 2, cleared("c1"));
    let mut failed = ToolResult::new("c2", vec![Part::Text("-".into())]);
    failed.is_error = true;
    change(conversation, 3, vec![Part::ToolResult(failed)]);
    change(conversation, 5, cleared("c3"));
    change(conversation, 6, cleared("c4"));
    change(conversation, 0, vec![Part::Text("Go".into()), Part::Text("[image]".into())]);
    let steps = STEPS
        .replace("\"a.txt\"", "\"-\"")
        .replace("\"error\":\"no\"", "\"error\":\"-\"")
        .replace("a picture", "-")
        .replace(r#"[{"type":"file","mime":"image/png","url":"data:image/png;base64,BBBB"}]"#, "[]")
        .replace("long ago", "-")
        .replace("\"compacted\":3", "\"compacted\":0");
    let user = USER
        .replace("\"go\"", "\"Go\"")
        .replacen("\"type\":\"file\"", "\"type\":\"text\"", 1)
        .replace("\"url\":\"data:image/png;base64,AAAA\"", "\"text\":\"[image]\"");
    let expected = export(&[&user, &steps, FAILED]);
    assert_eq!(written(&transcript), expected);
    let again = read(expected, &ReadOptions::default()).unwrap();
    assert_eq!(again.conversations()[0].entries.len(), 8);
    let said = shown_in(&again.conversations()[0]);
    assert!(said[0].contains("text [image]") && said[6].ends_with("[text -]"), "{said:?}");
}

#[test]
fn a_step_goes_with_its_results() {
    let mut transcript = transcript(&export(&[USER, STEPS]));
    let conversation = &mut transcript.conversations_mut()[0];
    conversation.entries.drain(1..4);
    let out = written(&transcript);
    assert!(!out.contains("c1") && !out.contains("look") && out.contains("c3"), "{out}");
    let again = read(out, &ReadOptions::default()).unwrap();
    assert_eq!(again.conversations()[0].entries.len(), 5);

    let conversation = &mut transcript.conversations_mut()[0];
    conversation.entries.remove(2);
    let refused = write_back(&transcript, &mut Vec::new()).unwrap_err();
    assert!(refused.to_string().contains("a call without its result"), "{refused}");
    transcript.conversations_mut()[0].entries.drain(1..);
    assert_eq!(written(&transcript), export(&[USER]));
}

#[test]
fn what_is_before_a_compaction_is_counted() {
    let text = export(&[USER, STEPS, ASKS, SUMMARY, GO_ON]);
    let mut transcript = transcript(&text);
    let conversation = &transcript.conversations()[0];
    let said = shown_in(conversation);
    assert_eq!(said, ["user: text What did we do so far?", "assistant: text so far", "user: text Continue"]);
    let of = |one: &ToolCompaction| (one.at, one.dropped, one.trigger.to_string());
    assert_eq!(
        conversation.compactions.iter().map(of).collect::<Vec<_>>(),
        [(0, Some(8), "auto".to_owned())]
    );
    assert_eq!(conversation.entries[2].message().attribution().source, SourceKind::Context);
    // Messages that the file needs are pinned.
    let pinned = |message: &Message| message.attribution().retention == Retention::Pinned;
    assert_eq!(conversation.messages().map(pinned).collect::<Vec<_>>(), [true, true, false]);
    transcript.conversations_mut()[0].entries.remove(0);
    assert_eq!(write_back(&transcript, &mut Vec::new()).unwrap_err().kind(), WireErrorKind::Unsupported);
    // A compaction without its summary is unfinished.
    let open = read(export(&[USER, STEPS, ASKS]), &ReadOptions::default()).unwrap();
    assert_eq!(open.conversations()[0].entries.len(), 9);
}

#[test]
fn what_a_compaction_keeps_is_read_and_what_was_reverted_is_not() {
    let asks = ASKS.replace("\"auto\":true", "\"auto\":false,\"tail_start_id\":\"msg_2\"");
    let text = export(&[USER, STEPS, &asks, SUMMARY, GO_ON]);
    let conversation = &transcript(&text).conversations()[0].clone();
    assert_eq!(conversation.entries.len(), 7 + 3);
    let of = |one: &ToolCompaction| (one.at, one.dropped, one.trigger.to_string());
    assert_eq!(
        conversation.compactions.iter().map(of).collect::<Vec<_>>(),
        [(7, Some(1), "manual".to_owned())]
    );
    let revert = "\"title\":\"Look around\",\"revert\":{\"messageID\":\"msg_6\"}";
    let reverted = text.replace("\"title\":\"Look around\"", revert);
    assert_eq!(transcript(&reverted).conversations()[0].entries.len(), 7 + 2);
}

#[test]
fn what_the_form_cannot_say_is_refused() {
    let mut transcript = transcript(&export(&[USER, STEPS]));
    transcript.conversations_mut()[0].entries.push(TranscriptEntry::new(Message::system("new")));
    let refused = write_back(&transcript, &mut Vec::new()).unwrap_err();
    assert_eq!(refused.kind(), WireErrorKind::Unsupported);
    for wrong in [
        r#"{"info":{"role":"user"},"parts":{}}"#,
        r#"{"info":{"role":"user"},"parts":[1]}"#,
        r#"{"info":{"role":"assistant"},"parts":[{"type":"tool","callID":"c","state":1}]}"#,
        r#"{"info":{"role":"assistant"},"parts":[{"type":"tool","callID":"c","state":{"status":"completed","output":1}}]}"#,
    ] {
        let options = ReadOptions::default().with_from(Format::OpenCode);
        let error = read(export(&[USER, wrong]), &options).unwrap_err();
        assert!(error.kind() == WireErrorKind::Shape && error.to_string().contains("/messages/1"), "{error}");
    }
}

fn with_new(text: &str, at: usize, new: &[&str]) -> Result<String, WireErrorKind> {
    let mut changed = transcript(text);
    let entries = &mut changed.conversations_mut()[0].entries;
    for text in new.iter().rev() {
        entries.insert(at, TranscriptEntry::new(Message::user(*text)));
    }
    let mut out = Vec::new();
    write_back(&changed, &mut out).map_err(|error| error.kind())?;
    Ok(String::from_utf8(out).unwrap())
}

#[test]
fn new_messages_in_one_place_sort_in_their_order() {
    let out = with_new(&export(&[USER, STEPS]), 1, &["b", "a", "b"]).unwrap();
    let text = shown_in(&transcript(&out).conversations()[0]);
    assert_eq!(text[1..4], ["user: text b", "user: text a", "user: text b"]);
    let ids: Vec<&str> =
        out.split(r#""info":{"id":""#).skip(2).map(|rest| rest.split('"').next().unwrap()).collect();
    assert!(ids.len() == 5 && ids.is_sorted() && ids.windows(2).all(|pair| pair[0] != pair[1]), "{ids:?}");
}

#[test]
fn a_new_message_is_refused_where_opencode_would_not_show_it() {
    let refused = Err(WireErrorKind::Unsupported);
    let both = export(&[USER, STEPS]);
    assert_eq!(with_new(&both, 0, &["a"]), refused, "an id before the first");
    assert_eq!(with_new(&both, 4, &["a"]), refused, "between two steps of one record");
    let last = transcript(&both).conversations()[0].entries.len();
    assert!(with_new(&both, last, &["a"]).is_ok());
    let cut = both.replace(r#""title":"Look around""#, r#""revert":{"messageID":"msg_2","partID":"p4"}"#);
    assert_eq!(with_new(&cut, last, &["a"]), refused, "behind what was reverted in part");
    let unnamed = export(&[USER, r#"{"info":{"role":"user"},"parts":[{"type":"text","text":"x"}]}"#]);
    assert_eq!(with_new(&unnamed, 2, &["a"]), refused, "beside a message without an id");
}

#[test]
fn a_new_message_has_what_opencode_demands_and_follows_by_time_and_id() {
    let steps = STEPS.replace(
        r#""role":"assistant","#,
        r#""role":"assistant","sessionID":"ses_1","time":{"created":2,"completed":3},"mode":"build","modelID":"m","providerID":"p","#,
    );
    let again = r#"{"info":{"id":"msg_4","role":"user"},"parts":[{"id":"q1","type":"text","text":"and?"}]}"#;
    let mut changed = transcript(&export(&[USER, &steps, again]));
    let entries = &mut changed.conversations_mut()[0].entries;
    let by_compaction = Attribution::new("x", SourceKind::Compaction, Authority::Assistant);
    let last = entries.len() - 1;
    entries.insert(last, TranscriptEntry::new(Message::user("so far").with_attribution(by_compaction)));
    entries.insert(1, TranscriptEntry::new(Message::user("new")));
    let out = written(&changed);
    let first = r#"{"info":{"id":"msg_1@","sessionID":"ses_1","role":"user","time":{"created":1},"agent":"build"},"parts":[{"id":"prt_1@","sessionID":"ses_1","messageID":"msg_1@","type":"text","text":"new"}]}"#;
    let second = r#"{"info":{"id":"msg_2@","sessionID":"ses_1","role":"user","time":{"created":2},"agent":"build","model":{"providerID":"p","modelID":"m"}},"parts":[{"id":"prt_2@","sessionID":"ses_1","messageID":"msg_2@","type":"text","synthetic":true,"text":"so far"}]}"#;
    let named = |record: &str, text: &str| {
        record.replace('@', &format!("{:08x}", crate::transcript::fingerprint(&json::quote(text)) >> 96))
    };
    assert_eq!(out, export(&[USER, &named(first, "new"), &steps, &named(second, "so far"), again]));
    let read = transcript(&out);
    assert_eq!(shown_in(&read.conversations()[0])[1], "user: text new");
}
