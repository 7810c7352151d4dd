//! `eval` on conversations with labelled questions.

use std::path::Path;

use serde_json::{Value, json};

use super::support::*;

/// The example of the neutral form in docs/program.md.
fn documented() -> String {
    let docs = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/program.md"));
    let (_, block) = docs.split_once("```json\n").unwrap();
    block.split_once("```").unwrap().0.to_owned()
}

/// Forty messages, of which an early one and a late one answer the questions.
fn labelled(early: &str, answer: &str) -> Value {
    let mut messages = vec![json!({"id": 0, "role": "user", "text": "Let us talk."})];
    for number in 1..40 {
        let role = if number % 2 == 0 { "user" } else { "assistant" };
        let text = match number {
            3 => early.to_owned(),
            number => format!("message {number} about nothing in particular"),
        };
        messages.push(json!({"id": number, "role": role, "text": text}));
    }
    json!({"messages": messages, "questions": [
        {"text": "What was it?", "answer": answer, "evidence": [3], "category": "early"},
        {"text": "And what came last?", "answer": "39", "evidence": [39]},
    ]})
}

fn row<'a>(report: &'a Value, strategy: &str) -> &'a Value {
    let mut rows = report["evidence"]["shares"][0]["rows"].as_array().unwrap().iter();
    rows.find(|row| row["strategy"] == strategy).unwrap_or_else(|| panic!("no row {strategy} in {report}"))
}

fn figures(row: &Value, known: &str) -> (Option<f64>, Option<f64>) {
    (row[known]["evidence"].as_f64(), row[known]["answer_terms"].as_f64())
}

#[test]
fn the_documented_example_is_measured() {
    let folder = Folder::new();
    let file = folder.file("trip.json", documented());
    let report = run(&["eval", text(&file), "--keep", "100", "--strategy", "truncate", "--json"]).json();
    assert_eq!(report["tokenizer"], "o200k_base");
    assert!(report.get("shares").is_none(), "no transcript was given: {report}");
    let evidence = &report["evidence"];
    assert_eq!((evidence["conversations"].as_u64(), evidence["questions"].as_u64()), (Some(1), Some(2)));
    assert_eq!(figures(row(&report, "truncate"), "blind"), (Some(100.0), Some(100.0)));
}

#[test]
fn evidence_is_found_or_named_as_lost() {
    let folder = Folder::new();
    let file = folder.file("labelled.json", labelled("The code is xylophone.", "xylophone").to_string());
    let args = ["eval", text(&file), "--keep", "30", "--strategy", "truncate", "--strategy", "agent"];
    let report = run(&[&args[..], &["--json"]].concat()).json();
    let truncate = row(&report, "truncate");
    // The newest messages have the evidence of the second question.
    assert_eq!(figures(truncate, "blind"), (Some(50.0), Some(50.0)));
    assert_eq!(figures(truncate, "aware"), (Some(50.0), Some(50.0)));
    assert_eq!(truncate["recovered"].as_f64(), Some(100.0));
    // `What was it?` shares no word with the message that answers it.
    assert_eq!(truncate["found"].as_f64(), Some(0.0));
    assert!(truncate["blind"]["tokens_left"].as_f64().unwrap() <= 30.0, "{truncate}");
    assert_eq!(truncate["lost"].as_array().map(Vec::len), Some(1));
    let lost = &truncate["lost"][0];
    assert_eq!(
        (lost["question"].as_str(), lost["evidence"].as_str(), lost["category"].as_str()),
        (Some("What was it?"), Some("3"), Some("early"))
    );
    let oracle = row(&report, "(oracle: evidence)");
    assert_eq!(figures(oracle, "blind"), (Some(100.0), Some(100.0)));
    assert_eq!((oracle["baseline"].as_bool(), &oracle["recovered"]), (Some(true), &Value::Null));
    let said = run(&args).ok();
    for expected in [
        "1 conversation, 2 questions with labelled evidence;",
        "evidence  terms   left   evidence  terms   left    log  found",
        "What was it? (category early): in message 3 (assistant) of",
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
}

#[test]
fn text_without_blanks_is_measured_by_its_characters() {
    let folder = Folder::new();
    let file = folder.file("cjk.json", labelled("暗号是木琴。", "木琴").to_string());
    let report = run(&["eval", text(&file), "--keep", "30", "--strategy", "truncate", "--json"]).json();
    assert_eq!(figures(row(&report, "truncate"), "blind"), (Some(50.0), Some(50.0)));
    assert_eq!(figures(row(&report, "(oracle: evidence)"), "aware"), (Some(100.0), Some(100.0)));
}

#[test]
fn a_giant_message_is_left_out_and_said_so() {
    let mut giant = labelled("The code is xylophone.", "xylophone");
    giant["messages"][0]["text"] = "a task that no strategy may touch ".repeat(30_000).into();
    let folder = Folder::new();
    let file = folder.file("giant.json", giant.to_string());
    let args = ["eval", text(&file), "--keep", "10", "--strategy", "truncate", "--tokenizer", "estimate"];
    let said = run(&args).ok();
    assert!(said.contains("1 conversation left out: what no strategy may touch"), "{said}");
    assert!(said.contains("2 aware questions left out: what no strategy may touch"), "{said}");
    // Giant evidence outside of the task fits no budget, and is lost.
    let mut giant = labelled(&"long evidence ".repeat(30_000), "evidence");
    giant["questions"][1]["evidence"] = json!([3]);
    folder.file("giant.json", giant.to_string());
    let report = run(&[&args[..], &["--json"]].concat()).json();
    assert_eq!(figures(row(&report, "truncate"), "blind").0, Some(0.0));
    assert_eq!(figures(row(&report, "(oracle: evidence)"), "blind").0, Some(0.0));
}

#[test]
fn ids_and_questions_stay_on_their_line() {
    let mut hostile = labelled("The code is xylophone.", "xylophone");
    hostile["id"] = "one\nlost by truncate".into();
    hostile["messages"][3]["id"] = "3\u{1b}[2J\nforged".into();
    hostile["questions"][0]["evidence"] = json!(["3\u{1b}[2J\nforged"]);
    hostile["questions"][0]["text"] = "What\nwas it?".into();
    let folder = Folder::new();
    let file = folder.file("hostile.json", hostile.to_string());
    let said = run(&["eval", text(&file), "--keep", "30", "--strategy", "truncate"]).ok();
    assert!(said.contains("What␊was it?") && said.contains("3␛[2J␊forged"), "{said}");
    assert!(!said.lines().any(|line| line.starts_with("forged")), "{said}");
}

#[test]
fn a_transcript_beside_it_has_its_own_table() {
    let folder = Folder::new();
    let labelled = folder.file("labelled.json", labelled("The code is xylophone.", "xylophone").to_string());
    let agent = example("coding-agent.json");
    let both = [text(&labelled), text(&agent)];
    let args = ["eval", both[0], both[1], "--keep", "50", "--strategy", "truncate", "--json"];
    let report = run(&args).json();
    assert!(report["cuts"].as_u64() > Some(0) && report["shares"].is_array(), "{report}");
    assert_eq!(report["evidence"]["questions"].as_u64(), Some(2));
    let said = run(&args[..7]).ok();
    assert!(said.contains("copied text") && said.contains("labelled evidence"), "{said}");
    // With `--from`, the file is read in the named format only.
    let named = run(&["eval", both[0], "--from", "openai-chat"]).fails(2);
    assert!(!named.contains("evidence"), "{named}");
}

#[test]
fn what_cannot_be_measured_is_refused_with_its_place_and_a_remedy() {
    let folder = Folder::new();
    let with = |pointer: &str, value: Value| {
        let mut wrong = labelled(SECRET, SECRET);
        *wrong.pointer_mut(pointer).unwrap() = value;
        wrong.to_string()
    };
    for (content, expected) in [
        (
            with("/questions/1/evidence", json!([99])),
            "question 2 names \"99\" as evidence, and no message has that id; name",
        ),
        (with("/messages", json!([])), "it has no messages; give it those"),
        (with("/questions", json!([])), "it has no questions; give it some, or leave"),
        (with("/messages/2/text", json!({"a": SECRET})), "expected a string at line 1 column"),
        (
            with("/questions", json!([{"text": "Why?", "evidence": []}])),
            "no question names a message that answers it; give the ids",
        ),
        (String::new(), "labelled.json"),
    ] {
        let file = folder.file("labelled.json", &content);
        let error = run(&["eval", text(&file)]).fails(2);
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

#[test]
fn standard_input_is_no_file_that_has_its_name() {
    let folder = Folder::new();
    folder.file("-", labelled("The code is xylophone.", "xylophone").to_string());
    let args = ["eval", "-", "--keep", "50", "--strategy", "truncate", "--json"];
    let transcript = std::fs::read(example("coding-agent.json")).unwrap();
    let report = piped(program(&args).current_dir(folder.path("")), &transcript).json();
    assert!(report.get("evidence").is_none() && report["shares"].is_array(), "{report}");
}
