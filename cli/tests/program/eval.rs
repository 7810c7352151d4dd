//! `eval`: the information that a compaction retains, on conversations with results known by hand.

use serde_json::{Value, json};

use super::support::*;

/// An agent reads a file that names `src/alpha_one.rs`, talks at length, and then writes that name and one sentence again.
fn recorded(answer: &str) -> Value {
    let mut messages = vec![
        json!({"role": "user", "content": "Look around."}),
        json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{\"path\":\"index\"}"}}
        ]}),
        json!({"role": "tool", "tool_call_id": "c1", "content": "see src/alpha_one.rs, the quick brown fox jumps here"}),
        json!({"role": "assistant", "content": "Done."}),
    ];
    for turn in 0..12 {
        let filler = format!("more about nothing in turn {turn} ").repeat(40);
        messages.push(json!({"role": "user", "content": filler}));
        messages.push(json!({"role": "assistant", "content": "I see."}));
    }
    messages.push(json!({"role": "user", "content": "Which one was it?"}));
    messages.push(json!({"role": "assistant", "content": answer}));
    json!({ "messages": messages })
}

fn row<'a>(report: &'a Value, keep: &str, strategy: &str) -> &'a Value {
    let shares = report["shares"].as_array().unwrap();
    let share = shares.iter().find(|share| share["keep"] == keep).unwrap();
    let mut rows = share["rows"].as_array().unwrap().iter();
    rows.find(|row| row["strategy"] == strategy).unwrap_or_else(|| panic!("no row {strategy} in {share}"))
}

#[test]
fn a_conversation_within_a_document_is_measured_as_if_it_stood_alone() {
    let folder = Folder::new();
    let conversation = recorded("It was src/alpha_one.rs: the quick brown fox jumps here.");
    let alone = folder.file("recorded.json", conversation["messages"].to_string());
    let asked = json!([{"text": "Which file?", "evidence": ["m1"]}]);
    let labelled = json!([{"id": "m1", "role": "user", "text": "It is src/alpha_one.rs."}]);
    let runs = json!([{"log": conversation["messages"]}]);
    let labelled = json!({"messages": labelled, "questions": asked, "runs": runs});
    let labelled = folder.file("labelled.json", labelled.to_string());
    let within = json!({ "runs": runs });
    let within = folder.file("within.json", within.to_string());
    let eval =
        |args: &[&str]| run(&[&["eval", "--keep", "25", "--strategy", "truncate", "--json"], args].concat());
    let said = eval(&[text(&within)]).fails(2);
    assert!(said.contains("try --at /runs/0/log"), "{said}");
    let alone = eval(&[text(&alone)]).json();
    // A file with labelled questions is a transcript if `--at` names a transcript in it.
    assert!(!eval(&[text(&labelled)]).json()["evidence"].is_null());
    for file in [within, labelled] {
        let within = eval(&[text(&file), "--at", "/runs/0/log"]).json();
        for share in ["identifiers", "copied_text"] {
            let [alone, within] =
                [&alone, &within].map(|report| row(report, "25%", "truncate")[share].as_f64());
            assert!(alone.is_some() && alone == within, "{share}: {alone:?} {within:?}");
        }
    }
}

#[test]
fn what_the_model_needed_is_found_or_named_as_lost() {
    let folder = Folder::new();
    let file = folder.file(
        "recorded.json",
        recorded("It was src/alpha_one.rs: the quick brown fox jumps here.").to_string(),
    );
    let report = run(&["eval", text(&file), "--keep", "20,100", "--json"]).json();
    assert_eq!(
        (report["conversations"].as_u64(), report["tokenizer"].as_str()),
        (Some(1), Some("o200k_base"))
    );
    let truncated = row(&report, "20%", "truncate");
    assert_eq!(
        (truncated["identifiers"].as_f64(), truncated["copied_text"].as_f64()),
        (Some(0.0), Some(0.0))
    );
    let lost = &truncated["lost"][0];
    assert_eq!(
        (lost["identifier"].as_str(), lost["stood_in"].as_u64(), lost["role"].as_str()),
        (Some("src/alpha_one.rs"), Some(2), Some("tool"))
    );
    assert_eq!(lost["needed_at"].as_u64(), Some(29));
    let oracle = row(&report, "20%", "(oracle: identifiers)");
    assert_eq!((oracle["identifiers"].as_f64(), oracle["baseline"].as_bool()), (Some(100.0), Some(true)));
    for (strategy, baseline) in [("truncate", false), ("(newest)", true), ("(random)", true)] {
        let all = row(&report, "100%", strategy);
        assert_eq!((all["identifiers"].as_f64(), all["copied_text"].as_f64()), (Some(100.0), Some(100.0)));
        assert_eq!(
            (all["baseline"].as_bool(), all["lost"].as_array().map(Vec::len)),
            (Some(baseline), Some(0))
        );
    }
    let said = run(&["eval", text(&file), "--keep", "20%", "--strategy", "truncate"]);
    assert!(said.out.contains("src/alpha_one.rs: in message 2 (tool), needed in message 29"), "{}", said.out);
}

#[test]
fn a_ledger_shows_the_names_of_what_is_gone() {
    let mut recorded = recorded("It was src/alpha_one.rs.");
    let listed = &mut recorded["messages"][2]["content"];
    let beside = "and much beside ".repeat(400);
    *listed = format!("{beside}{}{beside}", listed.as_str().unwrap()).into();
    let folder = Folder::new();
    let file = folder.file("recorded.json", recorded.to_string());
    let [newest, ledger] = ["truncate:walk=newest-first", "agent"];
    let report =
        run(&["eval", text(&file), "--keep", "50,15", "--strategy", newest, "--strategy", ledger, "--json"])
            .json();
    let [without, with] = [newest, ledger].map(|strategy| row(&report, "50%", strategy));
    assert_eq!((without["identifiers"].as_f64(), with["identifiers"].as_f64()), (Some(0.0), Some(100.0)));
    assert_eq!(with["missed"].as_u64(), Some(0));
    // The last request alone is larger than this share.
    assert_eq!((report["shares"][1]["left_out"].as_u64(), report["cuts"].as_u64()), (Some(1), Some(4)));
}

#[test]
fn what_is_shown_again_behind_the_cut_was_not_needed() {
    let mut shown = recorded("It was src/alpha_one.rs.");
    let messages = shown["messages"].as_array_mut().unwrap();
    let at = messages.len() - 2;
    messages[at]["content"] = "Which one was it? Not src/alpha_one.rs?".into();
    let folder = Folder::new();
    let file = folder.file("shown.json", shown.to_string());
    let done = run(&["eval", text(&file), "--keep", "100"]);
    // The question comes before the last cut, and after the other cuts.
    assert_eq!(done.code, 2, "{}", done.out);
    assert!(done.err.contains("nothing to measure"), "{}", done.err);
}

#[test]
fn a_model_prices_the_requests_of_the_conversation() {
    let folder = Folder::new();
    let file = folder.file("recorded.json", recorded("It was src/alpha_one.rs.").to_string());
    let rows = folder.file("own.csv", "house,openai-chat,o200k_base,50000,,,none,1.25/0.1/5/0/300,,\n");
    let args = ["eval", text(&file), "--keep", "25", "--model", "house", "--models", text(&rows)];
    let with = |more: &[&str]| run(&[&args[..], more, &["--json"]].concat()).json();
    let wide = with(&[]);
    let price = &wide["price"];
    assert_eq!((price["model"].as_str(), price["requests"].as_u64()), (Some("house"), Some(15)));
    assert_eq!((price["trigger"].as_u64(), price["full"].as_u64()), (Some(39_000), Some(0)));
    let truncate = &row(&wide, "25%", "truncate")["price"];
    assert_eq!((truncate["percent"].as_f64(), truncate["compactions"].as_u64()), (Some(100.0), Some(0)));
    assert!(row(&wide, "25%", "(oracle: identifiers)").get("price").is_none(), "{wide}");
    // The whole conversation has 3,900 tokens; a window of 2,000 is full at 1,560 tokens.
    let narrow = with(&["--window", "2000"]);
    let truncate = &row(&narrow, "25%", "truncate")["price"];
    assert!(
        truncate["compactions"].as_u64() > Some(0) && truncate["percent"].as_f64() < Some(100.0),
        "{truncate}"
    );
    let paused = with(&["--window", "2000", "--pause", "10m"]);
    assert!(paused["price"]["input_tokens"].as_u64() > narrow["price"]["input_tokens"].as_u64());
    let said = run(&args).ok();
    for expected in
        ["15 requests of house", "No conversation has a request of more than 39,000", "   price", "  passes"]
    {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    let unpriced = run(&["eval", text(&file), "--keep", "25"]).ok();
    assert!(!unpriced.contains("price"), "{unpriced}");
}

#[test]
fn what_cannot_be_priced_is_refused_with_a_remedy() {
    let folder = Folder::new();
    let file = folder.file("recorded.json", recorded("It was src/alpha_one.rs.").to_string());
    for (args, expected) in [
        (&["--model", "gpt-oss-120b"][..], "no prices are known for gpt-oss-120b: name another model"),
        (&["--model", "gpt-4p"], "did you mean gpt-4o"),
        (&["--model", "gpt-4o", "--window", "1"], "raise --window"),
        (&["--model", "gpt-4o", "--pause", "soon"], "90m"),
        (&["--window", "8000"], "--model"),
        (&["--pause", "10m"], "--model"),
    ] {
        let error = run(&[&["eval", text(&file)][..], args].concat()).fails(2);
        assert!(error.contains(expected), "{args:?}: {error}");
    }
}

#[test]
fn what_cannot_be_measured_is_refused_with_a_remedy() {
    let folder = Folder::new();
    let hi = json!({"messages": [{"role": "user", "content": "Hi."}]});
    let short = folder.file("short.json", hi.to_string());
    for (args, expected) in [
        (&["eval", text(&short)][..], "give a longer transcript of an agent"),
        (
            &["eval", text(&short), "--strategy", "summarize"],
            "eval asks none: `compact --summarizer URL` does, tool-digest needs none",
        ),
        (&["eval", text(&short), "--keep", "101"], "0% to 100%"),
        (&["eval"], "standard input: there is no JSON"),
    ] {
        let done = run(args);
        assert_eq!(done.code, 2, "{args:?}: {}", done.out);
        assert!(done.err.contains(expected), "{args:?}: {}", done.err);
    }
}
