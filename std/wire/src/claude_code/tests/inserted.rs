//! New messages: their places in the file, and the cases in which the file would be read differently.

use std::collections::HashSet;

use epitome_core::message::Role;
use epitome_message::{Message, Part, ToolResult};

use super::random::{Dice, lines};
use super::{call, line, parallel, says, side, text, transcript, user};
use crate::json;
use crate::tests::support::{shown_in, written};
use crate::{ReadOptions, Relation, Transcript, TranscriptEntry, WireErrorKind, read, write_back};

#[test]
fn a_new_message_stands_between_two_records() {
    let mut transcript = transcript(&text(&parallel()));
    let entries = &mut transcript.conversations_mut()[0].entries;
    entries.drain(1..6);
    entries.insert(1, TranscriptEntry::new(Message::assistant("seen: a.txt")));
    entries.insert(2, TranscriptEntry::new(Message::user("and \"b\"")));
    let out = written(&transcript);
    let lines: Vec<&str> = out.lines().collect();
    let parents = |line: &str| {
        let [name, parent] = json::fields(line, &["uuid", "parentUuid"]).unwrap().map(Option::unwrap);
        (name.to_owned(), parent.to_owned())
    };
    let names: Vec<_> = lines[1..].iter().map(|line| parents(line)).collect();
    assert_eq!(names.len(), 4);
    for (before, after) in names.iter().zip(&names[1..]) {
        assert_eq!(before.0, after.1, "each names the one before it");
    }
    let uuid = names[1].0.trim_matches('"');
    assert_eq!(
        lines[2],
        format!(
            r#"{{"parentUuid":"u1","isSidechain":false,"sessionId":"s","type":"assistant","message":{{"id":"{uuid}","type":"message","role":"assistant","model":"<synthetic>","content":[{{"type":"text","text":"seen: a.txt"}}],"stop_reason":"end_turn","stop_sequence":null,"usage":{{"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}}}},"uuid":"{uuid}"}}"#
        )
    );
    assert_eq!((uuid.len(), &uuid[14..15]), (36, "8"), "{uuid}");
    assert!("89ab".contains(&uuid[19..20]), "{uuid}");
    assert_eq!(lines[4], parallel()[6].replace("\"t2\"", &names[2].0));
    let again = read(out.as_str(), &ReadOptions::default()).unwrap();
    assert_eq!(shown_in(&again.conversations()[0]), shown_in(&transcript.conversations()[0]));
    assert_eq!(again.conversations()[0].usage.len(), 1, "what no model said has no usage");
    assert_eq!(out, written(&transcript), "the same names each time");
    // The same words at the same place are another message.
    let mut again = again;
    again.conversations_mut()[0].entries.insert(1, TranscriptEntry::new(Message::assistant("seen: a.txt")));
    let twice = read(written(&again), &ReadOptions::default()).unwrap();
    assert_eq!(shown_in(&twice.conversations()[0]), shown_in(&again.conversations()[0]));
}

/// A new message is read at its place: at every place of a conversation, with and without the messages before it.
#[test]
fn a_new_message_is_read_where_it_was_put() {
    let lines = parallel();
    // The same with the results in the other order, and at the end of the file.
    let turned: Vec<_> = [0, 1, 2, 4, 5, 3].map(|at| lines[at].clone()).into();
    let mut put = 0;
    for lines in [lines, turned] {
        let count = transcript(&text(&lines)).conversations()[0].entries.len();
        let places = (0..=count).flat_map(|at| (0..=at).map(move |left_out| (at, left_out)));
        // A call is not removed without its result.
        for (at, left_out) in places.filter(|(_, left_out)| !(2..6).contains(left_out)) {
            let mut new = transcript(&text(&lines));
            let entries = &mut new.conversations_mut()[0].entries;
            entries.insert(at, TranscriptEntry::new(Message::user("note")));
            entries.drain(..left_out);
            let mut out = Vec::new();
            if let Err(error) = write_back(&new, &mut out) {
                // Not between a response and its results, whose order is that of the calls.
                assert!(error.kind() == WireErrorKind::Unsupported && (2..6).contains(&at), "{at}: {error}");
                continue;
            }
            let again = read(String::from_utf8(out).unwrap(), &ReadOptions::default()).unwrap();
            assert_eq!(
                shown_in(&again.conversations()[0]),
                shown_in(&new.conversations()[0]),
                "{at} {left_out}"
            );
            put += 1;
        }
    }
    assert!(put >= 12, "{put}");
}

/// Files with branches, hooks and parallel calls. A conversation with new messages is read with them. The other
/// conversations are unchanged, unless they share the messages after the new ones. Every line is JSON, and has its own
/// name.
#[test]
fn new_messages_in_random_files_are_read_where_they_were_put() {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let (mut written_count, mut refused) = (0, 0);
    for _ in 0..1_500 {
        let lines = lines(&mut dice);
        let before = read(text(&lines), &ReadOptions::default()).unwrap();
        let Some(chosen) =
            (!before.conversations().is_empty()).then(|| dice.below(before.conversations().len()))
        else {
            continue;
        };
        let mut new = before.clone();
        let entries = &mut new.conversations_mut()[chosen].entries;
        let at = dice.below(entries.len() + 1);
        let behind: Vec<_> =
            entries[at..].iter().filter_map(|entry| entry.message().id().map(str::to_owned)).collect();
        for number in 0..=dice.below(2) {
            entries.insert(at + number, TranscriptEntry::new(Message::assistant(format!("note {number}"))));
        }
        let mut out = Vec::new();
        if write_back(&new, &mut out).is_err() {
            refused += 1;
            continue;
        }
        written_count += 1;
        let out = String::from_utf8(out).unwrap();
        let names: Vec<_> = out.lines().filter_map(|line| json::field(line, "uuid").unwrap()).collect();
        assert_eq!(names.len(), names.iter().collect::<HashSet<_>>().len(), "{out}");
        assert!(out.lines().all(|line| json::check(line).is_ok()), "{out}");
        let again = read(out.as_str(), &ReadOptions::default()).unwrap();
        let now: Vec<_> = again.conversations().iter().map(shown_in).collect();
        for (number, one) in new.conversations().iter().enumerate() {
            let shares = one
                .messages()
                .any(|message| message.id().is_some_and(|id| behind.iter().any(|own| own == id)));
            if number == chosen || !shares {
                assert!(
                    now.contains(&shown_in(one)),
                    "{number} of {chosen} at {at}: {now:#?}\n{}\n{out}",
                    text(&lines)
                );
            }
        }
        if chosen == 0 {
            assert_eq!(now[0], shown_in(&new.conversations()[0]), "{}\n{out}", text(&lines));
        }
    }
    assert!(written_count > 900 && refused > 20, "{written_count} written, {refused} refused");
}

#[test]
fn a_new_message_of_a_branch_leaves_the_other_as_it_was() {
    let lines = [
        user("u1", "", "go"),
        says("a1", "u1", "r1", r#"{"type":"text","text":"one"}"#),
        user("u2", "a1", "left"),
        user("u3", "a1", "right"),
        says("a3", "u3", "r3", r#"{"type":"text","text":"three"}"#),
    ];
    let mut transcript = transcript(&text(&lines));
    let other = shown_in(&transcript.conversations()[1]);
    transcript.conversations_mut()[0].entries.insert(2, TranscriptEntry::new(Message::assistant("note")));
    let again = read(written(&transcript), &ReadOptions::default()).unwrap();
    let active = [
        "user: text go",
        "assistant: text one",
        "assistant: text note",
        "user: text right",
        "assistant: text three",
    ];
    assert_eq!(shown_in(&again.conversations()[0]), active);
    assert_eq!(shown_in(&again.conversations()[1]), other);
    // The same text at the same place of both conversations has two names.
    transcript.conversations_mut()[1].entries.insert(2, TranscriptEntry::new(Message::assistant("note")));
    let out = written(&transcript);
    let again = read(out.as_str(), &ReadOptions::default()).unwrap();
    assert_eq!(again.conversations().len(), 2, "{out}");
    assert!(again.conversations().iter().all(|one| shown_in(one)[2] == "assistant: text note"), "{out}");
}

/// The transcript after `write_back` of a change to the first conversation; `None` if the change is refused.
fn changed(lines: &[String], change: impl FnOnce(&mut Transcript)) -> Option<Transcript> {
    let mut new = transcript(&text(lines));
    change(&mut new);
    let mut out = Vec::new();
    match write_back(&new, &mut out) {
        Ok(()) => Some(read(String::from_utf8(out).unwrap(), &ReadOptions::default()).unwrap()),
        Err(error) => {
            assert_eq!((error.kind(), out.len()), (WireErrorKind::Unsupported, 0));
            None
        }
    }
}

fn note() -> TranscriptEntry {
    TranscriptEntry::new(Message::user("note"))
}

fn shown(transcript: Option<Transcript>) -> Vec<Vec<String>> {
    transcript.unwrap().conversations().iter().map(shown_in).collect()
}

fn summary(uuid: &str, parent: &str) -> String {
    user(uuid, parent, "so far").replace("\"n\":1.50", "\"isCompactSummary\":true")
}

#[test]
fn a_new_message_is_refused_where_the_file_would_say_something_else() {
    let mixed = line(
        "user",
        "m",
        "a",
        r#"{"role":"user","content":[{"tool_use_id":"c","type":"tool_result","content":"r"},{"type":"text","text":"and"}]}"#,
    );
    let mixed = [user("u", "", "go"), says("a", "u", "r", &call("c")), mixed];
    let insert =
        |at: usize| move |new: &mut Transcript| new.conversations_mut()[0].entries.insert(at, note());
    assert!(changed(&mixed, insert(3)).is_none(), "within a record of two messages");
    assert!(changed(&mixed, insert(2)).is_some());
    assert!(changed(&mixed, insert(4)).is_some());
    assert!(changed(&parallel(), insert(2)).is_none(), "within a response");
    // A summary begins its conversation, with or without a boundary line before it.
    let bare = [user("a", "", "one"), summary("b", "a"), user("c", "b", "three")];
    assert!(changed(&bare, insert(0)).is_none());
    assert!(changed(&bare, |new| drop(new.conversations_mut()[0].entries.remove(0))).is_none());
    assert_eq!(
        shown(changed(&bare, insert(1)))[0],
        ["user: text so far", "user: text note", "user: text three"]
    );
    let replaced = changed(&bare, |new| {
        let entries = &mut new.conversations_mut()[0].entries;
        entries.clear();
        entries.push(note());
    });
    assert!(replaced.is_none(), "what was before would come back");
    // Another order, and a message twice.
    let three = [user("a", "", "one"), user("b", "a", "two"), user("c", "b", "three")];
    assert!(
        changed(&three, |new| new.conversations_mut()[0].entries.swap(0, 1)).is_some(),
        "no more than before"
    );
    for change in [
        (|entries: &mut Vec<TranscriptEntry>| entries.swap(0, 1)) as fn(&mut Vec<TranscriptEntry>),
        |entries| entries.push(entries[0].clone()),
    ] {
        let changed = changed(&three, |new| {
            let entries = &mut new.conversations_mut()[0].entries;
            entries.push(note());
            change(entries);
        });
        assert!(changed.is_none());
    }
    assert!(
        changed(&three, |new| new.conversations_mut()[0]
            .entries
            .push(TranscriptEntry::new(Message::user(""))))
        .is_none()
    );
}

#[test]
fn the_conversation_that_goes_on_goes_on_with_a_new_message_at_its_end() {
    let lines = [user("a", "", "one"), user("b", "a", "left"), user("c", "a", "right")];
    let replaced = changed(&lines, |new| {
        let entries = &mut new.conversations_mut()[0].entries;
        entries.clear();
        entries.push(note());
    });
    assert_eq!(shown(replaced)[0], ["user: text note"]);
    // A side chain stays one, even if only its shared messages are left.
    let lines = [user("a", "", "one"), side(&user("s", "a", "sub"))];
    let cut = changed(&lines, |new| {
        let entries = &mut new.conversations_mut()[1].entries;
        entries.pop();
        entries.push(note());
    });
    let cut = cut.unwrap();
    let relation = cut.conversations()[1].relation;
    assert_eq!((shown_in(&cut.conversations()[0]).len(), relation), (1, Relation::SideChain(0)));
    assert_eq!(shown_in(&cut.conversations()[1]), ["user: text one", "user: text note"]);
}

#[test]
fn branches_that_share_a_record_want_the_same_before_it() {
    let lines = [user("a", "", "a"), user("b", "a", "b"), user("c", "b", "c"), user("d", "b", "d")];
    let both = |second: &'static str| {
        changed(&lines, move |new| {
            for (one, said) in new.conversations_mut().iter_mut().zip(["note", second]) {
                one.entries.insert(1, TranscriptEntry::new(Message::user(said)));
            }
        })
    };
    assert!(both("another").is_none());
    let same = shown(both("note"));
    assert_eq!(same.len(), 2);
    assert!(
        same.iter().all(|one| one[..3] == ["user: text a", "user: text note", "user: text b"]),
        "{same:?}"
    );
    let one_alone = changed(&lines, |new| {
        let [one, other] = new.conversations_mut() else { panic!("two branches") };
        one.entries.insert(1, note());
        other.entries.pop();
    });
    assert!(one_alone.is_none());
}

#[test]
fn a_new_message_that_is_no_text_is_refused() {
    for (at, new) in [
        (1, Message::new(Role::Developer, vec![Part::Text("a".into())])),
        (1, Message::new(Role::Tool, vec![Part::ToolResult(ToolResult::new("c", Vec::new()))])),
    ] {
        let mut transcript = transcript(&text(&parallel()));
        transcript.conversations_mut()[0].entries.insert(at, TranscriptEntry::new(new));
        assert_eq!(write_back(&transcript, &mut Vec::new()).unwrap_err().kind(), WireErrorKind::Unsupported);
    }
}
