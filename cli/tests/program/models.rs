//! `--model`, `--models` and `--tokenizer all`.

use serde_json::{Value, json};

use super::support::*;

#[test]
fn a_model_brings_its_window_and_its_counter_unless_they_are_given() {
    let folder = Folder::new();
    let file = folder.file("in.json", serde_json::to_string(&messages(3)).unwrap());
    let budget = |args: &[&str]| report(&file, args)["budget"].clone();
    let gpt = budget(&["--model", "openai/gpt-4-turbo-2024-04-09"]);
    assert_eq!((&gpt["window"], &gpt["reserve"]), (&json!(128_000), &json!(4_096)));
    let tokenizer = |args: &[&str]| report(&file, args)["tokenizer"].as_str().unwrap().to_owned();
    // This model frames tools differently from the default, so its counts have a name of their own.
    assert_eq!(tokenizer(&["--model", "gpt-4-turbo"]), "cl100k_base@gpt-4-turbo");
    let given = ["--model", "gpt-4-turbo", "--window", "9000", "--tokenizer", "o200k_base"];
    assert_eq!(budget(&given)["window"], 9_000);
    assert_eq!(tokenizer(&given), "o200k_base@gpt-4-turbo");
    let claude = report(&file, &["--model", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"]);
    assert!(claude["tokenizer"].as_str().unwrap().ends_with("@claude-sonnet-4-5"));
    assert_eq!(claude["budget"]["window"], 200_000);
}

#[test]
fn an_unknown_model_is_answered_with_the_nearest_and_own_rows_are_taken() {
    let folder = Folder::new();
    let file = folder.file("in.json", serde_json::to_string(&messages(1)).unwrap());
    let wrong = run(&["compact", text(&file), "--model", "gpt-4p"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.err.contains("did you mean gpt-4o"), "{}", wrong.err);
    let rows = folder.file("own.csv", "house,qwen,,50000,,,none,1/0.1/4/0,,\n");
    let own = report(&file, &["--model", "house", "--models", text(&rows)]);
    assert_eq!(own["budget"]["window"], 50_000);
    let rows = folder.file("bad.csv", "# ours\nhouse,qwen,,lots,,,none,,,\n");
    let wrong = run(&["stats", text(&file), "--model", "house", "--models", text(&rows)]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.err.contains("line 2 of the table of models"), "{}", wrong.err);
    let missing = run(&["stats", text(&file), "--model", "house", "--models", "/nowhere/models.csv"]);
    assert_eq!(missing.code, 4);
    assert_eq!(run(&["stats", text(&file), "--tokenizer", "abacus"]).code, 2);
}

#[test]
fn a_report_says_when_the_compaction_pays_by_the_prices_of_the_model() {
    let folder = Folder::new();
    let file = folder.file("in.json", serde_json::to_string(&messages(40)).unwrap());
    let rows = folder
        .file("own.csv", "house,qwen,,50000,,,none,1.25/0.1/5/0,,\nfree,qwen,,50000,,,none,1/0/1/0,,\n");
    let with =
        |model: &str, keep: &str| report(&file, &["--model", model, "--models", text(&rows), "--keep", keep]);
    let done = with("house", "30%");
    let figure = |name: &str| done[name].as_u64().unwrap();
    let (before, after) = (figure("tokens_before"), figure("tokens_after"));
    let (costs, saves) = ((after - figure("stable_prefix_tokens")) * 1_150, (before - after) * 100);
    let requests = costs.div_ceil(saves);
    let pays = |costs: u64, saves: u64, requests: u64| {
        json!({
            "costs_input_tokens": (costs + 500) / 1_000,
            "saves_input_tokens": (saves + 500) / 1_000,
            "after_requests": requests,
            "at_once_when_cold": true,
        })
    };
    assert_eq!(done["pays"], pays(costs, saves, requests));
    assert_eq!(with("free", "30%")["pays"]["after_requests"], Value::Null);
    // The report has no `pays` for an unchanged transcript, which costs nothing, and for a model without prices.
    assert!(with("house", "100%").get("pays").is_none());
    assert!(report(&file, &["--model", "mistral-large-2512", "--keep", "30%"]).get("pays").is_none());
    let said =
        run(&["compact", text(&file), "--model", "house", "--models", text(&rows), "--keep", "30%"]).ok();
    let line = format!(
        "\ncosts     as much as {} input tokens once, saves {} with each request on a warm prompt cache\n\
         pays      after {requests} requests while the prompt cache is warm, at once when it has expired\n",
        grouped((costs + 500) / 1_000),
        grouped((saves + 500) / 1_000)
    );
    assert!(said.contains(&line), "{said}");
}

/// An amount below a million, with a thousands separator.
fn grouped(amount: u64) -> String {
    if amount < 1_000 { amount.to_string() } else { format!("{},{:03}", amount / 1_000, amount % 1_000) }
}

#[test]
fn statistics_say_what_a_compaction_would_cost_by_the_prices_of_the_model() {
    let folder = Folder::new();
    let file = folder.file("in.json", serde_json::to_string(&messages(40)).unwrap());
    let rows = folder.file(
        "own.csv",
        "house,qwen,estimate,50000,,,none,1.25/0.1/5/0,,\ndear,qwen,estimate,50000,,,none,1/0/1/0,,\n",
    );
    let with = |model: &str| {
        run(&["stats", text(&file), "--model", model, "--models", text(&rows), "--json"]).json()
    };
    let (said, compact) =
        (with("house"), report(&file, &["--model", "house", "--models", text(&rows), "--keep", "50%"]));
    let would = &said["compacted"];
    assert_eq!(would["strategy"], "truncate");
    // The figures of `compact --keep 50%` for the same conversation.
    for (name, same) in [
        ("tokens_after", &compact["tokens_after"]),
        ("stable_prefix_tokens", &compact["stable_prefix_tokens"]),
        ("costs_input_tokens", &compact["pays"]["costs_input_tokens"]),
        ("saves_input_tokens", &compact["pays"]["saves_input_tokens"]),
        ("after_requests", &compact["pays"]["after_requests"]),
        ("at_once_when_cold", &compact["pays"]["at_once_when_cold"]),
    ] {
        assert!(would[name] == *same && !same.is_null(), "{name}: {would} and {compact}");
    }
    assert_eq!(with("dear")["compacted"]["after_requests"], Value::Null);
    let plain = run(&["stats", text(&file), "--model", "house", "--models", text(&rows)]).ok();
    let line =
        format!("\npays      after {} requests while the prompt cache is warm", would["after_requests"]);
    assert!(plain.contains("\ncompacted to half by truncate: ") && plain.contains(&line), "{plain}");
    // Without prices, or without a removable message, the report has no such entry.
    assert!(run(&["stats", text(&file), "--json"]).json().get("compacted").is_none());
    let short = folder.file("short.json", serde_json::to_string(&messages(1)).unwrap());
    let short = run(&["stats", text(&short), "--model", "house", "--models", text(&rows), "--json"]).json();
    assert!(short.get("compacted").is_none(), "{short}");
}

#[test]
fn all_counters_stand_beside_the_reference() {
    let folder = Folder::new();
    let file = folder.file("in.json", serde_json::to_string(&messages(3)).unwrap());
    let all = run(&["stats", text(&file), "--tokenizer", "all", "--json"]).json();
    let counters = all["counters"].as_array().unwrap();
    let of = |name: &str| counters.iter().find(|row| row["counter"] == name).unwrap_or(&Value::Null);
    assert_eq!(of("o200k_base")["error_percent"], 0.0);
    assert_eq!(of("o200k_base")["basis"], "counted");
    assert_eq!(of("chars/4")["basis"], "estimated");
    for name in ["bytes/4", "cl100k_base", "o200k_harmony"] {
        assert!(of(name)["tokens"].as_u64().unwrap() > 100, "{name}");
    }
    // The recipe's three tokens for the beginning of the reply are part of a request, not of its messages.
    let counted = run(&["stats", text(&file), "--json"]).json()["tokens"].as_u64().unwrap();
    assert_eq!(of("o200k_base")["tokens"], counted + 3);
    assert!(all.get("reported_input").is_none() && of("calibrated").is_null());
}

#[test]
fn reports_in_the_file_calibrate_the_estimate_of_what_follows() {
    let folder = Folder::new();
    let messages = messages(3);
    let file = folder.file("plain.json", json!({"messages": messages}).to_string());
    let estimate =
        run(&["stats", text(&file), "--tokenizer", "estimate", "--json"]).json()["tokens"].as_u64().unwrap();
    // The provider reports half as much again as the estimate.
    let reported = estimate * 3 / 2;
    let run_of = json!({"body": {"messages": messages}, "response": {"usage": {"prompt_tokens": reported}}});
    let file = folder.file("runs.jsonl", format!("{run_of}\n{run_of}\n"));
    let said = run(&["stats", text(&file), "--each", "--at", "/body", "--tokenizer", "all"]).ok();
    assert!(said.contains("errors against o200k_base") && said.contains("chars/4"), "{said}");
    let rows = |name: &str| -> Vec<Vec<String>> {
        let rows = said.lines().filter(|line| line.starts_with(name));
        rows.map(|row| row.split_whitespace().map(|word| word.replace(',', "")).collect()).collect()
    };
    // Before the first request there is no reported size.
    let calibrated = rows("calibrated");
    assert_eq!(calibrated.len(), 1, "{said}");
    let tokens: u64 = calibrated[0][1].parse().unwrap();
    assert!(tokens.abs_diff(reported) <= 10 && calibrated[0][2] == "estimated", "{said}");
    assert!(said.contains("The provider has seen 1."), "{said}");
}

#[test]
fn the_report_of_every_vendor_is_found() {
    let folder = Folder::new();
    for (beside, input) in [
        (json!({"usage": {"inputTokens": 1_000, "outputTokens": 5}}), json!(1_000)),
        (json!({"usage_metadata": {"prompt_token_count": 1_200}}), json!(1_200)),
        (
            json!({"usage": {"input_tokens": 40, "cache_read_input_tokens": 900, "output_tokens": 5}}),
            json!(940),
        ),
        (json!({"response": {"usageMetadata": {"promptTokenCount": 700}}}), json!(700)),
        (json!({"usage": {"output_tokens": 5}, "response": {"usage": {"prompt_tokens": 900}}}), json!(900)),
        (json!({"usage": {"output_tokens": 5}}), Value::Null),
        (json!({"usage": "unknown"}), Value::Null),
    ] {
        let mut request = beside;
        request["messages"] = json!(messages(3));
        let file = folder.file("request.json", request.to_string());
        let said = run(&["stats", text(&file), "--tokenizer", "all", "--json"]).json();
        assert_eq!(said["reported_input"], input, "{request}");
    }
}
