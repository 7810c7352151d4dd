//! Running the scenarios.

use core::any::Any;
use core::panic::AssertUnwindSafe;
use std::collections::BTreeMap;

use futures::FutureExt;
use futures::future::BoxFuture;

use super::room::Room;
use super::table::SCENARIOS;
use super::{Report, ScenarioOutcome, Subject};

/// One sentence of the contract.
pub(super) struct Scenario {
    /// Subject of the sentence.
    pub(super) group: &'static str,
    /// The sentence.
    pub(super) name: &'static str,
    /// Panics where a store does something else.
    pub(super) run: for<'a> fn(&'a Room<'a>) -> BoxFuture<'a, ()>,
}

/// The scenarios, as they are to be run.
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
    /// All scenarios, none skipped.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Declares that the store cannot do what the scenario `name` says, or those of the group `name`, and why. A name that is not there
    /// fails, and so does a skip without a reason.
    ///
    /// A store that does not undo compactions skips `undo`, and one that does not delete what is hidden, `prune`. One that does not
    /// group what it appends at the end skips `ends`. One that knows no times skips `times`, and one that keeps nothing beside the
    /// log, `states`.
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

    /// Compares `cases` series of operations with the naive twin's answers, instead of 200. They are the same series each time.
    #[must_use]
    pub const fn with_cases(mut self, cases: u32) -> Self {
        self.cases = cases;
        self
    }

    /// The groups and the names of all scenarios, in the order in which they are run.
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

    /// Runs the scenario named `name` alone.
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
