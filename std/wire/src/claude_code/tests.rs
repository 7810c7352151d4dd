//! Session files of Claude Code: what is one conversation, and what is written back.

use epitome_core::attribution::SourceKind;
use epitome_core::message::Role;
use epitome_message::{Message, Part, ToolResult};

use crate::json;
use crate::tests::support::{shown_in, written};
use crate::{
    Conversation, Entry, Format, ReadOptions, Relation, Transcript, WireErrorKind, detect, read, write_back,
};

fn line(kind: &str, uuid: &str, parent: &str, message: &str) -> String {
    let parent = if parent.is_empty() { "null".to_owned() } else { format!("\"{parent}\"") };
    format!(
        r#"{{"parentUuid":{parent},"isSidechain":false,"sessionId":"s","type":"{kind}","message":{message},"uuid":"{uuid}","n":1.50}}"#
    )
}

fn user(uuid: &str, parent: &str, text: &str) -> String {
    line("user", uuid, parent, &format!(r#"{{"role":"user","content":"{text}"}}"#))
}

fn result(uuid: &str, parent: &str, call: &str) -> String {
    let content = format!(r#"[{{"tool_use_id":"{call}","type":"tool_result","content":"of {call}"}}]"#);
    let line = line("user", uuid, parent, &format!(r#"{{"role":"user","content":{content}}}"#));
    line.replace(r#""n":1.50"#, r#""toolUseResult":{"stdout":"x"}"#)
}

/// One line of the response `id`.
fn says(uuid: &str, parent: &str, id: &str, block: &str) -> String {
    let usage = r#"{"input_tokens":10,"cache_read_input_tokens":90,"output_tokens":7}"#;
    let message = format!(
        r#"{{"id":"{id}","type":"message","role":"assistant","content":[{block}],"stop_reason":null,"usage":{usage}}}"#
    );
    line("assistant", uuid, parent, &message)
}

fn call(id: &str) -> String {
    format!(
        r#"{{"type":"tool_use","id":"{id}","name":"Task","input":{{"prompt":"find it","description":"Finding"}}}}"#
    )
}

fn side(line: &str) -> String {
    line.replace("\"isSidechain\":false", "\"isSidechain\":true")
}

fn text(lines: &[String]) -> String {
    let mut text = r#"{"type":"file-history-snapshot","messageId":"m","snapshot":{}}"#.to_owned();
    lines.iter().for_each(|line| text = format!("{text}\n{line}"));
    text
}

fn transcript(text: &str) -> Transcript {
    assert_eq!(detect(text).unwrap().format, Format::ClaudeCode);
    let transcript = read(text, &ReadOptions::default()).unwrap();
    assert_eq!(written(&transcript), text, "what nobody changed is the source text");
    transcript
}

/// A response with a thought and two calls in three lines; the answers hang on their calls, and one comes early.
fn parallel() -> Vec<String> {
    vec![
        user("u1", "", "go"),
        says("a1", "u1", "r1", r#"{"type":"thinking","thinking":"hm","signature":"s"}"#),
        says("a2", "a1", "r1", &call("c1")),
        result("t1", "a2", "c1"),
        says("a3", "a2", "r1", &call("c2")),
        result("t2", "a3", "c2"),
        says("a4", "t2", "r2", r#"{"type":"text","text":"done"}"#),
    ]
}

#[test]
fn what_the_tool_says_in_the_users_place_is_no_request() {
    let lines = [
        user("u1", "", "<command-name>/clear</command-name><command-args></command-args>"),
        user("u2", "u1", "<local-command-stdout>done</local-command-stdout>"),
        user("u3", "u2", "Go"),
        user("u4", "u3", "[Request interrupted by user]"),
    ];
    let transcript = transcript(&text(&lines));
    let sources = transcript.conversations()[0].messages().map(|message| message.attribution().source);
    let (context, tool, caller) = (SourceKind::Context, SourceKind::Tool, SourceKind::Caller);
    assert_eq!(sources.collect::<Vec<_>>(), [context, tool, caller, context]);
    assert_eq!(transcript.conversations()[0].entries[0].message().id(), Some("u1"));
}

#[test]
fn the_lines_of_a_response_stand_together_and_their_answers_behind_them() {
    let transcript = transcript(&text(&parallel()));
    let [one] = transcript.conversations() else { panic!("{transcript:?}") };
    let task = r#"Task {"prompt":"find it","description":"Finding"}"#;
    let expected = [
        "user: text go".to_owned(),
        "assistant: reasoning hm".to_owned(),
        format!("assistant: call c1 {task}"),
        format!("assistant: call c2 {task}"),
        "tool: result c1 [text of c1]".to_owned(),
        "tool: result c2 [text of c2]".to_owned(),
        "assistant: text done".to_owned(),
    ];
    assert_eq!(shown_in(one), expected);
    let responses: Vec<_> = one.messages().map(|message| message.response_id().unwrap_or("-")).collect();
    assert_eq!(responses, ["-", "r1", "r1", "r1", "-", "-", "r2"]);
    let usage: Vec<_> = one.usage.iter().map(|entry| (entry.at, entry.usage.input_total)).collect();
    assert_eq!(usage, [(3, Some(100)), (6, Some(100))], "one report for each response, at its last line");
}

#[test]
fn a_message_that_mixes_results_and_words_is_split() {
    let content =
        r#"[{"type":"tool_result","tool_use_id":"c1","content":"x"},{"type":"text","text":"and now?"}]"#;
    let mixed = line("user", "m", "a", &format!(r#"{{"role":"user","content":{content}}}"#));
    let mut transcript = transcript(&text(&[user("u", "", "go"), says("a", "u", "r", &call("c1")), mixed]));
    let entries = &mut transcript.conversations_mut()[0].entries;
    assert_eq!(entries.iter().map(Entry::rejoin).collect::<Vec<_>>(), [false, false, false, true]);
    assert!(entries[3].message().wire().unwrap().rejoin);
    let before = transcript.source().to_string();
    transcript.conversations_mut()[0].entries.truncate(3);
    assert_eq!(written(&transcript), before.replace(r#",{"type":"text","text":"and now?"}"#, ""));
}

#[test]
fn side_chains_and_abandoned_branches_are_conversations_of_their_own() {
    let mut lines = parallel();
    lines.insert(1, side(&user("s1", "", "find it")));
    lines.insert(4, side(&says("s2", "s1", "rs", r#"{"type":"text","text":"found"}"#)));
    lines.push(user("b1", "a4", "wrong"));
    lines.push(user("b2", "a4", "right"));
    let all = text(&lines);
    let transcript = transcript(&all);
    let of = |one: &Conversation| {
        (one.id.to_string(), one.relation, one.active, one.label.to_string(), one.entries.len())
    };
    let found: Vec<_> = transcript.conversations().iter().map(of).collect();
    let expected = [
        ("b2".to_owned(), Relation::Own, true, String::new(), 8),
        ("s2".to_owned(), Relation::SideChain(0), false, "Finding".to_owned(), 2),
        ("b1".to_owned(), Relation::Branch(0), false, String::new(), 8),
    ];
    assert_eq!(found, expected);
    let other = read(all.as_str(), &ReadOptions::default().with_leaf("b1")).unwrap();
    assert_eq!(shown_in(other.active().unwrap()).last().unwrap(), "user: text wrong");
    assert_eq!(other.conversations().len(), 3);
    let error = read(all.as_str(), &ReadOptions::default().with_leaf("zz")).unwrap_err();
    assert_eq!(error.kind(), WireErrorKind::NotFound);
}

#[test]
fn the_tools_own_compactions_say_what_they_dropped() {
    let boundary = |uuid: &str, before: &str| {
        format!(
            r#"{{"parentUuid":null,"logicalParentUuid":"{before}","isSidechain":false,"sessionId":"s","type":"system","subtype":"compact_boundary","compactMetadata":{{"trigger":"auto","preTokens":1000}},"uuid":"{uuid}"}}"#
        )
    };
    let summary = |uuid: &str, parent: &str| {
        user(uuid, parent, "so far").replace("\"n\":1.50", "\"isCompactSummary\":true")
    };
    let mut lines = parallel();
    lines.extend([boundary("b1", "a4"), summary("s1", "b1"), user("u2", "s1", "more")]);
    // Older files have a summary without a boundary.
    lines.extend([summary("s2", "u2"), user("u3", "s2", "and more")]);
    lines.push(r#"{"type":"summary","summary":"A title","leafUuid":"u3"}"#.to_owned());
    let transcript = transcript(&text(&lines));
    let active = transcript.active().unwrap();
    assert_eq!((shown_in(active).len(), &*active.label), (2, "A title"));
    let of = |one: &crate::ToolCompaction| (one.at, one.trigger.to_string(), one.dropped, one.tokens_before);
    let found: Vec<_> = active.compactions.iter().map(of).collect();
    assert_eq!(found, [(0, "auto".to_owned(), Some(7), Some(1000)), (0, String::new(), Some(2), None)]);
    let before: Vec<_> =
        transcript.conversations()[1..].iter().map(|one| (one.relation, one.entries.len())).collect();
    assert_eq!(before, [(Relation::Branch(0), 7), (Relation::Branch(0), 2)]);
}

#[test]
fn resumed_files_go_on_and_copies_are_passed_over() {
    let mut lines = parallel();
    lines.push(user("u1", "", "go").replace("\"sessionId\":\"s\"", "\"sessionId\":\"t\""));
    lines.push(user("u2", "a4", "again").replace("\"sessionId\":\"s\"", "\"sessionId\":\"t\""));
    lines.push(
        user("e", "u2", "x")
            .replace("\"type\":\"user\",", "\"type\":\"assistant\",\"isApiErrorMessage\":true,"),
    );
    let resumed = transcript(&text(&lines));
    assert_eq!(resumed.conversations().len(), 1);
    assert_eq!(shown_in(&resumed.conversations()[0]).len(), 8);
    let elsewhere = transcript(&text(&[user("u9", "of another file", "go on")]));
    assert_eq!(elsewhere.conversations()[0].entries.len(), 1);
}

#[test]
fn what_follows_a_gap_names_the_message_before_it() {
    let mut transcript = transcript(&text(&parallel()));
    let conversation = &mut transcript.conversations_mut()[0];
    let cleared = Part::ToolResult(ToolResult::new("c2", vec![Part::Text("[cleared]".into())]));
    let changed = conversation.entries[5].message().clone().with_parts(vec![cleared]);
    conversation.entries[5] = conversation.entries[5].clone().with_message(changed);
    // The call c1 and its answer.
    conversation.entries.remove(4);
    conversation.entries.remove(2);
    let shorter = written(&transcript);
    let lines = parallel();
    let kept = [
        lines[0].clone(),
        lines[1].clone(),
        lines[4].replace("\"parentUuid\":\"a2\"", "\"parentUuid\":\"a1\""),
        lines[5].replace("of c2", "[cleared]"),
        lines[6].clone(),
    ];
    assert_eq!(shorter, text(&kept));
    let again = read(shorter, &ReadOptions::default()).unwrap();
    assert_eq!(shown_in(&again.conversations()[0]), shown_in(&transcript.conversations()[0]));
}

#[test]
fn a_new_message_stands_between_two_records() {
    let mut transcript = transcript(&text(&parallel()));
    let entries = &mut transcript.conversations_mut()[0].entries;
    entries.drain(1..6);
    entries.insert(1, Entry::new(Message::assistant("seen: a.txt")));
    entries.insert(2, Entry::new(Message::user("and \"b\"")));
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
    again.conversations_mut()[0].entries.insert(1, Entry::new(Message::assistant("seen: a.txt")));
    let twice = read(written(&again), &ReadOptions::default()).unwrap();
    assert_eq!(shown_in(&twice.conversations()[0]), shown_in(&again.conversations()[0]));
}

/// At every place of a conversation, with and without the messages before it.
#[test]
fn a_new_message_is_read_where_it_was_put() {
    let lines = parallel();
    // The same, with the answers in the other order, and at the end of the file.
    let turned: Vec<_> = [0, 1, 2, 4, 5, 3].map(|at| lines[at].clone()).into();
    let mut put = 0;
    for lines in [lines, turned] {
        let count = transcript(&text(&lines)).conversations()[0].entries.len();
        let places = (0..=count).flat_map(|at| (0..=at).map(move |left_out| (at, left_out)));
        // A call does not go without its answer.
        for (at, left_out) in places.filter(|(_, left_out)| !(2..6).contains(left_out)) {
            let mut new = transcript(&text(&lines));
            let entries = &mut new.conversations_mut()[0].entries;
            entries.insert(at, Entry::new(Message::user("note")));
            entries.drain(..left_out);
            let mut out = Vec::new();
            if let Err(error) = write_back(&new, &mut out) {
                // Not into a response and its answers, whose order is that of the calls.
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

/// Files with branches, hooks and parallel calls: a conversation that gets new messages is read with them, and the others as before
/// unless they share what is behind; every line is JSON, and has a name of its own.
#[test]
fn new_messages_in_random_files_are_read_where_they_were_put() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = move |end: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).unwrap() % end
    };
    let (mut written_count, mut refused) = (0, 0);
    for _ in 0..1_500 {
        let (mut lines, mut names) = (Vec::new(), vec![String::new()]);
        for number in 0..2 + below(6) {
            let own = format!("n{number}");
            let parent = match below(4) {
                0 => names[below(names.len())].clone(),
                _ => names[names.len() - 1].clone(),
            };
            let mut last = own.clone();
            match below(5) {
                0 => lines.push(hook(&own, &parent).replace("\"\"", "null")),
                1 => {
                    let calls = 1 + below(3);
                    for at in 0..calls {
                        let before = if at == 0 { parent.clone() } else { format!("{own}x{}", at - 1) };
                        lines.push(says(
                            &format!("{own}x{at}"),
                            &before,
                            &own,
                            &call(&format!("{own}c{at}")),
                        ));
                    }
                    for at in (0..calls).rev().take(calls) {
                        last = format!("{own}t{at}");
                        lines.push(result(&last, &format!("{own}x{at}"), &format!("{own}c{at}")));
                    }
                }
                2 => lines.push(says(&own, &parent, &own, r#"{"type":"text","text":"said"}"#)),
                _ => lines.push(user(&own, &parent, &own)),
            }
            names.push(last);
        }
        let before = read(text(&lines), &ReadOptions::default()).unwrap();
        let Some(chosen) = (!before.conversations().is_empty()).then(|| below(before.conversations().len()))
        else {
            continue;
        };
        let mut new = before.clone();
        let entries = &mut new.conversations_mut()[chosen].entries;
        let at = below(entries.len() + 1);
        let behind: Vec<_> =
            entries[at..].iter().filter_map(|entry| entry.message().id().map(str::to_owned)).collect();
        for number in 0..=below(2) {
            entries.insert(at + number, Entry::new(Message::assistant(format!("note {number}"))));
        }
        let mut out = Vec::new();
        if write_back(&new, &mut out).is_err() {
            refused += 1;
            continue;
        }
        written_count += 1;
        let out = String::from_utf8(out).unwrap();
        let names: Vec<_> = out.lines().filter_map(|line| json::field(line, "uuid").unwrap()).collect();
        assert_eq!(names.len(), names.iter().collect::<std::collections::HashSet<_>>().len(), "{out}");
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
    transcript.conversations_mut()[0].entries.insert(2, Entry::new(Message::assistant("note")));
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
    // The same text at the same place of both has two names.
    transcript.conversations_mut()[1].entries.insert(2, Entry::new(Message::assistant("note")));
    let out = written(&transcript);
    let again = read(out.as_str(), &ReadOptions::default()).unwrap();
    assert_eq!(again.conversations().len(), 2, "{out}");
    assert!(again.conversations().iter().all(|one| shown_in(one)[2] == "assistant: text note"), "{out}");
}

/// What `write_back` makes of a change of the first conversation, or that it refuses the change.
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

fn note() -> Entry {
    Entry::new(Message::user("note"))
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
    // A summary begins its conversation, with a line that says so before it or without one.
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
    for change in [(|entries: &mut Vec<Entry>| entries.swap(0, 1)) as fn(&mut Vec<Entry>), |entries| {
        entries.push(entries[0].clone())
    }] {
        let changed = changed(&three, |new| {
            let entries = &mut new.conversations_mut()[0].entries;
            entries.push(note());
            change(entries);
        });
        assert!(changed.is_none());
    }
    assert!(
        changed(&three, |new| new.conversations_mut()[0].entries.push(Entry::new(Message::user(""))))
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
    // A side chain that is cut back to what it shares stays one.
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
                one.entries.insert(1, Entry::new(Message::user(said)));
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
        transcript.conversations_mut()[0].entries.insert(at, Entry::new(new));
        assert_eq!(write_back(&transcript, &mut Vec::new()).unwrap_err().kind(), WireErrorKind::Unsupported);
    }
}

/// A line that holds no message, as hooks leave one behind each turn.
fn hook(uuid: &str, parent: &str) -> String {
    format!(
        r#"{{"parentUuid":"{parent}","isSidechain":false,"sessionId":"s","type":"system","subtype":"stop_hook_summary","uuid":"{uuid}"}}"#
    )
}

/// Lines, and the line that each names.
type Links = &'static [(&'static str, &'static str)];

/// Which messages are left out, and what each line that is left names then.
const LEFT_OUT: &[(&[usize], Links)] = &[
    (
        &[0, 1],
        &[
            ("h1", ""),
            ("u2", ""),
            ("a2", "u2"),
            ("h2", "a2"),
            ("h3", "h2"),
            ("u3", "h3"),
            ("a3", "u3"),
            ("h4", "a3"),
        ],
    ),
    (
        &[3],
        &[
            ("u1", ""),
            ("a1", "u1"),
            ("h1", "a1"),
            ("u2", "h1"),
            ("h2", "u2"),
            ("h3", "h2"),
            ("u3", "u2"),
            ("a3", "u3"),
            ("h4", "a3"),
        ],
    ),
    (
        &[1, 2, 3],
        &[("u1", ""), ("h1", "u1"), ("h2", "h1"), ("h3", "h2"), ("u3", "u1"), ("a3", "u3"), ("h4", "a3")],
    ),
    (
        &[5],
        &[
            ("u1", ""),
            ("a1", "u1"),
            ("h1", "a1"),
            ("u2", "h1"),
            ("a2", "u2"),
            ("h2", "a2"),
            ("h3", "h2"),
            ("u3", "h3"),
            ("h4", "u3"),
        ],
    ),
];

#[test]
fn lines_without_a_message_name_a_line_that_is_still_there() {
    let words = |text: &str| format!(r#"{{"type":"text","text":"{text}"}}"#);
    let lines = vec![
        user("u1", "", "go"),
        says("a1", "u1", "r1", &words("one")),
        hook("h1", "a1"),
        user("u2", "h1", "on"),
        says("a2", "u2", "r2", &words("two")),
        hook("h2", "a2"),
        hook("h3", "h2"),
        user("u3", "h3", "more"),
        says("a3", "u3", "r3", &words("three")),
        hook("h4", "a3"),
    ];
    for (gone, expected) in LEFT_OUT {
        let mut transcript = transcript(&text(&lines));
        let conversation = &mut transcript.conversations_mut()[0];
        gone.iter().rev().for_each(|at| drop(conversation.entries.remove(*at)));
        let shorter = written(&transcript);
        let links: Vec<_> = shorter
            .lines()
            .filter_map(|line| {
                let line: serde_json::Value = serde_json::from_str(line).unwrap();
                let parent = line["parentUuid"].as_str().unwrap_or_default().to_owned();
                Some((line["uuid"].as_str()?.to_owned(), parent))
            })
            .collect();
        let links: Vec<_> = links.iter().map(|(name, parent)| (name.as_str(), parent.as_str())).collect();
        assert_eq!(links, *expected, "without {gone:?}");
        let again = read(shorter, &ReadOptions::default()).unwrap();
        assert_eq!(
            shown_in(again.active().unwrap()),
            shown_in(transcript.active().unwrap()),
            "without {gone:?}"
        );
    }
}

#[test]
fn errors_name_the_line() {
    let broken = line("user", "u", "", r#"{"role":"narrator","content":"x"}"#);
    let error = read(text(&[user("u0", "", "go"), broken]), &ReadOptions::default()).unwrap_err();
    assert_eq!((error.line(), error.path()), (Some(3), "/message/role"));
}
