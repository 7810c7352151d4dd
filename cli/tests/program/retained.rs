//! `session clear`, `rewind` and `retain`: hiding all messages, or the latest, and deleting old ones.

use std::fs;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::stored::Stores;
use super::support::*;

fn visible(stores: &Stores, id: &str) -> usize {
    stores.session("show", id, &["--json"]).json().as_array().unwrap().len()
}

fn pruned(stores: &Stores, id: &str) -> usize {
    stores.lines(id).iter().filter(|line| !line["pruned_by"].is_null()).count()
}

#[test]
fn a_cleared_session_shows_nothing_until_that_is_undone() {
    let stores = Stores::new();
    let shown = stores.session("show", "one", &["--json"]).ok();
    let count = visible(&stores, "one");
    let said = stores.session("clear", "one", &[]).ok();
    assert_eq!(said, format!("session \"one\" is cleared by 2: {count} messages hidden, nothing deleted\n"));
    assert_eq!((visible(&stores, "one"), pruned(&stores, "one")), (0, 0));
    assert_eq!(stores.session("clear", "one", &[]).ok(), "nothing is visible in session \"one\"\n");
    let said = stores.session("clear", "one", &["--json"]).json();
    assert_eq!(said, json!({"session": "one", "revision": 2, "hidden": 0}));
    assert_eq!(stores.lines("one").len(), 74);
    let unchanged = stores.session("compact", "one", &["--keep", "50%"]).ok();
    assert!(unchanged.contains("0 messages, 0 tokens (estimated by estimate-v2)"), "{unchanged}");
    let folder = Folder::new();
    let (prompt, whole) = (folder.path("prompt.json"), folder.path("whole.jsonl"));
    let refused = stores.session("export", "one", &["--to", "openai-chat", "-o", text(&prompt)]).fails(2);
    assert!(refused.contains("shows no messages") && !prompt.exists(), "{refused}");
    stores.session("export", "one", &["-o", text(&whole)]).ok();
    stores.session("uncompact", "one", &["--revision", "2"]).ok();
    assert_eq!(stores.session("show", "one", &["--json"]).ok(), shown);
    assert!(stores.session("clear", "nobody", &[]).fails(2).contains("there is no session"));
    // Messages that arrive after a clear are visible.
    stores.session("clear", "one", &[]).ok();
    stores.session("import", "one", &[text(&fixture("bom.json")), "--append"]).ok();
    assert_eq!(visible(&stores, "one"), 3);
}

#[test]
fn what_is_taken_back_is_hidden_and_comes_again() {
    let stores = Stores::new();
    stores.session("uncompact", "one", &[]).ok();
    let keys = || -> Vec<u64> {
        let log = stores.lines("one");
        let shown = log.iter().filter(|line| line["hidden_by"].is_null());
        shown.map(|line| line["seq"].as_u64().unwrap()).collect()
    };
    let begins: Vec<u64> = stores
        .lines("one")
        .iter()
        .filter(|line| line["message"]["role"] == "user")
        .map(|line| line["seq"].as_u64().unwrap())
        .collect();
    let [.., second, last] = begins[..] else { panic!("{begins:?}") };
    let all = keys();
    let said = stores.session("rewind", "one", &["--turns", "1"]).ok();
    let hidden = all.iter().filter(|key| **key >= last).count();
    let left = all.len() - hidden;
    assert_eq!(
        said,
        format!(
            "session \"one\" is back before message {last}, by 3: {} hidden, nothing deleted, {left} visible\n",
            if hidden == 1 { "1 message".to_owned() } else { format!("{hidden} messages") },
        )
    );
    assert!(keys().iter().all(|key| *key < last));
    let said = stores.session("rewind", "one", &["--at", &second.to_string(), "--json"]).json();
    assert_eq!((&said["at"], &said["revision"]), (&json!(second), &json!(4)));
    assert_eq!(said["live_messages"], keys().len());
    assert_eq!(pruned(&stores, "one"), 0);
    let said = stores.session("rewind", "one", &["--at", &second.to_string()]).ok();
    assert_eq!(said, format!("nothing from message {second} on is visible in session \"one\"\n"));
    for _ in 0..2 {
        stores.session("uncompact", "one", &[]).ok();
    }
    assert_eq!(keys(), all);
    stores.session("verify", "one", &[]).ok();
    let turns = begins.len();
    let said = stores.session("rewind", "one", &["--turns", &(turns + 1).to_string()]).fails(2);
    assert!(said.contains(&format!("the session shows {turns} turn")), "{said}");
    assert!(stores.session("rewind", "one", &["--at", "74"]).fails(2).contains("the session has 74"));
    assert!(stores.session("rewind", "nobody", &["--at", "1"]).fails(2).contains("there is no session"));
    for wrong in [&[][..], &["--turns", "0"], &["--at", "1", "--turns", "1"], &["--at", "-1"]] {
        stores.session("rewind", "one", wrong).fails(2);
    }
}

#[test]
fn a_retention_by_count_is_told_before_and_after() {
    let stores = Stores::new();
    let (shown, log) = (visible(&stores, "one"), stores.lines("one"));
    let dry = stores.session("retain", "one", &["--messages", "10", "--dry-run", "--json"]).json();
    let said = stores.session("retain", "one", &["--messages", "10", "--dry-run"]).ok();
    assert!(said.contains("would be hidden") && said.contains("would be deleted for good"), "{said}");
    assert_eq!((stores.lines("one"), visible(&stores, "one")), (log, shown));
    let done = stores.session("retain", "one", &["--messages", "10", "--json"]).json();
    let mut expected = dry;
    assert_eq!(expected["deleted"], false);
    expected["deleted"] = json!(true);
    assert_eq!(done, expected);
    let left = visible(&stores, "one");
    assert!((1..=12).contains(&left), "{left}");
    assert_eq!(done["live_messages"], left);
    assert_eq!(done["hidden"], shown - left);
    assert_eq!(done["messages"], pruned(&stores, "one"));
    assert_eq!(pruned(&stores, "one") + left, 74);
    let again = stores.session("retain", "one", &["--messages", "10"]).ok();
    let expected = format!(
        "session \"one\" has no more than it may keep: {left} messages visible, nothing hidden is left\n"
    );
    assert_eq!(again, expected);
    let said = stores.session("retain", "one", &["--messages", "2", "--json"]).json();
    assert_eq!((&said["deleted"], &said["hidden"]), (&json!(said["messages"] != 0), &said["messages"]));
    assert!(
        stores.session("retain", "nobody", &["--messages", "1"]).fails(2).contains("there is no session")
    );
    for wrong in [&[][..], &["--messages", "1", "--age", "1d"], &["--age", "1"], &["--messages", "-1"]] {
        stores.session("retain", "one", wrong).fails(2);
    }
}

/// An export of the session, all of whose appends were at this time.
fn at_time(stores: &Stores, id: &str, time: u64) -> std::path::PathBuf {
    let text = stores.session("export", id, &["-o", "-"]).ok();
    let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let count = lines.len() - 1;
    lines.truncate(count);
    for line in &mut lines {
        if let Some(append) = line.get_mut("append") {
            append["time"] = json!(time);
        }
    }
    let said = jsonl(&lines);
    let hash: String = Sha256::digest(&said).iter().map(|byte| format!("{byte:02x}")).collect();
    let end = json!({"end": {"lines": count, "sha256": hash}});
    stores.folder.file("old.jsonl", format!("{said}{end}\n"))
}

#[test]
fn a_retention_by_age_deletes_what_was_stored_before() {
    let stores = Stores::new();
    let old = at_time(&stores, "one", 1_000_000_000_000);
    assert!(fs::metadata(&old).unwrap().len() > 10_000);
    stores.session("import", "old", &[text(&old)]).ok();
    stores.session("import", "old", &[text(&fixture("bom.json")), "--append"]).ok();
    let shown = visible(&stores, "old");
    // An age above that of each append.
    let kept = stores.session("retain", "old", &["--age", "9999w", "--dry-run", "--json"]).json();
    assert_eq!((&kept["hidden"], &kept["live_messages"]), (&json!(0), &json!(shown)));
    let said = stores.session("retain", "old", &["--age", "2h", "--json"]).json();
    let left = visible(&stores, "old");
    // The caller's system message stays visible next to the new messages.
    assert!((3..10).contains(&left), "{left}");
    assert_eq!((&said["deleted"], &said["live_messages"]), (&json!(true), &json!(left)));
    assert_eq!(stores.session("show", "one", &["--json"]).json().as_array().unwrap().len(), shown - 3);
}

/// A ledger stands for messages of several turns. It is none of the latest turns, and the report counts the turns that are
/// visible.
#[test]
fn a_ledger_is_no_turn() {
    let stores = Stores::new();
    let words =
        |name: &str| (0..60).map(|number| format!("src/{name}{number}.rs")).collect::<Vec<_>>().join(" ");
    let turn = |turn: u32| {
        let (question, answer) = (words(&format!("q{turn}-")), words(&format!("a{turn}-")));
        [json!({"role": "user", "content": question}), json!({"role": "assistant", "content": answer})]
    };
    let file = stores
        .folder
        .file("led.json", json!({"messages": (0..8).flat_map(turn).collect::<Vec<_>>()}).to_string());
    stores.session("import", "s", &[text(&file)]).ok();
    let report = stores.session("compact", "s", &["--keep", "40%", "--strategy", "agent"]).ok();
    assert!(report.contains("in 8 turns"), "{report}");
    assert!(stores.session("show", "s", &[]).ok().contains("[Conversation Summary]"));
    let again = stores.session("compact", "s", &["--keep", "40%", "--strategy", "agent", "--dry-run"]).ok();
    let visible = stores.session("show", "s", &["--json"]).json();
    let users = visible.as_array().unwrap().iter().filter(|message| message["role"] == "user").count();
    assert!(users < 8 && again.contains(&format!("in {users} turns")), "{users}: {again}");
    // All visible turns but the first stand behind the ledger.
    let said = stores.session("rewind", "s", &["--turns", "1"]).ok();
    assert!(said.contains("is back before message 14"), "{said}");
    stores.session("uncompact", "s", &[]).ok();
    let said = stores.session("rewind", "s", &["--turns", &users.to_string()]).ok();
    assert!(said.contains("is back before message 0"), "{said}");
}

/// Calls of two messages of the model without a result between them: each result stands directly behind its call, and a
/// call of an earlier turn without a result has one that says so.
#[test]
fn the_shown_request_is_legal() {
    let stores = Stores::new();
    let call = |id: &str| json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}}]});
    let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": format!("of {id}")});
    let user = |text: &str| json!({"role": "user", "content": text});
    let said = [
        user("one"),
        call("a"),
        call("b"),
        result("a"),
        result("b"),
        call("lost"),
        user("two"),
        call("open"),
    ];
    let file = stores.folder.file("calls.json", json!({"messages": said}).to_string());
    stores.session("import", "calls", &[text(&file)]).ok();
    let shown = stores.session("show", "calls", &["--json"]).json();
    let shown = shown.as_array().unwrap();
    let expected = [&said[0], &said[1], &said[3], &said[2], &said[4], &said[5]];
    assert_eq!(shown[..6].iter().collect::<Vec<_>>(), expected);
    assert_eq!((&shown[6]["role"], &shown[6]["tool_call_id"]), (&json!("tool"), &json!("lost")));
    assert_eq!(shown[7..], said[6..], "the call of the current turn may still be running");
}
