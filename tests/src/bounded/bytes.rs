//! Operations from bytes, for a fuzzer. Each sequence of bytes is valid, and similar bytes give similar operations.

use epitome_core::message::Role;

use super::{Op, Owned, Then, answer_to_a_dropped_call, cleared_result};

/// Decodes operations. Five bytes are one operation, or a few that belong together.
#[must_use]
pub fn operations(bytes: &[u8]) -> Vec<Op> {
    bytes.as_chunks().0.iter().flat_map(scene).collect()
}

fn scene(bytes: &[u8; 5]) -> Vec<Op> {
    let [what, a, b, c, d] = *bytes;
    match what {
        0..8 => answer_to_a_dropped_call(&id(a % 8)),
        8..20 => cleared_result(&id(a % 8), &text(b), note(c ^ d)),
        _ => vec![operation(bytes)],
    }
}

fn note(which: u8) -> &'static str {
    ["x", "[cleared]", "", " \n", "what was said here is no longer of any use"][usize::from(which) % 7 % 5]
}

fn operation([what, a, b, c, d]: &[u8; 5]) -> Op {
    let (a, b, c, d) = (*a, *b, *c, *d);
    let wide = |high: u8, low: u8| u16::from_be_bytes([high, low]);
    match what {
        0..150 => Op::Push(message(a, b, c, d)),
        150..165 => Op::Clamp(message(a, b, c, d), usize::from(d) * 2),
        165..180 => Op::Stream { pieces: (0..a % 4).map(|nth| text(b ^ nth)).collect(), finish: c % 4 > 0 },
        180..215 => {
            let then = [Then::Compact, Then::Compact, Then::Summarize, Then::Nothing][usize::from(what % 4)];
            // Few results are large and old enough to be cleared. Therefore every second plan clears all of them.
            let (mask, elide) = match a % 2 {
                0 => (0, u32::MAX),
                _ => (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([d, b ^ c, c, b])),
            };
            Op::Plan { mask, elide, note: note(a ^ d).into(), then }
        }
        215..230 => {
            let text = "so far".get(..usize::from(c % 7)).unwrap_or_default().into();
            Op::Summarize { first: u64::from(a), len: u64::from(b % 8), text }
        }
        230..238 => Op::Reset,
        238..246 => Op::Damage { torn: wide(a, b), bits: [wide(b, c), wide(c, d)] },
        246..=255 => {
            let second = (*what > 250).then(|| (wide(c, d), what ^ a));
            Op::Forge([(wide(a, b), c)].into_iter().chain(second).collect())
        }
    }
}

fn message(who: u8, ids: u8, what: u8, flags: u8) -> Owned {
    let role = match who {
        0..20 => Role::System,
        20..30 => Role::Developer,
        30..90 => Role::User,
        90..180 => Role::Assistant,
        180..=255 => Role::Tool,
    };
    let calls = if role == Role::Assistant { flags % 4 } else { 0 };
    Owned {
        role,
        text: text(what),
        calls: (0..calls).map(|nth| id((ids >> (nth * 2)) % 8)).collect(),
        answers: (role == Role::Tool).then(|| id(ids % 8)),
        response: (role == Role::Assistant && flags > 190).then(|| format!("r{}", flags % 2)),
        pinned: flags % 32 == 7,
    }
}

/// Ids: shared by several calls, empty, as long as a slot for an open call (64 bytes), and longer.
fn id(which: u8) -> String {
    match which {
        6 => String::new(),
        7 => "i".repeat(64),
        5 => "i".repeat(65),
        which => format!("c{which}"),
    }
}

fn text(what: u8) -> String {
    let unit = ["", "word ", "日本", "👩‍👩‍👧‍👦", "\"\u{0}", "[... cut ...]", "ä", "x"][usize::from(what % 8)];
    unit.repeat(usize::from(what / 8))
}
