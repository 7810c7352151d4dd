//! Triggers and pacing: each condition at its limit and next to it.

#![expect(clippy::arithmetic_side_effects, reason = "a test that overflows fails, which is right")]

mod conditions;
mod pacing;

use std::format;
use std::string::String;
use std::vec::Vec;

use crate::message::{SimpleMessage, ToolCallView};
use crate::{ArrayTable, IndexBuf, OpenCallSlots, Span, Tokens};

type Buf = IndexBuf<ArrayTable<Span, 64>, OpenCallSlots<8>>;

/// A conversation of one letter for each message: `s`ystem, `u`ser, `a`ssistant, a `c`all with its `r`esult (the latest
/// call's), and an `o`rphan.
fn index(letters: &str) -> Buf {
    let mut index = Buf::new();
    let mut calls = 0;
    for letter in letters.chars() {
        calls += u32::from(letter == 'c');
        let id = format!("c{calls}");
        push(&mut index, letter, &id);
    }
    index
}

fn push(index: &mut Buf, letter: char, id: &str) {
    let calls = [ToolCallView::new(id, "read", "a.txt")];
    let message = match letter {
        's' => SimpleMessage::system("s"),
        'u' => SimpleMessage::user("u"),
        'a' => SimpleMessage::assistant("a"),
        'c' => SimpleMessage::calls(&calls),
        'r' => SimpleMessage::result(id, "r"),
        _ => SimpleMessage::result("nobody", "o"),
    };
    index.push(&message, Tokens(10)).unwrap();
}

fn words(kinds: impl IntoIterator<Item = &'static str>) -> String {
    kinds.into_iter().collect::<Vec<_>>().join(" ")
}
