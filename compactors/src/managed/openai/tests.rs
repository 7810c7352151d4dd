//! The requests and responses of OpenAI's compaction, without HTTP.

use std::format;
use std::string::{String, ToString as _};
use std::vec::Vec;

use epitome_core::Tokens;
use epitome_core::message::{MediaKind, Role};
use epitome_std::message::{CompactionPart, Media, MediaSource, Message, Part, ToolCall};
use epitome_std::session::Tool;
use epitome_std::wire::ConversionLossKind;
use serde_json::{Value, json};

use super::*;
use crate::managed::{Artefact, ServiceErrorKind, ServiceRequest};

/// A question, a call with its result, and the answer of the model.
fn conversation() -> Vec<Message> {
    Vec::from([
        Message::user("First]\"}"),
        Message::new(Role::Assistant, Vec::from([Part::ToolCall(ToolCall::new("c1", "read", "{}"))])),
        Message::tool("c1", "lines"),
        Message::user("Second"),
        Message::assistant("Done."),
    ])
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// A response with these user texts, followed by these items.
fn answer(users: &[&str], items: &[Value]) -> String {
    let user = |text: &&str| json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]});
    let output: Vec<Value> = users.iter().map(user).chain(items.iter().cloned()).collect();
    json!({
        "id": "resp_1", "object": "response.compaction", "created_at": 1, "output": output,
        "usage": {
            "input_tokens": 100, "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 7},
            "output_tokens": 20, "output_tokens_details": {"reasoning_tokens": 5}, "total_tokens": 120,
        },
    })
    .to_string()
}

fn item(sealed: &str) -> Value {
    json!({"type": "compaction", "id": "cmp_1", "encrypted_content": sealed, "created_by": "m"})
}

/// Texts of these messages, without images.
fn texts(said: &[users::Said]) -> Vec<String> {
    let item = |said: &users::Said| match said.clone().into_part() {
        Part::Unknown(item) => json(&item.raw),
        other => panic!("{other:?}"),
    };
    let text = |item: Value| item.pointer("/content/0/text").and_then(Value::as_str).map(String::from);
    said.iter().map(item).filter_map(text).collect()
}

#[test]
fn a_request_has_every_field_that_is_documented() {
    let messages = conversation();
    let system = [Message::system("Be brief."), Message::system("And kind.")];
    let told: Vec<_> = messages.iter().collect();
    let request = ServiceRequest::new(&told).with_instructions(&system);
    let options = CompactOptions {
        prompt_cache_key: Some("k".into()),
        prompt_cache_retention: Some(CacheRetention::Day),
        prompt_cache_mode: Some(CacheMode::Explicit),
        prompt_cache_ttl: Some("30m".into()),
        service_tier: Some("flex".into()),
        image_compression: Some(ImageCompression::Disabled),
    };
    let body = json(&compact_body(&ResponsesVendor::openai(), MODEL, &request, &options).unwrap().text);
    let kinds = body["input"].as_array().unwrap().iter().map(|item| item["type"].as_str().unwrap());
    let kinds: Vec<_> = kinds.collect();
    assert_eq!(kinds, ["message", "function_call", "function_call_output", "message", "message"]);
    let mut rest = body.clone();
    rest.as_object_mut().unwrap().remove("input");
    let expected = json!({
        "model": "gpt-5.1-codex-max", "instructions": "Be brief.\n\nAnd kind.", "prompt_cache_key": "k",
        "prompt_cache_retention": "24h", "prompt_cache_options": {"mode": "explicit", "ttl": "30m"},
        "service_tier": "flex", "image": {"context_compression": "disabled"},
    });
    assert_eq!(rest, expected);
    let body = json(&compact_previous_body(MODEL, "resp_9", None, &CompactOptions::default()));
    assert_eq!(body, json!({"model": "gpt-5.1-codex-max", "previous_response_id": "resp_9"}));
}

#[test]
fn xai_takes_instructions_among_the_messages() {
    let messages = conversation();
    let system = [Message::system("Be brief.")];
    let told: Vec<_> = messages.iter().collect();
    let request = ServiceRequest::new(&told).with_instructions(&system);
    let body = compact_body(&ResponsesVendor::xai(), "grok", &request, &CompactOptions::default()).unwrap();
    let body = json(&body.text);
    assert_eq!(body["input"][0]["role"], "system");
    assert!(body.get("instructions").is_none());
}

#[test]
fn a_trigger_is_the_last_item() {
    let messages = conversation();
    let tools = [Tool::new("read", "Reads.", json!({"type": "object"}))];
    let system = [Message::system("Brackets ] and } in instructions.")];
    let told: Vec<_> = messages.iter().collect();
    let request = ServiceRequest::new(&told).with_tools(&tools).with_instructions(&system);
    let options =
        CompactOptions { image_compression: Some(ImageCompression::Auto), ..CompactOptions::default() };
    let body = json(&trigger_body(&ResponsesVendor::openai(), "m", &request, &options).unwrap().text);
    let items = body["input"].as_array().unwrap();
    assert_eq!(items.last().unwrap(), &json!({"type": "compaction_trigger"}));
    assert_eq!(items.len(), messages.len() + 1);
    assert_eq!(body["tools"][0]["name"], "read");
    assert_eq!((&body["store"], body.get("image")), (&Value::Bool(false), None));
    let empty = ServiceRequest::new(&[]);
    let empty = json(&trigger_body(&ResponsesVendor::openai(), "m", &empty, &options).unwrap().text);
    assert_eq!(empty["input"], json!([{"type": "compaction_trigger"}]));
}

#[test]
fn what_comes_back_is_the_item_behind_what_the_user_said_in_what_it_replaces() {
    let messages = conversation();
    let told: Vec<_> = messages.iter().collect();
    let request = ServiceRequest::new(&told).replacing_from(1);
    // Every character that has a form in JSON.
    let sealed: String = (1..=0x7f_u8).map(char::from).chain("é日🦀\u{2028}".chars()).collect();
    let answer = answer(&["First]\"}", "Second"], &[item(&sealed)]);
    let artefact = compacted(&ResponsesVendor::openai(), "m", &request, &answer).unwrap();
    assert_eq!(artefact.part.opaque.as_deref(), Some(sealed.as_str()));
    assert_eq!((&*artefact.part.provider, &*artefact.part.model), ("openai", "m"));
    let usage = artefact.usage.unwrap();
    let told =
        (usage.input_total, usage.cache_read, usage.cache_creation, usage.output_total, usage.reasoning);
    assert_eq!(told, (Some(100), Some(60), Some(7), Some(20), Some(5)));
    assert_eq!(artefact.part.tokens, Some(Tokens(20)), "what it has written");
    let [Part::Unknown(said)] = artefact.before.as_slice() else { panic!("{artefact:?}") };
    assert!(said.raw.contains("Second"));
    // Written into a request again, the item is unchanged.
    let left = artefact.into_message();
    let again = json(&input(&ResponsesVendor::openai(), [&left]).unwrap().text);
    assert_eq!(again["input"][0]["content"][0]["text"], "Second");
    assert_eq!(again["input"][1], json!({"type": "compaction", "encrypted_content": sealed}));
    // A second compaction still knows the user's text.
    assert_eq!(texts(&users::said(&[left])), ["Second"]);
}

#[test]
fn an_answer_that_is_not_as_documented_is_malformed_and_tells_what_it_cost() {
    let messages = conversation();
    let told: Vec<_> = messages.iter().collect();
    let request = ServiceRequest::new(&told);
    let vendor = ResponsesVendor::openai();
    let reasoning = json!({"type": "reasoning", "id": "r", "summary": []});
    let assistant =
        json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]});
    let user = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]});
    let wrong: [&[Value]; 7] = [
        &[],
        &[item("a"), item("b")],
        &[item("a"), reasoning.clone()],
        &[item("a"), user],
        &[assistant, item("a")],
        &[item("")],
        &[json!({"type": "compaction"})],
    ];
    for items in wrong {
        let error = compacted(&vendor, "m", &request, &answer(&["First"], items)).unwrap_err();
        assert_eq!(error.kind(), &ServiceErrorKind::Malformed, "{items:?}");
        assert_eq!(error.usage().unwrap().output_total, Some(20), "{items:?}");
        assert!(!error.to_string().contains("First"));
    }
    for text in
        ["", "{", "[]", "{\"object\":\"response.compaction\"}", "{\"object\":\"list\",\"output\":[]}", "null"]
    {
        let error = compacted(&vendor, "m", &request, text).unwrap_err();
        assert_eq!(error.kind(), &ServiceErrorKind::Malformed, "{text}");
    }
    let twice = answer(&["First"], &[item("a")])
        .replace("\"object\":", "\"status\":\"a\",\"status\":\"b\",\"object\":");
    let error = compacted(&vendor, "m", &request, &twice).unwrap_err();
    assert_eq!(error.usage().unwrap().output_total, Some(20), "what it cost is read apart");
    let of_response = answer(&[], &[reasoning, item("a")]).replace("response.compaction", "response");
    assert!(triggered(&vendor, "m", &request, &of_response).is_ok());
    let cut = of_response.replace("\"created_at\"", "\"status\":\"incomplete\",\"created_at\"");
    assert_eq!(triggered(&vendor, "m", &request, &cut).unwrap_err().kind(), &ServiceErrorKind::Malformed);
    let two = of_response.replace("\"output\":[", &format!("\"output\":[{},", item("b")));
    assert_eq!(triggered(&vendor, "m", &request, &two).unwrap_err().kind(), &ServiceErrorKind::Malformed);
}

#[test]
fn in_band_the_newest_of_what_the_user_said_goes_before_the_item() {
    let long = |at: usize| Message::user(format!("{at}: {}", "many words ".repeat(15_000)));
    let messages: Vec<Message> = (0..6).map(long).collect();
    let told: Vec<_> = messages.iter().collect();
    let request = ServiceRequest::new(&told).replacing_from(1);
    let answer = answer(&[], &[item("s")]).replace("response.compaction", "response");
    let artefact = triggered(&ResponsesVendor::openai(), "m", &request, &answer).unwrap();
    let before = users::said(&[artefact.into_message()]);
    let said = texts(&before);
    assert!((1..5).contains(&said.len()), "{}", said.len());
    assert!(said.last().unwrap().starts_with("5: "));
    // The first message has lost its middle, because it fits only in part; the other messages are whole.
    let (first, rest) = said.split_first().unwrap();
    assert!(first.contains(" tokens truncated…") && first.ends_with("many words "), "{}", first.len());
    assert!(rest.iter().all(|text| !text.contains("truncated")));
    let tokens = before.iter().map(users::Said::tokens).sum::<u64>();
    assert!((63_900..=64_000).contains(&tokens), "{tokens} tokens");
}

/// All texts of an item.
fn all_of(said: &users::Said) -> String {
    let Part::Unknown(item) = said.clone().into_part() else { panic!("no item") };
    let item = json(&item.raw);
    let content = item["content"].as_array().unwrap();
    content.iter().filter_map(|part| part["text"].as_str()).collect()
}

/// A cut removes the middle of a text, and keeps the images. The long message has characters of several bytes, several
/// texts and images.
#[test]
fn the_middle_of_a_text_goes_and_its_images_stay() {
    let image =
        Part::Media(Media::new(MediaKind::Image, "image/png", MediaSource::Base64("iVBO".repeat(40).into())));
    let text = |text: String| Part::Text(text.into());
    let huge = Message::new(
        Role::User,
        Vec::from([
            text("First.".into()),
            image.clone(),
            text("Ärger 😀 ".repeat(60_000) + "END"),
            text("Last.".into()),
        ]),
    );
    let newer = Message::user("newer words ".repeat(4_000));
    let left = users::newest(users::said(&[Message::user("Older."), huge, newer.clone()]));
    let tokens = left.iter().map(users::Said::tokens).sum::<u64>();
    let items: Vec<String> = left.iter().map(all_of).collect();
    assert!((63_900..=64_000).contains(&tokens), "{tokens} tokens");
    let [cut, whole] = &*items else { panic!("{} messages", items.len()) };
    assert_eq!(Message::user(whole.as_str()), newer);
    assert!(
        cut.starts_with("First.Ärger") && cut.contains(" tokens truncated…") && cut.ends_with("END"),
        "{}",
        cut.len()
    );
    let input = input(
        &ResponsesVendor::openai(),
        [&Message::new(Role::Assistant, left.into_iter().map(users::Said::into_part).collect())],
    );
    assert_eq!(input.unwrap().text.matches("input_image").count(), 1, "images stay");
    // Not even an image fits: older messages are not considered.
    let full = users::newest(users::said(&[
        Message::new(Role::User, Vec::from([image])),
        Message::user("words ".repeat(200_000)),
    ]));
    assert_eq!(full.len(), 1);
}

#[test]
fn images_of_the_user_are_sent_on_and_count_as_images() {
    let image =
        |data: &str| Part::Media(Media::new(MediaKind::Image, "image/png", MediaSource::Base64(data.into())));
    let large = "iVBO".repeat(100_000);
    let messages = [
        Message::user("Hi"),
        Message::new(Role::User, Vec::from([Part::Text("Look.".into()), image(&large)])),
        Message::assistant("A cat."),
        Message::new(Role::User, Vec::from([image(&"aaaa".repeat(300))])),
        Message::assistant("A dog."),
    ];
    let told: Vec<_> = messages.iter().collect();
    let request = ServiceRequest::new(&told).replacing_from(1);
    let vendor = ResponsesVendor::openai();
    let body = json(&compact_body(&vendor, "m", &request, &CompactOptions::default()).unwrap().text);
    let users: Vec<Value> =
        body["input"].as_array().unwrap().iter().filter(|item| item["role"] == "user").cloned().collect();
    let before = |artefact: Artefact| -> Vec<Value> {
        let text = input(&vendor, [&artefact.into_message()]).unwrap().text;
        let mut items = json(&text)["input"].as_array().unwrap().clone();
        assert_eq!(items.pop().unwrap()["type"], "compaction");
        items
    };
    // In a request of its own, the service returns the messages, with further fields.
    let mut sent_back = users.clone();
    for (at, item) in sent_back.iter_mut().enumerate() {
        (item["id"], item["status"]) = (format!("msg_{at}").into(), "completed".into());
    }
    sent_back.push(item("s"));
    let whole = json!({"object": "response.compaction", "output": sent_back});
    let own = compacted(&vendor, "m", &request, &whole.to_string()).unwrap();
    let own_items = before(own.clone());
    assert_eq!(own_items, users[1..], "the first stays where it is, and the ids of a response are not sent");
    // In band, the client adds the messages.
    let band = json!({"object": "response", "output": [item("s")]});
    let band = triggered(&vendor, "m", &request, &band.to_string()).unwrap();
    assert_eq!(before(band.clone()), users[1..]);
    for artefact in [own, band] {
        let tokens =
            epitome_core::count_message(&artefact.into_message(), &epitome_core::ClassEstimator::new());
        assert!((1_000..6_000).contains(&tokens.0), "{tokens:?}");
    }
}

#[test]
fn what_the_format_cannot_say_is_told() {
    let sound = Media::new(MediaKind::Audio, "audio/wav", MediaSource::Base64("UklG".into()));
    let messages = [Message::new(Role::User, Vec::from([Part::Text("Hear.".into()), Part::Media(sound)]))];
    let told: Vec<_> = messages.iter().collect();
    let request = ServiceRequest::new(&told);
    let body = compact_body(&ResponsesVendor::openai(), "m", &request, &CompactOptions::default()).unwrap();
    let kinds: Vec<_> = body.losses.iter().map(|loss| (loss.message, loss.kind)).collect();
    assert_eq!(kinds, [(0, ConversionLossKind::Media)]);
    assert!(body.text.contains("Hear.") && !body.text.contains("UklG"));
}

#[test]
fn refusals_are_told_apart_by_status_and_code() {
    use ServiceErrorKind as Kind;
    let code =
        |code: &str| json!({"error": {"code": code, "message": "secret words", "type": "t"}}).to_string();
    let long =
        "This model's maximum context length is 100 tokens. However, your messages resulted in 200 tokens";
    let cases = [
        (401, code("invalid_api_key"), Kind::Authentication),
        (403, code(""), Kind::Authentication),
        (404, code("not_found"), Kind::Unsupported),
        (404, code("model_not_found"), Kind::Invalid("model_not_found".to_string())),
        (405, String::new(), Kind::Unsupported),
        (
            400,
            json!({"error": {"code": "context_length_exceeded", "message": long}}).to_string(),
            Kind::ContextTooLong,
        ),
        (400, code("invalid_value"), Kind::Invalid("invalid_value".to_string())),
        (400, code("what the user said, repeated"), Kind::Invalid(String::new())),
        (429, code("insufficient_quota"), Kind::Invalid("insufficient_quota".to_string())),
        (429, code("rate_limit_exceeded"), Kind::RateLimited { retry_after: None }),
        (500, "<html>".to_string(), Kind::Unavailable),
        (502, String::new(), Kind::Unavailable),
        (503, code("server_is_overloaded"), Kind::Overloaded),
        (
            400,
            json!({"error": {"type": "t", "details": {"error_code": "compaction_unavailable"}}}).to_string(),
            Kind::Unavailable,
        ),
    ];
    for (status, body, kind) in cases {
        let error = refusal(&ResponsesVendor::openai(), status, None, &body);
        assert_eq!(error.kind(), &kind, "{status} {body}");
        assert!(!format!("{error} {error:?}").contains("words"));
    }
    let wait = |after, millis, date| retry_after(after, millis, date).map(|wait| wait.as_millis());
    assert_eq!(wait(Some("2"), None, None), Some(2_000));
    assert_eq!(wait(Some("2"), Some("150"), None), Some(150));
    assert_eq!(wait(Some("-1"), None, None), None);
    let (then, now) = ("Wed, 21 Oct 2026 07:28:00 GMT", "Wed, 21 Oct 2026 07:27:15 GMT");
    assert_eq!(wait(Some(then), None, Some(now)), Some(45_000));
    assert_eq!(wait(Some(now), None, Some(then)), Some(0), "it has passed");
    assert_eq!(wait(Some(then), None, None), None, "nobody knows how late it is there");
    assert_eq!(wait(Some("soon"), None, Some(now)), None);
}

#[test]
fn what_one_endpoint_left_is_not_sent_to_another() {
    let part = |provider: &str| {
        let left = CompactionPart::new(provider, "They spoke.", Some("sealed".into()));
        Message::new(Role::Assistant, Vec::from([Part::Compaction(left)]))
    };
    let vendors = ["openai", "azure-openai", "xai", "vllm"];
    for from in vendors {
        for to in vendors.map(ResponsesVendor::other) {
            let text = input(&to, [&Message::user("Hi"), &part(from)]).unwrap().text;
            assert_eq!(text.contains("sealed"), from == to.provider(), "{from} to {}", to.provider());
            assert_eq!(text.contains("They spoke."), from != to.provider(), "{from} to {}", to.provider());
        }
    }
    let read = ResponsesVendor::xai().adopt(part("openai"));
    assert!(matches!(read.parts(), [Part::Compaction(left)] if left.provider == "xai"));
}

#[test]
fn only_what_is_documented_is_an_answer() {
    let message = Message::user("Hi");
    let messages = [&message];
    let request = ServiceRequest::new(&messages);
    let read = |answer: &str| compacted(&ResponsesVendor::openai(), "", &request, answer);
    let item = r#"{"type":"compaction","encrypted_content":"gAAAA"}"#;
    let head =
        r#""object":"response.compaction","usage":{"input_tokens":40,"output_tokens":9,"total_tokens":49}"#;
    for (answer, what) in [
        (format!(r#"{{{head},"output":[{item}]}}"#), None),
        (format!(r#"{{{head},"instructions":"Be brief.","output":[{item}]}}"#), None),
        (format!(r#"{{{head},"input":[{item}]}}"#), Some("under another key")),
        (format!(r#"{{{head},"output":null}}"#), Some("none")),
        (format!(r#"{{{head},"output":{{}}}}"#), Some("no array")),
        (format!(r#"{{{head},"output":[7,{item}]}}"#), Some("no item")),
        (format!(r#"{{{head},"output":[],"output":[{item}]}}"#), Some("twice")),
        (format!(r#"{{{head},"output":[{item},{item}]}}"#), Some("two compactions")),
    ] {
        match (read(&answer), what) {
            (Ok(left), None) => assert_eq!(left.part.opaque.as_deref(), Some("gAAAA")),
            (Ok(_), Some(what)) => panic!("{what}: an answer"),
            (Err(error), what) => {
                assert!(what.is_some(), "{answer}: {error}");
                assert_eq!(error.kind(), &ServiceErrorKind::Malformed, "{answer}");
                assert_eq!(error.usage().and_then(|usage| usage.output_total), Some(9), "{answer}");
            }
        }
    }
}

#[test]
fn where_an_item_is_wrong_is_told_of_the_whole_answer() {
    let said = r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi"}]},"#;
    let head = r#"{"object":"response.compaction","output":["#;
    let answer =
        format!(r#"{head}{}{{"type":"message","role":"robot","content":"Hi"}}]}}"#, said.repeat(200));
    let message = Message::user("Hi");
    let messages = [&message];
    let error =
        compacted(&ResponsesVendor::openai(), "", &ServiceRequest::new(&messages), &answer).unwrap_err();
    let source = core::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("/output/200"), "{source}");
}
