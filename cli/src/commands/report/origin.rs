//! Origins of a conversation's tokens: tools, and the files that they were called with.

use std::collections::HashMap;

use epitome::core::message::{PartView, Parts as _};
use epitome::core::{TokenCounter, measure_each};
use epitome::identifiers::IdentifierKind;
use epitome::message::Message;
use serde::Serialize;
use serde_json::{Map, Value};

/// The calls and results of one tool with one file.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Origin {
    /// The name of the tool; `None` for results without a call.
    pub(super) tool: Option<String>,
    /// The first argument that is a path; `None` if there is none.
    pub(super) file: Option<String>,
    pub(super) calls: u64,
    pub(super) tokens: u64,
}

/// Sums of calls and results.
#[derive(Debug, Default)]
pub(super) struct Origins {
    rows: Vec<Origin>,
    places: HashMap<(Option<String>, Option<String>), usize>,
    /// The row of each call, by its id. An id that is used again belongs to the later call.
    calls: HashMap<String, usize>,
}

impl Origins {
    /// Adds a message. Its framing counts for its first part. Names come from `said`, the message without secrets.
    pub(super) fn add(
        &mut self,
        message: &Message,
        said: &Message,
        counter: &(dyn TokenCounter + Send + Sync),
    ) {
        let mut sizes = Vec::new();
        let all = measure_each(message, counter, &mut |_, size| sizes.push(size.as_u64())).tokens.as_u64();
        let framing = all.saturating_sub(sizes.iter().sum());
        if let Some(first) = sizes.first_mut() {
            *first += framing;
        }
        let mut sizes = sizes.into_iter();
        said.for_each_part(&mut |part| {
            let tokens = sizes.next().unwrap_or_default();
            match part {
                PartView::ToolCall(call) => {
                    let place = self.place(Some(call.name.to_owned()), file_of(call.arguments));
                    self.calls.insert(call.id.to_owned(), place);
                    self.count(place, 1, tokens);
                }
                PartView::ToolResult(result) => {
                    let known = self.calls.get(result.call_id).copied();
                    let place = known.unwrap_or_else(|| self.place(None, None));
                    self.count(place, 0, tokens);
                }
                _ => {}
            }
        });
    }

    /// The rows, the most expensive first.
    pub(super) fn into_rows(self) -> Vec<Origin> {
        let mut rows = self.rows;
        rows.sort_by(|one, other| {
            let names = |row: &Origin| (row.tool.clone(), row.file.clone());
            other.tokens.cmp(&one.tokens).then_with(|| names(one).cmp(&names(other)))
        });
        rows
    }

    fn place(&mut self, tool: Option<String>, file: Option<String>) -> usize {
        let next = self.rows.len();
        let place = *self.places.entry((tool.clone(), file.clone())).or_insert(next);
        if place == next {
            self.rows.push(Origin { tool, file, calls: 0, tokens: 0 });
        }
        place
    }

    fn count(&mut self, place: usize, calls: u64, tokens: u64) {
        if let Some(row) = self.rows.get_mut(place) {
            row.calls += calls;
            row.tokens += tokens;
        }
    }
}

/// The file that a tool is called with: the first member of its arguments that is a path.
fn file_of(arguments: &str) -> Option<String> {
    let arguments: Map<String, Value> = serde_json::from_str(arguments).ok()?;
    let mut texts = arguments.values().filter_map(Value::as_str);
    texts.find(|text| is_path(text)).map(str::to_owned)
}

fn is_path(text: &str) -> bool {
    text.len() <= PATH_MAX
        && !text.contains(char::is_whitespace)
        && IdentifierKind::of(text) == IdentifierKind::File
}

/// Maximum length of a path: longer texts are content.
const PATH_MAX: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_a_call_is_its_first_path() {
        for (arguments, expected) in [
            (r#"{"limit": 3, "file_path": "src/main.rs", "other": "src/lib.rs"}"#, Some("src/main.rs")),
            (r#"{"command": "cat src/main.rs"}"#, None),
            (r#"{"pattern": "word", "path": "C:\\work\\a.txt"}"#, Some("C:\\work\\a.txt")),
            (r#"["src/main.rs"]"#, None),
            ("no JSON", None),
            ("{}", None),
        ] {
            assert_eq!(file_of(arguments).as_deref(), expected, "{arguments}");
        }
    }
}
