//! Cell of the table that a byte adds: chosen by the class of the byte, the class of the byte before it, and the
//! position in a word.

/// The last bytes read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    /// The class of the last byte, as [`CLASSES`] has it.
    class: u8,
    /// Whether each of the last eight bytes is a lower-case letter, the latest lowest.
    lowers: u8,
    /// Number of ideographs that were read since one of [`COMMON`] or anything else, at most [`UNCOMMON_RUN`].
    ideographs: u8,
    /// The last eight bytes, the latest lowest.
    bytes: u64,
}

impl Window {
    /// The start of a text counts as the start of a line.
    pub(super) const START: Self = Self { class: NEWLINE, lowers: 0, ideographs: 0, bytes: 0 };

    /// Reads one byte; its cell, always less than [`CELLS`].
    #[inline]
    pub(super) fn push(&mut self, byte: u8) -> usize {
        let bytes = self.bytes << 8 | u64::from(byte);
        if byte < 0x80 {
            (self.bytes, self.ideographs) = (bytes, 0);
            return self.push_ascii(byte, (bytes ^ bytes >> 8) & 0xFFFF == 0);
        }
        let class = class_beyond_ascii(byte);
        let (ideographs, own) = match class {
            CONTINUATION..LOWER => self.inside(bytes),
            IDEOGRAPH => (self.ideographs, None),
            _ => (0, None),
        };
        // The last three bytes equal the three before: a line that is drawn of characters of three bytes.
        let repeats = (bytes ^ bytes >> 24) & 0xFF_FFFF == 0;
        let cell = match own {
            Some(own) if !repeats => own,
            _ => self.cell(if repeats { REPEAT } else { class }),
        };
        *self = Self { class, lowers: self.lowers << 1, ideographs, bytes };
        cell
    }

    /// Reads eight bytes, the first highest, faster if they are ASCII; their cells in the same order.
    #[inline]
    pub(super) fn push_word(&mut self, word: u64) -> [usize; 8] {
        if word & HIGHEST_BITS != 0 {
            return word.to_be_bytes().map(|byte| self.push(byte));
        }
        // Zero where a byte equals the one before, and where it equals the two before.
        let pairs = word ^ (word >> 8 | self.bytes << 56);
        let triples = pairs | pairs >> 8 | (self.bytes ^ self.bytes >> 8) << 56;
        let repeats = !((triples & !HIGHEST_BITS).wrapping_add(!HIGHEST_BITS) | triples) & HIGHEST_BITS;
        self.bytes = word;
        self.ideographs = 0;
        if repeats == 0 {
            return word.to_be_bytes().map(|byte| self.push_ascii(byte, false));
        }
        let mut repeats = repeats;
        word.to_be_bytes().map(|byte| {
            let is_repeat = repeats & 1 << 63 != 0;
            repeats <<= 8;
            self.push_ascii(byte, is_repeat)
        })
    }

    /// Reads an ASCII byte, except for the state of ideographs and repetitions.
    #[inline]
    fn push_ascii(&mut self, byte: u8, repeats: bool) -> usize {
        let class = CLASSES.get(usize::from(byte)).copied().unwrap_or(OTHER);
        let cell = self.cell(if repeats { REPEAT } else { class });
        (self.class, self.lowers) = (class, self.lowers << 1 | class >> LOWER_BIT);
        cell
    }

    /// The cell of a byte of `class` at this position.
    #[inline]
    fn cell(self, class: u8) -> usize {
        let letters = (!u32::from(self.lowers)).trailing_zeros();
        let further = STAGES.get(letters as usize).copied().unwrap_or(0);
        let row = (usize::from(self.class & ROW_BITS) >> 1).wrapping_add(usize::from(further));
        row << COLUMN_BITS | usize::from(class & COLUMNS_BITS)
    }

    /// For a continuation byte: the number of uncommon ideographs so far, and the cell of the byte if its character has
    /// cells of its own.
    fn inside(self, bytes: u64) -> (u8, Option<usize>) {
        let [.., zeroth, first, second, third] = bytes.to_be_bytes();
        let own = |at: usize| OWN.get(at).map(|cell| usize::from(*cell));
        let uncommon = self.ideographs >= UNCOMMON_RUN;
        match (zeroth, first, second) {
            (_, _, 0xE4..=0xE9) => (self.ideographs, if uncommon { own(0) } else { None }),
            (_, 0xE4..=0xE9, _) => {
                let read = code_point(first, second, third);
                // All entries are compared: a search would mispredict its branches.
                let common = COMMON.iter().fold(false, |found, common| found | (*common == read));
                let ideographs = if common { 0 } else { self.ideographs.saturating_add(1).min(UNCOMMON_RUN) };
                (ideographs, if uncommon { own(1) } else { None })
            }
            (_, _, 0xF0) if third == 0x9F => (0, own(4)),
            (_, 0xF0, 0x9F) => (0, own(5)),
            _ if is_rare(second, third) => (0, own(2)),
            _ if is_rare(first, second) || zeroth == 0xF0 && first != 0x9F => (0, own(3)),
            _ => (0, None),
        }
    }
}

/// Whether the characters that begin with these two bytes belong to scripts and signs that hardly occur in a
/// vocabulary.
const fn is_rare(first: u8, second: u8) -> bool {
    match first {
        0xE1 => matches!(second, 0x84..=0xB7), // old jamo, Ethiopic to Mongolian, Khmer, runes
        0xE2 => second >= 0xA0,                // Braille, Glagolitic, Coptic
        0xEA => second < 0xB0,                 // Yi, Vai, Javanese
        0xF0 => second != 0x9F,                // all beyond the first plane but emoji
        _ => false,
    }
}

/// The code point of a character of three bytes.
fn code_point(first: u8, second: u8, third: u8) -> u16 {
    u16::from(first & 0x0F) << 12 | u16::from(second & 0x3F) << 6 | u16::from(third & 0x3F)
}

const HIGHEST_BITS: u64 = u64::from_ne_bytes([0x80; 8]);

const COLUMN_BITS: u32 = 5;
const COLUMNS_BITS: u8 = 31;
const ROW_BITS: u8 = 30;
/// Mark of lower-case letters in [`CLASSES`].
const LOWER: u8 = 1 << LOWER_BIT;
const LOWER_BIT: u32 = 7;

/// Number of rows further down, by the number of lower-case letters before. After four letters a word is in its middle:
/// it is longer than the ends and stems that most tokens are. After seven, few words are one token. The first 16 rows
/// are one for each pair of classes that a byte may follow. The rows of the three pairs of lower-case letters (11 to
/// 13) follow once more for the middle of words, and once more for late in words.
const STAGES: [u8; 9] = [0, 0, 0, 0, 5, 5, 5, 8, 8];

/// 22 rows of 32 columns, one for each class of the byte itself.
pub(super) const CELLS: usize = 22 << COLUMN_BITS;

/// Cells of the second and the further bytes of characters whose weight differs from that of their bytes: ideographs
/// with nothing common near, rare scripts, emoji. A continuation byte never follows a letter, so no other byte uses
/// these cells.
const OWN: [u16; 6] = [540, 541, 542, 543, 572, 573];
/// Number of ideographs in a row without one of [`COMMON`] that are hardly running text: in Chinese, every third
/// ideograph is common.
const UNCOMMON_RUN: u8 = 8;

/// The class of every byte of ASCII, less than 32; of lower-case letters with [`LOWER`].
#[expect(
    clippy::indexing_slicing,
    reason = "evaluated by the compiler: an index out of bounds would not build"
)]
const CLASSES: [u8; 128] = {
    let mut classes = [OTHER; 128];
    let mut rest: &[(u8, &[u8])] = ASCII;
    while let [(class, members), tail @ ..] = rest {
        let mut members: &[u8] = members;
        while let [byte, others @ ..] = members {
            classes[*byte as usize] = *class;
            members = others;
        }
        rest = tail;
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
    (LOWER | 22, b"ae"),
    (LOWER | 23, b"iou"),
    (LOWER | 24, b"nrst"),
    (LOWER | 25, b"cdhlm"),
    (LOWER | 26, b"bfgpvwy"),
    (LOWER | 27, b"jkqxz"),
];

/// Some fifty of the most frequent ideographs of Chinese, simplified and traditional (the
/// last one twice, to make them 64):
/// 一上下不个中为之也了于人他以们会作你來個們出到可后和国國在地大子对對就年後得我於时是時會有来為生的着而能自著要說说过这這過那里.
const COMMON: [u16; 64] = [
    0x4E00, 0x4E0A, 0x4E0B, 0x4E0D, 0x4E2A, 0x4E2D, 0x4E3A, 0x4E4B, 0x4E5F, 0x4E86, 0x4E8E, 0x4EBA, 0x4ED6,
    0x4EE5, 0x4EEC, 0x4F1A, 0x4F5C, 0x4F60, 0x4F86, 0x500B, 0x5011, 0x51FA, 0x5230, 0x53EF, 0x540E, 0x548C,
    0x56FD, 0x570B, 0x5728, 0x5730, 0x5927, 0x5B50, 0x5BF9, 0x5C0D, 0x5C31, 0x5E74, 0x5F8C, 0x5F97, 0x6211,
    0x65BC, 0x65F6, 0x662F, 0x6642, 0x6703, 0x6709, 0x6765, 0x70BA, 0x751F, 0x7684, 0x7740, 0x800C, 0x80FD,
    0x81EA, 0x8457, 0x8981, 0x8AAA, 0x8BF4, 0x8FC7, 0x8FD9, 0x9019, 0x904E, 0x90A3, 0x91CC, 0x91CC,
];

const IDEOGRAPH: u8 = 15;
const CONTINUATION: u8 = 28;
const NEWLINE: u8 = 0;
/// Repetitions: tokenizers have tokens for long runs. This class is never a predecessor, and so shares no row.
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
        0x80..=0xBF => CONTINUATION | byte >> 4 & 3,
        _ => OTHER,
    }
}
