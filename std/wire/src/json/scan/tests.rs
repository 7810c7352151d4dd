//! The scanner finds the same values as `serde_json`.

use proptest::prelude::*;
use serde_json::value::RawValue;

use super::look::{count_before, has_control, plain_length};
use super::*;

/// Texts that are nearly JSON: of pieces of JSON, or of pieces of numbers.
fn nearly() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "{", "}", "[", "]", ",", ":", "\"", "\"a\"", "\"\\", "\\n\"", "\\u00e", "9\"", "\u{e9}", "\n",
        "\u{1f}", " ", "0", "12", "-", ".5", "e+1", "true", "nul", "l", "false", "{\"k\":", "[[", "]]",
    ]);
    let pieces = prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat());
    prop_oneof![pieces, "-?[0-9]{1,3}[.eE+0-9-]{0,4}"]
}

proptest! {
    #[test]
    fn what_is_json_is_what_serde_json_reads(text in nearly()) {
        prop_assert_eq!(is_value(&text), serde_json::from_str::<&RawValue>(&text).is_ok(), "{}", text);
    }

    #[test]
    fn a_control_character_is_found_at_any_place(before in "[ -~]{0,40}", control in 0_u8..0x20, after in ".{0,20}") {
        prop_assert!(!has_control(before.as_bytes()));
        let text = format!("{before}{}{after}", char::from(control));
        prop_assert!(has_control(text.as_bytes()));
    }

    #[test]
    fn what_is_known_is_found_where_it_is_found_at_first(text in nearly(), said in any::<String>(), quotes in "[\"\\\\x]{0,30}") {
        let quoted = [said, quotes].map(|text| serde_json::to_string(&text).unwrap());
        let [one, other] = &quoted;
        let texts = [format!("{{{one}:[{other},{one}],{other}:{{{one}:1}}}}"), format!("[{one} , {other},1]"), text];
        for text in texts.iter().filter(|text| is_value(text)) {
            prop_assert_eq!(all_members::<Known<'_>>(text), all_members::<Checked<'_>>(text));
            prop_assert_eq!(all_items::<Known<'_>>(text), all_items::<Checked<'_>>(text));
        }
        for text in &quoted {
            prop_assert_eq!(Known::string(&text.as_bytes()[1..]), Some(text.len() - 1));
        }
        // A scan of invalid JSON ends.
        let _ = (all_members::<Known<'_>>(&texts[2]), all_items::<Known<'_>>(&texts[2]));
    }
}

/// Any JSON value, of which some parts are long.
fn value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![".{0,120}".prop_map(serde_json::Value::from), any::<i8>().prop_map(Into::into)];
    leaf.prop_recursive(7, 60, 5, |inner| {
        let key = prop_oneof!["[a-c]{1,2}", "[\"a]{60,80}"];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(serde_json::Value::from),
            prop::collection::vec((key, inner), 0..5)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Compares the results for `value`, a part of `text`, with the notes of the text and without them.
fn same_with_notes(spans: &Spans, text: &str, value: &str) {
    let known = || Known::new(spans, START + (value.as_ptr() as usize - text.as_ptr() as usize));
    let (_, members) = all_members::<Checked<'_>>(value);
    let (_, items) = all_items::<Checked<'_>>(value);
    assert_eq!(all_members_by(known(), value).1, members, "{value} in {text}");
    assert_eq!(all_items_by(known(), value).1, items, "{value} in {text}");
    let values = members.iter().map(|(_, value)| *value).chain(items);
    values.for_each(|value| same_with_notes(spans, text, value));
}

/// Offset of the noted text in the whole.
const START: usize = 3;

proptest! {
    #[test]
    fn as_many_notes_are_passed_as_begin_before(mut spans in prop::collection::vec((0_u32..99, 0_u32..99), 0..40), start in 0_usize..99) {
        spans.sort_unstable();
        let expected = spans.iter().filter(|(begin, _)| (*begin as usize) < start).count();
        prop_assert_eq!(count_before(&spans, start), expected);
    }

    #[test]
    fn what_is_noted_is_found_as_without_a_note(value in value()) {
        for text in [value.to_string(), format!(" {value:#}\n")] {
            let mut spans = [(); 2].map(|()| Spans::of_text_at(START));
            prop_assert!(is_value_by(Checked::noting(&text, &mut spans[0]), &text));
            let opened = |spans| {
                let _ = members_and_items(Checked::noting(&text, spans), &text, drop, |_, _| Ok::<_, ()>(()));
            };
            if value.is_object() {
                opened(&mut spans[1]);
            }
            spans.iter().for_each(|spans| same_with_notes(spans, &text, text.trim()));
        }
    }
}

/// A reader that skips the notes of earlier elements still has those of the current element, in the order of the text
/// and in reverse.
#[test]
fn notes_are_found_in_any_order_of_the_elements() {
    let elements: Vec<_> =
        (0..40).map(|count| format!("[{}]", "\"0123456789\",".repeat(6 + count))).collect();
    let text = format!("[{}]", elements.join(",").replace(",]", "]"));
    let mut spans = Spans::of_text_at(START);
    assert!(is_value_by(Checked::noting(&text, &mut spans), &text));
    let elements = all_items::<Checked<'_>>(&text).1;
    for element in elements.iter().chain(elements.iter().rev()).chain(elements.iter().step_by(13)) {
        let start = START + (element.as_ptr() as usize - text.as_ptr() as usize);
        spans.pass(start);
        assert_eq!(Known::new(&spans, start).end_of(0), Some(element.len()), "{element}");
    }
}

fn all_members<S: Look + Default>(text: &str) -> (bool, Vec<(&str, &str)>) {
    all_members_by(S::default(), text)
}

fn all_members_by<S: Look>(look: S, text: &str) -> (bool, Vec<(&str, &str)>) {
    let mut found = Vec::new();
    let visit = |key, value| {
        found.push((key, value));
        Ok::<_, ()>(())
    };
    (members(look, text, visit).is_ok(), found)
}

fn all_items<S: Look + Default>(text: &str) -> (bool, Vec<&str>) {
    all_items_by(S::default(), text)
}

fn all_items_by<S: Look>(look: S, text: &str) -> (bool, Vec<&str>) {
    let mut found = Vec::new();
    let visit = |item| {
        found.push(item);
        Ok::<_, ()>(())
    };
    (items(look, text, visit).is_ok(), found)
}

#[test]
fn every_byte_ends_a_plain_text_where_json_says() {
    for byte in 0..=u8::MAX {
        for before in [0, 1, 6, 7, 8, 9, 63, 64, 65, 300] {
            let mut text = vec![b'~'; before];
            text.extend([byte, b'"', b' ', b'\\', 0x1f, 0xff, 0x80, b'"']);
            let expected = match byte {
                0..0x20 => None,
                b'"' | b'\\' => Some(before),
                _ => Some(before + 1),
            };
            assert_eq!(plain_length(&text), expected, "{byte} behind {before}");
        }
    }
    assert_eq!(plain_length(b"no end"), None);
}

#[test]
fn numbers_and_escapes_are_those_of_json() {
    let right =
        ["0", "-0", "10.50", "1e9", "1E-9", "\"\\u00eF\"", "\"\\/\\b\"", " [ ] ", "{ \"a\" : [ 1 , { } ] }"];
    let wrong = [
        "01",
        "-",
        "1.",
        ".5",
        "1e",
        "+1",
        "\"\\x\"",
        "\"\\u12g4\"",
        "\"\t\"",
        "[1,]",
        "{\"a\":1,}",
        "{a:1}",
        "1 2",
        "",
    ];
    for text in right {
        assert!(is_value(text) && serde_json::from_str::<&RawValue>(text).is_ok(), "{text}");
    }
    for text in wrong {
        assert!(!is_value(text) && serde_json::from_str::<&RawValue>(text).is_err(), "{text}");
    }
}

#[test]
fn a_value_ends_with_its_last_byte() {
    let text = "{ \"a\" : [ ] , \"b\":{ } ,\"c\" : [ 1 , {} ] , \"d\" : -1 }";
    let (mut values, mut elements) = (Vec::new(), Vec::new());
    let visit = |key, value| {
        values.push((key, value));
        Ok::<_, ()>(())
    };
    members_and_items(Checked::default(), text, |item| elements.push(item), visit).unwrap();
    assert_eq!(values, [("\"a\"", "[ ]"), ("\"b\"", "{ }"), ("\"c\"", "[ 1 , {} ]"), ("\"d\"", "-1")]);
    assert_eq!(elements, ["1", "{}"]);
    let text = "[ { \"a\" : [ 1 ] , \"b\":{} } , 2 ,{ } , [ {\"c\":3} ] ]";
    let (members, mut elements) = (core::cell::RefCell::new(Vec::new()), Vec::new());
    let visit = |element| {
        elements.push((element, members.take()));
        Ok::<_, ()>(())
    };
    items_and_members(Checked::default(), text, |key, value| members.borrow_mut().push((key, value)), visit)
        .unwrap();
    let object = ("{ \"a\" : [ 1 ] , \"b\":{} }", vec![("\"a\"", "[ 1 ]"), ("\"b\"", "{}")]);
    assert_eq!(elements, [object, ("2", vec![]), ("{ }", vec![]), ("[ {\"c\":3} ]", vec![])]);
}

#[test]
fn brackets_close_in_their_order_at_any_depth() {
    for depth in [1, 63, 64, 65, 128, 200] {
        let open: String = (0..depth).map(|at| if at % 3 == 0 { "[" } else { "{\"a\":" }).collect();
        let close: String = (0..depth).rev().map(|at| if at % 3 == 0 { "]" } else { "}" }).collect();
        assert!(is_value(&format!("{open}1{close}")), "{depth}");
        let wrong = if close.starts_with(']') { "}" } else { "]" };
        assert!(!is_value(&format!("{open}1{wrong}{}", close.get(1..).unwrap_or_default())), "{depth}");
    }
}
