//! The size of a message: the sum of its parts, and its framing.

mod framing;
mod media;

pub use framing::{Framing, ToolFraming};
pub use media::{ImageRule, MediaRules, Rate};

use crate::message::{CompactionView, MediaKind, MediaView, MessageView, PartView, Parts};
use crate::{Basis, TokenCounter, Tokens};

/// Tokens that frame a message in Chat Completions: see [`Framing::OPENAI`].
pub const MESSAGE_TOKENS: u32 = Framing::OPENAI.message;
/// Tokens for the name of a speaker, in addition to the text of the name.
pub const NAME_TOKENS: u32 = Framing::OPENAI.name;
/// Tokens that frame a call.
pub const CALL_TOKENS: u32 = Framing::OPENAI.call;

/// An amount of tokens with its basis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Amount {
    /// Number of tokens.
    pub tokens: Tokens,
    /// The least certain basis of all terms of the sum.
    pub basis: Basis,
}

impl Amount {
    /// An amount of tokens with its basis.
    #[must_use]
    pub const fn new(tokens: Tokens, basis: Basis) -> Self {
        Self { tokens, basis }
    }

    fn add(&mut self, other: Self) {
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.basis = self.basis.min(other.basis);
    }
}

/// The size of a message: the sum of its parts and its framing.
///
/// The framing is the counter's [`framing`](TokenCounter::framing). Ids count nothing, because models do not see them.
/// Parts count as follows:
///
/// - Signed or encrypted reasoning: its readable text.
/// - A compaction of a provider: its readable text or the tokens of its payload, the larger of both. The provider
///   reports the tokens of the payload; otherwise they are estimated from its length.
/// - Media: by the counter's [`media_rules`](TokenCounter::media_rules), never by the length of their base64.
/// - A part of an unknown kind: as text. In it, the payload of a `data:` URL counts as an image, and so does a string
///   of 256 characters or more that begins like a media file in base64.
///
/// ```
/// use epitome_core::{ClassEstimator, count_message};
/// use epitome_core::message::SimpleMessage;
///
/// let short = count_message(&SimpleMessage::user("Hello"), &ClassEstimator::new());
/// let long = count_message(&SimpleMessage::user("Hello, what can you tell me about llamas?"), &ClassEstimator::new());
/// assert!(short < long);
/// ```
pub fn count_message<M: MessageView + ?Sized>(message: &M, counter: &(impl TokenCounter + ?Sized)) -> Tokens {
    measure_message(message, counter).tokens
}

/// Measures a message as [`count_message`] does, with the basis of the size.
///
/// An exact counter only estimates a size without a published formula, such as an image of unknown extent, or a message
/// for a provider that does not publish its framing.
pub fn measure_message<M: MessageView + ?Sized>(
    message: &M,
    counter: &(impl TokenCounter + ?Sized),
) -> Amount {
    measure_each(message, counter, &mut |_, _| {})
}

/// Measures a message as [`measure_message`] does, and shows each part with its size, that of [`count_part`].
///
/// No text is counted twice.
///
/// ```
/// use epitome_core::message::SimpleMessage;
/// use epitome_core::{ClassEstimator, Tokens, measure_each, measure_message};
///
/// let (message, counter) = (SimpleMessage::user("Hello"), ClassEstimator::new());
/// let mut parts = Tokens::ZERO;
/// let amount = measure_each(&message, &counter, &mut |_, size| parts = parts.saturating_add(size));
/// assert_eq!(amount, measure_message(&message, &counter));
/// assert!(parts < amount.tokens);
/// ```
pub fn measure_each<M: MessageView + ?Sized>(
    message: &M,
    counter: &(impl TokenCounter + ?Sized),
    visit: &mut dyn FnMut(PartView<'_>, Tokens),
) -> Amount {
    let framing = counter.framing();
    let mut amount = Amount::new(Tokens(framing.message), framing.basis.min(counter.basis()));
    if let Some(name) = message.name() {
        amount.add(counter.measure(name));
        amount.tokens = amount.tokens.saturating_add(Tokens(framing.name));
    }
    message.for_each_part(&mut |part| {
        let size = measure_part(part, counter);
        visit(part, size.tokens);
        amount.add(size);
    });
    amount
}

/// The size of some parts, without a message's framing.
pub fn count_parts<P: Parts + ?Sized>(parts: &P, counter: &(impl TokenCounter + ?Sized)) -> Tokens {
    let mut tokens = Tokens::ZERO;
    parts.for_each_part(&mut |part| tokens = tokens.saturating_add(count_part(part, counter)));
    tokens
}

/// The size of one part, without a message's framing.
pub fn count_part(part: PartView<'_>, counter: &(impl TokenCounter + ?Sized)) -> Tokens {
    measure_part(part, counter).tokens
}

/// Measures a part as [`count_part`] does, with the basis of the size.
pub fn measure_part(part: PartView<'_>, counter: &(impl TokenCounter + ?Sized)) -> Amount {
    match part {
        PartView::Text(said) => counter.measure(said),
        PartView::Reasoning(reasoning) => counter.measure(reasoning.text),
        PartView::ToolCall(call) => {
            let mut amount = counter.measure(call.name);
            amount.add(counter.measure(call.arguments));
            amount.tokens = amount.tokens.saturating_add(Tokens(counter.framing().call));
            amount
        }
        // Results nest one level: their content is text and media.
        PartView::ToolResult(result) => measure_flat(result.content, counter),
        PartView::Compaction(compaction) => measure_compaction(compaction, counter),
        PartView::Unknown(unknown) => measure_raw(unknown.raw, counter),
        PartView::Media(media) => counter.media_rules().measure(media),
        PartView::ApprovalRequest(_) | PartView::ApprovalResponse(_) => {
            Amount::new(Tokens::ZERO, counter.basis())
        }
    }
}

/// Measures a source text: a file in it as base64 counts as an image of unknown size, and all else as text.
fn measure_raw(raw: &str, counter: &(impl TokenCounter + ?Sized)) -> Amount {
    // The image is measured as a part, so that a small program contains the rules for media once.
    let image = measure_part(PartView::Media(MediaView::new(MediaKind::Image, "")), counter);
    let (mut amount, mut rest) = (Amount::new(Tokens::ZERO, counter.basis()), raw);
    while let Some(Base64 { before, payload, behind }) = first_base64(rest) {
        amount.add(counter.measure(before));
        // At most one token for a byte: a text may only mention such a URL.
        let most = Tokens(u32::try_from(payload.len()).unwrap_or(u32::MAX));
        amount.add(Amount { tokens: image.tokens.min(most), ..image });
        rest = behind;
    }
    amount.add(counter.measure(rest));
    amount
}

/// A file in base64, and the text around it.
struct Base64<'a> {
    before: &'a str,
    payload: &'a str,
    behind: &'a str,
}

/// Finds the payload of a `data:` URL, or a long string that begins like a file of a known kind: the first of both. The
/// payload ends before the first character that base64 does not use. JSON may escape some characters of base64, and the
/// ends of its lines. The search goes byte by byte: `str::find` takes more of a small device than all other code that
/// counts.
fn first_base64(raw: &str) -> Option<Base64<'_>> {
    const MARK: &[u8; 8] = b";base64,";
    for (at, window) in raw.as_bytes().windows(MARK.len()).enumerate() {
        let is_announced = window == MARK;
        if !is_announced && !begins_file(raw.as_bytes().get(at..)?) {
            continue;
        }
        let (before, found) = raw.split_at_checked(at)?;
        let found = found.get(if is_announced { MARK.len() } else { 1 }..)?;
        let mut behind = found;
        while let [b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' | b'=' | b'-' | b'_', ..]
        | [b'\\', b'/' | b'\\' | b'n' | b'r' | b'u', ..] = behind.as_bytes()
        {
            behind = behind.get(1..)?;
        }
        let payload = found.get(..found.len().saturating_sub(behind.len()))?;
        if is_announced || payload.len() >= FILE_BYTES_MIN {
            return Some(Base64 { before, payload, behind });
        }
    }
    None
}

/// A shorter string may be a word that happens to begin like a file.
const FILE_BYTES_MIN: usize = 256;

/// Whether a string begins here that holds a media file in base64: PNG, JPEG, GIF, TIFF, RIFF (WebP and WAV), PDF, ZIP
/// (office documents), MP3, Ogg, FLAC, Matroska (`WebM`), and all files that begin like MP4 (MOV, HEIC). One encrypted
/// payload in a million begins like this.
fn begins_file(text: &[u8]) -> bool {
    const FILES: [[u8; 4]; 16] = [
        *b"iVBO", *b"/9j/", *b"\\/9j", *b"R0lG", *b"SUkq", *b"TU0A", *b"UklG", *b"JVBE", *b"UEsD", *b"SUQz",
        *b"//uQ", *b"//vQ", *b"\\/\\/", *b"T2dn", *b"Zkxh", *b"GkXf",
    ];
    match text {
        // The size of its first box, less than 16 KiB, and `ftyp`.
        [b'"', b'A', b'A', b'A', _, _, _, b'Z', b'0', b'e', b'X', ..] => true,
        [b'"', four @ ..] => four.first_chunk().is_some_and(|four| FILES.contains(four)),
        _ => false,
    }
}

/// Measures a compaction of a provider: the payload, which this provider reads, or the text, which all others read. The
/// larger size counts, because the reader is not known here. The size of the payload is reported by the provider, or
/// else estimated.
fn measure_compaction(compaction: CompactionView<'_>, counter: &(impl TokenCounter + ?Sized)) -> Amount {
    let text = counter.measure(compaction.text);
    let sealed = compaction.tokens.or(compaction.opaque.map(sealed_tokens)).unwrap_or_default();
    if sealed > text.tokens { Amount::new(sealed, Basis::Estimated) } else { text }
}

/// Estimates the tokens of an encrypted payload from its length: base64 of the text and an envelope of 650 bytes, four
/// bytes a token. Source: Codex (`estimate_reasoning_length`), which uses this formula for encrypted reasoning and
/// compactions.
fn sealed_tokens(opaque: &str) -> Tokens {
    const ENVELOPE_BYTES: usize = 650;
    const TOKEN_BYTES: usize = 4;
    // Four characters of base64 are three bytes.
    let bytes_4 = opaque.len().saturating_mul(3).saturating_sub(4 * ENVELOPE_BYTES);
    Tokens(u32::try_from(bytes_4.div_ceil(4 * TOKEN_BYTES)).unwrap_or(u32::MAX))
}

/// The size of a result's content. A result inside a result counts nothing: no wire format has one.
fn measure_flat(content: &dyn Parts, counter: &(impl TokenCounter + ?Sized)) -> Amount {
    let mut amount = Amount::new(Tokens::ZERO, counter.basis());
    content.for_each_part(&mut |part| {
        if !matches!(part, PartView::ToolResult(_)) {
            amount.add(measure_part(part, counter));
        }
    });
    amount
}

/// The size of a media part, by [`MediaRules::OPENAI`].
#[must_use]
pub fn media_tokens(media: MediaView<'_>) -> Tokens {
    MediaRules::OPENAI.measure(media).tokens
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ClassEstimator;
    use crate::message::{MediaKind, SimpleMessage, UnknownView};

    /// Counts bytes, exactly, for a provider of its own.
    struct Bytes;

    impl TokenCounter for Bytes {
        fn name(&self) -> &str {
            "bytes"
        }

        fn basis(&self) -> Basis {
            Basis::Counted
        }

        fn count(&self, text: &str) -> Tokens {
            Tokens(text.len() as u32)
        }

        fn framing(&self) -> Framing {
            Framing { message: 100, name: 10, call: 1, ..Framing::OPENAI }
        }

        fn media_rules(&self) -> MediaRules {
            MediaRules::ANTHROPIC
        }
    }

    #[test]
    fn a_sealed_compaction_counts_as_reported_or_else_by_its_length() {
        let sealed = std::string::String::from("g").repeat(4_000);
        let view = |text, opaque| CompactionView::new("p", text, opaque);
        let size = |view| measure_part(PartView::Compaction(view), &Bytes);
        // 3,000 bytes less the envelope.
        assert_eq!(size(view("", Some(&sealed))), Amount::new(Tokens(588), Basis::Estimated));
        assert_eq!(size(view("", Some("short"))), Amount::new(Tokens::ZERO, Basis::Counted));
        let told = view("", Some(&sealed)).with_tokens(Some(Tokens(70)));
        assert_eq!(size(told), Amount::new(Tokens(70), Basis::Estimated));
        // Others read the text.
        assert_eq!(size(view("readable", None)), Amount::new(Tokens(8), Basis::Counted));
        let both = view("readable", Some(&sealed)).with_tokens(Some(Tokens(7)));
        assert_eq!(size(both), Amount::new(Tokens(8), Basis::Counted));
        assert_eq!(size(view("readable", Some(&sealed))), Amount::new(Tokens(588), Basis::Estimated));
    }

    /// An image of unknown size by the rules of `Bytes`.
    const IMAGE: u32 = 37 * 37;

    fn raw_bytes(raw: &str) -> u32 {
        measure_part(PartView::Unknown(UnknownView::new("f", "message", raw)), &Bytes).tokens.0
    }

    #[test]
    fn media_in_a_source_text_count_as_media() {
        let image = |payload: &str| std::format!("12data:image/png;base64,{payload}\"45");
        // All other content is text: `12data:image/png`, and the end. A larger case takes an interpreter's memory.
        let [many, some] = if cfg!(miri) { [300; 2] } else { [50_000, 1_000] };
        assert_eq!(raw_bytes(&image(&"iV\\/-_+".repeat(many))), 16 + IMAGE + 3);
        assert_eq!(raw_bytes(&image(&"iV\\\\\\/=".repeat(some))), 16 + IMAGE + 3, "JSON in JSON");
        for escaped in ["iVBO\\u002Bw0K", "iVBORw0K\\n", "iVBORw0K\\r\\n"] {
            assert_eq!(raw_bytes(&image(&escaped.repeat(300))), 16 + IMAGE + 3, "{escaped}");
            assert_eq!(raw_bytes(&std::format!("[\"{}\"]", escaped.repeat(300))), 1 + IMAGE + 2, "{escaped}");
        }
        assert_eq!(raw_bytes(&image("iVBORw0KGgo=")), 16 + 12 + 3, "it has no more than its bytes");
        assert_eq!(raw_bytes("data:image/png;base64,aaaa"), 14 + 4, "nothing is behind");
        assert_eq!(raw_bytes("data:image/png;base64,aaaaé"), 14 + 4 + 2);
        let of = |byte: &str| std::format!("data:image/png;base64,{},x\\n", byte.repeat(1_400));
        assert_eq!(raw_bytes(&(of("A") + &of("B"))), 2 * (14 + IMAGE + 4), "it ends where base64 does");
        for text in ["", "12345", "\"éé\"", "data:image/png;base64"] {
            assert_eq!(raw_bytes(text), text.len() as u32, "no URL: {text}");
        }
        assert_eq!(raw_bytes(&";base64, ".repeat(200)), 200, "nothing but the marks, which are no text");
        let image = PartView::Media(MediaView::new(MediaKind::Image, ""));
        assert_eq!(measure_part(image, &Bytes), Amount::new(Tokens(IMAGE), Basis::Estimated));
    }

    #[test]
    fn strings_that_begin_as_files_do_count_as_media() {
        let begin = [
            "iVBORw0K",
            "/9j/4AAQ",
            "\\/9j\\/4A",
            "R0lGODlh",
            "SUkqAAgA",
            "TU0AKgAA",
            "UklGRgAA",
            "JVBERi0x",
            "UEsDBBQA",
            "SUQzBAAA",
            "//uQxAAA",
            "//vQxAAA",
            "\\/\\/uQxA",
            "T2dnUwAC",
            "ZkxhQwAA",
            "GkXfo59C",
            "AAAAIGZ0eXBp",
            "AAABHGZ0eXBo",
        ];
        // One case takes seconds in an interpreter.
        for begins in begin.iter().step_by(if cfg!(miri) { 6 } else { 1 }) {
            let payload = |bytes: usize| {
                let mut text = std::format!("{begins}{}", "aB+/".repeat(bytes / 4));
                text.truncate(bytes);
                text
            };
            let raw = std::format!("{{\"data\":\"{}\"}}", payload(1_400));
            // The quote before the data is counted with the image: the counter recognizes the data by it.
            assert_eq!(raw_bytes(&raw), 8 + IMAGE + 2, "{begins}");
            assert_eq!(raw_bytes(&raw.replace('"', "\\\"")), 11 + IMAGE + 3, "JSON in JSON: {begins}");
            assert_eq!(raw_bytes(&std::format!("{raw}{raw}")), 2 * (10 + IMAGE), "{begins}");
            assert_eq!(raw_bytes(&std::format!("[\"{}\",", payload(256))), 1 + 256 + 2, "{begins}");
            let short = std::format!("[\"{}\",", payload(255));
            assert_eq!(raw_bytes(&short), 259, "{begins}");
            assert_eq!(raw_bytes(&std::format!("{short}\"{}", payload(1_400))), 259 + IMAGE, "{begins}");
            let others = [raw.replace("\"data\":\"", "\"data\":\" "), raw.replacen(begins, "gAAAAABo", 1)];
            for other in others {
                assert_eq!(raw_bytes(&other), other.len() as u32, "{other}");
            }
        }
    }

    #[test]
    fn a_counter_brings_the_framing_and_the_rules_of_its_provider() {
        let message = SimpleMessage::user("12345");
        assert_eq!(measure_message(&message, &Bytes), Amount::new(Tokens(105), Basis::Counted));
        assert_eq!(count_message(&message, &&Bytes), Tokens(105));
        #[cfg(feature = "alloc")]
        {
            let boxed: alloc::boxed::Box<dyn TokenCounter> = alloc::boxed::Box::new(Bytes);
            let shared: alloc::sync::Arc<dyn TokenCounter> = alloc::sync::Arc::new(Bytes);
            assert_eq!([count_message(&message, &boxed), count_message(&message, &shared)], [Tokens(105); 2]);
        }
        assert_eq!(measure_message(&message, &ClassEstimator::new()).basis, Basis::Estimated);
        let image = PartView::Media(MediaView::new(MediaKind::Image, "image/png"));
        assert_eq!(measure_part(image, &Bytes), Amount::new(Tokens(37 * 37), Basis::Estimated));
    }
}
