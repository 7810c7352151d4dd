//! Calls and results of tools that are no functions: tools of the provider, and the computer, which the caller runs.

use std::sync::Arc;

use epitome_core::message::CallKind;
use epitome_message::media::PIXEL;
use epitome_message::{Part, ToolCall, ToolResult, UnknownPart};

use super::{FORMAT, content};
use crate::WireError;
use crate::expect::share;
use crate::json::{self, ValueKind, patch, quote};
use crate::shell;

/// A kind of tool: the types of its contents, its default name, the keys of the input of a call and of the output of a
/// result, and the side that runs it.
struct Tool {
    call: &'static str,
    result: &'static str,
    name: &'static str,
    input: &'static str,
    output: &'static str,
    kind: CallKind,
}

impl Tool {
    const fn hosted(
        [call, result, name]: [&'static str; 3],
        input: &'static str,
        output: &'static str,
    ) -> Self {
        Self { call, result, name, input, output, kind: CallKind::Hosted }
    }
}

/// The tool whose results have the streams of commands.
const SHELL: &str = "shell";

/// The tools whose calls and results are linked by an id.
const TOOLS: [Tool; 5] = [
    Tool {
        call: "computer_tool_call",
        result: "computer_tool_result",
        name: "computer",
        input: "actions",
        output: "screenshot",
        kind: CallKind::Function,
    },
    Tool::hosted(["mcp_server_tool_call", "mcp_server_tool_result", "mcp"], "arguments", "output"),
    Tool::hosted(["search_tool_call", "search_tool_result", "search"], "arguments", "result"),
    Tool::hosted(
        ["code_interpreter_tool_call", "code_interpreter_tool_result", "code_interpreter"],
        "inputs",
        "outputs",
    ),
    Tool::hosted(["shell_tool_call", "shell_tool_result", SHELL], "commands", "outputs"),
];

/// Reads the content `raw` of this type. `None` if it is no such content, or has no id of a call.
pub(super) fn part(whole: &Arc<str>, raw: &str, kind: &str) -> Result<Option<Part>, WireError> {
    let Some(tool) = TOOLS.iter().find(|tool| kind == tool.call || kind == tool.result) else {
        return Ok(None);
    };
    let is_call = kind == tool.call;
    let value = if is_call { tool.input } else { tool.output };
    let [id, name, items, value] = json::known::fields(raw, &["call_id", "tool_name", "items", value])?;
    let as_text = |value: &str| share(whole, &json::decode(value));
    let given =
        |value: Option<&str>| value.filter(|value| ValueKind::of(value) == ValueKind::Text).map(as_text);
    let Some(id) = given(id).filter(|id| !id.is_empty()) else { return Ok(None) };
    let value = value.filter(|value| *value != "null");
    if is_call {
        let input = value.map(|value| {
            if ValueKind::of(value) == ValueKind::Text { as_text(value) } else { share(whole, value) }
        });
        let name = given(name).unwrap_or_else(|| tool.name.into());
        let mut call = ToolCall::new(id, name, input.unwrap_or_default());
        call.kind = tool.kind;
        return Ok(Some(Part::ToolCall(call)));
    }
    if let Some(list) = value.filter(|_| tool.name == SHELL)
        && let Some(result) = shell::read(whole, list, &id)?
    {
        return Ok(Some(Part::ToolResult(result)));
    }
    // The items have more information than the text.
    let items = items.filter(|items| tool.output == "result" && ValueKind::of(items) == ValueKind::Array);
    let parts = items.or(value).map_or(Ok(Vec::new()), |value| returned(whole, value))?;
    Ok(Some(Part::ToolResult(ToolResult::new(id, parts))))
}

/// The output of a tool: a text, a content, a list of contents, or a value that is no content.
fn returned(whole: &Arc<str>, value: &str) -> Result<Vec<Part>, WireError> {
    let is_content = |value: &str| {
        let has_kind = |value| {
            Ok(json::field(value, "type")?.is_some_and(|kind| ValueKind::of(kind) == ValueKind::Text))
        };
        match ValueKind::of(value) {
            ValueKind::Text => Ok(true),
            ValueKind::Object => has_kind(value),
            _ => Ok(false),
        }
    };
    let mut are_contents = ValueKind::of(value) == ValueKind::Array || is_content(value)?;
    if ValueKind::of(value) == ValueKind::Array {
        json::items(value, |item| {
            are_contents &= is_content(item)?;
            Ok(())
        })?;
    }
    match ValueKind::of(value) {
        _ if !are_contents => Ok(vec![Part::Unknown(UnknownPart::new(FORMAT, "", share(whole, value)))]),
        ValueKind::Text => Ok(vec![Part::Text(share(whole, &json::decode(value)))]),
        ValueKind::Array => content::read_list(whole, value),
        _ => content::read_list(whole, &format!("[{value}]")),
    }
}

/// The content `raw` changed to `part`. `None` if it is no content of such a tool, or belongs to another call.
pub(super) fn patched(raw: &str, part: &Part) -> Result<Option<String>, WireError> {
    let Some(kind) = json::field(raw, "type")?.filter(|kind| ValueKind::of(kind) == ValueKind::Text) else {
        return Ok(None);
    };
    let kind = json::decode(kind);
    let Some(tool) = TOOLS.iter().find(|tool| kind == tool.call || kind == tool.result) else {
        return Ok(None);
    };
    let whole: Arc<str> = Arc::from("");
    match (self::part(&whole, raw, &kind)?, part) {
        (Some(before), part) if before == *part => Ok(Some(raw.to_owned())),
        (Some(Part::ToolCall(before)), Part::ToolCall(call))
            if before.id == call.id && before.name == call.name =>
        {
            let is_json = json::check(&call.arguments).is_ok() && tool.input != "arguments";
            let input = if is_json { call.arguments.as_str().to_owned() } else { quote(&call.arguments) };
            patch(raw, &[(tool.input, Some(input))]).map(Some)
        }
        (Some(Part::ToolResult(before)), Part::ToolResult(result)) if before.call_id == result.call_id => {
            let Some(output) = output(tool, raw, result)? else { return Ok(None) };
            let mut changes = vec![(tool.output, Some(output))];
            if tool.output == "result" && json::field(raw, "items")?.is_some() {
                changes.push(("items", None));
            }
            patch(raw, &changes).map(Some)
        }
        _ => Ok(None),
    }
}

/// A text in the place of a tool's output. The output of a computer is a picture: here one of a single pixel.
fn output(tool: &Tool, raw: &str, result: &ToolResult) -> Result<Option<String>, WireError> {
    let texts =
        result.parts.iter().map(|part| if let Part::Text(text) = part { Some(text.as_str()) } else { None });
    let Some(texts) = texts.collect::<Option<Vec<_>>>() else { return Ok(None) };
    let text = || quote(&texts.join("\n"));
    Ok(Some(match tool.name {
        "computer" => format!(r#"{{"type":"data","uri":"{PIXEL}","media_type":"image/png"}}"#),
        "code_interpreter" => format!(r#"[{{"type":"text","text":{}}}]"#, text()),
        SHELL => {
            let list = json::field(raw, tool.output)?.unwrap_or("null");
            shell::write(list, &texts, result.is_error, r#"{"type":"shell_command_output"}"#)?
        }
        _ => text(),
    }))
}
