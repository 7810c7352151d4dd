//! Answers of searches.

use std::collections::HashMap;

use epitome_std::memory::cut;
use redis::Value;

use crate::filter::Filter;
use crate::index::CONTENT;

/// Maximum length of a memory in bytes. A longer memory is cut, and a mark shows the cut.
const MEMORY_BYTES_MAX: usize = 4 << 10;

/// The memories of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) texts: Vec<String>,
    /// Number of memories of other owners, which were left out.
    pub(crate) others: usize,
}

/// Returns the texts of the found memories that match the filter, at most `found_max`. Returns `None` if the answer has
/// an unexpected form. The expected form is the number of results, then ids, scores and one list of names and values
/// for each result.
pub(crate) fn found(answer: &Value, filter: &Filter, found_max: usize) -> Option<Found> {
    let [Value::Int(_), entries @ ..] = list(answer)? else { return None };
    let mut found = Found { texts: Vec::new(), others: 0 };
    for entry in entries.iter().filter_map(list) {
        let fields = fields(entry);
        if !filter.takes(&fields) {
            found.others = found.others.saturating_add(1);
            continue;
        }
        let text = fields.get(CONTENT).map(|text| text.trim()).filter(|text| !text.is_empty());
        found.texts.extend(text.map(|text| cut(text, MEMORY_BYTES_MAX).into_owned()));
        if found.texts.len() == found_max {
            break;
        }
    }
    Some(found)
}

fn fields(entry: &[Value]) -> HashMap<String, String> {
    let (pairs, _) = entry.as_chunks::<2>();
    pairs.iter().filter_map(|[name, value]| Some((text(name)?, text(value)?))).collect()
}

pub(crate) fn list(value: &Value) -> Option<&[Value]> {
    match value {
        Value::Array(values) => Some(values),
        _ => None,
    }
}

/// Returns a text or a number as text; `None` for other values.
pub(crate) fn text(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Value::SimpleString(text) => Some(text.clone()),
        Value::Int(number) => Some(number.to_string()),
        Value::Double(number) => Some(number.to_string()),
        _ => None,
    }
}
