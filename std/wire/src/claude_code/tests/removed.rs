//! Conversations after the removal of messages.

use std::collections::HashSet;

use epitome_message::Part;

use super::random::{Dice, lines};
use super::{side, text, transcript, user};
use crate::tests::support::{shown_in, written};
use crate::{Conversation, ReadOptions, TranscriptEntry, WireErrorKind, read, write_back};

/// A call and its result have the same name; another message has its own.
fn name(entry: &TranscriptEntry) -> String {
    let of_call = |part: &Part| match part {
        Part::ToolCall(call) => Some(call.id.to_string()),
        Part::ToolResult(result) => Some(result.call_id.to_string()),
        _ => None,
    };
    let call = entry.message().parts().iter().find_map(of_call);
    call.unwrap_or_else(|| entry.message().id().unwrap_or_default().to_owned())
}

fn response(entry: &TranscriptEntry) -> Option<&str> {
    entry.message().response_id()
}

/// A file without some messages is read as the rest. Calls are removed together with their results, as in a compaction.
#[test]
fn a_random_file_without_some_messages_is_read_as_the_rest() {
    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    let (mut compared, mut refused) = (0, 0);
    for _ in 0..1_500 {
        let lines = lines(&mut dice);
        let before = read(text(&lines), &ReadOptions::default()).unwrap();
        if before.conversations().is_empty() {
            continue;
        }
        let chosen = dice.below(before.conversations().len());
        let had = &before.conversations()[chosen].entries;
        let mut names: Vec<String> = had.iter().map(name).collect();
        names.sort();
        names.dedup();
        names.retain(|_| dice.below(3) == 0);
        // The lines of a response belong together: branches that share one line have all of them.
        let others = before.conversations().iter().enumerate().filter(|(number, _)| *number != chosen);
        let responses: HashSet<_> = others.flat_map(|(_, one)| &one.entries).filter_map(response).collect();
        let is_kept = |entry: &&TranscriptEntry| !names.contains(&name(entry));
        let kept: HashSet<_> = had.iter().filter(is_kept).filter_map(response).collect();
        let mut gone = had.iter().filter(|entry| !is_kept(entry)).filter_map(response);
        if gone.any(|response| kept.contains(response) && responses.contains(response)) {
            continue;
        }
        let mut new = before.clone();
        new.conversations_mut()[chosen].entries.retain(|entry| !names.contains(&name(entry)));
        let mut out = Vec::new();
        if write_back(&new, &mut out).is_err() {
            refused += 1;
            assert!(out.is_empty());
            continue;
        }
        let out = String::from_utf8(out).unwrap();
        let again = read(out.as_str(), &ReadOptions::default()).unwrap();
        let now: Vec<_> = again.conversations().iter().map(shown_in).collect();
        // The lines after a gap name the line before it, in each conversation that has them.
        let gap = had.iter().position(|entry| names.contains(&name(entry))).unwrap_or(had.len());
        let moved: HashSet<_> = had[gap..].iter().map(TranscriptEntry::record).collect();
        let is_moved = |one: &Conversation| one.entries.iter().any(|entry| moved.contains(&entry.record()));
        for (number, one) in new.conversations().iter().enumerate() {
            let wanted = shown_in(one);
            if wanted.is_empty() || (number != chosen && is_moved(one)) {
                continue;
            }
            // A branch without its own messages is the beginning of another one.
            let found = if number == 0 {
                now[..1].contains(&wanted)
            } else {
                now.iter().any(|one| one.starts_with(&wanted))
            };
            assert!(
                found,
                "{number} of {chosen} without {names:?}: {wanted:#?}\n{now:#?}\n{}\n{out}",
                text(&lines)
            );
            compared += 1;
        }
    }
    assert!(compared > 1_500 && refused < 200, "{compared} compared, {refused} refused");
}

#[test]
fn the_end_is_not_left_out_where_the_file_would_go_on_with_something_else() {
    let lines = [
        user("a", "", "one"),
        user("b", "a", "left"),
        user("c", "a", "right"),
        side(&user("d", "a", "aside")),
    ];
    let without = |number: usize, from: usize| {
        let mut new = transcript(&text(&lines));
        new.conversations_mut()[number].entries.truncate(from);
        let mut out = Vec::new();
        write_back(&new, &mut out).map(|()| String::from_utf8(out).unwrap()).map_err(|error| error.kind())
    };
    assert_eq!(without(0, 1), Err(WireErrorKind::Unsupported), "the left branch would go on");
    assert_eq!(without(1, 1).unwrap(), text(&[lines[0].clone(), lines[2].clone(), lines[3].clone()]));
    assert_eq!(without(2, 1).unwrap(), text(&lines[..3]));
    let mut alone = transcript(&text(&lines[..2]));
    alone.conversations_mut()[0].entries.pop();
    assert_eq!(written(&alone), text(&lines[..1]));
    alone.conversations_mut()[0].entries.clear();
    let error = write_back(&alone, &mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), WireErrorKind::Unsupported, "nothing could be read again");
    // A conversation that was selected by its end is not the one that the file continues.
    let mut chosen = read(text(&lines), &ReadOptions::default().with_leaf("b")).unwrap();
    chosen.conversations_mut()[0].entries.pop();
    assert_eq!(written(&chosen), text(&[lines[0].clone(), lines[2].clone(), lines[3].clone()]));
}
