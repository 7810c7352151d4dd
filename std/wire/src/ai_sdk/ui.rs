//! Messages of applications: parts in steps, each tool part with a call and its result.

use std::collections::HashMap;
use std::sync::Arc;

use epitome_core::message::{CallKind, Role};
use epitome_message::{Approval, ApprovalAnswer, Part, Reasoning, Str, ToolCall, UnknownPart};

use super::FORMAT;
use crate::WireError;
use crate::expect::{expect_object, linked_media, optional_text, share};
use crate::json::known::Members;
use crate::json::{self, ValueKind};
use crate::slots::{RecordMessage, RecordMessages, RecordPart, SlotForm, blocks};

/// The messages from a message with `parts`. Version 4 repeats their text under `content`.
pub(super) fn pieces<'a>(
    whole: &Arc<str>,
    raw: &'a str,
    role: Role,
    (parts, content): (&'a str, Option<&'a str>),
    invocations: Option<&'a str>,
) -> Result<Vec<RecordMessage<'a>>, WireError> {
    let mut steps = Steps::new(role);
    if let Some(list) = invocations {
        json::items(list, |copy| {
            if ValueKind::of(copy) == ValueKind::Object {
                let found = Members::of(copy, &["toolCallId", "result"]);
                let result = found.get("result")?.map(|result| (found.text(whole, "toolCallId"), result));
                steps.copies.extend(result.map(|(id, result)| id.map(|id| (id, result))).transpose()?);
            }
            Ok(())
        })?;
    }
    json::nested(raw, parts, "/parts", |list| {
        blocks(list, |block| {
            expect_object(block, "a part")?;
            steps.part(whole, list, block)
        })
    })?;
    let mut pieces = steps.end();
    let mut texts: Vec<_> = pieces.parts_mut().filter(|noted| matches!(noted.part, Part::Text(_))).collect();
    match texts.as_mut_slice() {
        [only] => only.repeat(whole, content),
        several => several.iter_mut().for_each(|noted| noted.repeat_among(content)),
    }
    Ok(pieces.into_list())
}

/// The messages from a message with a text and the tool invocations of version 3.
pub(super) fn plain<'a>(
    whole: &Arc<str>,
    raw: &'a str,
    role: Role,
    (content, invocations): (&'a str, Option<&'a str>),
) -> Result<Vec<RecordMessage<'a>>, WireError> {
    let mut steps = Steps::new(role);
    steps.pieces.extend_own(raw, RecordPart::text(whole, Some(content)));
    if let Some(list) = invocations {
        json::nested(raw, list, "/toolInvocations", |list| {
            blocks(list, |block| {
                expect_object(block, "a tool invocation")?;
                steps.tool(whole, (list, block), block, Str::default())
            })
        })?;
    }
    Ok(steps.end().into_list())
}

/// The parts of a step of the model, followed by the results of the step.
struct Steps<'a> {
    pieces: RecordMessages<'a>,
    results: Vec<(&'a str, RecordPart<'a>)>,
    /// Whether the step has a tool invocation of version 4: then the next text begins another step.
    has_invocation: bool,
    /// Copies of results that version 4 writes in addition to the parts, by call.
    copies: HashMap<Str, &'a str>,
}

impl<'a> Steps<'a> {
    fn new(role: Role) -> Self {
        Self {
            pieces: RecordMessages::new(role),
            results: Vec::new(),
            has_invocation: false,
            copies: HashMap::new(),
        }
    }

    fn end_step(&mut self) {
        self.has_invocation = false;
        for (block, result) in self.results.drain(..) {
            self.pieces.push(Role::Tool, block, result);
        }
    }

    fn end(mut self) -> RecordMessages<'a> {
        self.end_step();
        self.pieces
    }

    fn part(&mut self, whole: &Arc<str>, list: &'a str, block: &'a str) -> Result<(), WireError> {
        let found =
            Members::of(block, &["type", "text", "reasoning", "mediaType", "mimeType", "url", "data"]);
        let kind = found.text(whole, "type")?;
        if self.has_invocation && kind != "tool-invocation" {
            self.end_step();
        }
        let noted = match &*kind {
            "step-start" => {
                self.end_step();
                return Ok(());
            }
            "dynamic-tool" => return self.tool(whole, (list, block), block, Str::default()),
            "tool-invocation" => {
                let invocation = json::known::field(block, "toolInvocation")?;
                let Some(invocation) = invocation.filter(|value| ValueKind::of(value) == ValueKind::Object)
                else {
                    return Err(WireError::shape("expected a part with `toolInvocation`"));
                };
                self.has_invocation = true;
                return self.tool(whole, (list, block), invocation, Str::default());
            }
            "text" => RecordPart::text(whole, found.get("text")?),
            "reasoning" => reasoning(whole, block, found.get("text")?.or(found.get("reasoning")?))?,
            "file" => Some(file(whole, block, &found)?),
            other => {
                if let Some(name) = other.strip_prefix("tool-") {
                    return self.tool(whole, (list, block), block, share(whole, name));
                }
                let is_shown_only = other.starts_with("data-") || other.starts_with("source");
                let unknown = || UnknownPart::new(FORMAT, kind.clone(), share(whole, block));
                (!is_shown_only).then(|| RecordPart::new(Part::Unknown(unknown())))
            }
        };
        self.pieces.extend_own(block, noted.map(|noted| noted.with_element(list, block)));
        Ok(())
    }

    /// Adds the call of a tool with its result. The name is `name`, or else the one in the part.
    fn tool(
        &mut self,
        whole: &Arc<str>,
        (list, block): (&'a str, &'a str),
        raw: &'a str,
        name: Str,
    ) -> Result<(), WireError> {
        let tool = Members::of(raw, &TOOL);
        let state = tool.text(whole, "state")?;
        if matches!(&*state, "input-streaming" | "partial-call") {
            return Ok(());
        }
        let name = if name.is_empty() { tool.text(whole, "toolName")? } else { name };
        let id = tool.text(whole, "toolCallId")?;
        let input = tool.get("input")?.or(tool.get("args")?).or(tool.get("rawInput")?);
        let mut call = ToolCall::new(id.clone(), name, share(whole, input.unwrap_or("{}")));
        let is_hosted = tool.get("providerExecuted")? == Some("true");
        if is_hosted {
            call.kind = CallKind::Hosted;
        }
        let call = RecordPart::new(Part::ToolCall(call)).with_slot(input, SlotForm::Arguments);
        self.pieces.extend_own(block, [call.with_element(list, block)]);
        let approval = tool.get("approval")?.filter(|value| ValueKind::of(value) == ValueKind::Object);
        if let ("approval-requested" | "approval-responded", Some(approval)) = (&*state, approval) {
            let found = Members::of(approval, &["id", "approved"]);
            let asked = Approval::new(found.text(whole, "id")?, id);
            let request = RecordPart::new(Part::ApprovalRequest(asked.clone()));
            self.pieces.extend_own(block, [request.with_element(list, block)]);
            if &*state == "approval-responded" {
                let answer = ApprovalAnswer::new(asked, found.get("approved")? == Some("true"));
                let answer = RecordPart::new(Part::ApprovalResponse(answer)).with_element(list, block);
                self.results.push((block, answer));
            }
            return Ok(());
        }
        let result = match &*state {
            "output-available" | "result" => {
                let copy = self.copies.get(&id).copied();
                let said = tool.get("output")?.or(tool.get("result")?);
                RecordPart::tool_result(whole, id, said).with_slot(copy, SlotForm::Value)
            }
            "output-error" => failed(whole, id, tool.get("errorText")?),
            "output-denied" => {
                let reason = approval.map(|approval| json::known::field(approval, "reason")).transpose()?;
                failed(whole, id, reason.flatten())
            }
            _ => return Ok(()),
        };
        let result = result.with_element(list, block);
        match is_hosted {
            true => self.pieces.extend_own(block, [result]),
            false => self.results.push((block, result)),
        }
        Ok(())
    }
}

/// The result of a call that failed, or that a person rejected.
fn failed<'a>(whole: &Arc<str>, id: Str, reason: Option<&'a str>) -> RecordPart<'a> {
    let mut failed = RecordPart::tool_result(whole, id, reason);
    if let Part::ToolResult(result) = &mut failed.part {
        result.is_error = true;
    }
    failed
}

/// Reasoning, with the seal of a provider if there is one. `None` if it is empty.
pub(super) fn reasoning<'a>(
    whole: &Arc<str>,
    block: &'a str,
    said: Option<&'a str>,
) -> Result<Option<RecordPart<'a>>, WireError> {
    let text = optional_text(block, said, "text")?.unwrap_or_default();
    let mut reasoning = Reasoning::new(share(whole, &text));
    let [kept, sent] = json::known::fields(block, &["providerMetadata", "providerOptions"])?;
    let providers = kept.or(sent).filter(|providers| ValueKind::of(providers) == ValueKind::Object);
    if let Some(providers) = providers {
        json::members(providers, |_, provider| {
            if ValueKind::of(provider) == ValueKind::Object && reasoning.opaque.is_none() {
                let seal = json::known::fields(provider, &SEALS)?.into_iter().flatten().next();
                let seal = seal.filter(|seal| ValueKind::of(seal) == ValueKind::Text);
                reasoning.opaque = seal.map(|seal| share(whole, &json::decode(seal)));
            }
            Ok(())
        })?;
    }
    if reasoning == Reasoning::new("") {
        return Ok(None);
    }
    let is_sealed = reasoning.opaque.is_some();
    Ok(Some(
        RecordPart::new(Part::Reasoning(reasoning)).with_slot(said.filter(|_| !is_sealed), SlotForm::Text),
    ))
}

/// A file that a `url` names or contains.
fn file<'a, const N: usize>(
    whole: &Arc<str>,
    block: &'a str,
    found: &Members<'_, N>,
) -> Result<RecordPart<'a>, WireError> {
    let mime = found.text(whole, "mediaType")?;
    let mime = if mime.is_empty() { found.text(whole, "mimeType")? } else { mime };
    let url = found.text(whole, "url")?;
    let media = Part::Media(linked_media(whole, mime, &url));
    Ok(RecordPart::new(media).with_slot(Some(block), TEXT_PART))
}

/// A note in the place of a part.
pub(super) const TEXT_PART: SlotForm = SlotForm::Around(r#"{"type":"text","text":"#, "}");

/// The keys of a tool part, in every version.
const TOOL: [&str; 11] = [
    "toolCallId",
    "toolName",
    "state",
    "input",
    "args",
    "rawInput",
    "output",
    "result",
    "errorText",
    "approval",
    "providerExecuted",
];

/// Members in which providers seal reasoning: Anthropic (twice), OpenAI, Google.
const SEALS: [&str; 4] = ["signature", "redactedData", "reasoningEncryptedContent", "thoughtSignature"];
