//! Texts for comparisons of tokenizers: every kind of character in their patterns, and the transitions between
//! these.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// Concatenations of fragments from the list and any characters.
pub(super) fn text() -> impl Strategy<Value = String> {
    let fragment = prop_oneof![
        8 => select(FRAGMENTS).prop_map(str::to_owned),
        2 => "[a-z]{1,12}".prop_map(|word: String| word),
        1 => any::<char>().prop_map(|character| character.to_string()),
        1 => (select(FRAGMENTS), 1..40_usize).prop_map(|(fragment, times)| fragment.repeat(times)),
    ];
    vec(fragment, 0..24).prop_map(|fragments| fragments.concat())
}

/// Configuration of a property test with `cases` cases, or with the number in `EPITOME_CASES`.
pub(super) fn cases(cases: u32) -> ProptestConfig {
    #[expect(
        clippy::disallowed_methods,
        reason = "the number of cases is a question of patience, not of behaviour"
    )]
    let asked = std::env::var("EPITOME_CASES");
    let cases = asked.ok().and_then(|asked| asked.parse().ok()).unwrap_or(cases);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

pub(super) const FRAGMENTS: &[&str] = &[
    // Words, contractions, and similar texts that are none.
    "a",
    "Word",
    "WORD",
    "camelCase",
    "don't",
    "'s",
    "'S",
    "'re",
    "'ll",
    "'l",
    "'",
    "''",
    "'\u{17f}",
    "O'Neil's",
    "\u{212a}",
    // Letters with and without case, marks, joiners.
    "\u{e9}",
    "e\u{301}",
    "\u{301}",
    "\u{1c5}",
    "\u{2b0}",
    "Ж",
    "жук",
    "ß",
    "ﬁ",
    "中",
    "文字",
    "の",
    "カ",
    "한",
    "ก็",
    "हिन्दी",
    "عربى",
    "\u{200d}",
    "\u{200b}",
    "😀",
    "👨\u{200d}👩",
    "\u{fe0f}",
    // Numbers.
    "1",
    "12",
    "1234567",
    "\u{b2}",
    "\u{663}",
    "\u{2167}",
    "\u{ff11}",
    // Signs.
    ".",
    "...",
    "/",
    "//",
    "*/",
    "\\",
    "\"",
    "{",
    "},",
    "<|endoftext|>",
    "<|start|>",
    "。",
    "、",
    "！",
    "…",
    "\0",
    "\u{1c}",
    "\u{7f}",
    "\u{fffd}",
    "-",
    "_",
    "=",
    // White space.
    " ",
    "  ",
    "    ",
    "\t",
    "\n",
    "\n\n",
    "\r\n",
    "\r",
    "\u{b}",
    "\u{c}",
    "\u{85}",
    "\u{a0}",
    "\u{2028}",
    "\u{3000}",
    "\u{180e}",
    " \n",
    "\n ",
];
