//! Settings that an agent's model decides: window, reserve, counter, profile and prices. The other settings of runs are in `settings`.

use std::sync::Arc;

use epitome_core::{Budget, ClassEstimator, ModelKey, Profile, TokenCounter, WINDOW_DEFAULT};
use tracing::{debug, warn};

use super::RunSettings;
use crate::compaction::CompactionOptions;
use crate::message::Str;
use crate::models::{Model, ModelCounter, Models, Prices, reserve_of};

impl RunSettings {
    /// Sets the provider whose rules requests must follow. The default is that of the model.
    #[must_use]
    pub const fn with_profile(mut self, profile: Profile) -> Self {
        self.profile = Some(profile);
        self
    }

    /// Sets the model by name, with the figures that [`Models::builtin`] has for it.
    #[must_use]
    pub fn with_model(mut self, model: impl Into<Str>) -> Self {
        self.model = model.into();
        match self.has_own_row {
            true => self,
            false => {
                let row = Models::builtin().find(&self.model).inspect_err(|error| {
                    warn!(window = WINDOW_DEFAULT, "{error}; the window is taken to be the default one");
                });
                let row = row.ok().cloned();
                self.with_row(row)
            }
        }
    }

    /// Sets the figures of the model in place of those of [`Models::builtin`]. If no model was named yet, this names it.
    ///
    /// ```
    /// use epitome_std::models::Model;
    /// use epitome_std::run::RunSettings;
    ///
    /// let settings = RunSettings::new("helper").with_model_row(Model::new("local-model", 16_000));
    /// assert_eq!((settings.model(), settings.budget().window()), ("local-model", 16_000));
    /// assert_eq!(settings.budget().trigger(), 12_480);
    /// ```
    #[must_use]
    pub fn with_model_row(mut self, row: Model) -> Self {
        if self.model.is_empty() {
            self.model = row.name.as_str().into();
        }
        self.has_own_row = true;
        self.with_row(Some(row))
    }

    fn with_row(mut self, row: Option<Model>) -> Self {
        self.model_counter = match &row {
            // Without its tokenizer, the framing and the rules for media are still the model's.
            Some(row) => Arc::new(row.counter().unwrap_or_else(|error| {
                debug!(%error, "the estimator counts for the model");
                ModelCounter::over(Box::new(ClassEstimator::new()), row)
            })),
            None => Arc::new(ClassEstimator::new()),
        };
        self.row = row;
        self
    }

    /// Sets the token counter. The default is the model's. Histories count with it too, unless they have one of their own
    /// ([`HistoryProvider::with_counter`](crate::provider::HistoryProvider::with_counter)).
    #[must_use]
    pub fn with_counter(mut self, counter: Arc<dyn TokenCounter + Send + Sync>) -> Self {
        self.own_counter = Some(counter);
        self
    }

    /// The name of the model; empty if none was named. Corrections of the counts of one model do not apply to another.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.model
    }

    /// The figures of the model, if they are known.
    #[must_use]
    pub const fn model_row(&self) -> Option<&Model> {
        self.row.as_ref()
    }

    /// The rules that requests follow: those that were set, else those of the model, else those of Chat Completions.
    #[must_use]
    pub fn profile(&self) -> Profile {
        self.profile.or_else(|| self.row.as_ref().map(|row| row.profile)).unwrap_or(Profile::OpenaiChat)
    }

    /// The counter of runs and their histories: the one that was set, else that of the model, else the estimator. If the model's
    /// tokenizer is not compiled in, the estimator counts with the model's framing.
    #[must_use]
    pub fn counter(&self) -> &Arc<dyn TokenCounter + Send + Sync> {
        self.own_counter.as_ref().unwrap_or(&self.model_counter)
    }

    /// The budget of the model alone: that of [`Model::budget`], or the default one without a model.
    ///
    /// [`RunSettings::with_model_row`] sets another window. [`Run::budget`](crate::run::Run::budget) is the budget of a
    /// run, with the window and the reserve of its [`CompactionOptions`].
    #[must_use]
    pub fn budget(&self) -> Budget {
        match &self.row {
            Some(row) => row.budget().unwrap_or_else(|_| self.budget_of(row.window, None, None)),
            None => Budget::default(),
        }
    }

    /// The budget of a request under these options.
    pub(in crate::run) fn budget_under(&self, options: Option<&CompactionOptions>) -> Budget {
        let window = options.and_then(CompactionOptions::window);
        match (window, options.and_then(CompactionOptions::reserve)) {
            (None, None) => self.budget(),
            (window, reserve) => {
                self.budget_of(window.unwrap_or_else(|| self.budget().window()), reserve, None)
            }
        }
    }

    /// The budget of a request to a model with `window` tokens. `reserve` tokens of the window stay free, and the
    /// request keeps `answer_max` tokens for its answer.
    pub(in crate::run) fn budget_of(
        &self,
        window: u64,
        reserve: Option<u64>,
        answer_max: Option<u64>,
    ) -> Budget {
        // Two is the smallest window that has a trigger and a goal.
        let window = window.max(2);
        let row = self.row.as_ref();
        let default = reserve_of(window, row.and_then(|row| row.output_max));
        // Tokens above the model's maximum input are not available to a request.
        let beside = row.and_then(|row| row.input_max).map_or(0, |most| window.saturating_sub(most));
        // An answer limit of nearly the whole window is the caller's mistake: the provider reports it.
        let answer = answer_max.map_or(0, |most| most.min(window.saturating_sub(window / 8)));
        let reserve = reserve.unwrap_or(default).min(window / 2).max(beside).max(answer);
        let reserve = reserve.min(window.saturating_sub(1));
        Budget::builder().window(window).reserve(reserve).build().unwrap_or_default()
    }

    /// The prices of the model, if they are known.
    pub(in crate::run) fn prices(&self) -> Option<Prices> {
        self.row.as_ref()?.prices
    }

    pub(in crate::run) fn model_key(&self) -> ModelKey {
        ModelKey::new(&self.model, &**self.counter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_never_has_more_than_the_model_takes() {
        let gpt_5 = RunSettings::new("a").with_model("gpt-5");
        // It takes 272,000 tokens of input, whatever else its window has.
        let limits = [(400_000, None), (400_000, Some(2_000)), (280_192, Some(0)), (280_192, Some(20_000))]
            .map(|(window, reserve)| gpt_5.budget_of(window, reserve, None).limit());
        assert_eq!(limits, [272_000, 272_000, 272_000, 260_192]);
        assert_eq!(gpt_5.budget().limit(), 272_000);
    }

    #[test]
    fn what_the_answer_may_have_is_kept_free_but_never_all() {
        let unknown = RunSettings::new("a");
        let limit = |answer_max| unknown.budget_of(128_000, None, Some(answer_max)).limit();
        assert_eq!(
            [0, 8_192, 100_000, 128_000, u64::MAX].map(limit),
            [119_808, 119_808, 28_000, 16_000, 16_000]
        );
    }

    #[test]
    fn a_window_that_is_too_small_for_a_budget_is_not_taken_for_the_default() {
        for window in [0, 1, 2, 3, 7] {
            let settings = RunSettings::new("a").with_model_row(Model::new("tiny", window));
            assert_eq!(settings.budget().window(), window.max(2));
            let options = CompactionOptions::default().with_window(window).with_reserve(u64::MAX);
            assert_eq!(RunSettings::new("a").budget_under(Some(&options)).window(), window.max(2));
        }
    }

    #[test]
    fn the_order_in_which_things_are_set_is_no_matter() {
        let counter: Arc<dyn TokenCounter + Send + Sync> = Arc::new(ClassEstimator::new());
        let row = Model::new("own", 16_000);
        let first = RunSettings::new("a")
            .with_profile(Profile::Gemini)
            .with_counter(Arc::clone(&counter))
            .with_model_row(row.clone())
            .with_model("claude-sonnet-4-5");
        let last = RunSettings::new("a")
            .with_model("claude-sonnet-4-5")
            .with_model_row(row)
            .with_counter(counter)
            .with_profile(Profile::Gemini);
        for settings in [first, last] {
            let told = (settings.model(), settings.profile(), settings.budget().window());
            assert_eq!(told, ("claude-sonnet-4-5", Profile::Gemini, 16_000));
            assert_eq!(settings.counter().name(), ClassEstimator::NAME);
        }
    }
}
