//! Runs every case of `tests/corpus/` on every storage. `tests/corpus/README.md` describes the cases.
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a panic is how a test reports"
)]

use std::fs;
use std::path::Path;

use epitome_core::{
    Budget, IndexBuf, OpenCallTree, OpenCalls, PartSpan, Pass, Planner, Profile, SliceTable, Span, Table,
    ViolationKind,
};
use epitome_tests::applied::applied;
use epitome_tests::live::{self, Fixed, Heap};
use epitome_tests::message::Message;
use epitome_tests::naive::{self, Naive, Outcome, Request};
use epitome_tests::notation;
use epitome_tests::strategy::TestStrategy;
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    case: Vec<Case>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    why: String,
    transcript: String,
    /// Positions, a `|` between the groups.
    groups: Option<String>,
    strategy: Option<String>,
    #[serde(default = "thousand")]
    window: u64,
    #[serde(default)]
    reserve: u64,
    /// The default is the window less the reserve.
    trigger: Option<u64>,
    goal: Option<u64>,
    /// Tokens that a proactive pass must free. Without this field the pass is manual.
    min_reclaim: Option<u64>,
    /// One letter a group, or `unchanged: why`, or `infeasible`.
    verdicts: Option<String>,
    /// The parts that an `E` shortens: message and place in it.
    shortened: Option<String>,
    /// The kind of the pass, if it is not the kind that follows from `min_reclaim`.
    pass: Option<String>,
    /// The profile whose violations `before` and `after` list.
    #[serde(default = "openai_chat")]
    profile: String,
    /// The violations of all visible messages.
    #[serde(default)]
    before: Vec<String>,
    /// The violations of the messages that the plan leaves.
    #[serde(default)]
    after: Vec<String>,
    /// Whether the fixed storage has no room for the case.
    #[serde(default)]
    full: bool,
}

fn openai_chat() -> String {
    "openai-chat".into()
}

const fn thousand() -> u64 {
    1_000
}

#[test]
fn every_case_on_every_storage() {
    let mut failures = Vec::new();
    let cases = load();
    for case in &cases {
        let messages = notation::parse(&case.transcript).unwrap();
        let mut room = vec![Span::default(); messages.len()];
        let mut parts = vec![PartSpan::default(); messages.iter().map(|message| message.parts.len()).sum()];
        let parts = SliceTable::new(&mut parts);
        let slice = IndexBuf::with_parts(SliceTable::new(&mut room), OpenCallTree::new(), parts);
        let (heap, fixed): (Heap, Fixed) = (live::empty(), live::empty());
        let found = [
            ("heap", run(heap, case, &messages)),
            ("slice", run(slice, case, &messages)),
            ("fixed", run(fixed, case, &messages)),
        ];
        for (storage, result) in found {
            let full = case.full && storage == "fixed";
            match result {
                Err(why) if !full || why != "full" => {
                    failures.push(format!("{} ({}) on {storage}:\n{why}", case.name, case.why));
                }
                Ok(()) if full => failures.push(format!("{} fits on {storage}", case.name)),
                _ => {}
            }
        }
    }
    println!("{} cases", cases.len());
    assert!(cases.len() >= 150, "{} cases are too few", cases.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn names_are_unique_and_reasons_given() {
    let mut names: Vec<String> = load().into_iter().map(|case| case.name).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(
        load().iter().all(|case| !case.why.is_empty() && (case.groups.is_some() || case.verdicts.is_some()))
    );
}

fn load() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    let read = |file: &std::path::PathBuf| {
        let parsed = toml::from_str::<File>(&fs::read_to_string(file).unwrap());
        parsed.unwrap_or_else(|error| panic!("{}: {error}", file.display())).case
    };
    files.iter().flat_map(read).collect()
}

fn run<S: Table<Span>, C: OpenCalls, P: Table<PartSpan>>(
    mut index: IndexBuf<S, C, P>,
    case: &Case,
    messages: &[Message],
) -> Result<(), String> {
    for message in messages {
        live::push(&mut index, message).map_err(|_| "full".to_owned())?;
    }
    let view = index.view();
    if let Some(expected) = &case.groups {
        let groups: Vec<String> = live::groups(view).iter().map(|group| words(&group.positions)).collect();
        same("groups", &groups.join(" | "), expected)?;
    }
    let profile = Profile::by_name(&case.profile).ok_or("no such profile")?;
    let before = breaches(messages, &live::flat(view.projection()), |all| live::violations(profile, all));
    same("before", &before, &case.before.join(", "))?;
    let Some(expected) = &case.verdicts else { return Ok(()) };
    let request = case.request();
    let mut planner = Planner::new();
    let outcome = live::plan(view, &request);
    same("twin", &format!("{outcome:?}"), &format!("{:?}", naive::plan(&Naive::new(messages), &request)))?;
    let planned = planner.plan(view, &request.budget, request.pass, &request.strategy);
    match (&outcome, planned) {
        (Outcome::Planned(plan), Ok(_)) => {
            same("verdicts", &plan.verdicts, expected)?;
            let parts: Vec<String> =
                plan.shortened.iter().map(|(at, part, _)| format!("{at}.{part}")).collect();
            if plan.verdicts.contains('E') || case.shortened.is_some() {
                same("shortened", &parts.join(" "), case.shortened.as_deref().unwrap_or_default())?;
            }
            let edit = u32::try_from(plan.stable).unwrap();
            let stored = applied(messages, view, &request, false).unwrap().messages;
            let shown = plan.shown(&live::flat(view.projection()));
            let after = breaches(&stored, &shown, |all| live::violations_after(profile, edit, all));
            same("after", &after, &case.after.join(", "))
        }
        (Outcome::Unchanged(why), Ok(_)) => same("verdicts", &format!("unchanged: {why}"), expected),
        _ => same("verdicts", "infeasible", expected),
    }
}

impl Case {
    fn request(&self) -> Request {
        let budget = Budget::builder().window(self.window).reserve(self.reserve);
        let budget = budget.trigger(self.trigger.unwrap_or(self.window - self.reserve));
        let budget = budget.min_reclaim(self.min_reclaim.unwrap_or(0));
        let budget = match self.goal {
            Some(goal) => budget.goal(goal),
            None => budget.without_goal(),
        };
        let by_default = if self.min_reclaim.is_some() { Pass::Proactive } else { Pass::Manual };
        let named = |name: &String| Pass::ALL.into_iter().find(|pass| pass.as_str() == name).unwrap();
        let pass = self.pass.as_ref().map_or(by_default, named);
        let strategy: TestStrategy = self.strategy.as_deref().unwrap_or("truncate").parse().unwrap();
        Request { budget: budget.build().unwrap(), pass, strategy }
    }
}

/// The violations of a request, by the positions of its messages in the conversation.
fn breaches(
    messages: &[Message],
    projection: &[usize],
    violations: impl Fn(&[Message]) -> Vec<(u32, ViolationKind)>,
) -> String {
    let request: Vec<Message> = projection.iter().map(|at| messages[*at].clone()).collect();
    let found = violations(&request);
    let found = found.iter().map(|(at, kind)| format!("{} {}", projection[*at as usize], kind.as_str()));
    found.collect::<Vec<_>>().join(", ")
}

fn words(positions: &[usize]) -> String {
    positions.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

fn same(what: &str, is: &str, should: &str) -> Result<(), String> {
    if is == should { Ok(()) } else { Err(format!("  {what} is     {is}\n  {what} should {should}")) }
}
