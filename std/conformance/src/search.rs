//! Scenarios of searches.

use std::collections::BTreeSet;

use epitome_core::message::Role;
use epitome_core::{Revision, Seq};
use epitome_history::{Append, AppendToken, Entry, LogSearch, SessionId, StoreErrorKind, Timestamp};
use epitome_message::{Message, Part, ToolCall};

use super::support::{Room, commit, edit, edited, entry, prune, record, uncompact};

/// Appends these messages to a session, each as a separate group.
async fn say(room: &Room<'_>, session: &SessionId, time: Option<u64>, said: Vec<Message>) {
    let head = match room.load(session).await {
        Ok(loaded) => loaded.head.0,
        Err(error) => {
            assert_eq!(error.kind(), StoreErrorKind::NotFound);
            0
        }
    };
    let entries: Vec<Entry> = (head..).zip(said).map(|(seq, message)| entry(message, seq, 1)).collect();
    let token = AppendToken::new(format!("said at {head}"));
    room.append(session, &Append::new(&token, Seq(head), &entries).at(time.map(Timestamp))).await.unwrap();
}

async fn users(room: &Room<'_>, texts: &[&str]) {
    let said = texts.iter().map(|text| Message::user(*text)).collect();
    say(room, &room.session(), None, said).await;
}

/// The session names and the numbers of the results, the nearest first.
async fn found(room: &Room<'_>, search: &LogSearch) -> Vec<(String, u64)> {
    let found = room.search(search).await.unwrap();
    for found in found.iter().take(20) {
        let logged = room.log(&found.session, found.logged.seq..Seq(u64::MAX), 1).await.unwrap();
        assert_eq!(found.logged, logged.messages[0]);
    }
    found.iter().map(|found| (room.name_of(&found.session), found.logged.seq.0)).collect()
}

/// The numbers of the results in the main session of the scenario.
async fn numbers(room: &Room<'_>, search: LogSearch) -> Vec<u64> {
    let found = found(room, &search.in_session(room.session())).await;
    assert!(found.iter().all(|(name, _)| name == "s"), "{found:?}");
    found.into_iter().map(|(_, seq)| seq).collect()
}

/// No message.
const NONE: [u64; 0] = [];

fn words(words: &str) -> LogSearch {
    LogSearch::new(words)
}

pub(super) async fn the_nearest_message_is_found_first(room: &Room<'_>) {
    users(room, &["The cat sleeps.", "The test server listens on port 8472.", "Which port?", "The dog."])
        .await;
    assert_eq!(numbers(room, words("port of the test server")).await[0], 1);
    assert_eq!(numbers(room, words("port 8472")).await, [1, 2]);
    assert_eq!(numbers(room, words("port").with_limit(1)).await, [2], "the shorter one says more of it");
    assert_eq!(numbers(room, words("THE")).await.len(), 3);
    assert_eq!(numbers(room, words("\u{39f}\u{3b4}\u{3cc}\u{3c2}")).await, NONE);
}

pub(super) async fn messages_in_any_script_are_found(room: &Room<'_>) {
    let texts = [
        "\u{6771}\u{4eac}\u{90fd}\u{306e}\u{5929}\u{6c17}",
        "Stra\u{df}e 7",
        "\u{421}\u{435}\u{440}\u{432}\u{435}\u{440}",
        "\u{1f600} \u{0} nothing",
    ];
    users(room, &texts).await;
    assert_eq!(numbers(room, words("\u{4eac}\u{90fd}")).await, [0]);
    assert_eq!(numbers(room, words("STRASSE")).await, [1]);
    assert_eq!(numbers(room, words("\u{441}\u{435}\u{440}\u{432}\u{435}\u{440}\u{430}")).await, [2]);
    assert_eq!(numbers(room, words("nothing")).await, [3]);
}

/// Long messages are searched in pieces of 800 bytes. Here the first piece ends within a number.
pub(super) async fn a_part_of_a_word_is_not_found(room: &Room<'_>) {
    let long = format!("{}8472 end", "a ".repeat(399));
    users(room, &[&long, "another"]).await;
    assert_eq!(numbers(room, words("84")).await, NONE);
    assert_eq!(numbers(room, words("8472")).await, [0]);
    assert_eq!(numbers(room, words("84 end")).await, [0]);
}

pub(super) async fn calls_and_results_are_found_and_instructions_are_not(room: &Room<'_>) {
    let call = Part::ToolCall(ToolCall::new("c", "read_file", "{\"path\":\"zebra.rs\"}"));
    let said = vec![
        Message::system("zebra"),
        Message::new(Role::Developer, vec![Part::Text("zebra".into())]),
        Message::new(Role::Assistant, vec![call]),
        Message::tool("c", "a zebra"),
        Message::assistant("The zebra is there."),
    ];
    say(room, &room.session(), None, said).await;
    let mut all = numbers(room, words("zebra")).await;
    all.sort_unstable();
    assert_eq!(all, [2, 3, 4]);
    for (role, seq) in [(Role::Tool, 3), (Role::Assistant, 4)] {
        assert_eq!(numbers(room, words("zebra").of_role(role)).await.first(), Some(&seq));
    }
    assert_eq!(numbers(room, words("zebra").of_role(Role::User)).await, NONE);
    assert_eq!(numbers(room, words("zebra").of_role(Role::Tool)).await, [3]);
    assert_eq!(numbers(room, words("read")).await, [2]);
}

/// A result belongs to the tool of its call, even if other calls have the same id, and even if it is late.
pub(super) async fn a_search_stays_with_its_tool(room: &Room<'_>) {
    let call = |tool: &str, id: &str| Part::ToolCall(ToolCall::new(id, tool, "{\"of\":\"zebra\"}"));
    let calls = |calls: Vec<Part>| Message::new(Role::Assistant, calls);
    let groups = [
        (Message::user("zebra"), 0),
        (calls(vec![call("read", "a"), call("run", "b")]), 1),
        (Message::tool("b", "zebra of run"), 1),
        (Message::tool("a", "zebra of read"), 1),
        (calls(vec![call("run", "a")]), 4),
        (Message::user("zebra"), 5),
        (Message::tool("a", "zebra of run"), 4),
        (Message::tool("a", "zebra of nobody"), 7),
    ];
    let entries = (0..).zip(groups).map(|(seq, (message, anchor))| {
        let mut entry = entry(message, anchor, if anchor < 5 { 1 } else { 2 });
        (entry.late, entry.orphan) = (seq == 6, seq == 7);
        entry
    });
    let entries: Vec<Entry> = entries.collect();
    let token = AppendToken::new("all");
    room.append(&room.session(), &Append::new(&token, Seq(0), &entries)).await.unwrap();
    let of = async |search: LogSearch| {
        let mut found = numbers(room, search).await;
        found.sort_unstable();
        found
    };
    assert_eq!(of(words("zebra").of_tool("read")).await, [1, 3]);
    assert_eq!(of(words("zebra").of_tool("run")).await, [1, 2, 4, 6]);
    assert_eq!(of(words("zebra").of_tool("run").of_role(Role::Tool)).await, [2, 6]);
    assert_eq!(of(words("zebra").of_tool("run").in_ranges(vec![Seq(6)..Seq(8)])).await, [6]);
    for tool in ["", "Run", "rea", "zebra"] {
        assert_eq!(of(words("zebra").of_tool(tool)).await, NONE, "{tool:?}");
    }
    // Calls in several messages of a group, and one after a text.
    let groups = [
        (calls(vec![call("read", "a")]), 8),
        (calls(vec![call("run", "b")]), 8),
        (Message::tool("a", "zebra of read"), 8),
        (Message::tool("b", "zebra of run"), 8),
        (Message::assistant("I look."), 12),
        (calls(vec![call("run", "a")]), 12),
        (Message::tool("a", "zebra of run"), 12),
    ];
    let entries: Vec<Entry> = groups.into_iter().map(|(message, anchor)| entry(message, anchor, 2)).collect();
    let token = AppendToken::new("more");
    room.append(&room.session(), &Append::new(&token, Seq(8), &entries)).await.unwrap();
    let behind = |tool| words("zebra").of_tool(tool).in_ranges(vec![Seq(8)..Seq(99)]);
    assert_eq!(of(behind("read")).await, [8, 10]);
    assert_eq!(of(behind("run")).await, [9, 11, 13, 14]);
    assert_eq!(of(words("zebra").of_tool("run").in_ranges(vec![Seq(11)..Seq(12)])).await, [11]);
}

pub(super) async fn words_that_nobody_said_find_nothing(room: &Room<'_>) {
    for search in ["", "  \n", "\u{1f600} -- ?!", "word"] {
        assert_eq!(numbers(room, words(search)).await, NONE, "there is no session yet");
    }
    users(room, &["one word"]).await;
    for search in ["", "  \n", "\u{1f600} -- ?!", "other"] {
        assert_eq!(numbers(room, words(search)).await, NONE);
    }
    assert_eq!(numbers(room, words("word").with_limit(0)).await, NONE);
    let elsewhere = words("word").in_session(room.named("none"));
    assert!(found(room, &elsewhere).await.is_empty());
}

pub(super) async fn hidden_and_shortened_messages_are_found_as_they_were_said(room: &Room<'_>) {
    let said = ["apple one", "pear two", "apple three", "plum"].map(Message::assistant).to_vec();
    say(room, &room.session(), None, said).await;
    commit(room, &record(0, 4, &[(0, 1)])).await.unwrap();
    commit(room, &edited(record(1, 4, &[]), &[edit(2, &[(0, Some("cut"))], 4)])).await.unwrap();
    let mut apples = numbers(room, words("apple")).await;
    apples.sort_unstable();
    assert_eq!(apples, [0, 2]);
    assert_eq!(numbers(room, words("cut")).await, NONE, "what stands in its place was not said");
    let without = |revision| words("apple").without_hidden_by(BTreeSet::from([Revision(revision)]));
    assert_eq!(numbers(room, without(1)).await, [2]);
    assert_eq!(numbers(room, without(2)).await.len(), 2, "it has hidden nothing");
    uncompact(room, 2).await.unwrap();
    uncompact(room, 1).await.unwrap();
    assert_eq!(numbers(room, without(1)).await.len(), 2);
}

pub(super) async fn what_was_pruned_or_deleted_is_not_found(room: &Room<'_>) {
    users(room, &["apple one", "apple two", "pear"]).await;
    let other = room.named("t");
    say(room, &other, None, vec![Message::user("apple three")]).await;
    commit(room, &record(0, 3, &[(0, 0), (2, 2)])).await.unwrap();
    prune(room, 1).await.unwrap();
    assert_eq!(numbers(room, words("apple pear one")).await, [1]);
    room.delete(&room.session()).await.unwrap();
    assert_eq!(numbers(room, words("apple")).await, NONE);
    assert_eq!(found(room, &words("apple").in_session(other.clone())).await, [("t".to_owned(), 0)]);
    // A new session with the same id is a different session.
    users(room, &["plum"]).await;
    assert_eq!(numbers(room, words("apple")).await, NONE);
    assert_eq!(numbers(room, words("plum")).await, [0]);
}

pub(super) async fn a_search_stays_in_its_sessions(room: &Room<'_>) {
    for (name, text) in [
        ("alice", "secret of nobody"),
        ("alice.x", "secret of the dot"),
        ("alice/1", "secret one"),
        ("alice/2", "secret two"),
        ("alice0", "secret of another"),
        ("bob/1", "secret of bob"),
    ] {
        say(room, &room.named(name), None, vec![Message::user(text)]).await;
    }
    let of = async |prefix: &str| {
        let search = words("secret").in_sessions(room.named(prefix).as_str());
        let mut found = found(room, &search.with_limit(99)).await;
        found.sort_unstable();
        found.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
    };
    assert_eq!(of("alice/").await, ["alice/1", "alice/2"]);
    assert_eq!(of("alice").await, ["alice", "alice.x", "alice/1", "alice/2", "alice0"]);
    assert_eq!(of("bob/1").await, ["bob/1"]);
    assert_eq!(of("b\u{10ffff}").await, Vec::<String>::new());
    assert_eq!(of("").await.len(), 6);
    let all = room.search(&words("secret").with_limit(u32::MAX)).await.unwrap();
    assert!(all.len() >= 6, "{}", all.len());
}

pub(super) async fn a_search_stays_in_its_numbers_and_its_time(room: &Room<'_>) {
    let session = room.session();
    for (time, text) in [(None, "word a"), (Some(100), "word b"), (Some(200), "word c"), (None, "word d")] {
        say(room, &session, time, vec![Message::user(text), Message::user("other")]).await;
    }
    let sorted = async |search: LogSearch| {
        let mut found = numbers(room, search).await;
        found.sort_unstable();
        found
    };
    let ranges = |ranges: &[(u64, u64)]| {
        words("word").in_ranges(ranges.iter().map(|(first, end)| Seq(*first)..Seq(*end)).collect())
    };
    assert_eq!(sorted(words("word")).await, [0, 2, 4, 6]);
    assert_eq!(sorted(ranges(&[(0, 1), (3, 5)])).await, [0, 4]);
    assert_eq!(sorted(ranges(&[(7, u64::MAX)])).await, NONE);
    assert_eq!(sorted(ranges(&[])).await, NONE);
    for (since, expected) in [(0, &[0, 2, 4, 6][..]), (100, &[0, 2, 4, 6]), (101, &[4, 6]), (200, &[4, 6])] {
        assert_eq!(sorted(words("word").since(Timestamp(since))).await, expected, "since {since}");
    }
    assert_eq!(sorted(words("word").since(Timestamp(201))).await, NONE);
    assert_eq!(sorted(ranges(&[(0, 5)]).since(Timestamp(150))).await, [4]);
}

/// Searches a log of several blocks of the index, with pruned messages and messages of deleted sessions.
pub(super) async fn a_long_log_is_searched_as_a_short_one(room: &Room<'_>) {
    let (session, other) = (room.session(), room.named("t"));
    let text = |seq: u64| Message::user(format!("message has {} and {}", seq % 7, seq % 1_009));
    for (of, page) in (0..6).map(|page| (if page == 3 { &other } else { &session }, page)) {
        say(room, of, None, (page * 520..page * 520 + 520).map(text).collect()).await;
    }
    commit(room, &record(0, 2_600, &[(0, 399), (1_500, 1_549)])).await.unwrap();
    prune(room, 1).await.unwrap();
    room.delete(&other).await.unwrap();
    say(room, &room.named("u"), None, (0..300).map(text).collect()).await;
    let log = room.log(&session, Seq(0)..Seq(u64::MAX), u32::MAX).await.unwrap().messages;
    for rare in [3_u64, 500, 1_008] {
        let said = |logged: &epitome_history::Logged| {
            let text = epitome_message::search::text_of(&logged.entry.message);
            let word = rare.to_string();
            text.split_whitespace().any(|own| own == word)
        };
        let expected: Vec<u64> =
            log.iter().filter(|logged| said(logged)).map(|logged| logged.seq.0).collect();
        let mut all = numbers(room, words(&rare.to_string()).with_limit(u32::MAX)).await;
        all.sort_unstable();
        assert_eq!(all, expected, "{rare}");
        assert!(!expected.is_empty());
        let first = numbers(room, words(&rare.to_string()).with_limit(1)).await[0];
        let is_beside = |seq: &u64| seq.abs_diff(first) == 1;
        match expected.iter().any(|seq| expected.contains(&(seq + 1))) {
            true => assert!(expected.iter().any(is_beside), "{first}: a message beside another one"),
            false => assert!(first >= 1_550, "{first}: of equal ones the newest"),
        }
    }
    let elsewhere = found(room, &words("message").in_session(room.named("u")).with_limit(500)).await;
    assert_eq!(elsewhere.len(), 300);
    assert!(found(room, &words("message").in_session(other)).await.is_empty());
}
