//! Texts that an attacker has changed or moved, with access to the files and with right checksums.

use std::fs;

use epitome_std::history::{HistoryStore, JsonlOptions, JsonlStore};
use sha2::{Digest, Sha256};

use super::{Corrupt, SessionId, block_on, eventful, fails, key, load, session};

/// The data of the lines of a file, and its id.
fn lines(file: &[u8]) -> (Vec<String>, [u8; 16]) {
    let lines: Vec<String> = String::from_utf8(file.to_vec()).unwrap().lines().map(str::to_owned).collect();
    let data =
        |line: &String| line.split_once(r#","data":"#).unwrap().1.strip_suffix('}').unwrap().to_owned();
    let first: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
    let id = first["data"]["session"]["file"].as_str().unwrap();
    (lines.iter().map(data).collect(), *uuid::Uuid::parse_str(id).unwrap().as_bytes())
}

/// A file of lines with this data, and with the right checksums.
fn file(lines: &[String], id: [u8; 16]) -> Vec<u8> {
    let mut file = Vec::new();
    for (at, data) in lines.iter().enumerate() {
        let mut hash = Sha256::new();
        hash.update(if at == 0 { [0; 16] } else { id });
        hash.update((file.len() as u64).to_le_bytes());
        hash.update(data);
        let sum: String = hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        file.extend(format!("{{\"sum\":\"{sum}\",\"len\":{},\"data\":{data}}}\n", data.len()).into_bytes());
    }
    file
}

/// Forgeries that are possible with the lines of a file and with `other`, another file of the same session.
fn forgeries(whole: &[String], other: &[String]) -> Vec<Vec<String>> {
    let mut forged = Vec::new();
    for at in 1..whole.len() {
        let mut change = |change: &dyn Fn(&mut Vec<String>)| {
            let mut lines = whole.to_vec();
            change(&mut lines);
            forged.push(lines);
        };
        // A digit of the nonce, of the text and of the tag.
        for place in [12, whole[at].len() / 2, whole[at].len() - 4] {
            let digit = if whole[at].as_bytes()[place] == b'A' { "B" } else { "A" };
            change(&|lines| lines[at].replace_range(place..=place, digit));
        }
        change(&|lines| lines[at].replace_range(12..16, ""));
        change(&|lines| lines[at].clone_from(&other[at]));
        change(&|lines| lines[at] = r#"{"uncompact":{"revision":6,"made":1}}"#.to_owned());
        // Without its last line, the file has an earlier valid state.
        change(&|lines| drop(lines.remove(at.min(whole.len() - 2))));
        for to in (1..whole.len()).filter(|to| *to != at) {
            change(&|lines| lines.swap(at, to));
        }
    }
    forged
}

#[test]
fn a_line_that_was_changed_or_moved_is_corrupt_whatever_its_checksum() {
    let folder = tempfile::tempdir().unwrap();
    let open = || JsonlStore::open_encrypted(folder.path(), JsonlOptions::default(), key(1)).unwrap();
    let path = folder.path().join("s.jsonl");
    let write = || {
        eventful(&open());
        fs::read(&path).unwrap()
    };
    let written = write();
    let (whole, id) = lines(&written);
    assert!(file(&whole, id) == written, "as the store writes it");
    let before = load(&open());
    assert!(block_on(open().delete(&session())).unwrap());
    let (other, other_id) = lines(&write());
    assert_ne!(id, other_id);

    let forged = forgeries(&whole, &other);
    assert!(forged.len() > 150, "{}", forged.len());
    for lines in forged {
        fs::write(&path, file(&lines, id)).unwrap();
        fails(block_on(open().load(&session())), Corrupt);
    }
    fs::write(&path, &written).unwrap();
    assert_eq!(load(&open()), before);

    // Under another name no line can be decrypted.
    let renamed: Vec<String> = whole.iter().map(|line| line.replace(r#""id":"s""#, r#""id":"t""#)).collect();
    fs::write(folder.path().join("t.jsonl"), file(&renamed, id)).unwrap();
    let store = JsonlStore::open_encrypted(folder.path(), JsonlOptions::default(), key(1));
    // Either the opening or the load fails. This depends on the file that is checked first.
    assert!(store.is_err() || block_on(store.unwrap().load(&SessionId::new("t"))).is_err());
}

#[cfg(feature = "sqlite")]
mod rows {
    use epitome_std::history::{Append, AppendToken};
    use rusqlite::Connection;

    use super::super::{Seq, append, commit, open_store_with_key, record, summarized, user};
    use super::{Corrupt, SessionId, block_on, eventful, fails, key, load, session};

    const CLEAR: &str =
        r#"{"v":1,"role":"user","parts":[{"text":"x"}],"attr":{"source":"caller","authority":"user"}}"#;

    /// Forgeries of texts. Session 1 has seen every operation; session 2 is another one.
    const FORGERIES: &[&str] = &[
        "UPDATE bodies SET body = (SELECT body FROM bodies b WHERE b.seq = 5 AND b.session = 1)
            WHERE session = 1 AND seq = 4",
        "UPDATE bodies SET body = (SELECT body FROM bodies b WHERE b.seq = 3 AND b.session = 2)
            WHERE session = 1 AND seq = 3",
        "UPDATE bodies SET body = substr(body, 1, length(body) - 4) WHERE seq = 3",
        "UPDATE bodies SET body = substr(body, 5) WHERE seq = 3",
        "UPDATE bodies SET body = '' WHERE seq = 3",
        "UPDATE bodies SET body = ?1 WHERE seq = 3",
        "UPDATE edits SET stand_ins = (SELECT body FROM bodies WHERE session = 1 AND seq = 3)",
        "UPDATE edits SET stand_ins = '[]'",
        "UPDATE summaries SET body = (SELECT body FROM bodies WHERE session = 1 AND seq = 3)",
        "UPDATE summaries SET body = (SELECT body FROM summaries s WHERE s.session = 2) WHERE session = 1",
        "UPDATE records SET body = (SELECT body FROM records r WHERE r.session = 1 AND r.revision = 3)
            WHERE session = 1 AND revision = 1",
        "UPDATE records SET body = (SELECT body FROM records r WHERE r.session = 2) WHERE session = 1 AND revision = 1",
        "UPDATE unanswered SET id = (SELECT u.id FROM unanswered u WHERE u.session = 2) WHERE session = 1",
        "UPDATE unanswered SET id = CAST('a' AS BLOB)",
    ];

    #[test]
    fn a_text_that_was_changed_or_moved_is_corrupt() {
        for forgery in FORGERIES {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("file.db");
            let store = open_store_with_key(&format!("sqlite:{}", path.display()), key(1)).unwrap();
            eventful(&*store);
            let id = SessionId::new("t");
            let entries: Vec<_> = (0..7).map(user).collect();
            block_on(store.append(&id, &Append::new(&AppendToken::new("t"), Seq(0), &entries))).unwrap();
            let mut hiding = summarized(record(0, 7, &[(0, 0)]), &[&[(0, 0)]]);
            hiding.unanswered = vec![crate::support::unanswered("b", 0, 1)];
            block_on(store.commit(&id, &hiding)).unwrap();
            let mut hiding = record(6, 7, &[(4, 4)]);
            hiding.unanswered = vec![crate::support::unanswered("c", 4, 1)];
            commit(&*store, &hiding).unwrap();
            let read = || {
                block_on(async {
                    store.load(&session()).await?;
                    store.log(&session(), Seq(0)..Seq(99), 99).await?;
                    store.records(&session(), None, 99).await
                })
            };
            read().unwrap();
            let connection = Connection::open(&path).unwrap();
            let parameters: &[&str] = if forgery.contains("?1") { &[CLEAR] } else { &[] };
            let changed = connection.execute(forgery, rusqlite::params_from_iter(parameters)).unwrap();
            assert!(changed > 0, "{forgery}");
            fails(read(), Corrupt);
        }
    }

    #[test]
    fn a_changed_digit_of_a_text_is_corrupt_wherever_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.db");
        let store = open_store_with_key(&format!("sqlite:{}", path.display()), key(1)).unwrap();
        append(&*store, "0", 0, &[user(0)]).unwrap();
        let connection = Connection::open(&path).unwrap();
        let text: String = connection.query_row("SELECT body FROM bodies", [], |row| row.get(0)).unwrap();
        let write = |text: &str| connection.execute("UPDATE bodies SET body = ?1", [text]).unwrap();
        for at in 0..text.len() {
            let mut changed = text.clone();
            changed.replace_range(at..=at, if text.as_bytes()[at] == b'A' { "B" } else { "A" });
            write(&changed);
            fails(block_on(store.load(&session())), Corrupt);
        }
        write(&text);
        load(&*store);
    }
}
