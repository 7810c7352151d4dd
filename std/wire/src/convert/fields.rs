//! Fields of a record that its message does not represent.

use std::collections::BTreeSet;

use epitome_message::{Message, Part};

use crate::json::{self, ValueKind};
use crate::spec;
use crate::{Format, WireError};

/// The names of the fields in the text of an unchanged message that its own format would not write for a new message.
/// The message does not have their values, so no conversion can carry them.
pub(super) fn untold(message: &Message) -> Vec<String> {
    let Some(wire) = message.wire().filter(|wire| !wire.touched) else { return Vec::new() };
    let spec = Format::by_name(&wire.format).and_then(|format| spec::of(format).ok());
    let fresh = spec.map(|spec| spec.write(None, &[&message.clone().without_wire()]));
    // Content without a fresh form is reported part by part.
    let Some(Ok(Some(fresh))) = fresh else { return Vec::new() };
    let (mut source, fresh) = (paths(&wire.text), paths(&fresh));
    source.retain(|path| !is_input(message, &wire.text, path));
    let fresh: BTreeSet<_> = fresh.iter().map(|path| in_camel_case(path)).collect();
    let mut lost: Vec<String> = Vec::new();
    // The lost paths that are prefixes of the current path, the longest last. Paths with a common prefix are adjacent.
    let mut around: Vec<usize> = Vec::new();
    for path in source.into_iter().filter(|path| !fresh.contains(&in_camel_case(path))) {
        let rest = |at: &usize| lost.get(*at).and_then(|above| path.strip_prefix(above.as_str()));
        while around.last().is_some_and(|last| rest(last).is_none()) {
            around.pop();
        }
        // Only the outermost missing path is reported.
        if !around.iter().any(|at| rest(at).is_some_and(|rest| rest.starts_with('/'))) {
            around.push(lost.len());
            lost.push(path);
        }
    }
    lost
}

/// Whether the member `key` of `text` is the input of a call of the message, under a name of its own: the action of a shell.
fn is_input(message: &Message, text: &str, key: &str) -> bool {
    let Ok(Some(value)) = json::field(text, key) else { return false };
    let input = if ValueKind::of(value) == ValueKind::Text { json::decode(value) } else { value.into() };
    let is_it = |part: &Part| matches!(part, Part::ToolCall(call) if *call.arguments == *input);
    !input.is_empty() && message.parts().iter().any(is_it)
}

/// The paths of all members of `text` with a value, without indices. Elements of a list without its brackets, as in a
/// split message, count as that list.
fn paths(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    if json::check(text).is_ok() {
        let _ = collect(text, "", LEVELS, &mut found);
    } else {
        let _ = collect(&format!("[{text}]"), "", LEVELS, &mut found);
    }
    // A split message and its fresh record differ in the text around their blocks.
    found.into_iter().filter_map(|path| block_path(&path)).collect()
}

/// The path in camel case, for formats that accept two spellings of their fields.
fn in_camel_case(path: &str) -> String {
    let mut written = String::with_capacity(path.len());
    for (at, word) in path.split('_').enumerate() {
        let (first, rest) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
        if at > 0 {
            written.extend(first.chars().flat_map(char::to_uppercase))
        } else {
            written.push_str(first)
        }
        written.push_str(rest);
    }
    written
}

/// The path within a message or one of its blocks.
fn block_path(path: &str) -> Option<String> {
    // LangChain has three forms of a message: alone, in an object, and as the arguments of its class.
    let path = ["data/", "kwargs/"].iter().find_map(|around| path.strip_prefix(around)).unwrap_or(path);
    let inner = ["content/", "parts/"].iter().find_map(|list| path.strip_prefix(list)).unwrap_or(path);
    let around = matches!(path, "role" | "content" | "parts" | "data" | "kwargs" | "lc");
    // A text alone may have no list around it, and the streams of a command are texts: their values are not lost.
    let told = matches!(path.rsplit('/').next(), Some("type" | "text" | "stdout" | "stderr"));
    Some(inner.to_owned()).filter(|_| !around && !told)
}

fn collect(text: &str, at: &str, levels: usize, found: &mut BTreeSet<String>) -> Result<(), WireError> {
    let Some(levels) = levels.checked_sub(1) else { return Ok(()) };
    match ValueKind::of(text) {
        ValueKind::Object => json::members(text, |key, value| {
            let is_default = key == "detail" && value == "\"auto\"";
            // The class of a message that LangChain has dumped.
            let is_class = key == "id" && ValueKind::of(value) == ValueKind::Array;
            if is_default || is_class || matches!(value, "null" | "[]" | "\"\"" | "{}" | "false") {
                return Ok(());
            }
            let path = if at.is_empty() { key.into_owned() } else { format!("{at}/{key}") };
            let inside = !OPAQUE.contains(&path.rsplit('/').next().unwrap_or_default());
            if inside {
                collect(value, &path, levels, found)?;
            }
            found.insert(path);
            Ok(())
        }),
        ValueKind::Array => json::items(text, |item| collect(item, at, levels, found)),
        _ => Ok(()),
    }
}

/// Members with content of the model or a tool: their keys are not fields of the format.
const OPAQUE: &[&str] = &["input", "args", "arguments", "response", "result", "action"];

/// Maximum depth: a field of a block within a result.
const LEVELS: usize = 6;
