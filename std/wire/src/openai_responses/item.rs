//! Reads items as messages.

use std::sync::Arc;

use epitome_core::message::{CallKind, Role};
use epitome_message::{
    Approval, ApprovalAnswer, CompactionPart, Message, Part, Reasoning, Str, ToolCall, ToolResult,
    UnknownPart, WireText,
};

use super::content::{self, NAME};
use super::{PROVIDER, hosted};
use crate::error::quoted;
use crate::expect::{expect_object, expect_text, optional_text, share};
use crate::json::known::{Members, Value};
use crate::json::{self, ValueKind};
use crate::{WireError, WireErrorKind, shell};

/// The members of most kinds of items that are read, unchanged, in a single scan, because an item may be long.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a> {
    kind: Option<&'a str>,
    role: Option<&'a str>,
    execution: Option<&'a str>,
    id: Option<&'a str>,
    content: Option<&'a str>,
    call_id: Option<&'a str>,
    name: Option<&'a str>,
    output: Option<&'a str>,
    tools: Option<&'a str>,
    /// The inputs of calls: see [`Fields::input`].
    inputs: [Option<&'a str>; 6],
}

impl<'a> Fields<'a> {
    fn of(raw: &'a str) -> Result<Self, WireError> {
        Self::of_members(&Members::of(raw, &FIELDS))
    }

    fn of_members(found: &Members<'a, { FIELDS.len() }>) -> Result<Self, WireError> {
        expect_object(found.object(), "an item")?;
        let [kind, role, execution, id, content, call_id, name, output, tools, inputs @ ..] = found.all()?;
        Ok(Self { kind, role, execution, id, content, call_id, name, output, tools, inputs })
    }

    /// The value under `key`, one of the keys for inputs of calls.
    fn input(&self, key: &str) -> Option<&'a str> {
        let inputs = FIELDS.iter().skip(FIELDS.len().saturating_sub(self.inputs.len()));
        inputs.zip(self.inputs).find(|(name, _)| **name == key).and_then(|(_, value)| value)
    }
}

/// The keys of [`Fields`], in their order.
pub(crate) const FIELDS: [&str; 15] = [
    "type",
    "role",
    "execution",
    "id",
    "content",
    "call_id",
    "name",
    "output",
    "tools",
    "arguments",
    "input",
    "action",
    "operation",
    "code",
    "queries",
];

/// The kind of an item, according to its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemKind {
    Message,
    /// A call with its input under this key.
    Call(&'static str, CallKind),
    Output,
    Reasoning,
    Compaction,
    /// A request for a compaction: no message.
    Trigger,
    ApprovalRequest,
    ApprovalResponse,
    Other,
}

impl ItemKind {
    /// The kind of the item `raw`, and its type.
    pub(super) fn of(raw: &str) -> Result<(Self, Str), WireError> {
        Self::of_fields(raw, &Fields::of(raw)?)
    }

    fn of_fields(raw: &str, fields: &Fields<'_>) -> Result<(Self, Str), WireError> {
        let Fields { role, execution, .. } = *fields;
        let kind = optional_text(raw, fields.kind, "type")?.unwrap_or_default();
        let found = match &*kind {
            "message" => Self::Message,
            "" if role.is_some() => Self::Message,
            "" => {
                let found = json::describe(raw);
                return Err(WireError::shape(format!(
                    "expected an item (with `type` or `role`), found {found}"
                )));
            }
            "function_call" => Self::Call("arguments", CallKind::Function),
            "custom_tool_call" => Self::Call("input", CallKind::Function),
            "local_shell_call" | "shell_call" | "computer_call" => Self::Call("action", CallKind::Function),
            "apply_patch_call" => Self::Call("operation", CallKind::Function),
            "tool_search_call" if execution == Some("\"client\"") => {
                Self::Call("arguments", CallKind::Function)
            }
            // The provider's own output of its own search answers no call of the caller.
            "tool_search_output" if execution != Some("\"client\"") => Self::Other,
            "reasoning" => Self::Reasoning,
            "compaction" | "compaction_summary" => Self::Compaction,
            "compaction_trigger" => Self::Trigger,
            "mcp_approval_request" => Self::ApprovalRequest,
            "mcp_approval_response" => Self::ApprovalResponse,
            "mcp_call" | "tool_search_call" => Self::Call("arguments", CallKind::Hosted),
            "code_interpreter_call" => Self::Call("code", CallKind::Hosted),
            "file_search_call" => Self::Call("queries", CallKind::Hosted),
            other if other.ends_with("_call") => Self::Call("action", CallKind::Hosted),
            other if other.ends_with("_output") => Self::Output,
            _ => Self::Other,
        };
        Ok((found, Str::from(&*kind)))
    }
}

/// The type of the item `raw`, if it is a call or a result of a tool that is no plain function.
pub(crate) fn special_call(raw: &str) -> Option<Str> {
    let (kind, name) = ItemKind::of(raw).ok()?;
    let is_call = matches!(kind, ItemKind::Call(..) | ItemKind::Output);
    Some(name).filter(|name| is_call && !name.starts_with("function_call"))
}

/// The item `raw` as a later request may have it, if it is a message, a function call, a result or reasoning. All but
/// reasoning are without the id that the service gave them. A service refuses the id of an item that it has not stored,
/// and that of a call without the reasoning before it.
pub(crate) fn sendable(raw: &str) -> Option<String> {
    match ItemKind::of(raw).ok()? {
        (ItemKind::Reasoning, _) => Some(raw.to_owned()),
        (kind, name) if kind == ItemKind::Message || name.starts_with("function_call") => {
            json::patch(raw, &[("id", None)]).ok()
        }
        _ => None,
    }
}

/// The message of the item `raw`, a slice of `whole`; none if the item is no message.
pub(crate) fn message<'a>(
    whole: &Arc<str>,
    item: impl Into<Value<'a>>,
) -> Result<Option<Message>, WireError> {
    message_of(whole, &Members::of(item, &FIELDS))
}

/// The message of an item whose [`FIELDS`] are known.
pub(crate) fn message_of(
    whole: &Arc<str>,
    found: &Members<'_, { FIELDS.len() }>,
) -> Result<Option<Message>, WireError> {
    let (raw, fields) = (found.object(), Fields::of_members(found)?);
    let item = found.within(raw);
    let (kind, name) = ItemKind::of_fields(raw, &fields)?;
    let id = given(whole, raw, (fields.id, "id"))?;
    let message = match kind {
        ItemKind::Trigger => return Ok(None),
        ItemKind::Message => said(whole, item, &fields)?,
        ItemKind::Call(key, kind) => {
            Message::new(Role::Assistant, call(whole, raw, &fields, (&name, key, kind))?)
        }
        ItemKind::Output => Message::new(Role::Tool, output(whole, item, &fields, &name)?),
        ItemKind::Reasoning => Message::new(Role::Assistant, vec![reasoning(whole, raw)?]),
        ItemKind::Compaction => Message::new(Role::Assistant, vec![compaction(whole, raw)?]),
        ItemKind::ApprovalRequest => {
            let asked = Approval::new(id.clone(), Str::default());
            Message::new(Role::Assistant, vec![Part::ApprovalRequest(asked)])
        }
        ItemKind::ApprovalResponse => {
            let id = text(whole, raw, "approval_request_id")?;
            let approved = json::known::field(raw, "approve")? == Some("true");
            let answer = ApprovalAnswer::new(Approval::new(id, Str::default()), approved);
            Message::new(Role::User, vec![Part::ApprovalResponse(answer)])
        }
        ItemKind::Other => {
            let role = fields.role.map_or(Ok(Role::Assistant), role)?;
            Message::new(role, vec![Part::Unknown(UnknownPart::new(NAME.clone(), name, share(whole, raw)))])
        }
    };
    let message = if id.is_empty() { message } else { message.with_id(id) };
    Ok(Some(message.with_wire(WireText::new(NAME.clone(), share(whole, raw)))))
}

fn said<'a>(whole: &Arc<str>, item: Value<'a>, fields: &Fields<'a>) -> Result<Message, WireError> {
    let raw = item.text();
    let Some(role) = fields.role else {
        let found = json::describe(raw);
        return Err(WireError::shape(format!("expected a message with `role`, found {found}")));
    };
    let role = json::nested(raw, role, "/role", self::role)?;
    let parts = match fields.content {
        Some(content) => {
            json::nested(raw, content, "/content", |content| content::parts(whole, item.within(content)))?
        }
        None => Vec::new(),
    };
    Ok(Message::new(role, parts.into_iter().filter_map(|(part, _)| part).collect()))
}

fn role(raw: &str) -> Result<Role, WireError> {
    match &*expect_text(raw)? {
        "system" => Ok(Role::System),
        "developer" => Ok(Role::Developer),
        "user" => Ok(Role::User),
        "assistant" => Ok(Role::Assistant),
        other => Err(WireError::new(
            WireErrorKind::UnknownRole,
            format!("unknown role {}: expected user, assistant, system or developer", quoted(other)),
        )),
    }
}

/// A call, and its result if the provider ran it.
fn call(
    whole: &Arc<str>,
    raw: &str,
    fields: &Fields<'_>,
    (kind_name, key, kind): (&Str, &'static str, CallKind),
) -> Result<Vec<Part>, WireError> {
    let id = called(whole, raw, fields)?;
    let name = match given(whole, raw, (fields.name, "name"))? {
        none if none.is_empty() => Str::from(kind_name.strip_suffix("_call").unwrap_or(kind_name)),
        name => name,
    };
    let input = match fields.input(key).filter(|input| *input != "null") {
        Some(input) if ValueKind::of(input) == ValueKind::Text => share(whole, &json::decode(input)),
        Some(input) => share(whole, input),
        None => Str::default(),
    };
    let mut call = ToolCall::new(id.clone(), name, input);
    call.kind = kind;
    let mut parts = vec![Part::ToolCall(call)];
    if kind == CallKind::Hosted {
        parts.extend(hosted::result(whole, raw, id)?);
    }
    Ok(parts)
}

/// The id of the call in the item, or of the call that it answers.
fn called(whole: &Arc<str>, raw: &str, fields: &Fields<'_>) -> Result<Str, WireError> {
    match given(whole, raw, (fields.call_id, "call_id"))? {
        none if none.is_empty() => given(whole, raw, (fields.id, "id")),
        id => Ok(id),
    }
}

/// The result in an item, and the tools that a search has found. The tools are a separate part, because a compaction
/// could not shorten a list of tools like a text.
fn output<'a>(
    whole: &Arc<str>,
    item: Value<'a>,
    fields: &Fields<'a>,
    kind: &str,
) -> Result<Vec<Part>, WireError> {
    let raw = item.text();
    let id = called(whole, raw, fields)?;
    if let Some(output) = fields.output.filter(|_| kind == hosted::SHELL_OUTPUT)
        && let Some(result) = json::nested(raw, output, "/output", |list| shell::read(whole, list, &id))?
    {
        return Ok(vec![Part::ToolResult(result)]);
    }
    let parts = match fields.output {
        Some(output) => {
            json::nested(raw, output, "/output", |output| content::parts(whole, item.within(output)))?
        }
        None => Vec::new(),
    };
    let said = parts.into_iter().filter_map(|(part, _)| part).collect();
    let mut parts = vec![Part::ToolResult(ToolResult::new(id, said))];
    if let Some(tools) = fields.tools {
        parts.push(Part::Unknown(UnknownPart::new(NAME.clone(), "tools", share(whole, tools))));
    }
    Ok(parts)
}

fn reasoning(whole: &Arc<str>, raw: &str) -> Result<Part, WireError> {
    let [summary, content] = json::known::fields(raw, &["summary", "content"])?;
    let said = match joined(whole, content)? {
        none if none.is_empty() => joined(whole, summary)?,
        said => said,
    };
    let mut reasoning = Reasoning::new(said);
    reasoning.id = Some(text(whole, raw, "id")?).filter(|id| !id.is_empty());
    reasoning.opaque = Some(text(whole, raw, "encrypted_content")?).filter(|sealed| !sealed.is_empty());
    Ok(Part::Reasoning(reasoning))
}

/// The texts of a list, with a blank line between them.
fn joined(whole: &Arc<str>, list: Option<&str>) -> Result<Str, WireError> {
    let parts = list.map_or(Ok(Vec::new()), |list| content::parts(whole, list))?;
    let texts: Vec<_> = parts
        .into_iter()
        .filter_map(|(part, _)| match part {
            Some(Part::Text(text)) => Some(text),
            _ => None,
        })
        .collect();
    Ok(match texts.as_slice() {
        [one] => one.clone(),
        texts => Str::from(texts.iter().map(Str::as_str).collect::<Vec<_>>().join("\n\n")),
    })
}

fn compaction(whole: &Arc<str>, raw: &str) -> Result<Part, WireError> {
    let sealed = Some(text(whole, raw, "encrypted_content")?).filter(|sealed| !sealed.is_empty());
    Ok(Part::Compaction(CompactionPart::new(PROVIDER, Str::default(), sealed)))
}

/// The text of a member; empty if there is none.
fn text(whole: &Arc<str>, raw: &str, key: &'static str) -> Result<Str, WireError> {
    let [value] = json::known::fields(raw, &[key])?;
    given(whole, raw, (value, key))
}

/// The text of this value of the member `key`; empty if there is none.
fn given(whole: &Arc<str>, raw: &str, (value, key): (Option<&str>, &str)) -> Result<Str, WireError> {
    Ok(optional_text(raw, value, key)?.map(|text| share(whole, &text)).unwrap_or_default())
}
