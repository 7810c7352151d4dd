//! The program on a terminal: colors, the pager, and no wait for a transcript from the keyboard.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use super::support::*;

/// Output of the program on a terminal, by means of `script`; `None` if `script` is not installed.
fn on_a_terminal(args: &str, variables: &[(&str, &str)]) -> Option<String> {
    let mut child = Command::new("script");
    child.args(["-qec", &format!("{} {args}", env!("CARGO_BIN_EXE_epitome")), "/dev/null"]);
    child
        .env("TERM", "xterm")
        .env("EPITOME_CONFIG", "")
        .env_remove("NO_COLOR")
        .env_remove("PAGER")
        .env_remove("LESS");
    let child = child.envs(variables.iter().copied()).stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let Ok(mut child) = child else {
        eprintln!("skipped: there is no program `script`, which makes a terminal");
        return None;
    };
    let mut said = String::new();
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    child.wait().unwrap();
    Some(said.replace("\r\n", "\n"))
}

#[test]
fn colors_are_where_they_are_wanted() {
    let file = example("coding-agent.json");
    let compact = format!("compact {} --keep 50%", text(&file));
    let with = |more: &str| format!("{compact} {more}");
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let colored = |said: &str| said.contains("\u{1b}[32m");
    assert!(colored(&done(&mut program(&words(&with("--color always")))).ok()));
    assert!(!colored(&done(&mut program(&words(&compact))).ok()));
    let Some(said) = on_a_terminal(&compact, &[]) else { return };
    assert!(colored(&said), "{said}");
    for (more, variables) in
        [("--color never", &[][..]), ("", &[("NO_COLOR", "1")]), ("", &[("TERM", "dumb")])]
    {
        let said = on_a_terminal(&with(more), variables).unwrap();
        assert!(!said.contains('\u{1b}') && said.contains("# kept"), "{more} {variables:?}: {said}");
    }
    let forced = on_a_terminal(&with("--color always"), &[("NO_COLOR", "1"), ("TERM", "dumb")]).unwrap();
    assert!(colored(&forced), "{forced}");
}

#[test]
fn long_texts_have_a_pager_on_a_terminal() {
    let file = example("coding-agent.json");
    let show = format!("show {}", text(&file));
    let plain = done(&mut program(&["show", text(&file)])).ok();
    let marked: String = plain.lines().map(|line| format!("paged {line}\n")).collect();
    let pager = [("PAGER", "sed s/^/paged\\x20/")];
    let Some(said) = on_a_terminal(&show, &pager) else { return };
    assert_eq!(said, marked);
    for (more, variables) in [
        (" --no-pager", &pager[..]),
        ("", &[("PAGER", "cat")]),
        ("", &[("PAGER", "")]),
        ("", &[("PAGER", "no-such-pager-here")]),
        ("", &[pager[0], ("TERM", "dumb")]),
    ] {
        assert_eq!(
            on_a_terminal(&format!("{show}{more}"), variables).unwrap(),
            plain,
            "{more} {variables:?}"
        );
    }
    // A pager that ends early; and a text too short for a pager.
    let said = on_a_terminal(&format!("{show}; echo code $?"), &[("PAGER", "head -n 1")]).unwrap();
    assert_eq!(said.lines().collect::<Vec<_>>(), [plain.lines().next().unwrap(), "code 0"]);
    let stats = on_a_terminal(&format!("stats {}", text(&file)), &pager).unwrap();
    assert!(!stats.contains("paged"), "{stats}");
    // An interrupt goes to the pager, and the program waits for the pager's end. An error has no pager.
    let folder = Folder::new();
    let script = folder.file("pager", "#!/bin/sh\ncat >/dev/null\nkill -INT $PPID\nsleep 0.3\necho seen\n");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).unwrap();
    let said = on_a_terminal(&format!("{show}; echo code $?"), &[("PAGER", text(&script))]).unwrap();
    assert_eq!(said, "seen\ncode 0\n");
    // The output of standard error comes after the pager.
    let secret = format!("sk-ant-api03-{}", "x9".repeat(40));
    let file =
        folder.file("in.json", format!(r#"{{"messages": [{{"role": "user", "content": "{secret}"}}]}}"#));
    let redacted = format!("show --redact {}", text(&file));
    let said = on_a_terminal(&redacted, &[("PAGER", text(&script))]).unwrap();
    assert!(said.starts_with("seen\nepitome: redacted 1 anthropic-key"), "{said}");
    let said = on_a_terminal("show nothing.json; echo code $?", &[("PAGER", text(&script))]).unwrap();
    assert!(said.contains("No such file") && said.ends_with("code 4\n") && !said.contains("seen"), "{said}");
    // The settings take precedence over the variable.
    let folder = Folder::new();
    let config = folder.file("config.toml", "pager = \"sed s/^/settings:/\"");
    let said = on_a_terminal(&show, &[pager[0], ("EPITOME_CONFIG", text(&config))]).unwrap();
    assert!(said.lines().all(|line| line.starts_with("settings:")), "{said}");
}

#[test]
fn without_a_file_on_a_terminal_nothing_waits() {
    for command in ["stats", "report", "eval"] {
        let Some(said) = on_a_terminal(command, &[]) else { return };
        assert!(said.contains("epitome: no FILE is given, and standard input is a terminal"), "{said}");
    }
}
