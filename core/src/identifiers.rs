//! Identifiers that a model must be able to write letter by letter: paths, addresses, ids, amounts, names in code.

/// The kind of an identifier. Lists are in this order.
///
/// ```
/// use epitome_core::identifiers::IdentifierKind;
///
/// let kinds = ["src/main.rs", "https://example.org/a"].map(|word| IdentifierKind::of(word).as_str());
/// assert_eq!(kinds, ["files", "addresses"]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum IdentifierKind {
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

impl IdentifierKind {
    /// All kinds, in the order of lists.
    pub const ALL: [Self; 6] = [Self::File, Self::Address, Self::Id, Self::Name, Self::Amount, Self::Number];

    /// The name of the kind in lists: `files`, `addresses`.
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

    /// The kind of a word in a list: [`Name`](Self::Name) if no other kind fits.
    #[must_use]
    pub fn of(word: &str) -> Self {
        kind_of(word).or_else(|| name_kind(word)).unwrap_or(Self::Name)
    }
}

/// Maximum length of an identifier: a longer one costs more than it is worth.
const BYTES_MAX: usize = 200;

/// Calls `visit` with the identifiers in a text, repeated ones too; with `code` also with names in code and numbers.
///
/// An identifier of more than 200 bytes is skipped. *Cost*: one pass over the text.
///
/// ```
/// use epitome_core::identifiers::for_each_identifier;
///
/// let mut found = Vec::new();
/// for_each_identifier("See `src/main.rs`, (PROJ-7), or use_cache.", true, &mut |identifier| found.push(identifier));
/// assert_eq!(found, ["src/main.rs", "PROJ-7", "use_cache"]);
/// ```
pub fn for_each_identifier<'t>(text: &'t str, code: bool, visit: &mut dyn FnMut(&'t str)) {
    for_each_word(text, |word, classes| {
        let word = trimmed(word);
        if is_prose(word) || word.len() > BYTES_MAX {
            return;
        }
        if kind_in(word, classes).is_some() {
            visit(word);
        } else if code {
            for_each_name(word, classes, visit);
        }
    });
}

/// Calls `visit` with the names in code and the numbers in a word with bytes of these classes.
fn for_each_name<'t>(word: &'t str, classes: u8, visit: &mut dyn FnMut(&'t str)) {
    if classes & (UPPER | DIGIT | UNDERSCORE) == 0 {
        return;
    }
    if classes & !(LOWER | UPPER | DIGIT | UNDERSCORE) == 0 {
        if name_kind(word).is_some() {
            visit(word);
        }
        return;
    }
    let mut rest = word;
    while !rest.is_empty() {
        let end = rest.char_indices().find(|(_, c)| !(c.is_alphanumeric() || *c == '_'));
        let (end, next) =
            end.map_or((rest.len(), rest.len()), |(at, c)| (at, at.saturating_add(c.len_utf8())));
        let name = rest.get(..end).unwrap_or_default();
        match if is_prose(name) { None } else { name_kind(name) } {
            // Tools that read files write the number of a line before an arrow.
            Some(IdentifierKind::Number) if rest.get(end..).is_some_and(|rest| rest.starts_with('→')) => {}
            Some(_) => visit(name),
            None => {}
        }
        rest = rest.get(next..).unwrap_or_default();
    }
}

/// Calls `visit` with each word between borders that is not all in lower case, and with the classes of its bytes.
fn for_each_word<'t>(text: &'t str, mut visit: impl FnMut(&'t str, u8)) {
    let bytes = text.as_bytes();
    let (mut begin, mut classes, mut at) = (0_usize, 0, 0_usize);
    while let Some(byte) = bytes.get(at) {
        let class = class_of(*byte);
        let border = match class {
            BORDER => 1,
            MAY_BE_BORDER => match text.get(at..).and_then(|text| text.chars().next()) {
                Some(char) if is_border(char) => char.len_utf8(),
                _ => 0,
            },
            _ => 0,
        };
        if border == 0 {
            classes |= class;
            at = at.saturating_add(1);
            continue;
        }
        if classes & !LOWER != 0 {
            visit(text.get(begin..at).unwrap_or_default(), classes);
        }
        at = at.saturating_add(border);
        (begin, classes) = (at, 0);
    }
    if classes & !LOWER != 0 {
        visit(text.get(begin..).unwrap_or_default(), classes);
    }
}

const BORDER: u8 = 0;
const LOWER: u8 = 1;
const UPPER: u8 = 2;
const DIGIT: u8 = 4;
const UNDERSCORE: u8 = 8;
const DOT: u8 = 16;
const SEPARATOR: u8 = 32;
const OTHER: u8 = 64;
const BEYOND_ASCII: u8 = 128;
/// The first byte of a character beyond ASCII that may be a border.
const MAY_BE_BORDER: u8 = BEYOND_ASCII | OTHER;

/// The class of each byte.
static CLASSES: [u8; 256] = {
    let mut classes = [BORDER; 256];
    let (mut left, mut byte): (&mut [u8], u8) = (&mut classes, 0);
    while let [own, others @ ..] = left {
        *own = match byte {
            _ if is_ascii_border(byte) => BORDER,
            b'a'..=b'z' => LOWER,
            b'A'..=b'Z' => UPPER,
            b'0'..=b'9' => DIGIT,
            b'_' => UNDERSCORE,
            b'.' => DOT,
            b'/' | b'\\' => SEPARATOR,
            0..=127 => OTHER,
            // Of U+0080 to U+00BF, of U+1000 to U+3FFF, of U+F000 to U+FFFF, of U+C0000 to U+FFFFF.
            0xC2 | 0xE1..=0xE3 | 0xEF | 0xF3 => MAY_BE_BORDER,
            128.. => BEYOND_ASCII,
        };
        (left, byte) = (others, byte.wrapping_add(1));
    }
    classes
};

fn class_of(byte: u8) -> u8 {
    CLASSES.get(usize::from(byte)).copied().unwrap_or(BORDER)
}

fn classes_of(word: &str) -> u8 {
    word.bytes().fold(0, |classes, byte| classes | class_of(byte))
}

/// Whether a word consists of lower-case letters, perhaps except for the first letter: most words do, and none of them
/// is an identifier.
fn is_prose(word: &str) -> bool {
    match word.as_bytes() {
        [] => true,
        [first, rest @ ..] => first.is_ascii_alphabetic() && rest.iter().all(u8::is_ascii_lowercase),
    }
}

/// A name in code, `snake_case`, `camelCase`, `PascalCase`, `UPPER`; or a number of three digits or more.
fn name_kind(word: &str) -> Option<IdentifierKind> {
    let bytes = word.as_bytes();
    if bytes.len() < 3 || !word.is_ascii() {
        return None;
    }
    if bytes.iter().all(u8::is_ascii_digit) {
        return Some(IdentifierKind::Number);
    }
    let snake = bytes
        .windows(3)
        .any(|three| matches!(three, [a, b'_', b] if a.is_ascii_alphanumeric() && b.is_ascii_alphanumeric()));
    let camel =
        bytes.windows(2).any(|two| matches!(two, [a, b] if a.is_ascii_lowercase() && b.is_ascii_uppercase()));
    let upper = bytes.first().is_some_and(u8::is_ascii_uppercase)
        && bytes.iter().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit());
    (snake || camel || upper).then_some(IdentifierKind::Name)
}

/// Whether a character separates words: no identifier contains it.
fn is_border(c: char) -> bool {
    match u8::try_from(c) {
        Ok(ascii) if ascii.is_ascii() => is_ascii_border(ascii),
        _ => {
            c.is_whitespace()
                || c.is_control()
                || matches!(c, '\u{201c}' | '\u{201d}' | '\u{300c}' | '\u{300d}' | '\u{3001}' | '\u{3002}')
                || is_invisible(c)
        }
    }
}

/// Whether a character is invisible, but no white space: a text with such hidden characters must not pass for one
/// identifier.
const fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{115f}'
            | '\u{1160}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{2064}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

pub(crate) const fn is_ascii_border(byte: u8) -> bool {
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

/// Kind of a word, if a model must be able to write it letter by letter.
fn kind_of(word: &str) -> Option<IdentifierKind> {
    kind_in(word, classes_of(word))
}

/// Kind of a word with bytes of these classes, and perhaps of others. A URL has a separator, a path has a separator or a full stop, and the
/// others have a digit.
fn kind_in(word: &str, classes: u8) -> Option<IdentifierKind> {
    let has = |class: u8| classes & class != 0;
    if has(SEPARATOR) && is_url(word) {
        Some(IdentifierKind::Address)
    } else if has(SEPARATOR | DOT) && has(LOWER | UPPER | BEYOND_ASCII) && is_path(word) {
        Some(IdentifierKind::File)
    } else if has(DIGIT) && is_id(word) {
        Some(IdentifierKind::Id)
    } else if has(DIGIT) && is_amount(word) {
        Some(IdentifierKind::Amount)
    } else {
        None
    }
}

fn is_url(word: &str) -> bool {
    let colon = word.bytes().position(|byte| byte == b':');
    let Some((scheme, rest)) = colon.and_then(|colon| word.split_at_checked(colon)) else { return false };
    rest.strip_prefix("://").is_some_and(|rest| !rest.is_empty())
        && !scheme.is_empty()
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'+')
}

/// `/etc/hosts`, `src/main.rs`, `C:\temp\x`, `main.rs`; not `and/or`, `1/2`.
fn is_path(word: &str) -> bool {
    let is_separator = |b: u8| matches!(b, b'/' | b'\\');
    let separators = word.bytes().filter(|b| is_separator(*b)).count();
    let last = word.bytes().rposition(is_separator).map_or(0, |at| at.saturating_add(1));
    let last = word.get(last..).unwrap_or_default();
    let rooted = || ["/", "./", "../", "~/"].iter().any(|root| word.starts_with(root));
    let named = last.bytes().rposition(|b| b == b'.').is_some_and(|stem| {
        let extension = last.as_bytes().get(stem.saturating_add(1)..).unwrap_or_default();
        stem > 0
            && (1..=6).contains(&extension.len())
            && extension.iter().all(u8::is_ascii_alphanumeric)
            && extension.iter().any(u8::is_ascii_alphabetic)
            // "e.g", "i.e"
            && (separators > 0 || stem > 1)
    });
    let is_one = match separators {
        0 => named && !word.bytes().any(|b| matches!(b, b':' | b'@')),
        1 => named || rooted() && word.len() > 2,
        _ => named || separators > 2 || rooted(),
    };
    is_one && word.chars().any(char::is_alphabetic)
}

/// A UUID, a hash, `PROJ-123`, `#123`, `call_1a2b3c4d`.
fn is_id(word: &str) -> bool {
    if let Some(number) = word.strip_prefix('#') {
        return (1..=12).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit());
    }
    if (7..=64).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-') {
        return word.bytes().any(|b| b.is_ascii_digit()) && word.bytes().any(|b| b.is_ascii_alphabetic());
    }
    let mark = word.bytes().position(|b| matches!(b, b'-' | b'_'));
    let Some((prefix, rest)) = mark.and_then(|mark| word.as_bytes().split_at_checked(mark)) else {
        return false;
    };
    let rest = rest.get(1..).unwrap_or_default();
    if rest.iter().all(u8::is_ascii_digit) {
        return !rest.is_empty() && prefix.len() > 1 && prefix.iter().all(u8::is_ascii_uppercase);
    }
    // An opaque id with a word before it.
    rest.len() >= 8
        && prefix.iter().all(u8::is_ascii_lowercase)
        && rest.iter().all(u8::is_ascii_alphanumeric)
        && rest.iter().filter(|b| b.is_ascii_digit()).count() >= 2
}

/// `42ms`, `3.5GB`, `80%`, `$15`, `1.2.3`.
fn is_amount(word: &str) -> bool {
    let (word, priced) = match word.strip_prefix(['$', '€', '£', '¥']) {
        Some(rest) => (rest, true),
        None => (word, false),
    };
    if !word.bytes().next().is_some_and(|b| b.is_ascii_digit()) {
        return false;
    }
    let number = word.trim_end_matches(|c: char| c.is_alphabetic() || c == '%');
    let unit = word.get(number.len()..).unwrap_or_default();
    let is_number = number.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'_'));
    let is_version = number.bytes().filter(|b| *b == b'.').count() > 1;
    is_number && (priced || is_version || !unit.is_empty() && unit.chars().count() <= 4)
}

#[cfg(test)]
mod tests;
