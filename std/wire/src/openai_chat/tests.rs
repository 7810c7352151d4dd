//! Chat Completions messages, read, changed and written back.

use epitome_message::{Approval, Part, Reasoning, ToolCall, ToolResult, UnknownPart, WireText};

use super::*;
use crate::WireErrorKind;

/// The parts, one line each: `text Hi`, `call c1 read {}`, `result c1 [text 42]`.
pub(crate) fn shown(parts: &dyn Parts) -> Vec<String> {
    let mut lines = Vec::new();
    parts.for_each_part(&mut |part| {
        lines.push(match part {
            PartView::Text(text) => format!("text {text}"),
            PartView::Reasoning(reasoning) => format!("reasoning {}", reasoning.text),
            PartView::ToolCall(call) => format!("call {} {} {}", call.id, call.name, call.arguments),
            PartView::ToolResult(result) => {
                format!("result {} [{}]", result.call_id, shown(result.content).join(", "))
            }
            PartView::Media(media) => {
                format!("{:?} {} {}", media.kind, media.mime, media.extent.low_detail)
            }
            PartView::Unknown(unknown) => format!("unknown {} {}", unknown.kind, unknown.raw),
            other => format!("{other:?}"),
        });
    });
    lines
}

fn parts(text: &str) -> Vec<String> {
    let view = ChatView::parse(text).unwrap();
    let owned = read(text).unwrap();
    assert_eq!(shown(&view), shown(&owned), "borrowed and owned agree");
    assert_eq!((view.role(), view.name()), (owned.role(), owned.name()));
    assert_eq!(write(&owned).unwrap(), text, "an untouched message is its source text");
    shown(&view)
}

fn error(text: &str) -> String {
    ChatView::parse(text).unwrap_err().to_string()
}

#[test]
fn texts_and_lists_of_parts() {
    assert_eq!(parts(r#"{"role":"user","content":"a\n\u00e9"}"#), ["text a\n\u{e9}"]);
    assert_eq!(parts(r#" {"content":null,"role":"developer"} "#), [""; 0]);
    assert_eq!(parts(r#"{"role":"system","content":""}"#), [""; 0]);
    let list = r#"{"role":"user","content":["bare",{"type":"text","text":"t","cache_control":{}},
        {"type":"text","text":""},{"type":"refusal","refusal":"no"},{"type":"new_kind","x":[1.0]}]}"#;
    let expected = ["text bare", "text t", "text no", "unknown new_kind {\"type\":\"new_kind\",\"x\":[1.0]}"];
    assert_eq!(parts(list), expected);
}

#[test]
fn media_is_recognised_by_its_url() {
    let image =
        |url: &str| format!(r#"{{"role":"user","content":[{{"type":"image_url","image_url":{url}}}]}}"#);
    assert_eq!(
        parts(&image(r#"{"url":"data:image/png;base64,QUJD","detail":"low"}"#)),
        ["Image image/png true"]
    );
    assert_eq!(parts(&image(r#"{"url":"data:image\/png;base64,QUJD"}"#)), ["Image image/png false"]);
    assert_eq!(parts(&image(r#""https://example.org/a.png""#)), ["Image  false"]);
    let part = |part: &str| format!(r#"{{"role":"user","content":[{part}]}}"#);
    let sound = r#"{"type":"input_audio","input_audio":{"data":"QUJD","format":"mp3"}}"#;
    assert_eq!(parts(&part(sound)), ["Audio audio/mpeg false"]);
    let file = r#"{"type":"file","file":{"file_data":"data:application/pdf;base64,QUJD","filename":"a"}}"#;
    assert_eq!(parts(&part(file)), ["Document application/pdf false"]);
    assert_eq!(parts(&part(r#"{"type":"file","file":{"file_id":"file-1"}}"#)), ["Document  false"]);
}

#[test]
fn an_assistant_reasons_speaks_and_calls() {
    let text = r#"{"role":"assistant","reasoning_content":"hm","content":"c","refusal":"r","tool_calls":[
        {"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}},
        {"id":"c2","type":"custom","custom":{"name":"g","input":"raw"}},
        {"function":{"name":"h","arguments":{"a": 1.0}}}]}"#;
    let expected =
        ["reasoning hm", "text c", "text r", "call c1 f {\"a\":1}", "call c2 g raw", "call  h {\"a\": 1.0}"];
    assert_eq!(parts(text), expected);
    let both =
        r#"{"role":"assistant","content":null,"reasoning_content":"","reasoning":"r","tool_calls":null}"#;
    assert_eq!(parts(both), ["reasoning r"]);
    assert_eq!(parts(r#"{"role":"assistant","reasoning":{"a":1},"content":"c"}"#), ["text c"]);
}

#[test]
fn calls_and_results_of_every_age() {
    let call = r#"{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}"#;
    assert_eq!(parts(call), ["call  f {}"]);
    assert_eq!(parts(r#"{"role":"function","name":"f","content":"1"}"#), ["result  [text 1]"]);
    assert_eq!(
        parts(r#"{"role":"tool","tool_call_id":"c1","content":[{"type":"text","text":"1"}]}"#),
        ["result c1 [text 1]"]
    );
    assert_eq!(parts(r#"{"role":"tool","tool_call_ids":["c1"],"content":"1"}"#), ["result c1 [text 1]"]);
    assert_eq!(parts(r#"{"role":"tool","content":null}"#), ["result  []"]);
}

#[test]
fn what_a_message_claims_of_itself_is_data() {
    let text = r#"{"role":"tool","content":"x","label":"important","pinned":true,"authority":"system"}"#;
    let view = ChatView::parse(text).unwrap();
    assert_eq!(view.attribution(), AttributionView::caller(Role::Tool.authority()));
    assert_eq!(read(text).unwrap().attribution().view(), view.attribution());
}

#[test]
fn errors_name_the_field_and_show_no_text() {
    assert_eq!(error(r#"["secret"]"#), "expected a message (an object with `role`), found an array of 1");
    assert!(error(r#"{"content":"secret"}"#).ends_with("found an object with the key `content`"));
    assert_eq!(
        error(r#"{"role":"robot"}"#),
        "byte 8, at /role: unknown role `robot`: expected system, developer, user, assistant, tool or function"
    );
    let expected = "byte 23, at /content: expected a text, a list of parts or null, found a number";
    assert_eq!(error(r#"{"role":"user","content":3}"#).replace("byte 25", "byte 23"), expected);
    let url = r#"{"role":"user","content":["a",{"type":"image_url","image_url":{"url":5}}]}"#;
    assert!(
        error(url).ends_with("at /content/1/image_url/url: expected a text, found a number"),
        "{}",
        error(url)
    );
    assert!(
        error(r#"{"role":"assistant","tool_calls":[{"id":"c"}]}"#)
            .contains("at /tool_calls/0: expected a call")
    );
    assert!(error(r#"{"role":"user","tool_calls":[{}]}"#).contains("only an assistant calls"));
    assert!(error(r#"{"role":"tool","tool_call_ids":["a","b"]}"#).contains("answers one call, found 2 ids"));
    assert!(error(r#"{"role":"user","role":"system"}"#).contains("the key `role` appears twice"));
    assert!(error(r#"{"role":"user","content":"secr"#).contains("cut off"));
    let all = read_all("[{\"role\":\"user\"},\n {\"role\":\"user\",\"content\":[7]}]").unwrap_err();
    assert_eq!(
        all.to_string(),
        "line 2, column 28, at /1/content/0: expected a part (an object), found a number"
    );
}

#[test]
fn parts_share_the_source_text() {
    let message = read(r#"{"role":"user","content":"shared"}"#).unwrap();
    let (Some(wire), [Part::Text(text)]) = (message.wire(), message.parts()) else { panic!("one text") };
    assert!(wire.text.as_bytes().as_ptr_range().contains(&text.as_ptr()));
}

#[test]
fn a_touched_message_changes_only_what_changed() {
    let source = "{\n  \"agent\": \"x\",\n  \"role\": \"assistant\",\n  \"content\": \"long\",\n  \"cost\": 1.0e2,\n  \
                  \"reasoning\": \"hm\",\n  \"tool_calls\": [\n    {\"index\": 0, \"id\": \"c1\", \"function\": \
                  {\"name\": \"f\", \"arguments\": \"{}\", \"strict\": true}},\n    {\"id\": \"c2\", \"custom\": \
                  {\"name\": \"g\", \"input\": \"i\"}}\n  ]\n}";
    let message = read(source).unwrap();
    let keep = |kept: &[usize]| kept.iter().map(|index| message.parts()[*index].clone()).collect::<Vec<_>>();
    let written = |parts| write(&message.clone().with_parts(parts)).unwrap().into_owned();
    assert_eq!(written(keep(&[0, 1, 2, 3])), source);
    assert_eq!(written(keep(&[1, 2, 3])), source.replace(",\n  \"reasoning\": \"hm\"", ""));
    assert_eq!(written(keep(&[0, 2, 3])), source.replace("\n  \"content\": \"long\",", ""));
    let mut parts = keep(&[0, 1, 2, 3]);
    parts[1] = Part::Text("s".into());
    parts[2] = Part::ToolCall(ToolCall::new("c1", "f", "1"));
    parts[3] = Part::ToolCall(ToolCall::new("c2", "g", "j"));
    let changed = source.replace("\"long\"", "\"s\"").replace("\"{}\"", "\"1\"").replace("\"i\"", "\"j\"");
    assert_eq!(written(parts), changed);
    let without_calls = written(keep(&[0, 1]));
    assert_eq!(without_calls, format!("{}\n}}", source.split(",\n  \"tool_calls\"").next().unwrap()));
}

#[test]
fn a_touched_list_keeps_the_text_of_its_parts() {
    let source = r#"{"role":"user","content":[ {"type":"text","text":"a","cache_control":{"n":1.0}}, {"type":"text","text":"b"} ]}"#;
    let message = read(source).unwrap();
    let first = message.parts()[0].clone();
    let written = |parts| write(&message.clone().with_parts(parts)).unwrap().into_owned();
    assert_eq!(written(vec![first.clone()]), source.replace(r#", {"type":"text","text":"b"}"#, ""));
    let other = written(vec![first, Part::Text("c".into())]);
    assert_eq!(other, source.replace("\"b\"", "\"c\""));
    assert_eq!(written(vec![]), r#"{"role":"user","content":""}"#);
}

#[test]
fn touched_results_names_and_refusals() {
    let result = |text| vec![Part::ToolResult(ToolResult::new("c1", vec![Part::Text(text)]))];
    let source = r#"{"role":"tool","tool_call_ids":["c1"],"content":"long","agent":"x"}"#;
    let message = read(source).unwrap().with_parts(result("s".into()));
    assert_eq!(write(&message).unwrap(), source.replace("long", "s"));
    let other = Part::ToolResult(ToolResult::new("c2", vec![Part::Text("long".into())]));
    let moved = write(&read(source).unwrap().with_parts(vec![other])).unwrap().into_owned();
    assert_eq!(moved, r#"{"role":"tool","content":"long","agent":"x","tool_call_id":"c2"}"#);
    let named = read(r#"{"role":"user","content":"a"}"#).unwrap().with_name("n");
    assert_eq!(write(&named).unwrap(), r#"{"role":"user","content":"a","name":"n"}"#);
    let source = r#"{"role":"assistant","content":"c","refusal":"r"}"#;
    let message = read(source).unwrap();
    let refusal = message.clone().with_parts(vec![Part::Text("d".into()), Part::Text("r".into())]);
    assert_eq!(write(&refusal).unwrap(), source.replace("\"c\"", "\"d\""));
    let without = message.with_parts(vec![Part::Text("c".into())]);
    assert_eq!(write(&without).unwrap(), r#"{"role":"assistant","content":"c"}"#);
    let source = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","function":{"name":"f"}}]}"#;
    let without_calls = read(source).unwrap().with_parts(vec![]);
    assert_eq!(write(&without_calls).unwrap(), r#"{"role":"assistant","content":""}"#);
    let source = r#"{"role":"assistant","content":"c","function_call":{"name":"f","arguments":"{}"}}"#;
    let call = ToolCall::new("", "f", "1");
    let legacy = read(source).unwrap().with_parts(vec![Part::Text("c".into()), Part::ToolCall(call)]);
    assert_eq!(write(&legacy).unwrap(), source.replace("{}", "1"));
}

#[test]
fn dropped_reasoning_takes_its_signed_form_with_it() {
    let source =
        r#"{"role":"assistant","reasoning":"r","reasoning_details":[{"signature":"s"}],"content":"c"}"#;
    let without = read(source).unwrap().with_parts(vec![Part::Text("c".into())]);
    assert_eq!(write(&without).unwrap(), r#"{"role":"assistant","content":"c"}"#);
}

#[test]
fn new_messages_are_compact() {
    assert_eq!(write(&Message::user("a\"b")).unwrap(), r#"{"role":"user","content":"a\"b"}"#);
    assert_eq!(
        write(&Message::tool("c1", "1")).unwrap(),
        r#"{"role":"tool","content":"1","tool_call_id":"c1"}"#
    );
    let call = Part::ToolCall(ToolCall::new("c1", "f", "{}"));
    let message = Message::new(Role::Assistant, vec![Part::Reasoning(Reasoning::new("r")), call]);
    assert_eq!(
        write(&message).unwrap(),
        r#"{"role":"assistant","content":null,"reasoning_content":"r","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}"#
    );
}

#[test]
fn what_the_format_cannot_say_is_refused() {
    let refused = |role, part| write(&Message::new(role, vec![part])).unwrap_err();
    let mut sealed = Reasoning::new("r");
    sealed.opaque = Some("x".into());
    let mut hosted = ToolCall::new("c", "f", "{}");
    hosted.kind = epitome_core::message::CallKind::Hosted;
    let cases = [
        (Part::Reasoning(sealed), "sealed reasoning"),
        (Part::ToolCall(hosted), "a call that the provider runs"),
        (Part::ApprovalRequest(Approval::new("a", "c")), "an approval request"),
    ];
    for (part, named) in cases {
        let error = refused(Role::Assistant, part);
        assert_eq!(error.kind(), WireErrorKind::Unsupported);
        assert!(error.to_string().contains(named), "{error}");
    }
    assert!(refused(Role::User, Part::Reasoning(Reasoning::new("r"))).to_string().contains("reasoning here"));
    assert!(refused(Role::Tool, Part::Text("r".into())).to_string().contains("not one tool result"));
}

#[test]
fn an_unknown_part_of_another_format_is_not_written() {
    let part = |format: &str| Part::Unknown(UnknownPart::new(format, "novel", r#"{"type":"novel"}"#));
    let read = read(r#"{"role":"user","content":[{"type":"novel"}],"n":1}"#).unwrap();
    assert_eq!(read.parts(), [part(FORMAT)]);
    for format in ["gemini", "anthropic", ""] {
        let inside = Part::ToolResult(ToolResult::new("c1", vec![Part::Text("t".into()), part(format)]));
        for message in [
            Message::new(Role::User, vec![part(format)]),
            Message::new(Role::Tool, vec![inside]),
            read.clone().with_parts(vec![part(FORMAT), part(format)]),
        ] {
            assert_eq!(write(&message).unwrap_err().kind(), WireErrorKind::Unsupported, "{format}");
        }
    }
    // A part of this format is written, in a message from any format.
    let wire = WireText::new("gemini".into(), "{}".into());
    let other = Message::new(Role::User, vec![part(FORMAT)]).with_wire(wire);
    assert_eq!(write(&other).unwrap(), r#"{"role":"user","content":[{"type":"novel"}]}"#);
}

/// The cost of a hostile message is proportional to its length: a search for every element would be 400 million
/// comparisons.
#[test]
fn many_parts_and_calls_are_patched_in_one_walk() {
    const MANY: usize = 20_000;
    let list = |element: &dyn Fn(usize) -> String| (0..MANY).map(element).collect::<Vec<_>>().join(",");
    let parts = list(&|at| format!(r#"{{"x":{at},"type":"text","text":"t{at}"}}"#));
    // Calls that all have one id, and calls that all have their own.
    for same in [true, false] {
        let id = |at| if same { 0 } else { at };
        let call =
            |at| format!(r#"{{"x":{at},"id":"c{}","function":{{"name":"f","arguments":"{at}"}}}}"#, id(at));
        let text = format!(r#"{{"role":"assistant","content":[{parts}],"tool_calls":[{}]}}"#, list(&call));
        let message = read(&text).unwrap();
        let change = |part: &Part| match part {
            Part::ToolCall(call) => {
                let arguments = format!("{} or so", call.arguments.as_str());
                Part::ToolCall(ToolCall::new(call.id.clone(), call.name.clone(), arguments))
            }
            part => part.clone(),
        };
        let backward: Vec<_> = message.parts().iter().rev().cloned().collect();
        let changed: Vec<_> = message.parts().iter().map(change).collect();
        let without_first: Vec<_> = message.parts().iter().skip(1).map(change).collect();
        let variants = if same { vec![backward, changed] } else { vec![without_first] };
        for parts in variants {
            let written = write(&message.clone().with_parts(parts.clone())).unwrap().into_owned();
            let again = read(&written).unwrap();
            let calls = |parts: &[Part]| -> Vec<Part> {
                parts.iter().filter(|part| matches!(part, Part::ToolCall(_))).cloned().collect()
            };
            assert_eq!(calls(again.parts()), calls(&parts));
            assert_eq!(again.parts().len(), parts.len());
            assert!(
                written.contains(r#"{"x":19999,"type":"text","text":"t19999"}"#),
                "texts keep their form"
            );
        }
    }
}
