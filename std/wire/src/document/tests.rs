//! Tests of the search for conversations, and of the refusal of other texts.

use core::fmt::Write as _;

use super::*;

const RUNS: &str = r#"[
  {"task": 1, "traj": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]},
  {"task": 2, "traj": [{"role": "user", "content": "c"}]}
]"#;

const REPLAY: &str = r#"{
  "environment": "main",
  "trajectory": [{"action": "ls", "query": [{"role": "user", "content": "q"}]}],
  "history": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
}"#;

fn at<'a>(text: &'a str, pointer: &str) -> Result<Document<'a>, WireError> {
    Document::parse(text)?.at(&Pointer::parse(pointer)?)
}

fn message<T: core::fmt::Debug>(result: Result<T, WireError>) -> String {
    result.unwrap_err().to_string()
}

fn spliced(conversation: &DocumentConversation<'_>, keep: &[Piece<'_>]) -> String {
    let mut out = Vec::new();
    conversation.splice(keep.iter().copied(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn bytes_that_are_not_utf8_are_located() {
    assert_eq!(utf8(b"\xEF\xBB\xBF{}").unwrap(), "{}");
    let error = utf8(b"{\n \"a\": \"\xFF\"}").unwrap_err();
    assert_eq!((error.line(), error.column(), error.offset()), (Some(2), Some(8), Some(9)));
    assert!(utf8(b"\xFF\xFE{\0").unwrap_err().to_string().contains("UTF-16"));
    assert!(utf8("\"\u{e9}".as_bytes().get(..2).unwrap()).unwrap_err().to_string().contains("middle"));
}

#[test]
fn a_pointer_finds_a_slice_of_the_text() {
    let found = at(RUNS, "/1/traj/0/content").unwrap();
    assert_eq!((found.text(), &RUNS[found.range().clone()]), ("\"c\"", "\"c\""));
    assert_eq!(at(r#"{"a/b": {"m~n": [0, 1]}}"#, "/a~1b/m~0n/1").unwrap().text(), "1");
    assert_eq!(at(r#"{"caf\u00e9": 7}"#, "/caf\u{e9}").unwrap().text(), "7");
    assert_eq!(at(" 5 ", "").unwrap().text(), "5");
}

#[test]
fn a_pointer_to_nothing_names_the_deepest_place_that_exists() {
    assert_eq!(
        message(at(RUNS, "/1/history")),
        "line 3, column 3, at /1: found an object with keys `task`, `traj`; it has no key `history`"
    );
    assert_eq!(message(at(RUNS, "/2")), "found an array of 2; it has no element 2");
    assert_eq!(message(at(RUNS, "/last")), "found an array of 2; `last` is not an index");
    assert_eq!(message(at(RUNS, "/00")), "found an array of 2; `00` is not an index");
    assert!(message(at(RUNS, "/0/task/x")).ends_with("at /0/task: found a number; there is no `x` below it"));
    let twice = message(at(r#"{"a":1,"a":2}"#, "/a"));
    assert_eq!(twice, "line 1, column 12: the key `a` appears twice; remove one of the two");
}

#[test]
fn broken_documents_are_told_apart() {
    assert_eq!(message(conversation("")), "there is no JSON: the text is empty");
    assert_eq!(
        message(conversation("[{\"role\": \"user\",\n")),
        "line 2: the JSON ends before it is complete; it was cut off: get the rest of it"
    );
    assert_eq!(message(conversation("[\n  oops]")), "line 2, column 3: not JSON: expected value");
}

#[test]
fn conversations_are_found_as_arrays_and_in_requests() {
    let request = r#"{"model": "m", "messages": [ {"role": "user"} , {"role": "tool"} ], "n": 1}"#;
    let found = conversation(request).unwrap();
    assert_eq!(found.iter().collect::<Vec<_>>(), [r#"{"role": "user"}"#, r#"{"role": "tool"}"#]);
    assert_eq!(found.path().as_str(), "/messages");
    let Layout::Array(range) = found.layout() else { panic!("an array") };
    assert_eq!(&request[range.clone()], r#"[ {"role": "user"} , {"role": "tool"} ]"#);
    assert_eq!(conversation("[]").unwrap().len(), 0);
    assert_eq!(at(REPLAY, "/history").unwrap().conversation().unwrap().len(), 2);
}

#[test]
fn refusals_say_where_the_conversation_is() {
    let expected = "expected a conversation: an array of messages (objects with `role`), or an object with \
                    `messages`";
    assert_eq!(
        message(conversation(REPLAY)),
        format!(
            "found an object with keys `environment`, `trajectory`, `history`; {expected}; /history holds 2 \
             messages: try --at /history"
        )
    );
    assert_eq!(
        message(conversation(RUNS)),
        format!(
            "found an array of 2; {expected}; /traj in its first element holds 2 messages: try --each --at /traj"
        )
    );
    assert!(message(conversation("[[{\"role\":\"user\"}]]")).ends_with("holds 1 message: try --each"));
    let nested = format!("{{\"data\": {{\"runs\": {RUNS}}}}}");
    assert!(
        message(conversation(&nested)).ends_with("try --at /data/runs/0/traj"),
        "{}",
        message(conversation(&nested))
    );
    assert!(message(at(&nested, "/data").unwrap().conversation()).ends_with("try --at /data/runs/0/traj"));
    assert!(message(conversation("{\"role\":\n\"user\"}")).ends_with("this is a single message"));
    assert_eq!(message(conversation("3")), format!("found a number; {expected}"));
}

#[test]
fn an_element_that_is_no_message_is_named() {
    let text = "{\"messages\": [{\"role\": \"user\"},\n {\"content\": \"secret\"}]}";
    assert_eq!(
        message(conversation(text)),
        "line 2, column 2, at /messages/1: expected a message (an object with `role`), found an object with the key \
         `content`"
    );
}

#[test]
fn each_gives_elements_and_lines() {
    let places: Vec<_> =
        each(RUNS).unwrap().map(|run| run.unwrap().at(&Pointer::parse("/traj").unwrap()).unwrap()).collect();
    assert_eq!(places.iter().map(|place| place.path().as_str()).collect::<Vec<_>>(), ["/0/traj", "/1/traj"]);
    let values: Vec<_> = each("{\"a\": 1}\n\n[2]\n").unwrap().map(|line| line.unwrap().text()).collect();
    assert_eq!(values, ["{\"a\": 1}", "[2]"]);
    let only: Vec<_> = each("{}").unwrap().map(|line| line.unwrap().text()).collect();
    assert_eq!(only, ["{}"], "one line is a list of one");
    let broken = each("{\"a\": 1}\n{\"a\":\n").unwrap().nth(1).unwrap();
    assert!(message(broken).starts_with("line 2, column 5: the JSON ends"));
}

#[test]
fn deep_nesting_is_refused_and_not_a_crash() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(message(conversation(&deep)).starts_with("found an array of 1; expected"));
    let objects = format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
    assert!(message(conversation(&objects)).starts_with("found an object with the key `a`"));
    assert_eq!(at(&objects, &"/a".repeat(50)).unwrap().path().keys().count(), 50);
}

#[test]
fn jsonl_is_recognised_and_read_in_lines() {
    let text = "\n{\"role\": \"user\"}\r\n\r\n  {\"role\": \"tool\"}";
    assert!(looks_like_jsonl(text));
    assert!(!looks_like_jsonl("{\n\"a\": 1}\n") && !looks_like_jsonl("{}") && !looks_like_jsonl("[1]\n \n"));
    let expected = [(2, 1, "{\"role\": \"user\"}"), (4, 23, "{\"role\": \"tool\"}")];
    let found: Vec<_> = lines(text).map(|line| (line.number(), line.offset(), line.text())).collect();
    assert_eq!(found, expected);
    let mut streamed = Lines::new(text.as_bytes());
    for line in expected {
        let found = streamed.next_line().unwrap().unwrap();
        assert_eq!((found.number(), found.offset(), found.text()), line);
        assert_eq!(found.kind().unwrap(), LineKind::Message);
    }
    assert!(streamed.next_line().unwrap().is_none());
    assert_eq!(conversation(text).unwrap().len(), 2);
    let one = conversation("{\"role\": \"user\"}\n").unwrap();
    assert_eq!((one.len(), one.layout()), (1, &Layout::Lines));
    assert_eq!(message(conversation("[]\nrest")), "line 2: not JSON: trailing characters");
}

#[test]
fn lines_that_cannot_be_read_are_named() {
    let mut marked = Lines::new(&b"\xEF\xBB\xBF{}\n\n\"\xFF\"\n[]"[..]);
    assert_eq!(marked.next_line().unwrap().unwrap().offset(), 3);
    let error = marked.next_line().unwrap_err();
    assert_eq!((error.line(), error.offset()), (Some(3), Some(8)));
    assert_eq!(marked.next_line().unwrap().unwrap().kind().unwrap(), LineKind::Conversation);
}

#[test]
fn lines_are_classified() {
    let kind = |text: &'static str| lines(text).last().unwrap().kind();
    assert_eq!(kind("\n{\"messages\": []}").unwrap(), LineKind::Conversation);
    assert_eq!(kind("[{\"role\": \"user\"}]").unwrap(), LineKind::Conversation);
    assert_eq!(
        message(kind("\n\n{\"uri\": 1, \"body\": {\"messages\": [{\"role\": \"user\"}]}}")),
        "line 3: neither a message (an object with `role`) nor a conversation (with `messages`); found an object \
         with keys `uri`, `body`; /body in it holds 1 message: try --each --at /body"
    );
    assert!(
        message(kind("\n[{\"role\": \"user\"}, 3]"))
            .starts_with("line 2, column 20, at /1: expected a message")
    );
    assert!(
        message(conversation("{\"role\":\"user\"}\n[{\"role\":\"user\"}]"))
            .starts_with("line 2: the line is a")
    );
}

#[test]
fn splicing_keeps_what_is_around() {
    let text = "{\n  \"messages\": [\n    {\"role\": \"a\"},\n    {\"role\": \"b\"},\n    {\"role\": \"c\"}\n  ],\n  \"n\": 1.0\n}\n";
    let found = conversation(text).unwrap();
    let all = [0, 1, 2].map(Piece::Original);
    assert_eq!(spliced(&found, &all), text);
    assert_eq!(
        spliced(&found, &all[1..2]),
        text.replace("{\"role\": \"a\"},\n    ", "").replace(",\n    {\"role\": \"c\"}", "")
    );
    assert_eq!(spliced(&found, &[]), "{\n  \"messages\": [],\n  \"n\": 1.0\n}\n");
    let with_new = spliced(&found, &[all[0], Piece::New("{\"role\": \"x\"}"), all[2]]);
    assert_eq!(with_new, text.replace("\"b\"", "\"x\""));
    let error = found.splice([Piece::Original(3)], &mut Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), "there is no message 3: the conversation has 3");
}

#[test]
fn splicing_small_arrays_and_lines() {
    assert_eq!(spliced(&conversation("[ ]").unwrap(), &[]), "[ ]");
    let new = Piece::New("{}");
    assert_eq!(spliced(&conversation("[ ]").unwrap(), &[new, new]), "[{},{}]");
    let one = conversation("[\n {\"role\":1}\n]").unwrap();
    assert_eq!(spliced(&one, &[new, Piece::Original(0)]), "[\n {},\n {\"role\":1}\n]");
    let text = "{\"role\":1}\n\n{\"role\":2}\n{\"role\":3}";
    let lines = conversation(text).unwrap();
    assert_eq!(spliced(&lines, &[0, 1, 2].map(Piece::Original)), text);
    assert_eq!(spliced(&lines, &[2, 0].map(Piece::Original)), "{\"role\":3}\n\n{\"role\":1}");
    assert_eq!(spliced(&lines, &[]), "");
}

#[test]
fn debug_output_shows_places_and_no_text() {
    let found = conversation("[{\"role\": \"user\", \"content\": \"secret\"}]").unwrap();
    let mut shown = String::new();
    write!(shown, "{found:?}").unwrap();
    assert!(!shown.contains("secret"), "{shown}");
}
