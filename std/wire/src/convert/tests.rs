//! Tests of conversions and of their listed losses.

use epitome_core::{OpenCallTree, Profile, Validator};
use epitome_message::{Media, MediaSource, Message, Part, Reasoning, ToolCall, ToolResult};

use super::target::Target;
use serde_json::Value;

use crate::json::{self, ValueKind};
use crate::{
    ConversionLossKind, Converted, FieldValidator, Format, ReadOptions, Transcript, TranscriptEntry, convert,
    read, write_back,
};
use epitome_core::message::{MediaKind, Role};

pub(crate) const TARGETS: [Format; 7] = crate::CONVERSION_TARGETS;

fn reading(text: &str) -> Transcript {
    read(text, &ReadOptions::default()).unwrap()
}

/// The conversations of a transcript in the format `to`, checked to be readable and legal.
pub(crate) fn converted(transcript: &Transcript, to: Format) -> Vec<Converted> {
    let of = |conversation: &crate::Conversation| {
        let converted = convert(conversation.messages(), to).unwrap();
        check(&converted.text, to);
        converted
    };
    transcript.conversations().iter().map(of).collect()
}

fn check(text: &str, to: Format) {
    let again = read(text, &ReadOptions::default().with_from(to)).unwrap();
    let profile = Target::of(to).unwrap().profile;
    let mut validator = Validator::<OpenCallTree>::new(profile);
    let mut found = Vec::new();
    for message in again.conversations()[0].messages() {
        validator.push(message, &mut |violation| found.push(violation)).unwrap();
    }
    validator.finish(&mut |violation| found.push(violation));
    assert!(found.is_empty(), "{to}: {found:?}");
    let (mut fields, mut refused) = (FieldValidator::new(profile), Vec::new());
    if to.profile() != Profile::OpenaiChat || to == Format::OpenaiChat {
        again.conversations()[0]
            .messages()
            .for_each(|message| fields.push(message, &mut |field| refused.push(field)));
    }
    assert!(refused.is_empty(), "{to}: {refused:?}");
    // Values that are too deep, and numbers that are too large, are left to the reader above.
    let Ok(value) = serde_json::from_str::<Value>(text) else { return };
    let list = ["messages", "input", "contents"].iter().find_map(|key| value.get(key)).unwrap_or(&value);
    for text in list.as_array().unwrap().iter().flat_map(arguments_of) {
        let is_object = ValueKind::of(json::trim(text)) == ValueKind::Object && json::check(text).is_ok();
        assert!(is_object, "{to}: {text:?} are no arguments");
    }
}

/// The texts of arguments in a message of Chat Completions or Agent Framework, or in an item of Responses.
fn arguments_of(message: &Value) -> Vec<&str> {
    let lists = ["tool_calls", "contents"].map(|key| message[key].as_array().into_iter().flatten());
    let calls = lists.into_iter().flatten();
    let calls = calls.map(|call| if call["function"].is_object() { &call["function"] } else { call });
    calls.chain([message]).filter_map(|call| call["arguments"].as_str()).collect()
}

fn lost(converted: &Converted) -> Vec<String> {
    let of = |loss: &crate::ConversionLoss| format!("{} {} {}", loss.message, loss.kind.as_str(), loss.what);
    converted.losses.iter().map(|loss| of(loss).trim_end().to_owned()).collect()
}

fn one(text: &str, to: Format) -> (String, Vec<String>) {
    let mut all = converted(&reading(text), to);
    let first = all.remove(0);
    (first.text.clone(), lost(&first))
}

const CHAT: &str = r#"{"messages":[
  {"role":"system","content":"S"},
  {"role":"user","content":"Go","name":"ada"},
  {"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[
    {"id":"c:1","type":"function","function":{"name":"f","arguments":"{\"x\":1.50}"}},
    {"id":"c2","type":"function","function":{"name":"g","arguments":"free"}}]},
  {"role":"tool","tool_call_id":"c2","content":"two"},
  {"role":"tool","tool_call_id":"c:1","content":"one","cost":3}
]}"#;

/// An item of Responses goes back as it came, without the id that the service gave it. A changed item keeps its fields.
#[test]
fn items_keep_their_fields_where_they_came_from() {
    let items = |said: &str, id: [&str; 2]| {
        format!(
            r#"{{"input":[{{"role":"user","content":"a"}},{{"type":"message",{}"role":"assistant","status":"completed","phase":"commentary","content":[{{"type":"output_text","text":"{said}","annotations":[{{"type":"url_citation","url":"u"}}]}}]}},{{"type":"reasoning","id":"rs_1","summary":[{{"type":"summary_text","text":"s"}}],"content":[{{"type":"reasoning_text","text":"c"}}],"encrypted_content":"e","provider_data":{{"model":"m"}}}},{{"type":"function_call",{}"call_id":"c","name":"f","arguments":"{{}}","provider_data":{{"thought_signature":"s"}}}},{{"type":"function_call_output","call_id":"c","output":[{{"type":"input_text","text":"r"}}]}}]}}"#,
            id[0], id[1]
        )
    };
    let (given, plain) = (items("b", [r#""id":"msg_1","#, r#""id":"fc_1","#]), items("b", ["", ""]));
    let (text, lost) = one(&given, Format::OpenaiResponses);
    assert_eq!(text, plain);
    assert_eq!(lost.len(), 2, "{lost:?}");
    assert!(lost.iter().all(|loss| loss.contains("id")), "{lost:?}");
    assert_eq!(one(&plain, Format::OpenaiResponses), (plain, Vec::new()));

    let mut messages: Vec<Message> = reading(&given).conversations()[0].messages().cloned().collect();
    messages[1] = messages[1].clone().with_parts(vec![Part::Text("B".into())]);
    let text = convert(&messages, Format::OpenaiResponses).unwrap().text;
    assert!(text.contains(r#""text":"B""#) && text.contains("thought_signature"), "{text}");
}

#[test]
fn calls_results_and_instructions_find_their_places() {
    let (text, lost) = one(CHAT, Format::Anthropic);
    let expected = concat!(
        r#"{"system":"S","messages":[{"role":"user","content":"Go"},{"role":"assistant","content":["#,
        r#"{"type":"tool_use","id":"call_1","name":"f","input":{"x":1.50}},"#,
        r#"{"type":"tool_use","id":"c2","name":"g","input":{"input":"free"}}]},{"role":"user","content":["#,
        r#"{"type":"tool_result","tool_use_id":"c2","content":"two"},"#,
        r#"{"type":"tool_result","tool_use_id":"call_1","content":"one"}]}]}"#
    );
    assert_eq!(text, expected);
    assert_eq!(lost, ["1 name", "2 reasoning", "2 call-id", "2 arguments g", "4 field cost"]);
    let (text, _) = one(CHAT, Format::Gemini);
    assert!(text.starts_with(r#"{"systemInstruction":{"parts":[{"text":"S"}]},"contents":["#), "{text}");
    assert!(
        text.contains(r#"{"functionResponse":{"id":"c2","name":"g","response":{"output":"two"}}}"#),
        "{text}"
    );
    let (text, lost) = one(CHAT, Format::OpenaiResponses);
    assert!(text.contains(r#"{"type":"function_call_output","call_id":"c:1","output":"one"}"#), "{text}");
    assert_eq!(lost, ["1 name", "2 reasoning", "2 arguments g", "4 field cost"]);
}

#[test]
fn words_behind_a_call_are_moved_where_calls_stand_last() {
    let text = r#"{"messages":[{"role":"user","content":"go"},
      {"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}},{"type":"text","text":"ok"}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"r"}]}]}"#;
    for to in TARGETS {
        let moved = matches!(to, Format::OpenaiChat | Format::LangChain);
        let lost = one(text, to).1;
        assert_eq!(lost.iter().any(|lost| lost.contains("moved")), moved, "{to}: {lost:?}");
    }
}

#[test]
fn sealed_reasoning_is_never_sent_to_another_vendor() {
    let text = r#"{"system":"S","messages":[{"role":"user","content":"a"},{"role":"assistant","content":[
        {"type":"thinking","thinking":"I think","signature":"SEALED-1"},{"type":"redacted_thinking","data":"SEALED-2"},
        {"type":"text","text":"b"}]}]}"#;
    for to in TARGETS {
        let (text, lost) = one(text, to);
        assert_eq!(text.contains("SEALED"), to == Format::Anthropic, "{to}");
        let sealed = lost.iter().filter(|loss| loss.contains("sealed-reasoning")).count();
        assert_eq!(sealed, if to == Format::Anthropic { 0 } else { 2 }, "{to}");
        let replays = [Format::Anthropic, Format::OpenaiChat, Format::AgentFramework, Format::LangChain];
        assert_eq!(text.contains("I think"), replays.contains(&to), "{to}");
    }
    // The service that sealed this reasoning is unknown.
    let mut reasoning = Reasoning::new("");
    reasoning.opaque = Some("SEALED".into());
    let message = Message::new(Role::Assistant, vec![Part::Reasoning(reasoning), Part::Text("b".into())]);
    for to in TARGETS {
        let converted = convert([&Message::user("a"), &message], to).unwrap();
        assert!(!converted.text.contains("SEALED"), "{to}");
        assert_eq!(converted.losses[0].kind, ConversionLossKind::SealedReasoning);
    }
}

#[test]
fn what_is_not_legal_is_repaired_and_said() {
    let text = r#"[{"role":"assistant","content":"Hello"},{"role":"tool","tool_call_id":"gone","content":"x"},
        {"role":"user","content":"Go"},{"role":"assistant","content":null,"tool_calls":[
          {"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},
        {"role":"user","content":"Well?"},{"role":"system","content":"late"}]"#;
    let (chat, lost) = one(text, Format::OpenaiChat);
    assert_eq!(lost, ["1 message", "3 invented"]);
    assert!(chat.contains(r#""tool_call_id":"c""#), "{chat}");
    let (anthropic, lost) = one(text, Format::Anthropic);
    assert!(anthropic.starts_with(r#"{"system":"late","messages":[{"role":"user""#), "{anthropic}");
    let moved = lost.iter().any(|loss| loss == "5 moved");
    assert!(moved && lost.iter().filter(|loss| loss.ends_with("invented")).count() == 2, "{lost:?}");
    let (gemini, _) = one(text, Format::Gemini);
    assert!(gemini.contains(r#""functionResponse":{"id":"c","name":"f""#), "{gemini}");
}

#[test]
fn the_same_ids_twice_and_the_older_form_get_numbers() {
    let text = r#"[{"role":"user","content":"a"},
        {"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}},
        {"role":"function","name":"f","content":"1"},
        {"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}},
        {"role":"function","name":"f","content":"2"}]"#;
    for to in TARGETS {
        let (text, lost) = one(text, to);
        assert!(text.find("call_1") < text.find("call_2"), "{text}");
        assert_eq!(text.matches("call_2").count(), 2, "{text}");
        assert_eq!(lost, [""; 0]);
    }
    let twice = |id: &str| Message::new(Role::Assistant, vec![Part::ToolCall(ToolCall::new(id, "f", "{}"))]);
    let messages =
        [Message::user("a"), twice("x"), Message::tool("x", "1"), twice("x"), Message::tool("x", "2")];
    let converted = convert(&messages, Format::Anthropic).unwrap();
    assert_eq!(lost(&converted), ["3 call-id"]);
    assert_eq!(converted.text.matches("call_2").count(), 2, "{}", converted.text);
    // Two calls that are open at once get their results in their order.
    let [user, first, one, second, two] = messages;
    let converted = convert(&[user, first, second, one, two], Format::OpenaiChat).unwrap();
    let place = |what: &str| converted.text.find(what).unwrap_or_else(|| panic!("{}", converted.text));
    assert!(place(r#""content":"1","tool_call_id":"x""#) < place(r#""content":"2","tool_call_id":"call_2""#));
    assert!(!converted.text.contains("aborted"), "{}", converted.text);
}

#[test]
fn what_only_one_provider_knows_is_listed() {
    let text = r#"{"input":[{"role":"user","content":"a"},
        {"type":"web_search_call","id":"w","status":"completed","action":{"type":"search","query":"q"}},
        {"type":"compaction","id":"c","encrypted_content":"SEALED"},
        {"type":"message","role":"assistant","id":"m","content":[{"type":"output_text","text":"b"}]}]}"#;
    let (out, lost) = one(text, Format::Anthropic);
    assert!(!out.contains("SEALED"), "{out}");
    assert!(lost.contains(&"1 hosted-tool web_search".to_owned()), "{lost:?}");
    assert!(lost.contains(&"2 compaction openai".to_owned()), "{lost:?}");
    let image = r#"[{"role":"user","content":[{"type":"text","text":"x"},
        {"type":"input_audio","input_audio":{"data":"QUJD","format":"wav"}}]}]"#;
    assert_eq!(one(image, Format::Anthropic).1, ["0 media audio/wav"]);
    let gemini = one(image, Format::Gemini);
    assert!(
        gemini.0.contains(r#""inlineData":{"mimeType":"audio/wav","data":"QUJD"}"#) && gemini.1.is_empty()
    );
}

#[test]
fn what_a_provider_ran_goes_back_as_it_was() {
    let answer = r#"{"role":"assistant","content":[
        {"type":"server_tool_use","id":"s","name":"web_search","input":{"query":"q"}},
        {"type":"web_search_tool_result","tool_use_id":"s","content":[{"type":"web_search_result","encrypted_content":"E"}]},
        {"type":"text","text":"b","citations":[{"type":"web_search_result_location","encrypted_index":"I"}]},
        {"type":"tool_use","id":"c","name":"f","input":{}}]}"#;
    let asked = r#"{"messages":[{"role":"user","content":"a"},"#;
    let result = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"ok"}]}"#;
    let (out, lost) = one(&format!("{asked}{answer},{result}]}}"), Format::Anthropic);
    assert_eq!((out, lost), (format!("{asked}{answer},{result}]}}"), Vec::new()));
    // A response has fields that a request has not: they are left out. With a client's result before them, the
    // provider's own blocks are only pieces.
    let response = answer.replacen(
        r#"{"role""#,
        r#"{"id":"msg_1","type":"message","model":"m","usage":{"input_tokens":1,"output_tokens":1},"role""#,
        1,
    );
    let (out, _) = one(&format!("{asked}{response},{result}]}}"), Format::Anthropic);
    assert_eq!(out, format!("{asked}{answer},{result}]}}"));
    let pieces = r#"{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}},
        {"type":"tool_result","tool_use_id":"c","content":"ok"},{"type":"server_tool_use","id":"s","name":"web_search","input":{}}]}"#;
    let (out, lost) = one(&format!("{asked}{pieces}]}}"), Format::Anthropic);
    assert!(
        !out.contains("server_tool_use") && lost.iter().any(|lost| lost.contains("hosted-tool")),
        "{out} {lost:?}"
    );
    // A repeated id is replaced; the rest stays.
    let again = format!("{asked}{answer},{result},{answer},{result}]}}");
    let (out, lost) = one(&again, Format::Anthropic);
    assert_eq!((out.matches("encrypted_index").count(), lost), (2, vec!["3 call-id".to_owned()]), "{out}");
    assert_eq!(out.matches(r#""id":"c""#).count(), 1, "{out}");

    let item =
        r#"{"type":"web_search_call","id":"w","status":"completed","action":{"type":"search","query":"q"}}"#;
    let (out, lost) =
        one(&format!(r#"{{"input":[{{"role":"user","content":"a"}},{item}]}}"#), Format::OpenaiResponses);
    assert!(out.ends_with(&format!(",{item}]}}")) && lost.is_empty(), "{out} {lost:?}");
}

#[test]
fn fields_that_a_conversion_does_not_carry_are_listed() {
    let cached =
        r#"[{"role":"user","content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}]}]"#;
    for to in [Format::Anthropic, Format::OpenaiChat] {
        assert_eq!(one(cached, to).1, ["0 field cache_control"], "{to}");
    }
    // Both spellings of Gemini are one field. A field of LangChain is the same in each form of its messages.
    let call = r#"{"contents":[{"role":"user","parts":[{"text":"a"}]},
        {"role":"model","parts":[{"function_call":{"name":"f","args":{}}}]},
        {"role":"user","parts":[{"function_response":{"name":"f","response":{"output":"b"}}}]}]}"#;
    assert_eq!(one(call, Format::Gemini).1, [""; 0]);
    let flat = r#"[{"type":"human","content":"a"},{"type":"ai","content":"","tool_calls":[{"name":"f","args":{},"id":"c"}]},
        {"type":"tool","content":"b","tool_call_id":"c"}]"#;
    assert_eq!(one(flat, Format::OpenaiChat).1, [""; 0]);
    let dumped = r#"[{"lc":1,"type":"constructor","id":["langchain","schema","messages","HumanMessage"],
        "kwargs":{"content":"a","type":"human"}}]"#;
    assert_eq!(one(dumped, Format::OpenaiChat).1, [""; 0]);
    let named = r#"[{"role":"user","content":"x","name":"bob"}]"#;
    for (to, lost) in [(Format::Gemini, vec!["0 name".to_owned()]), (Format::LangChain, vec![])] {
        assert_eq!(one(named, to).1, lost, "{to}");
    }
}

#[test]
fn a_developer_stays_one_in_langchain() {
    let text = r#"[{"role":"developer","content":"Be brief."},{"role":"user","content":"a"}]"#;
    let (out, _) = one(text, Format::LangChain);
    let (out, lost) = one(&out, Format::OpenaiChat);
    assert!(
        out.contains(r#"{"role":"developer","content":"Be brief."}"#) && lost.is_empty(),
        "{out} {lost:?}"
    );
}

#[test]
fn the_detail_of_a_picture_is_kept_or_listed() {
    let lost = ["0 field detail".to_owned()];
    let chat = |detail: &str| {
        format!(
            r#"[{{"role":"user","content":[{{"type":"image_url","image_url":{{"url":"https://a.example/b.png"{detail}}}}}]}}]"#
        )
    };
    let items = |detail: &str| {
        format!(
            r#"[{{"role":"user","content":[{{"type":"input_image","image_url":"https://a.example/b.png","detail":"{detail}"}}]}}]"#
        )
    };
    let low = chat(r#","detail":"low""#);
    for to in TARGETS {
        let is_said = matches!(to, Format::OpenaiChat | Format::OpenaiResponses);
        for given in [&low, &items("low")] {
            let (text, found) = one(given, to);
            assert_eq!(
                (text.contains(r#""detail":"low""#), found == lost),
                (is_said, !is_said),
                "{to} {found:?}"
            );
        }
        for given in [chat(""), items("auto")] {
            assert_eq!(one(&given, to).1, [""; 0], "{to}");
        }
    }
    assert_eq!(one(&items("high"), Format::OpenaiChat).1, ["0 field detail"]);
}

/// The output of a client's search for tools is a list of tools, without a text.
#[test]
fn the_output_of_a_search_for_tools_stays_or_is_listed() {
    let text = r#"{"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"a"}]},{"type":"tool_search_call","call_id":"c1","execution":"client","arguments":{"query":"w"}},{"type":"tool_search_output","call_id":"c1","execution":"client","tools":[{"type":"function","name":"w"}]}]}"#;
    assert_eq!(one(text, Format::OpenaiResponses), (text.to_owned(), vec![]));
    assert!(one(text, Format::Anthropic).1.contains(&"2 unknown-part tools".to_owned()));
    // An id that the target refuses is replaced, and the item becomes the output of a function.
    let long = text.replace("c1", &"c".repeat(70));
    let (written, lost) = one(&long, Format::OpenaiResponses);
    assert!(lost.contains(&"2 unknown-part tools".to_owned()), "{lost:?}");
    assert!(
        written.contains(r#"{"type":"function_call_output","call_id":"call_1","output":""}"#),
        "{written}"
    );
}

#[test]
fn a_part_that_could_not_be_an_item_stays_a_part() {
    for part in [r#"{"ext":"Hi"}"#, r#"{"type":"sage","role":"wise","text":"Go"}"#] {
        let text = format!(
            r#"{{"object":"response","output":[{{"type":"message","role":"assistant","id":"m","content":[{part}]}}]}}"#
        );
        let transcript = reading(&text);
        for to in TARGETS {
            converted(&transcript, to);
        }
    }
}

/// A custom tool takes a text that need not be JSON.
#[test]
fn calls_of_custom_tools_keep_their_form_or_are_wrapped() {
    let items = [
        r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"a"}]}"#,
        r#"{"type":"custom_tool_call","id":"i","call_id":"c1","name":"apply_patch","input":"*** Begin \"Patch\"","status":"completed"}"#,
        r#"{"type":"custom_tool_call_output","id":"o","call_id":"c1","output":"Done."}"#,
        r#"{"type":"local_shell_call","call_id":"c2","action":{"type":"exec","command":["ls"]},"status":"completed"}"#,
        r#"{"type":"local_shell_call_output","call_id":"c2","output":"a.txt"}"#,
        r#"{"type":"custom_tool_call","call_id":"c3","name":"apply_patch","input":"x"}"#,
    ];
    let given = format!(r#"{{"input":[{}]}}"#, items.join(","));
    for to in TARGETS {
        let (text, lost) = one(&given, to);
        let wraps = lost.iter().filter(|loss| loss.contains("arguments apply_patch")).count();
        if to == Format::OpenaiResponses {
            assert_eq!((wraps, lost), (0, vec!["5 invented".to_owned()]));
            let out = r#"{"type":"custom_tool_call_output","call_id":"c3","output":"[aborted: this call has no result]"}"#;
            assert_eq!(text, format!(r#"{{"input":[{},{out}]}}"#, items.join(",")));
        } else {
            assert_eq!(wraps, 2, "{to}: {lost:?}");
            assert!(text.contains("*** Begin "), "{to}: {text}");
        }
    }
    let call = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"custom","custom":{"name":"p","input":"*** x"}}]}"#;
    let chat = format!(
        r#"{{"messages":[{{"role":"user","content":"a"}},{call},{{"role":"tool","content":"ok","tool_call_id":"c"}}]}}"#
    );
    assert_eq!(one(&chat, Format::OpenaiChat), (chat.clone(), vec![]));
    let (text, lost) = one(&chat, Format::OpenaiResponses);
    assert!(text.contains(r#""arguments":"{\"input\":\"*** x\"}""#), "{text}");
    assert_eq!(lost, ["1 field tool_calls/custom", "1 arguments p"]);
}

/// A new result gets the form that fits its call. The client's own results have no form, and the service refuses the
/// output of a function for the call of a custom tool.
#[test]
fn a_new_result_has_the_form_that_answers_its_call() {
    let items = [
        r#"{"role":"user","content":"a"}"#,
        r#"{"type":"custom_tool_call","call_id":"c1","name":"apply_patch","input":"*** x"}"#,
        r#"{"type":"function_call","call_id":"c2","name":"f","arguments":"{}"}"#,
        r#"{"type":"local_shell_call","call_id":"c3","action":{"type":"exec","command":["ls"]}}"#,
        r#"{"type":"custom_tool_call","call_id":"c4","name":"apply_patch","input":"*** y"}"#,
        r#"{"type":"function_call","call_id":"c4","name":"f","arguments":"{}"}"#,
    ];
    let transcript = reading(&format!("[{}]", items.join(",")));
    let results: Vec<_> = ["c1", "c2", "c3", "c4"].map(|id| Message::tool(id, "done")).into();
    let asked = transcript.conversations()[0].messages().take(4);
    let text = convert(asked.chain(&results[..3]), Format::OpenaiResponses).unwrap().text;
    for item in [
        r#"{"type":"custom_tool_call_output","call_id":"c1","output":"done"}"#,
        r#"{"type":"function_call_output","call_id":"c2","output":"done"}"#,
        r#"{"type":"function_call_output","call_id":"c3","output":"done"}"#,
    ] {
        assert!(text.contains(item), "{text}");
    }
    // The same for results that are added to a text, in which an id may occur twice.
    let mut transcript = reading(&format!("[{}]", items.join(",")));
    transcript.conversations_mut()[0].entries.extend(results.iter().cloned().map(TranscriptEntry::new));
    let mut out = Vec::new();
    write_back(&transcript, &mut out).unwrap();
    let output =
        |kind: &str, id: &str| format!(r#"{{"type":"{kind}_output","call_id":"{id}","output":"done"}}"#);
    let kinds = ["custom_tool_call", "function_call", "function_call", "function_call"];
    let outputs = kinds.iter().zip(["c1", "c2", "c3", "c4"]).map(|(kind, id)| output(kind, id));
    let all: Vec<_> = items.map(String::from).into_iter().chain(outputs).collect();
    assert_eq!(String::from_utf8(out).unwrap(), format!("[{}]", all.join(",")));
}

#[test]
fn other_targets_are_refused() {
    let error = convert(&[Message::user("a")], Format::Codex).unwrap_err();
    assert!(error.to_string().contains("codex is no format to convert to"), "{error}");
}

#[test]
fn a_request_does_not_outgrow_what_was_reserved() {
    let image = || {
        let data = MediaSource::Base64("iVBORw0KGgo=".repeat(20).into());
        Part::Media(Media::new(MediaKind::Image, "image/png", data))
    };
    let red = "\u{1b}[31mred\u{1b}[0m\n".repeat(30);
    let mut messages = vec![Message::system("Be brief.")];
    for at in 0..20 {
        let id = format!("call_{at:032}");
        let call = ToolCall::new(id.clone(), "mcp__playwright__browser_screenshot", r#"{"path":"a.png"}"#);
        let shown = ToolResult::new(id, vec![image(), Part::Text(red.as_str().into())]);
        messages.extend([
            Message::new(Role::User, vec![image()]),
            Message::new(Role::Assistant, vec![Part::ToolCall(call)]),
            Message::new(Role::Tool, vec![Part::ToolResult(shown)]),
            Message::assistant("\"It\" is red.\n".repeat(30)),
        ]);
    }
    for to in [Format::OpenaiChat, Format::OpenaiResponses, Format::Anthropic, Format::Gemini] {
        let text = convert(&messages, to).unwrap().text;
        // A buffer that grew would have twice the capacity.
        assert!(text.capacity() < text.len() / 2 * 3, "{to}: {} of {}", text.len(), text.capacity());
    }
}
