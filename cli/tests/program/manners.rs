//! General behaviour of the program: input without a FILE, replacement of files, settings, completions and manual
//! pages.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use super::homes::{Home, claude, codex};
use super::support::*;

#[test]
fn a_transcript_that_is_piped_in_needs_no_file() {
    let file = example("coding-agent.json");
    let transcript = read(&file);
    for command in [&["stats"][..], &["compact", "--keep", "25%"], &["show", "--turn", "1"], &["validate"]] {
        let [(name, more)] = [command.split_first().unwrap()];
        let of_file = run(&[&[*name, text(&file)], more].concat()).ok();
        assert_eq!(piped(&mut program(command), transcript.as_bytes()).ok(), of_file, "{command:?}");
        assert_eq!(
            run_with(&[&[*name, "-"], more].concat(), transcript.as_bytes()).ok(),
            of_file,
            "{command:?}"
        );
    }
    for command in [
        &["report", "--json", "--strategy", "window"][..],
        &["eval", "--json", "--strategy", "window", "--keep", "25"],
    ] {
        let of_input = piped(&mut program(command), transcript.as_bytes()).ok();
        assert_eq!(
            of_input,
            run_with(&[command, &["-"]].concat(), transcript.as_bytes()).ok(),
            "{command:?}"
        );
    }
    let folder = Folder::new();
    let store = format!("sqlite:{}", text(&folder.path("store.db")));
    let import = ["session", "import", "--store", &store, "--session", "one"];
    assert!(piped(&mut program(&import), transcript.as_bytes()).ok().starts_with("74 messages imported"));
}

#[test]
fn the_id_of_a_session_stands_for_its_file() {
    let home = Home::new();
    let shop = home.project();
    let path = home.file(".claude/projects/-work-shop/c.jsonl", &claude(&shop, &["one", "two"]), 1_000);
    let other = ".codex/sessions/2026/01/02/rollout-2026-01-02T00-00-00-codex-session.jsonl";
    home.file(other, &codex(Path::new("/elsewhere")), 2_000);
    let of_file = home.run(&["show", text(&path)]).ok();
    for name in ["claude-session", "claude", "clau"] {
        let done = home.run(&["show", name]);
        assert_eq!(
            done.err,
            format!("epitome: claude-session is {} (claude-code)\n", path.display()),
            "{name}"
        );
        assert_eq!(done.ok(), of_file, "{name}");
    }
    // The session is reported once, although the program opens its file again to write the result.
    let out = home.folder.path("out.jsonl");
    let done = home.run(&["compact", "claude-session", "--keep", "50%", "-o", text(&out)]);
    assert_eq!(done.err.matches("claude-session is ").count(), 1, "{}", done.err);
    // Names that are too short or misspelled, and paths.
    for name in ["cla", "claude-sessions", "./claude", "claude/session"] {
        let said = home.run(&["show", name]).fails(4);
        assert!(said.contains("`epitome sessions` lists the ids"), "{said}");
    }
    // A file takes precedence over a session of the same name.
    let here = home.folder.path("idle");
    fs::copy(example("coding-agent.json"), here.join("claude")).unwrap();
    assert!(home.run(&["stats", "claude"]).ok().starts_with("74 messages"));

    let again = claude(&shop, &["three"]).replace("claude-session", "claude-sister");
    home.file(".claude/projects/-work-shop/d.jsonl", &again, 3_000);
    let said = home.run(&["show", "claude-s"]).fails(2);
    assert!(
        said.contains("\"claude-sister\" and \"claude-session\" among them: give more of the id"),
        "{said}"
    );
    // A session that continues in another file has the same id there: the newest file is used.
    home.file(".claude/projects/-work-shop/e.jsonl", &claude(&shop, &["four"]), 4_000);
    assert!(home.run(&["show", "claude-session"]).ok().contains("four"));
    assert!(home.run(&["show", "codex"]).ok().contains("codex asks"));
}

/// Only `--force` replaces an existing file. The program reports each file that it writes.
#[test]
fn a_file_that_exists_is_not_replaced() {
    let folder = Folder::new();
    let (file, out) = (example("coding-agent.json"), folder.path("out"));
    let (file, out) = (text(&file), text(&out));
    let store = format!("sqlite:{}", text(&folder.path("store.db")));
    let session = ["--store", &store, "--session", "one"];
    run(&[&["session", "import", file][..], &session].concat()).ok();
    let export = [&["session", "export"][..], &session].concat();
    let commands = [
        vec!["compact", file, "--keep", "50%"],
        vec!["compact", file, "--keep", "50%", "--json"],
        vec!["compact", file, "--keep", "50%", "--to", "gemini"],
        vec!["convert", file, "--to", "anthropic"],
        vec!["handoff", file],
        vec!["report", file, "--strategy", "window"],
        export.clone(),
        [&export[..], &["--to", "openai-chat"]].concat(),
    ];
    for command in commands {
        fs::write(out, "old").unwrap();
        let named = [&command[..], &["-o", out]].concat();
        let said = done(&mut program(&named)).fails(2);
        assert_eq!(said, format!("epitome: {out}: this file exists: --force replaces it\n"), "{command:?}");
        assert_eq!(read(Path::new(out)), "old", "{command:?}");

        let forced = done(&mut program(&[&named[..], &["--force"]].concat()));
        assert_eq!(forced.code, 0, "{command:?}: {}", forced.err);
        assert!(
            forced.err.contains(&format!("wrote {out}")) || command == export,
            "{command:?}: {}",
            forced.err
        );
        let written = read(Path::new(out));
        assert_ne!(written, "old", "{command:?}");
        // A file that does not exist is written without `--force`.
        fs::remove_file(out).unwrap();
        assert_eq!(done(&mut program(&named)).code, 0, "{command:?}");
        assert_eq!(read(Path::new(out)).len(), written.len(), "{command:?}");
        // Output to a device needs no `--force`: no file could be lost.
        assert_eq!(done(&mut program(&[&command[..], &["-o", "/dev/null"]].concat())).code, 0, "{command:?}");
    }
    // An export never overwrites the store itself, with any options.
    let of_store = store.strip_prefix("sqlite:").unwrap();
    for more in [&["--force"][..], &["--force", "--to", "openai-chat"]] {
        let said = done(&mut program(&[&export[..], &["-o", of_store], more].concat())).fails(2);
        assert!(said.contains("this is a file of the store"), "{said}");
    }
    run(&["session", "verify", "--store", &store, "--session", "one"]).ok();
    // The program follows links to a missing file, which stay links; it refuses a ring of links.
    for (to, name) in [("second", "first"), ("third", "second"), ("ring", "ring")] {
        std::os::unix::fs::symlink(folder.path(to), folder.path(name)).unwrap();
    }
    let compact =
        |to: &str| done(&mut program(&["compact", file, "--keep", "50%", "-o", text(&folder.path(to))]));
    assert_eq!(compact("first").code, 0);
    assert!(folder.path("second").is_symlink() && !folder.path("third").is_symlink());
    assert!(compact("ring").fails(4).contains("too many links"));
    // A file that the shell has opened as standard error needs no `--force`.
    let log = fs::File::create(out).unwrap();
    let mut to_stderr = program(&["handoff", file, "-o", "/dev/stderr"]);
    assert!(to_stderr.stderr(log.try_clone().unwrap()).status().unwrap().success());
    assert!(read(Path::new(out)).len() > 100);
    // The refusal comes before the work: the program does not look for the missing transcript, and asks no model.
    fs::write(out, "old").unwrap();
    for command in
        [&["compact", "missing"][..], &["convert", "missing", "--to", "gemini"], &["handoff", "missing"]]
    {
        let said = done(&mut program(&[command, &["-o", out]].concat())).fails(2);
        assert!(said.contains("this file exists"), "{said}");
    }
    // An export to standard output prints nothing else, under both names of standard output.
    let exported = |name: &str| done(&mut program(&[&export[..], &["-o", name]].concat())).ok();
    assert_eq!(exported("/dev/stdout"), exported("-"));
    // `/dev/stdout` needs no `--force`: it is not a file that could be lost.
    let log = fs::File::create(out).unwrap();
    let mut to_stdout = program(&["handoff", file, "-o", "/dev/stdout"]);
    assert!(to_stdout.stdout(log.try_clone().unwrap()).status().unwrap().success());
    assert!(read(Path::new(out)).len() > 100);
    // Of two programs that write the same file at once, exactly one succeeds.
    for _ in 0..5 {
        fs::remove_file(out).unwrap();
        let start = || {
            let mut one = program(&["compact", file, "--keep", "50%", "-o", out]);
            one.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        };
        let mut codes = [start(), start()].map(|mut one| one.wait().unwrap().code());
        codes.sort_unstable();
        assert_eq!(codes, [Some(0), Some(2)]);
    }
    // Standard error has only the report if the report is JSON.
    fs::remove_file(out).unwrap();
    let done = done(&mut program(&["convert", file, "--to", "anthropic", "--json", "-o", out]));
    assert!(serde_json::from_str::<serde_json::Value>(&done.err).is_ok(), "{}", done.err);
}

#[test]
fn a_goal_that_is_required_and_missed_changes_nothing() {
    let folder = Folder::new();
    let file = example("coding-agent.json");
    let out = folder.path("out.json");
    let compact = |keep: &str| {
        let args = ["compact", text(&file), "--keep", keep, "--require-goal", "-o", text(&out)];
        done(&mut program(&args))
    };
    let said = missed(compact("1%"), "; the goal is missed");
    let why = "360 tokens would be left, and the goal is 135: the protected messages alone have 360 tokens: raise the goal";
    assert!(said.contains(why), "{said}");
    assert!(folder.names().is_empty());
    // With --each, an infeasible conversation misses the goal too.
    let pair =
        folder.file("pair.jsonl", format!("{0}\n{0}\n", json!({"messages": json_of(&file)["messages"]})));
    let args = [
        "compact",
        text(&pair),
        "--each",
        "--goal",
        "100",
        "--window",
        "200",
        "--require-goal",
        "-o",
        text(&out),
    ];
    let infeasible = done(&mut program(&args));
    assert!(infeasible.code == 3 && infeasible.err.contains("conversation 0: "), "{}", infeasible.err);
    assert_eq!(infeasible.out.matches("infeasible, left").count(), 2, "{}", infeasible.out);
    fs::remove_file(pair).unwrap();
    assert!(folder.names().is_empty());
    compact("25%").ok();
    assert!(out.exists());

    let store = format!("sqlite:{}", text(&folder.path("store.db")));
    let session = |command: &str, more: &[&str]| {
        done(&mut program(&[&["session", command, "--store", &store, "--session", "one"], more].concat()))
    };
    session("import", &[text(&file)]).ok();
    let said =
        missed(session("compact", &["--keep", "1%", "--require-goal", "--json"]), "\"goal_missed\": true");
    assert!(said.contains("session \"one\": 360 tokens"), "{said}");
    assert!(session("show", &["--json"]).json().as_array().unwrap().len() == 74);
    session("compact", &["--keep", "25%", "--require-goal"]).ok();
    assert!(session("show", &["--json"]).json().as_array().unwrap().len() < 74);
}

/// The error message of a run whose report shows a required goal as missed.
fn missed(run: Done, reported: &str) -> String {
    assert!(run.code == 6 && run.out.contains(reported), "{} {} {}", run.code, run.out, run.err);
    run.err
}

#[test]
fn settings_stand_in_for_options_and_come_after_the_environment() {
    let home = Home::new();
    let folder = &home.folder;
    let config = folder.path(".config/epitome/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    let with = |args: &[&str], variables: &[(&str, &str)]| {
        let mut command = home.program(args);
        command.env_remove("EPITOME_CONFIG").current_dir(folder.path("")).envs(variables.iter().copied());
        done(&mut command)
    };
    let import = |session: &str, variables: &[(&str, &str)]| {
        let file = example("coding-agent.json");
        with(&["session", "import", text(&file), "--session", session], variables)
    };
    // Without an option, a variable or a setting there is no store.
    assert!(import("one", &[]).fails(2).contains("--store <URL>"));
    fs::write(&config, "store = \"sqlite:~/settings.db\"\n").unwrap();
    import("one", &[]).ok();
    // A shell expands no `~` after the colon, so the program does, wherever a store is named.
    for (args, variables) in [
        (&["session", "list", "--store", "sqlite:~/settings.db"][..], &[][..]),
        (&["session", "list"], &[("EPITOME_STORE", "sqlite:~/settings.db")]),
        (&["search", "webhooks", "--store", "sqlite:~/settings.db"], &[]),
        (&["session", "copy", "--session", "one", "--to", "jsonl:~/copied"], &[]),
    ] {
        with(args, variables).ok();
    }
    assert!(folder.path("copied/one.jsonl").exists());
    let of_environment = format!("sqlite:{}", text(&folder.path("environment.db")));
    import("two", &[("EPITOME_STORE", &of_environment)]).ok();
    let of_option = format!("sqlite:{}", text(&folder.path("option.db")));
    let file = example("coding-agent.json");
    let args = ["session", "import", text(&file), "--session", "three", "--store", &of_option];
    with(&args, &[("EPITOME_STORE", &of_environment)]).ok();
    for (url, session) in [("settings", "one"), ("environment", "two"), ("option", "three")] {
        let url = format!("sqlite:{}", text(&folder.path(&format!("{url}.db"))));
        let rows = run(&["session", "list", "--store", &url, "--json"]).json();
        assert_eq!((rows[0]["session"].as_str(), rows[1].is_null()), (Some(session), true));
    }
    // The session id can come from the environment too: then the command needs no options.
    let shown = with(&["session", "show"], &[("EPITOME_SESSION", "one")]).ok();
    assert_eq!(shown, with(&["session", "show", "--session", "one"], &[]).ok());
    // A search covers the agents' sessions in the home folder, unless an option names a store.
    assert!(
        with(&["search", "queue"], &[("EPITOME_STORE", &of_environment)]).fails(1).contains("no sessions")
    );

    // A deletion requires the session id on the command line.
    let said = with(&["session", "erase"], &[("EPITOME_SESSION", "one")]).fails(2);
    assert!(said.contains("--session <ID>"), "{said}");
    assert_eq!(with(&["session", "show", "--session", "one"], &[]).ok(), shown);

    let key = private_key(&folder.path("key"));
    fs::write(&config, format!("store = \"sqlite:~/keyed.db\"\nkey-file = {key:?}\ncolor = \"always\"\n"))
        .unwrap();
    import("secret", &[]).ok();
    let said = run(&["session", "list", "--store", &format!("sqlite:{}", text(&folder.path("keyed.db")))]);
    assert!(said.err.contains("encrypted"), "{}", said.err);
    // The key of the settings applies to the store of the settings only. A key in the environment takes precedence.
    with(&["session", "list", "--store", &of_option], &[]).ok();
    let said = with(&["session", "list"], &[("EPITOME_KEY", &"cd".repeat(32))]);
    assert!(said.code != 0 && said.err.contains("key"), "{}", said.err);
    with(&["session", "list"], &[]).ok();
    let compact = ["compact", text(&file), "--keep", "50%"];
    assert!(with(&compact, &[]).ok().contains("\u{1b}["));
    assert!(!with(&[&compact[..], &["--color", "never"]].concat(), &[]).ok().contains("\u{1b}["));

    assert!(!with(&compact, &[("NO_COLOR", "1")]).ok().contains("\u{1b}["));

    // An error in the settings file is reported with the file and the line. Help works all the same.
    fs::write(&config, "store = \"sqlite:a.db\"\nkeyfile = \"key\"\n").unwrap();
    let said = with(&["stats", text(&file)], &[]).fails(2);
    assert!(
        said.starts_with(&format!("epitome: settings file: {}: line 2: unknown field", config.display())),
        "{said}"
    );
    with(&["stats", "--help"], &[]).ok();
    // A hook succeeds with any user settings: exit code 2 would stop a compaction.
    let event = json!({"hook_event_name": "Stop"}).to_string();
    let mut hook = home.program(&["hook"]);
    piped(hook.env_remove("EPITOME_CONFIG"), event.as_bytes()).ok();
    let mut hook = home.program(&["--color", "never", "hook"]);
    piped(hook.env_remove("EPITOME_CONFIG"), event.as_bytes()).ok();
    fs::write(&config, "color = \"postgres://user:hunter2-SECRET-text@host\"\n").unwrap();
    with(&["stats", text(&file)], &[]).fails(2);
    // A home that is no folder, or that belongs to another user, has no settings.
    with(&["stats", text(&file)], &[("HOME", "/dev/null")]).ok();
    with(&["stats", text(&file)], &[("XDG_CONFIG_HOME", text(&file))]).ok();
    let elsewhere = folder.path("none.toml");
    assert!(
        with(&["sessions"], &[("EPITOME_CONFIG", text(&elsewhere))])
            .fails(4)
            .contains("none.toml: No such file")
    );
    with(&["stats", text(&file)], &[("EPITOME_CONFIG", "")]).ok();
    let config_home = folder.path("xdg");
    fs::create_dir_all(config_home.join("epitome")).unwrap();
    fs::write(config_home.join("epitome/config.toml"), "color = \"always\"").unwrap();
    assert!(with(&compact, &[("XDG_CONFIG_HOME", text(&config_home))]).ok().contains("\u{1b}["));
}

fn private_key(path: &Path) -> String {
    fs::write(path, "ab".repeat(32)).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    text(path).to_owned()
}

#[test]
fn shells_and_manuals_know_each_command() {
    let help = run(&["--help"]).ok();
    let (_, list) = help.split_once("Commands:\n").unwrap();
    let commands: Vec<_> = list
        .lines()
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' '))?.split(' ').next())
        .filter(|name| *name != "help")
        .collect();
    assert!(commands.len() > 10 && commands.contains(&"compact"), "{commands:?}");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(&["completions", shell]).ok();
        for name in commands.iter().chain(&["--require-goal", "uncompact"]) {
            let name = if shell == "fish" { name.trim_start_matches("--") } else { name };
            assert!(script.contains(name), "{shell}: {name}");
        }
    }
    let folder = Folder::new();
    let script = folder.file("completions", run(&["completions", "bash"]).ok());
    if let Ok(done) = Command::new("bash").args(["-n", text(&script)]).output() {
        assert!(done.status.success(), "{done:?}");
    }
    fs::remove_file(script).unwrap();
    let said = run(&["man", "--dir", text(&folder.path(""))]);
    assert!(said.err.contains("wrote the manual pages"), "{}", said.err);
    let pages = folder.names();
    for name in &commands {
        assert!(pages.contains(&format!("epitome-{name}.1")), "{name}: {pages:?}");
    }
    assert!(read(&folder.path("epitome.1")).contains("epitome\\-compact(1)"));
    assert!(run(&["man"]).ok().contains("Exit codes: "));
    run(&["man", "--dir", text(&folder.path("a/new/one"))]).ok();
    assert_eq!(run(&["man", "--dir", text(&folder.path("epitome.1/under"))]).code, 4);
}

#[test]
fn a_vacuum_makes_the_file_smaller() {
    let folder = Folder::new();
    let path = folder.path("store.db");
    let url = format!("sqlite:{}", text(&path));
    let session = |command: &str, id: &str, more: &[&str]| {
        run(&[&["session", command, "--store", &url, "--session", id], more].concat())
    };
    let vacuum = |more: &[&str]| run(&[&["session", "vacuum", "--store", &url], more].concat());
    let file = folder.file("in.jsonl", jsonl(&messages(300)));
    for id in ["one", "two", "three"] {
        session("import", id, &[text(&file)]).ok();
    }
    let bytes = || fs::metadata(&path).unwrap().len();
    let (shown, whole) = (session("show", "two", &["--json"]).ok(), bytes());
    session("erase", "one", &[]).ok();
    session("erase", "three", &[]).ok();
    assert_eq!(bytes(), whole);
    let said = vacuum(&[]).ok();
    assert!(bytes() < whole / 2, "{} of {whole}", bytes());
    assert!(said.ends_with(" bytes now\n") && !said.contains("reads it"), "{said}");
    assert_eq!(session("show", "two", &["--json"]).ok(), shown);
    session("verify", "two", &[]).ok();
    session("compact", "two", &["--keep", "10%"]).ok();
    session("prune", "two", &["--all"]).ok();
    let before = bytes();
    let said = vacuum(&["--json"]).json();
    let sizes = (said["bytes_before"].as_u64(), said["bytes_after"].as_u64(), &said["waits_for_readers"]);
    assert_eq!(sizes, (Some(before), Some(bytes()), &json!(false)));
    assert!(bytes() < before, "{} of {before}", bytes());
    session("verify", "two", &[]).ok();

    let lines = format!("jsonl:{}", text(&folder.path("lines")));
    run(&["session", "import", text(&file), "--store", &lines, "--session", "one"]).ok();
    let said = run(&["session", "vacuum", "--store", &lines]).fails(2);
    assert!(said.contains("only the file of a sqlite: store"), "{said}");
    assert!(
        run(&["session", "vacuum", "--store", "sqlite:none.db"]).fails(2).contains("there is no none.db")
    );
}

#[test]
fn errors_of_the_command_line_begin_as_all_others() {
    for args in [&["shrink"][..], &["compact", "--keep", "x"], &["session", "list"]] {
        let said = done(&mut program(args)).fails(2);
        assert!(said.starts_with("epitome: ") && !said.contains("error: "), "{said}");
    }
    let version = run(&["--version"]).ok();
    let (version, commit) =
        version.trim().strip_prefix("epitome ").unwrap().split_once(' ').unwrap_or(("", ""));
    let is_hash = |commit: &str| commit.len() == 10 && commit.chars().all(|c| c.is_ascii_hexdigit());
    if !commit.is_empty() {
        assert!(is_hash(commit.trim_matches(['(', ')'])), "{commit}");
        assert_eq!(version, env!("CARGO_PKG_VERSION"));
    }
}
