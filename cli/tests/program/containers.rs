//! `-o` writes the compacted transcript in the container of the input, and changes nothing else.

use serde_json::{Value, json};

use super::support::*;

/// The messages of `whole` that the report's groups keep, in their order.
fn kept(report: &Value, whole: &[Value]) -> Vec<Value> {
    let groups = report["groups_detail"].as_array().unwrap().iter();
    let kept = groups.filter(|group| group["verdict"] == "K").flat_map(|group| {
        group["first"].as_u64().unwrap() as usize..=group["last"].as_u64().unwrap() as usize
    });
    let mut positions: Vec<_> = kept.collect();
    positions.sort_unstable();
    positions.into_iter().map(|at| whole[at].clone()).collect()
}

/// Compacts `content`, a file and then standard input; both give the same text, which is returned with the report.
fn compacted(content: impl AsRef<[u8]>, args: &[&str]) -> (String, Value) {
    let folder = Folder::new();
    let file = folder.file("in", &content);
    let out = folder.path("out");
    let with = |input: &str, output: &str| {
        let mut all = vec!["compact".to_owned(), input.to_owned(), "-o".to_owned(), output.to_owned()];
        all.extend(["--keep", "50%", "--json"].iter().chain(args).map(|arg| (*arg).to_owned()));
        all
    };
    let report = run(&with(text(&file), text(&out))).json();
    let written = read(&out);
    let piped = run_with(&with("-", "-"), content.as_ref());
    assert_eq!((piped.code, &piped.out), (0, &written), "standard input gives something else");
    assert_eq!(
        serde_json::from_str::<Value>(&piped.err).unwrap(),
        report,
        "the report goes to standard error"
    );
    assert!(written.len() < content.as_ref().len(), "nothing was dropped");
    (written, report)
}

#[test]
fn an_array_compact_and_pretty() {
    let all = messages(8);
    for content in [
        serde_json::to_string(&all).unwrap(),
        serde_json::to_string_pretty(&all).unwrap(),
        format!("  {}\r\n\r\n", serde_json::to_string_pretty(&all).unwrap().replace('\n', "\r\n")),
    ] {
        let (written, report) = compacted(&content, &[]);
        let left: Vec<Value> = serde_json::from_str(&written).unwrap();
        assert_eq!(left, kept(&report, &all));
        assert_eq!(report["messages_after"], left.len());
        // White space is unchanged too: the output consists of pieces of the input.
        assert_eq!(written.contains("\r\n"), content.contains("\r\n"));
        assert_eq!(written.ends_with("\n\r\n"), content.ends_with("\n\r\n"));
        if content.contains('\n') {
            assert!(
                written.lines().all(|line| content.lines().any(|other| other == line)),
                "bytes have changed"
            );
        }
    }
}

#[test]
fn an_object_with_messages_keeps_its_other_fields() {
    let all = messages(8);
    let whole = json!({"model": "m", "temperature": 0.10, "messages": all, "tools": [{"x": [null]}]});
    let content = serde_json::to_string_pretty(&whole).unwrap().replace("0.1", "0.100");
    let (written, report) = compacted(&content, &[]);
    let mut left: Value = serde_json::from_str(&written).unwrap();
    assert_eq!(left["messages"], Value::from(kept(&report, &all)));
    assert_eq!(report["path"], "/messages");
    assert!(written.contains("\"temperature\": 0.100"), "numbers keep their text");
    left["messages"] = Value::from(all);
    assert_eq!(left, whole);
}

#[test]
fn a_conversation_inside_a_larger_document() {
    let all = messages(8);
    let whole = json!({"a/b": [{"run": 1}, {"run": 2, "history": all, "after": [SECRET]}], "z": null});
    let at = "/a~1b/1/history";
    let (written, report) = compacted(serde_json::to_string_pretty(&whole).unwrap(), &["--at", at]);
    let mut left: Value = serde_json::from_str(&written).unwrap();
    assert_eq!(left["a/b"][1]["history"], Value::from(kept(&report, &all)));
    assert_eq!(report["path"], at);
    left["a/b"][1]["history"] = Value::from(all);
    assert_eq!(left, whole);
}

#[test]
fn every_element_of_an_array() {
    let all = messages(8);
    let whole = json!([{"traj": all, "reward": 1.0}, {"traj": messages(1)}, {"traj": all[..6], "x": [[]]}]);
    let content = serde_json::to_string_pretty(&whole).unwrap();
    let (written, reports) = compacted(&content, &["--each", "--at", "/traj"]);
    let mut left: Value = serde_json::from_str(&written).unwrap();
    for (at, report) in reports.as_array().unwrap().iter().enumerate() {
        let before = whole[at]["traj"].as_array().unwrap();
        assert_eq!(report["path"], format!("/{at}/traj"));
        assert_eq!(left[at]["traj"], Value::from(kept(report, before)));
        left[at]["traj"] = whole[at]["traj"].clone();
    }
    assert_eq!(left, whole);
}

#[test]
fn lines_of_messages() {
    let all = messages(8);
    for (content, ending) in [
        (jsonl(&all), "\n"),
        (jsonl(&all).trim_end().to_owned(), ""),
        (jsonl(&all).replace('\n', "\r\n"), "\r\n"),
        (jsonl(&all).replace('\n', "\r\n\r\n"), "\r\n\r\n"),
    ] {
        let (written, report) = compacted(&content, &[]);
        let lines = written.lines().filter(|line| !line.is_empty());
        let left: Vec<Value> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(left, kept(&report, &all));
        assert!(written.lines().all(|line| content.lines().any(|other| other == line)), "bytes have changed");
        assert_eq!(written.contains("\r\n"), content.contains("\r\n"), "line ends are as they were");
        assert!(written.ends_with(&format!("}}{ending}")), "the end is as it was");
    }
}

#[test]
fn lines_of_conversations() {
    let all = messages(8);
    let whole: Vec<Value> = (0..3).map(|id| json!({"id": id, "messages": all, "after": SECRET})).collect();
    for content in [jsonl(&whole), jsonl(&whole).replace('\n', "\r\n"), jsonl(&whole).trim_end().to_owned()] {
        let (written, reports) = compacted(&content, &["--each"]);
        assert_eq!(written.lines().count(), 3);
        assert_eq!(written.matches("\r\n").count(), content.matches("\r\n").count());
        assert_eq!(written.ends_with('\n'), content.ends_with('\n'));
        for (at, line) in written.lines().enumerate() {
            let mut left: Value = serde_json::from_str(line).unwrap();
            assert_eq!(reports[at]["conversation"], at);
            assert_eq!(left["messages"], Value::from(kept(&reports[at], &all)));
            left["messages"] = Value::from(all.clone());
            assert_eq!(left, whole[at]);
        }
    }
}

#[test]
fn a_byte_order_mark_stays() {
    let all = messages(8);
    for content in
        [format!("\u{FEFF}{}", serde_json::to_string(&all).unwrap()), format!("\u{FEFF}{}", jsonl(&all))]
    {
        let (written, _) = compacted(&content, &[]);
        assert_eq!(written.matches('\u{FEFF}').count(), 1);
        assert!(written.starts_with('\u{FEFF}'));
    }
}

#[test]
fn what_is_not_changed_is_copied_byte_for_byte() {
    let folder = Folder::new();
    let odd = "\u{FEFF}{\"role\" : \"user\",\"content\":\"a\"}\r\n\r\n  {\"role\":\"assistant\",\"content\":\"\\u00e9\"}";
    let files = [
        (fixture("bom.json"), vec![]),
        (example("coding-agent.json"), vec![]),
        (example("support-chat.jsonl"), vec![]),
        (fixture("conversations.jsonl"), vec!["--each"]),
        (fixture("nested.json"), vec!["--at", "/history"]),
        (folder.file("odd.jsonl", odd), vec![]),
        (
            folder.file("one.jsonl", "{\"role\": \"user\", \"content\": 1.0e0}".replace("1.0e0", "\"x\"")),
            vec![],
        ),
    ];
    for (file, args) in files {
        for more in [&[][..], &["--repair"], &["--window", "1000000", "--json"], &["--keep", "100%"]] {
            let out = folder.path("out");
            let all = ["compact", text(&file), "-o", text(&out)].into_iter();
            run(&all.chain(args.iter().copied()).chain(more.iter().copied()).collect::<Vec<_>>()).ok();
            assert_eq!(read(&out), read(&file), "{} {more:?}", file.display());
        }
    }
}

#[test]
fn dry_run_writes_nothing() {
    let folder = Folder::new();
    let file = folder.file("in.json", serde_json::to_string(&messages(8)).unwrap());
    let out = folder.file("out.json", "old");
    let said = run(&["compact", text(&file), "--keep", "50%", "-o", text(&out), "--dry-run"]).ok();
    assert!(said.contains("dropped"), "{said}");
    assert_eq!(read(&out), "old");
    assert_eq!(folder.names(), ["in.json", "out.json"]);
    let said = run(&["compact", text(&file), "--keep", "50%", "-o", "-", "--dry-run"]).ok();
    assert!(said.contains("dropped"), "a dry run reports on standard output: {said}");
}
