//! Outputs of tools that are no plain functions, and the shortest form of each that the API still accepts.

use std::borrow::Cow;
use std::sync::Arc;

use epitome_message::media::PIXEL;
use epitome_message::{Part, Str, ToolResult, UnknownPart};

use super::content::NAME;
use crate::WireError;
use crate::expect::share;
use crate::json::{self, ValueKind, patch, quote};
use crate::shell;

/// The type of an item with the output of a shell.
pub(super) const SHELL_OUTPUT: &str = "shell_call_output";

/// The output of a command without any.
const COMMAND: &str = r#"{"outcome":{"type":"exit","exit_code":0}}"#;

/// Members of an item that hold the output of its tool.
const RESULTS: [&str; 5] = ["output", "outputs", "results", "result", "error"];

/// The output of a tool that the provider ran, if its item has it.
///
/// Texts are read: the output of an MCP server, the printed text of a program, the findings in files. Other content
/// stays unchanged, and the whole result with it: images, and the additions of a later API.
pub(super) fn result(whole: &Arc<str>, raw: &str, id: Str) -> Result<Option<Part>, WireError> {
    let found = json::known::fields(raw, &RESULTS)?;
    let mut result = ToolResult::new(id, Vec::new());
    for (key, value) in RESULTS.iter().zip(found) {
        let Some(value) = value.filter(|value| !matches!(*value, "null" | "[]")) else { continue };
        result.is_error |= *key == "error";
        match texts(key, value)? {
            Some(texts) => result.parts.extend(texts.iter().map(|text| Part::Text(share(whole, text)))),
            None => {
                result.parts.push(Part::Unknown(UnknownPart::new(NAME.clone(), *key, share(whole, value))))
            }
        }
    }
    Ok(Some(Part::ToolResult(result))
        .filter(|_| found.iter().any(|value| value.is_some_and(|value| value != "null"))))
}

/// The texts of one of [`RESULTS`]; `None` if some of its content is no text.
fn texts<'a>(key: &str, value: &'a str) -> Result<Option<Vec<Cow<'a, str>>>, WireError> {
    let within = match (ValueKind::of(value), key) {
        (ValueKind::Text, key) if key != "result" => return Ok(Some(vec![json::decode(value)])),
        (ValueKind::Array, "outputs") => "logs",
        (ValueKind::Array, "results") => "text",
        _ => return Ok(None),
    };
    let mut texts = Some(Vec::new());
    json::known::items(value, |item| {
        let text = match ValueKind::of(item) {
            ValueKind::Object => {
                json::known::field(item, within)?.filter(|text| ValueKind::of(text) == ValueKind::Text)
            }
            _ => None,
        };
        texts = texts.take().zip(text).map(|(mut texts, text)| {
            texts.push(json::decode(text));
            texts
        });
        Ok(())
    })?;
    Ok(texts)
}

/// The item `raw` of a call that the provider ran, with these texts in the place of its output. `None` if the parts are
/// no texts, or the tool returned no output.
pub(super) fn patched(raw: &str, parts: &[Part]) -> Result<Option<String>, WireError> {
    let Some(texts) = texts_of(parts) else { return Ok(None) };
    let text = texts.join("\n");
    let found = json::known::fields(raw, &RESULTS)?;
    let mut changes = Vec::new();
    for (key, value) in RESULTS.iter().zip(found) {
        let Some(value) = value.filter(|value| *value != "null") else { continue };
        let changed = match (changes.is_empty(), *key) {
            (false, _) => "null".to_owned(),
            (true, "outputs") => format!(r#"[{{"type":"logs","logs":{}}}]"#, quote(&text)),
            (true, "results") => {
                let first = first_item(value)?
                    .filter(|item| ValueKind::of(item) == ValueKind::Object)
                    .unwrap_or("{}");
                format!("[{}]", patch(first, &[("text", Some(quote(&text)))])?)
            }
            (true, _) => quote(&text),
        };
        changes.push((*key, Some(changed)));
    }
    Ok(if changes.is_empty() { None } else { Some(patch(raw, &changes)?) })
}

/// The new `output` of an item of the type `kind`, in the place of `raw`; `None` if a list of texts is allowed there.
///
/// The output of a computer is a picture: a picture of a single pixel replaces a cleared one.
pub(super) fn output(kind: &str, raw: &str, result: &ToolResult) -> Result<Option<String>, WireError> {
    let Some(texts) = texts_of(&result.parts) else { return Ok(None) };
    match kind {
        "computer_call_output" => {
            Ok(Some(format!(r#"{{"type":"computer_screenshot","image_url":"{PIXEL}"}}"#)))
        }
        SHELL_OUTPUT => shell::write(raw, &texts, result.is_error, COMMAND).map(Some),
        _ => Ok(None),
    }
}

/// The texts of the parts, if they are texts.
fn texts_of(parts: &[Part]) -> Option<Vec<&str>> {
    parts.iter().map(|part| if let Part::Text(text) = part { Some(text.as_str()) } else { None }).collect()
}

fn first_item(list: &str) -> Result<Option<&str>, WireError> {
    let mut first = None;
    if ValueKind::of(list) == ValueKind::Array {
        json::known::items(list, |item| {
            first = first.or(Some(item));
            Ok(())
        })?;
    }
    Ok(first)
}
