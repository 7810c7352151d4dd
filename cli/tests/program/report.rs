//! The report of `compact`, for programs and for people.

use std::io::Read as _;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::samples;
use super::support::*;

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn json_has_the_promised_fields() {
    let report = report(&example("coding-agent.json"), &["--window", "8000"]);
    for name in [
        "messages_before",
        "messages_after",
        "tokens_before",
        "tokens_after",
        "token_basis",
        "groups",
        "stable_prefix_messages",
        "budget",
        "goal_missed",
        "strategies",
        "loss",
        "verdicts",
        "groups_detail",
        "unchanged_reason",
    ] {
        assert!(report.get(name).is_some(), "{name}");
    }
    assert_eq!(keys(&report["groups"]), ["dropped", "elided", "kept", "replaced", "total"]);
    for name in ["window", "reserve", "trigger", "goal", "floor"] {
        assert!(report["budget"][name].is_u64(), "{name}");
    }
    assert_eq!(
        keys(&report["groups_detail"][0]),
        ["first", "kind", "last", "tokens", "tokens_after", "verdict"]
    );
    assert_eq!(report["token_basis"], "estimated");
    assert_eq!(report["strategies"], serde_json::json!(["truncate"]));
    assert_eq!((&report["unchanged_reason"], &report["goal_missed"]), (&Value::Null, &Value::from(false)));
}

#[test]
fn json_adds_up() {
    for args in [&["--window", "8000"][..], &["--keep", "10%"], &["--keep", "100%"], &[]] {
        let report = report(&example("coding-agent.json"), args);
        let details = report["groups_detail"].as_array().unwrap();
        let number = |value: &Value| value.as_u64().unwrap();
        let verdicts: String = details.iter().map(|group| group["verdict"].as_str().unwrap()).collect();
        assert_eq!(report["verdicts"], verdicts.as_str());
        assert_eq!(number(&report["groups"]["total"]), details.len() as u64);
        for (letter, name) in [('K', "kept"), ('D', "dropped"), ('E', "elided"), ('R', "replaced")] {
            assert_eq!(number(&report["groups"][name]), verdicts.matches(letter).count() as u64);
        }
        let sum = |letter: &str| {
            let with = details.iter().filter(|group| letter.contains(group["verdict"].as_str().unwrap()));
            with.map(|group| number(&group["tokens"])).sum::<u64>()
        };
        assert_eq!(
            (sum("KD"), sum("K")),
            (number(&report["tokens_before"]), number(&report["tokens_after"]))
        );
        // No group lies inside another group here: the groups follow each other without a gap.
        let mut next = 0;
        for group in details {
            assert_eq!(number(&group["first"]), next);
            next = number(&group["last"]) + 1;
        }
        assert_eq!(next, number(&report["messages_before"]));
        let stable = verdicts.chars().take_while(|letter| *letter == 'K').count();
        let stable = details.get(stable).map_or(next, |group| number(&group["first"]));
        assert_eq!(number(&report["stable_prefix_messages"]), stable);
    }
}

#[test]
fn exact_counts_say_so() {
    let file = example("coding-agent.json");
    for name in ["o200k_base", "cl100k_base"] {
        let report = report(&file, &["--tokenizer", name]);
        assert_eq!(
            (report["token_basis"].as_str(), report["tokenizer"].as_str()),
            (Some("counted"), Some(name))
        );
        assert!(
            run(&["compact", text(&file), "--tokenizer", name])
                .ok()
                .contains(&format!("(counted by {name})"))
        );
    }
}

#[test]
fn people_read_what_was_what_is_and_why() {
    let file = example("coding-agent.json");
    let said = run(&["compact", text(&file), "--keep", "50%"]).ok();
    let expected = "\
was       74 messages, 13,593 tokens (estimated by estimate-v2); 37 groups in 9 turns
budget    window 128,000 (default), reserve 8,192 (default), compact now, goal 6,796, floor 360 (in tokens)
strategy  truncate
now       55 messages, 5,503 tokens, 40 % of what it was
stable    the first 2 messages, 149 tokens, as before: a prompt cache keeps them
removed   1 assistant (260 tokens), 6 calls with results (7,830 tokens)

groups                     kept     tokens  dropped     tokens
instructions                  1         79        0          0
user                          9        466        0          0
assistant                     8      1,124        1        260
calls with results           12      3,834        6      7,830
all                          30      5,503        7      8,090

##...#....###########################
# kept  . dropped; a cell is a group
";
    assert_eq!(said.trim_end(), expected.trim_end(), "{said}");
    let unchanged = run(&["compact", text(&file)]).ok();
    assert!(
        unchanged.contains("\nunchanged 13,593 tokens are not above the trigger of 100,000\n"),
        "{unchanged}"
    );
    assert!(unchanged.contains("trigger 100,000 (default), goal 50,000 (default)"), "{unchanged}");
    let missed = run(&["compact", text(&fixture("bom.json")), "--keep", "50%"]).ok();
    assert!(
        missed.contains("protected: instructions, ")
            && missed.contains("; the goal is missed: it is under the floor\n")
    );
    let alone = run(&["compact", text(&file), "--keep", "50%", "--strategy", "ledger:share=20"]).ok();
    assert!(alone.contains("a ledger hides nothing by itself: put a strategy before it"), "{alone}");
    // A conversation that ends in a turn of several steps.
    let mut working = json_of(&file);
    working["messages"].as_array_mut().unwrap().truncate(68);
    let folder = Folder::new();
    let working = folder.file("working.json", working.to_string());
    let pressed = run(&["compact", text(&working), "--window", "600"]).ok();
    assert!(
        pressed.contains("floor 803, or 252 where the window is too small for it (in tokens)"),
        "{pressed}"
    );
    let repaired = run(&["compact", text(&fixture("call-without-result.json")), "--repair"]).ok();
    assert!(repaired.contains(
        "\nrepaired  0 results left out, 0 moved, 0 calls answered as aborted, 1 call answered as not recorded\nnow       6 messages"
    ));
}

#[test]
fn the_picture_of_a_long_conversation_has_one_line() {
    let folder = Folder::new();
    let file = folder.file("long.jsonl", jsonl(&messages(300)));
    let said = run(&["compact", text(&file), "--keep", "50%"]).ok();
    let picture: Vec<&str> = said.trim_end().lines().rev().take(2).collect();
    assert_eq!(picture[0], "# kept  . dropped  + some of each; a cell is up to 13 groups");
    assert_eq!(picture[1].chars().count(), 72);
    assert!(
        picture[1].starts_with('+') && picture[1].chars().all(|cell| "#.+".contains(cell)),
        "{}",
        picture[1]
    );
}

/// Output of the program on a terminal, by means of `script`; `None` if `script` is not installed.
fn on_a_terminal(args: &str, no_colour: &str) -> Option<String> {
    let mut child = Command::new("script");
    child.args(["-qec", &format!("{} {args}", env!("CARGO_BIN_EXE_epitome")), "/dev/null"]);
    child.env("TERM", "xterm").env("NO_COLOR", no_colour).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = child.spawn().ok()?;
    let mut said = String::new();
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(child.wait().unwrap().success());
    Some(said)
}

#[test]
fn colour_only_where_it_is_wanted() {
    let args = format!("compact {} --keep 50%", text(&example("coding-agent.json")));
    let piped = run(&args.split(' ').collect::<Vec<_>>()).ok();
    assert!(!piped.contains('\u{1b}') && piped.contains("##...#"));
    let Some(colour) = on_a_terminal(&args, "") else {
        println!("skipped: there is no program `script`");
        return;
    };
    assert!(colour.contains("\u{1b}[32m") && !colour.contains("##"), "{colour}");
    let plain = on_a_terminal(&args, "1").unwrap();
    assert!(!plain.contains('\u{1b}') && plain.contains("##...#"), "{plain}");
}

/// The table of groups and the line of losses agree on the losses of each kind, and on the tokens that shortening
/// removes.
#[test]
fn what_is_lost_is_what_the_table_says() {
    let folder = Folder::new();
    let mut stray = messages(6);
    stray.insert(
        1,
        serde_json::json!({"role": "tool", "tool_call_id": "nobody's", "content": "orphan ".repeat(9)}),
    );
    let mut all = samples::all(3);
    all.push(samples::Sample { from: "auto", name: "stray.jsonl".into(), text: jsonl(&stray) });
    let mut kinds = std::collections::BTreeSet::new();
    for sample in &all {
        let file = folder.file(&sample.name, &sample.text);
        for strategy in samples::strategies() {
            let args = ["compact", text(&file), "--from", sample.from, "--json", "--keep", "40%"];
            let done = run(&[&args[..], &["--strategy", strategy.as_str()]].concat());
            // A format that cannot hold a summary refuses one.
            if done.code == 2 {
                continue;
            }
            let report = done.json();
            let list = |name: &str| report[name].as_array().unwrap().clone();
            let number = |value: &Value| value.as_u64().unwrap();
            let (details, lost) = (list("groups_detail"), list("loss"));
            let what = format!("{} {strategy}: {lost:?}", sample.name);
            let groups = ["system", "user", "assistant", "exchange", "hosted", "summary", "orphan"];
            for kind in groups {
                let gone = |group: &&Value| {
                    group["kind"] == kind && (group["verdict"] == "D" || group["verdict"] == "R")
                };
                let gone: Vec<&Value> = details.iter().filter(gone).collect();
                let rows: Vec<&Value> = lost.iter().filter(|row| row["kind"] == kind).collect();
                let count: u64 = rows.iter().map(|row| number(&row["count"])).sum();
                assert_eq!(count, gone.len() as u64, "{kind} of {what}");
                let sum = |rows: &[&Value]| rows.iter().map(|row| number(&row["tokens"])).sum::<u64>();
                assert_eq!(sum(&rows), sum(&gone), "{kind} of {what}");
                kinds.extend((count > 0).then_some(kind));
            }
            let shortened = details.iter().filter(|group| group["verdict"] == "E");
            let less: u64 =
                shortened.map(|group| number(&group["tokens"]) - number(&group["tokens_after"])).sum();
            let parts = lost.iter().filter(|row| !groups.iter().any(|kind| row["kind"] == *kind));
            assert_eq!(parts.map(|row| number(&row["tokens"])).sum::<u64>(), less, "parts of {what}");
        }
    }
    assert!(["user", "assistant", "exchange", "orphan"].iter().all(|kind| kinds.contains(kind)), "{kinds:?}");
}
