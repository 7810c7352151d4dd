//! What a model must be able to write letter by letter: paths, addresses, ids, amounts, names in code.

/// What an identifier is. Lists are in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Kind {
    /// A path, or the name of a file.
    File,
    /// A URL.
    Address,
    /// A UUID, a hash, the key of an issue, the id of a call.
    Id,
    /// A name in code.
    Name,
    /// A number with a unit, a price, a version.
    Amount,
    /// A number of at least three digits.
    Number,
}

impl Kind {
    /// All kinds, in the order of lists.
    pub const ALL: [Self; 6] = [Self::File, Self::Address, Self::Id, Self::Name, Self::Amount, Self::Number];

    /// Its name, as lists have it: `files`, `addresses`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::File => "files",
            Self::Address => "addresses",
            Self::Id => "ids",
            Self::Name => "names",
            Self::Amount => "amounts",
            Self::Number => "numbers",
        }
    }

    /// That of a word in a list: a [`Name`](Self::Name) where nothing else tells.
    #[must_use]
    pub fn of(word: &str) -> Self {
        kind_of(word).or_else(|| name_kind(word)).unwrap_or(Self::Name)
    }
}

/// Longer ones cost more than they are worth.
const BYTES_MAX: usize = 200;

/// The identifiers in a text, repeated ones too; with `code` also names in code and numbers. One of more than 200 bytes is passed
/// over. *Cost*: one pass over the text.
///
/// ```
/// use epitome_std::identifiers::for_each_identifier;
///
/// let mut found = Vec::new();
/// for_each_identifier("See `src/main.rs`, (PROJ-7), or use_cache.", true, &mut |identifier| found.push(identifier));
/// assert_eq!(found, ["src/main.rs", "PROJ-7", "use_cache"]);
/// ```
pub fn for_each_identifier<'t>(text: &'t str, code: bool, visit: &mut dyn FnMut(&'t str)) {
    for_each_word(text, &mut |word| {
        let word = trimmed(word);
        if is_prose(word) || word.len() > BYTES_MAX {
            return;
        }
        if kind_of(word).is_some() {
            visit(word);
        } else if code {
            let names = word.split(|c: char| !(c.is_alphanumeric() || c == '_'));
            names.filter(|name| !is_prose(name) && name_kind(name).is_some()).for_each(&mut *visit);
        }
    });
}

/// Calls `visit` with what stands between borders, but for most of what is prose.
fn for_each_word<'t>(text: &'t str, visit: &mut impl FnMut(&'t str)) {
    let (bytes, mut at) = (text.as_bytes(), 0_usize);
    while let Some(first) = bytes.get(at) {
        let (begin, mut rest) = (at, 0);
        let mut class = class_of(*first);
        let first = class;
        while class != BORDER {
            at = match class {
                BEYOND_ASCII => match text.get(at..).and_then(|text| text.chars().next()) {
                    Some(border) if is_border(border) => break,
                    Some(other) => at.saturating_add(other.len_utf8()),
                    None => break,
                },
                _ => at.saturating_add(1),
            };
            class = bytes.get(at).map_or(BORDER, |byte| class_of(*byte));
            rest |= class;
        }
        let is_prose = matches!(first, LOWER | UPPER) && rest & !LOWER == 0;
        if at > begin && !is_prose {
            visit(text.get(begin..at).unwrap_or_default());
        }
        // Past the border, if it is not the end.
        let border = text.get(at..).and_then(|text| text.chars().next());
        at = at.saturating_add(border.map_or(1, char::len_utf8));
    }
}

const BORDER: u8 = 0;
const LOWER: u8 = 1;
const UPPER: u8 = 2;
const OTHER: u8 = 4;
/// Of a byte that is not ASCII its character tells whether it is a border.
const BEYOND_ASCII: u8 = 8;

/// The class of each byte.
static CLASSES: [u8; 256] = {
    let mut classes = [BORDER; 256];
    let (mut left, mut byte): (&mut [u8], u8) = (&mut classes, 0);
    while let [own, others @ ..] = left {
        *own = match byte {
            _ if is_ascii_border(byte) => BORDER,
            b'a'..=b'z' => LOWER,
            b'A'..=b'Z' => UPPER,
            0..=127 => OTHER,
            128.. => BEYOND_ASCII,
        };
        (left, byte) = (others, byte.wrapping_add(1));
    }
    classes
};

fn class_of(byte: u8) -> u8 {
    CLASSES.get(usize::from(byte)).copied().unwrap_or(BORDER)
}

/// Whether a word is letters in lower case, but perhaps for the first: most words are, and none of them is an identifier.
fn is_prose(word: &str) -> bool {
    match word.as_bytes() {
        [] => true,
        [first, rest @ ..] => first.is_ascii_alphabetic() && rest.iter().all(u8::is_ascii_lowercase),
    }
}

/// A name in code, `snake_case`, `camelCase`, `PascalCase`, `UPPER`; or a number of three digits or more.
fn name_kind(word: &str) -> Option<Kind> {
    let bytes = word.as_bytes();
    if bytes.len() < 3 || !word.is_ascii() {
        return None;
    }
    if bytes.iter().all(u8::is_ascii_digit) {
        return Some(Kind::Number);
    }
    let snake = bytes
        .windows(3)
        .any(|three| matches!(three, [a, b'_', b] if a.is_ascii_alphanumeric() && b.is_ascii_alphanumeric()));
    let camel =
        bytes.windows(2).any(|two| matches!(two, [a, b] if a.is_ascii_lowercase() && b.is_ascii_uppercase()));
    let upper = bytes.first().is_some_and(u8::is_ascii_uppercase)
        && bytes.iter().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit());
    (snake || camel || upper).then_some(Kind::Name)
}

/// Whether a character stands between words: no identifier holds it.
fn is_border(c: char) -> bool {
    match u8::try_from(c) {
        Ok(ascii) if ascii.is_ascii() => is_ascii_border(ascii),
        _ => {
            c.is_whitespace()
                || c.is_control()
                || "\u{201c}\u{201d}\u{300c}\u{300d}\u{3001}\u{3002}".contains(c)
        }
    }
}

const fn is_ascii_border(byte: u8) -> bool {
    matches!(
        byte,
        0..=32
            | 127
            | b'"'
            | b'\''
            | b'`'
            | b'<'
            | b'>'
            | b'('
            | b')'
            | b'['
            | b']'
            | b'{'
            | b'}'
            | b'|'
            | b','
            | b';'
            | b'='
            | b'*'
    )
}

/// A word without the punctuation of the sentence around it.
fn trimmed(word: &str) -> &str {
    word.trim_end_matches(['.', ':', '!', '?', '\\']).trim_start_matches([':', '!'])
}

/// What a word is, if a model must be able to write it letter by letter.
fn kind_of(word: &str) -> Option<Kind> {
    match word {
        _ if is_url(word) => Some(Kind::Address),
        _ if is_path(word) => Some(Kind::File),
        _ if is_id(word) => Some(Kind::Id),
        _ if is_amount(word) => Some(Kind::Amount),
        _ => None,
    }
}

fn is_url(word: &str) -> bool {
    word.split_once(':').is_some_and(|(scheme, rest)| {
        rest.strip_prefix("//").is_some_and(|rest| !rest.is_empty())
            && !scheme.is_empty()
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'+')
    })
}

/// `/etc/hosts`, `src/main.rs`, `C:\temp\x`, `main.rs`; not `and/or`, `1/2`.
fn is_path(word: &str) -> bool {
    let separators = word.bytes().filter(|b| matches!(b, b'/' | b'\\')).count();
    if separators == 0 && !word.contains('.') {
        return false;
    }
    let last = word.rsplit(['/', '\\']).next().unwrap_or_default();
    let rooted = ["/", "./", "../", "~/"].iter().any(|root| word.starts_with(root));
    let letters = word.chars().any(char::is_alphabetic);
    let named = last.rsplit_once('.').is_some_and(|(stem, extension)| {
        !stem.is_empty()
            && (1..=6).contains(&extension.len())
            && extension.bytes().all(|b| b.is_ascii_alphanumeric())
            && extension.bytes().any(|b| b.is_ascii_alphabetic())
            // "e.g", "i.e"
            && (separators > 0 || stem.len() > 1)
    });
    letters
        && match separators {
            0 => named && !word.contains(':') && !word.contains('@'),
            1 => named || rooted && word.len() > 2,
            _ => rooted || named || separators > 2,
        }
}

/// A UUID, a hash, `PROJ-123`, `#123`, `call_1a2b3c4d`.
fn is_id(word: &str) -> bool {
    if let Some(number) = word.strip_prefix('#') {
        return (1..=12).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit());
    }
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let is_hex = word.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    let letters = word.bytes().filter(u8::is_ascii_alphabetic).count();
    if is_hex && word.len() >= 7 && word.len() <= 64 {
        return digits > 0 && letters > 0;
    }
    match word.split_once(['-', '_']) {
        Some((prefix, number)) if number.bytes().all(|b| b.is_ascii_digit()) => {
            !number.is_empty() && prefix.len() > 1 && prefix.bytes().all(|b| b.is_ascii_uppercase())
        }
        Some((prefix, rest)) => {
            // An opaque id with a word before it.
            prefix.bytes().all(|b| b.is_ascii_lowercase())
                && rest.len() >= 8
                && digits >= 2
                && rest.bytes().all(|b| b.is_ascii_alphanumeric())
        }
        None => false,
    }
}

/// `42ms`, `3.5GB`, `80%`, `$15`, `1.2.3`.
fn is_amount(word: &str) -> bool {
    let (word, priced) = match word.strip_prefix(['$', '€', '£', '¥']) {
        Some(rest) => (rest, true),
        None => (word, false),
    };
    let number = word.trim_end_matches(|c: char| c.is_alphabetic() || c == '%');
    let unit = word.get(number.len()..).unwrap_or_default();
    let is_number = number.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'_'))
        && number.bytes().next().is_some_and(|b| b.is_ascii_digit());
    let is_version = number.bytes().filter(|b| *b == b'.').count() > 1;
    is_number && (priced || is_version || !unit.is_empty() && unit.chars().count() <= 4)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The rule as it is written.
    fn naive(text: &str, code: bool) -> Vec<&str> {
        let mut found = Vec::new();
        for word in text.split(is_border).map(trimmed).filter(|word| word.len() <= BYTES_MAX) {
            match kind_of(word) {
                Some(_) => found.push(word),
                None if code => {
                    let names = word.split(|c: char| !(c.is_alphanumeric() || c == '_'));
                    found.extend(names.filter(|name| name_kind(name).is_some()));
                }
                None => {}
            }
        }
        found
    }

    proptest! {
        #[test]
        fn identifiers_are_those_of_the_rule(
            text in "([a-z]{1,9}|[A-Za-z0-9_./#-]{0,12}|[ .,:!\n(\"=\u{7f}]|[\u{85}\u{a0}\u{201c}\u{300c}\u{3002}日é]|\\PC){0,30}", code: bool,
        ) {
            let mut found = Vec::new();
            for_each_identifier(&text, code, &mut |identifier| found.push(identifier));
            prop_assert_eq!(found, naive(&text, code));
        }

        /// The words that are passed over early are none, and are most words.
        #[test]
        fn prose_is_no_identifier(word in "[A-Z]?[a-z]{0,12}|[A-Za-z0-9_./#-]{0,8}") {
            let is_known = kind_of(&word).is_some() || name_kind(&word).is_some();
            prop_assert!(!(is_prose(&word) && is_known));
            let letters = word.strip_prefix(|c: char| c.is_ascii_alphabetic()).unwrap_or(&word);
            prop_assert!(is_prose(&word) || letters.len() == word.len() || letters.chars().any(|c| !c.is_ascii_lowercase()));
        }

        /// Without looking for all of it.
        #[test]
        fn an_address_has_a_scheme(word in "[a-z+:/.]{0,12}") {
            let expected = word.split_once("://").is_some_and(|(scheme, rest)| {
                let is_scheme = |b: u8| b.is_ascii_alphanumeric() || b == b'+';
                !rest.is_empty() && !scheme.is_empty() && scheme.bytes().all(is_scheme)
            });
            prop_assert_eq!(is_url(&word), expected);
        }
    }

    #[test]
    fn what_must_be_written_letter_by_letter_is_found() {
        for word in [
            "https://example.com/a?b=1",
            "s3://bucket/key",
            "/etc/hosts",
            "~/notes",
            "src/main.rs",
            "Cargo.toml",
            "C:\\temp\\x.txt",
            "a/b/c/d",
            "550e8400-e29b-41d4-a716-446655440000",
            "3f2a9bc",
            "PROJ-123",
            "#4711",
            "call_1a2b3c4d5e",
            "42ms",
            "3.5GB",
            "80%",
            "$15",
            "1.2.3",
        ] {
            assert!(kind_of(word).is_some(), "{word}");
        }
        for word in [
            "and/or",
            "1/2",
            "e.g",
            "i.e",
            "word",
            "1234",
            "deadbeef",
            "well-known",
            "a_b",
            "12:30",
            "me@x.org",
            "http://",
            "-",
            "50000000",
        ] {
            assert!(kind_of(word).is_none(), "{word}");
        }
    }
}
