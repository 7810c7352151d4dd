//! Texts that agents process and the folders may lack: encoded data, long runs, emoji, many languages.

use epitome_benches::corpus::{File, Kind};

/// Samples of texts that are not natural language; the same seed gives the same samples.
pub(crate) fn synthetic(seed: u64) -> Vec<File> {
    let random = &mut Random(seed);
    let emoji: Vec<char> = ('\u{1F300}'..='\u{1F64F}').chain('\u{1F680}'..='\u{1F6C0}').collect();
    let boxes: Vec<char> = ('\u{2500}'..='\u{257F}').collect();
    let ideographs: Vec<char> = ('\u{4E00}'..='\u{9FA5}').collect();
    // Ethiopic, Cherokee, Canadian syllables, runes, Khmer, Mongolian, Braille, Coptic, Yi, mathematical letters, hieroglyphs.
    let blocks =
        [0x1200..0x1357, 0x13A0..0x13F5, 0x1401..0x1670, 0x16A0..0x16EA, 0x1780..0x17B3, 0x1820..0x1878];
    let more = [
        0x2801..0x2900,
        0x2C80..0x2CE4,
        0xA000..0xA48C,
        0x1D400..0x1D455,
        0x13000..0x13100,
        0x20000..0x20100,
    ];
    let rare: Vec<char> = blocks.into_iter().chain(more).flatten().filter_map(char::from_u32).collect();
    let alphabet = |text: &str| text.chars().collect::<Vec<char>>();
    let (lower, upper, digits) =
        ("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", alphabet("0123456789"));
    let base64 = alphabet(&format!("{upper}{lower}0123456789+/"));
    let base64_url = alphabet(&format!("{upper}{lower}0123456789-_"));
    let hex = alphabet("0123456789abcdef");
    let hex_upper = alphabet("0123456789ABCDEF");
    vec![
        file("base64", 150, || random.text(&base64, 16, 2000)),
        file("base64, for URLs", 60, || random.text(&base64_url, 16, 1000)),
        file("hex", 110, || random.text(&hex, 8, 1000)),
        file("hex, upper case", 40, || random.text(&hex_upper, 8, 1000)),
        file("uuids", 60, || random.uuids(&hex)),
        file("numbers", 100, || random.numbers(&digits)),
        file("digits", 40, || random.text(&digits, 1, 1000)),
        file("random lower case", 50, || random.text(&alphabet(lower), 8, 500)),
        file("random upper case", 30, || random.text(&alphabet(upper), 8, 500)),
        file("runs of one character", 200, || random.run()),
        file("emoji", 60, || random.text(&emoji, 1, 30)),
        file("emoji and spaces", 30, || spaced(&random.text(&emoji, 1, 30))),
        file("box drawing", 30, || random.text(&boxes, 1, 200)),
        file("rare scripts", 40, || random.text(&rare, 1, 200)),
        file("random ideographs", 40, || random.text(&ideographs, 1, 300)),
    ]
}

/// The opening of the Universal Declaration of Human Rights and a sentence or two of daily work, in many languages.
pub(crate) fn languages() -> Vec<File> {
    let lines = include_str!("languages.txt").lines().filter_map(|line| line.split_once('\t'));
    lines
        .map(|(name, text)| File {
            name: name.to_owned(),
            source: name.to_owned(),
            kind: Kind::Made("language"),
            texts: text.split_inclusive(". ").chain([text]).map(str::to_owned).collect(),
        })
        .collect()
}

fn file(name: &'static str, texts: usize, mut text: impl FnMut() -> String) -> File {
    File {
        name: name.to_owned(),
        source: "made".to_owned(),
        kind: Kind::Made(name),
        texts: (0..texts).map(|_| text()).collect(),
    }
}

fn spaced(text: &str) -> String {
    text.chars().flat_map(|character| [character, ' ']).collect()
}

/// The random number generator `SplitMix64`.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    /// A random length; short lengths are as frequent as long ones.
    fn length(&mut self, max: usize) -> usize {
        let power = 1 << self.below(max.ilog2() as usize + 1);
        power + self.below(power)
    }

    fn exactly(&mut self, alphabet: &[char], length: usize) -> String {
        (0..length).map(|_| self.pick(alphabet)).collect()
    }

    fn text(&mut self, alphabet: &[char], min: usize, max: usize) -> String {
        let length = self.length(max).max(min);
        self.exactly(alphabet, length)
    }

    fn uuids(&mut self, hex: &[char]) -> String {
        let count = 1 + self.below(5);
        let uuids = (0..count).map(|_| [8, 4, 4, 4, 12].map(|length| self.exactly(hex, length)).join("-"));
        uuids.collect::<Vec<_>>().join("\n")
    }

    fn numbers(&mut self, digits: &[char]) -> String {
        let (count, digits_max) = (1 + self.below(40), 1 + self.below(16));
        let separator = self.pick(&[" ", ", ", "\n", ",", ".", "\t", ":"]);
        let numbers = (0..count).map(|_| {
            let length = 1 + self.below(digits_max);
            self.exactly(digits, length)
        });
        numbers.collect::<Vec<_>>().join(separator)
    }

    fn run(&mut self) -> String {
        let character = self.pick(&[
            ' ', ' ', '-', '-', '=', '=', '*', '\n', '\t', '#', '_', '.', '~', '/', '+', 'a', 'A', '0', '─',
            '═',
        ]);
        let length = self.length(1000).max(4);
        core::iter::repeat_n(character, length).collect()
    }
}
