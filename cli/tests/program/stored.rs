//! `session`: copies, exports, undo and deletion.

use std::fs;

use epitome::core::attribution::{Authority, SeqRange, SourceKind};
use epitome::core::{Basis, Revision, Seq, Tokens, Turn};
use epitome::history::stored;
use epitome::history::{
    Append, AppendToken, CompactionRecord, Entry, SessionId, Summary, TokenCount, open_store,
};
use epitome::message::{Attribution, Message};
use futures::executor::block_on;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::support::*;

/// A store in its own folder.
pub(crate) struct Stores {
    pub(crate) folder: Folder,
    pub(crate) url: String,
}

impl Stores {
    /// A store with the compacted session `one`.
    pub(crate) fn new() -> Self {
        let folder = Folder::new();
        let url = format!("sqlite:{}", text(&folder.path("store.db")));
        let stores = Self { folder, url };
        stores.session("import", "one", &[text(&example("coding-agent.json"))]).ok();
        stores.session("compact", "one", &["--keep", "50%"]).ok();
        stores
    }

    pub(crate) fn session(&self, command: &str, id: &str, args: &[&str]) -> Done {
        self.session_in(&self.url, command, id, args)
    }

    pub(crate) fn session_in(&self, url: &str, command: &str, id: &str, args: &[&str]) -> Done {
        run(&[&["session", command, "--store", url, "--session", id], args].concat())
    }

    pub(crate) fn lines(&self, id: &str) -> Vec<Value> {
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
    // An export holds data that the store protects: it has mode 600, and a file that exists keeps its mode.
    #[cfg(unix)]
    for mode in [0o600, 0o644] {
        use std::os::unix::fs::PermissionsExt as _;
        if mode == 0o644 {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            stores.session("export", "one", &["-o", text(&file)]).ok();
        }
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, mode);
    }
    assert_eq!(stores.session("export", "one", &["-o", "-"]).ok(), fs::read_to_string(&file).unwrap());
    // A write failure is reported with its cause, for every destination.
    let full = stores.session("export", "one", &["-o", "/dev/full"]).fails(4);
    assert!(full.contains("/dev/full: export: it cannot be written: No space left on device"), "{full}");
    let args = ["session", "export", "--store", &stores.url, "--session", "one", "-o", "-"];
    let device = fs::File::options().write(true).open("/dev/full").unwrap();
    let full = done(program(&args).stdout(device)).fails(4);
    assert!(full.contains("standard output: export: it cannot be written: No space left"), "{full}");
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
    let piped = ["session", "import", "-", "--store", &other, "--session", "piped"];
    let done = run_with(&piped, &fs::read(&file).unwrap()).ok();
    assert_eq!(done, said.replace("\"two\"", "\"piped\""));
    let transcript = fs::read(example("support-chat.jsonl")).unwrap();
    run_with(&[&piped[..6], &["piped-chat"]].concat(), &transcript).ok();
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
fn writers_at_the_same_time_all_append() {
    let stores = Stores::new();
    for url in [stores.url.clone(), format!("jsonl:{}", text(&stores.folder.path("lines")))] {
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let url = &url;
                scope.spawn(move || {
                    for message in 0..6 {
                        let args =
                            ["session", "import", "-", "--append", "--store", url, "--session", "many"];
                        let said = json!([{"role": "user", "content": format!("{writer} says {message}")}]);
                        run_with(&args, said.to_string().as_bytes()).ok();
                    }
                });
            }
        });
        let log = stores.session_in(&url, "log", "many", &["--json"]).ok();
        for (writer, message) in (0..4).flat_map(|writer| (0..6).map(move |message| (writer, message))) {
            assert_eq!(log.matches(&format!("{writer} says {message}\"")).count(), 1, "{url}: {log}");
        }
    }
}

/// Only the owner can read an export from a store, in another format too.
#[cfg(unix)]
#[test]
fn an_export_in_another_format_is_for_its_owner() {
    use std::os::unix::fs::PermissionsExt as _;

    let stores = Stores::new();
    let file = stores.folder.path("one.json");
    for mode in [0o600, 0o644] {
        if mode == 0o644 {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        }
        stores.session("export", "one", &["--to", "anthropic", "-o", text(&file)]).ok();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, mode);
    }
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
    assert_eq!(
        stores.session("copy", "one", &["--as", ""]).fails(2),
        "epitome: --as: a session needs a name\n"
    );
    assert_eq!(
        run(&["session", "list", "--store", &stores.url, "--json"]).json().as_array().unwrap().len(),
        1
    );
    assert!(stores.session("copy", "nobody", &["--as", "x"]).fails(2).contains("there is no session"));
    let said = stores.session("fork", "one", &["--at", "10", "--as", "begun"]).ok();
    assert_eq!(said, "session \"begun\" begins with the first 10 messages of \"one\"\n");
    assert_eq!(stores.lines("begun").len(), 10);
    let said = stores.session("fork", "begun", &["--turns", "1", "--as", "shorter"]).ok();
    let (_, left) = said.split_once(" begins with the first ").unwrap();
    let left: usize = left.split(' ').next().unwrap().parse().unwrap();
    assert_eq!(stores.lines("shorter")[..], stores.lines("begun")[..left], "{said}");
    assert_eq!(stores.lines("begun")[left]["message"]["role"], "user");
    assert!(stores.session("fork", "begun", &["--turns", "99", "--as", "x"]).fails(2).contains("--turns: "));
    assert!(stores.session("fork", "begun", &["--as", "x"]).fails(2).contains("<--at <N>|--turns <N>>"));
    assert!(stores.session("fork", "one", &["--at", "75", "--as", "x"]).fails(2).contains("head 74"));
    assert!(stores.session("fork", "one", &["--at", "1", "--as", "begun"]).fails(2).contains("give another"));
    let again = stores.session("import", "begun", &[text(&example("coding-agent.json"))]).fails(2);
    assert!(again.contains("has 10 messages already: give another name, or add all messages"), "{again}");
    for options in [&[][..], &["--reindex"]] {
        let said = stores.session("verify", "one", options).ok();
        assert_eq!(said, "session \"one\" agrees with its log: 74 messages, 1 compaction\n");
    }
}

#[test]
fn a_pin_keeps_its_group_in_a_session() {
    let stores = Stores::new();
    let is_hidden = |id: &str, seq: usize| !stores.lines(id)[seq]["hidden_by"].is_null();
    // The messages that are hidden without a pin: a call, and a message that is pinned by its number.
    let hidden: Vec<usize> = (0..74).filter(|seq| is_hidden("one", *seq)).collect();
    let lines = stores.lines("one");
    let calls = |seq: &&usize| lines[**seq]["message"].to_string().contains("call_id");
    let result = *hidden.iter().find(calls).unwrap();
    let other = *hidden.last().unwrap();
    stores.session("import", "two", &[text(&example("coding-agent.json"))]).ok();
    let (at, range) = (result.to_string(), format!("{other}-{other}"));
    let pinned = ["--keep", "50%", "--pin", &at, "--pin", &range];
    stores.session("compact", "two", &pinned).ok();
    assert!(!is_hidden("two", result) && !is_hidden("two", result - 1), "a result stays with its call");
    assert!(!is_hidden("two", other));
    assert!((0..74).any(|seq| is_hidden("two", seq)), "and the rest is compacted all the same");
    let refused = stores.session("compact", "one", &["--keep", "10%", "--pin", &at]).fails(2);
    assert!(refused.contains(&format!("--pin {at}: no message that is shown")), "{refused}");
    assert!(
        stores
            .session("compact", "two", &["--keep", "10%", "--pin", "id:nobody"])
            .fails(2)
            .contains("id:nobody")
    );
}

#[test]
fn what_a_compaction_hid_is_shown_and_brought_back() {
    let stores = Stores::new();
    let hidden =
        stores.lines("one").into_iter().filter(|line| !line["hidden_by"].is_null()).collect::<Vec<_>>();
    let expanded = stores.session("expand", "one", &["--revision", "1", "--json"]).ok();
    let expanded: Vec<Value> = expanded.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!hidden.is_empty() && expanded == hidden);
    let latest = stores.session("expand", "one", &["--json"]).ok();
    assert_eq!(latest.lines().count(), expanded.len(), "without a revision: the latest compaction");
    assert!(
        stores
            .session("expand", "one", &["--revision", "7"])
            .fails(2)
            .contains("revision 7 is not that of a compaction")
    );

    let said = stores.session("uncompact", "one", &[]).ok();
    assert_eq!(said, "compaction 1 of session \"one\" is undone by 2: 74 messages are visible now\n");
    assert_eq!(stores.session("uncompact", "one", &["--revision", "1"]).ok(), said);
    assert!(stores.session("uncompact", "one", &[]).fails(2).contains("no compaction to undo"));
    let expanded = stores.session("expand", "one", &["--revision", "1"]).ok();
    assert_eq!(expanded, "compaction 1 is undone by 2: nothing is hidden or cut by it\n");
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
        dry.starts_with(&format!("the text of {hidden} messages (")) && dry.contains("would be deleted"),
        "{dry}"
    );
    let dry = stores.session("prune", "one", &["--all", "--dry-run", "--json"]).json();
    assert_eq!((&dry["messages"], &dry["deleted"]), (&json!(hidden), &json!(false)));
    assert!(stores.lines("one").iter().all(|line| line["pruned_by"].is_null()));
    let log = stores.lines("one");
    for beyond in
        [&["--through", "2"][..], &["--through", "18446744073709551615"], &["--through", "2", "--dry-run"]]
    {
        let message = stores.session("prune", "one", beyond).fails(2);
        assert!(message.contains("at revision 1, and has not come to"), "{message}");
        assert_eq!(stores.lines("one"), log);
    }

    let said = stores.session("prune", "one", &["--through", "1"]).ok();
    assert!(
        said.starts_with(&format!("the text of {hidden} messages (")) && said.contains("for good"),
        "{said}"
    );
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

/// Two summaries, of which the second replaces the first; then a third, which is undone.
fn summarized(stores: &Stores) {
    let store = open_store(&stores.url).unwrap();
    let (session, token) = (SessionId::new("two"), AppendToken::new("t"));
    let count = || TokenCount::new(Tokens(5), Basis::Estimated, "test".into());
    let entry = |seq| Entry::new(Message::user(format!("question {seq}")), Seq(seq), Turn(1), count());
    let entries: Vec<_> = (0..8).map(entry).collect();
    block_on(store.append(&session, &Append::new(&token, Seq(0), &entries))).unwrap();
    let commit = |parent, last| {
        let covers = vec![SeqRange { first: Seq(0), last: Seq(last) }];
        let mut record = CompactionRecord::new(Revision(parent), Seq(8));
        record.hides.clone_from(&covers);
        let message = Message::assistant("so far");
        let attribution =
            Attribution::new("", SourceKind::Compaction, Authority::Assistant).with_derived_from(covers);
        record.summaries = vec![Summary::new(Seq(0), message.with_attribution(attribution), count())];
        block_on(store.commit(&session, &record)).unwrap();
    };
    commit(0, 1);
    commit(1, 3);
    commit(2, 5);
    block_on(store.uncompact(&session, Revision(3))).unwrap();
}

#[test]
fn what_would_be_deleted_is_what_is_deleted_summaries_included() {
    for (through, messages, summaries) in [(1, 2, 0), (2, 4, 1), (3, 4, 1), (4, 4, 2)] {
        let stores = Stores::new();
        summarized(&stores);
        let through = format!("{through}");
        let prune =
            |args: &[&str]| stores.session("prune", "two", &[&["--through", &through], args].concat());
        let dry = prune(&["--dry-run"]).ok();
        let mut expected = prune(&["--dry-run", "--json"]).json();
        assert_eq!((&expected["messages"], &expected["summaries"]), (&json!(messages), &json!(summaries)));
        if summaries == 1 {
            assert_eq!(
                dry,
                "the text of 4 messages (20 tokens) and 1 replaced summary would be deleted from session \"two\" for good\n"
            );
        }
        let done = prune(&["--json"]).json();
        expected["deleted"] = json!(true);
        expected["revision"] = json!(5);
        assert_eq!(done, expected);
        let nothing = format!("nothing is left to delete in session \"two\" through {through}\n");
        assert_eq!(prune(&["--dry-run"]).ok(), nothing);
        assert_eq!(prune(&[]).ok(), nothing);
    }
}

/// Appends the end line of an export to these lines.
fn ended(lines: &[String]) -> String {
    let body: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let sum: String = Sha256::digest(&body).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{body}{}\n", json!({"end": {"lines": lines.len(), "sha256": sum}}))
}

/// The line of a commit, with the id recomputed from its record.
fn with_right_id(line: &str) -> String {
    let (before, rest) = line.split_once(r#""id":""#).unwrap();
    let (id, rest) = rest.split_once('"').unwrap();
    let record = rest.strip_prefix(r#","record":"#).and_then(|rest| rest.strip_suffix("}}")).unwrap();
    let right = stored::record_id(&stored::decode_record(record).unwrap()).unwrap().to_string();
    assert_eq!(right.len(), id.len());
    format!(r#"{before}"id":"{right}"{rest}"#)
}

/// A forged export is refused with the number of its line, and leaves nothing in the store. Its checksums are right, so
/// only its content is wrong.
#[test]
fn a_forged_export_is_refused_by_its_line_and_leaves_nothing() {
    let stores = Stores::new();
    summarized(&stores);
    let file = stores.folder.path("two.jsonl");
    stores.session("export", "two", &["-o", text(&file)]).ok();
    let export = read(&file);
    let honest: Vec<String> =
        export.lines().filter(|it| !it.starts_with(r#"{"end""#)).map(Into::into).collect();
    assert_eq!(ended(&honest), export);
    let jsonl = format!("jsonl:{}", text(&stores.folder.path("other")));
    stores.session_in(&jsonl, "import", "one", &[text(&example("support-chat.jsonl"))]).ok();
    let list = |url: &str| run(&["session", "list", "--store", url, "--json"]).json();
    for (begin, says, claims) in [
        (r#"{"commit":{"revision":2,"#, r#""authority":"assistant""#, r#""authority":"system""#),
        (r#"{"commit":{"revision":2,"#, r#""revision":2"#, r#""revision":3"#),
    ] {
        let at = honest.iter().position(|line| line.starts_with(begin)).unwrap();
        let line = &honest[at];
        assert!(line.matches(says).count() == 1 && with_right_id(line) == *line, "{says} in {line}");
        let claim = line.replacen(says, claims, 1);
        for claim in [with_right_id(&claim), claim] {
            let forged = [&honest[..at], &[claim], &honest[at + 1..]].concat();
            fs::write(&file, ended(&forged)).unwrap();
            for url in [&stores.url, &jsonl] {
                let before = list(url);
                let error = stores.session_in(url, "import", "forged", &[text(&file)]).fails(2);
                assert!(error.contains(&format!("import: line {} ", at + 1)), "{claims}: {error}");
                assert_eq!(list(url), before);
                let shown = stores.session_in(url, "show", "forged", &[]).fails(2);
                assert!(shown.contains("there is no session"), "{shown}");
            }
        }
    }
    fs::write(&file, &export).unwrap();
    stores.session_in(&jsonl, "import", "forged", &[text(&file)]).ok();
}
