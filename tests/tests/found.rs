//! Faults that the properties found, each as its smallest case.
#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

use epitome_compactors::{Pipeline, ReasoningClearing, SlidingWindow, Truncation, Window};
use epitome_core::attribution::SourceKind;
use epitome_core::message::Role;
use epitome_core::{
    Budget, CLAMPS_MAX, Cell, GroupKind, IndexBuf, NoParts, OpenCallSlots, Outcome, Pass, Pending, PlanError,
    Profile, Refusal, Replacement, Span, Strategy, plan, repair,
};
use epitome_tests::live;
use epitome_tests::message::{Message, Part, repaired};
use epitome_tests::naive::{Attempt, violations};
use epitome_tests::script::{Script, compare_attempts, planned};

fn budget(limit: u64, goal: Option<u64>) -> Budget {
    let budget = Budget::builder().window(limit).reserve(0).trigger(limit).min_reclaim(0);
    let budget = match goal {
        Some(goal) => budget.goal(goal),
        None => budget.without_goal(),
    };
    budget.build().unwrap()
}

fn verdicts(messages: &[Message], strategy: &dyn Strategy, budget: Budget) -> String {
    let (index, _) = live::index_of(messages);
    let mut cells = vec![Cell::default(); index.view().cell_count()];
    match plan(index.view(), &budget, Pass::Manual, strategy, &mut cells) {
        Ok(Outcome::Planned(plan)) => plan.verdicts().to_string(),
        Ok(Outcome::Unchanged(why)) => why.as_str().to_owned(),
        Err(_) => "infeasible".to_owned(),
    }
}

fn says(role: Role, tokens: u32) -> Message {
    Message::new(role, vec![Part::Text("Fine.".into())], tokens)
}

fn calls(id: &str, tokens: u32) -> Message {
    Message::new(Role::Assistant, vec![Part::Call(id.into())], tokens)
}

fn result(role: Role, id: &str, tokens: u32) -> Message {
    Message::new(role, vec![Part::Result(id.into())], tokens)
}

/// A result in instructions does not make them an answer. The caller's instructions became an orphan, and were hidden.
#[test]
fn a_result_in_instructions_does_not_make_them_an_answer() {
    let mut system = says(Role::System, 5);
    system.parts.push(Part::Result("c1".into()));
    let (index, placed) = live::index_of(&[system]);
    assert!(!placed[0].orphan);
    assert_eq!(live::groups(index.view())[0].kind, GroupKind::System);
}

/// A user message with a result begins no turn, even if it also has a text. The turn advanced without a user message in
/// it, and the request before it lost its protection.
#[test]
fn words_beside_a_result_begin_no_turn() {
    let mut answer = result(Role::User, "c1", 5);
    answer.parts.push(Part::Text("Here you are.".into()));
    let (index, _) = live::index_of(&[says(Role::User, 5), calls("c1", 5), answer, calls("c2", 5)]);
    assert_eq!(index.view().turn().0, 1);
    let (index, _) = live::index_of(&[says(Role::User, 5), result(Role::User, "", 5), says(Role::User, 5)]);
    assert_eq!(index.view().turn().0, 2);
}

/// A result in a user message is legal after its call. A repaired request was still refused.
#[test]
fn a_result_in_a_users_message_is_legal_after_its_call() {
    let request = [says(Role::User, 5), calls("c1", 5), result(Role::User, "c1", 5)];
    for profile in epitome_tests::naive::PROFILES {
        assert_eq!(live::violations(profile, &request), []);
        let repairs = repair(profile, &request, Pending::Over);
        assert_eq!(violations(profile, &repaired(&request, &repairs)), []);
    }
}

/// The stable prefix counts only its own messages. It had 40 tokens: the messages behind the first message of a later
/// run were counted with the first run of the group.
#[test]
fn a_stable_prefix_counts_just_its_messages() {
    let mut first = calls("c1", 10);
    first.response = Some("r".into());
    let mut second = calls("c2", 20);
    second.response = Some("r".into());
    let context = says(Role::User, 5).with_source(SourceKind::Context);
    let request = [first, context, second, result(Role::Tool, "c2", 30)];
    let (index, _) = live::index_of(&request);
    let budget = budget(100, Some(61));
    let mut cells = vec![Cell::default(); index.view().cell_count()];
    let outcome = plan(index.view(), &budget, Pass::Manual, &Truncation::new(), &mut cells).unwrap();
    let Outcome::Planned(plan) = outcome else { panic!("65 tokens are more than 61") };
    assert_eq!(plan.verdicts().to_string(), "KD");
    assert_eq!(plan.stable_prefix().tokens, 10);
}

/// A newest step is dropped only while the request does not fit. The result was `KDDK`: the first stage dropped one of
/// the newest steps, and then the second stage dropped the next one for its goal.
#[test]
fn the_newest_steps_go_only_as_long_as_the_request_does_not_fit() {
    let step = says(Role::Assistant, 30);
    let request = [says(Role::User, 10), step.clone(), step.clone(), step];
    let stages: [&dyn Strategy; 2] = [&Truncation::new(), &Truncation::new()];
    assert_eq!(verdicts(&request, &Pipeline::new(&stages).unwrap(), budget(80, Some(50))), "KDKK");
}

/// The newest steps are dropped last. The result was `KDKK`: a newest step was dropped, although the context after it
/// was enough.
#[test]
fn the_newest_steps_go_last() {
    let context = says(Role::User, 40).with_source(SourceKind::Context);
    let request = [says(Role::User, 10), says(Role::Assistant, 30), says(Role::Assistant, 30), context];
    assert_eq!(verdicts(&request, &Truncation::new().preserve_recent(9), budget(80, None)), "KKKD");
}

/// A window counts only visible groups. The result was `KDDDDDDKK`: orphans, which are in no request, took places of
/// the window.
#[test]
fn a_window_counts_what_is_visible() {
    let mut request = vec![says(Role::User, 10)];
    for _ in 0..2 {
        request.extend([says(Role::User, 10), says(Role::Assistant, 10)]);
    }
    request.extend([result(Role::Tool, "no such call", 10), result(Role::Tool, "nor such", 10)]);
    request.extend([says(Role::User, 10), says(Role::Assistant, 10)]);
    let window = SlidingWindow::new(Window::Groups(4));
    assert_eq!(verdicts(&request, &window, budget(100, None)), "KDDKKDDKK");
}

/// Instructions behind an orphan are still at the beginning, because an orphan is in no request. The result was `DDKK`.
#[test]
fn instructions_lead_though_an_orphan_precedes_them() {
    let orphan = result(Role::Tool, "no such call", 10);
    let request = [orphan, says(Role::System, 10), says(Role::User, 10), says(Role::Assistant, 10)];
    let strategy = Truncation::new().preserve_system(false);
    assert_eq!(verdicts(&request, &strategy, budget(29, Some(20))), "infeasible");
}

/// A reload keeps two runs of a group apart, also if the message between them is hidden. The order was 0 2 3: the two
/// runs became one, and an answer stood after the second run.
#[test]
fn a_reload_keeps_runs_apart_though_what_parted_them_is_hidden() {
    let mut first = calls("c1", 10);
    first.response = Some("r".into());
    let mut second = says(Role::Assistant, 20);
    second.response = Some("r".into());
    let context = says(Role::User, 5).with_source(SourceKind::Context);
    let request = [first, context, second, result(Role::Tool, "c1", 30)];
    let (live, placed) = live::index_of(&request);
    let visible = [0, 2, 3];
    let reloaded: live::Heap = live::restored(&request, live.open_calls(), &placed, &visible).unwrap();
    let projection = live::flat(reloaded.view().projection());
    assert_eq!(projection.iter().map(|at| visible[*at]).collect::<Vec<_>>(), [0, 3, 2]);
}

/// A reload needs no more room than the live index. The result was `Full`: the request of the second turn was hidden,
/// and the memory for calls took a call of this turn for a call of the first turn.
#[test]
fn a_reload_finds_the_room_that_live_had() {
    let request =
        [says(Role::User, 5), calls("c1", 5), says(Role::User, 5), calls("c2", 5), says(Role::User, 5)];
    let mut index = IndexBuf::<Vec<Span>, OpenCallSlots<1>>::new();
    let placed: Vec<_> = request.iter().map(|message| index.push(message, message.size()).unwrap()).collect();
    let reloaded = live::restored::<Vec<Span>, OpenCallSlots<1>, NoParts>(
        &request,
        index.open_calls(),
        &placed,
        &[0, 1, 3, 4],
    );
    assert_eq!(reloaded.map(|index| index.view().messages()).unwrap(), 4);
}

/// Among the largest groups, equally large ones keep their order. The order was 2 1 0: a displaced group came after
/// later groups of the same size.
#[test]
fn of_equal_contributors_the_first_comes_first() {
    let request = [says(Role::System, 1), says(Role::System, 1), says(Role::User, 50)];
    let (index, _) = live::index_of(&request);
    let mut cells = vec![Cell::default(); 3];
    let planned = plan(index.view(), &budget(10, Some(5)), Pass::Manual, &Truncation::new(), &mut cells);
    let Err(PlanError::Infeasible(infeasible)) = planned else { panic!("all of it is protected") };
    let positions = infeasible.largest.map(|group| group.unwrap().position);
    assert_eq!(positions, [2, 0, 1]);
}

/// A request that just fits stays whole. With one token more the result is cut, to half of the room that the rest
/// leaves.
#[test]
fn a_result_is_cut_only_where_it_does_not_fit() {
    let call = Message::new(Role::Assistant, vec![Part::Call("c".into())], 20);
    let result = Message::new(Role::Tool, vec![Part::Result("c".into())], 1_000);
    let request = [says(Role::User, 10), call, result];
    let truncation = Truncation::new();
    assert_eq!(verdicts(&request, &truncation, budget(1_030, None)), "nothing_to_drop");
    assert_eq!(verdicts(&request, &truncation, budget(1_029, None)), "KE");
    let (index, _) = live::index_of(&request);
    for (limit, goal, left) in [(1_029, None, 499), (1_029, Some(530), 250), (1_029, Some(200), 499)] {
        let mut cells = vec![Cell::default(); index.view().cell_count()];
        let planned =
            plan(index.view(), &budget(limit, goal), Pass::Manual, &truncation, &mut cells).unwrap();
        let Outcome::Planned(plan) = planned else { panic!("it does not fit") };
        assert_eq!((plan.tokens_after(), plan.floors().hard), (30 + left, 30 + left), "{goal:?}");
    }
}

/// A pipeline does in one pass everything that a later stage makes possible. The result was `KDKKDKK`, and an `E` in
/// the next pass: truncation dropped the group that had prevented the clearing of bound reasoning.
#[test]
fn a_pipeline_does_in_one_pass_what_a_later_stage_makes_possible() {
    let model = |parts| Message::new(Role::Assistant, parts, 20);
    let request = [
        says(Role::User, 10),
        model(vec![Part::Signed]),
        says(Role::User, 10),
        model(vec![Part::Signed, Part::Text("Fine.".into())]),
        says(Role::User, 10).with_source(SourceKind::Context),
        says(Role::Assistant, 10),
        says(Role::User, 10),
    ];
    let stages: [&dyn Strategy; 2] = [&ReasoningClearing::new(Profile::Anthropic), &Truncation::new()];
    assert_eq!(verdicts(&request, &Pipeline::new(&stages).unwrap(), budget(100, Some(5))), "KDKEDKK");
}

/// Outcome of a script of verdicts: its letters, its size, and each summary with its messages and its allowance.
fn scripted(messages: &[Message], attempts: &[Attempt]) -> (String, u64, Vec<(Vec<usize>, u32)>) {
    let compared = compare_attempts(messages, attempts, &mut |_, _, _| {});
    assert_eq!(compared, Ok(true), "what the twin says");
    let index = live::index_of(messages).0;
    let script = Script::new(attempts);
    let (mut cells, mut room) =
        (vec![Cell::default(); index.view().cell_count()], [Replacement::default(); 3]);
    let plan = planned(index.view(), &script, &mut cells, &mut room).unwrap();
    let summaries = plan.summaries().map(|gap| (live::flat(gap.covers()), gap.allowance.0)).collect();
    (plan.verdicts().to_string(), plan.tokens_after(), summaries)
}

fn summary(tokens: u32) -> Message {
    says(Role::System, tokens).with_source(SourceKind::Compaction)
}

/// A user message and three steps of the model, which are the newest steps.
fn ending() -> [Message; 4] {
    [says(Role::User, 1), says(Role::Assistant, 1), says(Role::Assistant, 1), says(Role::Assistant, 1)]
}

/// An earlier summary joins a new one when the instructions between them are dropped. The verdicts of the twin began
/// with `RRDDK`: it left the two summaries side by side.
#[test]
fn a_summary_from_before_joins_when_what_parted_it_goes() {
    let mut request = vec![calls("call_1", 0), summary(0), result(Role::Tool, "call_1", 34)];
    request.extend([result(Role::Tool, "stray_0", 0), says(Role::Developer, 0), summary(0)]);
    request.extend(ending());
    let attempts = [Attempt::Replace(0, 1, 0), Attempt::Drop(3)];
    let covers = vec![0, 2, 1, 5];
    assert_eq!(scripted(&request, &attempts), ("RRDDRKKKK".into(), 4, vec![(covers, 0)]));
}

/// Two new summaries join when the message between them is dropped. The twin left two summaries.
#[test]
fn two_new_summaries_join_when_what_parted_them_goes() {
    let mut request = vec![says(Role::User, 134), says(Role::User, 5), says(Role::User, 1_275)];
    request.extend(ending());
    let attempts = [Attempt::Replace(0, 0, 3), Attempt::Replace(2, 2, 4), Attempt::Drop(1)];
    assert_eq!(scripted(&request, &attempts), ("RDRKKKK".into(), 11, vec![(vec![0, 2], 7)]));
}

/// The joined summaries count at most the largest amount. The size was 4,294,967,302: more than the allowance.
#[test]
fn joined_summaries_count_as_what_one_amount_holds() {
    let mut request = vec![summary(u32::MAX), says(Role::User, 5), says(Role::User, 100)];
    request.extend(ending());
    let attempts = [Attempt::Replace(2, 2, 3), Attempt::Drop(1)];
    let size = u64::from(u32::MAX) + 4;
    assert_eq!(scripted(&request, &attempts), ("RDRKKKK".into(), size, vec![(vec![0, 2], u32::MAX)]));
}

/// A summary that joins a new one has no shortened parts. A part of a hidden message was shortened, and the plan stated
/// a size that was too small.
#[test]
fn a_summary_that_joins_is_not_shortened() {
    let mut old = calls("call_1", 10);
    old.source = SourceKind::Compaction;
    let mut request = vec![old, result(Role::Tool, "call_1", 90), says(Role::User, 5), says(Role::User, 100)];
    request.extend(ending());
    let attempts = [Attempt::Elide(0, 9), Attempt::Replace(2, 2, 3), Attempt::Drop(1)];
    assert_eq!(scripted(&request, &attempts), ("RDRKKKK".into(), 26, vec![(vec![0, 1, 3], 22)]));
}

/// A hidden group that a ledger replaces counts once. It counted twice, and a ledger that was larger than the removed
/// content was accepted.
#[test]
fn what_a_ledger_replaces_counts_once() {
    let mut request = vec![says(Role::User, 1), says(Role::Assistant, 40)];
    request.extend(ending());
    let recorded = |allowance| {
        let (attempts, mut said) = ([Attempt::Drop(1), Attempt::Record(1, 1, allowance)], Vec::new());
        compare_attempts(&request, &attempts, &mut |_, answer, _| said.push(answer))
            .expect("what the twin says");
        said[1]
    };
    assert_eq!((recorded(39), recorded(40)), (Ok(()), Err(Refusal::NotSmaller)));
}

/// A draft refuses a fifth size of clamps. Five sizes in one script are rare, so no property failed when the fifth size
/// was taken for the first.
#[test]
fn a_fifth_size_of_clamps_is_refused() {
    let mut request = vec![says(Role::User, 1)];
    for _ in 0..CLAMPS_MAX + 2 {
        request.extend([calls("c", 10), result(Role::Tool, "c", 500)]);
    }
    request.extend(ending());
    // In the list of parts, results and arguments of calls alternate. The last clamp has a size that is already known.
    let clamp = |call: usize, head| Attempt::Clamp(2 * call + 1, head, 7);
    let attempts = [clamp(0, 1), clamp(1, 2), clamp(2, 3), clamp(3, 4), clamp(4, 5), clamp(5, 4)];
    let mut said = Vec::new();
    let compared = compare_attempts(&request, &attempts, &mut |_, answer, _| said.push(answer));
    assert_eq!(compared, Ok(false), "what the twin says");
    assert_eq!(said, [Ok(()), Ok(()), Ok(()), Ok(()), Err(Refusal::NoRoom), Ok(())]);
}
