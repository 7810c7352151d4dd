//! Window, reserve, trigger, goal and keep. The goal is met or reported as missed, with exit code 3.

use serde_json::Value;

use super::support::*;

fn figures(args: &[&str]) -> [u64; 4] {
    let report = report(&example("coding-agent.json"), args);
    ["window", "reserve", "trigger", "goal"].map(|name| report["budget"][name].as_u64().unwrap())
}

/// The trigger, as it is written, and the goal.
fn trigger_and_goal(args: &[&str]) -> (Value, u64) {
    let report = report(&example("coding-agent.json"), args);
    (report["budget"]["trigger"].clone(), report["budget"]["goal"].as_u64().unwrap())
}

#[test]
fn shares_are_of_the_window_less_the_reserve() {
    assert_eq!(figures(&[]), [128_000, 8_192, 100_000, 50_000]);
    assert_eq!(figures(&["--window", "10_000", "--reserve", "2000"]), [10_000, 2_000, 7_800, 3_900]);
    assert_eq!(
        figures(&["--window", "10000", "--reserve", "2000", "--trigger", "50%", "--goal", "25%"]),
        [10_000, 2_000, 4_000, 2_000]
    );
    assert_eq!(figures(&["--trigger", "9000"]), [128_000, 8_192, 9_000, 4_500]);
    let own = report(&example("coding-agent.json"), &["--dry-run"])["tokens_before"].as_u64().unwrap();
    assert_eq!(figures(&["--keep", "25%", "--trigger", "9000"])[2..], [9_000, own / 4]);
}

#[test]
fn a_goal_without_a_trigger_means_now_which_is_null() {
    let own = report(&example("coding-agent.json"), &["--dry-run"])["tokens_before"].as_u64().unwrap();
    let window =
        |args: &[&'static str]| trigger_and_goal(&[&["--window", "20000", "--reserve", "0"], args].concat());
    assert_eq!(window(&["--goal", "10%"]), (Value::Null, 2_000));
    // A goal as large as the window is accepted, and is lowered by one token.
    assert_eq!(window(&["--goal", "100%"]), (Value::Null, 19_999));
    assert_eq!(window(&["--goal", "20000"]), (Value::Null, 19_999));
    assert_eq!(trigger_and_goal(&["--keep", "25%"]), (Value::Null, own / 4));
    // The window limits the share that can be kept.
    let keep = ["--keep", "100%", "--window", "2000", "--reserve", "0"];
    assert_eq!(trigger_and_goal(&keep), (Value::Null, 1_999));
}

#[test]
fn the_trigger_decides_whether_anything_happens() {
    let file = example("coding-agent.json");
    let own = report(&file, &["--dry-run"])["tokens_before"].as_u64().unwrap();
    let reason =
        |trigger: u64| report(&file, &["--trigger", &trigger.to_string()])["unchanged_reason"].clone();
    assert_eq!(reason(own), "not_due");
    assert_eq!(reason(own - 1), Value::Null);
}

#[test]
fn the_goal_is_met_wherever_the_floor_allows() {
    let folder = Folder::new();
    let lines = folder.file("generated.jsonl", jsonl(&messages(40)));
    let files =
        [example("coding-agent.json"), example("support-chat.jsonl"), fixture("reused-ids.json"), lines];
    let (mut met, mut missed) = (0, 0);
    for file in &files {
        for keep in ["0%", "5%", "10%", "25%", "50%", "75%", "90%", "100%"] {
            for strategy in ["truncate", "window", "truncate,window", "window,truncate:recent=0"] {
                let report = report(file, &["--keep", keep, "--strategy", strategy]);
                let number = |name: &str| report[name].as_u64().unwrap();
                let (goal, floor) =
                    (report["budget"]["goal"].as_u64().unwrap(), report["budget"]["floor"].as_u64().unwrap());
                let is_missed = number("tokens_after") > goal;
                assert_eq!(report["goal_missed"], is_missed, "{file:?} {keep} {strategy}");
                assert!(!is_missed || floor > goal, "{file:?} {keep} {strategy}: {report:?}");
                match is_missed {
                    true => missed += 1,
                    false => met += 1,
                }
            }
        }
    }
    assert!(met >= 60 && missed >= 10, "{met} met, {missed} missed");
}

#[test]
fn what_is_written_has_the_size_that_was_reported() {
    let folder = Folder::new();
    let mut all = messages(20);
    // Results without calls, and calls without results.
    let orphan = |at: usize| serde_json::json!({"role": "tool", "tool_call_id": format!("none_{at}"), "content": SECRET});
    (0..6).for_each(|at| all.insert(5 + at * 10, orphan(at)));
    all.remove(33);
    let odd = folder.file("odd.json", serde_json::to_string(&all).unwrap());
    let out = folder.path("out");
    for file in [
        &odd,
        &example("coding-agent.json"),
        &example("support-chat.jsonl"),
        &fixture("result-without-call.json"),
    ] {
        for args in [
            &["--keep", "50%"][..],
            &["--keep", "95%"],
            &["--keep", "30%", "--strategy", "window"],
            &["--window", "900"],
            &[],
        ] {
            for repair in [&[][..], &["--repair"]] {
                let first = report(file, &[args, repair, &["-o", text(&out)]].concat());
                let second = report(&out, &[] as &[&str]);
                for (after, before) in
                    [("tokens_after", "tokens_before"), ("messages_after", "messages_before")]
                {
                    assert_eq!(first[after], second[before], "{file:?} {args:?} {repair:?}");
                }
                let goal = first["budget"]["goal"].as_u64();
                let missed = first["unchanged_reason"] != "not_due" && first["tokens_after"].as_u64() > goal;
                assert_eq!(first["goal_missed"], missed, "{file:?} {args:?} {repair:?}");
            }
        }
    }
}

#[test]
fn compacting_again_changes_nothing() {
    let folder = Folder::new();
    let (once, twice) = (folder.path("once.json"), folder.path("twice.json"));
    for goal in ["0", "700", "3000", "9000"] {
        run(&["compact", text(&example("coding-agent.json")), "--goal", goal, "-o", text(&once)]).ok();
        let again = report(&once, &["--goal", goal, "-o", text(&twice)]);
        assert!(again["unchanged_reason"].is_string(), "{again}");
        assert_eq!(read(&once), read(&twice));
    }
}

#[test]
fn a_floor_over_the_window_is_infeasible() {
    let folder = Folder::new();
    let out = folder.file("out.json", "old");
    let file = example("coding-agent.json");
    for json in [&[][..], &["--json"]] {
        let args = [&["compact", text(&file), "--window", "300", "--reserve", "50", "-o", text(&out)], json]
            .concat();
        let message = run(&args).fails(3);
        let floor = report(&file, &[] as &[&str])["budget"]["floor_hard"].as_u64().unwrap();
        for part in [
            format!("{} at /messages: ", text(&file)),
            format!("what is protected has {floor} tokens, but a request may have 250"),
            "(window 300, less the reserve of 50)".to_owned(),
            "raise --window, lower --reserve, or shorten the largest of it: message 73 (assistant, 185 tokens), \
             message 0 (system, 79 tokens), message 1 (user, 70 tokens)"
                .to_owned(),
        ] {
            assert!(message.contains(&part), "{part:?} is not in: {message}");
        }
    }
    assert_eq!(read(&out), "old");
    // Exactly the floor is enough.
    report(&file, &["--window", "360", "--reserve", "0"]);
    assert!(run(&["compact", text(&file), "--window", "359", "--reserve", "0"]).code == 3);
}

#[test]
fn of_a_conversation_something_stays() {
    let folder = Folder::new();
    let orphans = serde_json::json!([{"role": "tool", "tool_call_id": "x", "content": SECRET}]).to_string();
    let file = folder.file("orphans.json", &orphans);
    let out = folder.path("out.json");
    let report = report(&file, &["--keep", "1%", "-o", text(&out)]);
    assert_eq!((&report["unchanged_reason"], read(&out)), (&Value::from("nothing_to_drop"), orphans));
}
