//! Exports that were changed on purpose: an import refuses them with the number of the line, and stores nothing.

use epitome_std::history::HistoryStore;
use epitome_std::history::StoreErrorKind::{Invalid, NotFound};
use epitome_std::history::stored;
use epitome_std::message::Message;
use futures::executor::block_on;
use sha2::{Digest, Sha256};

use super::{eventful, exported, import, named};
use crate::support::{answer, append, calls, commit, entry, fails, record, summarized, user};

on_every_store! {
    a_forged_export_is_not_believed_and_leaves_nothing,
    an_export_that_contradicts_itself_is_refused_and_leaves_nothing,
}

/// An export with other lines, and the end line that belongs to them.
fn ended(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with(r#"{"end":"#)).collect();
    let body: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let digest = Sha256::digest(body.as_bytes());
    let sum: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let count = lines.len();
    format!("{body}{{\"end\":{{\"lines\":{count},\"sha256\":\"{sum}\"}}}}\n")
}

/// An export with a summary of messages of a user and a tool; the system prompt stands before it.
fn with_a_summary(store: &dyn HistoryStore) -> String {
    let entries =
        [entry(Message::system("Rules."), 0, 1), user(1), calls(2, &["a"]), answer(2, "a"), user(4)];
    append(store, "t", 0, &entries).unwrap();
    commit(store, &summarized(record(0, 5, &[(1, 3)]), &[&[(1, 3)]])).unwrap();
    String::from_utf8(exported(store)).unwrap()
}

/// Computes the ids of the records again: after a change they would be those of other records.
fn with_right_ids(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let Some((before, rest)) = line.split_once(r#""id":""#).filter(|_| line.starts_with(r#"{"commit""#))
        else {
            return format!("{line}\n");
        };
        let (_, rest) = rest.split_at(32);
        let stored = rest.strip_prefix(r#"","record":"#).and_then(|rest| rest.strip_suffix("}}")).unwrap();
        let record = stored::decode_record(stored).unwrap();
        format!("{before}\"id\":\"{}{rest}\n", stored::record_id(&record).unwrap())
    });
    ended(&lines.collect::<String>())
}

fn a_forged_export_is_not_believed_and_leaves_nothing(store: &dyn HistoryStore) {
    let file = with_a_summary(store);
    assert_eq!(with_right_ids(&file), file);
    let forged = [
        (r#""hides":[[1,3]]"#, r#""hides":[[0,3]]"#),
        (r#""authority":"retrieved","derived_from""#, r#""authority":"system","derived_from""#),
        (r#""source":"compaction""#, r#""source":"caller""#),
        (
            r#"{"v":1,"role":"assistant","parts":[{"text":"summary"#,
            r#"{"v":1,"role":"system","parts":[{"text":"summary"#,
        ),
        (r#""derived_from":[[1,3]]"#, r#""retention":"pinned","derived_from":[[1,3]]"#),
    ];
    for (honest, claim) in forged {
        assert_eq!(file.matches(honest).count(), 1, "{honest} in {file}");
        let line = 1 + file.lines().position(|line| line.contains(honest)).unwrap();
        let changed = ended(&file.replacen(honest, claim, 1));
        for changed in [&changed, &with_right_ids(&changed)] {
            let error = import(store, "forged", changed.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), Invalid, "{claim}: {error}");
            assert!(error.to_string().starts_with(&format!("import: line {line} ")), "{claim}: {error}");
            fails(block_on(store.load(&named("forged"))), NotFound);
        }
    }
    import(store, "forged", file.as_bytes()).unwrap();
}

fn an_export_that_contradicts_itself_is_refused_and_leaves_nothing(store: &dyn HistoryStore) {
    eventful(store);
    let file = String::from_utf8(exported(store)).unwrap();
    let revisions = [
        (r#"{"commit":{"revision":1,"#, [0, 2]),
        (r#"{"commit":{"revision":2,"#, [1, 3]),
        (r#"{"commit":{"revision":7,"#, [0, 8]),
        (r#"{"uncompact":{"revision":6,"#, [5, 7]),
    ];
    let revisions = revisions.iter().flat_map(|(honest, others)| {
        let (before, _) = honest.rsplit_once(':').unwrap();
        others.map(|other| (*honest, format!("{before}:{other},")))
    });
    let tokens = [(r#""token":"late""#, r#""token":"first""#.to_owned())];
    let last = file.lines().rfind(|line| line.starts_with(r#"{"commit""#)).unwrap();
    let twice = [(last, format!("{last}\n{last}"))];
    for (honest, claim) in revisions.chain(tokens).chain(twice) {
        assert_eq!(file.matches(honest).count(), 1, "{honest} in {file}");
        let error = import(store, "forged", ended(&file.replacen(honest, &claim, 1)).as_bytes()).unwrap_err();
        assert_eq!(error.kind(), Invalid, "{claim}: {error}");
        assert!(error.to_string().starts_with("import: line "), "{claim}: {error}");
        fails(block_on(store.load(&named("forged"))), NotFound);
    }
}
