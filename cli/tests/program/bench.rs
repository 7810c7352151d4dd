//! `bench`: its figures, and that strategies keep as many tokens as in `compact`. Times are not asserted.

use serde_json::{Value, json};

use super::support::*;

/// The report with these further arguments, as JSON. One round is enough where no time matters.
fn bench(args: &[&str]) -> Value {
    run(&[&["bench", "--json", "--rounds", "1"], args].concat()).json()
}

const STAGES: [&str; 7] = ["read", "group", "count", "plan", "project", "validate", "write"];

#[test]
fn every_stage_is_measured_and_counted_as_elsewhere() {
    let file = example("coding-agent.json");
    let said = bench(&[text(&file), "--tokenizer", "o200k_base"]);
    let stats = run(&["stats", text(&file), "--json"]).json();
    for field in ["messages", "turns", "tokens", "token_basis", "tokenizer"] {
        assert_eq!(said[field], stats[field], "{field}");
    }
    assert_eq!(
        (said["conversations"].as_u64(), said["bytes"].as_u64()),
        (Some(1), Some(read(&file).len() as u64))
    );
    let stages = said["stages"].as_array().unwrap();
    let mut names: Vec<&str> = stages.iter().map(|stage| stage["stage"].as_str().unwrap()).collect();
    assert_eq!(
        names.iter().filter(|name| **name == "plan").count(),
        said["strategies"].as_array().unwrap().len()
    );
    names.dedup();
    assert_eq!(names, STAGES);
    for stage in stages {
        let figure = |name: &str| stage[name].as_u64().unwrap_or_else(|| panic!("no {name} in {stage}"));
        let sees_text = ["read", "count", "write"].contains(&stage["stage"].as_str().unwrap());
        // Each rate agrees with the time in the same row.
        let a_second = |number: u64| number as u128 * 1_000_000_000 / u128::from(figure("nanoseconds"));
        assert_eq!(u128::from(figure("messages_per_second")), a_second(74), "{stage}");
        assert_eq!(u128::from(figure("turns_per_second")), a_second(9), "{stage}");
        assert_eq!(
            u128::from(figure("tokens_per_second")),
            a_second(stats["tokens"].as_u64().unwrap()),
            "{stage}"
        );
        let bytes = sees_text.then(|| a_second(read(&file).len() as u64));
        assert_eq!(stage["bytes_per_second"].as_u64().map(u128::from), bytes, "{stage}");
        assert_eq!(figure("rounds"), 1);
        assert_eq!(stage["stage"] == "plan", stage["strategy"].is_string(), "{stage}");
    }
}

#[test]
fn strategies_keep_what_compact_reports() {
    let file = example("coding-agent.json");
    let mut compacted = 0;
    for asked in [
        &["--keep", "30%"][..],
        &["--goal", "2000"],
        &["--goal", "3%", "--window", "60000"],
        &["--keep", "100%"],
    ] {
        let said = bench(&[&[text(&file)], asked].concat());
        for kept in said["strategies"].as_array().unwrap() {
            let strategy = kept["strategy"].as_str().unwrap();
            let report = report(&file, &[asked, &["--strategy", strategy]].concat());
            let stays = |kind: &str| {
                let groups = report["groups_detail"].as_array().unwrap().iter();
                let stay = groups.filter(|group| {
                    group["kind"] == kind && matches!(group["verdict"].as_str(), Some("K" | "E"))
                });
                stay.count()
            };
            let expected = json!({
                "strategy": strategy,
                "tokens_after": report["tokens_after"],
                "user_messages_kept": stays("user"),
                "tool_exchanges_kept": stays("exchange"),
                "stable_prefix_tokens": report["stable_prefix_tokens"],
                "goal_missed": u64::from(report["goal_missed"] == true),
                "unchanged": u64::from(!report["unchanged_reason"].is_null()),
                "infeasible": 0,
            });
            assert_eq!(*kept, expected, "{asked:?}");
            assert_eq!(said["goal"], report["budget"]["goal"]);
            compacted += usize::from(report["unchanged_reason"].is_null());
        }
    }
    assert!(compacted >= 15, "{compacted}");
}

#[test]
fn many_conversations_are_measured_together() {
    let folder = Folder::new();
    let mut long = messages(1);
    long[1]["content"] = json!(format!("{SECRET} ").repeat(2_000));
    let file = folder.file("in.json", json!([messages(12), long, messages(3)]).to_string());
    let args =
        ["--each", "--goal", "500", "--window", "1500", "--strategy", "truncate", "--strategy", "window"];
    let said = bench(&[&[text(&file)], &args[..]].concat());
    assert_eq!((said["conversations"].as_u64(), said["messages"].as_u64()), (Some(3), Some(61 + 6 + 16)));
    assert_eq!((said["user_messages"].as_u64(), said["tool_exchanges"].as_u64()), (Some(16), Some(16)));
    let kept = said["strategies"].as_array().unwrap();
    assert_eq!(kept.len(), 2);
    // A conversation that does not fit stays unchanged, as in `compact`.
    let each = run(&[&["compact", text(&file), "--json"], &args[..7]].concat());
    let reports: Value = serde_json::from_str(&each.out).unwrap();
    let after: u64 = [0, 2].map(|at| reports[at]["tokens_after"].as_u64().unwrap()).iter().sum();
    let whole = run(&["stats", text(&file), "--each", "--tokenizer", "estimate", "--json"]).json();
    assert_eq!(kept[0]["tokens_after"].as_u64(), Some(after + whole[1]["tokens"].as_u64().unwrap()));
    assert_eq!((each.code, kept[0]["infeasible"].as_u64()), (3, Some(1)));
}

#[test]
fn people_read_two_tables() {
    let said = run(&["bench", text(&fixture("nested.json")), "--at", "/history", "--rounds", "2"]).ok();
    let lines: Vec<&str> = said.lines().collect();
    assert!(
        lines[0].starts_with("3 messages in 1 turn, ") && lines[0].contains(" by estimate-v2), "),
        "{said}"
    );
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(lines[2]), ["stage", "median", "messages/s", "turns/s", "tokens/s", "MB/s"]);
    let stages: Vec<_> = lines[3..].iter().take_while(|line| !line.is_empty()).collect();
    assert!(
        stages.len() > STAGES.len() && stages.iter().any(|line| line.starts_with("plan: truncate ")),
        "{said}"
    );
    assert!(STAGES.iter().all(|stage| stages.iter().any(|line| line.starts_with(stage))), "{said}");
    let kept = &lines[3 + stages.len() + 1..];
    assert!(kept[0].starts_with("to ") && kept[0].contains(" of 1 user message and "), "{said}");
    assert_eq!(words(kept[1])[..3], ["strategy", "tokens", "now"]);
    assert!(kept[2].starts_with("truncate ") && kept.len() == 2 + stages.len() - STAGES.len() + 1, "{said}");
}

#[test]
fn what_can_be_read_but_once_is_read_once() {
    let file = example("support-chat.jsonl");
    let expected = bench(&[text(&file)]);
    let piped = run_with(&["bench", "-", "--json", "--rounds", "1"], read(&file).as_bytes()).json();
    let named = run_with(&["bench", "/dev/stdin", "--json", "--rounds", "1"], read(&file).as_bytes()).json();
    for said in [&piped, &named] {
        for field in ["messages", "turns", "tokens", "bytes", "goal", "strategies"] {
            assert_eq!(said[field], expected[field], "{field}");
        }
    }
    let empty = run_with(&["bench", "-"], b"").fails(2);
    assert!(empty.contains("standard input: there is no JSON: the text is empty"), "{empty}");
}

#[test]
fn other_formats_are_measured_too() {
    let folder = Folder::new();
    let chat = folder.file("chat.json", json!({"messages": messages(4)}).to_string());
    let before = bench(&[text(&chat)]);
    let mut seen = 0;
    for format in ["openai-responses", "anthropic", "gemini"] {
        let other = folder.path(format);
        run(&["convert", text(&chat), "--to", format, "-o", text(&other)]).ok();
        let said = bench(&[text(&other), "--from", format, "--model", "gpt-4o"]);
        assert_eq!(
            (&said["user_messages"], &said["tokenizer"]),
            (&before["user_messages"], &json!("o200k_base"))
        );
        seen += said["stages"].as_array().unwrap().len();
    }
    assert_eq!(seen, 3 * before["stages"].as_array().unwrap().len());
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let file = example("coding-agent.json");
    for (args, part) in [
        (&["--strategy", "trunkate"][..], "the nearest is truncate"),
        (
            &["--strategy", "summarize"],
            "bench asks none: `compact --summarizer URL` does, tool-digest needs none",
        ),
        (&["--tokenizer", "gpt"], "--tokenizer: "),
        (&["--profile", "mistrial"], "'mistrial' for '--profile"),
        (&["--keep", "half"], "0% to 100%"),
        (&["--keep", "10%", "--goal", "9"], "cannot be used with"),
        (&["--goal", "119809"], "above window - reserve (119808)"),
        (&["--rounds", "0"], "'0' for '--rounds"),
    ] {
        let said = run(&[&["bench", text(&file)], args].concat()).fails(2);
        assert!(said.contains(part), "{args:?}: {part:?} is not in: {said}");
    }
}
