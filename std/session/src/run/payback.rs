//! The rule that a compaction has to pay, at one point of a run, and the time at which a cache expires.

use core::time::Duration;

use super::live::Run;
use super::{Point, RunSettings};
use crate::compaction::PaybackRule;
use crate::history::Timestamp;
use crate::models::Cache;
use crate::session::AgentSession;

impl Run<'_> {
    /// The rule, if there is one, with the tokens in front of the history and the state of the provider's cache.
    pub(super) fn payback_at(&self, point: Point) -> Option<PaybackRule> {
        let rule =
            PaybackRule::new(self.settings.prices()?).with_requests(self.compaction.as_ref()?.payback?);
        // Instructions are in the index of the whole request, and not in the index of the stored history.
        let front = match point {
            Point::BeforeCall => self.tokens_beside,
            _ => self.tokens_beside.saturating_add(self.instruction_tokens),
        };
        Some(rule.with_front(front).with_cache(self.cache(&rule)))
    }

    /// The state of the cache for the last request. If the time of that request is unknown, the cache counts as warm.
    fn cache(&self, rule: &PaybackRule) -> Cache {
        let Some(requested) = self.session.requested else { return Cache::Warm };
        let idle = (self.settings.clock)().0.saturating_sub(requested.0);
        rule.prices.cache_after(Duration::from_millis(idle))
    }

    /// Records the time of a request, if its provider publishes how long it caches a request.
    pub(super) fn note_request(&mut self) {
        if self.settings.cache_lifetime().is_some() {
            self.session.requested = Some((self.settings.clock)());
        }
    }
}

impl RunSettings {
    /// The time at which the provider's cache of the session's latest request expires. An earlier request pays less for
    /// its beginning; a later one pays for all of it. Tell the user before that time, or compact
    /// ([`AutoCompaction::with_payback`](crate::compaction::AutoCompaction::with_payback)).
    ///
    /// `None` if no request was made, or if the model's provider publishes no lifetime. The time is that of
    /// [`RunSettings::clock`], in milliseconds. The lifetime is that of the table of models, which names its source.
    ///
    /// ```
    /// use epitome_std::history::Timestamp;
    /// use epitome_std::message::Message;
    /// use epitome_std::run::{ModelResponse, Run, RunOptions, RunSettings};
    /// use epitome_std::session::AgentSession;
    ///
    /// # futures::executor::block_on(async {
    /// let settings = RunSettings::new("helper").with_model("claude-sonnet-4-5").with_clock(|| Timestamp(60_000));
    /// let mut session = AgentSession::new();
    /// assert_eq!(settings.cache_expires_at(&session), None);
    /// let options = RunOptions::default();
    /// let mut run = Run::begin(&settings, &mut session, vec![Message::user("Hi")], &options).await?;
    /// let prompt = run.prompt().await?;
    /// run.record(prompt.handle, ModelResponse::new(vec![Message::assistant("Hello.")])).await?;
    /// run.finish().await?;
    /// assert_eq!(settings.cache_expires_at(&session), Some(Timestamp(60_000 + 300_000)), "five minutes later");
    /// # Ok::<(), epitome_std::run::RunError>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn cache_expires_at(&self, session: &AgentSession) -> Option<Timestamp> {
        let lifetime = u64::try_from(self.cache_lifetime()?.as_millis()).ok()?;
        Some(Timestamp(session.requested?.0.saturating_add(lifetime)))
    }

    fn cache_lifetime(&self) -> Option<Duration> {
        self.prices()?.lifetime
    }
}
