//! Events of OpenHands, read, changed and written back.

use epitome_message::{Message, Part, ToolCall, ToolResult};

use crate::tests::support::{shown_in, transcript_of, written};
use crate::{Conversation, Format, Relation, Transcript, WireErrorKind, write_back};

const HEAD: &str = r#"{"id": 0, "source": "agent", "action": "system", "args": {"content": "Be brief."}},
 {"id": 1, "source": "environment", "observation": "agent_state_changed", "content": "", "extras": {"agent_state": "init"}},
 {"id": 2, "source": "user", "action": "message", "args": {"content": "go", "image_urls": null}}"#;

fn metadata(id: &str) -> String {
    let call = |id: &str| {
        format!(
            r#"{{"id": "{id}", "type": "function", "function": {{"name": "ls", "arguments": "{{\"n\":1.0}}"}}}}"#
        )
    };
    let message = format!(
        r#"{{"role": "assistant", "content": "look", "tool_calls": [{}, {}]}}"#,
        call("c1"),
        call("c2")
    );
    let usage = r#"{"prompt_tokens": 100, "completion_tokens": 9, "total_tokens": 109}"#;
    format!(
        r#""tool_call_metadata": {{"function_name": "ls", "tool_call_id": "{id}", "model_response": {{"id": "r1", "choices": [{{"message": {message}}}], "usage": {usage}}}}}"#
    )
}

fn events() -> Vec<String> {
    let action = |number: u8, id: &str| {
        format!(
            r#"{{"id": {number}, "source": "agent", "action": "run", {}, "args": {{"thought": "look"}}}}"#,
            metadata(id)
        )
    };
    let seen = |number: u8, id: &str, text: &str| {
        format!(
            r#"{{"id": {number}, "source": "agent", "cause": 3, "observation": "run", {}, "content": "{text}"}}"#,
            metadata(id)
        )
    };
    vec![
        HEAD.to_owned(),
        action(3, "c1"),
        action(4, "c2"),
        seen(5, "c1", "a.txt"),
        seen(6, "c2", "b.txt"),
        r#"{"id": 7, "source": "agent", "observation": "error", "content": "No such tool"}"#.to_owned(),
        r#"{"id": 8, "source": "agent", "action": "finish", "args": {"final_thought": "done", "thought": "x"}}"#.to_owned(),
    ]
}

fn list(events: &[String]) -> String {
    format!("[{}]", events.join(",\n "))
}

fn transcript(text: &str) -> Transcript {
    transcript_of(text, Format::OpenHands)
}

#[test]
fn actions_are_calls_and_observations_results() {
    let mut transcript = transcript(&list(&events()));
    let conversation = &mut transcript.conversations_mut()[0];
    let expected = [
        "system: text Be brief.",
        "user: text go",
        "assistant: text look | call c1 ls {\"n\":1.0}",
        "assistant: call c2 ls {\"n\":1.0}",
        "tool: result c1 [text a.txt]",
        "tool: result c2 [text b.txt]",
        "user: text No such tool",
        "assistant: text done",
    ];
    assert_eq!(shown_in(conversation), expected);
    assert_eq!((conversation.usage.len(), conversation.usage[0].at), (1, 2));
    let set = |conversation: &mut Conversation, at: usize, part: Part| {
        let changed = conversation.entries[at].message().clone().with_parts(vec![part]);
        conversation.entries[at] = conversation.entries[at].clone().with_message(changed);
    };
    set(conversation, 4, Part::ToolResult(ToolResult::new("c1", vec![Part::Text("-".into())])));
    set(conversation, 7, Part::Text("Done.".into()));
    set(conversation, 1, Part::Text("Go.".into()));
    conversation.entries.remove(6);
    let mut expected = events();
    expected.remove(5);
    let expected = list(&expected)
        .replace("\"a.txt\"", "\"-\"")
        .replace("\"done\"", "\"Done.\"")
        .replace("\"go\"", "\"Go.\"");
    assert_eq!(written(&transcript), expected);
    set(&mut transcript.conversations_mut()[0], 2, Part::Text("no call".into()));
    assert_eq!(write_back(&transcript, &mut Vec::new()).unwrap_err().kind(), WireErrorKind::Unsupported);
}

#[test]
fn every_line_of_an_evaluation_is_a_run() {
    let line = |name: &str| {
        format!(
            r#"{{"instance_id": "{name}", "history": {}, "metrics": {{}}}}"#,
            list(&events()).replace('\n', "")
        )
    };
    let transcript = transcript(&format!("{}\n{}\n", line("one"), line("two")));
    let labels: Vec<_> =
        transcript.conversations().iter().map(|one| (one.label.to_string(), one.entries.len())).collect();
    assert_eq!(labels, [("one".to_owned(), 8), ("two".to_owned(), 8)]);
}

#[test]
fn a_condensation_takes_events_out() {
    let mut all = events();
    let condensation = r#"{"id": 9, "source": "agent", "action": "condensation", "args": {"forgotten_events_start_id": 3, "forgotten_events_end_id": 6, "summary": "so far", "summary_offset": 2}}"#;
    all.push(condensation.to_owned());
    all.push(r#"{"id": 10, "source": "user", "action": "message", "args": {"content": "more"}}"#.to_owned());
    let transcript = transcript(&list(&all));
    let [active, before] = transcript.conversations() else { panic!("{transcript:?}") };
    let expected = [
        "system: text Be brief.",
        "user: text go",
        "user: text so far",
        "user: text No such tool",
        "assistant: text done",
        "user: text more",
    ];
    assert_eq!(shown_in(active), expected);
    let compaction = active.compactions.get(0).unwrap();
    assert_eq!((compaction.at, compaction.dropped), (2, Some(4)));
    assert_eq!((before.relation, before.entries.len()), (Relation::Branch(0), 8));
}

/// The events of a version that did not record the calls of the model.
const WITHOUT_CALLS: &[&str] = &[
    r#"{"id": 0, "source": "user", "action": "message", "args": {"content": "go"}}"#,
    r#"{"id": 1, "source": "agent", "action": "run", "args": {"command": "ls -la", "thought": "look"}, "message": "Running"}"#,
    r#"{"id": 2, "source": "agent", "cause": 1, "observation": "run", "content": "a.txt", "extras": {"command": "ls -la"}}"#,
    r#"{"id": 3, "source": "agent", "action": "read", "args": {"path": "a.txt", "n": 1.0, "thought": ""}}"#,
    r#"{"id": 4, "source": "agent", "cause": 3, "observation": "read", "content": "", "extras": {}}"#,
    r#"{"id": 5, "source": "agent", "action": "run_ipython", "args": {"code": "x"}}"#,
    r#"{"id": 6, "source": "agent", "cause": 5, "observation": "error", "content": "no x"}"#,
    r#"{"id": 7, "source": "user", "action": "run", "args": {"command": "pwd"}}"#,
    r#"{"id": 8, "source": "user", "cause": 7, "observation": "run", "content": "/"}"#,
    r#"{"id": 9, "source": "agent", "action": "think", "args": {"thought": "hm"}}"#,
    r#"{"id": 10, "source": "agent", "cause": 9, "observation": "null", "content": ""}"#,
    r#"{"id": 11, "source": "agent", "action": "message", "args": {"content": "done"}}"#,
];

#[test]
fn an_action_without_a_recorded_call_is_one_and_what_it_caused_its_result() {
    let events: Vec<_> = WITHOUT_CALLS.iter().map(|event| (*event).to_owned()).collect();
    let mut transcript = transcript(&list(&events));
    let conversation = &mut transcript.conversations_mut()[0];
    let expected = [
        "user: text go",
        r#"assistant: text look | call event-1 run {"command": "ls -la", "thought": "look"}"#,
        "tool: result event-1 [text a.txt]",
        r#"assistant: call event-3 read {"path": "a.txt", "n": 1.0, "thought": ""}"#,
        "tool: result event-3 []",
        r#"assistant: call event-5 run_ipython {"code": "x"}"#,
        "tool: result event-5 [text no x]",
        "user: text /",
        "assistant: text hm",
        "assistant: text done",
    ];
    assert_eq!(shown_in(conversation), expected);
    let is_error = |message: &Message| {
        message.parts().iter().any(|part| matches!(part, Part::ToolResult(result) if result.is_error))
    };
    assert_eq!(conversation.messages().map(is_error).filter(|is_error| *is_error).count(), 1);
    let set = |conversation: &mut Conversation, at: usize, part: Part| {
        let changed = conversation.entries[at].message().clone().with_parts(vec![part]);
        conversation.entries[at] = conversation.entries[at].clone().with_message(changed);
    };
    set(conversation, 2, Part::ToolResult(ToolResult::new("event-1", vec![Part::Text("-".into())])));
    set(conversation, 7, Part::Text("/home".into()));
    conversation.entries.remove(4);
    conversation.entries.remove(3);
    let mut expected = events;
    expected.drain(3..5);
    let expected = list(&expected).replace("\"a.txt\"", "\"-\"").replace("\"/\"", "\"/home\"");
    assert_eq!(written(&transcript), expected);
    // An action consists of the arguments of its call: without them it is no action.
    for part in [Part::Text("no call".into()), Part::ToolCall(ToolCall::new("event-1", "run", "{}"))] {
        set(&mut transcript.conversations_mut()[0], 1, part);
        assert_eq!(write_back(&transcript, &mut Vec::new()).unwrap_err().kind(), WireErrorKind::Unsupported);
    }
}

#[test]
fn cleared_arguments_are_cleared_in_the_recorded_call_and_the_action_stays() {
    let mut all = events();
    all[1] = all[1].replace(r#""thought": "look""#, r#""thought": "look", "n": 1.0"#);
    let mut transcript = transcript(&list(&all));
    let entry = &mut transcript.conversations_mut()[0].entries[2];
    let mut parts = entry.message().parts().to_vec();
    *parts.last_mut().unwrap() = Part::ToolCall(ToolCall::new("c1", "ls", "{}"));
    *entry = entry.clone().with_message(entry.message().clone().with_parts(parts));
    // The first call of the response belongs to this event.
    all[1] = all[1].replacen(r#"{\"n\":1.0}"#, "{}", 1);
    assert_eq!(written(&transcript), list(&all));
}

#[test]
fn a_file_with_a_message_that_was_added_is_detected_again() {
    let plain: Vec<_> = WITHOUT_CALLS.iter().map(|event| (*event).to_owned()).collect();
    for (role, events) in [("user", events()), ("agent", events()), ("user", plain)] {
        let mut changed = transcript(&list(&events));
        let new = if role == "user" { Message::user("so far") } else { Message::assistant("so far") };
        let last = changed.conversations()[0].entries.len();
        for at in [1, last] {
            changed.conversations_mut()[0].entries.insert(at, crate::TranscriptEntry::new(new.clone()));
        }
        let again = transcript(&written(&changed));
        assert_eq!(shown_in(&again.conversations()[0]), shown_in(&changed.conversations()[0]));
    }
}
