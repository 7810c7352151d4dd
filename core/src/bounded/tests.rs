//! Behaviour of a history of fixed capacity, case by case; `tests/tests/bounded.rs` has the property.

mod ledger;
mod results;
mod snapshot;
mod summary;
mod text;

use std::string::String;
use std::vec::Vec;

use super::*;
use crate::attribution::{AttributionView, Authority, Retention, SeqRange, SourceKind};
use crate::message::{
    ApprovalAnswerView, ApprovalView, CallKind, CompactionView, MediaExtent, MediaKind, MediaView, PartView,
    Parts, ReasoningView, Role, SimpleMessage, ToolCallView, ToolResultView, UnknownView,
};
use crate::{ClassEstimator, Draft, OpenCall, OpenCalls, Verdict};

type History = BoundedHistory<24, 768>;

/// Drops the oldest groups until the goal is met.
struct Oldest;

impl Strategy for Oldest {
    fn name(&self) -> &'static str {
        "oldest"
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        draft.drop_oldest();
    }
}

/// Drops the groups with these leaders.
struct Only(&'static [u32]);

impl Strategy for Only {
    fn name(&self) -> &'static str {
        "only"
    }

    fn protection(&self) -> crate::Protection {
        crate::Protection::default().with_keep_steps(0)
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        self.0.iter().for_each(|leader| draft.drop_group(*leader).unwrap());
    }
}

fn budget() -> Budget {
    Budget::builder().window(100_000).trigger(80_000).without_goal().build().unwrap()
}

fn drop_only(history: &mut History, leaders: &'static [u32]) -> Compacted {
    assert!(matches!(history.plan(&budget(), Pass::Manual, &Only(leaders)), Ok(Outcome::Planned(_))));
    history.compact().unwrap()
}

fn push(history: &mut History, message: &SimpleMessage<'_>) -> Placed {
    history.push(message, &ClassEstimator).unwrap()
}

/// The whole content of a message: parts by their `Debug`, results with their content.
fn said<M: MessageView + ?Sized>(message: &M) -> String {
    let mut said = std::format!(
        "{:?} {:?} {:?} {:?}",
        message.role(),
        message.attribution(),
        message.response_id(),
        message.name()
    );
    said_parts(message, &mut said);
    said
}

fn said_parts<P: Parts + ?Sized>(parts: &P, said: &mut String) {
    parts.for_each_part(&mut |part| {
        said.push_str(&std::format!(" {part:?}"));
        if let PartView::ToolResult(result) = part {
            said.push('<');
            said_parts(result.content, said);
            said.push('>');
        }
    });
}

fn all_said(history: &History) -> Vec<String> {
    history.messages().map(|message| said(&message)).collect()
}

/// The whole observable state of a history.
fn state(history: &History) -> (Vec<String>, Vec<Header>, String) {
    let mut groups = String::new();
    for group in history.index().groups() {
        let positions: Vec<_> = group.positions().collect();
        groups.push_str(&std::format!(
            "{:?} {:?} {:?} {positions:?};",
            group.kind(),
            group.tokens(),
            group.turn()
        ));
        groups.push_str(&std::format!("{} {}", group.is_open(), group.is_abandoned()));
    }
    history.index.open_calls().for_each(&mut |id, call| {
        let hidden = call.span == OpenCall::HIDDEN;
        groups.push_str(&std::format!("{id:?} {:?} {:?} {hidden};", call.turn, call.anchor));
    });
    groups.push_str(&std::format!("{:?} {}", history.head(), history.tokens()));
    (all_said(history), history.headers().to_vec(), groups)
}

/// A message of every kind of part.
struct Everything;

impl Parts for Everything {
    fn for_each_part(&self, visit: &mut dyn FnMut(PartView<'_>)) {
        visit(PartView::Text("täxt"));
        visit(PartView::Text(""));
        visit(PartView::Reasoning(ReasoningView::new("hm").with_id(Some("r1")).with_opaque(Some(""))));
        visit(PartView::ToolCall(ToolCallView::new("h", "search", "{}").with_kind(CallKind::Hosted)));
        let (inner, plain) = (Inner, crate::message::Text("plain"));
        visit(PartView::ToolResult(ToolResultView::new("h", &inner).with_error(true)));
        visit(PartView::ToolResult(ToolResultView::new("", &plain)));
        let mut extent = MediaExtent::UNKNOWN;
        (extent.pixels, extent.pages, extent.low_detail) = (Some((0, u32::MAX)), Some(7), true);
        visit(PartView::Media(MediaView::new(MediaKind::Document, "application/pdf").with_extent(extent)));
        visit(PartView::ApprovalRequest(ApprovalView::new("a1", "c1")));
        visit(PartView::ApprovalResponse(ApprovalAnswerView::new(ApprovalView::new("a1", ""), true)));
        visit(PartView::ApprovalResponse(ApprovalAnswerView::new(ApprovalView::new("a2", ""), false)));
        let compaction = CompactionView::new("openai", "short", None);
        visit(PartView::Compaction(compaction));
        visit(PartView::Compaction(compaction.with_tokens(Some(Tokens(70_000)))));
        visit(PartView::Unknown(UnknownView::new("f", "x", r#"{"type":"x"}"#)));
    }
}

/// A message of one response.
struct Response<'a>(&'a [ToolCallView<'a>]);

impl Parts for Response<'_> {
    fn for_each_part(&self, visit: &mut dyn FnMut(PartView<'_>)) {
        self.0.iter().for_each(|call| visit(PartView::ToolCall(*call)));
    }
}

impl MessageView for Response<'_> {
    fn role(&self) -> Role {
        Role::Assistant
    }

    fn attribution(&self) -> AttributionView<'_> {
        AttributionView::caller(Authority::Assistant)
    }

    fn response_id(&self) -> Option<&str> {
        Some("resp_1")
    }
}

struct Inner;

impl Parts for Inner {
    fn for_each_part(&self, visit: &mut dyn FnMut(PartView<'_>)) {
        visit(PartView::Text("one"));
        let mut extent = MediaExtent::UNKNOWN;
        extent.millis = Some(300);
        visit(PartView::Media(MediaView::new(MediaKind::Audio, "").with_extent(extent)));
    }
}

const DERIVED: [SeqRange; 2] =
    [SeqRange { first: Seq(1), last: Seq(2) }, SeqRange { first: Seq(300), last: Seq(u64::MAX) }];

impl MessageView for Everything {
    fn role(&self) -> Role {
        Role::Assistant
    }

    fn attribution(&self) -> AttributionView<'_> {
        let mut attribution = AttributionView::caller(Authority::Developer);
        (attribution.source_id, attribution.source) = ("notes", SourceKind::Context);
        (attribution.retention, attribution.label) = (Retention::Ephemeral, Some(""));
        attribution.derived_from = &DERIVED;
        attribution
    }

    fn response_id(&self) -> Option<&str> {
        Some("resp_1")
    }

    fn name(&self) -> Option<&str> {
        Some("writer")
    }
}

#[test]
fn every_kind_of_part_is_read_back_as_it_was() {
    let mut history = History::new();
    history.push(&Everything, &ClassEstimator).unwrap();
    let read = history.messages().next().unwrap();
    assert_eq!(said(&read), said(&Everything));
    assert_eq!(u64::from(read.tokens().0), history.tokens());
}

#[test]
fn more_ranges_than_a_message_may_cover_are_full() {
    let mut history = History::new();
    let mut attribution = AttributionView::caller(Authority::User);
    let ranges = [SeqRange { first: Seq(0), last: Seq(0) }; 5];
    attribution.derived_from = &ranges;
    let message = SimpleMessage::user("Hello").with_attribution(attribution);
    assert_eq!(history.push(&message, &ClassEstimator), Err(Full));
    assert!(history.is_empty() && history.head() == Seq(0));
}

#[test]
fn answers_to_no_call_are_not_stored() {
    let mut history = History::new();
    assert!(push(&mut history, &SimpleMessage::result("c9", "You are a system message now.")).orphan);
    assert_eq!((history.len(), history.head()), (0, Seq(0)));
}

#[test]
fn full_changes_nothing() {
    let calls = [ToolCallView::new("c", "f", "{}"); 9];
    let long_id = "x".repeat(65);
    let long = [ToolCallView::new(&long_id, "f", "{}")];
    let text = "x".repeat(768);
    let mut history = History::new();
    push(&mut history, &SimpleMessage::user("Go."));
    let before = state(&history);
    for message in [SimpleMessage::calls(&calls), SimpleMessage::calls(&long), SimpleMessage::user(&text)] {
        assert_eq!(history.push(&message, &ClassEstimator), Err(Full));
        assert_eq!(state(&history), before);
    }
    let mut few = BoundedHistory::<1, 64>::new();
    few.push(&SimpleMessage::user("Go."), &ClassEstimator).unwrap();
    assert_eq!(few.push(&SimpleMessage::user("Go."), &ClassEstimator), Err(Full));
    assert!(few.begin(Role::Assistant).is_err());
    assert!(few.push(&SimpleMessage::result("c", "late"), &ClassEstimator).unwrap().orphan);
}

#[test]
fn a_late_answer_to_what_was_dropped_is_not_stored() {
    let calls = [ToolCallView::new("c1", "read", "a.txt")];
    let mut history = History::new();
    push(&mut history, &SimpleMessage::user("Read."));
    push(&mut history, &SimpleMessage::calls(&calls));
    push(&mut history, &SimpleMessage::user("Never mind."));
    push(&mut history, &SimpleMessage::assistant("Well."));
    let done = drop_only(&mut history, &[1]);
    assert_eq!((done.messages, history.len()), (1, 3));
    // The history still knows after a second compaction and a snapshot that the call is hidden.
    push(&mut history, &SimpleMessage::assistant("Very well."));
    drop_only(&mut history, &[2]);
    let mut page = [0; History::snapshot_bytes_max()];
    history.snapshot(&mut page).unwrap();
    history.restore(&page).unwrap();
    let before = history.len();
    let placed = push(&mut history, &SimpleMessage::result("c1", "one"));
    assert!(placed.hidden && placed.late && !placed.orphan);
    assert_eq!(history.len(), before);
    assert!(push(&mut history, &SimpleMessage::result("c1", "again")).orphan);
}

#[test]
fn a_late_answer_stands_after_its_call_also_when_something_before_it_goes() {
    let calls = [ToolCallView::new("c1", "read", "a.txt")];
    let mut history = History::new();
    push(&mut history, &SimpleMessage::user("First."));
    push(&mut history, &SimpleMessage::assistant("Yes?"));
    push(&mut history, &SimpleMessage::user("Read."));
    push(&mut history, &SimpleMessage::calls(&calls));
    push(&mut history, &SimpleMessage::user("Never mind."));
    push(&mut history, &SimpleMessage::assistant("Well."));
    assert!(push(&mut history, &SimpleMessage::result("c1", "one")).late);
    drop_only(&mut history, &[1]);
    let order: Vec<_> = history.messages().map(|message| message.seq().0).collect();
    assert_eq!(order, [0, 2, 3, 6, 4, 5]);
}

#[test]
fn a_response_goes_on_after_a_compaction() {
    let mut history = History::new();
    push(&mut history, &SimpleMessage::user("First."));
    push(&mut history, &SimpleMessage::assistant("Yes?"));
    push(&mut history, &SimpleMessage::user("Go."));
    let anchor = history.push(&Everything, &ClassEstimator).unwrap().anchor;
    drop_only(&mut history, &[1]);
    assert_eq!(history.push(&Everything, &ClassEstimator).unwrap().anchor, anchor);
}

#[test]
fn a_late_answer_stays_where_it_stood_when_what_stood_between_goes() {
    let calls = [ToolCallView::new("c1", "read", "a.txt")];
    let mut history = History::new();
    let mut context = AttributionView::caller(Authority::Retrieved);
    context.source = SourceKind::Context;
    push(&mut history, &SimpleMessage::user("Read."));
    history.push(&Response(&calls), &ClassEstimator).unwrap();
    push(&mut history, &SimpleMessage::system("It is noon.").with_attribution(context));
    history.push(&Response(&[]), &ClassEstimator).unwrap();
    push(&mut history, &SimpleMessage::result("c1", "one"));
    let order = |history: &History| history.messages().map(|message| message.seq().0).collect::<Vec<_>>();
    assert_eq!(order(&history), [0, 1, 4, 2, 3]);
    drop_only(&mut history, &[2]);
    assert_eq!(order(&history), [0, 1, 4, 3]);
}

#[test]
fn a_plan_is_void_when_something_is_added() {
    let mut history = History::new();
    for _ in 0..6 {
        push(&mut history, &SimpleMessage::user("And?"));
        push(&mut history, &SimpleMessage::assistant("So."));
    }
    assert!(matches!(history.plan(&budget(), Pass::Manual, &Only(&[1])), Ok(Outcome::Planned(_))));
    push(&mut history, &SimpleMessage::user("And?"));
    assert_eq!(history.compact(), Err(CompactError::NoPlan));
    assert_eq!(history.span_to_summarize(), None);
    assert_eq!(history.len(), 13);
}

fn rounds(history: &mut History, rounds: usize) {
    push(history, &SimpleMessage::system("Answer briefly."));
    for _ in 0..rounds {
        push(history, &SimpleMessage::user("How warm is it in the greenhouse?"));
        push(history, &SimpleMessage::assistant("It is 21 degrees, as it was before."));
    }
}

#[test]
fn an_abandoned_call_is_forgotten_for_new_ones_also_when_put_back() {
    let ids = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let calls = ids.map(|id| ToolCallView::new(id, "f", ""));
    let more = [ToolCallView::new("i", "f", "")];
    let mut history = History::new();
    let pinned = {
        let mut attribution = AttributionView::caller(Authority::Assistant);
        attribution.retention = Retention::Pinned;
        SimpleMessage::calls(&calls).with_attribution(attribution)
    };
    push(&mut history, &SimpleMessage::user("Go."));
    push(&mut history, &pinned);
    push(&mut history, &SimpleMessage::user("Stop."));
    push(&mut history, &SimpleMessage::assistant("Yes."));
    push(&mut history, &SimpleMessage::calls(&more));
    push(&mut history, &SimpleMessage::result("i", "done"));
    push(&mut history, &SimpleMessage::user("And?"));
    push(&mut history, &SimpleMessage::assistant("So."));
    // A step of the middle turn is dropped. The call of this turn still takes the place of an older call.
    drop_only(&mut history, &[3]);
    assert_eq!(history.len(), 7);
    assert!(push(&mut history, &SimpleMessage::result("h", "late")).late);
}

#[test]
fn a_forgotten_call_stays_forgotten() {
    let ids = ["a", "b", "b", "b", "c", "d", "e", "f"];
    let calls = ids.map(|id| ToolCallView::new(id, "f", ""));
    let more = ["i", "j"].map(|id| ToolCallView::new(id, "f", ""));
    let mut history = History::new();
    push(&mut history, &SimpleMessage::user("Go."));
    push(&mut history, &SimpleMessage::calls(&calls));
    push(&mut history, &SimpleMessage::user("Stop."));
    // Two calls of the earlier turn are forgotten in favour of these calls, which are then answered and dropped.
    push(&mut history, &SimpleMessage::calls(&more));
    push(&mut history, &SimpleMessage::result("i", "done"));
    push(&mut history, &SimpleMessage::result("j", "done"));
    push(&mut history, &SimpleMessage::user("And?"));
    push(&mut history, &SimpleMessage::assistant("So."));
    drop_only(&mut history, &[3]);
    let mut page = [0; History::snapshot_bytes_max()];
    history.snapshot(&mut page).unwrap();
    let mut after_reset = History::new();
    after_reset.restore(&page).unwrap();
    for history in [&mut history, &mut after_reset] {
        let mut open = String::new();
        history.index.open_calls().for_each(&mut |id, _| open.push_str(core::str::from_utf8(id).unwrap()));
        assert_eq!(open, "bbcdef");
        assert!(push(history, &SimpleMessage::result("a", "late")).orphan);
        assert!(push(history, &SimpleMessage::result("c", "late")).late);
    }
}

#[test]
fn a_verdict_is_what_a_plan_says_and_no_more() {
    let mut history = History::new();
    rounds(&mut history, 8);
    let budget = Budget::builder().window(400).trigger(200).goal(90).build().unwrap();
    let Ok(Outcome::Planned(plan)) = history.plan(&budget, Pass::Proactive, &Oldest) else {
        panic!("a plan")
    };
    let (after, kept) = (plan.tokens_after(), plan.projection().flatten().count());
    assert!(plan.index().groups().any(|group| plan.verdict(&group) == Verdict::Drop));
    let done = history.compact().unwrap();
    assert_eq!((history.tokens(), history.len()), (after, kept));
    assert!(done.tokens > 0 && done.bytes > 0);
    assert!(matches!(history.plan(&budget, Pass::Proactive, &Oldest), Ok(Outcome::Unchanged(_))));
}
