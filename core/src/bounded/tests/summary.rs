//! Summaries that the caller writes.

use super::*;

#[test]
fn a_summary_replaces_what_it_covers_and_the_summary_before_it() {
    let mut history = History::new();
    rounds(&mut history, 6);
    history.summarize(range(2, 5), "Twice 21 degrees.", &ClassEstimator).unwrap();
    let summary = history.messages().nth(2).unwrap();
    let attribution = summary.attribution();
    assert_eq!((attribution.source, attribution.authority), (SourceKind::Compaction, Authority::Assistant));
    assert_eq!(attribution.derived_from, [range(2, 5)]);
    assert_eq!(history.len(), 10);
    // The summary alone is nothing new. A summary of it and the messages after it replaces it, and covers its messages
    // too.
    assert_eq!(history.summarize(range(2, 2), "21.", &ClassEstimator), Err(BoundedSummaryError::NothingNew));
    history.summarize(range(2, 7), "Three times 21 degrees.", &ClassEstimator).unwrap();
    let summary = history.messages().nth(2).unwrap();
    assert_eq!(summary.attribution().derived_from, [range(2, 7)]);
    assert_eq!(history.index().groups().filter(|group| group.kind() == crate::GroupKind::Summary).count(), 1);
}

#[test]
fn a_span_next_to_a_summary_takes_it_in() {
    let mut history = History::new();
    rounds(&mut history, 7);
    history.summarize(range(2, 3), "Once 21.", &ClassEstimator).unwrap();
    assert!(matches!(history.plan(&budget(), Pass::Manual, &Only(&[3, 4, 5])), Ok(Outcome::Planned(_))));
    assert_eq!(history.span_to_summarize(), Some(range(2, 6)));
}

/// The run with the most tokens is proposed, at any place.
#[test]
fn of_several_runs_the_largest_is_named() {
    for (dropped, best) in [(&[2, 3, 4, 8][..], range(2, 4)), (&[2, 5, 6, 7, 8][..], range(5, 8))] {
        let mut history = History::new();
        rounds(&mut history, 7);
        assert!(matches!(history.plan(&budget(), Pass::Manual, &Only(dropped)), Ok(Outcome::Planned(_))));
        assert_eq!(history.span_to_summarize(), Some(best));
    }
}

#[test]
fn a_summary_is_refused_with_its_reason() {
    use BoundedSummaryError::{Blank, NotWhole, Protected, TooLarge};
    let calls = [ToolCallView::new("c1", "read", "a.txt")];
    let mut history = History::new();
    rounds(&mut history, 4);
    push(&mut history, &SimpleMessage::user("Read."));
    push(&mut history, &SimpleMessage::calls(&calls));
    push(&mut history, &SimpleMessage::user("Never mind."));
    push(&mut history, &SimpleMessage::assistant("Well."));
    push(&mut history, &SimpleMessage::result("c1", "one"));
    let long = "x".repeat(400);
    let before = state(&history);
    for (range, text, why) in [
        (range(0, 3), "Short.", Protected),
        (range(1, 3), "Short.", Protected),
        (range(11, 12), "Short.", Protected),
        (range(2, 10), "Short.", NotWhole),
        (range(2, 5), " \n", Blank),
        (range(2, 5), &long, TooLarge),
    ] {
        assert_eq!(history.summarize(range, text, &ClassEstimator), Err(why), "{range:?}");
        assert_eq!(state(&history), before);
    }
}

fn range(first: u64, last: u64) -> SeqRange {
    SeqRange { first: Seq(first), last: Seq(last) }
}
