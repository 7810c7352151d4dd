//! The mapping functions, on small requests and responses.

use std::borrow::ToOwned as _;
use std::format;
use std::string::{String, ToString as _};
use std::vec::Vec;

use epitome_core::message::Role;
use epitome_core::{Profile, ToolName};
use epitome_std::message::{Message, Part, Reasoning};
use serde_json::{Value, json};

use super::*;
use crate::{ReasoningClearing, ToolResultClearing};

mod remedies;

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn says(text: &str) -> Value {
    json!({"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": text}]})
}

fn calls(id: &str) -> Value {
    json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "f", "input": {}}]})
}

fn result(id: &str) -> Value {
    json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "r"}]})
}

fn request(messages: &[Value]) -> String {
    json!({"model": "m", "max_tokens": 10, "system": "s", "messages": messages}).to_string()
}

fn block(text: &str) -> CompactionBlock {
    let content = format!(r#"[{{"type":"compaction","content":{},"signature":"sig"}}]"#, json!(text));
    let response = format!(r#"{{"stop_reason":"compaction","content":{content}}}"#);
    match SummaryAnswer::read(&response).unwrap() {
        SummaryAnswer::Written(block) => block,
        SummaryAnswer::Missing(why) => panic!("{why:?}"),
    }
}

fn thought(text: &str) -> Message {
    let mut reasoning = Reasoning::new("hm");
    reasoning.opaque = Some("sig".into());
    Message::new(Role::Assistant, [Part::Reasoning(reasoning), Part::Text(text.into())].into())
}

#[test]
fn thinking_comes_first_whatever_the_order_of_the_calls() {
    let edits = ContextEdits::new()
        .with_compaction(ThresholdCompaction::new().with_trigger(60_000).unwrap())
        .with_tool_uses(
            ClearToolUses::new()
                .with_trigger(EditTrigger::ToolUses(9))
                .with_clear_at_least(5_000)
                .with_exclude_tools(["web_search"])
                .with_inputs(ClearInputs::Of(["edit".to_owned()].into())),
        )
        .with_thinking(ClearThinking::keep_turns(2).unwrap());
    let expected = json!({"edits": [
        {"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 2}},
        {"type": "clear_tool_uses_20250919", "trigger": {"type": "tool_uses", "value": 9},
         "clear_at_least": {"type": "input_tokens", "value": 5000}, "exclude_tools": ["web_search"],
         "clear_tool_inputs": ["edit"]},
        {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 60000},
         "pause_after_compaction": false}]});
    assert_eq!(edits.to_value(), expected);
    assert_eq!(edits.betas(), [CONTEXT_EDITING_BETA, THRESHOLD_BETA]);
    let applied: Value = serde_json::from_str(&edits.apply(&request(&[user("a")])).unwrap()).unwrap();
    assert_eq!(applied["context_management"], expected);
    let error = edits.apply(r#"{"messages":[],"compaction":{"type":"summarize"}}"#).unwrap_err();
    assert_eq!(error, MappingError::NotTogether { field: "context_management" });
    assert!(ClearThinking::keep_turns(0).is_err());
    let low = ThresholdCompaction::new().with_trigger(49_999).unwrap_err();
    assert_eq!(low.to_string(), "trigger is 49999: it must be at least 50000");
}

#[test]
fn strategies_map_to_the_edits_that_clear_the_same() {
    let spared = [ToolName::new("web_search")];
    let clearing =
        ToolResultClearing::new().keep(4).clear_at_least(700).exclude_tools(&spared).clear_inputs(true);
    let edit = ClearToolUses::like(&clearing, ["read", "web_search"]).unwrap();
    let expected = ClearToolUses::new().with_keep(4).with_clear_at_least(700);
    let expected = expected.with_exclude_tools(["web_search"]).with_inputs(ClearInputs::All);
    assert_eq!(edit, expected);
    assert_eq!(ClearToolUses::like(&clearing, ["read"]), Err(MappingError::UnknownTool));
    let thinking = |turns| ClearThinking::from(&ReasoningClearing::new(Profile::Anthropic).keep_turns(turns));
    assert_eq!(thinking(3), ClearThinking::keep_turns(3).unwrap());
    assert_eq!(thinking(0), ClearThinking::keep_turns(1).unwrap());
}

#[test]
fn applied_edits_are_read_whatever_else_there_is() {
    let event = r#"{"type":"message_delta","delta":{},"context_management":{"applied_edits":[
        {"type":"clear_thinking_20251015","cleared_thinking_turns":3,"cleared_input_tokens":15000},
        {"type":"new_2027","x":1}]}}"#;
    let thinking = AppliedEdit::Thinking { turns: 3, input_tokens: 15_000 };
    assert_eq!(applied_edits(event).unwrap(), [thinking, AppliedEdit::Other]);
    assert_eq!(applied_edits(r#"{"context_management":null}"#).unwrap(), []);
    let error = applied_edits(r#"{"context_management":{"applied_edits":"secret"}}"#).unwrap_err();
    assert!(matches!(error, MappingError::Shape { line: 1, .. }) && !error.to_string().contains("secret"));
}

#[test]
fn a_cut_stands_where_no_call_is_open_and_the_role_changes() {
    let turns = [
        user("a"),
        calls("1"),
        result("1"),
        says("b"),
        user("c"),
        calls("2"),
        result("2"),
        says("d"),
        user("e"),
    ];
    let text = request(&turns);
    let cut = |keep| choose_cut(&text, keep).unwrap();
    assert_eq!((cut(0), cut(1), cut(2), cut(3), cut(4)), (Some(9), Some(8), Some(4), None, None));
    // The API merges two adjacent user messages: the cut moves back before both.
    let doubled = request(&[user("a"), says("b"), user("c"), user("d"), says("e")]);
    assert_eq!(choose_cut(&doubled, 1).unwrap(), Some(2));
    // A message without the result leaves the call open, and the cut stands before this call.
    let unanswered = request(&[user("a"), says("b"), user("c"), calls("1"), user("d"), says("e"), user("f")]);
    assert_eq!(choose_cut(&unanswered, 1).unwrap(), Some(3));
    // A summary alone is not summarized again.
    let again = request(&[
        json!({"role": "assistant", "content": [json!({"type": "compaction", "content": "s"})]}),
        user("a"),
    ]);
    assert_eq!(choose_cut(&again, 1).unwrap(), None);
    let summarize = |text: &str, cut| Summarize::new().request(text, cut).map(drop);
    assert_eq!(summarize(&text, 2), Err(MappingError::OpenCall { message: 1 }));
    assert_eq!(summarize(&doubled, 3), Err(MappingError::Joined { message: 3 }));
    assert_eq!(summarize(&text, 10), Err(MappingError::NoSuchMessage { message: 10, messages: 9 }));
    assert_eq!(summarize(&text, 0), Err(MappingError::NothingToSummarize));
    assert_eq!(summarize(&again, 1), Err(MappingError::NothingToSummarize));
    let system = json!({"role": "system", "content": "x"});
    let mid = request(&[user("a"), says("b"), system, user("c")]);
    assert_eq!(summarize(&mid, 2), Err(MappingError::Joined { message: 2 }));
    assert_eq!(choose_cut(&mid, 1).unwrap(), Some(3));
}

#[test]
fn a_request_with_a_key_twice_is_refused_and_not_shortened() {
    for keys in [["model", "model"], ["\\ud83d", "\\ud83e"]] {
        let [one, other] = keys;
        let request = format!(r#"{{"{one}":"a","{other}":"b","messages":[]}}"#);
        let error = choose_cut(&request, 1).unwrap_err();
        assert!(
            matches!(error, MappingError::Shape { expected: "each key of a request once", .. }),
            "{error}"
        );
    }
}

#[test]
fn a_request_for_a_summary_has_all_but_the_kept_messages() {
    let text = request(&[user("a"), says("b"), user("c")]);
    let ask = Summarize::new().with_instructions("Keep names.").unwrap().with_max_tokens(4_096);
    let asked: Value = serde_json::from_str(&ask.request(&text, 2).unwrap()).unwrap();
    let expected = json!({"model": "m", "max_tokens": 4096, "system": "s", "messages": [user("a"), says("b")],
        "compaction": {"type": "summarize", "instructions": "Keep names."}});
    assert_eq!(asked, expected);
    assert_eq!(Summarize::new().with_instructions(" \n"), Err(MappingError::BlankInstructions));
    let long = Summarize::new().with_instructions("x".repeat(16_385)).unwrap_err();
    assert_eq!(long, MappingError::LongInstructions { chars: 16_385, max: 16_384 });
}

#[test]
fn what_the_api_refuses_beside_a_summary_is_refused_first() {
    let beside = [
        ("context_management", json!({"edits": []}), "context_management"),
        ("stop_sequences", json!(["x"]), "stop_sequences"),
        ("output_format", json!({"type": "json_schema"}), "output_format"),
        ("tool_choice", json!({"type": "any"}), "tool_choice"),
        ("tool_choice", json!({"type": "tool", "name": "f"}), "tool_choice"),
        ("output_config", json!({"format": {"type": "json_schema"}}), "output_config.format"),
        (
            "output_config",
            json!({"task_budget": {"total": 5, "remaining": 1}}),
            "output_config.task_budget.remaining",
        ),
    ];
    for (key, value, field) in beside {
        let mut body: Value = serde_json::from_str(&request(&[user("a"), says("b")])).unwrap();
        body[key] = value;
        let error = Summarize::new().request(&body.to_string(), 2).unwrap_err();
        assert_eq!(error, MappingError::NotTogether { field });
        body[key] = json!(null);
        assert!(Summarize::new().request(&body.to_string(), 2).is_ok(), "{key} is null");
    }
    let mut body: Value = serde_json::from_str(&request(&[user("a"), says("b")])).unwrap();
    body["tool_choice"] = json!({"type": "auto"});
    body["output_config"] = json!({"effort": "low"});
    assert!(Summarize::new().request(&body.to_string(), 2).is_ok());
}

#[test]
fn a_block_is_sent_back_byte_for_byte_and_so_is_what_follows_it() {
    let raw = r#"{ "type": "compaction",  "content": "so \u0066ar", "signature": "a/b==", "tool_changes": [ {"x": 1.50} ], "cache_control": {"type": "ephemeral"} }"#;
    let response = format!(r#"{{"content": [{raw}], "stop_reason": "compaction"}}"#);
    let SummaryAnswer::Written(block) = SummaryAnswer::read(&response).unwrap() else { panic!("no block") };
    assert_eq!((block.as_str(), &*block.text().unwrap(), block.is_signed()), (raw, "so far", true));
    assert!(!format!("{block:?}").contains("far"));
    let kept = r#"{"role": "user",  "content":"\u0063 1.0e0"}"#;
    let body = format!(r#"{{"messages":[{{"role":"user","content":"a"}}, {kept}]}}"#);
    let expected = format!(r#"{{"messages":[{{"role":"assistant","content":[{raw}]}},{kept}]}}"#);
    assert_eq!(replay(&body, 1, &block).unwrap(), expected);
    // A further request for a summary covers the block together with the messages after it; the block comes first.
    let again = Summarize::new().request(&expected, 2).unwrap();
    assert!(again.contains(raw));
    let error = replay(&expected, 0, &block).unwrap_err();
    assert_eq!(error, MappingError::Ambiguous { message: 0 });
    assert_eq!(
        replay(&body, 3, &block).unwrap_err(),
        MappingError::NoSuchMessage { message: 3, messages: 2 }
    );
    let threshold = body
        .replace("{\"messages", r#"{"context_management":{"edits":[{"type":"compact_20260112"}]},"messages"#);
    assert!(matches!(replay(&threshold, 1, &block), Err(MappingError::NotTogether { .. })));
    let misplaced = request(&[
        user("a"),
        json!({"role": "assistant", "content": [serde_json::from_str::<Value>(raw).unwrap()]}),
    ]);
    assert_eq!(Summarize::new().request(&misplaced, 2), Err(MappingError::Misplaced { message: 1 }));
    let summary = json!({"role": "assistant", "content": [{"type": "compaction", "content": "s"}]});
    let twice = request(&[summary.clone(), user("a"), summary, user("b")]);
    assert_eq!(Summarize::new().request(&twice, 3), Err(MappingError::Ambiguous { message: 2 }));
}

#[test]
fn no_summary_has_a_reason_and_a_bad_block_is_an_error() {
    let read = |content: &str, reason: &str| {
        SummaryAnswer::read(&format!(r#"{{"content":{content},"stop_reason":"{reason}"}}"#))
    };
    let reasons = [
        ("max_tokens", NoSummary::MaxTokens),
        ("model_context_window_exceeded", NoSummary::ContextExceeded),
        ("tool_use", NoSummary::ToolUse),
        ("refusal", NoSummary::Refusal),
        ("end_turn", NoSummary::Silent),
        ("later", NoSummary::Other("later".into())),
    ];
    for (reason, expected) in reasons {
        assert_eq!(read("[]", reason), Ok(SummaryAnswer::Missing(expected)));
    }
    let compaction = |more: &str| read(&format!(r#"[{{"type":"compaction",{more}}}]"#), "compaction");
    assert_eq!(compaction(r#""content":"","signature":"s""#), Err(MappingError::EmptySummary));
    assert_eq!(compaction(r#""content":"x""#), Err(MappingError::Unsigned));
    assert!(compaction(r#""content":null,"signature":"s""#).is_err());
    assert!(read("[]", "compaction").is_err());
    assert!(read(r#"[{"type":"text","text":"x"}]"#, "end_turn").is_err());
}

#[test]
fn a_threshold_response_tells_its_latest_block() {
    let read = |content: &str| ThresholdOutcome::read(&format!(r#"{{"content":{content}}}"#));
    let null = r#"{"type":"compaction","content":null}"#;
    let one = r#"{"type":"compaction","content":"one"}"#;
    assert_eq!(read(r#"[{"type":"text","text":"x"}]"#), Ok(ThresholdOutcome::None));
    assert_eq!(read(&format!("[{null}]")), Ok(ThresholdOutcome::Failed));
    let two = one.replace("one", "two");
    let Ok(ThresholdOutcome::Compacted { block, paused: false }) = read(&format!("[{one},{two},{null}]"))
    else {
        panic!("not compacted")
    };
    assert_eq!((block.as_str(), block.is_signed()), (&*two, false));
    assert_eq!(read(r#"[{"type":"compaction","content":""}]"#), Err(MappingError::EmptySummary));
}

#[test]
fn what_the_api_passes_over_is_left_out() {
    let block = json!({"type": "compaction", "content": "s"});
    let answer = json!({"role": "assistant", "content": [{"type": "text", "text": "old"}, block, {"type": "text", "text": "new"}]});
    let failed = json!({"role": "assistant", "content": [{"type": "compaction", "content": null}, {"type": "text", "text": "x"}]});
    let text = request(&[user("a"), answer, user("b"), failed]);
    let trimmed = trim_to_block(&text).unwrap().unwrap();
    let parsed: Value = serde_json::from_str(&trimmed).unwrap();
    assert_eq!(
        parsed["messages"][0],
        json!({"role": "assistant", "content": [block, {"type": "text", "text": "new"}]})
    );
    assert_eq!(parsed["messages"].as_array().unwrap().len(), 3);
    assert_eq!(trim_to_block(&trimmed).unwrap(), None);
    assert_eq!(trim_to_block(&request(&[user("a")])).unwrap(), None);
}

#[test]
fn a_background_summary_takes_the_place_of_exactly_what_was_sent() {
    let mut swap = BackgroundSwap::new();
    let old = [user("a"), says("b")];
    let grown = [&old[..], &[user("c"), says("d"), user("e")]].concat();
    let ticket = swap.begin(&request(&old), 2).unwrap();
    assert!(swap.is_under_way());
    assert_eq!(swap.next_request(&request(&grown)).unwrap(), Swapped::Unchanged);
    swap.arrive(ticket, block("s")).unwrap();
    let Swapped::Swapped { request: swapped, replaced: 2 } = swap.next_request(&request(&grown)).unwrap()
    else {
        panic!("not swapped")
    };
    let swapped: Value = serde_json::from_str(&swapped).unwrap();
    assert_eq!(swapped["messages"].as_array().unwrap()[1..], grown[2..]);
    assert!(!swap.is_under_way());
    assert_eq!(swap.next_request(&request(&grown)).unwrap(), Swapped::Unchanged, "a block is used once");
}

#[test]
fn a_block_is_discarded_when_the_prefix_was_edited_or_another_was_begun() {
    let mut swap = BackgroundSwap::new();
    let first = swap.begin(&request(&[user("a"), says("b")]), 2).unwrap();
    swap.arrive(first, block("s")).unwrap();
    let edited = request(&[user("A"), says("b"), user("c")]);
    assert_eq!(swap.next_request(&edited).unwrap(), Swapped::Discarded(DiscardedBlock::PrefixEdited));
    let shorter = swap.begin(&request(&[user("a"), says("b")]), 2).unwrap();
    swap.arrive(shorter, block("s")).unwrap();
    assert_eq!(
        swap.next_request(&request(&[user("a")])).unwrap(),
        Swapped::Discarded(DiscardedBlock::PrefixEdited)
    );
    let late = swap.begin(&request(&[user("a"), says("b")]), 2).unwrap();
    let newest = swap.begin(&request(&[user("a"), says("b")]), 2).unwrap();
    assert_eq!(swap.arrive(late, block("late")), Err(DiscardedBlock::Superseded));
    swap.give_up(late);
    assert!(swap.is_under_way(), "another one's failure is not its own");
    swap.give_up(newest);
    assert_eq!(swap.arrive(newest, block("s")), Err(DiscardedBlock::Superseded));
    assert!(swap.begin(&request(&[user("a")]), 2).is_err());
}

#[test]
fn a_block_that_cannot_be_put_in_yet_is_not_lost() {
    let mut swap = BackgroundSwap::new();
    let old = [user("a"), says("b")];
    let ticket = swap.begin(&request(&old), 2).unwrap();
    swap.arrive(ticket, block("s")).unwrap();
    let asking = request(&old).replace("{\"max", r#"{"compaction":{"type":"summarize"},"max"#);
    assert!(swap.next_request(&asking).is_err());
    assert!(matches!(swap.next_request(&request(&old)).unwrap(), Swapped::Swapped { .. }));
}

#[test]
fn stripped_thinking_leaves_the_rest_as_it_was() {
    let only = json!({"role": "assistant", "content": [{"type": "redacted_thinking", "data": "x"}]});
    let text = request(&[user("a"), says("b"), user("c"), only, user("d")]);
    let stripped: Value = serde_json::from_str(&strip_thinking(&text).unwrap()).unwrap();
    let plain = json!({"role": "assistant", "content": [{"type": "text", "text": "b"}]});
    assert_eq!(stripped["messages"], json!([user("a"), plain, user("c"), user("d")]));
    let ordered = drop_mismatched(r#"{"messages":[],"thinking":{"type":"adaptive"}}"#).unwrap();
    let expected = r#"{"messages":[],"thinking":{"block_binding":{"prefix_mismatch_behavior":"drop_block"},"type":"adaptive"}}"#;
    assert_eq!(ordered, expected);
    assert!(drop_mismatched(r#"{"messages":[],"thinking":"on"}"#).is_err());
}

#[test]
fn every_documented_code_is_read_from_where_it_stands() {
    for code in CompactionCode::ALL {
        let body = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "no",
            "details": {"error_code": code.as_str()}}});
        assert_eq!(CompactionCode::read(&body.to_string()), Some(*code));
        assert_eq!(code.is_retry_safe(), *code == CompactionCode::Unavailable);
        assert!(code.as_str().starts_with("compaction_"));
    }
    assert_eq!(CompactionCode::ALL.len(), 9);
    assert_eq!(CompactionCode::read(r#"{"error":{"type":"overloaded_error","message":"x"}}"#), None);
}

#[test]
fn what_a_service_is_asked_for_is_a_request_of_the_api() {
    use super::super::ServiceRequest;
    use epitome_std::session::Tool;

    let instructions = [Message::system("Be brief.")];
    let messages = [Message::user("a"), thought("b")];
    let tools = [Tool::new("f", "does f", json!({"type": "object"}))];
    let told: Vec<_> = messages.iter().collect();
    let request = ServiceRequest::new(&told).with_instructions(&instructions).with_tools(&tools);
    let fields = serde_json::Map::from_iter([("thinking".to_owned(), json!({"type": "adaptive"}))]);
    let ask = Summarize::new().with_max_tokens(2_000);
    let body: Value =
        serde_json::from_str(&summarize_body("m", &request, &ask, &fields).unwrap().text).unwrap();
    assert_eq!(
        (&body["model"], &body["max_tokens"], &body["system"]),
        (&json!("m"), &json!(2_000), &json!("Be brief."))
    );
    assert_eq!(
        body["tools"],
        json!([{"name": "f", "description": "does f", "input_schema": {"type": "object"}}])
    );
    assert_eq!(
        (&body["thinking"], &body["compaction"]),
        (&fields["thinking"], &json!({"type": "summarize"}))
    );
    assert_eq!(body["messages"].as_array().map(Vec::len), Some(2));

    let forced = serde_json::Map::from_iter([("tool_choice".to_owned(), json!({"type": "any"}))]);
    let error = summarize_body("m", &request, &ask, &forced).unwrap_err();
    assert_eq!(
        error.to_string(),
        "anthropic: the request would be refused: `tool_choice` cannot be sent beside `compaction`: leave it out of this request"
    );
    // The message after a summary is the user's. On a model that binds thinking, it may not be joined with the message
    // before the summary.
    let unanswered = ServiceRequest::new(&told[..1]);
    let none = serde_json::Map::new();
    assert!(summarize_body("claude-opus-4-8", &unanswered, &ask, &none).is_ok());
    assert!(summarize_body("claude-opus-5-5", &unanswered, &ask, &none).is_err());
    assert!(summarize_body("claude-opus-5-5", &request, &ask, &none).is_ok());
}

#[test]
fn what_a_service_leaves_goes_back_with_its_signature_and_tells_its_price() {
    use super::super::ServiceErrorKind;
    use epitome_core::Usage;
    use epitome_std::wire::{Format, convert};

    let usage = r#""usage":{"input_tokens":0,"output_tokens":0,"iterations":[{"type":"compaction","input_tokens":144,"output_tokens":276}]}"#;
    let block = r#"{"type":"compaction","content":"so far","signature":"EuYB","tool_changes":[{"x":1.50}]}"#;
    let answer = format!(
        r#"{{"id":"msg_1","type":"message","role":"assistant","content":[{block}],"stop_reason":"compaction",{usage}}}"#
    );
    let artefact = summarized("m", &answer).unwrap();
    assert_eq!((artefact.usage, artefact.text().as_str()), (Some(Usage::new(144, 276)), "so far"));
    assert_eq!((&*artefact.part.provider, &*artefact.part.model), ("anthropic", "m"));
    let left = Message::new(Role::Assistant, [Part::Compaction(artefact.part)].into());
    let next = [left, Message::user("And?")];
    let written = convert(&next, Format::Anthropic).unwrap().text;
    assert!(
        written.starts_with(&format!(r#"{{"messages":[{{"role":"assistant","content":[{block}]}},"#)),
        "{written}"
    );
    let elsewhere = convert(&next, Format::OpenaiResponses).unwrap().text;
    assert!(elsewhere.contains("so far") && !elsewhere.contains("EuYB"));

    let missing = |reason: &str| {
        let answer = format!(r#"{{"role":"assistant","content":[],"stop_reason":"{reason}",{usage}}}"#);
        summarized("m", &answer).unwrap_err()
    };
    assert_eq!(missing("model_context_window_exceeded").kind(), &ServiceErrorKind::ContextTooLong);
    assert_eq!(missing("refusal").kind(), &ServiceErrorKind::Invalid("refusal".into()));
    assert_eq!(missing("refusal").usage(), Some(&Usage::new(144, 276)));
    let odd = summarized("m", &answer.replace("EuYB", "")).unwrap_err();
    assert_eq!((odd.kind(), odd.usage()), (&ServiceErrorKind::Malformed, Some(&Usage::new(144, 276))));
    assert!(summarized("m", "<html>").is_err());
}
