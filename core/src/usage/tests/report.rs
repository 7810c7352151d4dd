//! Sums of each vendor's report.

use crate::{AnthropicTokens, GeminiTokens, OpenAiTokens, Spend, Tally, Usage};

#[test]
fn openai_totals_are_as_reported() {
    let tokens = OpenAiTokens {
        input: Some(2_006),
        output: Some(300),
        total: Some(2_306),
        cached: Some(1_920),
        reasoning: Some(256),
    };
    let usage = Usage::openai(tokens);
    assert_eq!((usage.input_total, usage.output_total, usage.total), (Some(2_006), Some(300), Some(2_306)));
    assert_eq!((usage.cache_read, usage.reasoning), (Some(1_920), Some(256)));
    assert_eq!(usage.request_size(), Some(2_006));
}

#[test]
fn anthropic_input_is_the_sum_of_what_its_cache_did() {
    let tokens = AnthropicTokens {
        input: Some(50),
        cache_read: Some(100_000),
        cache_creation: Some(248),
        output: Some(503),
    };
    let usage = Usage::anthropic(tokens);
    assert_eq!(
        (usage.input_total, usage.output_total, usage.total),
        (Some(100_298), Some(503), Some(100_801))
    );
    assert_eq!(usage.request_size(), Some(100_298));
    let bare = AnthropicTokens { input: Some(50), output: Some(7), ..AnthropicTokens::NONE };
    assert_eq!(Usage::anthropic(bare).input_total, Some(50));
    // Without an input, the input total is unknown, even with figures of the cache.
    let without = AnthropicTokens { cache_read: Some(9), output: Some(7), ..AnthropicTokens::NONE };
    assert_eq!((Usage::anthropic(without).input_total, Usage::anthropic(without).total), (None, None));
}

#[test]
fn an_anthropic_stream_tells_its_input_first() {
    let start =
        AnthropicTokens { input: Some(50), cache_read: Some(900), output: Some(1), ..AnthropicTokens::NONE };
    let end = AnthropicTokens { output: Some(80), ..AnthropicTokens::NONE };
    let usage = Usage::anthropic(start.updated_by(end));
    assert_eq!((usage.input_total, usage.output_total), (Some(950), Some(80)));
}

#[test]
fn gemini_adds_tool_use_and_thoughts() {
    let tokens = GeminiTokens {
        prompt: Some(1_000),
        tool_use_prompt: Some(400),
        candidates: Some(30),
        thoughts: Some(70),
        total: Some(1_500),
        cached: Some(900),
    };
    let usage = Usage::gemini(tokens);
    assert_eq!((usage.input_total, usage.output_total, usage.total), (Some(1_400), Some(100), Some(1_500)));
    // The tokens that the server-side tools added were not in the request.
    assert_eq!(usage.request_size(), Some(1_000));
    let thinking = GeminiTokens { prompt: Some(8), thoughts: Some(70), ..GeminiTokens::NONE };
    assert_eq!(Usage::gemini(thinking).output_total, Some(70));
    assert_eq!(Usage::gemini(GeminiTokens::NONE), Usage::NONE);
}

#[test]
fn sums_stop_at_the_largest_amount() {
    const MOST: Option<u64> = Some(u64::MAX);
    let anthropic = AnthropicTokens { input: MOST, cache_read: MOST, cache_creation: MOST, output: MOST };
    let gemini = GeminiTokens {
        prompt: MOST,
        tool_use_prompt: MOST,
        candidates: MOST,
        thoughts: MOST,
        total: MOST,
        cached: MOST,
    };
    let mut spend = Spend::default();
    let mut tally = Tally::default();
    for usage in [Usage::anthropic(anthropic), Usage::gemini(gemini), Usage::new(u64::MAX, u64::MAX)] {
        assert_eq!((usage.input_total, usage.output_total, usage.total), (MOST, MOST, MOST));
        spend.add(&usage);
        tally.record(Some(&usage));
    }
    assert_eq!((spend.reports, spend.input, spend.output), (3, u64::MAX, u64::MAX));
    assert_eq!(tally.usage(), Some(Usage::new(u64::MAX, u64::MAX)));
}

#[test]
fn reports_that_cannot_be_believed_have_no_request_size() {
    let cached = |input, cached| {
        Usage::openai(OpenAiTokens { input: Some(input), cached: Some(cached), ..OpenAiTokens::NONE })
    };
    assert_eq!(Usage::new(0, 5).request_size(), None);
    assert_eq!(cached(99, 100).request_size(), None);
    assert_eq!(cached(100, 100).request_size(), Some(100));
    assert_eq!(Usage::NONE.request_size(), None);
    assert_eq!(Usage::new(900, 5).of_server_steps(None).request_size(), None);
    assert_eq!(Usage::new(900, 5).of_server_steps(Some(300)).request_size(), Some(300));
    assert_eq!(Usage::new(900, 5).of_server_steps(Some(901)).request_size(), None);
    assert_eq!(Usage::new(900, 5).of_server_steps(Some(0)).request_size(), None);
}

#[test]
fn the_tally_counts_missing_fields_as_zero() {
    let mut tally = Tally::default();
    tally.record(Some(&Usage::new(700, 10)));
    tally.record(None);
    assert_eq!(tally.token_count(), 700);
    tally.record(Some(&Usage::NONE));
    let mut expected = Usage::new(0, 10);
    expected.total = Some(0);
    assert_eq!((tally.token_count(), tally.usage()), (0, Some(expected)));
}
