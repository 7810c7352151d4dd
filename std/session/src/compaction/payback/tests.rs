//! The rule against a simulation that pays for each request.

use core::time::Duration;

use proptest::prelude::*;

use super::*;

/// Largest number of requests in a simulation.
const REQUESTS_MAX: u64 = 400;

#[derive(Debug, Clone, Copy)]
struct Case {
    prices: Prices,
    cache: Cache,
    before: u64,
    after: u64,
    stable: u64,
    front: u64,
    made: u64,
    requests: u64,
}

impl Case {
    fn rule(&self) -> PaybackRule {
        PaybackRule::new(self.prices)
            .with_requests(self.requests)
            .with_cache(self.cache)
            .with_front(self.front)
    }

    fn payback(&self) -> Payback {
        self.rule().payback(self.before, self.after, self.stable, self.made)
    }
}

fn case() -> impl Strategy<Value = Case> {
    let price = || prop_oneof![Just(0_u32), Just(20), Just(100), Just(500), 1_u32..1_500];
    let prices = (price(), price(), prop_oneof![Just(0_u64), Just(1_024), 0_u64..5_000]);
    let prices = prices.prop_map(|(read, more, cached_min)| {
        let mut prices = Prices::new(read, 5_000);
        (prices.write, prices.cached_min) = (read + more, cached_min);
        prices
    });
    let cache = prop_oneof![Just(Cache::Warm), Just(Cache::Cold)];
    let sizes = (1_u64..200_000).prop_flat_map(|before| {
        // Sometimes there is nothing to gain.
        (Just(before), 1..=before + before / 20)
            .prop_flat_map(|(before, after)| (Just(before), Just(after), 0..=after))
    });
    let made = prop_oneof![Just(0_u64), 0_u64..1_000, 0_u64..200_000_000];
    let requests = prop_oneof![Just(PaybackRule::REQUESTS), 0_u64..300];
    (prices, cache, sizes, prop_oneof![Just(0_u64), 0_u64..4_000], made, requests).prop_map(
        |(prices, cache, (before, after, stable), front, made, requests)| Case {
            prices,
            cache,
            before,
            after,
            stable,
            front,
            made,
            requests,
        },
    )
}

/// The naive twin: pays for one request after the other, by kind of token, with the compaction and without it. Returns
/// the number of requests after which the compaction costs no more.
fn simulated(case: &Case) -> Option<u64> {
    let Case { prices, cache, front, .. } = *case;
    let [before, after, stable] =
        [case.before, case.after, case.stable].map(|tokens| i128::from(tokens + front));
    let (write, read) = (i128::from(prices.write), i128::from(prices.read));
    if after >= before {
        return None;
    }
    let cached = if stable < i128::from(prices.cached_min) { 0 } else { stable };
    let (mut with, mut without) = (i128::from(case.made), 0);
    // A compaction without costs pays before any request.
    let is_free = cache == Cache::Cold || (after - cached) * (write - read) == 0;
    // If it saves nothing later either, it never pays.
    if with == 0 && is_free && (cache == Cache::Cold || read > 0) {
        return Some(0);
    }
    for request in 1..=REQUESTS_MAX {
        match (request, cache) {
            (1, Cache::Warm) => {
                with += cached * read + (after - cached) * write;
                without += before * read;
            }
            (1, Cache::Cold) => {
                with += after * write;
                without += before * write;
            }
            _ => {
                with += after * read;
                without += before * read;
            }
        }
        let saves_later = cache == Cache::Cold || read > 0;
        if with <= without && saves_later {
            return Some(request);
        }
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_096))]

    #[test]
    fn the_rule_says_what_paying_for_each_request_says(case in case()) {
        let (payback, simulated) = (case.payback(), simulated(&case));
        match simulated {
            Some(requests) => prop_assert_eq!(payback.after_requests, Some(requests)),
            None => prop_assert!(payback.after_requests.is_none_or(|requests| requests > REQUESTS_MAX), "{:?}", payback),
        }
        prop_assert_eq!(payback.is_expected(), simulated.is_some_and(|requests| requests <= case.requests));
    }

    /// Checks the same rule, solved for the reclaimed amount.
    #[test]
    fn it_is_the_least_amount_that_is_worth_reclaiming(case in case()) {
        let case = Case { cache: Cache::Warm, ..case };
        let [before, after, stable] = [case.before, case.after, case.stable].map(|tokens| u128::from(tokens + case.front));
        let cached = if stable < u128::from(case.prices.cached_min) { 0 } else { stable };
        let (read, write) = (u128::from(case.prices.read), u128::from(case.prices.write));
        let costs = (after - cached) * (write - read) + u128::from(case.made);
        let reclaims = before.saturating_sub(after);
        let is_worth = reclaims > 0 && read > 0 && reclaims * read * u128::from(case.requests) >= costs;
        prop_assert_eq!(case.payback().is_expected(), is_worth);
    }

    #[test]
    fn who_expects_more_requests_compacts_no_later(case in case(), more in 0_u64..1_000) {
        let later = Case { requests: case.requests + more, ..case };
        prop_assert!(later.payback().is_expected() || !case.payback().is_expected());
    }

    #[test]
    fn on_a_cold_cache_it_pays_no_later_and_without_a_model_at_once(case in case()) {
        let [warm, cold] = [Cache::Warm, Cache::Cold].map(|cache| Case { cache, ..case }.payback());
        if let (Some(warm), true) = (warm.after_requests, case.prices.write >= case.prices.read) {
            prop_assert!(cold.after_requests.is_some_and(|cold| cold <= warm.max(1)), "{:?} {}", cold, warm);
        }
        let free = Case { cache: Cache::Cold, made: 0, ..case };
        let pays = (case.after < case.before).then_some(0);
        prop_assert_eq!(free.payback().after_requests, pays);
        // The first request alone saves the price of this many written tokens.
        let first = case.before.saturating_sub(case.after) * u64::from(case.prices.write);
        let at_once = case.after < case.before && first >= case.made;
        prop_assert_eq!(cold.after_requests.is_some_and(|requests| requests <= 1), at_once);
    }
}

#[test]
fn a_cache_expires_after_its_lifetime_and_never_without_one() {
    let mut five_minutes = Prices::new(100, 5_000);
    five_minutes.lifetime = Some(Duration::from_secs(300));
    for (millis, cache) in [(0, Cache::Warm), (300_000, Cache::Warm), (300_001, Cache::Cold)] {
        let idle = Duration::from_millis(millis);
        assert_eq!(five_minutes.cache_after(idle), cache);
        assert_eq!(Prices::new(100, 5_000).cache_after(idle), Cache::Warm);
    }
}

#[test]
fn amounts_that_are_too_large_saturate() {
    let rule = PaybackRule::new(Prices::new(u32::MAX, u32::MAX)).with_front(u64::MAX);
    for cache in [Cache::Warm, Cache::Cold] {
        let payback = rule.with_cache(cache).payback(u64::MAX, u64::MAX, u64::MAX, u64::MAX);
        assert!(!payback.is_expected(), "{payback:?}");
    }
}
