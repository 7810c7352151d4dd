//! Elision of tool results.

use super::*;
use crate::message::Text;
use crate::{PartKind, TokenCounter, Tokens, ToolName, count_message};

type Clearable = BoundedHistory<16, 768, 3>;

/// Elides every result for which a note of three tokens is allowed.
struct Clear;

impl Strategy for Clear {
    fn name(&self) -> &'static str {
        "clear"
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        for part in draft.index().parts() {
            let _ = draft.elide(&part, Tokens(3));
        }
    }
}

/// A result of another kind than text, with a text after it.
struct Picture;

impl Parts for Picture {
    fn for_each_part(&self, visit: &mut dyn FnMut(PartView<'_>)) {
        visit(PartView::Media(MediaView::new(MediaKind::Image, "")));
    }
}

struct Mixed;

impl Parts for Mixed {
    fn for_each_part(&self, visit: &mut dyn FnMut(PartView<'_>)) {
        visit(PartView::ToolResult(ToolResultView::new("c1", &Picture).with_error(true)));
        visit(PartView::Text("and this"));
        visit(PartView::ToolResult(ToolResultView::new("c1", &Text("another"))));
    }
}

impl MessageView for Mixed {
    fn role(&self) -> Role {
        Role::Tool
    }

    fn attribution(&self) -> AttributionView<'_> {
        AttributionView::caller(Authority::Retrieved)
    }
}

fn plan_clear(history: &mut Clearable) {
    assert!(matches!(history.plan(&budget(), Pass::Manual, &Clear), Ok(Outcome::Planned(_))));
}

fn all(history: &Clearable) -> (Vec<String>, u64, usize, usize) {
    let said = history.messages().map(|message| std::format!("{} {}", message.is_elided(), said(&message)));
    (said.collect(), history.tokens(), history.free_bytes(), history.index().part_count())
}

/// A call whose result is `Mixed`, and a step after it.
fn mixed() -> Clearable {
    let mut history = Clearable::new();
    let calls = [ToolCallView::new("c1", "photo", "{}")];
    history.push(&SimpleMessage::user("Look."), &ClassEstimator).unwrap();
    history.push(&SimpleMessage::calls(&calls), &ClassEstimator).unwrap();
    history.push(&Mixed, &ClassEstimator).unwrap();
    history.push(&SimpleMessage::assistant("Seen."), &ClassEstimator).unwrap();
    history
}

#[test]
fn a_note_takes_the_place_of_the_result_and_of_nothing_else() {
    let mut history = mixed();
    let row = history.index().parts().next().unwrap();
    assert_eq!(
        (row.kind(), row.tool(), row.is_error()),
        (PartKind::ToolResult, Some(ToolName::new("photo")), true)
    );
    plan_clear(&mut history);
    let before = history.tokens();
    let freed = row_tokens(&history) - ClassEstimator.count("gone").0;
    history.compact_with("gone", &ClassEstimator).unwrap();
    assert_eq!(history.tokens(), before - u64::from(freed));
    let message = history.messages().nth(2).unwrap();
    assert_eq!(message.tokens(), count_message(&message, &ClassEstimator));
    assert!(message.is_elided());
    let said = said(&message);
    assert!(
        said.contains("is_error: true") && said.contains("< Text(\"gone\")> Text(\"and this\")"),
        "{said}"
    );
    assert!(said.ends_with("< Text(\"another\")>"), "{said}");
    // The elision is permanent, also after a reset.
    let mut page = [0; Clearable::snapshot_bytes_max()];
    history.snapshot(&mut page).unwrap();
    let mut after_reset = Clearable::new();
    after_reset.restore(&page).unwrap();
    assert_eq!(all(&after_reset), all(&history));
    assert!(matches!(history.plan(&budget(), Pass::Manual, &Clear), Ok(Outcome::Unchanged(_))));
}

fn row_tokens(history: &Clearable) -> u32 {
    history.index().parts().next().unwrap().tokens().0
}

/// A note that does not fit changes nothing. A picture has many tokens and few bytes, so a note may fit one limit and
/// not the other.
#[test]
fn a_note_that_does_not_fit_changes_nothing() {
    let mut history = mixed();
    plan_clear(&mut history);
    let before = all(&history);
    assert_eq!(history.compact(), Err(CompactError::NoNote));
    for (note, why) in [
        (" ", CompactError::Blank),
        ("", CompactError::Blank),
        ("a picture of the vents", CompactError::NoteTooLarge),
        ("clearedcleared", CompactError::NoteTooLarge),
    ] {
        assert_eq!(history.compact_with(note, &Few), Err(why), "{note}");
        assert_eq!(all(&history), before);
    }
    assert_eq!(history.compact_with("gone", &Few).map(|done| done.results), Ok(1));
}

/// Counts a token for every eight bytes.
struct Few;

impl TokenCounter for Few {
    fn name(&self) -> &'static str {
        "few"
    }

    fn basis(&self) -> crate::Basis {
        crate::Basis::Estimated
    }

    fn count(&self, text: &str) -> Tokens {
        Tokens(u32::try_from(text.len()).unwrap() / 8)
    }
}

#[test]
fn a_result_without_a_row_is_full_and_rows_come_back() {
    let mut history = Clearable::new();
    let calls = ["a", "b", "c", "d"].map(|id| ToolCallView::new(id, "f", ""));
    let long = "word ".repeat(10);
    history.push(&SimpleMessage::user("Go."), &ClassEstimator).unwrap();
    history.push(&SimpleMessage::calls(&calls), &ClassEstimator).unwrap();
    for call in &calls[..3] {
        history.push(&SimpleMessage::result(call.id, &long), &ClassEstimator).unwrap();
    }
    let (before, last) = (all(&history), SimpleMessage::result("d", &long));
    assert_eq!(history.push(&last, &ClassEstimator), Err(Full));
    assert_eq!(history.push_clamped(&last, 700, &ClassEstimator), Err(Full));
    assert_eq!(all(&history), before);
    // In a later turn the group is no longer open, and its results can be elided.
    history.push(&SimpleMessage::user("And?"), &ClassEstimator).unwrap();
    history.push(&SimpleMessage::assistant("So."), &ClassEstimator).unwrap();
    plan_clear(&mut history);
    assert_eq!(history.compact_with("gone", &ClassEstimator).map(|done| done.results), Ok(3));
    assert!(history.push(&last, &ClassEstimator).unwrap().late);
    assert_eq!(history.index().part_count(), 1);
}

/// A history without elision reads the snapshot of a history with elision, and the reverse.
#[test]
fn snapshots_go_from_one_kind_of_history_to_the_other() {
    let mut with = mixed();
    let mut page = [0; Clearable::snapshot_bytes_max()];
    with.snapshot(&mut page).unwrap();
    let mut without = BoundedHistory::<16, 768>::new();
    without.restore(&page).unwrap();
    assert_eq!((without.len(), without.index().part_count()), (with.len(), 0));
    let mut plain = BoundedHistory::<16, 768>::new();
    for message in with.messages() {
        plain.push(&message, &ClassEstimator).unwrap();
    }
    plain.snapshot(&mut page).unwrap();
    with.restore(&page).unwrap();
    assert_eq!((with.len(), with.index().part_count()), (4, 0));
    assert_eq!(BoundedHistory::<16, 768, 1>::new().restore(&page), Ok(()));
}

#[test]
fn a_snapshot_with_more_results_than_there_is_room_for_changes_nothing() {
    let mut two = mixed();
    two.push(&SimpleMessage::calls(&[ToolCallView::new("z", "read", "{}")]), &ClassEstimator).unwrap();
    two.push(&SimpleMessage::result("z", &"long ".repeat(20)), &ClassEstimator).unwrap();
    let mut page = [0; Clearable::snapshot_bytes_max()];
    two.snapshot(&mut page).unwrap();
    let mut one = BoundedHistory::<16, 768, 1>::new();
    one.push(&SimpleMessage::user("Something else."), &ClassEstimator).unwrap();
    assert_eq!((one.restore(&page), one.len()), (Err(SnapshotError::Full), 1));
    let mut as_many = BoundedHistory::<16, 768, 2>::new();
    assert_eq!((as_many.restore(&page), as_many.index().part_count()), (Ok(()), 2));
}

/// A history without capacity for results uses no memory for them.
#[test]
fn what_is_not_wanted_takes_no_memory() {
    let (with, without) = (BoundedHistory::<16, 768, 3>::ram_bytes(), BoundedHistory::<16, 768>::ram_bytes());
    assert_eq!(with - without, size_of::<ResultTable<3>>() - size_of::<ResultTable<0>>());
    assert_eq!(size_of::<ResultTable<0>>(), size_of::<usize>());
}
