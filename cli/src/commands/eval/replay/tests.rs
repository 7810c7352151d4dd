//! Replayed conversations with prices known by hand.

use epitome::message::{Message, Part, ToolCall};
use epitome::models::Models;
use epitome::tokens::counter_by_name;

use super::*;
use crate::args::{ModelArgs, PriceArgs};
use crate::commands::eval::baseline::Floor;
use crate::strategy::Strategies;

/// The prices of the row `house`, with this window; `pause` is the time that the user takes for a message.
fn pricing(prices: &str, window: u64, pause: Option<&str>) -> Pricing {
    let models = Models::builtin().with_rows(&format!("house,qwen,,9000000,,,none,{prices},,\n")).unwrap();
    let args = PriceArgs {
        model: ModelArgs { model: None, models: None },
        window: Some(window),
        pause: pause.map(|pause| pause.parse().unwrap()),
    };
    Pricing::new(models.find("house").unwrap(), &args).unwrap()
}

fn counter() -> Arc<dyn TokenCounter + Send + Sync> {
    Arc::from(counter_by_name("estimate").unwrap())
}

fn counted(messages: Vec<Message>) -> Vec<CountedMessage> {
    messages.into_iter().map(|message| CountedMessage::of(message, &*counter())).collect()
}

/// This many turns of a request, a call with its result, and an answer of two messages: two requests to the model per
/// turn.
fn turns(turns: usize) -> Vec<CountedMessage> {
    let turns = (0..turns).flat_map(|turn| {
        let id = format!("c{turn}");
        let call = Part::ToolCall(ToolCall::new(&*id, "look", "{}"));
        [
            Message::user(format!("Look number {turn}. {}", "Please do. ".repeat(40))),
            Message::new(Role::Assistant, vec![call]),
            Message::tool(&*id, format!("result {turn} ").repeat(100)),
            Message::assistant("There it is."),
            Message::assistant("And that was all."),
        ]
    });
    counted(turns.collect())
}

/// A strategy, and a baseline (floor).
fn contenders(strategies: &Strategies) -> [Contender<'_>; 2] {
    [Contender::Strategies(strategies), Contender::Floor(Floor::Newest)]
}

fn tokens(messages: &[CountedMessage]) -> u64 {
    messages.iter().map(CountedMessage::tokens).sum()
}

#[test]
fn what_was_sent_before_is_read_and_the_rest_is_written() {
    let (messages, pricing) = (turns(2), pricing("1.25/0.1/5/0", 1_000_000, None));
    let paid = Paid::without_compaction(&messages, &pricing);
    let sizes = [1, 3, 6, 8].map(|at| tokens(&messages[..at]));
    let [first, second, third, fourth] = sizes;
    let written = first + (second - first) + (third - second) + (fourth - third);
    let expected = written * 1_250 + (first + second + third) * 100;
    assert_eq!((paid.requests, paid.thousandths, paid.largest), (4, expected, fourth));
    // A window that is never full causes no compaction, with each contender.
    let truncate = Strategies::parse("truncate").unwrap();
    let asked = pricing.asked("25%".parse().unwrap()).unwrap();
    for contender in contenders(&truncate) {
        assert_eq!(
            Paid::with_compactions(contender, &messages, &asked, &pricing, &counter()).unwrap(),
            paid,
            "{contender:?}"
        );
    }
}

#[test]
fn a_short_request_is_not_cached() {
    let messages = turns(1);
    let [first, second] = [1, 3].map(|at| tokens(&messages[..at]));
    assert!(first < 200 && second > 200, "{first}, {second}");
    let paid = Paid::without_compaction(&messages, &pricing("1.25/0.1/5/200", 1_000_000, None));
    assert_eq!(paid.thousandths, first * 1_000 + second * 1_250);
}

#[test]
fn a_cache_that_the_user_outlasts_has_expired() {
    let messages = turns(2);
    let [first, second, third, fourth] = [1, 3, 6, 8].map(|at| tokens(&messages[..at]));
    let price = |prices: &str, pause| {
        Paid::without_compaction(&messages, &pricing(prices, 1_000_000, pause)).thousandths
    };
    let warm = price("1.25/0.1/5/0/300", None);
    assert_eq!(price("1.25/0.1/5/0/300", Some("5m")), warm);
    // The results of tools arrive at once. Only the second message of the user arrives after the cache has expired.
    let cold = first * 1_250
        + first * 100
        + (second - first) * 1_250
        + third * 1_250
        + third * 100
        + (fourth - third) * 1_250;
    assert_eq!(price("1.25/0.1/5/0/300", Some("6m")), cold);
    // A cache whose lifetime is not published counts as never expired.
    assert_eq!(price("1.25/0.1/5/0", Some("6m")), warm);
}

#[test]
fn a_full_window_is_compacted_and_what_changed_is_written_again() {
    let (messages, pricing) = (turns(40), pricing("1.25/0.1/5/0", 6_000, None));
    let truncate = Strategies::parse("truncate").unwrap();
    let asked = pricing.asked("25%".parse().unwrap()).unwrap();
    let whole = Paid::without_compaction(&messages, &pricing);
    assert_eq!((whole.requests, whole.compactions), (80, 0));
    for contender in contenders(&truncate) {
        let paid = Paid::with_compactions(contender, &messages, &asked, &pricing, &counter()).unwrap();
        assert!(paid.compactions > 1 && paid.largest <= pricing.trigger(), "{contender:?}: {paid:?}");
        assert!(paid.thousandths < whole.thousandths && paid.requests == 80, "{contender:?}: {paid:?}");
    }
    let paid = |prices: &str| {
        let truncate = Strategies::parse("truncate").unwrap();
        let (contender, pricing) = (Contender::Strategies(&truncate), self::pricing(prices, 6_000, None));
        Paid::with_compactions(contender, &messages, &asked, &pricing, &counter()).unwrap().thousandths
    };
    // The two prices differ for written tokens only. Written are all messages, and once more all messages after each
    // changed place.
    let written = paid("2/1/5/0") - paid("1/1/5/0");
    let said = tokens(&messages[..messages.len() - 2]) * 1_000;
    assert!(written > said, "{written}, {said}");
}

#[test]
fn answers_of_several_messages_are_one_request() {
    let at = |roles: &str| {
        let messages = roles.chars().map(|role| match role {
            'u' => Message::user("question"),
            't' => Message::tool("c", "result"),
            _ => Message::assistant("answer"),
        });
        let messages = counted(messages.collect());
        Request::all(&messages).map(|request| (request.at, request.follows_user)).collect::<Vec<_>>()
    };
    assert_eq!(at("uaatauua"), [(1, true), (4, false), (7, true)]);
    assert!(at("").is_empty() && at("a").is_empty() && at("uu").is_empty() && at("aa").is_empty());
}
