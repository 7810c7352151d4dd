//! `report`: the figures of the page are those of the other commands, and no text of a transcript is ever markup.

use serde_json::{Value, json};

use super::support::*;

const HOSTILE: &str = "</script><script>alert(1)</script><img src=x onerror=alert(2)> & \"quotes\" 'too'";

fn first(report: &Value) -> &Value {
    &report["conversations"][0]
}

fn sum(by_kind: &Value) -> u64 {
    by_kind.as_object().unwrap().values().map(|tokens| tokens.as_u64().unwrap()).sum()
}

/// `value` without the names of files and sessions.
fn without_places(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(key, _)| !["place", "conversation"].contains(&key.as_str()));
            Value::Object(kept.map(|(key, value)| (key.clone(), without_places(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_places).collect()),
        other => other.clone(),
    }
}

#[test]
fn a_stored_session_is_reported_as_its_transcript_whatever_was_compacted() {
    let folder = Folder::new();
    let (file, path) = (example("coding-agent.json"), folder.path("s.db"));
    let store = format!("sqlite:{}", text(&path));
    let session = |command: &str, more: &[&str]| {
        run(&[&["session", command, "--store", &store, "--session", "one"], more].concat()).ok();
    };
    session("import", &[text(&file)]);
    session("compact", &["--keep", "20%", "--strategy", "agent"]);
    session("rewind", &["--turns", "2"]);
    let of_file = run(&["report", text(&file), "--keep", "25", "--json"]).json();
    let one = run(&["report", "--store", &store, "--session", "one", "--keep", "25", "--json"]).json();
    assert_eq!(without_places(&one), without_places(&of_file));
    assert_eq!(first(&one)["place"], format!("session \"one\" of {store}"));

    let other = ["session", "import", text(&file), "--store", &store, "--session", "two"];
    run(&other).ok();
    let all = run(&["report", "--store", &store, "--keep", "25", "--json"]).json();
    let places: Vec<_> =
        all["conversations"].as_array().unwrap().iter().map(|one| one["place"].clone()).collect();
    assert_eq!(places, ["one", "two"].map(|name| json!(format!("session {name:?} of {store}"))));

    let before = std::fs::read(&path).unwrap();
    let directory = format!("jsonl:{}", text(&folder.path("logs")));
    run(&["session", "copy", "--store", &store, "--session", "one", "--to", &directory]).ok();
    let log = std::fs::read_dir(folder.path("logs")).unwrap().next().unwrap().unwrap().path();
    let beside = format!("{}-wal", text(&path));
    let mut outputs = vec![(&store, text(&path)), (&store, &*beside), (&directory, text(&log))];
    #[cfg(unix)]
    let links = [&path, &log].map(|file| {
        let link = folder.path(&format!("link-{}.html", file.file_name().unwrap().to_string_lossy()));
        std::os::unix::fs::symlink(file, &link).unwrap();
        link
    });
    #[cfg(unix)]
    outputs.extend([(&store, text(&links[0])), (&directory, text(&links[1]))]);
    for (store, output) in outputs {
        let refused = run(&["report", "--store", store, "-o", output]).fails(2);
        assert!(refused.contains("a file of the store: name another file"), "{refused}");
    }
    for name in ["page.html", "s.db.html"] {
        run(&[
            "report",
            "--store",
            &store,
            "--session",
            "one",
            "--keep",
            "25",
            "-o",
            text(&folder.path(name)),
        ])
        .ok();
    }
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert!(
        run(&["report", "--store", &store, "--session", "three"])
            .fails(2)
            .contains("there is no session \"three\"")
    );
    assert!(
        run(&["report", "--store", "sqlite:/nowhere/s.db"]).fails(2).contains("there is no /nowhere/s.db")
    );
    run(&["report", text(&file), "--store", &store]).fails(2);
    for part in [&["--at", "/x"][..], &["--each"], &["--from", "codex"], &["--leaf", "9"]] {
        assert!(
            run(&[&["report", "--store", &store], part].concat()).fails(2).contains("these are for files")
        );
    }
    for option in ["--session", "--key-file"] {
        assert!(run(&["report", text(&file), option, "one"]).fails(2).contains("--store"));
    }
}

#[test]
fn figures_are_those_of_the_other_commands() {
    let file = example("coding-agent.json");
    let file = text(&file);
    let report =
        run(&["report", file, "--strategy", "truncate", "--strategy", "agent", "--keep", "20,50", "--json"])
            .json();
    let one = first(&report);
    let stats = run(&["stats", file, "--json"]).json();
    for name in ["messages", "turns", "tokens", "format", "tokenizer"] {
        assert_eq!(one[name], stats[name], "{name}");
    }
    assert_eq!(sum(&one["by_kind"]), one["tokens"].as_u64().unwrap());
    let turns: u64 = one["by_turn"].as_array().unwrap().iter().map(|turn| sum(&turn["tokens"])).sum();
    assert_eq!(turns, one["tokens"].as_u64().unwrap());
    let mut strips = one["strips"].as_array().unwrap().iter();
    for strategy in ["truncate", "agent"] {
        for keep in ["20%", "50%"] {
            let args = [
                "compact",
                file,
                "--strategy",
                strategy,
                "--keep",
                keep,
                "--tokenizer",
                "o200k_base",
                "--json",
            ];
            let (strip, expected) = (strips.next().unwrap(), run(&args).json());
            assert_eq!((&strip["strategy"], &strip["keep"]), (&json!(strategy), &json!(keep)));
            for name in ["verdicts", "tokens_after", "stable_prefix_tokens", "goal_missed"] {
                assert_eq!(strip[name], expected[name], "{strategy} {keep} {name}");
            }
        }
    }
    assert_eq!(strips.next(), None);
    let args = [
        "eval",
        file,
        "--strategy",
        "truncate",
        "--strategy",
        "agent",
        "--keep",
        "20,50",
        "--lost",
        "10",
        "--json",
    ];
    let (needs, eval) = (&one["needs"], run(&args).json());
    for (share, expected) in
        needs["shares"].as_array().unwrap().iter().zip(eval["shares"].as_array().unwrap())
    {
        for (row, expected) in
            share["rows"].as_array().unwrap().iter().zip(expected["rows"].as_array().unwrap())
        {
            for name in ["strategy", "identifiers", "copied_text", "tokens_left"] {
                assert_eq!(row[name], expected[name]);
            }
        }
    }
    // The tokens of tools are those of their calls and results.
    let expected = &one["by_kind"];
    let expected =
        expected["calls"].as_u64().unwrap_or_default() + expected["results"].as_u64().unwrap_or_default();
    let tools: u64 =
        one["by_tool"].as_array().unwrap().iter().map(|row| row["tokens"].as_u64().unwrap()).sum();
    assert_eq!(tools, expected);
    assert!(one["by_tool"].as_array().unwrap().iter().any(|row| row["file"].is_string()));
}

#[test]
fn the_context_is_compacted_where_it_fills_the_window() {
    let file = example("coding-agent.json");
    let report =
        run(&["report", text(&file), "--window", "8000", "--model", "claude-opus-5-5", "--json"]).json();
    let context = &first(&report)["context"];
    let (trigger, compactions) =
        (context["trigger"].as_u64().unwrap(), context["compactions"].as_array().unwrap());
    assert_eq!((context["window"].as_u64(), &context["strategy"]), (Some(8_000), &json!("agent")));
    assert!(!compactions.is_empty());
    for compaction in compactions {
        let (before, after) = (sum(&compaction["before"]), sum(&compaction["after"]));
        assert!(before > trigger && after <= trigger, "{compaction}");
        assert!(compaction["stable_prefix_tokens"].as_u64().unwrap() <= after);
        assert!(compaction["pays"]["costs_input_tokens"].is_u64());
    }
    let requests = context["requests"].as_array().unwrap();
    assert!(requests.iter().all(|request| sum(&request["tokens"]) <= trigger));
    // In a window that holds the whole conversation, a request has all messages before it.
    let report = run(&["report", text(&file), "--json"]).json();
    let (one, context) = (first(&report), &first(&report)["context"]);
    assert_eq!(context["compactions"], json!([]));
    let last = context["requests"].as_array().unwrap().last().unwrap();
    assert!(sum(&last["tokens"]) < one["tokens"].as_u64().unwrap());
}

#[test]
fn a_request_that_nobody_answered_is_the_last_one() {
    let folder = Folder::new();
    let messages = json!([
        {"role": "user", "content": "Read it."},
        {"role": "assistant", "content": "Where?"},
        {"role": "user", "content": "word ".repeat(20_000)},
    ]);
    let file = folder.file("in.json", json!({ "messages": messages }).to_string());
    let args = ["report", text(&file), "--window", "8000", "--strategy", "tool-results"];
    let report = run(&[&args[..], &["--json"]].concat()).json();
    let requests = first(&report)["context"]["requests"].as_array().unwrap();
    let before: Vec<_> = requests.iter().map(|one| one["messages_before"].as_u64().unwrap()).collect();
    assert_eq!(before, [1, 3]);
    assert_eq!(sum(&requests[1]["tokens"]), first(&report)["tokens"].as_u64().unwrap());
    let page = run(&[&args[..], &["-o", "-"]].concat()).ok();
    assert!(page.contains("1 request stays over the trigger all the same, 1 of them over the window"));
}

#[test]
fn what_no_compaction_brings_under_the_trigger_is_not_tried_at_each_request() {
    let folder = Folder::new();
    let mut messages = Vec::new();
    for turn in 0..60 {
        let id = format!("c{turn}");
        let call = json!({"id": id, "type": "function", "function": {"name": "read", "arguments": "{}"}});
        messages.push(json!({"role": "user", "content": format!("{turn} ").repeat(200)}));
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": "word ".repeat(40)}));
        messages.push(json!({"role": "assistant", "content": "I see."}));
    }
    let file = folder.file("in.json", json!({ "messages": messages }).to_string());
    let args = ["report", text(&file), "--window", "8000", "--strategy", "tool-results", "--json"];
    let report = run(&args).json();
    let context = &first(&report)["context"];
    let trigger = context["trigger"].as_u64().unwrap();
    let compactions = context["compactions"].as_array().unwrap();
    let over: Vec<_> = compactions.windows(2).filter(|two| sum(&two[0]["after"]) > trigger).collect();
    assert!(over.len() > 2, "{compactions:?}");
    for two in over {
        let (after, next) = (sum(&two[0]["after"]), sum(&two[1]["before"]));
        assert!(next > after + after / 8, "{after} {next}");
    }
}

#[test]
fn a_transcript_is_never_replaced() {
    let folder = Folder::new();
    let content = json!({ "messages": messages(3) }).to_string();
    let file = folder.file("in.json", &content);
    let all = folder.path("");
    for input in [text(&file), text(&all)] {
        let said = run(&["report", input, "-o", text(&file)]).fails(2);
        assert!(
            said.contains("in.json: this is what the report is about") && said.contains("name another file"),
            "{said}"
        );
        #[cfg(unix)]
        {
            let link = folder.path("link.html");
            let _ = std::os::unix::fs::symlink(&file, &link);
            run(&["report", input, "-o", text(&link)]).fails(2);
        }
        assert_eq!(read(&file), content);
    }
}

#[test]
fn a_transcript_is_never_markup() {
    let folder = Folder::new();
    let call = json!({"id": HOSTILE, "type": "function", "function": {"name": HOSTILE, "arguments": json!({"path": format!("src/{}", HOSTILE.replace(' ', ""))}).to_string()}});
    let mut messages = messages(12);
    messages.push(json!({"role": "user", "content": HOSTILE, "name": HOSTILE}));
    messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
    messages.push(json!({"role": "tool", "tool_call_id": HOSTILE, "content": HOSTILE}));
    messages.push(json!({"role": "assistant", "content": HOSTILE}));
    let file = folder.file("a<b>&\"c'.json", json!({ "messages": messages }).to_string());
    let page = run(&["report", text(&file), "-o", "-"]).ok();
    assert!(page.starts_with("<!DOCTYPE html>"));
    assert_eq!((page.matches("<script").count(), page.matches("</script").count()), (3, 3));
    assert!(!page.contains("<img") && !page.contains("<b>&") && !page.contains(" style="));
    assert!(page.contains("default-src 'none'") && !page.contains("unsafe"));
    // The page loads nothing from other places.
    for wrong in ["http://", "https://", "src=\"", "url(", "@import", "<link", "<iframe"] {
        assert!(!page.replace("<img src=x", "").contains(wrong), "{wrong}");
    }
    let (_, data) = page.split_once("<script type=\"application/json\" id=\"messages-data\">").unwrap();
    let data: Value = serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
    let said = data["messages"].as_array().unwrap();
    assert_eq!(said.len(), messages.len());
    // A call and its result are one group; each message around them is a group of its own.
    let groups: Vec<_> = said.iter().map(|one| one["group"].as_u64().unwrap()).collect();
    let last = groups[groups.len() - 4];
    assert_eq!(groups[groups.len() - 4..], [last, last + 1, last + 1, last + 2]);
    assert!(said.last().unwrap()["text"].as_str().unwrap().contains(HOSTILE));
    assert_eq!(run(&["report", text(&file), "-o", "-"]).ok(), page, "the same page each time");
}

#[test]
fn secrets_are_in_no_part_of_a_page() {
    const KEY: &str = "ghp_0123456789abcdefABCDEF0123456789abcd";
    const PASSWORD: &str = "Zx9kQw72LmPt4vR8";
    let folder = Folder::new();
    let mut messages = messages(12);
    let call = json!({"id": "k", "type": "function", "function": {"name": "read", "arguments": json!({"path": format!("src/{KEY}/a.rs")}).to_string()}});
    messages.insert(1, json!({"role": "assistant", "content": null, "tool_calls": [call]}));
    messages.insert(2, json!({"role": "tool", "tool_call_id": "k", "content": format!("the key is {KEY}")}));
    // A word that is recognizable as a secret only next to its name.
    let call = json!({"id": "p", "type": "function", "function": {"name": "open", "arguments": json!({"password": format!("/etc/{PASSWORD}.key")}).to_string()}});
    messages.insert(3, json!({"role": "assistant", "content": null, "tool_calls": [call]}));
    messages.insert(
        4,
        json!({"role": "tool", "tool_call_id": "p", "content": format!("DB_PASSWORD={PASSWORD}")}),
    );
    messages.push(json!({"role": "user", "content": "Which one?"}));
    messages.push(json!({"role": "assistant", "content": format!("It is {KEY}, in src/{KEY}/a.rs. password: {PASSWORD}")}));
    std::fs::create_dir(folder.path("all")).unwrap();
    let file = folder.file(&format!("all/{KEY}.json"), json!({ "messages": messages }).to_string());
    folder.file("all/none.json", json!({ KEY: 1 }).to_string());
    let all = folder.path("all");
    for (input, args) in
        [(&file, &["-o", "-"][..]), (&file, &["--json"]), (&all, &["-o", "-"]), (&all, &["--json"])]
    {
        let args = [&["report", text(input)], args].concat();
        let said = run(&args).ok();
        assert!(said.contains(KEY) && said.contains(PASSWORD), "{args:?}");
        let redacted = run(&[&args[..], &["--redact"]].concat());
        assert!(redacted.err.contains("redacted"), "{}", redacted.err);
        let said = redacted.ok();
        assert!(!said.contains(KEY) && !said.contains(PASSWORD) && said.contains("[redacted:"), "{args:?}");
    }
}

#[test]
fn a_folder_is_an_overview() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path("deep/er")).unwrap();
    folder.file("b.json", json!({ "messages": messages(3) }).to_string());
    folder.file("deep/er/a.jsonl", jsonl(&messages(2)));
    folder.file("deep/broken.json", "{");
    folder.file("notes.txt", "not looked at");
    let all = folder.path("");
    let report = run(&["report", text(&all), "--json"]).json();
    let places: Vec<_> = report["conversations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["place"].as_str().unwrap())
        .collect();
    assert!(
        matches!(places[..], [first, second] if first.contains("b.json") && second.contains("a.jsonl")),
        "{places:?}"
    );
    let left_out = report["left_out"].as_array().unwrap();
    assert!(
        left_out.len() == 1 && left_out[0]["file"].as_str().unwrap().ends_with("broken.json"),
        "{left_out:?}"
    );
    let page = run(&["report", text(&all), "-o", "-"]).ok();
    assert!(
        page.contains("2 conversations") && page.contains("broken.json") && !page.contains("messages-data")
    );
    assert!(!page.contains("href=\"#m"), "no link leads nowhere");
    // A file that the command line names is never skipped.
    let [good, broken] = ["b.json", "deep/broken.json"].map(|name| folder.path(name));
    let said = run(&["report", text(&good), text(&broken), "-o", "-"]).fails(2);
    assert!(said.contains("broken.json: line 1"), "{said}");
    let said = run(&["report", text(&folder.path("deep/broken.json")), "-o", "-"]).fails(2);
    assert!(said.contains("broken.json"), "{said}");
    std::fs::remove_file(folder.path("b.json")).unwrap();
    std::fs::remove_dir_all(folder.path("deep/er")).unwrap();
    let said = run(&["report", text(&all), "-o", "-"]).fails(2);
    assert!(said.contains("no transcript among 1 file") && said.contains("broken.json"), "{said}");
    std::fs::remove_dir_all(folder.path("deep")).unwrap();
    assert!(run(&["report", text(&all), "-o", "-"]).fails(2).contains("no file in it ends in .json, .jsonl"));
}

#[test]
fn no_file_is_replaced_that_was_not_named() {
    let folder = Folder::new();
    let file = folder.file("in.json", json!({ "messages": messages(3) }).to_string());
    let args = ["report", text(&file)];
    let mut here = program(&args);
    let wrote = done(here.current_dir(folder.path("")));
    assert!(wrote.err.contains("wrote report.html"), "{}", wrote.err);
    wrote.ok();
    let page = read(&folder.path("report.html"));
    assert!(page.starts_with("<!DOCTYPE html>"));
    let mut here = program(&args);
    let said = done(here.current_dir(folder.path(""))).fails(2);
    assert!(said.contains("report.html: this file exists: --force replaces it"), "{said}");
    let mut here = program(&["report", text(&file), "-o", "report.html", "--force", "--strategy", "window"]);
    done(here.current_dir(folder.path(""))).ok();
    assert_ne!(read(&folder.path("report.html")), page);
}

#[test]
fn conversations_of_any_size_have_a_page() {
    let folder = Folder::new();
    for (name, messages) in [
        ("one", json!([{"role": "user", "content": "Hello"}])),
        ("empty", json!([{"role": "user", "content": ""}])),
        ("only-model", json!([{"role": "assistant", "content": "Hello"}])),
        ("giant", json!([{"role": "user", "content": "x ".repeat(200_000)}])),
    ] {
        let file = folder.file(&format!("{name}.json"), json!({ "messages": messages }).to_string());
        let page = run(&["report", text(&file), "--tokenizer", "estimate", "-o", "-"]).ok();
        let (drawn, _) = page.split_once("<script").unwrap();
        assert!(!drawn.contains("NaN") && !drawn.contains("inf "), "{name}");
        assert_eq!(page.matches("<svg").count(), 11, "{name}");
    }
    for (args, expected) in [
        (["--strategy", "summarize"], "tool-digest"),
        (["--strategy", "no"], "known: "),
        (["--keep", "200"], "share"),
    ] {
        let file = folder.path("one.json");
        let said = run(&[&["report", text(&file)], &args[..]].concat()).fails(2);
        assert!(said.contains(expected), "{said}");
    }
}
