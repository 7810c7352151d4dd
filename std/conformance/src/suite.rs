//! The suite, which runs the scenarios.

use core::any::Any;
use core::panic::AssertUnwindSafe;
use std::collections::BTreeMap;

use futures::FutureExt;
use futures::future::BoxFuture;

use super::room::Room;
use super::table::SCENARIOS;
use super::{Report, ScenarioOutcome, Subject};

/// One rule of the contract.
pub(super) struct Scenario {
    /// Group of the rule.
    pub(super) group: &'static str,
    /// The rule as a sentence.
    pub(super) name: &'static str,
    /// Panics if the store violates the rule.
    pub(super) run: for<'a> fn(&'a Room<'a>) -> BoxFuture<'a, ()>,
}

/// The scenarios to run, with their settings.
///
/// ```
/// use std::sync::Arc;
///
/// use epitome_conformance::{OneStore, Suite};
/// use epitome_history::MemoryStore;
///
/// # futures::executor::block_on(async {
/// let report = Suite::new().with_cases(20).run(&OneStore::new(Arc::new(MemoryStore::new()))).await;
/// report.assert_passed();
/// # });
/// ```
#[derive(Debug, Clone)]
pub struct Suite {
    skips: BTreeMap<String, String>,
    cases: u32,
}

impl Default for Suite {
    fn default() -> Self {
        Self { skips: BTreeMap::new(), cases: 200 }
    }
}

impl Suite {
    /// Makes a suite of all scenarios, without skips.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Declares that the store does not support the scenario `name`, or the scenarios of the group `name`, with the
    /// reason. An unknown name fails, and so does a skip without a reason.
    ///
    /// Skip `undo` for a store without uncompacts, `prune` for a store without prunes, `ends` for a store that does not
    /// group entries at the end, `times` for a store without times, and `states` for a store without states.
    #[must_use]
    pub fn with_skip(mut self, name: impl Into<String>, reason: impl Into<String>) -> Self {
        let (name, reason) = (name.into(), reason.into());
        let of_group = Self::scenarios().filter(|(group, _)| *group == name);
        let mut scenarios: Vec<_> = of_group.map(|(_, scenario)| scenario.to_owned()).collect();
        if scenarios.is_empty() {
            scenarios.push(name);
        }
        self.skips.extend(scenarios.into_iter().map(|scenario| (scenario, reason.clone())));
        self
    }

    /// Sets the number of random sequences of operations that are compared with the naive twin, 200 by default. The
    /// sequences are the same in each run.
    #[must_use]
    pub const fn with_cases(mut self, cases: u32) -> Self {
        self.cases = cases;
        self
    }

    /// The groups and the names of all scenarios, in the order of execution.
    pub fn scenarios() -> impl Iterator<Item = (&'static str, &'static str)> {
        SCENARIOS.iter().map(|scenario| (scenario.group, scenario.name))
    }

    /// Runs every scenario, one after another.
    pub async fn run(&self, subject: &dyn Subject) -> Report {
        let mut report = Report::default();
        for unknown in self.skips.keys().filter(|skip| Self::scenarios().all(|(_, name)| name != *skip)) {
            report.add(
                unknown,
                ScenarioOutcome::Failed("there is no scenario and no group of this name to skip".to_owned()),
            );
        }
        for scenario in SCENARIOS {
            report.add(scenario.name, self.outcome(scenario, subject).await);
        }
        report
    }

    /// Runs only the scenario `name`.
    pub async fn run_one(&self, name: &str, subject: &dyn Subject) -> Report {
        let mut report = Report::default();
        let outcome = match SCENARIOS.iter().find(|scenario| scenario.name == name) {
            Some(scenario) => self.outcome(scenario, subject).await,
            None => ScenarioOutcome::Failed("there is no such scenario".to_owned()),
        };
        report.add(name, outcome);
        report
    }

    async fn outcome(&self, scenario: &Scenario, subject: &dyn Subject) -> ScenarioOutcome {
        match self.skips.get(scenario.name).map(|why| why.trim()) {
            Some("") => return ScenarioOutcome::Failed("skipped without a reason".to_owned()),
            Some(why) => return ScenarioOutcome::Skipped(why.to_owned()),
            None => {}
        }
        let room = match Room::open(subject, scenario.name, self.cases).await {
            Ok(room) => room,
            Err(error) => return ScenarioOutcome::Failed(format!("the store was not opened: {error}")),
        };
        let ran = AssertUnwindSafe((scenario.run)(&room)).catch_unwind().await;
        let cleaned = AssertUnwindSafe(room.clean()).catch_unwind().await;
        match (ran, cleaned) {
            (Err(panic), _) | (_, Err(panic)) => ScenarioOutcome::Failed(said(&*panic)),
            (Ok(()), Ok(Err(error))) => {
                ScenarioOutcome::Failed(format!("its sessions were not deleted: {error}"))
            }
            (Ok(()), Ok(Ok(()))) => ScenarioOutcome::Passed,
        }
    }
}

/// The text of a panic.
pub(super) fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without words").to_owned()
}
