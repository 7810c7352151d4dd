//! Answers of a command, and the words of its command line.

use epitome::message::Message;
use epitome::tokens::counter_by_name;

use super::*;

fn given(messages: Vec<Message>) -> Vec<Given> {
    let counter = counter_by_name("estimate").unwrap();
    let counted = messages.into_iter().map(|message| CountedMessage::of(message, &*counter));
    (0..).zip(counted).map(|(position, counted)| Given { position: Some(position), counted }).collect()
}

fn three() -> Vec<Given> {
    given(vec![Message::system("Be brief."), Message::user("How are you?"), Message::assistant("Well.")])
}

fn parse(line: &str, given: &[Given]) -> core::result::Result<Vec<Given>, String> {
    let texts: Vec<_> = given.iter().map(|given| text_of(&given.counted).unwrap()).collect();
    let counter = counter_by_name("estimate").unwrap();
    Answer::parse(line.as_bytes(), given, &texts, &*counter).map(|answer| answer.left)
}

fn positions(left: &[Given]) -> Vec<Option<u32>> {
    left.iter().map(|given| given.position).collect()
}

#[test]
fn numbers_and_messages_that_were_given_stand_as_they_stood() {
    let given = three();
    assert_eq!(positions(&parse(r#"{"keep": [0, 2]}"#, &given).unwrap()), [Some(0), Some(2)]);
    assert!(parse(r#"{"keep": []}"#, &given).unwrap().is_empty());
    let left = parse(
        r#"{"messages": [{"content": "Be brief.", "role": "system", "tool_calls": []}, {"role": "user", "content": "In short: fine."},
           {"role": "assistant", "content": "Well.", "name": null}, {"role": "assistant", "content": "Well."}]}"#,
        &given,
    )
    .unwrap();
    // A message of the request is matched once: its repetition in the answer counts as new.
    assert_eq!(positions(&left), [Some(0), None, Some(2), None]);
    let shown = Given::shown(&given, &left);
    assert_eq!(shown.new, ["In short: fine.\n", "Well.\n"]);
    let sizes: Vec<u64> = left.iter().map(|given| given.counted.tokens()).collect();
    assert_eq!(shown.tokens, sizes.iter().sum::<u64>());
    assert_eq!((shown.written, shown.stable), (sizes[1] + sizes[3], sizes[0]));
}

#[test]
fn a_result_without_its_call_is_illegal_unless_it_was_before() {
    let given = given(vec![Message::user("Look."), Message::tool("c1", "seen")]);
    assert!(!Given::shown(&given, &given[1..]).illegal);
    let given = three();
    let answered =
        parse(r#"{"messages": [{"role": "tool", "tool_call_id": "c1", "content": "seen"}]}"#, &given)
            .unwrap();
    assert!(Given::shown(&given, &answered).illegal);
    assert!(!Given::shown(&given, &given[1..]).illegal);
}

#[test]
fn an_answer_that_says_nothing_is_refused_with_what_was_expected() {
    let given = three();
    for (line, expected) in [
        ("", "no JSON"),
        ("loading the model..", "no JSON"),
        ("[0, 1]", "another JSON"),
        ("{}", "expected"),
        (r#"{"keep": [0], "messages": []}"#, "expected"),
        (r#"{"keep": [0, 3]}"#, "`keep` has 3, but the request has 3 messages"),
        (r#"{"keep": [1, 0]}"#, "does not ascend"),
        (r#"{"keep": [1, 1]}"#, "does not ascend"),
        (r#"{"keep": [-1]}"#, "another JSON"),
        (r#"{"keep": "all"}"#, "another JSON"),
        (r#"{"messages": [{"text": "?"}]}"#, "message 0 is none of Chat Completions"),
        (r#"{"error": "no room"}"#, "the program says: no room"),
    ] {
        let error = parse(line, &given).unwrap_err();
        assert!(error.contains(expected), "{line}: {error}");
    }
}

#[test]
fn a_command_is_a_name_and_words() {
    let spec = |text: &str| text.parse::<CommandSpec>();
    let words = |text: &str| spec(text).unwrap().words;
    assert_eq!(spec("a b=run").unwrap().name, "a b");
    assert_eq!(words("x= python3  trim.py --keep=3 "), ["python3", "trim.py", "--keep=3"]);
    assert_eq!(words("x='my programs/run' \"\" a'b c'd"), ["my programs/run", "", "ab cd"]);
    for wrong in ["run", "=run", "x=", "x= ", "x='run"] {
        assert!(spec(wrong).is_err(), "{wrong}");
    }
}
