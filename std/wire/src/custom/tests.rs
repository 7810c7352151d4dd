//! A format of another crate: recognised, read, written back and converted. Refusals are in `refused`, a system prompt and
//! reports of usage in `beside`.

mod beside;
mod refused;

use std::borrow::Cow;
use std::sync::Arc;

use epitome_core::Profile;
use epitome_core::attribution::{Authority, SourceKind};
use epitome_core::message::Role;
use epitome_message::{Attribution, Message, Part, ToolCall, ToolResult};
use proptest::prelude::*;
use serde_json::value::RawValue;

use super::*;
use crate::convert::convert;
use crate::document::Pointer;
use crate::{Format, ReadOptions, SessionLines, Transcript, TranscriptEntry, detect, read, write_back};

/// A format with everything that a record can hold: `{"by":"person","says":..,"does":[..],"got":{..}}`.
static DESK: FormatSpec =
    FormatSpec::new("desk", "log", sign, desk).with_profile(Profile::Anthropic).with_new_record(fresh);

#[derive(Deserialize)]
struct Record<'a> {
    #[serde(borrow)]
    by: Cow<'a, str>,
    #[serde(borrow)]
    says: Option<&'a RawValue>,
    #[serde(borrow)]
    does: Option<&'a RawValue>,
    #[serde(borrow)]
    got: Option<Got<'a>>,
}

#[derive(Deserialize)]
struct Action<'a> {
    id: String,
    name: String,
    #[serde(borrow)]
    with: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct At {
    at: Option<u64>,
}

#[derive(Deserialize)]
struct Got<'a> {
    id: String,
    #[serde(borrow)]
    value: Option<&'a RawValue>,
}

fn sign(sample: &Sample<'_>) -> Fit {
    match sample.all_are::<Record<'_>>() {
        true => Fit::Certain("its records have `by`"),
        false => Fit::No,
    }
}

fn desk<'a>(source: &Arc<str>, record: &'a str) -> Result<Vec<RecordMessage<'a>>, WireError> {
    let found: Record<'a> = parse(record)?;
    if let Some(got) = found.got {
        let value = got.value.map(RawValue::get);
        let result = RecordPart::tool_result(source, got.id, value);
        return Ok(vec![RecordMessage::new(Role::Tool, record).with_parts([result])]);
    }
    let role = match &*found.by {
        "person" => Role::User,
        "desk" => Role::Assistant,
        "clock" => return Ok(Vec::new()),
        _ => return Err(WireError::new(WireErrorKind::UnknownRole, "expected `person`, `desk` or `clock`")),
    };
    let said = found.says.map(RawValue::get);
    let said =
        RecordPart::text(source, said).map(|said| said.with_absence(found.says.map(RawValue::get), "\"\""));
    let mut message = RecordMessage::new(role, record).with_parts(said);
    if let Some(list) = found.does {
        let each: Vec<&'a RawValue> = parse(list.get())?;
        for raw in each {
            let Action { id, name, with } = parse(raw.get())?;
            let call = RecordPart::tool_call(source, (id, name), with.map(RawValue::get));
            message = message.with_parts([call.with_element(list.get(), raw.get())]);
        }
    }
    Ok(vec![message.with_name(if found.by == "person" { "Ann" } else { "" })])
}

fn fresh(message: &Message, like: Option<&str>) -> Result<String, WireError> {
    let by = if message.role() == Role::User { "person" } else { "desk" };
    let at = like.and_then(|like| parse::<At>(like).ok()?.at);
    let [Part::Text(text)] = message.parts() else {
        return Err(WireError::new(WireErrorKind::Unsupported, "a new record is a text"));
    };
    // On several lines, as a program may print it.
    Ok(serde_json::to_string_pretty(&serde_json::json!({"by": by, "says": &**text, "at": at})).unwrap())
}

const LOG: [&str; 5] = [
    r#"{"by":"person", "says":"Where is 日本 \ud83d?", "at":1}"#,
    r#"{"at":2,"by":"clock"}"#,
    r#"{"by":"desk","says":"I look.","does":[{"id":"a","name":"find","with":{"q": 1.50}}, {"id":"b","name":"ask","with":"{\"x\":1}"}]}"#,
    r#"{"by":"desk","got":{"id":"a","value":{"found": [1, 2]}}}"#,
    r#"{"by":"desk","got":{"id":"b","value":"none"}}"#,
];

/// The log in each form of a list.
fn texts() -> [String; 4] {
    let list = LOG.join(",\n  ");
    let lines = LOG.join("\n");
    [
        format!("[{list}]"),
        format!(r#"{{"v":1,"log":[{list}],"rest":0}}"#),
        lines.clone(),
        format!("{lines}\n"),
    ]
}

fn options() -> ReadOptions {
    ReadOptions::default().with_format(&DESK)
}

fn parts(transcript: &Transcript) -> Vec<Vec<Part>> {
    transcript.conversations()[0].messages().map(|message| message.parts().to_vec()).collect()
}

fn written(transcript: &Transcript) -> Result<String, WireError> {
    let mut out = Vec::new();
    write_back(transcript, &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

fn set(transcript: &mut Transcript, at: usize, parts: Vec<Part>) {
    let entry = &mut transcript.conversations_mut()[0].entries[at];
    *entry = entry.clone().with_message(entry.message().clone().with_parts(parts));
}

fn text(text: &str) -> Part {
    Part::Text(text.into())
}

#[test]
fn a_list_is_read_in_every_form_and_written_back() {
    for log in texts() {
        assert_eq!(options().detect(&log).unwrap().format, Format::Custom(&DESK));
        let transcript = read(log.as_str(), &options()).unwrap();
        let conversation = &transcript.conversations()[0];
        assert_eq!(
            (conversation.format.as_str(), conversation.format.profile()),
            ("desk", Profile::Anthropic)
        );
        let expected = [
            vec![text("Where is 日本 \u{fffd}?")],
            vec![
                text("I look."),
                Part::ToolCall(ToolCall::new("a", "find", r#"{"q": 1.50}"#)),
                Part::ToolCall(ToolCall::new("b", "ask", r#"{"x":1}"#)),
            ],
            vec![Part::ToolResult(ToolResult::new("a", vec![text(r#"{"found": [1, 2]}"#)]))],
            vec![Part::ToolResult(ToolResult::new("b", vec![text("none")]))],
        ];
        assert_eq!(parts(&transcript), expected);
        let first = conversation.entries[0].message();
        assert_eq!((first.name(), first.wire().map(|wire| &*wire.format)), (Some("Ann"), Some("desk")));
        assert_eq!(written(&transcript).unwrap(), log);
    }
}

#[test]
fn what_is_changed_stands_in_its_place() {
    for log in texts() {
        let mut transcript = read(log.as_str(), &options()).unwrap();
        set(&mut transcript, 0, vec![text("Short \"日\"")]);
        set(&mut transcript, 1, vec![Part::ToolCall(ToolCall::new("b", "ask", r#"{"x":2}"#))]);
        set(&mut transcript, 2, vec![Part::ToolResult(ToolResult::new("a", vec![text("[cleared]")]))]);
        let out = written(&transcript).unwrap();
        let expected = log
            .replace(r#""Where is 日本 \ud83d?""#, r#""Short \"日\"""#)
            .replace(r#"{"id":"a","name":"find","with":{"q": 1.50}}, "#, "")
            .replace(r#""{\"x\":1}""#, r#""{\"x\":2}""#)
            .replace(r#""I look.""#, r#""""#)
            .replace(r#"{"found": [1, 2]}"#, r#""[cleared]""#);
        assert_eq!(out, expected);
    }
}

#[test]
fn messages_are_left_out_and_added() {
    for log in texts() {
        let mut transcript = read(log.as_str(), &options()).unwrap();
        let entries = &mut transcript.conversations_mut()[0].entries;
        entries.drain(1..4);
        entries.insert(1, TranscriptEntry::new(Message::new(Role::Assistant, vec![text("In\nshort.")])));
        let out = written(&transcript).unwrap();
        let again = read(out.as_str(), &options()).unwrap();
        assert_eq!(parts(&again), [vec![text("Where is 日本 \u{fffd}?")], vec![text("In\nshort.")]], "{out}");
        assert!(out.contains(r#"{"at":2,"by":"clock"}"#), "what is no message stays: {out}");
        assert!(out.contains(r#""at": 1"#), "as the record beside it: {out}");
    }
}

#[test]
fn lines_are_read_one_by_one() {
    let lines = LOG.join("\n");
    let mut records = SessionLines::new(lines.as_bytes(), Format::Custom(&DESK)).unwrap();
    let mut found = Vec::new();
    while let Some(record) = records.next_record().unwrap() {
        found.push((record.line, record.messages.len()));
    }
    assert_eq!(found, [(1, 1), (2, 0), (3, 1), (4, 1), (5, 1)]);
}

#[test]
fn a_conversation_is_converted_to_a_providers() {
    let transcript = read(texts()[0].as_str(), &options()).unwrap();
    let converted = convert(transcript.conversations()[0].messages(), Format::Anthropic).unwrap();
    let again = read(converted.text.as_str(), &ReadOptions::default()).unwrap();
    let names = |found: &Transcript| {
        let parts = found.conversations()[0].messages().flat_map(Message::parts);
        let name =
            |part: &Part| if let Part::ToolCall(call) = part { Some(call.name.to_string()) } else { None };
        parts.filter_map(name).collect::<Vec<_>>()
    };
    assert_eq!(names(&again), ["find", "ask"]);
    let none = convert(transcript.conversations()[0].messages(), Format::Custom(&DESK));
    assert_eq!(none.unwrap_err().kind(), WireErrorKind::Unsupported);
}

#[test]
fn only_the_options_know_it() {
    let log = &texts()[0];
    assert!(detect(log).is_err());
    assert_eq!(Format::by_name("desk"), None);
    let named = ReadOptions::default().with_from(Format::Custom(&DESK));
    assert_eq!(read(log.as_str(), &named).unwrap().conversations()[0].entries.len(), 4);
    let deep = format!(r#"{{"a":[{log}]}}"#);
    let at = named.with_at(Pointer::parse("/a/0").unwrap());
    assert_eq!(read(deep.as_str(), &at).unwrap().conversations()[0].entries.len(), 4);
    // The formats of this crate are recognised next to the custom one.
    let chat = r#"[{"role":"user","content":"Hi"},{"role":"tool","tool_call_id":"c","content":"b"}]"#;
    assert_eq!(options().detect(chat).unwrap().format, Format::OpenaiChat);
    assert_eq!(read(chat, &options()).unwrap().conversations()[0].format, Format::OpenaiChat);
}

#[test]
fn two_formats_with_a_sign_of_their_own_are_both_named() {
    fn all(_: &Sample<'_>) -> Fit {
        Fit::Certain("it is a list")
    }
    static GREEDY: FormatSpec = FormatSpec::new("greedy", "messages", all, desk);
    let both = options().with_format(&GREEDY);
    let error = both.detect(&texts()[0]).unwrap_err();
    assert_eq!(error.kind(), WireErrorKind::Ambiguous);
    assert!(
        error.to_string().contains("desk because its records have `by`, or greedy because it is a list"),
        "{error}"
    );
    assert_eq!(both.detect("[]").unwrap().format, Format::OpenaiChat, "a list of nothing has no sign");
}

#[test]
fn an_object_alone_is_a_record_unless_another_format_fits_it() {
    fn any(_: &Sample<'_>) -> Fit {
        Fit::Certain("it is JSON")
    }
    fn maybe(_: &Sample<'_>) -> Fit {
        Fit::Possible("it may be")
    }
    static ANY: FormatSpec = FormatSpec::new("any", "none", any, desk);
    static MAYBE: FormatSpec = FormatSpec::new("maybe", "none", maybe, desk);
    let request = r#"{"model":"m","messages":[{"role":"user","content":"a"},{"role":"tool","tool_call_id":"c","content":"b"}]}"#;
    for spec in [&ANY, &MAYBE] {
        let found = ReadOptions::default().with_format(spec).detect(request).unwrap();
        assert_eq!(found.format, Format::OpenaiChat);
    }
    assert_eq!(options().detect(LOG[0]).unwrap().format, Format::Custom(&DESK));
    // A text on several lines is no record.
    let lines = LOG[0].replace(", ", ",\n");
    assert!(options().detect(&lines).is_err() && read(lines, &options()).is_err());
}

#[test]
fn a_value_that_repeats_several_parts_is_emptied_once() {
    fn repeated<'a>(source: &Arc<str>, record: &'a str) -> Result<Vec<RecordMessage<'a>>, WireError> {
        let [all, each @ ..]: [&RawValue; 3] = parse(record)?;
        let part = |raw: &'a RawValue| RecordPart::text(source, Some(raw.get()));
        let repeats = |part: RecordPart<'a>| part.with_slot(Some(all.get()), SlotForm::Constant("null"));
        let parts = each.into_iter().filter_map(part).map(repeats);
        Ok(vec![RecordMessage::new(Role::User, record).with_parts(parts)])
    }
    static REPEATED: FormatSpec = FormatSpec::new("repeated", "", |_| Fit::No, repeated);
    let options = ReadOptions::default().with_from(Format::Custom(&REPEATED));
    let mut transcript = read(r#"[["ab", "a", "b"]]"#, &options).unwrap();
    set(&mut transcript, 0, vec![text("x"), text("y")]);
    assert_eq!(written(&transcript).unwrap(), r#"[[null, "x", "y"]]"#);
}

fn context() -> Attribution {
    Attribution::new("desk", SourceKind::Context, Authority::User)
}

#[test]
fn messages_from_elsewhere_than_their_speaker_say_so() {
    fn marked<'a>(source: &Arc<str>, record: &'a str) -> Result<Vec<RecordMessage<'a>>, WireError> {
        let messages = desk(source, record)?.into_iter();
        Ok(messages.map(|message| message.with_attribution(context())).collect())
    }
    static MARKED: FormatSpec = FormatSpec::new("marked", "", sign, marked);
    let transcript = read(LOG[0], &ReadOptions::default().with_from(Format::Custom(&MARKED))).unwrap();
    let message = transcript.conversations()[0].entries[0].message().clone();
    assert_eq!(message.attribution(), &context());
}

proptest! {
    /// Any text in any place of a record is read, shortened and written back without a change elsewhere.
    #[test]
    fn every_text_comes_back(said in "\\PC*", new in "\\PC*", at in 0..3_usize) {
        let record = |said: &str| {
            let said = serde_json::to_string(said).unwrap();
            match at {
                0 => format!(r#"{{"at":1e3, "by":"person","says": {said} }}"#),
                1 => format!(r#"{{"by":"desk","does":[ {{"id":"a","name":"f","with":{said}}} ],"x":{said}}}"#),
                _ => format!(r#"{{"by":"desk","got":{{"id":"a","value":{said}}},"x":null}}"#),
            }
        };
        let before = record(&said);
        let mut transcript = read(before.as_str(), &options()).unwrap();
        prop_assert_eq!(written(&transcript).unwrap(), before.as_str());
        let part = match at {
            0 => text(&new),
            1 => Part::ToolCall(ToolCall::new("a", "f", new.as_str())),
            _ if new.is_empty() => Part::ToolResult(ToolResult::new("a", vec![])),
            _ => Part::ToolResult(ToolResult::new("a", vec![text(&new)])),
        };
        if at == 0 && said.is_empty() {
            prop_assert_eq!(parts(&transcript), [vec![]]);
            return Ok(());
        }
        set(&mut transcript, 0, vec![part.clone()]);
        let out = written(&transcript).unwrap();
        let again = read(out.as_str(), &options()).unwrap();
        let had = if at == 0 && new.is_empty() { vec![vec![]] } else { vec![vec![part]] };
        prop_assert_eq!(parts(&again), had, "{}", out);
        let rest = |record: &str| record.rsplit_once(['}', ',']).map(|(_, rest)| rest.to_owned());
        prop_assert_eq!(rest(&out), rest(&before));
    }
}
