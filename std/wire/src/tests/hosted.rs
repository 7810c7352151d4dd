//! Outputs of the provider's own tools, shortened in their places, in the form that each API takes back.

use epitome_core::{
    GroupKind, IndexBuf, OpenCallTree, PartKind, PartSpan as Row, Pending, Profile, Repair, Span, Tokens,
    repair,
};

use epitome_core::message::Role;
use epitome_message::{Message, Part, ToolCall, ToolResult};

use super::answers::messages;
use super::formats::same_text;
use crate::{Format, ReadOptions, convert, read};

/// Results of tools that the provider ran, as they are read; and as they are written with a note in their place.
const CLEARED: &[(Format, &str, &str)] = &[
    (
        Format::Anthropic,
        r#"{"type":"mcp_tool_use","id":"x","name":"f","server_name":"h","input":{}},
        {"type":"mcp_tool_result","tool_use_id":"x","is_error":false,"content":[{"type":"text","text":"long"}]}"#,
        r#""content":[{"type":"text","text":"[cleared]"}]}"#,
    ),
    (
        Format::Anthropic,
        r#"{"type":"server_tool_use","id":"x","name":"bash_code_execution","input":{}},{"type":"bash_code_execution_tool_result",
        "tool_use_id":"x","content":{"type":"bash_code_execution_result","stdout":"long","stderr":"more","return_code":0,"content":[]}}"#,
        r#""content":{"type":"bash_code_execution_result","stdout":"[cleared]","stderr":"","return_code":0,"content":[]}}"#,
    ),
    (
        Format::Anthropic,
        r#"{"type":"server_tool_use","id":"x","name":"text_editor_code_execution","input":{}},
        {"type":"text_editor_code_execution_tool_result","tool_use_id":"x",
        "content":{"type":"text_editor_code_execution_view_result","file_type":"text","content":"long"}}"#,
        r#""file_type":"text","content":"[cleared]"}}"#,
    ),
    (
        Format::Anthropic,
        r#"{"type":"server_tool_use","id":"x","name":"web_fetch","input":{}},{"type":"web_fetch_tool_result","tool_use_id":"x",
        "content":{"type":"web_fetch_result","url":"u","content":{"type":"document","title":"t",
        "source":{"type":"text","media_type":"text/plain","data":"long"}}}}"#,
        r#""source":{"type":"text","media_type":"text/plain","data":"[cleared]"}}}}"#,
    ),
    (
        Format::Anthropic,
        r#"{"type":"computer_tool_use","id":"x","name":"computer","input":{}},
        {"type":"computer_tool_result","tool_use_id":"x","content":[{"type":"image","source":{"type":"url","url":"https://x.example/a.png"}}]}"#,
        r#""content":[{"type":"text","text":"[cleared]"}]}"#,
    ),
    (
        Format::OpenaiResponses,
        r#"{"type":"mcp_call","id":"x","name":"f","server_label":"s","arguments":"{}","output":"long","error":null}"#,
        r#""arguments":"{}","output":"[cleared]","error":null}"#,
    ),
    (
        Format::OpenaiResponses,
        r#"{"type":"code_interpreter_call","id":"x","code":"1","container_id":"c","status":"completed",
        "outputs":[{"type":"logs","logs":"long"},{"type":"logs","logs":"more"}]}"#,
        r#""outputs":[{"type":"logs","logs":"[cleared]"}]}"#,
    ),
    (
        Format::OpenaiResponses,
        r#"{"type":"file_search_call","id":"x","queries":["q"],"status":"completed",
        "results":[{"file_id":"f","score":0.50,"text":"long"},{"file_id":"g","text":"more"}]}"#,
        r#""results":[{"file_id":"f","score":0.50,"text":"[cleared]"}]}"#,
    ),
    (
        Format::Gemini,
        r#"{"executableCode":{"language":"PYTHON","code":"1"}},{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"long"}}"#,
        r#"{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"[cleared]"}}"#,
    ),
    (
        Format::AgentFramework,
        r#"{"type":"mcp_server_tool_call","call_id":"x","tool_name":"f","server_name":"s","arguments":"{}"},
        {"type":"mcp_server_tool_result","call_id":"x","output":[{"type":"text","text":"long"}]}"#,
        r#"{"type":"mcp_server_tool_result","call_id":"x","output":"[cleared]"}"#,
    ),
    (
        Format::AgentFramework,
        r#"{"type":"code_interpreter_tool_call","call_id":"x","inputs":[{"type":"text","text":"1"}]},
        {"type":"code_interpreter_tool_result","call_id":"x","outputs":[{"type":"text","text":"long"}]}"#,
        r#""outputs":[{"type":"text","text":"[cleared]"}]}"#,
    ),
    (
        Format::AgentFramework,
        r#"{"type":"search_tool_call","call_id":"x","tool_name":"web_search","arguments":"{}"},
        {"type":"search_tool_result","call_id":"x","tool_name":"web_search","result":"long"}"#,
        r#""tool_name":"web_search","result":"[cleared]"}"#,
    ),
    (
        Format::AgentFramework,
        r#"{"type":"shell_tool_call","call_id":"x","commands":["ls"]},{"type":"shell_tool_result","call_id":"x",
        "outputs":[{"type":"shell_command_output","stdout":"long","stderr":"more","exit_code":1}]}"#,
        r#""outputs":[{"type":"shell_command_output","stdout":"[cleared]","stderr":"","exit_code":1}]}"#,
    ),
];

/// A conversation in which the model's message has these pieces.
fn said(format: Format, pieces: &str) -> String {
    match format {
        Format::OpenaiResponses => format!(r#"{{"input":[{{"role":"user","content":"a"}},{pieces}]}}"#),
        Format::Gemini => format!(
            r#"{{"contents":[{{"role":"user","parts":[{{"text":"a"}}]}},{{"role":"model","parts":[{pieces}]}}]}}"#
        ),
        Format::AgentFramework => format!(
            r#"[{{"role":"user","contents":["a"]}},{{"role":"assistant","contents":[{pieces},{{"type":"text","text":"b"}}]}}]"#
        ),
        _ => format!(
            r#"[{{"role":"user","content":"a"}},{{"role":"assistant","content":[{pieces},{{"type":"text","text":"b"}}]}}]"#
        ),
    }
}

/// Shortens every part of the conversation that a plan may shorten as a result, and writes it. Returns the number of
/// these parts, and the text, which is read again as it was meant.
fn cleared(format: Format, text: &str) -> (usize, String) {
    let mut transcript = read(text, &ReadOptions::default().with_from(format)).unwrap();
    let mut index = IndexBuf::with_parts(Vec::<Span>::new(), OpenCallTree::new(), Vec::<Row>::new());
    for message in transcript.conversations()[0].messages() {
        index.push_with_parts(message, Tokens(99), |_, _| Tokens(9)).unwrap();
    }
    let rows = index.view();
    let rows: Vec<_> = rows.parts().filter(|part| part.kind() == PartKind::ToolResult).collect();
    for row in &rows {
        let entry = &mut transcript.conversations_mut()[0].entries[row.position() as usize];
        let mut parts = entry.message().parts().to_vec();
        match &mut parts[row.ordinal() as usize] {
            Part::ToolResult(result) => result.parts = vec![Part::Text("[cleared]".into())],
            part => *part = Part::Text("[cleared]".into()),
        }
        let shortened = entry.message().clone().with_parts(parts);
        *entry = entry.clone().with_message(shortened);
    }
    let mut out = Vec::new();
    crate::write_back(&transcript, &mut out).unwrap();
    let written = String::from_utf8(out).unwrap();
    let expected = transcript.conversations()[0].messages().map(|message| message.parts().to_vec());
    let again: Vec<_> = messages(&written, format).iter().map(|message| message.parts().to_vec()).collect();
    // A picture of a single pixel has no place for the note.
    if !written.contains(epitome_message::media::PIXEL) {
        assert_eq!(again, expected.collect::<Vec<_>>(), "{format}: {written}");
    }
    (rows.len(), written)
}

#[test]
fn results_of_the_providers_tools_are_cleared_in_place_as_their_api_takes_them() {
    for (format, pieces, expected) in CLEARED {
        let text = said(*format, pieces);
        let (rows, written) = cleared(*format, &text);
        assert_eq!(rows, 1, "{format}: {pieces}");
        assert!(written.contains(expected), "{format}: {written}");
        assert!(!written.contains("long"), "{format}: {written}");
        // The written text reads as intended, and the rest is unchanged.
        let again = messages(&written, *format);
        let results = again.iter().flat_map(Message::parts).filter_map(|part| match part {
            Part::ToolResult(result) => Some(&result.parts),
            _ => None,
        });
        assert_eq!(
            results.collect::<Vec<_>>(),
            [&vec![Part::Text("[cleared]".into())]],
            "{format}: {written}"
        );
        same_text(&written, &ReadOptions::default().with_from(*format));
    }
}

/// A part that only the provider reads is not shortened.
#[test]
fn results_that_only_the_provider_reads_stay_whole() {
    let whole = [
        (
            Format::Anthropic,
            r#"{"type":"server_tool_use","id":"x","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"x",
            "content":[{"type":"web_search_result","url":"u","title":"t","encrypted_content":"e"}]}"#,
        ),
        (
            Format::Anthropic,
            r#"{"type":"server_tool_use","id":"x","name":"code_execution","input":{}},{"type":"code_execution_tool_result","tool_use_id":"x",
            "content":{"type":"code_execution_result","stdout":"1","stderr":"","return_code":0,
            "content":[{"type":"code_execution_output","file_id":"f"}]}}"#,
        ),
        (
            Format::OpenaiResponses,
            r#"{"type":"code_interpreter_call","id":"x","code":"1","container_id":"c","status":"completed",
            "outputs":[{"type":"image","url":"u"}]}"#,
        ),
        (
            Format::OpenaiResponses,
            r#"{"type":"image_generation_call","id":"x","status":"completed","result":"QUJD"}"#,
        ),
        (Format::OpenaiResponses, r#"{"type":"web_search_call","id":"x","status":"completed","action":{}}"#),
        (
            Format::AgentFramework,
            r#"{"type":"search_tool_call","call_id":"x","tool_name":"web_search","arguments":"{}"},
            {"type":"search_tool_result","call_id":"x","tool_name":"web_search","result":{"action":{"type":"search"}}}"#,
        ),
        (Format::Gemini, r#"{"toolCall":{"id":"x"}},{"toolResponse":{"id":"x","response":{"a":1}}}"#),
    ];
    for (format, pieces) in whole {
        let text = said(format, pieces);
        assert_eq!(cleared(format, &text), (0, text), "{format}");
    }
}

/// Clears results of the caller in items or messages of their own, where the format has more than a text for them.
#[test]
fn results_of_computers_and_shells_are_cleared_to_what_their_api_takes() {
    let computer = r#"[{"role":"user","contents":["a"]},{"role":"assistant","contents":[
        {"type":"computer_tool_call","id":"i","call_id":"x","actions":[{"type":"click"}],"user_input_request":true}]},
        {"role":"tool","contents":[{"type":"computer_tool_result","call_id":"x","screenshot":{"type":"uri","uri":"https://x.example/a.png"}}]}]"#;
    let responses = r#"{"input":[{"role":"user","content":"a"},
        {"type":"computer_call","call_id":"p","action":{"type":"click"},"pending_safety_checks":[]},
        {"type":"computer_call_output","call_id":"p","output":{"type":"computer_screenshot","image_url":"https://x.example/a.png"}},
        {"type":"shell_call","call_id":"l","action":{"commands":["ls"]}},
        {"type":"shell_call_output","call_id":"l","output":[{"stdout":"long","stderr":"","outcome":{"type":"exit","exit_code":2}}]}]}"#;
    let (rows, written) = cleared(Format::AgentFramework, computer);
    assert_eq!(rows, 1, "the result is linked to its call");
    let screenshot = r#""screenshot":{"type":"data","uri":"data:image/png;base64,"#;
    assert!(written.contains(screenshot) && !written.contains("a.png"), "{written}");
    let (rows, written) = cleared(Format::OpenaiResponses, responses);
    assert_eq!(rows, 2);
    let screenshot = r#""output":{"type":"computer_screenshot","image_url":"data:image/png;base64,"#;
    assert!(written.contains(screenshot) && !written.contains("a.png"), "{written}");
    let shell = r#""output":[{"stdout":"[cleared]","stderr":"","outcome":{"type":"exit","exit_code":2}}]}"#;
    assert!(written.contains(shell), "{written}");
}

/// The streams of a shell are texts of the result. A changed text is written in its place, and each text of another
/// number of texts is the output of a command that ended as the whole result did.
#[test]
fn streams_of_a_shell_are_read_and_written_in_their_places() {
    let output = r#"[{"stdout":"a","stderr":"","outcome":{"type":"exit","exit_code":0}},{"stdout":"b","stderr":"c","outcome":{"type":"timeout"}}]"#;
    let text = format!(
        r#"{{"input":[{{"role":"user","content":"q"}},{{"type":"shell_call","call_id":"l","action":{{"commands":["ls"]}}}},
        {{"type":"shell_call_output","call_id":"l","output":{output}}}]}}"#
    );
    let written = |texts: &[&str]| {
        let mut transcript = read(&*text, &ReadOptions::default()).unwrap();
        let entry = &mut transcript.conversations_mut()[0].entries[2];
        let Part::ToolResult(result) = &entry.message().parts()[0] else { panic!("{entry:?}") };
        assert_eq!((result.text().into_owned(), result.is_error), ("abc".to_owned(), true));
        let mut changed = result.clone();
        changed.parts = texts.iter().map(|text| Part::Text((*text).into())).collect();
        let parts = vec![Part::ToolResult(changed)];
        *entry = entry.clone().with_message(entry.message().clone().with_parts(parts.clone()));
        let mut out = Vec::new();
        crate::write_back(&transcript, &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert_eq!(messages(&out, Format::OpenaiResponses)[2].parts(), parts, "{out}");
        out.split_once(r#""output":"#).unwrap().1.trim_end_matches("}]}").to_owned()
    };
    assert_eq!(written(&["a", "b", "c"]), output);
    assert_eq!(written(&["a", "B", "c"]), output.replace(r#""b""#, r#""B""#));
    assert_eq!(written(&["short"]), r#"[{"stdout":"short","stderr":"","outcome":{"type":"timeout"}}]"#);
    assert_eq!(written(&["x", "y"]).matches("timeout").count(), 2);
    assert_eq!(written(&[]), r#"[{"stdout":"","stderr":"","outcome":{"type":"timeout"}}]"#);

    for to in [Format::Anthropic, Format::OpenaiChat] {
        let converted = convert(&messages(&text, Format::OpenaiResponses), to).unwrap();
        let parts = messages(&converted.text, to).last().unwrap().parts().to_vec();
        let said: String = parts.iter().map(|part| format!("{part:?}")).collect();
        assert!(["a", "b", "c"].iter().all(|text| said.contains(text)), "{to}: {said}");
        let lost: Vec<_> = converted.losses.iter().map(|loss| loss.to_string()).collect();
        assert!(lost.iter().all(|loss| !loss.contains("std") && !loss.contains("action")), "{lost:?}");
    }
}

/// A pause of the provider between a call and its result makes two messages: they are kept or removed together.
#[test]
fn a_paused_call_and_its_result_are_one_group() {
    let text = r#"[{"role":"user","content":"a"},
        {"role":"assistant","content":[{"type":"text","text":"b"},{"type":"server_tool_use","id":"s","name":"web_search","input":{}}]},
        {"role":"assistant","content":[{"type":"web_search_tool_result","tool_use_id":"s","content":[]},{"type":"text","text":"c"}]},
        {"role":"assistant","content":"d"}]"#;
    let messages = messages(text, Format::Anthropic);
    let mut index = IndexBuf::with_parts(Vec::<Span>::new(), OpenCallTree::new(), Vec::<Row>::new());
    for message in &messages {
        index.push(message, Tokens(9)).unwrap();
    }
    let groups: Vec<_> = index
        .view()
        .groups()
        .map(|group| (group.kind(), group.positions().map(|range| range.len()).sum()))
        .collect();
    let expected: [(GroupKind, usize); 3] =
        [(GroupKind::User, 1), (GroupKind::Hosted, 2), (GroupKind::Assistant, 1)];
    assert_eq!(groups, expected);
    for profile in Profile::ALL {
        let steps = repair(profile, &messages, Pending::Over);
        assert!(
            !steps.iter().any(|step| matches!(step, Repair::Abort { .. } | Repair::Unrecorded { .. })),
            "{steps:?}"
        );
    }
}

#[test]
fn calls_with_their_results_in_one_message_are_written_as_calls_and_results() {
    let call = |id: &str| Part::ToolCall(ToolCall::new(id, "read", "{}"));
    let result = |id: &str| Part::ToolResult(ToolResult::new(id, vec![Part::Text("long".into())]));
    let parts = vec![call("c1"), call("c2"), result("c1"), result("c2"), Part::Text("Done.".into())];
    let messages = [Message::user("Read."), Message::new(Role::Assistant, parts), Message::user("Go on.")];
    let text = convert(&messages, Format::OpenaiChat).unwrap().text;
    assert_eq!((text.matches(r#""role":"tool""#).count(), text.contains("aborted")), (2, false), "{text}");
}
