//! Error messages of every provider for a request that is too large, and other errors.

use super::{ContextOverflow, context_overflow};

fn of(status: u16, body: &str) -> Option<(Option<u64>, Option<u64>)> {
    context_overflow(status, body).map(|ContextOverflow { limit, sent, .. }| (limit, sent))
}

/// The limit, the size of the request and the size that is reserved for the answer.
fn with_answer(body: &str) -> Option<(Option<u64>, Option<u64>, Option<u64>)> {
    context_overflow(400, body).map(|it| (it.limit, it.sent, it.answer_max))
}

#[test]
fn every_providers_words_are_known() {
    let openai = r#"{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 130512 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#;
    assert_eq!(of(400, openai), Some((Some(128_000), Some(130_512))));
    let responses = r#"{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error","code":"context_length_exceeded"}}"#;
    assert_eq!(of(400, responses), Some((None, None)));
    let streamed = r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"context_length_exceeded","message":"Too long."}}}"#;
    assert_eq!(of(400, streamed), Some((None, None)));
    assert_eq!(of(400, r#"{"response":"The prompt is too long: 9 tokens > 5"}"#), None);
    let anthropic = r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 200082 tokens > 199999 maximum"}}"#;
    assert_eq!(of(400, anthropic), Some((Some(199_999), Some(200_082))));
    let summed = r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again"}}"#;
    assert_eq!(with_answer(summed), Some((Some(200_000), Some(188_240), Some(21_333))));
    let gemini = r#"[{"error":{"code":400,"message":"The input token count (1206573) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]"#;
    assert_eq!(of(400, gemini), Some((Some(1_048_576), Some(1_206_573))));
    assert_eq!(of(400, r#"{"message":"Input is too long for requested model."}"#), Some((None, None)));
    let bedrock = r#"{"message":"The model returned the following errors: prompt is too long: 205000 tokens > 200000 maximum"}"#;
    assert_eq!(of(400, bedrock), Some((Some(200_000), Some(205_000))));
    let vllm = r#"{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5100 tokens (4100 in the messages, 1000 in the completion).","type":"BadRequestError","param":null,"code":400}"#;
    assert_eq!(with_answer(vllm), Some((Some(4_096), Some(4_100), Some(1_000))));
    let newer = r#"{"error":{"message":"This model's maximum context length is 32768 tokens. However, you requested 8192 output tokens and your prompt contains at least 24577 input tokens, for a total of at least 32769 tokens. Please reduce the length of the input prompt or the number of requested output tokens.","type":"BadRequestError","param":"input_tokens","code":400}}"#;
    assert_eq!(with_answer(newer), Some((Some(32_768), Some(24_577), Some(8_192))));
    let characters = r#"{"message":"This model's maximum context length is 4096 tokens. However, your prompt contains 12769 characters."}"#;
    assert_eq!(of(400, characters), Some((Some(4_096), None)));
    // The reserve for the answer is larger than the window: no shorter request would help.
    let only_answer = r#"{"message":"This model's maximum context length is 4096 tokens. However, you requested 5100 tokens (100 in the messages, 5000 in the completion)."}"#;
    assert_eq!(with_answer(only_answer), Some((Some(4_096), Some(100), Some(5_000))));
    assert_eq!(context_overflow(400, only_answer).and_then(|it| it.room()), Some(0));
    let configured = r#"{"error":{"message":"Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 289650 tokens. Please reduce the length of the messages.","code":"context_length_exceeded"}}"#;
    assert_eq!(of(400, configured), Some((Some(272_000), Some(289_650))));
    let rounded = r#"{"message":"This model's maximum context length is 128k tokens. However, your messages resulted in 130512 tokens."}"#;
    assert_eq!(of(400, rounded), Some((None, Some(130_512))));
    let llama = r#"{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9001,"n_ctx":8192}}"#;
    assert_eq!(of(400, llama), Some((Some(8_192), Some(9_001))));
    let router = r#"{"error":{"message":"This endpoint's maximum context length is 131,072 tokens. However, you requested about 140,010 tokens (139,000 of text input, 1010 in the output).","code":400}}"#;
    assert_eq!(with_answer(router), Some((Some(131_072), Some(139_000), Some(1_010))));
    let quoted = format!(
        r#"{{"error":{{"message":"Provider returned error","code":400,"metadata":{{"raw":{}}}}}}}"#,
        serde_json::Value::from(anthropic)
    );
    assert_eq!(of(400, &quoted), Some((Some(199_999), Some(200_082))));
}

#[test]
fn other_errors_are_none() {
    let limit = r#"{"error":{"message":"Rate limit reached: 30000 tokens per minute","type":"tokens","code":"rate_limit_exceeded"}}"#;
    assert_eq!(of(400, limit), None);
    assert_eq!(of(200, r#"{"message":"prompt is too long"}"#), None);
    assert_eq!(of(400, r#"{"error":{"message":"max_tokens is too large: 99999"}}"#), None);
    // A text of the user is not the error.
    assert_eq!(
        of(400, r#"{"error":{"message":"bad"},"input":"prompt is too long: 9 tokens > 8 maximum"}"#),
        None
    );
    for text in
        ["", "prompt is too long", "{", "[]", "{\"error\": {\"message\": \"prompt is too long", "null"]
    {
        assert_eq!(of(400, text), None, "{text}");
    }
    let deep = format!("{}1{}", "{\"error\":".repeat(10_000), "}".repeat(10_000));
    assert_eq!(of(400, &deep), None);
}

#[test]
fn numbers_far_away_or_too_large_are_unknown() {
    let far = r#"{"message":"prompt is too long: this is a long explanation of 12 words"}"#;
    assert_eq!(of(400, far), Some((None, None)));
    let large = r#"{"message":"prompt is too long: 99999999999999999999999 tokens > 200000 maximum"}"#;
    assert_eq!(of(400, large), Some((Some(200_000), None)));
}
