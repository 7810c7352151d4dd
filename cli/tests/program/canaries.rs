//! `eval --canaries`.

use serde_json::{Value, json};

use super::support::*;

fn survival<'a>(report: &'a Value, strategy: &str, at: usize) -> &'a Value {
    let mut rows = report["canaries"]["shares"][0]["rows"].as_array().unwrap().iter();
    &rows.find(|row| row["strategy"] == strategy).unwrap_or_else(|| panic!("no row {strategy} in {report}"))["after"]
        [at]
}

#[test]
fn planted_sentences_are_looked_for_after_one_compaction_and_five() {
    let folder = Folder::new();
    let file = folder.file("chat.json", json!({"messages": messages(30)}).to_string());
    let args = ["eval", text(&file), "--canaries", "--keep", "30", "--strategy", "truncate"];
    let report = run(&[&args[..], &["--json"]].concat()).json();
    let canaries = &report["canaries"];
    assert_eq!((canaries["conversations"].as_u64(), canaries["planted"].as_u64()), (Some(1), Some(15)));
    assert!(report.get("shares").is_none() && report.get("evidence").is_none(), "{report}");
    for (at, compactions) in [(0, 1), (1, 5)] {
        let truncate = survival(&report, "truncate", at);
        assert_eq!(truncate["compactions"].as_u64(), Some(compactions));
        assert!(truncate["by_kind"]["safety_rule"].as_f64() >= Some(33.3), "{truncate}");
        assert_eq!(truncate["missed"].as_u64(), Some(0));
        assert_eq!(survival(&report, "(oracle: canaries)", at)["stale"].as_f64(), Some(0.0));
    }
    let said = run(&args).ok();
    for expected in
        ["15 sentences planted", "after 1 compaction\n", "after 5 compactions\n", "stale", "preference"]
    {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    // The same command gives the same output.
    assert_eq!(run(&args).ok(), said);
}

#[test]
fn labelled_conversations_can_carry_canaries() {
    let turns = (0..20).map(|number| {
        let role = if number % 2 == 0 { "user" } else { "assistant" };
        json!({"id": number, "role": role, "text": format!("这是第{number}句话。")})
    });
    let file = json!({
        "messages": turns.collect::<Vec<_>>(),
        "questions": [{"text": "?", "evidence": [3]}],
    });
    let folder = Folder::new();
    let file = folder.file("labelled.json", file.to_string());
    let report = run(&["eval", text(&file), "--canaries", "--keep", "90", "--json"]).json();
    // Only the user's messages have a text that can carry canaries.
    assert_eq!(report["canaries"]["planted"].as_u64(), Some(5));
    assert!(report.get("evidence").is_none(), "{report}");
}

#[test]
fn a_conversation_that_is_too_short_is_refused_with_a_remedy() {
    let folder = Folder::new();
    let file = folder.file("chat.json", json!({"messages": messages(1)}).to_string());
    let error = run(&["eval", text(&file), "--canaries"]).fails(2);
    assert!(error.contains("long enough for five compactions; give a longer one"), "{error}");
    let empty = folder.file("empty.json", "");
    run(&["eval", text(&empty), "--canaries"]).fails(2);
}
