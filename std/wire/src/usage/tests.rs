//! One response of each vendor, with a warm cache, as one entry of the ledger.

use epitome_core::Usage;

use super::{compactions, reported};
use crate::WireErrorKind;

/// Input, output, total, read from the cache, written to it, reasoning.
type Entry = [Option<u64>; 6];

fn entry(response: &str) -> Entry {
    let Usage { input_total, output_total, total, cache_read, cache_creation, reasoning, .. } =
        reported(response).unwrap().unwrap();
    [input_total, output_total, total, cache_read, cache_creation, reasoning]
}

const CHAT: &str = r#"{"id":"chatcmpl-1","object":"chat.completion","model":"gpt-4.1","choices":[{"index":0,
  "message":{"role":"assistant","content":"Yes."},"finish_reason":"stop"}],"usage":{"prompt_tokens":2006,
  "completion_tokens":300,"total_tokens":2306,"prompt_tokens_details":{"cached_tokens":1920,"audio_tokens":0},
  "completion_tokens_details":{"reasoning_tokens":128,"audio_tokens":0}}}"#;
const DEEPSEEK: &str = r#"{"id":"1","object":"chat.completion","choices":[],"usage":{"prompt_tokens":1500,
  "completion_tokens":20,"total_tokens":1520,"prompt_cache_hit_tokens":1408,"prompt_cache_miss_tokens":92}}"#;
const RESPONSES: &str = r#"{"id":"resp_1","object":"response","output":[],"usage":{"input_tokens":3587,
  "input_tokens_details":{"cached_tokens":2560},"output_tokens":229,
  "output_tokens_details":{"reasoning_tokens":128},"total_tokens":3816}}"#;
const ANTHROPIC: &str = r#"{"id":"msg_1","type":"message","role":"assistant","content":[],"usage":{"input_tokens":10,
  "cache_creation_input_tokens":8889,"cache_read_input_tokens":17919,"output_tokens":3,
  "cache_creation":{"ephemeral_5m_input_tokens":8889,"ephemeral_1h_input_tokens":0},"service_tier":"standard"}}"#;
const BEDROCK: &str = r#"{"output":{"message":{"role":"assistant","content":[{"text":"Yes."}]}},"stopReason":"end_turn",
  "usage":{"inputTokens":12,"outputTokens":30,"totalTokens":2090,"cacheReadInputTokens":2048,
  "cacheWriteInputTokens":0}}"#;
const GEMINI: &str = r#"{"candidates":[],"usageMetadata":{"promptTokenCount":12350,"candidatesTokenCount":51,
  "thoughtsTokenCount":51,"totalTokenCount":12452,"cachedContentTokenCount":11820}}"#;

#[test]
fn every_vendors_response_is_one_entry() {
    let some = Some;
    assert_eq!(entry(CHAT), [some(2_006), some(300), some(2_306), some(1_920), None, some(128)]);
    assert_eq!(entry(DEEPSEEK), [some(1_500), some(20), some(1_520), some(1_408), None, None]);
    assert_eq!(entry(RESPONSES), [some(3_587), some(229), some(3_816), some(2_560), None, some(128)]);
    assert_eq!(entry(ANTHROPIC), [some(26_818), some(3), some(26_821), some(17_919), some(8_889), None]);
    assert_eq!(entry(BEDROCK), [some(2_060), some(30), some(2_090), some(2_048), some(0), None]);
    assert_eq!(entry(GEMINI), [some(12_350), some(102), some(12_452), some(11_820), None, some(51)]);
    let event = format!(r#"{{"type":"response.completed","response":{RESPONSES}}}"#);
    assert_eq!(entry(&event), entry(RESPONSES));
}

#[test]
fn steps_of_the_provider_are_spent_but_no_size() {
    let steps = |more: &str| {
        let text = format!(
            r#"{{"usage":{{"input_tokens":300,"output_tokens":9,"server_tool_use":{{"web_search_requests":1}}{more}}}}}"#
        );
        reported(&text).unwrap().unwrap()
    };
    let sum = Usage::new(300, 9);
    assert_eq!(steps(""), sum.of_server_steps(None));
    let each = r#","iterations":[{"type":"message","input_tokens":100,"cache_read_input_tokens":20},
        {"type":"message","input_tokens":200}]"#;
    assert_eq!(steps(each), sum.of_server_steps(Some(120)));
    let none =
        r#"{"usage":{"input_tokens":300,"output_tokens":9,"server_tool_use":{"web_search_requests":0}}}"#;
    assert_eq!(reported(none).unwrap().unwrap(), sum);
}

#[test]
fn compactions_are_spent_beside_the_report_and_no_size() {
    let text = r#"{"usage":{"input_tokens":20,"cache_read_input_tokens":3,"output_tokens":9,"iterations":[
        {"type":"compaction","input_tokens":100,"cache_creation_input_tokens":7,"output_tokens":30},
        {"type":"message","input_tokens":20,"cache_read_input_tokens":3,"output_tokens":9},
        {"type":"compaction","input_tokens":50,"output_tokens":5}]}}"#;
    let spent: Vec<_> =
        compactions(text).unwrap().iter().map(|usage| (usage.input_total, usage.output_total)).collect();
    assert_eq!(spent, [(Some(107), Some(30)), (Some(50), Some(5))]);
    let context = reported(text).unwrap().unwrap();
    assert_eq!((context.input_total, context.output_total), (Some(23), Some(9)));
    assert_eq!(context, context.after_compaction(None), "nothing was read after the last one");
    let last = text.replace(
        r#",
        {"type":"compaction","input_tokens":50,"output_tokens":5}]"#,
        "]",
    );
    assert_eq!(reported(&last).unwrap().unwrap(), context.after_compaction(Some(23)));
    let earlier = last.replace(r#""iterations":["#, r#""iterations":[{"type":"message","input_tokens":90},"#);
    assert_eq!(
        reported(&earlier).unwrap().unwrap(),
        context.after_compaction(Some(23)),
        "what comes after it"
    );
    assert_eq!(compactions(ANTHROPIC).unwrap(), []);
    assert_eq!(compactions(r#"{"usage":null}"#).unwrap(), []);
}

#[test]
fn no_report_is_no_entry_and_another_object_an_error() {
    assert_eq!(reported(r#"{"choices":[],"usage":null}"#).unwrap(), None);
    let error = reported(r#"{"usage":{"requests":1}}"#).unwrap_err();
    assert_eq!((error.kind(), error.path()), (WireErrorKind::Shape, "/usage"));
    assert_eq!(
        error.to_string(),
        "byte 9, at /usage: expected a report of tokens, found an object with the key `requests`"
    );
    assert_eq!(reported("[]").unwrap_err().kind(), WireErrorKind::Shape);
}

#[test]
fn an_event_of_a_stream_reports_what_it_has() {
    let start = r#"{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],
        "usage":{"input_tokens":25,"cache_read_input_tokens":100,"output_tokens":1}}}"#;
    assert_eq!(entry(start), [Some(125), Some(1), Some(126), Some(100), None, None]);
    let delta = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":15}}"#;
    assert_eq!(entry(delta), [None, Some(15), None, None, None, None]);
    for nothing in [
        r#"{"candidates":[],"usageMetadata":{"trafficType":"ON_DEMAND"}}"#,
        r#"{"candidates":[],"usageMetadata":null}"#,
        r#"{"type":"message","message":"a text"}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"usage"}}"#,
    ] {
        assert_eq!(reported(nothing).unwrap(), None);
    }
}
