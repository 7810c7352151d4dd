//! The report of a suite: the outcome of each scenario.

use core::fmt;

/// The outcomes of the scenarios, one by one.
#[derive(Debug, Clone, Default)]
pub struct Report {
    outcomes: Vec<(String, ScenarioOutcome)>,
}

/// The outcome of one scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ScenarioOutcome {
    /// The store fulfils the contract.
    Passed,
    /// The store violates the contract: the text of the failed assertion.
    Failed(String),
    /// The suite declares that the store does not support it: the reason.
    Skipped(String),
}

impl Report {
    pub(super) fn add(&mut self, scenario: &str, outcome: ScenarioOutcome) {
        self.outcomes.push((scenario.to_owned(), outcome));
    }

    /// Each scenario with its outcome.
    pub fn outcomes(&self) -> impl Iterator<Item = (&str, &ScenarioOutcome)> {
        self.outcomes.iter().map(|(scenario, outcome)| (scenario.as_str(), outcome))
    }

    /// The scenarios that failed, with the reasons.
    pub fn failures(&self) -> impl Iterator<Item = (&str, &str)> {
        self.outcomes().filter_map(|(scenario, outcome)| match outcome {
            ScenarioOutcome::Failed(why) => Some((scenario, why.as_str())),
            _ => None,
        })
    }

    /// Number of scenarios that passed.
    #[must_use]
    pub fn passed(&self) -> usize {
        self.outcomes().filter(|(_, outcome)| **outcome == ScenarioOutcome::Passed).count()
    }

    /// Fails the test if a scenario has failed.
    ///
    /// # Panics
    /// If a scenario has failed. The message names all of them.
    #[track_caller]
    pub fn assert_passed(&self) {
        assert!(self.failures().next().is_none(), "{self}");
    }
}

/// One line for each scenario that did not pass, and one with the totals.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (scenario, outcome) in self.outcomes() {
            match outcome {
                ScenarioOutcome::Passed => {}
                ScenarioOutcome::Failed(why) => writeln!(f, "FAILED {scenario}: {why}")?,
                ScenarioOutcome::Skipped(why) => writeln!(f, "skipped {scenario}: {why}")?,
            }
        }
        let (all, failed) = (self.outcomes.len(), self.failures().count());
        let skipped = all.saturating_sub(failed).saturating_sub(self.passed());
        write!(f, "{} of {all} scenarios passed, {failed} failed, {skipped} were skipped", self.passed())
    }
}
