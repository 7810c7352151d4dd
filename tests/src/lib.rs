//! Test support.

/// How many cases a property runs: `EPITOME_CASES`, or `default`.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the one place where tests read their environment")]
pub fn cases(default: u32) -> u32 {
    std::env::var("EPITOME_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(default)
}
