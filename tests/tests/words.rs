//! Names and texts of values. Their names are stored and logged, and must not change. Errors name a remedy, borrowed
//! values behave like owned ones, and equal plans are equal.

use epitome_compactors::{Pipeline, SlidingWindow, ToolResultClearing, Truncation, Window};
use epitome_core::attribution::SourceKind;
use epitome_core::message::{MediaKind, MediaView, Role};
use epitome_core::{
    ArrayTable, Basis, BoundedSummaryError, Budget, Cell, ClassEstimator, CompactError, Correction,
    FillError, Framing, Full, Gap, GroupKind, IndexBuf, LossKind, MediaRules, OpenCallSlots, OpenCallTree,
    OpenCalls, Outcome, PartKind, PartSpan, Pass, Plan, PlanError, Profile, Refusal, RestoreError, Revision,
    Seq, SliceTable, SnapshotError, Span, Strategy, Table, TokenCounter, Tokens, ToolFraming, TriggerKind,
    Turn, Unchanged, Verdict, WaitReason, media_tokens, plan,
};
use epitome_tests::live;
use epitome_tests::notation;

#[test]
fn words_are_as_they_were() {
    let of_kinds =
        [GroupKind::System, GroupKind::User, GroupKind::Assistant, GroupKind::Exchange, GroupKind::Summary];
    assert_eq!(of_kinds.map(GroupKind::as_str), ["system", "user", "assistant", "exchange", "summary"]);
    assert_eq!([GroupKind::Orphan, GroupKind::Hosted].map(GroupKind::as_str), ["orphan", "hosted"]);
    let parts =
        [PartKind::ToolResult, PartKind::ToolInput, PartKind::Reasoning, PartKind::Media, PartKind::Text];
    let words = ["tool_result", "tool_input", "reasoning", "media", "text"];
    assert_eq!(parts.map(PartKind::as_str), words);
    assert_eq!(parts.map(|kind| LossKind::Part(kind).as_str()), words);
    assert_eq!(LossKind::Group(GroupKind::User).as_str(), "user");
    let bases = [Basis::Estimated, Basis::Counted, Basis::Reported];
    assert_eq!(bases.map(Basis::as_str), ["estimated", "counted", "reported"]);
    assert_eq!(Pass::ALL.map(Pass::as_str), ["proactive", "manual", "overflow"]);
    let roles = [Role::System, Role::Developer, Role::User, Role::Assistant, Role::Tool];
    assert_eq!(roles.map(Role::as_str), ["system", "developer", "user", "assistant", "tool"]);
    let letters = [Verdict::Keep, Verdict::Drop, Verdict::Replace].map(Verdict::letter);
    assert_eq!(letters, ['K', 'D', 'R']);
    let unchanged = [Unchanged::AtGoal, Unchanged::NothingToDrop, Unchanged::TooLittle { freed: 1 }];
    assert_eq!(unchanged.map(|why| why.as_str()), ["at_goal", "nothing_to_drop", "too_little"]);
    let waits = [WaitReason::Spacing, WaitReason::Failures, WaitReason::Undone];
    assert_eq!(waits.map(WaitReason::as_str), ["spacing", "failures", "undone"]);
    let numbers = (Seq(3).to_string(), Revision(4).to_string(), Turn(5).to_string(), Tokens(6).to_string());
    assert_eq!(numbers, ("3".into(), "4".into(), "5".into(), "6".into()));
    assert_eq!((Seq(3).next(), Turn(u32::MAX).next()), (Seq(4), Turn(u32::MAX)));
    assert_eq!(Correction::MAX.to_string(), "4.000");
}

#[test]
fn triggers_have_words_of_their_own() {
    let triggers = [
        (TriggerKind::Tokens, "tokens"),
        (TriggerKind::Budget, "budget"),
        (TriggerKind::Reported, "reported"),
        (TriggerKind::Window, "window"),
        (TriggerKind::Messages, "messages"),
        (TriggerKind::Turns, "turns"),
        (TriggerKind::Groups, "groups"),
        (TriggerKind::ToolCalls, "tool_calls"),
        (TriggerKind::ToolResultAge, "tool_result_age"),
        (TriggerKind::Always, "always"),
        (TriggerKind::Manual, "manual"),
        (TriggerKind::Overflow, "overflow"),
        (TriggerKind::All, "all"),
    ];
    triggers.iter().for_each(|(kind, word)| assert_eq!(kind.as_str(), *word));
}

/// Each refusal has a name of its own, which is also its display text.
#[test]
fn refusals_have_words_of_their_own() {
    let all = [
        (Refusal::NoGroup, "no_group"),
        (Refusal::NoPart, "no_part"),
        (Refusal::Protected, "protected"),
        (Refusal::NewestStep, "newest_step"),
        (Refusal::Dropped, "dropped"),
        (Refusal::Replaced, "replaced"),
        (Refusal::Edited, "edited"),
        (Refusal::NotSmaller, "not_smaller"),
        (Refusal::NoEnds, "no_ends"),
        (Refusal::CurrentTurn, "current_turn"),
        (Refusal::OnlyContent, "only_content"),
        (Refusal::Uncounted, "uncounted"),
        (Refusal::Instructions, "instructions"),
        (Refusal::OnlySummaries, "only_summaries"),
        (Refusal::SummaryBeside, "summary_beside"),
        (Refusal::NoRoom, "no_room"),
    ];
    for (refusal, word) in all {
        assert_eq!((refusal.as_str(), refusal.to_string()), (word, word.to_owned()));
    }
}

#[test]
fn errors_say_what_to_do() {
    let too_large = FillError::TooLarge { gap: Gap::Summary(2), tokens: Tokens(9), allowance: Tokens(5) };
    let errors: [(&dyn core::error::Error, &str); 17] = [
        (&Full, "compact, or give the table more"),
        (&CompactError::NoPlan, "plan again"),
        (&CompactError::NoNote, "compact with a note"),
        (&CompactError::Blank, "the note is blank"),
        (&CompactError::NoteTooLarge, "shorten it"),
        (&BoundedSummaryError::NoMessages, "choose again"),
        (&BoundedSummaryError::NotWhole, "whole groups: choose again"),
        (&BoundedSummaryError::Protected, "choose others"),
        (&BoundedSummaryError::NothingNew, "nothing to summarize but a summary"),
        (&BoundedSummaryError::TooLarge, "shorten it"),
        (&SnapshotError::Corrupt, "take an older one"),
        (&SnapshotError::Version, "newer version"),
        (&SnapshotError::Full, "more than there is room for"),
        (&RestoreError::Full, "no room"),
        (&RestoreError::Contradiction, "from a backup"),
        (&PlanError::CellsTooFew { needed: 7 }, "a plan needs 7 cells"),
        (&too_large, "summary 2 has 9 tokens and may have 5: shorten it, or grant more"),
    ];
    for (error, remedy) in errors {
        assert!(error.to_string().contains(remedy), "{error} does not say {remedy}");
    }
    assert_eq!(FillError::Missing(Gap::Clamp(1)).to_string(), "clamped part 1 is missing");
    let note = Gap::Placeholder(PartKind::Media);
    assert_eq!(FillError::Empty(note).to_string(), "the note for an elided media is empty");
    assert!(FillError::TooMany.to_string().contains("more stand-ins"));
    let budget = Budget::builder().window(100).reserve(0).trigger(101).build().unwrap_err();
    assert!(budget.to_string().contains("lower it, or raise the window"));
}

/// A counter whose results differ from the defaults.
struct Odd;

impl TokenCounter for Odd {
    fn name(&self) -> &str {
        "odd"
    }

    fn basis(&self) -> Basis {
        Basis::Counted
    }

    fn count(&self, text: &str) -> Tokens {
        Tokens(text.len() as u32 * 2 + 1)
    }

    fn framing(&self) -> Framing {
        Framing { message: 77, ..Framing::OPENAI }
    }

    fn media_rules(&self) -> MediaRules {
        MediaRules::GEMINI
    }

    fn last_cut(&self, text: &str, from: usize) -> Option<usize> {
        (from < text.len()).then_some(text.len())
    }
}

#[test]
fn what_is_lent_says_what_is_owned() {
    fn counts(counter: impl TokenCounter) -> String {
        let (name, basis, up_to) =
            (counter.name().to_owned(), counter.basis(), counter.count_up_to("abc", Tokens(7)));
        let over = counter.count_up_to("abc", Tokens(6));
        let (framing, rules) = (counter.framing(), counter.media_rules());
        let (count, measure, bounds) = (counter.count("abc"), counter.measure("abc"), counter.bounds("abc"));
        let cut = counter.last_cut("abc", 1);
        format!(
            "{name} {basis:?} {up_to:?} {over:?} {framing:?} {rules:?} {count:?} {measure:?} {bounds:?} {cut:?}"
        )
    }
    let said = counts(Odd);
    assert!(said.starts_with("odd Counted Some(Tokens(7)) None Framing { message: 77,"), "{said}");
    assert!(said.ends_with("Some(3)"), "{said}");
    assert_eq!(counts(&Odd), said);

    fn says(strategy: impl Strategy) -> String {
        format!("{} {:?} {}", strategy.name(), strategy.protection(), strategy.is_monotone())
    }
    let window = SlidingWindow::new(Window::Goal).preserve_first_user(false);
    let lent: &dyn Strategy = &window;
    assert_eq!(says(lent), says(window));
    let monotone =
        [Truncation::new().is_monotone(), window.is_monotone(), ToolResultClearing::new().is_monotone()];
    assert_eq!(monotone, [true, true, false]);
    assert_eq!((window.name(), Truncation::new().name()), ("window", "truncate"));
}

#[test]
fn each_profile_has_the_figures_that_its_provider_published() {
    for profile in Profile::ALL {
        let (framing, media) = (Framing::of(profile), MediaRules::of(profile));
        let (message, basis) = match profile {
            Profile::OpenaiChat => (3, Basis::Counted),
            Profile::Qwen => (5, Basis::Estimated),
            _ => (3, Basis::Estimated),
        };
        assert_eq!((framing.message, framing.basis), (message, basis), "{}", profile.as_str());
        let expected = match profile {
            Profile::Anthropic | Profile::BedrockConverse => MediaRules::ANTHROPIC,
            Profile::Gemini => MediaRules::GEMINI,
            _ => MediaRules::OPENAI,
        };
        assert_eq!(media, expected, "{}", profile.as_str());
    }
    // The figures of OpenAI's Cookbook for tools: of GPT-4o, and of GPT-4.
    let figures = |of: ToolFraming| [of.function, of.properties, of.property, of.values, of.value, of.end];
    assert_eq!(figures(ToolFraming::O200K), [7, 3, 3, -3, 3, 12]);
    assert_eq!(figures(ToolFraming::CL100K), [10, 3, 3, -3, 3, 12]);
    let framing = Framing::OPENAI;
    assert_eq!([framing.message, framing.name, framing.call, framing.request], [3, 1, 3, 3]);
    // An image of unknown size: 1,024 x 1,024 makes four tiles.
    assert_eq!(media_tokens(MediaView::new(MediaKind::Image, "image/png")), Tokens(85 + 4 * 170));
    assert_eq!(ClassEstimator::new().media_rules(), MediaRules::OPENAI);
}

const TALK: &str = "s 10\nu 10\na 20 c1\nt 100 c1\nu 10\na 20 c2\nt 100 c2\nu 10\na 10\na 10\na 10\n";

/// Two plans are equal exactly if their index, their budget and their verdicts are equal.
#[test]
fn equal_plans_are_equal() {
    let (talk, other) =
        (notation::parse(TALK).unwrap(), notation::parse(&TALK.replace("a 20", "a 21")).unwrap());
    let (index, other) = (live::index_of(&talk).0, live::index_of(&other).0);
    let budget = |goal: Option<u64>, window: u64| {
        let budget = Budget::builder().window(window).reserve(0).trigger(window).min_reclaim(0);
        goal.map_or(budget.without_goal(), |goal| budget.goal(goal)).build().unwrap()
    };
    let with =
        |index: &live::Heap, budget: &Budget, strategy: &dyn Strategy, test: &mut dyn FnMut(&Plan<'_>)| {
            let mut cells = vec![Cell::default(); index.view().cell_count()];
            match plan(index.view(), budget, Pass::Manual, strategy, &mut cells).unwrap() {
                Outcome::Planned(plan) => test(&plan),
                Outcome::Unchanged(why) => panic!("{why:?}"),
            }
        };
    let (truncate, clear) = (Truncation::new(), ToolResultClearing::new().keep(0));
    let (narrow, wide) = (budget(Some(100), 300), budget(Some(100), 301));
    with(&index, &narrow, &truncate, &mut |first| {
        with(&index, &narrow, &truncate, &mut |again| assert!(first == again));
        let goal = budget(Some(150), 300);
        with(&index, &goal, &truncate, &mut |less| assert!(first != less, "it drops less"));
        with(&index, &narrow, &clear, &mut |cleared| assert!(first != cleared, "it clears"));
        with(&index, &wide, &truncate, &mut |wide| assert!(first != wide, "its budget is another"));
        with(&other, &narrow, &truncate, &mut |other| assert!(first != other, "it is of another index"));
    });
    // Plans with equal verdicts on groups differ if their shortened parts differ.
    let (first, second) = (ToolResultClearing::new().keep(1), ToolResultClearing::new().keep(0));
    let wide = budget(None, 1_000);
    with(&index, &wide, &first, &mut |one| {
        with(&index, &wide, &second, &mut |two| assert!(one != two, "it clears one more"));
    });
}

#[test]
fn what_is_configured_can_be_read() {
    let budget = Budget::default();
    assert_eq!((budget.window(), budget.reserve(), budget.limit()), (128_000, 8_192, 119_808));
    let stages: [&dyn Strategy; 2] = [&ToolResultClearing::new(), &Truncation::new()];
    let names = stages.map(|stage| stage.name());
    assert_eq!(format!("{:?}", Pipeline::new(&stages).unwrap()), format!("{names:?}"));
}

/// A plan fits if and only if its size is at most the limit.
#[test]
fn a_plan_says_whether_its_request_fits() {
    let talk = notation::parse("u 10\na 90 c1\nt 100 c1\na 10\na 10\na 10\n").unwrap();
    let index = live::index_of(&talk).0;
    let clear = ToolResultClearing::new().keep(0);
    // The note has 9 of the result's 100 tokens. The request has 139 after the plan.
    for (window, fits) in [(138, false), (139, true), (140, true)] {
        let budget =
            Budget::builder().window(window).reserve(0).trigger(window).without_goal().min_reclaim(0);
        let mut cells = vec![Cell::default(); index.view().cell_count()];
        match plan(index.view(), &budget.build().unwrap(), Pass::Manual, &clear, &mut cells).unwrap() {
            Outcome::Planned(plan) => assert_eq!((plan.tokens_after(), plan.fits()), (139, fits)),
            Outcome::Unchanged(why) => panic!("{why:?}"),
        }
    }
}

/// Each kind of table takes values up to its capacity, truncates to a length, and clears.
#[test]
fn tables_forget() {
    fn check(table: &mut impl Table<u8>) {
        for value in 1..=4 {
            table.push(value).unwrap();
        }
        assert_eq!(table.as_slice(), [1, 2, 3, 4]);
        table.truncate(9);
        table.truncate(2);
        assert_eq!(table.as_slice(), [1, 2]);
        table.as_mut_slice().swap(0, 1);
        assert_eq!(table.as_slice(), [2, 1]);
        table.clear();
        assert!(table.as_slice().is_empty());
        table.push(7).unwrap();
        assert_eq!(table.as_slice(), [7]);
    }
    check(&mut Vec::new());
    check(&mut ArrayTable::<u8, 4>::default());
    check(&mut SliceTable::new(&mut [0; 4]));
    check(&mut heapless::Vec::<u8, 4>::new());
}

/// A cleared index behaves like a new one, with each memory for calls and with parts.
#[test]
fn a_cleared_index_is_an_empty_one() {
    fn check<S: Table<Span> + Default, C: OpenCalls + Default, P: Table<PartSpan> + Default>() {
        let talk = notation::parse("u 10\na 20 c1 asks=c1\nu 10\na 20 c1\nt 9 c1\n").unwrap();
        let mut index: IndexBuf<S, C, P> = live::empty();
        let empty = live::everything(&index);
        talk.iter().for_each(|message| assert!(live::push(&mut index, message).is_ok()));
        let full = live::everything(&index);
        index.clear();
        assert_eq!(live::everything(&index), empty);
        talk.iter().for_each(|message| assert!(live::push(&mut index, message).is_ok()));
        assert_eq!(live::everything(&index), full);
        assert!(index.view().groups().all(|group| group.source() == SourceKind::Caller));
    }
    check::<Vec<Span>, OpenCallTree, Vec<PartSpan>>();
    check::<ArrayTable<Span, 8>, OpenCallSlots<8>, ArrayTable<PartSpan, 8>>();
    check::<heapless::Vec<Span, 8>, OpenCallSlots<8>, heapless::Vec<PartSpan, 8>>();
}

#[test]
fn groups_say_what_they_hold() {
    let talk = "s 5\ns 5 context ephemeral\nu 10\na 10 reasoning text\nu 10 pin\na 20 c1\n";
    let index = live::index_of(&notation::parse(talk).unwrap()).0;
    let marks = |test: &dyn Fn(&epitome_core::Group<'_>) -> bool| {
        index.view().groups().map(|group| if test(&group) { 'x' } else { '.' }).collect::<String>()
    };
    assert_eq!(marks(&|group| group.is_instruction()), "x.....");
    assert_eq!(marks(&|group| group.is_ephemeral()), ".x....");
    assert_eq!(marks(&|group| group.has_reasoning()), "...x..");
    assert_eq!(marks(&|group| group.is_pinned()), "....x.");
    assert_eq!(marks(&|group| group.is_open()), ".....x");
    assert_eq!(marks(&|group| group.is_step()), "...x.x");
    assert_eq!(marks(&|group| group.source() == SourceKind::Context), ".x....");
}

/// The name of a counter stands for its counts. A counter with other counts needs another name.
#[test]
fn the_estimator_counts_as_its_name_says() {
    let counter = ClassEstimator::new();
    assert_eq!(counter.name(), "estimate-v2");
    let texts = [
        "The quick brown fox jumps over the lazy dog.",
        "fn main() { println!(\"{}\", 6 * 7); }",
        "안녕하세요 세계, 오늘은 날씨가 좋습니다.",
        "今日はいい天気ですね。",
        "请看第三章的内容。",
        "Привет, как дела?",
        "שלום עולם",
        "สวัสดีชาวโลก",
        "Größe, naïve café",
        "🙂🙃 👩‍👩‍👧‍👦",
        "0123456789 3.14159 2026-11-21T08:00:00Z",
        "aGVsbG8gd29ybGQgYW5kIG1vcmUgYnl0ZXM=",
        "┌──────┐ │ cell │ └──────┘",
    ];
    let counts: Vec<u32> = texts.iter().map(|text| counter.count(text).0).collect();
    assert_eq!(counts, [10, 16, 13, 8, 7, 8, 4, 6, 8, 19, 23, 28, 11]);
}
