//! The time of a search in a very large store, and the part of an append that maintains the word index.

use core::time::Duration;
use std::time::Instant;

use epitome::core::Seq;
use epitome::core::message::Role;
use epitome::history::kernel::scan;
use epitome::history::{Entry, HistoryStore, LogSearch, SessionId};
use epitome::message::Message;
use epitome_conformance::fixtures::entry;
use futures::executor::block_on;

use crate::sessions::{Dice, append, fresh, open};

/// Number of different words in the messages; their frequencies follow Zipf's law.
const VOCABULARY: f64 = 200_000.0;

/// Number of messages of a session, and of one append while the session is filled.
const SESSION: u64 = 10_000;
const FILL: u64 = 500;

/// Number of messages in one write of the index.
const BLOCK: u64 = 256;

/// Number of repetitions of each search.
const ROUNDS: u32 = 15;

pub(crate) fn measure(url: &str, messages: u64, appends: u64) {
    let (store, dice, prefix) = (open(url), Dice::new(1), fresh("search"));
    let named = |number: u64| SessionId::new(format!("{prefix}/{number:06}"));
    let needle = |seq: u64| (seq % SESSION == SESSION / 2).then(|| format!("needle{seq}"));
    let began = Instant::now();
    for first in (0..messages).step_by(FILL as usize) {
        let (session, head) = (named(first / SESSION), first % SESSION);
        let entries: Vec<Entry> =
            (0..FILL).map(|at| entry(message(&dice, needle(first + at).as_deref()), head + at, 1)).collect();
        append(&*store, &session, &head.to_string(), head, &entries).unwrap();
    }
    println!("{messages} messages were appended in {:.1} s", began.elapsed().as_secs_f64());
    appending(&*store, &named(999_999), appends, &dice);
    let one = messages / 2 / SESSION * SESSION + SESSION / 2;
    let all = |words: &str| LogSearch::new(words).in_sessions(prefix.as_str());
    let in_one = |words: &str| LogSearch::new(words).in_session(named(0));
    let one_said = format!("needle{one}");
    // The first search writes the index, if appends do not.
    let began = Instant::now();
    block_on(scan(&*store, &all(&one_said))).unwrap();
    let reading = began.elapsed();
    let began = Instant::now();
    block_on(store.search(&all(&one_said))).unwrap();
    println!(
        "to read every message takes {:.0} ms, the first search {:.0} ms",
        reading.as_secs_f64() * 1e3,
        began.elapsed().as_secs_f64() * 1e3
    );
    println!("\n| search | found | median ms | worst ms |");
    println!("|---|---|---|---|");
    for (what, search) in [
        ("one message has the word", all(&one_said)),
        ("that word and three that many have", all(&format!("{one_said} k1 k12 k1a7"))),
        ("three words, each in some hundred messages", all("k1c001 k20f03 k2a9a1")),
        ("the three most common words", all("k1 k2 k3")),
        ("the same, by the user", all("k1 k2 k3").of_role(Role::User)),
        ("three words in one session", in_one("k1c k20f k2a9")),
        ("the three most common words in one session", in_one("k1 k2 k3")),
        ("a word that nobody said", all("neverneverland0")),
    ] {
        let mut times = Vec::new();
        let mut found = Vec::new();
        for _ in 0..ROUNDS {
            let began = Instant::now();
            found = block_on(store.search(&search)).unwrap();
            times.push(began.elapsed());
        }
        if what.starts_with("one message") || what.starts_with("that word") {
            assert_eq!(found[0].logged.seq, Seq(one % SESSION));
        }
        times.sort_unstable();
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        println!(
            "| {what} | {} | {:.1} | {:.1} |",
            found.len(),
            millis(times[times.len() / 2]),
            millis(times[times.len() - 1])
        );
    }
    drop(store);
    let store = open(url);
    for number in (0..=(messages.saturating_sub(1)) / SESSION).chain([999_999]) {
        block_on(store.delete(&named(number))).unwrap();
    }
}

/// Measures appends of two messages. Appends that write no part of the index are the reference for the others.
fn appending(store: &dyn HistoryStore, session: &SessionId, appends: u64, dice: &Dice) {
    let mut times = Vec::new();
    for at in 0..appends {
        let entries = [0, 1].map(|own| entry(message(dice, None), 2 * at + own, 1));
        let began = Instant::now();
        append(store, session, &at.to_string(), 2 * at, &entries).unwrap();
        times.push(began.elapsed());
    }
    let mean = |times: &[Duration]| times.iter().sum::<Duration>().as_secs_f64() / times.len() as f64;
    let all = mean(&times);
    // The appends that end a block are the slowest.
    times.sort_unstable();
    let blocks = usize::try_from(2 * appends / BLOCK + 1).unwrap();
    let bare = mean(&times[..times.len().saturating_sub(blocks).max(1)]);
    println!(
        "an append of two messages: {:.0} us, the index included; {:.0} us where none is written, {:.2} times that; the longest {:.1} ms",
        all * 1e6,
        bare * 1e6,
        all / bare,
        times[times.len() - 1].as_secs_f64() * 1e3
    );
}

/// A message of 20 to 219 words.
fn message(dice: &Dice, needle: Option<&str>) -> Message {
    let mut text = String::new();
    for _ in 0..20 + dice.below(200) {
        let place = dice.below(1_000_000) as f64 / 1e6;
        let word = VOCABULARY.powf(place) as u64;
        text.push_str(&format!("k{word:x} "));
    }
    text.push_str(needle.unwrap_or_default());
    if dice.below(3) == 0 { Message::user(text) } else { Message::assistant(text) }
}
