//! Outputs of Anthropic's own tools that are objects: their texts, and the replacement of the texts.

use std::sync::Arc;

use epitome_message::Part;

use crate::WireError;
use crate::expect::share;
use crate::json::{self, ValueKind, patch, quote};

/// An object whose text is known.
enum Returned<'a> {
    /// The printed texts of a program: one for the output and one for errors. A result with files stays unchanged.
    Printed([Option<&'a str>; 2]),
    /// The text of a viewed file.
    Viewed(&'a str),
    /// A page, a document with its source.
    Fetched { document: &'a str, source: &'a str, data: &'a str },
}

impl<'a> Returned<'a> {
    fn of(raw: &'a str) -> Result<Option<Self>, WireError> {
        let [kind, stdout, stderr, content] =
            json::known::fields(raw, &["type", "stdout", "stderr", "content"])?;
        let kind = kind.filter(|kind| ValueKind::of(kind) == ValueKind::Text).map(json::decode);
        let is_text = |text: &Option<&str>| text.is_none_or(|text| ValueKind::of(text) == ValueKind::Text);
        Ok(match kind.as_deref() {
            Some("code_execution_result" | "bash_code_execution_result")
                if content.is_none_or(|files| json::count(files) == 0)
                    && is_text(&stdout)
                    && is_text(&stderr) =>
            {
                Some(Self::Printed([stdout, stderr]))
            }
            Some("text_editor_code_execution_view_result") if is_text(&content) => content.map(Self::Viewed),
            Some("web_fetch_result") => Self::fetched(content)?,
            _ => None,
        })
    }

    fn fetched(document: Option<&'a str>) -> Result<Option<Self>, WireError> {
        let is_object = |value: &&str| ValueKind::of(value) == ValueKind::Object;
        let Some(document) = document.filter(is_object) else { return Ok(None) };
        let Some(source) = json::known::field(document, "source")?.filter(is_object) else { return Ok(None) };
        let [kind, data] = json::known::fields(source, &["type", "data"])?;
        let data = data.filter(|data| kind == Some("\"text\"") && ValueKind::of(data) == ValueKind::Text);
        Ok(data.map(|data| Self::Fetched { document, source, data }))
    }
}

/// The texts of a tool's output, the object `raw`; `None` if its kind is unknown.
pub(super) fn texts(whole: &Arc<str>, raw: &str) -> Result<Option<Vec<Part>>, WireError> {
    let texts = match Returned::of(raw)? {
        Some(Returned::Printed(texts)) => texts,
        Some(Returned::Viewed(text) | Returned::Fetched { data: text, .. }) => [Some(text), None],
        None => return Ok(None),
    };
    let texts = texts.into_iter().flatten().map(json::decode).filter(|text| !text.is_empty());
    Ok(Some(texts.map(|text| Part::Text(share(whole, &text))).collect()))
}

/// The new `content` of a block of the type `kind`, in the place of the object or list `content`, if the API restricts
/// the content. The API accepts found pages only with their encrypted content, or no pages.
pub(super) fn patched(kind: &str, content: &str, parts: &[Part]) -> Result<Option<String>, WireError> {
    let texts = parts.iter().map(|part| if let Part::Text(text) = part { Some(text.as_str()) } else { None });
    let Some(texts) = texts.collect::<Option<Vec<_>>>() else { return Ok(None) };
    let text = || Some(quote(&texts.join("\n")));
    if kind == "web_search_tool_result" {
        return Ok(Some("[]".to_owned()));
    }
    if ValueKind::of(content) != ValueKind::Object {
        return Ok(None);
    }
    Ok(Some(match Returned::of(content)? {
        Some(Returned::Printed([_, stderr])) => {
            let stderr = stderr.map(|_| ("stderr", Some(quote(""))));
            patch(content, &[("stdout", text())].into_iter().chain(stderr).collect::<Vec<_>>())?
        }
        Some(Returned::Viewed(_)) => patch(content, &[("content", text())])?,
        Some(Returned::Fetched { document, source, .. }) => {
            let source = patch(source, &[("data", text())])?;
            let document = patch(document, &[("source", Some(source))])?;
            patch(content, &[("content", Some(document))])?
        }
        None => content.to_owned(),
    }))
}
