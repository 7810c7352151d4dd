//! Results of each strategy on transcripts at each goal:
//! `cargo run --release -p epitome-benches --bin grid -- FOLDER...`
//!
//! Shows the cost of a goal with each strategy; matters because a smaller request is worth little if the lost work has
//! to be repeated, or if the cache of the provider is lost too. Without a folder, the program takes the examples of
//! this repository. Sizes are estimates; a summary or digest that is not yet written counts with its maximum size.

#![expect(clippy::print_stdout, reason = "a command-line tool: its table is its output")]
#![expect(clippy::unwrap_used, reason = "a measurement that cannot be made ends the run")]

use std::fs;
use std::path::{Path, PathBuf};

use epitome::compactors::{SpecTexts, StrategySpec};
use epitome::core::{
    Budget, ClassEstimator, GroupKind, Index, IndexBuf, OpenCallTree, Outcome, PartSpan, Pass, PlanError,
    Planner, Span, Verdict,
};
use epitome::message::Message;
use epitome::tokens::measure_with_parts;
use epitome::wire::document::Pointer;
use epitome::wire::{ReadOptions, read};

const STRATEGIES: &[&str] = &[
    "truncate",
    "window",
    "tool-results",
    "tool-results:keep=0:clear-inputs",
    "supersede",
    "tool-drop",
    "tool-digest",
    "clamp:max=500",
    "summarize",
    "tool-results | truncate",
    "supersede | tool-results | truncate",
    "tool-results | summarize",
    "tool-drop | truncate",
];

const GOALS: &[u64] = &[75, 50, 25, 10];

/// Pointers to conversations in documents that are not conversations themselves.
const PLACES: &[&str] = &["", "/traj", "/body/messages"];

/// Sums over the remaining messages of all conversations.
#[derive(Debug, Default)]
struct Left {
    tokens: u64,
    users: u64,
    exchanges: u64,
    stable: u64,
    missed: usize,
    infeasible: usize,
}

fn main() {
    let folders: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let mut conversations = Vec::new();
    for folder in if folders.is_empty() { vec![examples] } else { folders } {
        gather(&folder, &mut conversations);
    }
    assert!(!conversations.is_empty(), "there is no conversation in these folders");
    let before =
        conversations.iter().map(|messages| Left::of_all(messages)).fold(Left::default(), Left::with);
    println!(
        "{} conversations, {} tokens, {} user messages, {} exchanges with tools\n",
        conversations.len(),
        before.tokens,
        before.users,
        before.exchanges
    );
    println!(
        "| strategy | goal | tokens after | user messages | exchanges | stable prefix | goal missed | infeasible |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|");
    for strategy in STRATEGIES {
        let spec: StrategySpec = strategy.parse().unwrap();
        for goal in GOALS {
            let left = conversations.iter().map(|messages| Left::of(messages, &spec, *goal));
            let left = left.fold(Left::default(), Left::with);
            println!(
                "| `{}` | {goal} % | {} | {} | {} | {} | {} | {} |",
                strategy.replace('|', "\\|"),
                share(left.tokens, before.tokens),
                share(left.users, before.users),
                share(left.exchanges, before.exchanges),
                share(left.stable, before.tokens),
                left.missed,
                left.infeasible
            );
        }
    }
}

type Table = IndexBuf<Vec<Span>, OpenCallTree, Vec<PartSpan>>;

fn index(messages: &[Message], mut texts: SpecTexts) -> (Table, SpecTexts) {
    let (mut index, counter) = (Table::default(), ClassEstimator::new());
    for (position, message) in (0..).zip(messages) {
        let (amount, parts) = measure_with_parts(message, &counter);
        let size = |ordinal: u32, _: epitome::core::message::PartView<'_>| {
            parts.get(ordinal as usize).copied().unwrap_or_default()
        };
        index.push_with_parts(message, amount.tokens, size).unwrap();
        texts.look_through(position, message);
    }
    (index, texts)
}

impl Left {
    fn of_all(messages: &[Message]) -> Self {
        let (index, _) = index(messages, SpecTexts::default());
        let mut left = Self::kept(index.view(), |_| Verdict::Keep);
        (left.tokens, left.stable) = (index.view().tokens(), index.view().tokens());
        left
    }

    /// The remaining messages after a plan with a goal of so many percent.
    fn of(messages: &[Message], spec: &StrategySpec, goal: u64) -> Self {
        let (index, texts) = index(messages, spec.texts());
        let (view, strategy) = (index.view(), spec.strategy(texts));
        let tokens = view.tokens();
        let (limit, goal) = (tokens.max(2), (tokens * goal / 100).min(tokens.saturating_sub(1).max(1)));
        let budget = Budget::builder().window(limit).reserve(0).trigger(limit).goal(goal).min_reclaim(0);
        let mut planner = Planner::new();
        match planner.plan(view, &budget.build().unwrap(), Pass::Manual, &strategy) {
            Ok(Outcome::Planned(plan)) => {
                let mut left = Self::kept(view, |group| plan.verdict(group));
                (left.tokens, left.stable) = (plan.tokens_after(), plan.stable_prefix().tokens);
                assert!(left.tokens < tokens && left.stable <= left.tokens, "a plan shrinks the request");
                left.missed = usize::from(plan.is_goal_missed());
                left
            }
            Ok(Outcome::Unchanged(_)) => {
                Self { missed: usize::from(tokens > goal), ..Self::of_all(messages) }
            }
            Err(PlanError::Infeasible(_)) => Self { infeasible: 1, ..Self::of_all(messages) },
            Err(error) => unreachable!("{error}"),
        }
    }

    fn kept(index: Index<'_>, verdict: impl Fn(&epitome::core::Group<'_>) -> Verdict) -> Self {
        let kept = |kind| {
            let all = index.groups().filter(|group| verdict(group) == Verdict::Keep);
            all.filter(|group| group.kind() == kind).count() as u64
        };
        Self { users: kept(GroupKind::User), exchanges: kept(GroupKind::Exchange), ..Self::default() }
    }

    fn with(self, other: Self) -> Self {
        Self {
            tokens: self.tokens + other.tokens,
            users: self.users + other.users,
            exchanges: self.exchanges + other.exchanges,
            stable: self.stable + other.stable,
            missed: self.missed + other.missed,
            infeasible: self.infeasible + other.infeasible,
        }
    }
}

fn share(part: u64, whole: u64) -> String {
    if whole == 0 { "-".to_owned() } else { format!("{:.1} %", part as f64 * 100.0 / whole as f64) }
}

/// Collects every readable conversation of every file. Of a file with several conversations it takes the active one, or
/// one from each line.
fn gather(path: &Path, conversations: &mut Vec<Vec<Message>>) {
    if path.is_dir() {
        let mut paths: Vec<_> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        return paths.iter().for_each(|path| gather(path, conversations));
    }
    let Ok(text) = fs::read_to_string(path) else { return };
    for place in PLACES {
        let options = match place {
            &"" => ReadOptions::default(),
            place => ReadOptions::default().with_at(Pointer::parse(place).unwrap()),
        };
        for options in [options.clone(), options.with_each()] {
            let Ok(transcript) = read(text.as_str(), &options) else { continue };
            let all =
                transcript.conversations().iter().map(|one| one.messages().cloned().collect::<Vec<_>>());
            let before = conversations.len();
            conversations.extend(all.filter(|messages| messages.len() > 1));
            if conversations.len() > before {
                return;
            }
        }
    }
}
