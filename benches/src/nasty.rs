//! Texts on which tokenizers differ, generated from a seed.

/// Generator of texts; the same seed gives the same texts.
#[derive(Debug)]
pub struct Nasty(u64);

impl Nasty {
    /// Creates a generator from a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    /// A random number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        // Xorshift: Marsaglia, "Xorshift RNGs", 2003.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % end
    }

    /// A short text of fragments, words, runs and arbitrary characters.
    pub fn text(&mut self) -> String {
        let mut text = String::new();
        for _ in 0..self.below(24) {
            match self.below(12) {
                0..7 => text.push_str(FRAGMENTS[self.below(FRAGMENTS.len())]),
                7 | 8 => (0..self.below(12)).for_each(|_| text.push((b'a' + self.below(26) as u8) as char)),
                9 => text.extend(char::from_u32(self.below(0x11_0000) as u32)),
                10 => text.extend(char::from_u32(self.below(0x3000) as u32)),
                _ => text.push_str(&FRAGMENTS[self.below(FRAGMENTS.len())].repeat(self.below(40))),
            }
        }
        text
    }

    /// A text of about `bytes` bytes of one kind, by its name in [`Nasty::LONG`]; any other name gives mixed scripts.
    pub fn long(&mut self, kind: &str, bytes: usize) -> String {
        const BASE64: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut text = String::with_capacity(bytes + 64);
        while text.len() < bytes {
            match kind {
                "one letter" => text.push('a'),
                "spaces" => text.push(' '),
                "dashes" => text.push('-'),
                "newlines" => text.push('\n'),
                "base64" => text.push(BASE64[self.below(64)] as char),
                "hex" => text.push(char::from_digit(self.below(16) as u32, 16).unwrap_or('0')),
                "letters" => text.push((b'a' + self.below(26) as u8) as char),
                "ideographs" => text.extend(char::from_u32(0x4E00 + self.below(0x5000) as u32)),
                // Mixed scripts.
                _ => text.push_str(FRAGMENTS[self.below(FRAGMENTS.len())]),
            }
        }
        text
    }

    /// The kinds of long texts.
    pub const LONG: [&str; 9] = [
        "one letter",
        "spaces",
        "dashes",
        "newlines",
        "base64",
        "hex",
        "letters",
        "ideographs",
        "mixed scripts",
    ];
}

/// Every kind of character in the patterns of the encodings, and the boundaries between these kinds.
#[rustfmt::skip]
const FRAGMENTS: &[&str] = &[
    // Words, contractions and look-alikes of these.
    "a", "Word", "WORD", "camelCase", "don't", "'s", "'S", "'re", "'ll", "'l", "'", "''", "'\u{17f}", "O'Neil's", "\u{212a}",
    // Letters with and without case, marks, joiners.
    "\u{e9}", "e\u{301}", "\u{301}", "\u{1c5}", "\u{2b0}", "Ж", "жук", "ß", "ﬁ", "中", "文字", "の", "カ", "한", "ก็", "हिन्दी",
    "عربى", "\u{200d}", "\u{200b}", "😀", "👨\u{200d}👩", "\u{fe0f}",
    // Numbers.
    "1", "12", "1234567", "\u{b2}", "\u{663}", "\u{2167}", "\u{ff11}",
    // Signs.
    ".", "...", "/", "//", "*/", "\\", "\"", "{", "},", "<|endoftext|>", "<|start|>", "。", "、", "！", "…", "\0", "\u{1c}",
    "\u{7f}", "\u{fffd}", "-", "_", "=",
    // White space.
    " ", "  ", "    ", "\t", "\n", "\n\n", "\r\n", "\r", "\u{b}", "\u{c}", "\u{85}", "\u{a0}", "\u{2028}", "\u{3000}",
    "\u{180e}", " \n", "\n ",
];
