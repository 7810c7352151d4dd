//! `session`: transcripts in a store.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use serde_json::{Value, json};

use super::support::*;

struct Store {
    folder: Folder,
    url: String,
}

impl Store {
    fn new() -> Self {
        let folder = Folder::new();
        let url = format!("sqlite:{}", text(&folder.path("store.db")));
        Self { folder, url }
    }

    fn session(&self, command: &str, id: &str, args: &[&str]) -> Done {
        run(&[&["session", command, "--store", &self.url, "--session", id], args].concat())
    }

    fn list(&self) -> Value {
        run(&["session", "list", "--store", &self.url, "--json"]).json()
    }
}

#[test]
fn an_imported_session_is_the_file_and_compacts_like_it() {
    let store = Store::new();
    let file = example("coding-agent.json");
    let said = store.session("import", "one", &[text(&file)]).ok();
    assert_eq!(said, "74 messages imported into session \"one\", which shows 13,593 tokens now\n");
    let other = store.session("import", "one", &[text(&example("support-chat.jsonl"))]).fails(2);
    assert_eq!(
        other,
        "epitome: session \"one\" has 74 messages already: give another name, or add all messages of the transcript behind these with --append\n"
    );

    let whole = json_of(&file)["messages"].clone();
    assert_eq!(store.session("show", "one", &["--json"]).json(), whole);

    let dry = store.session("compact", "one", &["--keep", "50%", "--dry-run", "--json"]).json();
    let first = store.session("compact", "one", &["--keep", "50%", "--json"]).json();
    assert_eq!(dry, first);
    assert_eq!(first["unchanged_reason"], Value::Null);
    // The verdicts are those for the file.
    assert_eq!(first["verdicts"], report(&file, &["--keep", "50%"])["verdicts"]);
    let second = store.session("compact", "one", &["--keep", "50%", "--json"]).json();
    assert_eq!(
        (&second["unchanged_reason"], &second["tokens_before"]),
        (&json!("at_goal"), &first["tokens_after"])
    );
    assert_eq!(store.list()[0]["revision"], 1);
}

#[test]
fn a_store_is_one_file_once_the_program_has_ended() {
    let store = Store::new();
    for name in ["one", "two", "three"] {
        store.session("import", name, &[text(&example("support-chat.jsonl"))]).ok();
        let files = fs::read_dir(store.folder.path("store.db").parent().unwrap()).unwrap();
        let names: Vec<_> = files.map(|file| file.unwrap().file_name()).collect();
        assert_eq!(names, ["store.db"]);
    }
}

#[test]
fn the_log_shows_what_is_hidden_until_it_is_deleted() {
    let store = Store::new();
    let file = example("coding-agent.json");
    store.session("import", "one", &[text(&file)]).ok();
    store.session("compact", "one", &["--keep", "50%"]).ok();
    let whole = json_of(&file)["messages"].clone();
    let mut hidden = Vec::new();
    let log = store.session("log", "one", &["--json"]).ok();
    assert_eq!(log.lines().count(), 74);
    for (at, line) in log.lines().enumerate() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!((line["seq"].as_u64(), &line["message"]), (Some(at as u64), &whole[at]));
        if !line["hidden_by"].is_null() {
            assert_eq!(line["hidden_by"], 1);
            hidden.push(at);
        }
    }
    // The user message of a turn whose answer stays is visible.
    assert_eq!(hidden, (2..22).filter(|at| *at != 10).collect::<Vec<_>>());
    let left: Vec<&Value> = whole
        .as_array()
        .unwrap()
        .iter()
        .enumerate()
        .filter(|(at, _)| !hidden.contains(at))
        .map(|(_, one)| one)
        .collect();
    assert_eq!(store.session("show", "one", &["--json"]).json(), json!(left));
    let said = store.session("log", "one", &[]).ok();
    assert!(
        said.contains("hidden by 1")
            && said.ends_with("74 messages, 19 of them hidden: no request shows them\n")
    );
    let said = store.session("show", "one", &[]).ok();
    assert!(said.ends_with("55 messages in 30 groups, 5,503 tokens; revision 1, 74 in the log\n"), "{said}");

    let said =
        store.session("import", "one", &[text(&example("support-chat.jsonl")), "--append", "--json"]).json();
    assert_eq!(said, json!({"session": "one", "imported": 18, "messages": 92}));
    let said = store.session("delete", "one", &[]).ok();
    assert_eq!(said, "session \"one\" is deleted with its log: 92 messages, 19 of them hidden\n");
    assert_eq!(store.list(), json!([]));
}

#[test]
fn an_import_can_be_repeated() {
    let store = Store::new();
    let file = example("coding-agent.json");
    let import = |args: &[&str]| store.session("import", "one", &[&[text(&file), "--json"], args].concat());
    assert_eq!(import(&[]).json(), json!({"session": "one", "imported": 74, "messages": 74}));
    // A user may not know if the first import succeeded: a repeated import adds nothing.
    assert_eq!(import(&[]).json(), json!({"session": "one", "imported": 0, "messages": 74}));
    assert_eq!(
        store.session("import", "one", &[text(&file), "--tokenizer", "o200k_base"]).ok(),
        "imported before into session \"one\", which shows 13,748 tokens now\n"
    );
    // With `--append` it adds the messages again.
    assert_eq!(import(&["--append"]).json(), json!({"session": "one", "imported": 74, "messages": 148}));
    assert_eq!(import(&["--append"]).json(), json!({"session": "one", "imported": 74, "messages": 222}));
    store.session("compact", "one", &["--keep", "20%"]).ok();
    assert_eq!(import(&[]).json(), json!({"session": "one", "imported": 0, "messages": 222}));
    // A part of the messages is a different import.
    let whole = json_of(&file)["messages"].clone();
    let part = store.folder.file("part.json", json!(whole.as_array().unwrap()[..9]).to_string());
    store.session("import", "one", &[text(&part)]).fails(2);
}

#[test]
fn a_share_is_of_what_one_counter_says() {
    let store = Store::new();
    store.session("import", "one", &[text(&example("coding-agent.json")), "--tokenizer", "o200k_base"]).ok();
    for tokenizer in ["estimate", "o200k_base", "cl100k_base"] {
        let args = ["--keep", "50%", "--dry-run", "--json", "--tokenizer", tokenizer];
        let report = store.session("compact", "one", &args).json();
        let own = report["tokens_before"].as_u64().unwrap();
        assert_eq!(report["budget"]["goal"].as_u64(), Some(own / 2), "{tokenizer}");
    }
}

#[test]
fn a_long_log_is_shown_page_by_page() {
    let store = Store::new();
    let all = messages(300);
    let file = store.folder.file("long.jsonl", jsonl(&all));
    store.session("import", "one", &[text(&file)]).ok();
    let log = store.session("log", "one", &["--json"]).ok();
    let seqs: Vec<_> = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(seqs, (0..all.len() as u64).collect::<Vec<_>>());
    let log = store.session("log", "one", &[]).ok();
    assert_eq!(log.lines().count(), all.len() + 1);
    assert!(log.ends_with("\n1,501 messages, 0 of them hidden: no request shows them\n"));
}

#[test]
fn compacting_twice_commits_once() {
    for args in [
        ["--keep", "30%"],
        ["--goal", "2000"],
        ["--goal", "0"],
        ["--window", "8000"],
        ["--strategy", "window:turns=3"],
    ] {
        let store = Store::new();
        store.session("import", "s", &[text(&example("coding-agent.json"))]).ok();
        store.session("compact", "s", &args).ok();
        let revision = store.list()[0]["revision"].clone();
        let second = store.session("compact", "s", &[&args[..], &["--json"]].concat()).json();
        assert!(second["unchanged_reason"].is_string(), "{args:?}: {second}");
        assert_eq!(store.list()[0]["revision"], revision, "{args:?}");
    }
}

#[test]
fn sessions_that_do_not_exist() {
    let store = Store::new();
    store.session("import", "other", &[text(&fixture("bom.json"))]).ok();
    for command in ["show", "compact", "log", "delete"] {
        let message = store.session(command, "nope", &[]).fails(2);
        assert!(message.starts_with("epitome: there is no session \"nope\" in sqlite:"), "{message}");
        assert!(message.contains("`epitome session list --store sqlite:"), "{message}");
    }
}

#[test]
fn odd_names() {
    let store = Store::new();
    assert_eq!(
        store.session("import", "", &[text(&fixture("bom.json"))]).fails(2),
        "epitome: --session: a session needs a name\n"
    );
    let long = "n".repeat(5_000);
    let names = ["../../x", "日本 🙏", "a\nb\u{1b}[31m", " ", "'; drop table", "%", long.as_str()];
    for name in names {
        store.session("import", name, &[text(&fixture("bom.json"))]).ok();
        let shown = store.session("show", name, &["--json"]).json();
        assert_eq!(shown.as_array().unwrap().len(), 3, "{name}");
    }
    assert_eq!(store.list().as_array().unwrap().len(), names.len());
    let said = run(&["session", "list", "--store", &store.url]).ok();
    assert!(!said.contains('\u{1b}') && said.lines().count() == 1 + names.len(), "{said}");
    for name in names {
        store.session("delete", name, &[]).ok();
    }
    assert_eq!(store.list(), json!([]));
    assert!(store.folder.names().iter().all(|name| name.starts_with("store.db")), "no name is a path");
}

#[test]
fn stores_that_cannot_be_used() {
    let folder = Folder::new();
    let list = |url: &str| run(&["session", "list", "--store", url]);
    for (url, part) in [
        (
            "mysql://user:hunter2-SECRET-text@host",
            "there is no store \"mysql\"; expected sqlite:PATH, jsonl:DIR, postgres://.. or redis://HOST",
        ),
        (
            "memory:",
            "a store in memory ends with this program; expected sqlite:PATH, jsonl:DIR, postgres://.. or redis://HOST",
        ),
        ("store.db", "the store has no kind; expected sqlite:PATH, jsonl:DIR, postgres://.. or redis://HOST"),
        ("redis:hunter2-SECRET-text", "redis"),
        ("sqlite::memory:", "a store in memory ends with this program; expected sqlite:PATH"),
        ("sqlite:", "a path must follow `sqlite:`"),
        ("jsonl:", "a directory must follow `jsonl:`"),
    ] {
        assert!(list(url).fails(2).contains(part), "{url}");
    }
    // A build with the other crates of the workspace may enable their features: then no server answers at that address.
    let done = list("redis://user:hunter2-SECRET-text@127.0.0.1:1");
    let is_told = done.code == 2 && done.err.contains("build it with the feature `redis`");
    assert!(is_told || done.code == 4, "{done:?}");
    let missing = folder.path("missing.db");
    let url = format!("sqlite:{}", text(&missing));
    for command in ["show", "compact", "log", "delete"] {
        let message = run(&["session", command, "--store", &url, "--session", "s"]).fails(2);
        assert!(message.contains("missing.db; `epitome session import` creates it"), "{message}");
    }
    list(&url).fails(2);
    assert!(!missing.exists(), "reading makes no store");
    fs::write(&missing, "").unwrap();
    assert!(list(text(&missing)).fails(2).contains(&format!("did you mean {url}?")));
    let message = run(&["session", "vacuum", "--store", &url]).fails(2);
    assert!(
        message.contains("missing.db is empty; `epitome session import` makes a store of it"),
        "{message}"
    );
    assert_eq!(fs::metadata(&missing).unwrap().len(), 0);
    assert!(list(&format!("sqlite:{}", text(&folder.path("")))).fails(2).contains("is a directory"));
    let import =
        |url: &str| run(&["session", "import", text(&fixture("bom.json")), "--store", url, "--session", "s"]);
    let message = import(&format!("sqlite:{}", text(&folder.path("no/s.db")))).fails(4);
    assert!(message.contains("no/s.db: ") && message.contains("cannot be created"), "{message}");
}

#[test]
fn files_that_are_damaged_or_read_only() {
    let store = Store::new();
    let path = store.folder.path("store.db");
    // The last writes may still be in the log file of the database.
    for id in 0.. {
        store.session("import", &format!("s{id}"), &[text(&example("coding-agent.json"))]).ok();
        if path.metadata().unwrap().len() > 200_000 {
            break;
        }
        assert!(id < 50, "the log is never moved into the file");
    }
    let good = fs::read(&path).unwrap();
    let cases: [(&str, Vec<u8>); 3] = [
        ("no.db", SECRET.repeat(1_000).into_bytes()),
        ("cut.db", good[..good.len() / 2].to_vec()),
        ("bits.db", good.iter().enumerate().map(|(at, byte)| if at > 100 { !byte } else { *byte }).collect()),
    ];
    for (name, content) in cases {
        let file = store.folder.file(name, &content);
        for command in ["show", "log", "delete"] {
            let url = format!("sqlite:{}", text(&file));
            let message = run(&["session", command, "--store", &url, "--session", "s0"]).fails(4);
            assert!(message.starts_with(&format!("epitome: {url}: ")), "{message}");
            assert!(message.contains("damaged"), "{message}");
        }
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    match fs::File::options().write(true).open(&path) {
        Ok(_) => println!("skipped: this user may write everything"),
        Err(_) => {
            assert!(
                store.session("compact", "s0", &["--keep", "50%"]).fails(4).contains("cannot be written")
            );
            for reading in ["show", "log"] {
                store.session(reading, "s0", &[]).ok();
            }
        }
    }
}

#[test]
fn a_session_that_cannot_be_read_is_deleted_without_a_number_of_messages() {
    let folder = Folder::new();
    let url = format!("jsonl:{}", text(&folder.path("store")));
    let session = |command: &str, more: &[&str]| {
        run(&[&["session", command, "--store", &url, "--session", "one"], more].concat())
    };
    for (args, said) in [
        (&["--json"][..], "\"messages\": null,"),
        (&[], "session \"one\" is deleted with its log: it could not be read\n"),
    ] {
        session("import", &[text(&example("coding-agent.json"))]).ok();
        let logs = fs::read_dir(folder.path("store")).unwrap().map(|file| file.unwrap().path());
        let log = logs.max_by_key(|path| path.metadata().unwrap().len()).unwrap();
        fs::write(&log, read(&log).replace("turn", "twin")).unwrap();
        session("erase", &["--dry-run"]).fails(4);
        let erased = session("erase", args).ok();
        assert!(erased.contains(said), "{erased}");
        session("show", &[]).fails(2);
    }
}

#[test]
fn imports_take_the_same_inputs() {
    let store = Store::new();
    store.session("import", "a", &[text(&fixture("nested.json")), "--at", "/history"]).ok();
    store.session("import", "b", &[text(&example("support-chat.jsonl"))]).ok();
    let each = store.session("import", "c", &[text(&fixture("conversations.jsonl")), "--each"]).fails(2);
    assert!(each.contains("one conversation: name it with --at"), "{each}");
    for (name, part) in
        [("unknown-role.json", "at /2/role: unknown role"), ("truncated.json", "line 6, column 40")]
    {
        let message = store.session("import", "d", &[text(&fixture(name))]).fails(2);
        assert!(message.contains(part), "{message}");
    }
    let args = ["session", "import", "-", "--store", &store.url, "--session", "e"];
    assert_eq!(run_with(&args, jsonl(&messages(2)).as_bytes()).code, 0);
    let names: Vec<_> = store.list().as_array().unwrap().iter().map(|row| row["session"].clone()).collect();
    assert_eq!(names, ["a", "b", "e"], "what failed left nothing");
    // A result without a call is in the log, and in no request.
    store.session("import", "f", &[text(&fixture("result-without-call.json"))]).ok();
    assert_eq!(store.session("show", "f", &["--json"]).json().as_array().unwrap().len(), 4);
    assert!(store.session("log", "f", &[]).ok().contains("answers no call"));
}

/// Several processes append the same messages or compact at once: each of them does what it reports.
#[test]
fn several_processes_at_once_lose_nothing() {
    let folder = Folder::new();
    let more = folder.file(
        "more.json",
        r#"[{"role":"user","content":"And now?"},{"role":"assistant","content":"Done."}]"#,
    );
    for store in
        [format!("sqlite:{}", text(&folder.path("s.db"))), format!("jsonl:{}", text(&folder.path("s")))]
    {
        let session = ["--store", &*store, "--session", "s"];
        run(&[&["session", "import", text(&example("coding-agent.json"))], &session[..]].concat()).ok();
        let at_once = |args: &[&str]| {
            let args = [args, &session[..]].concat();
            let start = || program(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            let running: Vec<_> = (0..6).map(|_| start()).collect();
            for each in running {
                let done = each.wait_with_output().unwrap();
                assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
            }
        };
        at_once(&["session", "import", text(&more), "--append"]);
        let log = run(&[&["session", "log", "--json"], &session[..]].concat()).ok();
        assert_eq!(log.lines().count(), 74 + 12, "{store}");
        at_once(&["session", "compact", "--keep", "50%", "--strategy", "truncate"]);
        run(&[&["session", "verify"], &session[..]].concat()).ok();
    }
}
