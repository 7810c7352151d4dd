//! Texts that are too long, and texts that arrive in pieces.

use super::*;

#[test]
fn clamping_cuts_between_characters() {
    let text = "ä€𝄞".repeat(200);
    for size in 0..64 {
        let mut history = BoundedHistory::<2, 160>::new();
        history.push(&SimpleMessage::user(&"x".repeat(size)), &ClassEstimator).unwrap();
        history.push_clamped(&SimpleMessage::user(&text), 768, &ClassEstimator).unwrap();
        assert!(history.free_bytes() < 8, "it takes the room there is: {}", history.free_bytes());
        history.messages().nth(1).unwrap().for_each_part(&mut |part| {
            let PartView::Text(kept) = part else { panic!("a text") };
            let (head, tail) = kept.split_once(CLAMP_MARKER).unwrap();
            assert!(text.starts_with(head) && text.ends_with(tail) && head.len() > 8 && tail.len() > 8);
        });
    }
}

#[test]
fn clamping_spares_calls() {
    let arguments = "x".repeat(200);
    let calls = [ToolCallView::new("c1", "write", &arguments)];
    let mut history = BoundedHistory::<2, 160>::new();
    assert_eq!(history.push_clamped(&SimpleMessage::calls(&calls), 768, &ClassEstimator), Err(Full));
    assert!(history.is_empty());
}

#[test]
fn streamed_text_is_what_pushed_text_is() {
    let (mut streamed, mut pushed) = (History::new(), History::new());
    for text in ["", "21", &"degrees, ".repeat(20)] {
        let mut stream = streamed.begin(Role::Assistant).unwrap();
        assert!(stream.is_empty());
        text.split_inclusive(' ').for_each(|piece| stream.extend(piece).unwrap());
        assert_eq!((stream.len(), stream.is_empty()), (text.len(), text.is_empty()));
        stream.finish(&ClassEstimator).unwrap();
        push(&mut pushed, &SimpleMessage::assistant(text));
        assert_eq!(state(&streamed), state(&pushed));
    }
    let mut stream = streamed.begin(Role::Assistant).unwrap();
    assert_eq!(stream.extend(&"x".repeat(700)), Err(Full));
    stream.extend("what fits").unwrap();
    assert_eq!(state(&streamed), state(&pushed));
}

#[cfg(feature = "suspend")]
#[test]
fn a_suspended_text_is_given_up_by_whatever_else_is_written() {
    let suspended = || {
        let mut history = History::new();
        rounds(&mut history, 4);
        let mut stream = history.begin(Role::Assistant).unwrap();
        stream.extend("21 ").unwrap();
        stream.suspend();
        let stream = history.resume().unwrap();
        assert_eq!(stream.len(), 3);
        stream.suspend();
        history
    };
    let changes: [&dyn Fn(&mut History); 8] = [
        &|history| assert!(history.resume().is_some()),
        &|history| assert!(!push(history, &SimpleMessage::user("Well?")).orphan),
        &|history| {
            let long = "x".repeat(800);
            assert_eq!(history.push(&SimpleMessage::user(&long), &ClassEstimator), Err(Full));
        },
        &|history| assert!(history.begin(Role::User).is_ok()),
        &|history| {
            let budget = Budget::builder().window(400).trigger(200).goal(60).build().unwrap();
            assert!(matches!(history.plan(&budget, Pass::Manual, &Oldest), Ok(Outcome::Planned(_))));
            assert!(history.is_suspended(), "a plan changes nothing");
            history.compact().unwrap();
        },
        &|history| {
            let range = SeqRange { first: Seq(2), last: Seq(5) };
            history.summarize(range, "Twice 21.", &ClassEstimator).unwrap();
        },
        &|history| {
            let mut page = [0; History::snapshot_bytes_max()];
            history.snapshot(&mut page).unwrap();
            history.restore(&page).unwrap();
        },
        &History::clear,
    ];
    for (at, change) in changes.into_iter().enumerate() {
        let mut history = suspended();
        change(&mut history);
        assert!(!history.is_suspended() && history.resume().is_none(), "change {at}");
    }
}
