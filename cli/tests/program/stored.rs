//! `session`: moving, undoing and deleting.

use std::fs;

use serde_json::{Value, json};

use super::support::*;

struct Stores {
    folder: Folder,
    url: String,
}

impl Stores {
    /// A store with the compacted session `one`.
    fn new() -> Self {
        let folder = Folder::new();
        let url = format!("sqlite:{}", text(&folder.path("store.db")));
        let stores = Self { folder, url };
        stores.session("import", "one", &[text(&example("coding-agent.json"))]).ok();
        stores.session("compact", "one", &["--keep", "50%"]).ok();
        stores
    }

    fn session(&self, command: &str, id: &str, args: &[&str]) -> Done {
        self.session_in(&self.url, command, id, args)
    }

    fn session_in(&self, url: &str, command: &str, id: &str, args: &[&str]) -> Done {
        run(&[&["session", command, "--store", url, "--session", id], args].concat())
    }

    fn lines(&self, id: &str) -> Vec<Value> {
        self.session("log", id, &["--json"])
            .ok()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

#[test]
fn an_export_is_imported_into_any_store_as_it_was() {
    let stores = Stores::new();
    let file = stores.folder.path("one.jsonl");
    let said = stores.session("export", "one", &["-o", text(&file)]).ok();
    assert_eq!(said, "session \"one\" exported: 74 messages, 1 compaction\n");
    assert_eq!(stores.session("export", "one", &["-o", "-"]).ok(), fs::read_to_string(&file).unwrap());
    let other = format!("jsonl:{}", text(&stores.folder.path("other")));
    let into =
        |id: &str, args: &[&str]| stores.session_in(&other, "import", id, &[&[text(&file)], args].concat());
    let said = into("two", &[]).ok();
    assert_eq!(said, "session \"two\" is what was exported: 74 messages, 1 compaction\n");
    assert_eq!(into("two", &[]).ok(), said);
    for command in ["show", "log"] {
        let shown = stores.session_in(&other, command, "two", &["--json"]).ok();
        assert_eq!(shown, stores.session(command, "one", &["--json"]).ok());
    }
    assert!(into("two", &["--append"]).fails(2).contains("give --session another name"));
    stores.session_in(&other, "import", "three", &[text(&example("support-chat.jsonl"))]).ok();
    assert!(into("three", &[]).fails(2).contains("another session of that name"));
    let cut = fs::read_to_string(&file).unwrap().lines().take(9).collect::<Vec<_>>().join("\n");
    fs::write(&file, cut).unwrap();
    let error = into("four", &[]).fails(2);
    assert!(error.contains("line 10 is missing") && error.contains("one.jsonl"), "{error}");
    assert!(stores.session_in(&other, "show", "four", &[]).fails(2).contains("there is no session"));
}

#[test]
fn a_session_is_copied_forked_and_verified() {
    let stores = Stores::new();
    let other = format!("jsonl:{}", text(&stores.folder.path("other")));
    let said = stores.session("copy", "one", &["--to", &other, "--as", "two"]).ok();
    assert!(said.starts_with("session \"one\" copied to \"two\" in jsonl:"), "{said}");
    assert!(said.ends_with(": 74 messages, 1 compaction\n"), "{said}");
    let copied = stores.session_in(&other, "log", "two", &["--json"]).ok();
    assert_eq!(copied, stores.session("log", "one", &["--json"]).ok());
    assert!(stores.session("copy", "one", &[]).fails(2).contains("no copy of itself"));
    assert!(stores.session("copy", "nobody", &["--as", "x"]).fails(2).contains("there is no session"));
    let said = stores.session("fork", "one", &["--at", "10", "--as", "begun"]).ok();
    assert_eq!(said, "session \"begun\" begins with the first 10 messages of \"one\"\n");
    assert_eq!(stores.lines("begun").len(), 10);
    assert!(stores.session("fork", "one", &["--at", "75", "--as", "x"]).fails(2).contains("head 74"));
    assert!(stores.session("fork", "one", &["--at", "1", "--as", "begun"]).fails(2).contains("give another"));
    let said = stores.session("verify", "one", &[]).ok();
    assert_eq!(said, "session \"one\" is what was done in it: 74 messages, 1 compaction\n");
}

#[test]
fn what_a_compaction_hid_is_shown_and_brought_back() {
    let stores = Stores::new();
    let hidden =
        stores.lines("one").into_iter().filter(|line| !line["hidden_by"].is_null()).collect::<Vec<_>>();
    let expanded = stores.session("expand", "one", &["--revision", "1", "--json"]).ok();
    let expanded: Vec<Value> = expanded.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!hidden.is_empty() && expanded == hidden);
    assert!(
        stores.session("expand", "one", &["--revision", "7"]).fails(2).contains("no record made revision 7")
    );

    let said = stores.session("uncompact", "one", &[]).ok();
    assert_eq!(said, "compaction 1 of session \"one\" is undone by 2: 74 messages are visible now\n");
    assert_eq!(stores.session("uncompact", "one", &["--revision", "1"]).ok(), said);
    assert!(stores.session("uncompact", "one", &[]).fails(2).contains("no compaction to undo"));
    let whole = json_of(&example("coding-agent.json"))["messages"].clone();
    assert_eq!(stores.session("show", "one", &["--json"]).json(), whole);
}

#[test]
fn what_is_deleted_is_told_before_and_after() {
    let stores = Stores::new();
    let shown = stores.session("show", "one", &["--json"]).ok();
    let hidden = stores.lines("one").iter().filter(|line| !line["hidden_by"].is_null()).count();
    assert!(stores.session("prune", "one", &[]).fails(2).contains("--through"));
    let dry = stores.session("prune", "one", &["--all", "--dry-run"]).ok();
    assert!(
        dry.starts_with(&format!("what {hidden} messages (")) && dry.contains("would be deleted"),
        "{dry}"
    );
    let dry = stores.session("prune", "one", &["--all", "--dry-run", "--json"]).json();
    assert_eq!((&dry["messages"], &dry["deleted"]), (&json!(hidden), &json!(false)));
    assert!(stores.lines("one").iter().all(|line| line["pruned_by"].is_null()));
    assert!(stores.session("prune", "one", &["--through", "2"]).fails(2).contains("at revision 1"));

    let said = stores.session("prune", "one", &["--through", "1"]).ok();
    assert!(said.starts_with(&format!("what {hidden} messages (")) && said.contains("for good"), "{said}");
    assert_eq!(stores.lines("one").iter().filter(|line| line["pruned_by"] == 2).count(), hidden);
    assert_eq!(stores.session("show", "one", &["--json"]).ok(), shown);
    let again = stores.session("prune", "one", &["--all"]).ok();
    assert_eq!(again, "nothing is left to delete in session \"one\" through 2\n");
    assert!(stores.session("uncompact", "one", &[]).fails(2).contains("has been pruned"));

    let dry = stores.session("erase", "one", &["--dry-run"]).ok();
    assert_eq!(
        dry,
        format!("session \"one\" would be deleted with its log: 74 messages, {hidden} of them hidden\n")
    );
    let said = stores.session("erase", "one", &["--json"]).json();
    let expected = json!({"session": "one", "deleted": true, "messages": 74, "hidden": hidden});
    assert_eq!(said, expected);
    assert!(stores.session("erase", "one", &[]).fails(2).contains("there is no session"));
}
