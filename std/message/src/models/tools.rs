//! The size of the tools of a request.

use core::error::Error;
use core::fmt;

use epitome_core::{Amount, Basis, TokenCounter, Tokens, ToolFraming};
use serde_json::Value;

/// The size of the tools of a request, with `json` as the request's `tools`: a list of functions in the form of
/// Chat Completions, Responses or Anthropic. Tools without a name, which the provider runs itself, count nothing.
///
/// # Formula
/// `num_tokens_for_tools` of the `OpenAI` Cookbook ("How to count tokens with tiktoken"), with the counter's
/// [`ToolFraming`]: each function has `name:description` without the full stop at its end, each property
/// `name:type:description`, each value of a list its text. The published formula covers flat properties. Nested
/// schemas count by the same rule, level by level, and make the sum an estimate. The sum is also an estimate for a
/// provider without a published formula.
///
/// ```
/// use epitome_core::ClassEstimator;
/// use epitome_message::models::measure_tools;
///
/// let tools = r#"[{"type": "function", "function": {"name": "now", "description": "The time."}}]"#;
/// assert!(measure_tools(tools, &ClassEstimator::new())?.tokens.0 > 7 + 12);
/// assert_eq!(measure_tools("[]", &ClassEstimator::new())?.tokens.0, 0);
/// # Ok::<(), epitome_message::models::ToolsError>(())
/// ```
///
/// # Errors
/// [`ToolsError`] if `json` is not a JSON array.
pub fn measure_tools(json: &str, counter: &(impl TokenCounter + ?Sized)) -> Result<Amount, ToolsError> {
    let tools: Vec<Value> = serde_json::from_str(json)
        .map_err(|error| ToolsError { line: error.line(), column: error.column() })?;
    Ok(measure_functions(tools.iter().filter_map(function), counter))
}

/// The size of functions that are not JSON text: as [`measure_tools`], from the name, the description and the JSON
/// schema of the arguments of each.
///
/// ```
/// use epitome_core::ClassEstimator;
/// use epitome_message::models::{measure_functions, measure_tools};
/// use serde_json::json;
///
/// let parameters = json!({"type": "object", "properties": {"zone": {"type": "string", "description": "UTC by default."}}});
/// let measured = measure_functions([("now", "The time.", &parameters)], &ClassEstimator::new());
/// let tools = json!([{"name": "now", "description": "The time.", "input_schema": parameters}]).to_string();
/// assert_eq!(measured, measure_tools(&tools, &ClassEstimator::new())?);
/// # Ok::<(), epitome_message::models::ToolsError>(())
/// ```
pub fn measure_functions<'t>(
    functions: impl IntoIterator<Item = (&'t str, &'t str, &'t Value)>,
    counter: &(impl TokenCounter + ?Sized),
) -> Amount {
    let framing = counter.framing();
    let mut sum = Sum { counter, framing: framing.tools, tokens: 0, nested: false };
    let mut is_empty = true;
    for (name, description, schema) in functions {
        is_empty = false;
        sum.function(name, description, schema);
    }
    if is_empty {
        return Amount::new(Tokens::ZERO, counter.basis());
    }
    sum.add(framing.tools.end);
    let basis = if sum.nested { Basis::Estimated } else { counter.basis().min(framing.basis) };
    Amount::new(Tokens::from_u64(u64::try_from(sum.tokens).unwrap_or(0)), basis)
}

/// The name, description and schema of a tool, if it is a function.
fn function(tool: &Value) -> Option<(&str, &str, &Value)> {
    let function = tool.get("function").unwrap_or(tool);
    let name = function.get("name")?.as_str()?;
    let description = function.get("description").and_then(Value::as_str).unwrap_or_default();
    let schema = ["parameters", "input_schema", "inputSchema"].iter().find_map(|key| function.get(key));
    Some((name, description, schema.unwrap_or(&Value::Null)))
}

struct Sum<'c, C: TokenCounter + ?Sized> {
    counter: &'c C,
    framing: ToolFraming,
    tokens: i64,
    /// Whether a schema has parts that the published formula does not cover.
    nested: bool,
}

impl<C: TokenCounter + ?Sized> Sum<'_, C> {
    fn function(&mut self, name: &str, description: &str, schema: &Value) {
        self.add(self.framing.function);
        self.count(&format!("{name}:{}", without_stop(description)));
        self.schema(schema, DEPTH_MAX);
    }

    /// Adds the properties of a schema, and the schemas within it.
    fn schema(&mut self, schema: &Value, depth: u32) {
        let Some(depth) = depth.checked_sub(1) else { return };
        let properties = schema.get("properties").and_then(Value::as_object).filter(|all| !all.is_empty());
        if properties.is_some() {
            self.add(self.framing.properties);
        }
        for (key, property) in properties.into_iter().flatten() {
            self.add(self.framing.property);
            self.values(property);
            let kind = property.get("type").map(text_of).unwrap_or_default();
            self.count(&format!("{key}:{kind}:{}", description(property)));
            self.nested |= ["properties", "$ref"].iter().any(|nests| property.get(nests).is_some());
            self.schema(property, depth);
        }
        // The published formula covers only the type of the elements of a list.
        let says_more =
            |inner: &&Value| inner.as_object().is_some_and(|it| it.keys().any(|key| key != "type"));
        for inner in within(schema).filter(says_more) {
            self.nested = true;
            self.values(inner);
            self.count(description(inner));
            self.schema(inner, depth);
        }
    }

    fn values(&mut self, schema: &Value) {
        let Some(values) = schema.get("enum").and_then(Value::as_array) else { return };
        self.add(self.framing.values);
        for value in values {
            self.add(self.framing.value);
            self.count(&text_of(value));
        }
    }

    fn count(&mut self, text: &str) {
        self.tokens = self.tokens.saturating_add(i64::from(self.counter.count(text).0));
    }

    fn add(&mut self, tokens: i32) {
        self.tokens = self.tokens.saturating_add(tokens.into());
    }
}

/// The schemas within a schema, other than those of its properties.
fn within(schema: &Value) -> impl Iterator<Item = &Value> {
    let one = ["items", "additionalProperties", "not"].into_iter().filter_map(|key| schema.get(key));
    let lists = ["anyOf", "oneOf", "allOf", "prefixItems"]
        .into_iter()
        .filter_map(|key| schema.get(key)?.as_array())
        .flatten();
    let named = ["$defs", "definitions", "patternProperties"]
        .into_iter()
        .filter_map(|key| schema.get(key)?.as_object());
    one.chain(lists).chain(named.flat_map(|all| all.values()))
}

fn description(of: &Value) -> &str {
    without_stop(of.get("description").and_then(Value::as_str).unwrap_or_default())
}

/// A description without the full stop at its end, which the provider leaves out.
fn without_stop(text: &str) -> &str {
    text.strip_suffix('.').unwrap_or(text)
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// An error: the tools of a request are not a JSON array.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolsError {
    /// The line of the error, counted from 1.
    pub line: usize,
    /// The column of the error, counted from 1.
    pub column: usize,
}

impl fmt::Display for ToolsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: expected tools, a JSON array of objects", self.line, self.column)
    }
}

impl Error for ToolsError {}

/// Maximum depth of a schema that is counted. The parser stops at 128 levels of JSON.
const DEPTH_MAX: u32 = 64;
