use epitome_core::attribution::SourceKind;
use epitome_core::message::Role;
use epitome_message::{Message, Part, ToolResult};

use crate::{Format, ReadOptions, Transcript, TranscriptEntry, WireErrorKind, detect, read, write_back};

const LIST: &str = include_str!("../../../../fuzz/seeds/wire_sharegpt/list.json");
const LINES: &str = include_str!("../../../../fuzz/seeds/wire_sharegpt/lines.jsonl");

fn transcript(text: &str) -> Transcript {
    read(text, &ReadOptions::default()).unwrap()
}

fn written(transcript: &Transcript) -> String {
    let mut out = Vec::new();
    write_back(transcript, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn dialogues_of_a_list_and_of_lines_are_read() {
    for (text, paths, counts) in
        [(LIST, ["/0/conversations", "/1/conversations"], [5, 3]), (LINES, ["/conversations"; 2], [2, 3])]
    {
        assert_eq!(detect(text).unwrap().format, Format::ShareGpt);
        let transcript = transcript(text);
        let found = transcript.conversations();
        assert_eq!(found.iter().map(|one| one.path.as_str()).collect::<Vec<_>>(), paths);
        assert_eq!(found.iter().map(|one| one.entries.len()).collect::<Vec<_>>(), counts);
        assert_eq!(written(&transcript), text);
    }
    let transcript = transcript(LIST);
    let parts: Vec<_> = transcript.conversations()[0].messages().flat_map(Message::parts).collect();
    let (Part::ToolCall(call), Part::ToolResult(result)) = (parts[2], parts[3]) else { panic!("{parts:?}") };
    assert_eq!((&*call.name, &*call.arguments, &call.id), ("find", r#"{"id": 7}"#, &result.call_id));
    assert_eq!(result.parts, [Part::Text(r#"{"at": "Berlin"}"#.into())]);
    assert_eq!(&*transcript.conversations()[0].id, "d1");
    let asked = |leaf| read(LIST, &ReadOptions::default().with_leaf(leaf));
    assert_eq!(asked("d1").unwrap().active().map(|one| one.entries.len()), Some(5));
    assert_eq!(asked("d2").unwrap_err().kind(), WireErrorKind::NotFound);
}

#[test]
fn a_call_that_is_no_json_is_what_the_model_said() {
    let transcript = transcript(LINES);
    let message = transcript.conversations()[1].entries[1].message().clone();
    assert_eq!((message.role(), message.parts()), (Role::Assistant, &[Part::Text("not json".into())][..]));
}

#[test]
fn changes_are_written_into_their_dialogue() {
    let mut transcript = transcript(LIST);
    let [first, second] = transcript.conversations_mut() else { panic!() };
    let short = Part::ToolResult(ToolResult::new("call", vec![Part::Text("[cleared]".into())]));
    first.entries[3] =
        first.entries[3].clone().with_message(first.entries[3].message().clone().with_parts(vec![short]));
    first.entries.remove(4);
    let system = first.entries[0].clone();
    first.entries[0] =
        system.clone().with_message(system.message().clone().with_parts(vec![Part::Text("Short.".into())]));
    second.entries.push(TranscriptEntry::new(Message::assistant("New")));
    let expected = LIST
        .replace(r#""Be brief.""#, r#""Short.""#)
        .replace(r#""{\"at\": \"Berlin\"}""#, r#""[cleared]""#)
        .replace(",\n    {\"from\": \"gpt\", \"value\": \"In Berlin.\", \"weight\": 1}", "")
        .replace(
            r#"{"from": "gpt", "value": ""}"#,
            r#"{"from": "gpt", "value": ""}, {"from":"gpt","value":"New"}"#,
        );
    assert_eq!(written(&transcript), expected);
}

/// A dialogue of these records, each a `from` and the JSON of its `value`.
fn dialogue(records: &[(&str, &str)]) -> String {
    let each = records.iter().map(|(from, value)| format!(r#"{{"from":"{from}","value":{value}}}"#));
    format!(r#"{{"id":0,"conversations":[{}]}}"#, each.collect::<Vec<_>>().join(","))
}

fn calls(transcript: &Transcript) -> Vec<(String, String)> {
    let call = |part: &Part| match part {
        Part::ToolCall(call) => Some((call.name.to_string(), call.arguments.to_string())),
        _ => None,
    };
    transcript.conversations()[0].messages().flat_map(Message::parts).filter_map(call).collect()
}

#[test]
fn calls_are_read_as_datasets_spell_them() {
    let pair = |name: &str, arguments: &str| (name.to_owned(), arguments.to_owned());
    for (value, expected) in [
        (r#""{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":1}\"}""#, vec![pair("f", r#"{"a":1}"#)]),
        (r#""{\"name\":\"f\"}""#, vec![pair("f", "{}")]),
        (
            r#""[{\"name\":\"f\",\"arguments\":{}},{\"name\":\"g\",\"arguments\":{}}]""#,
            vec![pair("f", "{}"), pair("g", "{}")],
        ),
        (r#""{\"name\":\"f\",\"arguments\":7}""#, vec![]),
        (r#""[{\"name\":\"f\"},7]""#, vec![]),
    ] {
        let text = dialogue(&[
            ("human", "\"go\""),
            ("function_call", value),
            ("observation", "\"1\""),
            ("observation", "\"2\""),
        ]);
        let transcript = transcript(&text);
        assert_eq!(calls(&transcript), expected, "{value}");
        let roles: Vec<_> = transcript.conversations()[0].messages().skip(2).map(Message::role).collect();
        let observed = |at: usize| if at < expected.len() { Role::Tool } else { Role::User };
        assert_eq!(roles, [observed(0), observed(1)], "{value}");
        assert_eq!(written(&transcript), text);
    }
}

#[test]
fn an_observation_without_a_call_is_context_and_can_be_shortened() {
    let text = dialogue(&[
        ("human", "\"go\""),
        ("gpt", "\"<tool_call>\""),
        ("tool", r#"{"rows":[1,2]}"#),
        ("gpt", "\"x\""),
    ]);
    let mut transcript = transcript(&text);
    let entry = &mut transcript.conversations_mut()[0].entries[2];
    assert_eq!(
        (entry.message().role(), entry.message().attribution().source),
        (Role::User, SourceKind::Tool)
    );
    *entry =
        entry.clone().with_message(entry.message().clone().with_parts(vec![Part::Text("[short]".into())]));
    assert_eq!(written(&transcript), text.replace(r#"{"rows":[1,2]}"#, r#""[short]""#));
}

#[test]
fn a_value_that_is_no_text_is_refused_where_somebody_speaks() {
    let text = dialogue(&[("human", "\"go\""), ("gpt", r#"["a"]"#)]);
    let error = read(text, &ReadOptions::default()).unwrap_err();
    assert_eq!((error.kind(), error.path()), (WireErrorKind::Shape, "/conversations/1/value"));
}

#[test]
fn dialogues_without_turns_do_not_hide_the_others() {
    let text = format!(r#"[{{"conversations":[]}},{}]"#, dialogue(&[("human", "\"go\"")]));
    let transcript = transcript(&text);
    let names: Vec<_> = transcript.conversations().iter().map(|one| (&*one.id, one.entries.len())).collect();
    assert_eq!(names, [("", 0), ("0", 1)]);
}

#[test]
fn all_of_a_dialogue_may_become_a_summary() {
    let mut transcript = transcript(LIST);
    let second = &mut transcript.conversations_mut()[1];
    second.entries.clear();
    second.entries.push(TranscriptEntry::new(Message::user("They greeted.")));
    let out = written(&transcript);
    assert!(out.contains(r#"{"conversations": [{"from":"human","value":"They greeted."}]}"#), "{out}");
}

#[test]
fn one_of_the_texts_that_are_read_one_by_one_has_the_leaf() {
    let each = |leaf: &str| read(LIST, &ReadOptions::default().with_each().with_leaf(leaf));
    assert_eq!(each("d1").unwrap().active().map(|one| one.entries.len()), Some(5));
    assert_eq!(each("d7").unwrap_err().kind(), WireErrorKind::NotFound);
}

#[test]
fn a_speaker_that_nobody_knows_is_refused_with_its_place() {
    let text = LIST.replacen("human", "narrator", 1);
    let error = read(text, &ReadOptions::default()).unwrap_err();
    assert_eq!((error.kind(), error.path()), (WireErrorKind::Shape, "/0/conversations/0"));
    assert!(error.to_string().contains("expected a `from`"), "{error}");
}
