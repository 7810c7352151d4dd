//! Any bytes as a session file: an outline or an error, and the messages that an outline names are there to be read.
#![no_main]

use std::io::Cursor;

use epitome_std::wire::{Outline, SessionLines};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, &[u8])| {
    let (format, bytes) = input;
    let format = Outline::FORMATS[usize::from(format) % Outline::FORMATS.len()];
    let mut lines = SessionLines::new(Cursor::new(bytes), format).unwrap();
    let Ok(outline) = Outline::read(&mut lines, None) else { return };
    let counted = outline.conversations().first().map_or(0, |active| active.messages);
    let named = outline.messages(&mut lines).collect::<Result<Vec<_>, _>>();
    assert!(named.is_err() || named.is_ok_and(|named| named.len() == counted));
    let _ = outline.usage(&mut lines).collect::<Result<Vec<_>, _>>();
});
