//! `compact --lazy`.

use serde_json::json;

use super::support::*;

#[test]
fn what_stays_is_what_counting_everything_keeps() {
    let folder = Folder::new();
    folder.file("in.json", serde_json::to_string(&messages(60)).unwrap());
    folder.file("in.jsonl", jsonl(&messages(60)));
    let budget = ["--tokenizer", "o200k_base", "--window", "6000", "--goal", "2000"];
    let all = report(&folder.path("in.json"), &budget);
    assert_eq!((&all["uncounted"], &all["token_basis"]), (&json!(null), &json!("counted")));
    for file in ["in.json", "in.jsonl"] {
        let lazy = report(&folder.path(file), &[&budget[..], &["--lazy"]].concat());
        for field in ["verdicts", "messages_after", "tokens_after", "stable_prefix_messages", "goal_missed"] {
            assert_eq!(lazy[field], all[field], "{file} {field}");
        }
        let number = |field: &str| lazy["uncounted"][field].as_u64().unwrap();
        assert!(number("messages") > 100, "{}", number("messages"));
        let before = all["tokens_before"].as_u64().unwrap();
        assert!((number("tokens_before_min")..=number("tokens_before_max")).contains(&before));
        assert_eq!(lazy["token_basis"], "estimated");
        assert_eq!(lazy["uncounted"]["tokens_after_basis"], "counted");
    }
}

#[test]
fn far_from_the_trigger_nothing_is_counted() {
    let folder = Folder::new();
    let file = folder.file("in.json", serde_json::to_string(&messages(20)).unwrap());
    let far = ["--tokenizer", "o200k_base", "--window", "1000000", "--lazy"];
    let lazy = report(&file, &far);
    assert_eq!((&lazy["unchanged_reason"], &lazy["messages_before"]), (&json!("not_due"), &json!(101)));
    assert_eq!(
        (&lazy["uncounted"]["messages"], &lazy["uncounted"]["tokens_after_basis"]),
        (&json!(101), &json!("estimated"))
    );
    let said = run(&[&["compact", text(&file)], &far[..]].concat()).ok();
    assert!(said.contains("101 messages, about ") && said.contains("uncounted 101 of them"), "{said}");
}

#[test]
fn what_answers_no_call_is_counted_with_all_the_rest() {
    let folder = Folder::new();
    let mut all = messages(3);
    all.insert(1, json!({"role": "tool", "tool_call_id": "nobody's", "content": "an answer"}));
    let file = folder.file("in.json", serde_json::to_string(&all).unwrap());
    let budget = ["--tokenizer", "o200k_base", "--goal", "200"];
    assert_eq!(report(&file, &[&budget[..], &["--lazy"]].concat()), report(&file, &budget));
    let wrong = run(&["compact", text(&file), "--lazy", "--keep", "50%"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.err.contains("--keep"), "{}", wrong.err);
}
