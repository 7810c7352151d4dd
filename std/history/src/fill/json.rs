//! Excerpts of long results and arguments that are JSON. The excerpt is JSON too, with a few elements of arrays, the
//! first members of objects and the ends of strings.

use epitome_core::{TokenCounter, Tokens};
use epitome_wire::json::{ValueKind, check, decode, items, push_quoted, raw_members, trim};

use super::{NO_ARGUMENTS, longest};

/// Shortens the text until it has at most `most` tokens. `None` if the text is no object or array, if one string is
/// more than half of it, or if no shortened form fits. *Cost*: one pass over the text for each level of nesting, up to
/// 32 levels, and one pass over the excerpt for each of the limits that are tried. The first note for omitted content
/// ends with `named`.
pub(super) fn shortened(
    text: &str,
    most: Tokens,
    named: &str,
    counter: &dyn TokenCounter,
) -> Option<(String, Tokens)> {
    let text = trim(text);
    if !matches!(ValueKind::of(text), ValueKind::Object | ValueKind::Array) || check(text).is_err() {
        return None;
    }
    let root = Node::of(text, DEPTH_MAX);
    if root.longest_text() > text.len() / 2 {
        return None;
    }
    LIMITS.iter().find_map(|limits| root.within(limits, most, named, counter))
}

/// Shortens the arguments of a call until they have at most `most` tokens. It keeps the longest ends of their strings
/// that fit, because the text of a written file is one string. `{}` if no shortened form fits; `None` if the text is
/// not JSON, which some tools accept.
pub(super) fn shortened_arguments(
    text: &str,
    most: Tokens,
    counter: &dyn TokenCounter,
) -> Option<(String, Tokens)> {
    let text = trim(text);
    check(text).ok()?;
    let nothing = || Some((NO_ARGUMENTS.to_owned(), counter.count(NO_ARGUMENTS)));
    if ValueKind::of(text) != ValueKind::Object {
        return nothing();
    }
    let root = Node::of(text, DEPTH_MAX);
    let [mildest, .., harshest] = &LIMITS;
    let with = |bytes: usize| root.within(&Limits { bytes, ..*mildest }, most, "", counter);
    // A string that is shorter than these ends may be shorter than its note.
    let fits = |more: usize| with(harshest.bytes.saturating_add(more)).is_some();
    let bytes = harshest.bytes.saturating_add(longest(text.len(), fits));
    let shorter = || LIMITS.iter().find_map(|limits| root.within(limits, most, "", counter));
    with(bytes).or_else(shorter).or_else(nothing)
}

/// Maximum nesting depth. Deeper values are kept or omitted as a whole.
const DEPTH_MAX: u32 = 32;

/// The limits of the content that stays.
struct Limits {
    /// Elements of an array.
    elements: usize,
    /// Members of an object. More members than elements stay, because members differ.
    members: usize,
    /// Bytes of a string.
    bytes: usize,
}

/// The limits, from the mildest to the harshest.
const LIMITS: [Limits; 7] = [
    limits(64, 1_024),
    limits(32, 512),
    limits(16, 256),
    limits(8, 128),
    limits(4, 96),
    limits(2, 64),
    limits(1, 32),
];

const fn limits(elements: usize, bytes: usize) -> Limits {
    Limits { elements, members: elements.saturating_mul(2).saturating_add(8), bytes }
}

/// A JSON value, as slices of its text.
enum Node<'t> {
    Array(Vec<Self>),
    /// Keys with their quotes, and values.
    Object(Vec<(&'t str, Self)>),
    /// A string, with its quotes.
    Text(&'t str),
    /// Any other value.
    Whole(&'t str),
}

impl<'t> Node<'t> {
    /// The value of a text that is JSON.
    fn of(text: &'t str, depth: u32) -> Self {
        let Some(below) = depth.checked_sub(1) else { return Self::Whole(text) };
        match ValueKind::of(text) {
            ValueKind::Array => {
                let mut elements = Vec::new();
                let read = items(text, |item| {
                    elements.push(Self::of(item, below));
                    Ok(())
                });
                read.map_or(Self::Whole(text), |()| Self::Array(elements))
            }
            ValueKind::Object => {
                let mut members = Vec::new();
                let read = raw_members(text, |key, value| {
                    members.push((key, Self::of(value, below)));
                    Ok(())
                });
                read.map_or(Self::Whole(text), |()| Self::Object(members))
            }
            ValueKind::Text => Self::Text(text),
            _ => Self::Whole(text),
        }
    }

    /// The text shortened to these limits, if it has at most `most` tokens.
    fn within(
        &self,
        limits: &Limits,
        most: Tokens,
        mut named: &str,
        counter: &dyn TokenCounter,
    ) -> Option<(String, Tokens)> {
        let mut left = String::new();
        self.write(limits, &mut named, &mut left);
        let tokens = counter.count_up_to(&left, most)?;
        Some((left, tokens))
    }

    /// Length of the longest string in bytes.
    fn longest_text(&self) -> usize {
        match self {
            Self::Array(elements) => elements.iter().map(Self::longest_text).max().unwrap_or(0),
            Self::Object(members) => members.iter().map(|(_, value)| value.longest_text()).max().unwrap_or(0),
            Self::Text(text) => text.len(),
            Self::Whole(_) => 0,
        }
    }

    /// Writes the content that stays. The first note ends with `named`.
    fn write(&self, limits: &Limits, named: &mut &str, out: &mut String) {
        match self {
            Self::Array(elements) => {
                out.push('[');
                let cut = elements.len().saturating_sub(limits.elements);
                // The first elements show the kind of content, the last one shows its end.
                let behind = usize::from(cut > 0 && limits.elements > 2);
                let before = elements.len().saturating_sub(cut).saturating_sub(behind);
                let kept = elements.iter().enumerate();
                for (at, element) in kept.filter(|(at, _)| *at < before || *at >= before.saturating_add(cut))
                {
                    if at == before.saturating_add(cut) && cut > 0 {
                        push_note(cut, "element", named, out);
                    }
                    separate(at > 0, out);
                    element.write(limits, named, out);
                }
                if cut > 0 && behind == 0 {
                    push_note(cut, "element", named, out);
                }
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                let cut = members.len().saturating_sub(limits.members);
                for (at, (key, value)) in members.iter().take(limits.members).enumerate() {
                    separate(at > 0, out);
                    out.push_str(trim(key));
                    out.push(':');
                    value.write(limits, named, out);
                }
                if cut > 0 {
                    push_note(cut, "member", named, out);
                    out.push_str(":null");
                }
                out.push('}');
            }
            Self::Text(text) if text.len() > limits.bytes => push_ends(text, limits.bytes, named, out),
            Self::Text(text) | Self::Whole(text) => out.push_str(trim(text)),
        }
    }
}

fn separate(is_needed: bool, out: &mut String) {
    if is_needed {
        out.push(',');
    }
}

/// Writes a note with the number of omitted items, as a string after the other items. At least one item is before it.
fn push_note(cut: usize, what: &str, named: &mut &str, out: &mut String) {
    let (plural, named) = (if cut == 1 { "" } else { "s" }, core::mem::take(named));
    out.push_str(&format!(",\"[{cut} {what}{plural} cut{named}]\""));
}

/// Writes the beginning and the end of a string: two thirds and one third of `bytes`.
fn push_ends(text: &str, bytes: usize, named: &mut &str, out: &mut String) {
    let text = decode(text);
    let end = text.floor_char_boundary(bytes / 3 * 2);
    let begin = text.ceil_char_boundary(text.len().saturating_sub(bytes / 3)).max(end);
    let [head, cut, tail] =
        [0..end, end..begin, begin..text.len()].map(|range| text.get(range).unwrap_or_default());
    match cut.chars().count() {
        0 => push_quoted(out, &text),
        count => {
            let named = core::mem::take(named);
            push_quoted(out, &format!("{head}[{count} characters cut{named}]{tail}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use epitome_core::ClassEstimator;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn left(text: &str, tokens: u32) -> Option<String> {
        left_named(text, tokens, "")
    }

    fn left_named(text: &str, tokens: u32, named: &str) -> Option<String> {
        let (left, size) = shortened(text, Tokens(tokens), named, &ClassEstimator::new())?;
        assert_eq!(size, ClassEstimator::new().count(&left));
        assert!(size <= Tokens(tokens));
        Some(left)
    }

    #[test]
    fn arrays_keep_a_few_elements_with_a_count() {
        let hits: Vec<Value> =
            (0..300).map(|n| json!({"id": n, "url": format!("https://x.org/{n}")})).collect();
        let text = json!({"query": "parsers", "hits": hits, "total": 300}).to_string();
        let value: Value = serde_json::from_str(&left(&text, 150).unwrap()).unwrap();
        assert_eq!((&value["query"], &value["total"]), (&json!("parsers"), &json!(300)));
        let hits = value["hits"].as_array().unwrap();
        assert_eq!(hits[0], json!({"id": 0, "url": "https://x.org/0"}));
        assert_eq!(hits[hits.len() - 1]["id"], 299);
        let cut = 300 - (hits.len() - 1);
        assert_eq!(hits[hits.len() - 2], json!(format!("[{cut} elements cut]")));
    }

    #[test]
    fn long_strings_keep_their_ends_and_numbers_their_text() {
        let text = format!(
            r#"{{"n": 1.10e+3, "a": "{}", "b": "{}", "c": "é{}"}}"#,
            "x".repeat(4_000),
            "y".repeat(4_000),
            "日本\\n".repeat(900)
        );
        let left = left(&text, 120).unwrap();
        assert!(
            left.starts_with(r#"{"n":1.10e+3,"a":"xxx"#) && left.contains("characters cut]yyy"),
            "{left}"
        );
        assert!(
            serde_json::from_str::<Value>(&left).unwrap()["c"].as_str().unwrap().ends_with("本\n"),
            "{left}"
        );
    }

    #[test]
    fn what_is_no_json_or_one_string_or_does_not_fit_is_left_to_others() {
        let many: String = (0..5_000).map(|n| format!("\"key {n}\":{{\"a\":1}},")).collect();
        for text in ["", "word ".repeat(900).as_str(), "[1,2", "12", "\"text\"", "{\"a\":1} and more"] {
            assert_eq!(left(text, 50), None, "{text:.20}");
        }
        assert_eq!(left(&json!({"output": "line\n".repeat(900), "code": 1}).to_string(), 50), None);
        assert_eq!(left(&format!("{{{}}}", many.trim_end_matches(',')), 20), None);
        assert!(
            left(&format!("{{{}}}", many.trim_end_matches(',')), 200)
                .unwrap()
                .contains("members cut]\":null}")
        );
        // Nested far deeper than real data: kept as a whole, or not at all.
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(left(&deep, 50), None);
    }

    #[test]
    fn arguments_keep_their_members_and_the_longest_ends_of_a_written_file_that_fit() {
        let counter = ClassEstimator::new();
        let file = "let answer = 42; // é\n".repeat(2_000);
        let text = json!({"path": "src/answer.rs", "content": file, "mode": 420}).to_string();
        let mut sizes = Vec::new();
        for most in [60, 200, 617, 5_000] {
            let (left, tokens) = shortened_arguments(&text, Tokens(most), &counter).unwrap();
            let value: Value = serde_json::from_str(&left).unwrap();
            assert_eq!((&value["path"], &value["mode"]), (&json!("src/answer.rs"), &json!(420)));
            let content = value["content"].as_str().unwrap();
            let (head, tail) = content.split_once("[").unwrap();
            assert!(file.starts_with(head) && tail.contains(" characters cut]"), "{content}");
            assert!(tokens <= Tokens(most) && tokens > Tokens(most / 10 * 9), "{tokens} of {most}");
            sizes.push(left.len());
        }
        assert!(sizes.is_sorted());
        // Not even a note fits; a list has no members.
        for text in [text.as_str(), "[1,2,3,4,5,6,7,8,9,10,11,12]"] {
            assert_eq!(
                shortened_arguments(text, Tokens(9), &counter),
                Some(("{}".into(), counter.count("{}")))
            );
        }
        for no_json in ["*** Begin Patch", "{\"a\":", ""] {
            assert_eq!(shortened_arguments(no_json, Tokens(9), &counter), None);
        }
    }

    /// Cuts a tree of values, for comparison.
    fn cut(value: &Value, limits: &Limits) -> Value {
        match value {
            Value::Array(all) if all.len() > limits.elements => {
                let behind = usize::from(limits.elements > 2);
                let before = limits.elements - behind;
                let cut_off = all.len() - limits.elements;
                let note = json!(format!("[{cut_off} element{} cut]", if cut_off == 1 { "" } else { "s" }));
                let head = all[..before].iter().map(|value| cut(value, limits));
                let tail = all[all.len() - behind..].iter().map(|value| cut(value, limits));
                head.chain([note]).chain(tail).collect()
            }
            Value::String(text) if value.to_string().len() > limits.bytes => {
                let all: Vec<char> = text.chars().collect();
                let fitting = |chars: &mut dyn Iterator<Item = &char>, most: usize| {
                    let mut bytes = 0;
                    let fits = |char: &&char| {
                        bytes += char.len_utf8();
                        bytes <= most
                    };
                    chars.take_while(fits).count()
                };
                let head = fitting(&mut all.iter(), limits.bytes / 3 * 2);
                let tail = fitting(&mut all[head..].iter().rev(), limits.bytes / 3);
                match all.len() - head - tail {
                    0 => value.clone(),
                    cut => {
                        let [head, tail] = [&all[..head], &all[all.len() - tail..]].map(String::from_iter);
                        json!(format!("{head}[{cut} characters cut]{tail}"))
                    }
                }
            }
            Value::Array(all) => all.iter().map(|value| cut(value, limits)).collect(),
            Value::Object(all) => all.iter().map(|(key, value)| (key.clone(), cut(value, limits))).collect(),
            other => other.clone(),
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-z日\\\\\"]{0,12}".prop_map(Value::from),
            "[a-z日\\\\\"]{0,300}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 200, 40, |inner| {
            prop_oneof![
                3 => proptest::collection::vec(inner.clone(), 0..40).prop_map(Value::from),
                1 => proptest::collection::btree_map("[a-z]{1,4}", inner, 0..6)
                    .prop_map(|all| Value::Object(all.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn it_stays_json_and_is_the_mildest_cut_that_fits(value in value(), pretty: bool, tokens in 0_u32..400) {
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
            let fits = |text: &String| ClassEstimator::new().count(text) <= Tokens(tokens);
            let cuts = LIMITS.iter().map(|limits| cut(&value, limits).to_string());
            if let Some(left) = left(&text, tokens) {
                let expected = cuts.clone().find(fits);
                prop_assert_eq!(Some(left), expected);
            } else if value.is_array() || value.is_object() {
                let one_string = Node::of(&text, DEPTH_MAX).longest_text() > text.len() / 2;
                prop_assert!(one_string || cuts.clone().find(fits).is_none());
            }
        }

        #[test]
        fn what_is_named_stands_in_the_first_note_and_it_stays_json(value in value(), tokens in 0_u32..400) {
            let Some(left) = left_named(&value.to_string(), tokens, "; #57") else { return Ok(()) };
            prop_assert!(serde_json::from_str::<Value>(&left).is_ok(), "{}", left);
            // Without the number, the text equals the result of one of the limits.
            let plain = left.replace("; #57]", "]");
            let mut cuts = LIMITS.iter().map(|limits| cut(&value, limits).to_string());
            prop_assert!(cuts.any(|cut| cut == plain), "{}", left);
            let is_cut = plain.contains(" cut]");
            prop_assert_eq!(left.matches("; #57]").count(), usize::from(is_cut), "{}", left);
            let first = left.find(" cut");
            prop_assert!(first.is_none_or(|at| left[at..].starts_with(" cut; #57]")), "{}", left);
        }

        #[test]
        fn arguments_stay_an_object_with_the_same_first_members(value in value(), tokens in 0_u32..400) {
            let text = json!({"path": "a.rs", "value": value}).to_string();
            let (left, size) = shortened_arguments(&text, Tokens(tokens), &ClassEstimator::new()).unwrap();
            prop_assert_eq!(size, ClassEstimator::new().count(&left));
            if left != "{}" {
                prop_assert!(size <= Tokens(tokens));
                let left: Value = serde_json::from_str(&left).unwrap();
                prop_assert!(left["path"] == "a.rs" && left.get("value").is_some(), "{}", left);
            } else {
                // Even the harshest limits do not fit.
                let limits = LIMITS.iter().map(|limits| cut(&serde_json::from_str(&text).unwrap(), limits).to_string());
                let fits = |text: String| ClassEstimator::new().count(&text) <= Tokens(tokens);
                prop_assert!(!limits.into_iter().any(fits));
            }
        }

        #[test]
        fn any_text_is_cut_to_json_or_not_at_all(text in "[\\[\\]{}:,\"a1 \\\\u]{0,60}", tokens in 0_u32..20) {
            if let Some(left) = left(&text, tokens) {
                prop_assert!(serde_json::from_str::<Value>(&left).is_ok(), "{}", left);
            }
        }
    }
}
