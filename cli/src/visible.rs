//! Makes texts of a transcript safe for a terminal: nothing in them moves the cursor, changes a colour, or hides or
//! reverses other text.

use core::fmt::Write as _;

/// A text that may be printed: control characters of foreign texts are shown, not obeyed. Everything except a
/// transcript reaches standard output and standard error in this type.
#[derive(Debug, Default)]
pub(crate) struct Printable(String);

impl Printable {
    /// Adds a drawing of the program, which may have colours.
    pub(crate) fn push_drawing(&mut self, drawing: &str) {
        self.0 += drawing;
    }

    /// Adds a text and makes it safe.
    pub(crate) fn push(&mut self, text: &str) {
        self.0 += &lines(text);
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl<T: AsRef<str>> From<T> for Printable {
    fn from(text: T) -> Self {
        Self(lines(text.as_ref()))
    }
}

/// `text` on one line: line breaks and tabs are shown too.
pub(crate) fn line(text: &str) -> String {
    shown(text, |_| false)
}

/// `text` on its lines: line breaks and tabs stay.
pub(crate) fn lines(text: &str) -> String {
    let stays = |one: char| matches!(one, '\n' | '\t');
    if text.contains('\r') { shown(&text.replace("\r\n", "\n"), stays) } else { shown(text, stays) }
}

fn shown(text: &str, stays: impl Fn(char) -> bool) -> String {
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~') || stays(char::from(*byte));
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    loop {
        // Nearly every text is plain, and is copied in one piece.
        let plain = text.bytes().skip(at).take_while(is_plain).count();
        let (passed, rest) = text.split_at_checked(at.saturating_add(plain)).unwrap_or((text, ""));
        out.push_str(passed.get(at..).unwrap_or_default());
        let mut after = rest.chars();
        let Some(one) = after.next() else { return out };
        let shows =
            passed.chars().next_back().is_some_and(|before| selects_emoji(before, one, after.as_str()));
        match one {
            _ if shows => out.push(one),
            '\0'..='\x1f' => out.push(picture(one)),
            _ if is_obeyed(one) => {
                // The escape of JSON, so that JSON keeps its meaning. Writing into a text does not fail.
                for unit in one.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            _ => out.push(one),
        }
        at = text.len().saturating_sub(after.as_str().len());
    }
}

/// The symbol of a control character: `␛` for escape.
fn picture(control: char) -> char {
    char::from_u32(PICTURES + u32::from(control)).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// First of the symbols of the control characters: Unicode's block Control Pictures.
const PICTURES: u32 = 0x2400;

/// Whether a terminal obeys a character, or does not show it, besides the first controls of ASCII.
///
/// These are the later controls, breaks of lines and paragraphs, marks that turn the direction of writing
/// (<https://trojansource.codes>), and all characters without a width in which a text can be hidden. Joiners stay,
/// because scripts and emoji need them.
const fn is_obeyed(one: char) -> bool {
    let is_control = matches!(one, '\x7f'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{fff9}'..='\u{fffb}');
    is_control || is_ignorable(one) && !matches!(one, '\u{200c}' | '\u{200d}')
}

/// Unicode's `Default_Ignorable_Code_Point`.
const fn is_ignorable(one: char) -> bool {
    matches!(
        one,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Whether `one`, between `before` and `after`, selects the picture of a sign that is also a letter, as in `❤️` and
/// `1️⃣`. There it is visible, anywhere else it is not.
fn selects_emoji(before: char, one: char, after: &str) -> bool {
    one == '\u{fe0f}'
        && match before {
            '#' | '*' | '0'..='9' => after.starts_with('\u{20e3}'),
            '©' | '®' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{3030}' | '\u{303d}'
            | '㊗' | '㊙' => true,
            '\u{2194}'..='\u{21aa}' | '\u{231a}'..='\u{23ff}' | '\u{24c2}' | '\u{25aa}'..='\u{27bf}' => true,
            '\u{2934}' | '\u{2935}' | '\u{2b05}'..='\u{2b55}' | '\u{1f000}'..='\u{1faff}' => true,
            _ => false,
        }
}

/// `text` with the size of each run of base64 in its place: base64 is useless to a reader, and fills a terminal.
pub(crate) fn without_base64(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut rest, mut run) = (text, 0);
    while let Some(next) = rest.get(run..).and_then(|rest| rest.chars().next()) {
        if is_base64(next) {
            run += next.len_utf8();
            continue;
        }
        rest = close(rest, run, next.len_utf8(), &mut out);
        run = 0;
    }
    close(rest, run, 0, &mut out);
    out
}

/// Adds the run at the beginning of `rest` and the `more` bytes after it to `out`. Returns the rest.
fn close<'a>(rest: &'a str, run: usize, more: usize, out: &mut String) -> &'a str {
    let (blob, after) = rest.split_at_checked(run).unwrap_or((rest, ""));
    match is_blob(blob) {
        true => *out += &format!("[{} of base64]", crate::amount::counted(blob.len() as u64, "character")),
        false => out.push_str(blob),
    }
    let (passed, left) = after.split_at_checked(more).unwrap_or((after, ""));
    out.push_str(passed);
    left
}

const fn is_base64(one: char) -> bool {
    matches!(one, 'A'..='Z' | 'a'..='z' | '0'..='9' | '+' | '/' | '=' | '-' | '_')
}

/// Whether a run is longer than any word or path, and has capitals, small letters and digits, as base64 has.
fn is_blob(run: &str) -> bool {
    let has = |kind: fn(&u8) -> bool| run.bytes().any(|byte| kind(&byte));
    run.len() >= BLOB_CHARS_MIN
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_digit)
}

/// Minimum length of a run of base64: longer than hashes, keys and paths, and shorter than an icon of 16 by 16 pixels.
const BLOB_CHARS_MIN: usize = 256;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::Regex;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

        #[test]
        fn any_text_is_safe_and_what_is_safe_stays(text in any::<String>(), odd in "[\\x00-\\x1f\\u{202a}-\\u{202e}\\u{ad}\\u{fe00}-\\u{fe0f}❤1\\u{20e3}a \n\t]{0,9}") {
            let text = format!("{odd}{text}");
            let (one, all) = (line(&text), lines(&text));
            prop_assert_eq!(left(&one), "");
            prop_assert_eq!(left(&all).replace(['\n', '\t'], ""), "");
            // Safe text is unchanged.
            prop_assert_eq!((line(&one), lines(&all)), (one.clone(), all));
        }

        #[test]
        fn only_runs_of_base64_are_cut(words in prop::collection::vec("[a-zA-Z0-9+/=_é .,-]{0,40}", 0..9), long in 0_usize..9) {
            let blob = "aB3+".repeat(80);
            let mut with = words.clone();
            with.insert(long.min(words.len()), format!(" {blob} "));
            let (plain, with) = (words.join("\n"), with.join("\n"));
            prop_assert_eq!(without_base64(&plain), plain);
            prop_assert_eq!(without_base64(&with), with.replace(&blob, "[320 characters of base64]"));
        }
    }

    /// Unsafe characters that are left in `shown`.
    fn left(shown: &str) -> String {
        let mut left = String::new();
        for (at, one) in shown.char_indices() {
            let before = shown[..at].chars().next_back();
            let is_seen =
                before.is_some_and(|before| selects_emoji(before, one, &shown[at + one.len_utf8()..]));
            left.extend(Some(one).filter(|one| one.is_control() || is_obeyed(*one) && !is_seen));
        }
        left
    }

    #[test]
    fn what_is_ignorable_is_what_unicode_says() {
        let property = Regex::new(r"^\p{Default_Ignorable_Code_Point}$").unwrap();
        for one in '\0'..=char::MAX {
            assert_eq!(is_ignorable(one), property.is_match(one.encode_utf8(&mut [0; 4])), "{one:?}");
        }
    }

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        let nasty: String = (0..=0x1f_u32)
            .chain(0x7f..=0x9f)
            .chain([
                0x61c, 0x200b, 0x202e, 0x2028, 0x2066, 0xfeff, 0xe0041, 0xad, 0x115f, 0x3164, 0xffa0,
                0xe0100, 0xfe0f,
            ])
            .filter_map(char::from_u32)
            .collect();
        for shown in [line(&nasty), lines(&nasty)] {
            let left = left(&shown);
            assert!(left.chars().all(|one| matches!(one, '\n' | '\t')), "{left:?}");
        }
        // A variation selector is valid once, after a sign with a variation.
        assert_eq!(line("a\u{fe0f}❤\u{fe0f}\u{fe0f}1\u{fe0f}"), "a\\ufe0f❤\u{fe0f}\\ufe0f1\\ufe0f");
        assert_eq!(line("a\u{1b}[31mb\n\u{7f}"), "a␛[31mb␊\\u007f");
        assert_eq!(lines("a\r\nb\rc\t\u{202e}"), "a\nb␍c\t\\u202e");
        // Texts of people are unchanged.
        for said in ["naïve 日本語 👩‍💻 ½", "می\u{200c}خواهم", "❤\u{fe0f} 1\u{fe0f}\u{20e3} ⚠\u{fe0f}"]
        {
            assert_eq!((line(said), lines(said)), (said.to_owned(), said.to_owned()));
        }
    }

    #[test]
    fn base64_is_a_size() {
        let blob = "iVBORw0KGgo/+A".repeat(30);
        let text = format!("see data:image/png;base64,{blob}) and 日本");
        assert_eq!(without_base64(&text), "see data:image/png;base64,[420 characters of base64]) and 日本");
        assert_eq!(without_base64(&blob), "[420 characters of base64]");
        for stays in ["", "short", &"a".repeat(900), &"lower/and-dashes_1".repeat(40)] {
            assert_eq!(without_base64(stays), *stays);
        }
    }
}
