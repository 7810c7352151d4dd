use epitome_core::message::Role;
use epitome_message::{Message, Part, ToolResult};

use crate::{Entry, Format, ReadOptions, Transcript, WireErrorKind, detect, read, write_back};

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
    second.entries.push(Entry::new(Message::assistant("New")));
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

#[test]
fn a_speaker_that_nobody_knows_is_refused_with_its_place() {
    let text = LIST.replacen("human", "narrator", 1);
    let error = read(text, &ReadOptions::default()).unwrap_err();
    assert_eq!((error.kind(), error.path()), (WireErrorKind::Shape, "/0/conversations/0"));
    assert!(error.to_string().contains("expected a `from`"), "{error}");
}
