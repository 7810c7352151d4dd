//! Invariants of every plan of every strategy, in the order of the design's list of invariants.
//!
//! Each check takes a plan as data. Therefore `tests/mutants.rs` can pass broken plans to it.

use epitome_core::attribution::{Retention, SourceKind};
use epitome_core::message::Role;
use epitome_core::{ELIDED_TOKENS_MAX, GroupKind, Pass, Pending, Profile, Strategy, ViolationKind, repair};

use crate::live;
use crate::message::{Message, Part, repaired};
use crate::naive::{Group, Naive, Planned, Protected, Request, begins_turn, claims_to_answer};
use crate::scenario::Scenario;
use crate::strategy::TestStrategy;

/// A plan, and the input that it was made from.
#[derive(Debug, Clone)]
pub struct Subject<'a> {
    /// Messages, budget, pass and strategy.
    pub scenario: &'a Scenario,
    /// The conversation in its groups.
    pub naive: Naive<'a>,
    /// The groups.
    pub groups: Vec<Group>,
    /// The request without the plan.
    pub before: Vec<usize>,
    /// The plan.
    pub plan: Planned,
}

/// A check of a plan. Its error describes the violation.
pub type Check = fn(&Subject<'_>) -> Result<(), String>;

/// All checks, with the numbers of their invariants.
pub const ALL: &[(&str, Check)] = &[
    ("1 pairing", pairing),
    ("1 repaired", is_legal_once_repaired),
    ("2 whole groups", whole_groups),
    ("2 order", order),
    ("3 open work", open_work),
    ("3 requests", requests),
    ("4 reasoning", reasoning),
    ("5 legality", legality),
    ("5 a user message", user_message),
    ("6 instructions", instructions),
    ("7 task", task),
    ("8 summaries", summaries),
    ("9 progress", progress),
    ("11 pins", pins),
    ("14 tokens", tokens),
    ("14 shortened", shortened),
    ("14 floors", floors),
];

impl<'a> Subject<'a> {
    /// A plan for a scenario.
    #[must_use]
    pub fn new(scenario: &'a Scenario, plan: Planned) -> Self {
        let naive = Naive::new(&scenario.messages);
        let (groups, visible) = (naive.groups(), naive.visible());
        let before = naive.projection(&|anchor| visible.contains(&anchor));
        Self { scenario, naive, groups, before, plan }
    }

    /// The first check that fails.
    ///
    /// # Errors
    /// The name and the error of this check.
    pub fn check(&self) -> Result<(), String> {
        ALL.iter().try_for_each(|(name, check)| check(self).map_err(|why| format!("{name}: {why}")))
    }

    /// The names of all checks that fail.
    #[must_use]
    pub fn failing(&self) -> Vec<&'static str> {
        ALL.iter().filter(|(_, check)| check(self).is_err()).map(|(name, _)| *name).collect()
    }

    /// The request, with summaries and with a note of the largest size in each place where a part is shortened.
    fn request(&self) -> Vec<Message> {
        let message = |at: &usize| {
            if let Some((_, tokens)) =
                self.plan.summaries.iter().find(|(covered, _)| covered.first() == Some(at))
            {
                return Message::summary(*tokens);
            }
            let mut message = self.scenario.messages[*at].clone();
            for (_, ordinal, left) in self.plan.shortened.iter().rev().filter(|(own, ..)| own == at) {
                let reasoning = message.parts[*ordinal].is_reasoning();
                message.shorten(*ordinal, (!reasoning).then_some(*left));
            }
            message
        };
        self.plan.shown(&self.before).iter().map(message).collect()
    }

    fn holds(&self, at: usize) -> bool {
        self.plan.projection.contains(&at)
    }

    fn holds_whole(&self, at: usize) -> bool {
        self.holds(at) && !self.plan.shortened.iter().any(|(own, ..)| *own == at)
    }

    fn all_held(&self, which: impl Fn(&Group) -> bool) -> Result<(), String> {
        let lost = self.groups.iter().filter(|group| group.kind != GroupKind::Orphan && which(group));
        let mut lost = lost.filter(|group| !group.members.iter().all(|at| self.holds_whole(*at)));
        lost.next().map_or(Ok(()), |group| Err(format!("{group:?} is not held")))
    }

    fn first(&self, group: &Group) -> &Message {
        &self.scenario.messages[group.members[0]]
    }
}

fn ensure(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}

/// Every result has its call before it, and between them only messages of their own group.
fn pairing(subject: &Subject<'_>) -> Result<(), String> {
    let projection = &subject.plan.projection;
    for (place, at) in projection.iter().enumerate() {
        if !claims_to_answer(&subject.scenario.messages[*at]) {
            continue;
        }
        let call = subject.naive.answers[*at].ok_or(format!("{at} answers no call"))?;
        let host = projection[..place].iter().position(|other| *other == call.message);
        let host = host.ok_or(format!("{at} comes before its call, or without it"))?;
        let own = |other: &usize| subject.naive.anchors[*other] == subject.naive.anchors[*at];
        ensure(projection[host..place].iter().all(own), || format!("{at} stands apart from its call"))?;
    }
    Ok(())
}

fn is_legal_once_repaired(subject: &Subject<'_>) -> Result<(), String> {
    let request = subject.request();
    for profile in Profile::ALL {
        let repairs = repair(profile, &request, Pending::Over);
        let left = live::violations(profile, &repaired(&request, &repairs));
        ensure(left.is_empty(), || format!("{}: {left:?}", profile.as_str()))?;
    }
    Ok(())
}

fn whole_groups(subject: &Subject<'_>) -> Result<(), String> {
    for (group, letter) in subject.groups.iter().zip(subject.plan.verdicts.chars()) {
        let all = group.members.iter().all(|at| subject.holds(*at));
        let none = !group.members.iter().any(|at| subject.holds(*at));
        let own = subject.plan.shortened.iter().filter(|(at, ..)| group.members.contains(at));
        let edited = own.count() > 0;
        let as_said = match letter {
            'K' => all && !edited,
            'E' => all && edited,
            _ => none && !edited,
        };
        ensure(as_said, || format!("{letter} {group:?}"))?;
    }
    Ok(())
}

fn order(subject: &Subject<'_>) -> Result<(), String> {
    let kept: Vec<usize> = subject.before.iter().copied().filter(|at| subject.holds(*at)).collect();
    ensure(kept == subject.plan.projection, || format!("{:?}", subject.plan.projection))
}

/// Open work stays. Its results are cut only if the protected groups do not fit, and to no less than
/// `ELIDED_TOKENS_MAX`.
fn open_work(subject: &Subject<'_>) -> Result<(), String> {
    let Request { budget, strategy, .. } = &subject.scenario.request;
    let protected = Protected::new(&subject.naive, &subject.groups, strategy);
    let hard = subject.groups.iter().zip(&protected.hard).filter(|(_, hard)| **hard);
    let hard: u64 = hard.map(|(group, _)| subject.naive.tokens(group)).sum();
    let may_be_cut = |(at, part, left): &(usize, usize, u32)| {
        let is_result =
            matches!(subject.scenario.messages[*at].parts[*part], Part::Result(_) | Part::Sealed(_));
        is_result && hard > budget.limit() && *left >= ELIDED_TOKENS_MAX.0
    };
    let open = subject.groups.iter().filter(|group| subject.naive.is_open(group));
    for at in open.flat_map(|group| &group.members) {
        let touched = subject.plan.shortened.iter().filter(|(own, ..)| own == at);
        let held = subject.holds(*at) && touched.clone().all(may_be_cut);
        ensure(held, || format!("{at} is open, and not held"))?;
    }
    Ok(())
}

/// With each step the plan keeps the request of its turn, or makes a summary that covers the request. If an earlier
/// compaction hid the request, the summary before the step stays: it is dropped only if the newest steps do not fit.
fn requests(subject: &Subject<'_>) -> Result<(), String> {
    let shown = |group: &Group| {
        let covers = |(covered, _): &(Vec<usize>, u32)| covered.contains(&group.members[0]);
        subject.holds(group.members[0]) || subject.plan.summaries.iter().any(covers)
    };
    let asks = |group: &&Group| begins_turn(subject.first(group));
    let is_step =
        |group: &Group| matches!(group.kind, GroupKind::Assistant | GroupKind::Exchange | GroupKind::Hosted);
    let fits = subject.plan.floors.1 <= subject.scenario.request.budget.limit();
    for (at, step) in subject.groups.iter().enumerate() {
        if !is_step(step) || !subject.holds(step.members[0]) {
            continue;
        }
        let mut before = subject.groups[..at].iter().rev();
        let own = before.clone().find(|group| asks(group) && group.turn == step.turn);
        let mut summary = || before.find(|group| asks(group) || group.kind == GroupKind::Summary);
        let missing = match own {
            Some(own) => !shown(own),
            None => fits && summary().is_some_and(|group| group.kind == GroupKind::Summary && !shown(group)),
        };
        ensure(!missing, || format!("{step:?} stands without its request"))?;
    }
    Ok(())
}

/// The reasoning of the current turn stays. If the target binds reasoning (Anthropic), all old reasoning goes or none.
/// If the target requires reasoning in later requests, it stays: all of it for OpenAI Responses, that beside calls for
/// DeepSeek.
fn reasoning(subject: &Subject<'_>) -> Result<(), String> {
    let messages = &subject.scenario.messages;
    let gone =
        subject.plan.shortened.iter().filter(|(at, part, _)| messages[*at].parts[*part].is_reasoning());
    let gone: Vec<usize> = gone.map(|(at, ..)| *at).collect();
    let now = gone.iter().find(|at| subject.naive.turns[**at] == subject.naive.turn);
    ensure(now.is_none(), || format!("{now:?} is of the current turn"))?;
    for (target, keep) in targets(&subject.scenario.request.strategy) {
        ensure(target != Profile::OpenaiResponses || gone.is_empty(), || {
            format!("{gone:?} are wanted back")
        })?;
        let old = |at: &usize| {
            let held =
                messages[*at].role == Role::Assistant && messages[*at].source != SourceKind::Compaction;
            let age = subject.naive.turn - subject.naive.turns[*at];
            held && age >= keep.max(1) && messages[*at].parts.iter().any(Part::is_reasoning)
        };
        let left = subject.plan.projection.iter().find(|at| old(at) && !gone.contains(at));
        let torn = target == Profile::Anthropic && !gone.is_empty() && left.is_some();
        ensure(!torn, || format!("{gone:?} are gone, {left:?} is left"))?;
        let called = gone.iter().find(|at| !messages[**at].calls().is_empty());
        ensure(target != Profile::Deepseek || called.is_none(), || format!("{called:?} is wanted back"))?;
    }
    Ok(())
}

fn targets(strategy: &TestStrategy) -> Vec<(Profile, u32)> {
    match strategy {
        TestStrategy::Reasoning { target, keep } => vec![(*target, *keep)],
        TestStrategy::Pipeline(stages) => stages.iter().flat_map(targets).collect(),
        _ => Vec::new(),
    }
}

/// A stand-in is smaller than the part that it replaces.
fn shortened(subject: &Subject<'_>) -> Result<(), String> {
    let messages = &subject.scenario.messages;
    let size = |at: usize, part: usize| messages[at].part_size(part).0;
    let grown = subject.plan.shortened.iter().find(|(at, part, left)| {
        let reasoning = messages[*at].parts[*part].is_reasoning();
        *left >= size(*at, *part) && !(reasoning && *left == 0)
    });
    ensure(grown.is_none(), || format!("{grown:?} is not smaller"))
}

/// A plan adds no violation to a request. A call without a result is the same violation at the end of the request and
/// before it.
fn legality(subject: &Subject<'_>) -> Result<(), String> {
    let whole: Vec<Message> =
        subject.before.iter().map(|at| subject.scenario.messages[*at].clone()).collect();
    let request = subject.request();
    for profile in crate::naive::PROFILES {
        let count = |request: &[Message]| {
            let found = live::violations(profile, request);
            let of = |kinds: &[ViolationKind]| found.iter().filter(|(_, kind)| kinds.contains(kind)).count();
            [
                of(&[ViolationKind::OrphanResult]),
                of(&[ViolationKind::DuplicateResult]),
                of(&[ViolationKind::UnansweredCall, ViolationKind::PendingCall]),
            ]
        };
        let (before, after) = (count(&whole), count(&request));
        let fewer = before.iter().zip(&after).all(|(before, after)| after <= before);
        ensure(fewer, || format!("{}: {before:?} became {after:?}", profile.as_str()))?;
    }
    Ok(())
}

fn user_message(subject: &Subject<'_>) -> Result<(), String> {
    let messages = &subject.scenario.messages;
    let had = messages.iter().any(begins_turn);
    let has = subject.plan.projection.iter().any(|at| messages[*at].role == Role::User);
    ensure(!had || has, || "no user message".to_owned())
}

/// The instructions of the caller stay; with `preserve_system(false)` only those at the beginning.
fn instructions(subject: &Subject<'_>) -> Result<(), String> {
    let all = subject.scenario.request.strategy.protection().system;
    let visible = subject.groups.iter().filter(|group| group.kind != GroupKind::Orphan);
    let leading = visible.take_while(|group| group.kind == GroupKind::System).count();
    let of_caller =
        |group: &Group| group.kind == GroupKind::System && subject.first(group).source == SourceKind::Caller;
    let visible: Vec<&Group> =
        subject.groups.iter().filter(|group| group.kind != GroupKind::Orphan).collect();
    subject.all_held(|group| of_caller(group) && (all || visible[..leading].contains(&group)))
}

/// The last user message stays, and the first one if the strategy preserves it.
fn task(subject: &Subject<'_>) -> Result<(), String> {
    let mut users =
        (0..subject.scenario.messages.len()).filter(|at| begins_turn(&subject.scenario.messages[*at]));
    let first = users.next();
    let last = users.next_back().or(first);
    let first = first.filter(|_| subject.scenario.request.strategy.protection().first_user);
    let kept = [first, last].into_iter().flatten().all(|at| subject.holds_whole(at));
    ensure(kept, || format!("{first:?} or {last:?} is lost"))
}

/// Summaries replace exactly the groups with the verdict `R`, as a whole. Each replaces at least one group that is no
/// summary, and its allowance is less than the size of all its groups. For a ledger, hidden and shortened groups count
/// too. Summaries never nest: no earlier summary stands next to a replaced group, unless it is pinned.
fn summaries(subject: &Subject<'_>) -> Result<(), String> {
    let groups: Vec<(&Group, char)> = subject.groups.iter().zip(subject.plan.verdicts.chars()).collect();
    let covered = subject.plan.summaries.iter().flat_map(|(covered, _)| covered);
    let marked = groups.iter().filter(|(_, letter)| *letter == 'R').flat_map(|(group, _)| &group.members);
    let (mut covered, mut marked): (Vec<_>, Vec<_>) = (covered.collect(), marked.collect());
    covered.sort_unstable();
    marked.sort_unstable();
    ensure(covered == marked, || format!("{covered:?} in summaries, {marked:?} replaced"))?;
    let seen: Vec<_> = groups.iter().filter(|(_, letter)| *letter != 'D').collect();
    for pair in seen.windows(2) {
        let [(left, first), (right, second)] = pair else { continue };
        let loose = |group: &Group| group.kind == GroupKind::Summary && !subject.naive.is_pinned(group);
        let nests =
            *first == 'R' && *second != 'R' && loose(right) || *second == 'R' && *first != 'R' && loose(left);
        ensure(!nests, || format!("a summary stands beside a new one: {left:?}, {right:?}"))?;
    }
    let has_ledger = subject.scenario.request.strategy.leaves_a_ledger();
    let is_news = |(group, letter): &(&Group, char)| {
        has_ledger && group.kind != GroupKind::Summary && matches!(letter, 'D' | 'E')
    };
    let news = groups.iter().any(is_news);
    let gone = if has_ledger { gone(subject) } else { 0 };
    for (covered, tokens) in &subject.plan.summaries {
        let own = subject.groups.iter().filter(|group| covered.contains(&group.members[0]));
        let says = own.clone().any(|group| group.kind != GroupKind::Summary);
        let size: u64 = own.map(|group| subject.naive.tokens(group)).sum();
        ensure((says || news) && size.saturating_add(gone) > u64::from(*tokens), || {
            format!("{tokens} for {size} tokens of {covered:?}")
        })?;
    }
    Ok(())
}

/// Tokens that a plan removes: hidden groups, and the difference of each shortened part.
fn gone(subject: &Subject<'_>) -> u64 {
    let hidden =
        subject.groups.iter().zip(subject.plan.verdicts.chars()).filter(|(_, letter)| *letter == 'D');
    let hidden = hidden.map(|(group, _)| subject.naive.tokens(group)).fold(0, u64::saturating_add);
    let size = |at: usize, part: usize| u64::from(subject.scenario.messages[at].part_size(part).0);
    let cut = subject
        .plan
        .shortened
        .iter()
        .map(|(at, part, left)| size(*at, *part).saturating_sub(u64::from(*left)));
    cut.fold(hidden, u64::saturating_add)
}

fn progress(subject: &Subject<'_>) -> Result<(), String> {
    let before: u64 = subject.tokens_of(&subject.before);
    let freed = before.saturating_sub(subject.plan.tokens_after);
    let request = &subject.scenario.request;
    let least = match request.pass {
        Pass::Proactive if before <= request.budget.limit() => request.budget.min_reclaim().max(1),
        _ => 1,
    };
    ensure(freed >= least, || format!("{freed} freed, at least {least} asked for"))
}

fn pins(subject: &Subject<'_>) -> Result<(), String> {
    let pinned = |at: &usize| subject.scenario.messages[*at].retention == Retention::Pinned;
    subject.all_held(|group| group.members.iter().any(pinned))
}

/// The size that a plan states is the counted size of its request.
fn tokens(subject: &Subject<'_>) -> Result<(), String> {
    let size = |at: usize, part: usize| u64::from(subject.scenario.messages[at].part_size(part).0);
    let freed = subject
        .plan
        .shortened
        .iter()
        .map(|(at, part, left)| size(*at, *part).saturating_sub(u64::from(*left)));
    let whole = subject.tokens_of(&subject.plan.projection);
    let summaries = subject.plan.summaries.iter().map(|(_, tokens)| u64::from(*tokens));
    let counted = whole.saturating_sub(freed.sum()) + summaries.sum::<u64>();
    ensure(counted == subject.plan.tokens_after, || format!("{counted}, not {}", subject.plan.tokens_after))
}

/// The size after a plan is at least the hard floor: the protected groups are in every plan. After a strategy that goes
/// all the way, the request fits, and meets each goal that is not below the soft floor.
fn floors(subject: &Subject<'_>) -> Result<(), String> {
    let (hard, soft) = subject.plan.floors;
    let (budget, after) = (subject.scenario.request.budget, subject.plan.tokens_after);
    ensure(hard <= soft && hard <= after, || format!("floors {hard} and {soft}, but {after} after"))?;
    if !subject.scenario.request.strategy.goes_all_the_way() {
        return Ok(());
    }
    ensure(after <= budget.limit(), || format!("{after} of {} does not fit", budget.limit()))?;
    let missed = budget.goal().filter(|goal| soft <= *goal && after > *goal);
    ensure(missed.is_none(), || format!("{missed:?} missed, floor {soft}, {after} after"))
}

impl Subject<'_> {
    /// Counts from scratch. A group counts at most the largest amount, because an index cannot hold more.
    fn tokens_of(&self, projection: &[usize]) -> u64 {
        let held = |group: &&Group| group.members.iter().all(|at| projection.contains(at));
        self.groups.iter().filter(held).map(|group| self.naive.tokens(group)).sum()
    }
}
