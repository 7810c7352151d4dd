//! Calls and their results, in each place that a format has for results.

use epitome_core::message::Role;
use epitome_core::{Pending, Profile, Repair, repair};
use epitome_message::{Message, Part};

use super::formats::same_text;
use crate::{Format, ReadOptions, read};

/// Conversations in which every call of the caller's tools has its result.
const ANSWERED: &[(&str, Format, &str)] = &[
    (
        "in one message",
        Format::Anthropic,
        r#"[{"role":"user","content":"a"},{"role":"assistant","content":[
        {"type":"text","text":"b"},{"type":"tool_use","id":"t","name":"f","input":{}},
        {"type":"tool_result","tool_use_id":"t","content":"r"},{"type":"text","text":"c"}]},{"role":"user","content":"d"}]"#,
    ),
    (
        "of the provider's tools",
        Format::Anthropic,
        r#"[{"role":"user","content":"a"},{"role":"assistant","content":[
        {"type":"server_tool_use","id":"s","name":"web_search","input":{}},
        {"type":"web_search_tool_result","tool_use_id":"s","content":[{"type":"web_search_result","url":"u"}]},
        {"type":"server_tool_use","id":"x","name":"code_execution","input":{}},
        {"type":"code_execution_tool_result","tool_use_id":"x","content":{"type":"code_execution_result","stdout":"1"}},
        {"type":"mcp_tool_use","id":"m","name":"g","server_name":"h","input":{}},
        {"type":"mcp_tool_result","tool_use_id":"m","is_error":false,"content":[{"type":"text","text":"r"}]}]}]"#,
    ),
    (
        "of a tool to come",
        Format::Anthropic,
        r#"[{"role":"user","content":"a"},{"role":"assistant","content":[
        {"type":"computer_tool_use","id":"p","name":"computer","input":{}},
        {"type":"computer_tool_result","tool_use_id":"p","content":[{"type":"text","text":"r"}]},
        {"type":"tool_use","id":"t","name":"computer","input":{}},
        {"type":"computer_tool_result","tool_use_id":"t","content":[{"type":"text","text":"r"}]}]}]"#,
    ),
    (
        "in the next message",
        Format::Anthropic,
        r#"[{"role":"user","content":"a"},{"role":"assistant","content":[
        {"type":"server_tool_use","id":"s","name":"web_search","input":{}},
        {"type":"computer_tool_use","id":"p","name":"computer","input":{}}]},{"role":"user","content":[
        {"type":"web_search_tool_result","tool_use_id":"s","content":[]},
        {"type":"computer_tool_result","tool_use_id":"p","content":[{"type":"text","text":"r"}]}]}]"#,
    ),
    (
        "in items of their own",
        Format::OpenaiResponses,
        r#"{"input":[{"role":"user","content":"a"},
        {"type":"web_search_call","id":"w","status":"completed","action":{"type":"search","query":"q"}},
        {"type":"computer_call","call_id":"p","action":{"type":"click"},"pending_safety_checks":[]},
        {"type":"computer_call_output","call_id":"p","output":{"type":"computer_screenshot","image_url":"https://x.example/a.png"}},
        {"type":"custom_tool_call","call_id":"c","name":"apply_patch","input":"*** x"},
        {"type":"custom_tool_call_output","call_id":"c","output":"r"},
        {"type":"local_shell_call","call_id":"l","action":{"type":"exec","command":["ls"]}},
        {"type":"local_shell_call_output","call_id":"l","output":"r"},
        {"type":"novel_call","call_id":"n","action":{}},{"type":"novel_call_output","call_id":"n","output":"r"}]}"#,
    ),
    (
        "in one content",
        Format::Gemini,
        r#"{"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[
        {"functionCall":{"name":"f","args":{}}},{"functionResponse":{"name":"f","response":{"output":"r"}}},
        {"functionCall":{"id":"i","name":"g","args":{}}},{"functionResponse":{"id":"i","name":"g","response":{"output":"r"}}},
        {"executableCode":{"language":"PYTHON","code":"1"}},{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1"}},
        {"text":"c"}]}]}"#,
    ),
    (
        "in one message",
        Format::AgentFramework,
        r#"[{"type":"message","role":"user","contents":[{"type":"text","text":"a"}]},
        {"type":"message","role":"assistant","contents":[{"type":"text","text":"b"},
        {"type":"function_call","call_id":"c","name":"f","arguments":"{}"},
        {"type":"function_result","call_id":"c","result":"r"},{"type":"text","text":"d"}]}]"#,
    ),
    (
        "of tools that are no functions",
        Format::AgentFramework,
        r#"[{"type":"message","role":"user","contents":[{"type":"text","text":"a"}]},
        {"type":"message","role":"assistant","contents":[
        {"type":"computer_tool_call","id":"i","call_id":"p","actions":[{"type":"click"}],"user_input_request":true}]},
        {"type":"message","role":"tool","contents":[{"type":"computer_tool_result","call_id":"p",
        "screenshot":{"type":"uri","uri":"https://x.example/a.png","media_type":"image/png"}}]},
        {"type":"message","role":"assistant","contents":[
        {"type":"mcp_server_tool_call","call_id":"m","tool_name":"g","arguments":"{}"},
        {"type":"mcp_server_tool_result","call_id":"m","output":"r"},
        {"type":"shell_tool_call","call_id":"l","commands":["ls"]},
        {"type":"shell_tool_result","call_id":"l","outputs":[{"type":"shell_command_output","stdout":"r"}]}]}]"#,
    ),
    (
        "in one message",
        Format::SemanticKernel,
        r#"[{"Role":{"Label":"user"},"Items":[{"$type":"TextContent","Text":"a"}]},
        {"Role":{"Label":"assistant"},"Items":[{"$type":"FunctionCallContent","Id":"c","FunctionName":"f","Arguments":{}},
        {"$type":"FunctionResultContent","CallId":"c","FunctionName":"f","Result":"r"},{"$type":"TextContent","Text":"b"}]}]"#,
    ),
    (
        "in one message",
        Format::ClaudeCode,
        concat!(
            r#"{"type":"user","uuid":"1","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"a"}}"#,
            "\n",
            r#"{"type":"assistant","uuid":"2","parentUuid":"1","sessionId":"s","message":{"role":"assistant","id":"m","content":[{"type":"tool_use","id":"t","name":"f","input":{}},{"type":"tool_result","tool_use_id":"t","content":"r"}]}}"#,
            "\n"
        ),
    ),
];

pub(super) fn messages(text: &str, format: Format) -> Vec<Message> {
    let transcript = read(text, &ReadOptions::default().with_from(format)).unwrap();
    transcript.conversations()[0].messages().cloned().collect()
}

fn steps(messages: &[Message], profile: Profile) -> Vec<Repair> {
    repair(profile, messages, Pending::Over)
}

#[test]
fn a_result_answers_its_call_wherever_it_stands() {
    for (place, format, text) in ANSWERED {
        let messages = messages(text, *format);
        for profile in Profile::ALL {
            let steps = steps(&messages, profile);
            assert!(
                steps.iter().all(|step| !matches!(step, Repair::Abort { .. } | Repair::Unrecorded { .. })),
                "{format}, {place}, {}: {steps:?}",
                profile.as_str()
            );
            for (at, message) in (0..).zip(&messages) {
                let is_result = message.role() == Role::Tool;
                assert!(!is_result || steps.contains(&Repair::Keep(at)), "{format}, {place}: {steps:?}");
            }
        }
        same_text(text, &ReadOptions::default().with_from(*format));
    }
}

/// Checks conversions: a result of the caller goes to every target, a result of the provider is a listed loss.
#[test]
fn results_in_one_message_are_converted_with_their_calls() {
    for (place, format, text) in ANSWERED.iter().filter(|(place, ..)| place.starts_with("in one")) {
        let messages = messages(text, *format);
        let results = messages.iter().filter(|message| message.role() == Role::Tool).count();
        let hosted = messages
            .iter()
            .flat_map(|message| message.parts())
            .filter(|part| matches!(part, Part::ToolResult(_)));
        assert!(
            hosted.count() >= results && (results > 0 || *format == Format::SemanticKernel),
            "{format}, {place}"
        );
        assert_eq!(
            crate::convert(&messages, Format::OpenaiChat).unwrap().text.matches("\"role\":\"tool\"").count(),
            results,
            "{format}"
        );
    }
}

/// A call before a text of the user is not reported as failed: tools such as Cline write the result of a tool as a text
/// of the user.
#[test]
fn a_call_before_the_users_words_is_not_said_to_have_failed() {
    let text = r#"[{"role":"user","content":[{"type":"text","text":"<task>Go</task>"}]},{"role":"assistant","content":[
        {"type":"text","text":"I read it."},{"type":"tool_use","id":"t1","name":"read_file","input":{"path":"x"}}]},
        {"role":"user","content":[{"type":"text","text":"[read_file for 'x'] Result:"},{"type":"text","text":"contents"}]},
        {"role":"assistant","content":[{"type":"tool_use","id":"t2","name":"read_file","input":{"path":"y"}}]},
        {"role":"assistant","content":"Done."}]"#;
    let messages = messages(text, Format::Anthropic);
    for profile in Profile::ALL {
        let invented: Vec<_> = steps(&messages, profile)
            .into_iter()
            .filter(|step| matches!(step, Repair::Abort { .. } | Repair::Unrecorded { .. }))
            .collect();
        let expected = [Repair::Unrecorded { position: 1, call: 0 }, Repair::Abort { position: 3, call: 0 }];
        assert_eq!(invented, expected, "{}", profile.as_str());
    }
}
