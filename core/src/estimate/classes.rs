//! Which cell of the table a byte adds: by its own class and the class of the byte before it.

/// The last bytes read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    /// The class of `last`.
    class: u8,
    last: u8,
    before_last: u8,
}

impl Window {
    /// The start of a text counts as the start of a line.
    pub(super) const START: Self = Self { class: NEWLINE, last: 0, before_last: 0 };

    /// Reads one byte; its cell, always less than [`CELLS`].
    #[inline]
    pub(super) fn push(&mut self, byte: u8) -> usize {
        let class = CLASSES.get(usize::from(byte)).copied().unwrap_or(OTHER);
        let repeats = byte == self.last && byte == self.before_last;
        let column = if repeats { REPEAT } else { class };
        let row = self.class >> 1;
        *self = Self { class, last: byte, before_last: self.last };
        (usize::from(row) << COLUMN_BITS | usize::from(column)) & (CELLS - 1)
    }
}

const COLUMN_BITS: u32 = 5;

/// 16 rows, one for each pair of classes that a byte may follow, of 32 columns, one for each class of the byte itself.
pub(super) const CELLS: usize = 512;

/// The class of every byte.
#[expect(
    clippy::indexing_slicing,
    reason = "evaluated by the compiler: an index out of bounds would not build"
)]
const CLASSES: [u8; 256] = {
    let mut classes = [OTHER; 256];
    let mut rest: &[(u8, &[u8])] = ASCII;
    while let [(class, members), tail @ ..] = rest {
        let mut members: &[u8] = members;
        while let [byte, others @ ..] = members {
            classes[*byte as usize] = *class;
            members = others;
        }
        rest = tail;
    }
    let mut byte = 0x80_usize;
    while byte < 256 {
        classes[byte] = class_beyond_ascii(byte as u8);
        byte += 1;
    }
    classes
};

/// Classes `2 n` and `2 n + 1` share row `n`. The first byte of a non-ASCII character is always followed by a
/// continuation byte and an ASCII character never is, so one of each can share a row and not disturb the other.
const ASCII: &[(u8, &[u8])] = &[
    (NEWLINE, b"\n\r"),
    (2, b" \t"),
    (4, b"0123456789"),
    (6, b".,"),
    (8, b"-_"),
    (10, b"([{<"),
    (12, b")]}>"),
    (14, b"\"'`"),
    (16, b"/\\"),
    (18, b":;="),
    (20, b"ABCDEFILMNOPRST"),
    (21, b"GHJKQUVWXYZ"),
    (22, b"ae"),
    (23, b"iou"),
    (24, b"nrst"),
    (25, b"cdhlm"),
    (26, b"bfgpvwy"),
    (27, b"jkqxz"),
];

const NEWLINE: u8 = 0;
/// The third and later of equal bytes: tokenizers have tokens for long runs. Shares a row with no one: never a predecessor.
const REPEAT: u8 = 1;
/// ASCII that is listed nowhere else.
const OTHER: u8 = 19;

/// Continuation bytes by their second highest bits, first bytes by the scripts that they open.
const fn class_beyond_ascii(byte: u8) -> u8 {
    match byte {
        0xC0..=0xC5 => 3,               // Latin with diacritics
        0xC6..=0xD1 => 5,               // IPA, Greek, Cyrillic
        0xD2..=0xDF => 7,               // Armenian, Hebrew, Arabic
        0xE0..=0xE1 | 0xF0..=0xFF => 9, // Indic scripts, Thai, Vietnamese; emoji
        0xE2 | 0xEE | 0xEF => 11,       // typographic signs, boxes, full-width forms
        0xE3 => 13,                     // kana, CJK punctuation
        0xE4..=0xE9 => 15,              // CJK ideographs
        0xEA..=0xED => 17,              // Hangul
        0x80..=0x8F => 28,
        0x90..=0x9F => 29,
        0xA0..=0xAF => 30,
        0xB0..=0xBF => 31,
        _ => OTHER,
    }
}
