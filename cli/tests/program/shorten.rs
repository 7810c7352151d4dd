//! `--strategy tool-results`: old results are shortened, and everything else stays.

use serde_json::{Value, json};

use super::support::*;

const NOTE: &str = "[cleared]";

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

/// The report of a compaction with this strategy, and the messages that it wrote.
fn compacted(file: &std::path::Path, args: &[&str]) -> (Value, Vec<Value>) {
    let folder = Folder::new();
    let out = folder.path("out.json");
    let report = report(file, &[args, &["-o", text(&out)]].concat());
    let written = json_of(&out);
    let list = written.get("messages").unwrap_or(&written).as_array().unwrap().clone();
    (report, list)
}

#[test]
fn old_results_are_cleared_and_the_rest_is_as_it_was() {
    let folder = Folder::new();
    let before = messages(6);
    let file = folder.file("in.json", Value::from(before.clone()).to_string());
    let (report, after) = compacted(&file, &["--keep", "10%", "--strategy", "tool-results:keep=4"]);
    assert_eq!(after.len(), before.len());
    assert_eq!(report["messages_after"], report["messages_before"]);
    let is_result = |message: &Value| message["role"] == "tool";
    let old = before.iter().filter(|message| is_result(message)).count() - 4;
    let mut results = 0;
    for (was, is) in before.iter().zip(&after) {
        results += usize::from(is_result(was));
        let mut expected = was.clone();
        if is_result(was) && results <= old {
            expected["content"] = Value::from(NOTE);
        }
        assert_eq!(*is, expected);
    }
    // The calls and both results are one group: a turn is a user, an exchange and an answer.
    assert_eq!(report["verdicts"], format!("K{}{}", "KEK".repeat(4), "KKK".repeat(2)));
    assert_eq!((number(&report["groups"]["elided"]), &report["goal_missed"]), (4, &Value::from(true)));
    assert_eq!(report["stable_prefix_messages"], 3);
    let again = folder.file("again.json", Value::from(after).to_string());
    let second = crate::support::report(&again, &["--keep", "10%", "--strategy", "tool-results:keep=4"]);
    assert_eq!(second["unchanged_reason"], "nothing_to_drop");
    assert_eq!(second["tokens_before"], report["tokens_after"]);
    assert_eq!(run(&["validate", text(&again)]).code, 0);
}

#[test]
fn the_report_adds_up_and_says_what_is_lost() {
    let file = example("coding-agent.json");
    let report = report(&file, &["--keep", "25%", "--strategy", "tool-results:inputs,truncate"]);
    let details = report["groups_detail"].as_array().unwrap();
    let sum = |field: &str| details.iter().map(|group| number(&group[field])).sum::<u64>();
    assert_eq!(
        (sum("tokens"), sum("tokens_after")),
        (number(&report["tokens_before"]), number(&report["tokens_after"]))
    );
    let lost =
        |kind: &str| report["loss"].as_array().unwrap().iter().find(|row| row["kind"] == kind).cloned();
    let result = lost("tool_result").unwrap();
    assert_eq!(result["source"], "caller");
    assert!(number(&result["count"]) > 0 && number(&result["tokens"]) > 0);
    assert!(lost("tool_input").is_some() && report["verdicts"].as_str().unwrap().contains('E'));
    assert_eq!(report["goal_missed"], false);
    let said =
        run(&["compact", text(&file), "--keep", "25%", "--strategy", "tool-results:inputs,truncate"]).ok();
    assert!(
        said.contains("\nremoved   ") && said.contains(" tool result (") && said.contains("~ shortened"),
        "{said}"
    );
}

#[test]
fn clearing_first_keeps_more_than_dropping_alone() {
    let file = example("coding-agent.json");
    let kept = |strategy: &str| {
        let report = report(&file, &["--keep", "30%", "--strategy", strategy]);
        assert_eq!(
            (&report["goal_missed"], &report["unchanged_reason"]),
            (&Value::from(false), &Value::Null)
        );
        number(&report["messages_after"])
    };
    let (both, alone) = (kept("tool-results,truncate"), kept("truncate"));
    assert!(both > alone, "{both} of the messages and {alone}");
    // A goal is reached too if it needs more than the clearing of results.
    let small = report(
        &file,
        &["--window", "3000", "--reserve", "500", "--goal", "2000", "--strategy", "tool-results,truncate"],
    );
    assert_eq!(small["goal_missed"], false);
    assert!(small["verdicts"].as_str().unwrap().contains('D'));
}

#[test]
fn every_form_of_a_result_and_of_a_call_is_patched_in_place() {
    let long = "one more line of what the tool has found; ".repeat(30);
    let list = json!([
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": null, "function_call": {"name": "find", "arguments": format!("{{\"q\":\"{long}\"}}")}},
        {"role": "function", "name": "find", "content": long, "ms": 1.50},
        {"role": "assistant", "content": "And there.", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "find", "arguments": {"q": long}}, "n": 1},
            {"id": "b", "type": "function", "function": {"name": "ask", "arguments": format!("{{\"q\":\"{long}\"}}")}}]},
        {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": long}, {"type": "text", "text": "!"}]},
        {"role": "tool", "tool_call_id": "b", "content": long},
        {"role": "user", "content": "Well?"},
        {"role": "assistant", "content": "It is there."}
    ]);
    let folder = Folder::new();
    let file = folder.file("in.json", list.to_string());
    let (report, after) =
        compacted(&file, &["--keep", "1%", "--strategy", "tool-results:keep=0:inputs:spare=ask"]);
    assert_eq!(report["verdicts"], "KEEKK");
    let mut expected = list.as_array().unwrap().clone();
    expected[1]["function_call"]["arguments"] = json!("{}");
    expected[2]["content"] = json!(NOTE);
    expected[3]["tool_calls"][0]["function"]["arguments"] = json!("{}");
    expected[4]["content"] = json!([{"type": "text", "text": NOTE}]);
    assert_eq!(after, expected);
}

#[test]
fn many_conversations_of_one_file_are_shortened_each_for_itself() {
    let folder = Folder::new();
    let tasks: Vec<_> = (6..9).map(|turns| json!({"task": turns, "traj": messages(turns)})).collect();
    let file = folder.file("tasks.json", Value::from(tasks).to_string());
    let out = folder.path("out.json");
    let args = ["--each", "--at", "/traj", "--keep", "60%", "--strategy", "tool-results:keep=2,truncate"];
    let rows = report(&file, &[&args[..], &["-o", text(&out)]].concat());
    for (row, task) in rows.as_array().unwrap().iter().zip(json_of(&out).as_array().unwrap()) {
        assert_eq!(row["messages_after"], task["traj"].as_array().unwrap().len());
        assert!(row["loss"].as_array().unwrap().iter().any(|lost| lost["kind"] == "tool_result"), "{row}");
    }
    let said = run(&[&["compact", text(&file)], &args[..]].concat()).ok();
    assert!(said.contains(" shortened"), "{said}");
    assert_eq!(run(&["validate", text(&out), "--each", "--at", "/traj"]).code, 0);
}

#[test]
fn a_session_shows_what_is_left_and_its_log_keeps_all() {
    let folder = Folder::new();
    let url = format!("sqlite:{}", text(&folder.path("store.db")));
    let session = |command: &str, args: &[&str]| {
        run(&[&["session", command, "--store", &url, "--session", "one"], args].concat())
    };
    let before = messages(6);
    let file = folder.file("in.json", Value::from(before.clone()).to_string());
    session("import", &[text(&file)]).ok();
    let compact = ["--keep", "60%", "--strategy", "tool-results:keep=4", "--json"];
    let first = session("compact", &compact).json();
    assert_eq!(first["verdicts"], report(&file, &compact[..4])["verdicts"]);
    assert!(first["verdicts"].as_str().unwrap().contains('E'));
    let shown = session("show", &["--json"]).json();
    let shown: Vec<_> = shown.as_array().unwrap().iter().map(|message| message["content"].clone()).collect();
    assert_eq!(shown.iter().filter(|content| *content == NOTE).count(), 8);
    let log = session("log", &["--json"]).ok();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().map(|line| &line["message"]).eq(&before), "the log has changed");
    let cut = lines.iter().filter(|line| line["edited_by"] == 1).count();
    assert_eq!(cut, 8);
    assert!(session("log", &[]).ok().contains("cut by 1"));
    let second = session("compact", &compact).json();
    assert!(!second["unchanged_reason"].is_null());
    let listed = run(&["session", "list", "--store", &url, "--json"]).json();
    assert_eq!((&listed[0]["revision"], &listed[0]["live_tokens"]), (&json!(1), &first["tokens_after"]));
}

#[test]
fn other_formats_are_patched_in_place_too() {
    let long = "one more line of what the tool has found; ".repeat(30);
    let anthropic = json!({"model": "m", "max_tokens": 9, "messages": [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "find", "input": {"q": 1.50}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": long, "is_error": false}]},
        {"role": "assistant", "content": "Found."},
        {"role": "user", "content": "Well?"},
        {"role": "assistant", "content": "There."}]});
    let text = |text: &str| json!([{"type": "output_text", "text": text}]);
    let responses = json!({"model": "m", "input": [
        {"role": "user", "content": "Look."},
        {"type": "function_call", "call_id": "c", "name": "find", "arguments": "{\"q\":1}"},
        {"type": "function_call_output", "call_id": "c", "output": long},
        {"type": "message", "role": "assistant", "content": text("Found.")},
        {"role": "user", "content": "Well?"},
        {"type": "message", "role": "assistant", "content": text("There.")}]});
    let said = |role: &str, text: &str| json!({"role": role, "parts": [{"text": text}]});
    let gemini = json!({"contents": [
        said("user", "Look."),
        {"role": "model", "parts": [{"functionCall": {"name": "find", "args": {"q": 1}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "find", "response": {"result": long}}}]},
        said("model", "Found."), said("user", "Well?"), said("model", "There.")]});
    let folder = Folder::new();
    for (before, result) in [
        (anthropic, "/messages/2/content/0/content"),
        (responses, "/input/2/output"),
        (gemini, "/contents/2/parts/0/functionResponse/response/result"),
    ] {
        let (file, out) = (folder.file("in.json", before.to_string()), folder.path("out.json"));
        let args = ["--keep", "50%", "--strategy", "tool-results:keep=0", "-o", crate::support::text(&out)];
        let report = report(&file, &args);
        assert_eq!(report["verdicts"], "KEKKK");
        let mut expected = before.clone();
        *expected.pointer_mut(result).unwrap() = json!(NOTE);
        assert_eq!(json_of(&out), expected);
        let again = crate::support::report(&out, &args[..4]);
        assert_eq!(again["tokens_before"], report["tokens_after"]);
    }
}

/// A tool result that exceeds the rest of the window is cut, and nothing else.
#[test]
fn a_result_larger_than_the_window_is_cut_and_nothing_else() {
    let line = "the quick brown fox jumps over the lazy dog and then over the next one\n";
    let call = json!({"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}});
    let messages = json!([
        {"role": "system", "content": "You help."},
        {"role": "user", "content": "Read it."},
        {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": line.repeat(20_000)},
    ]);
    let folder = Folder::new();
    let file = folder.file("huge.json", messages.to_string());
    for more in
        [&[][..], &["--lazy"], &["--strategy", "agent"], &["--strategy", "clamp:max-part-tokens=90000"]]
    {
        let (report, kept) = compacted(&file, &[&["--window", "20000"], more].concat());
        assert!(number(&report["budget"]["floor_hard"]) <= 17_500, "{more:?}: {report}");
        assert_eq!(kept[..3], messages.as_array().unwrap()[..3], "{more:?}");
        let left = kept[3]["content"].as_str().unwrap();
        assert!(left.starts_with(line) && (8_000..40_000).contains(&left.len()), "{more:?}: {}", left.len());
    }
    let why = run(&["compact", text(&file), "--window", "20000", "--why"]);
    let said = format!("{}{}", why.out, why.err);
    assert!(said.contains("a result is cut, because what is protected does not fit"), "{said}");
    // A user's text of this size is not cut.
    let said = json!([{"role": "user", "content": line.repeat(20_000)}]);
    let file = folder.file("said.json", said.to_string());
    assert!(run(&["compact", text(&file), "--window", "20000"]).fails(3).contains("what is protected has"));
}

/// The task of a Codex session stays. Codex's own texts have the role of the user and come first, so they were kept as
/// the task before.
#[test]
fn the_task_of_a_codex_session_stays_and_not_its_environment() {
    let item =
        |payload: Value| json!({"timestamp": "t", "type": "response_item", "payload": payload}).to_string();
    let user = |text: &str| {
        item(json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}))
    };
    let says = |text: String| {
        item(
            json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}),
        )
    };
    let meta =
        json!({"timestamp": "t", "type": "session_meta", "payload": {"id": "s", "cwd": "/w"}}).to_string();
    let environment = "<environment_context>\n  <cwd>/w</cwd>\n</environment_context>";
    let rules = "# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\nNo tabs.\n</INSTRUCTIONS>";
    let mut lines = vec![meta, user(rules), user(environment), user("Find the bug in parse.rs.")];
    let printed = "<user_shell_command>\n<result>COMMIT-4711 failed</result>\n</user_shell_command>";
    lines.extend([says("I look.".into()), user(printed)]);
    let tells = |step: u32| {
        format!("Step {step} reads a file of the project and finds nothing in it that explains what happens.")
    };
    lines.extend((0..100).map(|step| says(tells(step))));
    lines.extend([user("And now?"), says("It is line 7.".into())]);
    let folder = Folder::new();
    let file = folder.file("rollout.jsonl", lines.join("\n"));
    for strategy in ["truncate", "window", "agent", "chat"] {
        let out = folder.path("out.jsonl");
        run(&["compact", text(&file), "--keep", "30%", "--strategy", strategy, "-o", text(&out)]).ok();
        let left = std::fs::read_to_string(&out).unwrap();
        assert!(
            left.contains("Find the bug in parse.rs.") && left.contains("No tabs."),
            "{strategy}: {left}"
        );
        // `chat` selects by worth, and `agent` has a ledger.
        assert!(strategy == "chat" || !left.contains("<cwd>"), "{strategy}: {left}");
        let names = ["agent", "chat"].contains(&strategy);
        assert_eq!(left.contains("COMMIT-4711"), names, "{strategy}: {left}");
    }
}
