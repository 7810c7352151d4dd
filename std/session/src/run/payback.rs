//! The rule that a compaction has to pay, as it stands at a point of a run, and the time at which a cache is lost.

use core::time::Duration;

use super::live::Run;
use super::{Point, RunSettings};
use crate::compaction::PaybackRule;
use crate::history::Timestamp;
use crate::models::Cache;
use crate::session::AgentSession;

impl Run<'_> {
    /// The rule, if there is one, with what stands in front of the history and the state of the provider's cache.
    pub(super) fn payback_at(&self, point: Point) -> Option<PaybackRule> {
        let rule =
            PaybackRule::new(self.settings.prices()?).with_requests(self.compaction.as_ref()?.payback?);
        // Instructions are in the index of all that is sent, and not in that of what is stored.
        let front = match point {
            Point::BeforeCall => self.tokens_beside,
            _ => self.tokens_beside.saturating_add(self.instruction_tokens),
        };
        Some(rule.with_front(front).with_cache(self.cache(&rule)))
    }

    /// Whether the cache still holds the last request. Where nobody knows when that was made, it does.
    fn cache(&self, rule: &PaybackRule) -> Cache {
        let Some(requested) = self.session.requested else { return Cache::Warm };
        let idle = (self.settings.clock)().0.saturating_sub(requested.0);
        rule.prices.cache_after(Duration::from_millis(idle))
    }

    /// Notes when a request is made, if its provider says how long it caches it.
    pub(super) fn note_request(&mut self) {
        if self.settings.cache_lifetime().is_some() {
            self.session.requested = Some((self.settings.clock)());
        }
    }
}

impl RunSettings {
    /// When the provider forgets what it has cached of the session's latest request. A request that is made before pays less for what it
    /// begins with; one that is made later pays for all of it. Tell the user before that time, or compact
    /// ([`AutoCompaction::with_payback`](crate::compaction::AutoCompaction::with_payback)).
    ///
    /// `None` if no request was made, or if the model's provider publishes no lifetime. The time is that of
    /// [`RunSettings::clock`], in milliseconds. The lifetime is that of the table of models, which has the source.
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
