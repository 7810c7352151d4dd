//! The payback rule in the engine: a compaction has to pay for itself. The tests compare the decision with the summed
//! prices of single requests, and with the same pass without the rule.

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use epitome::compaction::{
    Began, Begun, CompactionCx, CompactionOutcome, Compactor as _, LiveRequest, PaybackRule,
};
use epitome::compactors::{
    Background, DigestSummarizer, Engine, Summarization, Summarizer, SummaryError, SummaryRequest, Truncation,
};
use epitome::core::{Budget, ClassEstimator, Pass, Tokens, measure_message};
use epitome::history::History;
use epitome::message::Message;
use epitome::models::{Cache, Prices};
use epitome::session::{SessionError, SessionErrorKind};
use epitome_tests::cases::{self, Census};
use futures::executor::block_on;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::support::{
    Answer, Meanwhile, Said, Scripted, append, history, said, said_all, shown, summaries, summary_texts,
};
use super::{store, talk};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Which {
    Truncates,
    Digests,
    /// Asks a model for a summary. The price is in thousandths of an input token.
    Asks(u64),
}

#[derive(Debug, Clone)]
struct Case {
    said: Vec<Said>,
    which: Which,
    pass: Pass,
    /// Whether the request is larger than its limit.
    is_over: bool,
    percent: u64,
    rule: PaybackRule,
}

fn case() -> impl Strategy<Value = Case> {
    let which = prop_oneof![2 => Just(Which::Truncates), 1 => Just(Which::Digests), 2 => (0_u64..4_000_000).prop_map(Which::Asks)];
    let pass = prop_oneof![6 => Just(Pass::Proactive), 1 => Just(Pass::Manual), 1 => Just(Pass::Overflow)];
    let rule = (
        1_u32..400,
        0_u32..1_300,
        prop_oneof![Just(0_u64), 0_u64..400],
        0_u64..16,
        prop::bool::weighted(0.25),
        0_u64..300,
    );
    let rule = rule.prop_map(|(read, more, cached_min, requests, is_cold, front)| {
        let mut prices = Prices::new(read, 4_000);
        (prices.write, prices.cached_min) = (read + more, cached_min);
        let cache = if is_cold { Cache::Cold } else { Cache::Warm };
        PaybackRule::new(prices).with_requests(requests).with_cache(cache).with_front(front)
    });
    let said = prop::collection::vec(said(), 12..60);
    (said, which, pass, prop::bool::weighted(0.2), 40_u64..95, rule).prop_map(
        |(said, which, pass, is_over, percent, rule)| Case { said, which, pass, is_over, percent, rule },
    )
}

/// A summarizer with a fixed price. It writes a short text, and records the allowance of the summary.
#[derive(Debug)]
struct Priced {
    price: u64,
    asked: AtomicU64,
    allowance: AtomicU64,
}

#[async_trait]
impl Summarizer for Priced {
    fn name(&self) -> &str {
        "priced"
    }

    async fn summarize(&self, _: &SummaryRequest<'_>) -> Result<String, SummaryError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Ok("It went well.".into())
    }

    fn price(&self, _: &Prices, _: u64, tokens: u64, _: Option<u64>) -> u64 {
        self.allowance.store(tokens, Ordering::Relaxed);
        self.price
    }
}

/// One pass, the visible messages before and after it, and the summarizer.
struct Done {
    outcome: Result<CompactionOutcome, SessionError>,
    before: Vec<Message>,
    after: Vec<Message>,
    summarizer: Arc<Priced>,
}

impl Done {
    fn of(case: &Case, rule: Option<PaybackRule>) -> Self {
        let store = store(false);
        let mut history = history(&store);
        append(&mut history, said_all(&case.said, 0));
        let price = if let Which::Asks(price) = case.which { price } else { 0 };
        let (asked, allowance) = (AtomicU64::new(0), AtomicU64::new(0));
        let summarizer = Arc::new(Priced { price, asked, allowance });
        let engine = match case.which {
            Which::Truncates => Engine::new(Truncation::new()),
            Which::Digests => Engine::new(Summarization::new()).with_summarizer(Arc::new(DigestSummarizer)),
            // Without quotes of users the summarizer is asked for the whole allowance.
            Which::Asks(_) => Engine::new(Summarization::new().keep_user_messages(0))
                .with_summarizer(Arc::clone(&summarizer) as _),
        };
        let before = shown(&history).1;
        let budget = budget(case, &history);
        let mut cx = CompactionCx::new(&mut history, budget, case.pass).with_payback(rule);
        let outcome = block_on(engine.compact(&mut cx));
        let after = shown(&history).1;
        Self { outcome, before, after, summarizer }
    }
}

/// A budget with a limit of ten times the size of the history, or of a twentieth less than the history.
fn budget(case: &Case, history: &History) -> Budget {
    let tokens = history.index().tokens().max(40);
    let limit = if case.is_over { tokens - tokens / 20 } else { tokens * 10 };
    let goal = (tokens * case.percent / 100).min(limit - 2).max(1);
    let budget = Budget::builder().window(limit).reserve(0).trigger(limit - 1).goal(goal);
    budget.min_reclaim(0).build().unwrap()
}

fn sizes(messages: &[Message]) -> Vec<i128> {
    let counter = ClassEstimator::new();
    messages.iter().map(|message| i128::from(measure_message(message, &counter).tokens.0)).collect()
}

/// The naive twin: adds the prices of single requests, with the compaction and without it. The stable prefix is read
/// from the cache, and all messages after it are written again.
fn pays_within(
    requests: u64,
    rule: &PaybackRule,
    (before, after, stable): (i128, i128, i128),
    made: i128,
) -> bool {
    let (write, read) = (i128::from(rule.prices.write), i128::from(rule.prices.read));
    let front = i128::from(rule.front);
    let stable = if stable + front < i128::from(rule.prices.cached_min) { 0 } else { stable + front };
    let (before, after) = (before + front, after + front);
    let (mut with, mut without) = (made, 0);
    let anew = |stable: i128| stable * read + (after - stable) * write;
    let is_cold = rule.cache == Cache::Cold;
    let mut pays = made == 0 && (is_cold || anew(stable) == after * read);
    for request in 0..requests {
        let (compacted, whole) = match (request, is_cold) {
            (0, true) => (after * write, before * write),
            (0, false) => (anew(stable), before * read),
            _ => (after * read, before * read),
        };
        (with, without) = (with + compacted, without + whole);
        pays |= with <= without;
    }
    pays && after < before
}

#[test]
fn a_plan_is_carried_out_where_it_pays_or_cannot_wait() {
    let minimums = [
        ("does not pay", 150),
        ("pays", 150),
        ("pays, with a summary", 40),
        ("would not pay, and does not fit", 10),
        ("would not pay, and was asked for", 40),
        ("pays because the cache is cold", 20),
    ];
    cases::check("engine, payback", case(), &minimums, is_kept);
}

fn is_kept(case: Case, census: &Census) -> Result<(), TestCaseError> {
    let (free, ruled) = (Done::of(&case, None), Done::of(&case, Some(case.rule)));
    let Ok(CompactionOutcome::Compacted(result)) = &free.outcome else {
        prop_assert_eq!(format!("{:?}", free.outcome), format!("{:?}", ruled.outcome));
        return Ok(());
    };
    let sizes_before = sizes(&free.before);
    let (before, mut after) = (sizes_before.iter().sum::<i128>(), sizes(&free.after).iter().sum::<i128>());
    prop_assert_eq!(result.original_tokens.map(i128::from), Some(before));
    let same = free.before.iter().zip(&free.after).take_while(|(was, is)| was == is).count();
    let stable = sizes_before[..same].iter().sum::<i128>();
    let mut made = 0;
    if let Which::Asks(price) = case.which {
        // A plan assumes that a summary fills its allowance.
        let summary = &free.after[same];
        after -= sizes(core::slice::from_ref(summary))[0];
        after += i128::from(ruled.summarizer.allowance.load(Ordering::Relaxed));
        made = i128::from(price);
    }
    if case.which == Which::Digests {
        // The test does not know the allowance of a digest.
        census.count("pays, with a digest", matches!(ruled.outcome, Ok(CompactionOutcome::Compacted(_))));
    } else {
        let figures = (before, after, stable);
        let pays = pays_within(case.rule.requests, &case.rule, figures, made);
        let can_wait = case.pass == Pass::Proactive && !case.is_over;
        let is_made = matches!(ruled.outcome, Ok(CompactionOutcome::Compacted(_)));
        prop_assert_eq!(is_made, pays || !can_wait, "{:?} {:?} {}", figures, ruled.outcome, made);
        let warm = case.rule.with_cache(Cache::Warm);
        census.count("does not pay", !is_made);
        census.count("pays", pays && can_wait);
        census.count("pays, with a summary", pays && can_wait && made > 0);
        census
            .count("would not pay, and does not fit", !pays && case.is_over && case.pass == Pass::Proactive);
        census.count("would not pay, and was asked for", !pays && case.pass != Pass::Proactive);
        let only_cold = pays && !pays_within(case.rule.requests, &warm, figures, made);
        census.count("pays because the cache is cold", only_cold);
    }
    match &ruled.outcome {
        Ok(CompactionOutcome::DoesNotPay(payback)) => {
            prop_assert!(!payback.is_expected() && case.pass == Pass::Proactive && !case.is_over);
            prop_assert_eq!(payback.expected_requests, case.rule.requests);
            prop_assert_eq!(&ruled.before, &ruled.after, "nothing is changed");
            prop_assert_eq!(ruled.summarizer.asked.load(Ordering::Relaxed), 0, "nobody is asked");
        }
        Ok(CompactionOutcome::Compacted(ruled_result)) => {
            prop_assert_eq!(&free.after, &ruled.after, "what is made is what is made without the rule");
            let payback = ruled_result.payback.unwrap();
            prop_assert_eq!(payback.cache, case.rule.cache);
            // With more expected requests the compaction is also made.
            let more = case.rule.with_requests(case.rule.requests + 7);
            let more = Done::of(&case, Some(more)).outcome;
            prop_assert!(matches!(more, Ok(CompactionOutcome::Compacted(_))), "{:?}", more);
        }
        other => prop_assert!(false, "{:?}", other),
    }
    Ok(())
}

/// The rule for a warm cache where reading costs a tenth, as with most providers.
fn rule() -> PaybackRule {
    let mut prices = Prices::new(100, 5_000);
    prices.write = 1_250;
    PaybackRule::new(prices)
}

fn half(history: &History) -> Budget {
    super::budget(history, 50)
}

#[test]
fn a_summary_that_does_not_pay_is_not_asked_for_and_its_fallback_does_not_stand_in() {
    let store = store(false);
    let mut history = history(&store);
    talk(&mut history, 30);
    let summarizer = Arc::new(Scripted::new(Answer::Good, Meanwhile::Nothing, &store));
    let engine = Engine::new(Summarization::new())
        .with_summarizer(Arc::clone(&summarizer) as _)
        .with_fallback(Truncation::new());
    let mut pass = |rule: PaybackRule| {
        let budget = half(&history);
        let mut cx = CompactionCx::new(&mut history, budget, Pass::Proactive).with_payback(Some(rule));
        block_on(engine.compact(&mut cx)).unwrap()
    };
    let outcome = pass(rule().with_requests(10));
    let CompactionOutcome::DoesNotPay(payback) = outcome else { panic!("{outcome:?}") };
    let requests = payback.after_requests.unwrap();
    assert!(requests > 10 && summarizer.calls.load(Ordering::Relaxed) == 0, "{payback:?}");
    // The compaction pays if at least the necessary number of requests is expected.
    let CompactionOutcome::DoesNotPay(_) = pass(rule().with_requests(requests - 1)) else {
        panic!("one too few")
    };
    let CompactionOutcome::Compacted(result) = pass(rule().with_requests(requests)) else {
        panic!("it pays")
    };
    assert_eq!(result.payback.unwrap().after_requests, Some(requests));
    assert_eq!((summarizer.calls.load(Ordering::Relaxed), summaries(&history)), (1, 1));
}

/// A text that needs no model call pays earlier than a summary of a model.
#[test]
fn a_digest_costs_nothing() {
    let store = store(false);
    let mut history = history(&store);
    talk(&mut history, 30);
    let engine = Engine::new(Summarization::new()).with_summarizer(Arc::new(DigestSummarizer));
    let budget = half(&history);
    let mut cx = CompactionCx::new(&mut history, budget, Pass::Proactive).with_payback(Some(rule()));
    let outcome = block_on(engine.compact(&mut cx)).unwrap();
    assert!(matches!(outcome, CompactionOutcome::Compacted(_)), "{outcome:?}");
}

/// The failure of a summarizer is reported, even if its fallback would not pay. Otherwise the summarizer would be asked
/// again before each request.
#[test]
fn a_failure_is_told_where_the_fallback_would_not_pay() {
    let store = store(false);
    let mut history = history(&store);
    talk(&mut history, 30);
    let mut rule = rule().with_requests(60);
    rule.prices.output = 0;
    let fails = Arc::new(Scripted::new(Answer::Fails, Meanwhile::Nothing, &store));
    let alone = Engine::new(Nearly);
    let engine = Engine::new(Summarization::new()).with_summarizer(fails).with_fallback(Nearly);
    let budget = half(&history);
    let mut cx = CompactionCx::new(&mut history, budget, Pass::Proactive).with_payback(Some(rule));
    let outcome = block_on(alone.compact(&mut cx)).unwrap();
    assert!(matches!(outcome, CompactionOutcome::DoesNotPay(_)), "{outcome:?}");
    let error = block_on(engine.compact(&mut cx)).unwrap_err();
    assert_eq!(error.kind(), SessionErrorKind::Unavailable);
}

/// A compaction that would not pay is not begun before it is due either.
#[test]
fn in_the_background_nobody_is_asked_for_what_does_not_pay() {
    for (requests, calls) in [(10, 0), (1_000, 1)] {
        let store = store(false);
        let mut history = history(&store);
        talk(&mut history, 30);
        let summarizer = Arc::new(Scripted::new(Answer::Good, Meanwhile::Nothing, &store));
        let engine = Engine::new(Summarization::new()).with_summarizer(Arc::clone(&summarizer) as _);
        let background = Background::new(engine, block_on);
        let (budget, mut begun) = (half(&history), Begun::default());
        let mut cx = CompactionCx::new(&mut history, budget, Pass::Proactive)
            .with_begun(&mut begun)
            .with_payback(Some(rule().with_requests(requests)));
        assert_eq!(background.begin(&mut cx), Began::Now);
        assert_eq!(summarizer.calls.load(Ordering::Relaxed), calls);
        // A summary that was paid for early costs nothing now.
        let mut cx = CompactionCx::new(&mut history, budget, Pass::Proactive)
            .with_begun(&mut begun)
            .with_payback(Some(rule().with_requests(requests)));
        let outcome = block_on(background.compact(&mut cx)).unwrap();
        match (calls, outcome) {
            (0, CompactionOutcome::DoesNotPay(_)) => {}
            (1, CompactionOutcome::Compacted(result)) => {
                assert!(result.payback.unwrap().after_requests < Some(15), "{result:?}");
            }
            (_, other) => panic!("{other:?}"),
        }
        assert_eq!(summarizer.calls.load(Ordering::Relaxed), calls);
    }
}

/// The price of a summary depends on the cached tokens. The summarizer gets their number only if a live request is in a
/// warm cache.
#[test]
fn the_price_of_a_summary_knows_what_is_cached() {
    #[derive(Debug, Default)]
    struct Listening(Mutex<Vec<Option<u64>>>);

    #[async_trait]
    impl Summarizer for Listening {
        fn name(&self) -> &str {
            "listening"
        }

        async fn summarize(&self, _: &SummaryRequest<'_>) -> Result<String, SummaryError> {
            Err(SummaryError::Empty)
        }

        fn price(&self, _: &Prices, covered: u64, _: u64, cached: Option<u64>) -> u64 {
            assert!(covered > 0 && cached.is_none_or(|cached| cached > covered));
            self.0.lock().unwrap().push(cached);
            0
        }
    }

    let store = store(false);
    let mut history = history(&store);
    talk(&mut history, 30);
    let listening = Arc::new(Listening::default());
    let engine = Engine::new(Summarization::new()).with_summarizer(Arc::clone(&listening) as _);
    let (budget, tokens) = (half(&history), history.index().tokens());
    let request = Arc::new(LiveRequest::new(shown(&history).1, "model"));
    for (request, cache) in
        [(None, Cache::Warm), (Some(Arc::clone(&request)), Cache::Cold), (Some(request), Cache::Warm)]
    {
        let mut cx = CompactionCx::new(&mut history, budget, Pass::Manual)
            .with_request(request)
            .with_payback(Some(rule().with_cache(cache).with_front(100)));
        block_on(engine.compact(&mut cx)).unwrap_err();
    }
    assert_eq!(*listening.0.lock().unwrap(), [None, None, Some(tokens + 100)]);
}

/// Drops the groups 3 and 5, which frees more than a twentieth of a short history. Nearly all of the history is then
/// written again.
#[derive(Debug)]
struct Nearly;

impl epitome::core::Strategy for Nearly {
    fn name(&self) -> &'static str {
        "nearly"
    }

    fn plan(&self, draft: &mut epitome::core::Draft<'_>) {
        for leader in [3, 5] {
            let _ = draft.drop_group(leader);
        }
    }
}

/// The quotes of users are not part of the price of a summary, because no model writes them.
#[test]
fn the_words_of_users_have_no_price() {
    let store = store(false);
    let mut history = history(&store);
    for turn in 0..40 {
        let said = format!("Rule {turn}: {}", "this must hold, ".repeat(8));
        append(&mut history, vec![Message::user(said), Message::assistant("noted, ".repeat(60))]);
    }
    let (asked, allowance) = (AtomicU64::new(0), AtomicU64::new(0));
    let summarizer = Arc::new(Priced { price: 0, asked, allowance });
    let rule = Summarization::new().summary_tokens_max(Tokens(200)).keep_user_messages(50);
    let engine = Engine::new(rule).with_summarizer(Arc::clone(&summarizer) as _);
    let (budget, prices) = (super::budget(&history, 50), Prices::new(100, 5_000));
    let mut cx =
        CompactionCx::new(&mut history, budget, Pass::Manual).with_payback(Some(PaybackRule::new(prices)));
    block_on(engine.compact(&mut cx)).unwrap();
    assert_eq!(summarizer.allowance.load(Ordering::Relaxed), 200);
    let texts = summary_texts(&history);
    assert!(history.counter().count(&texts[0]) > Tokens(400), "{texts:?}");
}
