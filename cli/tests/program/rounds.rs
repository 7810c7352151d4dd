//! `eval --rounds`.

use serde_json::json;

use super::support::*;

#[test]
fn what_is_left_is_reported_by_round() {
    let folder = Folder::new();
    let file = folder.file("chat.json", json!({"messages": messages(30)}).to_string());
    let args = [
        "eval",
        text(&file),
        "--rounds",
        "3",
        "--keep",
        "30",
        "--strategy",
        "truncate",
        "--strategy",
        "agent",
    ];
    let report = run(&[&args[..], &["--json"]].concat()).json();
    let degradation = &report["degradation"];
    assert_eq!((degradation["conversations"].as_u64(), degradation["rounds"].as_u64()), (Some(1), Some(3)));
    assert!(report.get("shares").is_none() && report.get("canaries").is_none(), "{report}");
    let rows = degradation["shares"][0]["rows"].as_array().unwrap();
    let names: Vec<_> = rows.iter().map(|row| row["strategy"].as_str().unwrap()).collect();
    let oracles = ["(oracle: identifiers)", "(oracle: copied text)"];
    assert_eq!(
        names,
        [&["truncate", "agent", "(newest)", "(newest that fit)", "(random)"][..], &oracles].concat()
    );
    for row in rows {
        let after = row["after"].as_array().unwrap();
        assert_eq!(after.len(), 3, "{row}");
        assert!(after.iter().all(|after| after["tokens_left"].as_f64() <= Some(100.0)), "{row}");
    }
    let said = run(&args).ok();
    for expected in
        ["compacted 3 times", "keep 30%: identifiers", "keep 30%: written", "      1      2      3   once\n"]
    {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    // The same command gives the same output.
    assert_eq!(run(&args).ok(), said);
}

#[test]
fn what_has_no_rounds_is_refused_with_a_remedy() {
    let folder = Folder::new();
    let short = folder.file("short.json", json!({"messages": messages(1)}).to_string());
    let turns = (0..20).map(|number| json!({"id": number, "role": "user", "text": "words"}));
    let labelled =
        json!({"messages": turns.collect::<Vec<_>>(), "questions": [{"text": "?", "evidence": [3]}]});
    let labelled = folder.file("labelled.json", labelled.to_string());
    let [short, labelled] = [&short, &labelled].map(|file| text(file));
    for (args, expected) in [
        (
            &["eval", short, "--rounds", "2"][..],
            "enough messages of the model for 2 compactions; give a longer one",
        ),
        (
            &["eval", labelled, "--rounds", "2"],
            "labelled questions, which say nothing of the turns behind a compaction: leave it",
        ),
        (&["eval", short, "--rounds", "1"], "2..=5"),
        (&["eval", short, "--rounds", "6"], "2..=5"),
        (&["eval", short, "--rounds", "2", "--canaries"], "--canaries"),
    ] {
        let error = run(args).fails(2);
        assert!(error.contains(expected), "{args:?}: {error}");
    }
}
