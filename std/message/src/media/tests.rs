//! Image headers that are whole, cut off or false.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// The first bytes of a PNG of this size.
fn png(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
    bytes.extend(width.to_be_bytes());
    bytes.extend(height.to_be_bytes());
    bytes.extend(b"\x08\x06\0\0\0");
    bytes
}

/// A JPEG of this size, after `padding` bytes of other data.
fn jpeg(width: u16, height: u16, padding: usize) -> Vec<u8> {
    let mut bytes = vec![0xFF, 0xD8];
    for _ in 0..padding / 60_000 + 1 {
        let part = padding.min(60_000);
        bytes.extend([0xFF, 0xE1]);
        bytes.extend(((part + 2) as u16).to_be_bytes());
        bytes.extend(core::iter::repeat_n(0x20, part));
    }
    bytes.extend([0xFF, 0xC0, 0, 17, 8]);
    bytes.extend(height.to_be_bytes());
    bytes.extend(width.to_be_bytes());
    bytes.extend([3, 1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1]);
    bytes
}

fn gif(width: u16, height: u16) -> Vec<u8> {
    [b"GIF89a".as_slice(), &width.to_le_bytes(), &height.to_le_bytes(), &[0; 8]].concat()
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word =
            chunk.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for at in 0..=chunk.len() {
            text.push(ALPHABET[(word >> (18 - 6 * at)) as usize & 63] as char);
        }
    }
    text + ["", "==", "="][bytes.len() % 3]
}

#[test]
fn sizes_are_read_from_headers() {
    assert_eq!(pixels(&png(640, 480)), Some((640, 480)));
    assert_eq!(pixels(&jpeg(1_920, 1_080, 10)), Some((1_920, 1_080)));
    assert_eq!(pixels(&gif(320, 200)), Some((320, 200)));
    for bytes in
        [png(640, 480), jpeg(640, 480, 10), jpeg(640, 480, 5_000), jpeg(640, 480, 100_000), gif(640, 480)]
    {
        assert_eq!(pixels_of_base64(&base64(&bytes)), Some((640, 480)));
    }
    let broken_up = base64(&png(640, 480)).replace("AA", "A\r\nA");
    assert_eq!(pixels_of_base64(&broken_up), Some((640, 480)));
}

#[test]
fn headers_that_are_cut_off_or_lie_say_nothing_or_something_bounded() {
    for (bytes, header) in [(png(640, 480), 24), (jpeg(640, 480, 10), 25), (gif(640, 480), 10)] {
        for end in 0..header {
            assert_eq!(pixels(&bytes[..end]), None, "{end}");
        }
    }
    assert_eq!(pixels(&png(0, 480)), None);
    assert_eq!(pixels(&gif(0, 0)), None);
    assert_eq!(pixels(&png(u32::MAX, u32::MAX)), Some((u32::MAX, u32::MAX)));
    assert_eq!(pixels_of_base64(""), None);
    assert_eq!(pixels_of_base64("data:image/png;base64,iVBORw0KGgo"), None);
    // The size comes after the bytes that are examined.
    assert_eq!(pixels_of_base64(&base64(&jpeg(640, 480, 600_000))), None);
}

#[test]
fn no_more_is_decoded_than_was_asked_for() {
    let data = base64(&[7; 10_000]);
    for bytes in [0, 1, 64, 9_999, 10_000, 20_000] {
        let head = decode_head(&data, bytes);
        assert!(head.len() <= bytes.max(1) && head.iter().all(|byte| *byte == 7));
    }
    assert_eq!(decode_head(&base64(b"any carnal pleas"), 100), b"any carnal pleas");
}

proptest! {
    #[test]
    fn no_bytes_are_too_strange(
        head in prop::sample::select(vec![png(1, 1), jpeg(1, 1, 4), gif(1, 1), b"RIFF\x10\0\0\0WEBPVP8X".to_vec(),
            b"BM".to_vec(), b"II*\0\x08\0\0\0".to_vec(), b"\0\0\0\x18ftypheic".to_vec(), Vec::new()]),
        keep in 0_usize..40,
        rest in vec(any::<u8>(), 0..200),
    ) {
        let bytes: Vec<u8> = head.into_iter().take(keep).chain(rest).collect();
        let found = pixels(&bytes);
        prop_assert!(found.is_none_or(|(width, height)| width > 0 && height > 0));
        prop_assert_eq!(pixels_of_base64(&base64(&bytes)), found);
    }

    #[test]
    fn base64_is_decoded_as_it_was_encoded(bytes in vec(any::<u8>(), 0..300)) {
        prop_assert_eq!(decode_head(&base64(&bytes), 300), bytes);
    }
}
