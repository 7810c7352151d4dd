//! The extent of media, from the first bytes of their files.
//!
//! ```
//! use epitome_message::media::pixels_of_base64;
//!
//! let png = "iVBORw0KGgoAAAANSUhEUgAAAoAAAAHgCAYAAAA10dzkAAAABHNCSVQ=";
//! assert_eq!(pixels_of_base64(png), Some((640, 480)));
//! assert_eq!(pixels_of_base64("no image"), None);
//! ```
//!
//! A header can claim any extent. Only [`MediaRules`](epitome_core::MediaRules) use the extent, and they count no
//! image as more than the largest one that a provider reads.

/// A PNG of one transparent pixel. It replaces a cleared image in formats that accept only an image in its place.
pub const PIXEL: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

/// Width and height of an image, from the first bytes of its file. `None` if `bytes` has no whole header of a known
/// format (PNG, JPEG, GIF, WebP, BMP, TIFF, HEIF and AVIF), or if a side is zero or exceeds 32 bits.
///
/// ```
/// use epitome_message::media::pixels;
///
/// let gif = b"GIF89a\x20\x03\x58\x02\x00\x00\x00";
/// assert_eq!((pixels(gif), pixels(b"GIF")), (Some((800, 600)), None));
/// ```
#[must_use]
pub fn pixels(bytes: &[u8]) -> Option<(u32, u32)> {
    let size = imagesize::blob_size(bytes).ok()?;
    let side = |pixels: usize| u32::try_from(pixels).ok().filter(|pixels| *pixels > 0);
    Some((side(size.width)?, side(size.height)?))
}

/// [`pixels`] of an image in base64. It decodes only as much as the header needs, at most 256 KiB.
#[must_use]
pub fn pixels_of_base64(data: &str) -> Option<(u32, u32)> {
    // Most headers end within the first 64 bytes. In a photograph, a colour profile and a thumbnail may come first.
    HEADS_BYTES.iter().find_map(|bytes| pixels(&decode_head(data, *bytes)))
}

/// The first bytes that `data` encodes, at most `bytes_max`, up to the first character that is not base64. White
/// space is skipped; both base64 alphabets are accepted.
fn decode_head(data: &str, bytes_max: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(bytes_max.min(data.len()));
    let (mut held, mut bits) = (0_u32, 0_u32);
    for symbol in data.bytes().filter(|byte| !byte.is_ascii_whitespace()) {
        let Some(value) = value_of(symbol) else { break };
        held = held << 6 | value;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((held >> bits) as u8);
            held &= (1 << bits) - 1;
        }
        if bytes.len() >= bytes_max {
            break;
        }
    }
    bytes
}

fn value_of(symbol: u8) -> Option<u32> {
    Some(u32::from(match symbol {
        b'A'..=b'Z' => symbol - b'A',
        b'a'..=b'z' => symbol - b'a' + 26,
        b'0'..=b'9' => symbol - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    }))
}

/// Lengths of the decoded beginning of a file in bytes, one attempt after the other.
const HEADS_BYTES: [usize; 3] = [64, 4 * 1024, 256 * 1024];

#[cfg(test)]
mod tests;
