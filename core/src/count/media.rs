//! Token counts of images, sounds, videos and documents.

use super::Amount;
use crate::message::{MediaExtent, MediaKind, MediaView};
use crate::{Basis, Profile, Tokens};

/// The rules by which a provider counts media.
///
/// Plain data: a caller with better figures changes a field.
///
/// ```
/// use epitome_core::message::{MediaExtent, MediaKind, MediaView};
/// use epitome_core::{Basis, MediaRules};
///
/// let mut extent = MediaExtent::UNKNOWN;
/// extent.pixels = Some((1_920, 1_080));
/// let image = MediaView::new(MediaKind::Image, "image/png").with_extent(extent);
/// assert_eq!(MediaRules::OPENAI.measure(image).tokens.0, 1_105);
/// assert_eq!(MediaRules::ANTHROPIC.measure(image).tokens.0, 1_560);
/// assert_eq!(MediaRules::GEMINI.measure(image).tokens.0, 1_548);
/// assert_eq!(MediaRules::OPENAI.measure(image).basis, Basis::Counted);
/// // Of unknown extent it is an estimate.
/// let unknown = MediaView::new(MediaKind::Image, "image/png");
/// assert_eq!(MediaRules::OPENAI.measure(unknown).basis, Basis::Estimated);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_structs, reason = "a literal that ends in ..OPENAI outlives a new field")]
pub struct MediaRules {
    /// Images.
    pub image: ImageRule,
    /// A second of sound.
    pub audio: Rate,
    /// A second of video, its sound included.
    pub video: Rate,
    /// A page of a document.
    pub page: Rate,
}

/// Tokens for a unit: a second, a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_structs, reason = "a number and how it is known")]
pub struct Rate {
    /// For one unit.
    pub tokens: u32,
    /// [`Basis::Counted`] if the provider published it, else [`Basis::Estimated`].
    pub basis: Basis,
}

/// The rule that gives the tokens of an image from its width and height. Every rule is bounded: a header that lies about billions
/// of pixels counts as the largest image that the provider looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ImageRule {
    /// The image is fitted into 2,048 x 2,048 pixels, and its shorter side into 768: `base` tokens, and `tile` tokens
    /// for each started square of 512. An image of low detail has `base` tokens.
    ///
    /// Source: `OpenAI`, "Images and vision" (<https://platform.openai.com/docs/guides/images-vision>).
    Tiles {
        /// Tokens of every image.
        base: u32,
        /// Tokens of each tile.
        tile: u32,
    },
    /// The image is fitted into `edge_max` and `patches_max`: one token for each started square of 32, times
    /// `per_mille / 1,000`. An image of low detail is fitted into 512 x 512 first. A request for high detail and a
    /// request without a detail count alike.
    ///
    /// Source: the same page: the scaling by the root, then down to a whole number of squares.
    Patches {
        /// Maximum length of the longer side, in pixels.
        edge_max: u32,
        /// Maximum number of squares.
        patches_max: u32,
        /// The model's multiplier, in thousandths.
        per_mille: u32,
    },
    /// The image is fitted into `edge_max` and `tokens_max`: one token for each started square of 28.
    ///
    /// Source: Anthropic, "Vision" (<https://platform.claude.com/docs/en/build-with-claude/vision>).
    Squares {
        /// Maximum length of the longer side, in pixels.
        edge_max: u32,
        /// Maximum number of squares.
        tokens_max: u32,
    },
    /// The image is fitted into `edge_max`: one token for each 750 pixels, at most `tokens_max`.
    ///
    /// Source: the same page, as it was for the third generation of its models.
    Area {
        /// Maximum length of the longer side, in pixels.
        edge_max: u32,
        /// Maximum number of tokens of an image.
        tokens_max: u32,
    },
    /// An image up to 384 x 384 has `tokens` tokens. A larger image is fitted into 3,072 x 3,072: `tokens` for each
    /// started square of two thirds of the shorter side, which is at least 256 and at most 768.
    ///
    /// Source: Google, "Image understanding" (<https://ai.google.dev/gemini-api/docs/image-understanding>); the bounds: Firebase,
    /// "Supported input files" (<https://firebase.google.com/docs/vertex-ai/input-file-requirements>).
    Crops {
        /// Tokens of each crop.
        tokens: u32,
    },
    /// About the same number for every image. It is always an estimate: the published figure is the maximum of an
    /// image, or an approximation.
    Fixed {
        /// Tokens of each image.
        tokens: u32,
    },
}

impl MediaRules {
    /// `OpenAI`: tiles of GPT-4o. All rates but those of images are estimates.
    ///
    /// Ten tokens for a second of a user's sound is published for the realtime models alone
    /// (<https://developers.openai.com/api/docs/guides/realtime-costs>; twice that for the assistant's). Nothing is
    /// published for video and pages: ten tokens a second, 1,500 a page.
    pub const OPENAI: Self = Self {
        image: ImageRule::Tiles { base: 85, tile: 170 },
        audio: Rate { tokens: 10, basis: Basis::Estimated },
        video: Rate { tokens: 10, basis: Basis::Estimated },
        page: Rate { tokens: 1_500, basis: Basis::Estimated },
    };

    /// Anthropic: squares of 28, up to 1,568 tokens; a document of 3 pages has about 7,000 tokens ("PDF support").
    pub const ANTHROPIC: Self = Self {
        image: ImageRule::Squares { edge_max: 1_568, tokens_max: 1_568 },
        page: Rate { tokens: 2_334, basis: Basis::Estimated },
        ..Self::OPENAI
    };

    /// Gemini 2: crops of 258 tokens; 32 tokens for a second of sound.
    ///
    /// The figures of 263 for a second of video and 258 for a page (<https://ai.google.dev/gemini-api/docs/tokens>,
    /// <https://ai.google.dev/gemini-api/docs/document-processing>) are estimates, because the profile does not name
    /// the generation of the model: see [`MediaRules::GEMINI_3`].
    pub const GEMINI: Self = Self {
        image: ImageRule::Crops { tokens: 258 },
        audio: Rate { tokens: 32, basis: Basis::Counted },
        video: Rate { tokens: 263, basis: Basis::Estimated },
        page: Rate { tokens: 258, basis: Basis::Estimated },
    };

    /// Gemini 3, where the requested resolution decides.
    ///
    /// By default an image has up to 1,120 tokens, a frame of video 70 (one a second, and its sound), and a page 560
    /// and its text. The source (<https://ai.google.dev/gemini-api/docs/media-resolution>) calls its figures
    /// approximate: all rates but that of sound are estimates.
    pub const GEMINI_3: Self = Self {
        image: ImageRule::Fixed { tokens: 1_120 },
        video: Rate { tokens: 70 + 32, basis: Basis::Estimated },
        page: Rate { tokens: 560, basis: Basis::Estimated },
        ..Self::GEMINI
    };

    /// The rules of `profile`. A provider without published rules has those of [`MediaRules::OPENAI`].
    #[must_use]
    pub const fn of(profile: Profile) -> Self {
        match profile {
            Profile::Anthropic | Profile::BedrockConverse => Self::ANTHROPIC,
            Profile::Gemini => Self::GEMINI,
            _ => Self::OPENAI,
        }
    }

    /// The size of a media part, never by the length of its base64.
    ///
    /// A part of unknown extent is an estimate: an image counts as 1,024 x 1,024, a sound or video as a minute, and a
    /// document as one page.
    #[must_use]
    pub fn measure(&self, media: MediaView<'_>) -> Amount {
        let MediaExtent { pixels, millis, pages, low_detail } = media.extent;
        match media.kind {
            MediaKind::Image => {
                let basis = match (self.image, pixels) {
                    (ImageRule::Fixed { .. }, _) => Basis::Estimated,
                    (_, Some((width, height))) if width > 0 && height > 0 => Basis::Counted,
                    _ => Basis::Estimated,
                };
                let tokens = self.image.tokens(pixels.unwrap_or(PIXELS_DEFAULT), low_detail);
                Amount::new(tokens, basis)
            }
            MediaKind::Audio => self.audio.of(millis.map(seconds), SECONDS_DEFAULT),
            MediaKind::Video => self.video.of(millis.map(seconds), SECONDS_DEFAULT),
            MediaKind::Document => self.page.of(pages, 1),
        }
    }
}

impl Default for MediaRules {
    fn default() -> Self {
        Self::OPENAI
    }
}

impl Rate {
    fn of(self, units: Option<u32>, default: u32) -> Amount {
        let basis = if units.is_some() { self.basis } else { Basis::Estimated };
        Amount::new(Tokens(units.unwrap_or(default).saturating_mul(self.tokens)), basis)
    }
}

impl ImageRule {
    /// The tokens of an image of `(width, height)` pixels; a side of zero counts as one pixel.
    #[must_use]
    pub fn tokens(self, (width, height): (u32, u32), low_detail: bool) -> Tokens {
        let image = Rectangle { width: u64::from(width.max(1)), height: u64::from(height.max(1)) };
        let tokens = match self {
            Self::Tiles { base, .. } if low_detail => u64::from(base),
            Self::Tiles { base, tile } => {
                let image = image.longer_side_within(2_048).shorter_side_within(768);
                image.squares(512).saturating_mul(tile.into()).saturating_add(base.into())
            }
            Self::Patches { edge_max, patches_max, per_mille } => {
                let edge = if low_detail { 512 } else { u64::from(edge_max) };
                let patches = image.longer_side_within(edge).squares_within(PATCH, patches_max.into());
                patches.saturating_mul(per_mille.into()).div_ceil(1_000)
            }
            Self::Squares { edge_max, tokens_max } => {
                image.steps_within(edge_max.into(), 28, tokens_max.into())
            }
            Self::Area { edge_max, tokens_max } => {
                let image = image.longer_side_within(edge_max.into());
                image.width.saturating_mul(image.height).div_ceil(750).min(tokens_max.into())
            }
            Self::Crops { tokens } if image.width <= 384 && image.height <= 384 => u64::from(tokens),
            Self::Crops { tokens } => {
                let image = image.longer_side_within(3_072);
                let side = image.width.min(image.height).saturating_mul(2) / 3;
                image.squares(side.clamp(256, 768)).saturating_mul(tokens.into())
            }
            Self::Fixed { tokens } => u64::from(tokens),
        };
        Tokens::from_u64(tokens)
    }
}

/// An image that is scaled down. Its sides are at least 1. They come from 32 bits, so that their products fit.
#[derive(Clone, Copy)]
struct Rectangle {
    width: u64,
    height: u64,
}

impl Rectangle {
    fn longer_side_within(self, most: u64) -> Self {
        self.scaled(most, self.width.max(self.height))
    }

    fn shorter_side_within(self, most: u64) -> Self {
        self.scaled(most, self.width.min(self.height))
    }

    /// Scaled so that `side` becomes `most`; never larger than it is.
    fn scaled(self, most: u64, side: u64) -> Self {
        if side <= most {
            return self;
        }
        Self { width: scale(self.width, most, side), height: scale(self.height, most, side) }
    }

    /// Number of squares of `side` that cover the image.
    const fn squares(self, side: u64) -> u64 {
        self.width.div_ceil(side).saturating_mul(self.height.div_ceil(side))
    }

    /// Number of squares that cover the image after it was scaled to at most `most` squares. The scale is the root of
    /// the ratio of the areas, lowered until one side is a whole number of squares: the side that needs the least.
    fn squares_within(self, side: u64, most: u64) -> u64 {
        let squares = self.squares(side);
        if squares <= most {
            return squares;
        }
        let Self { width, height } = self;
        let columns = most.saturating_mul(width).checked_div(height).unwrap_or(0).isqrt().max(1);
        let rows = most.saturating_mul(height).checked_div(width).unwrap_or(0).isqrt().max(1);
        let (columns, rows) = if columns.saturating_mul(height) < rows.saturating_mul(width) {
            (columns, columns.saturating_mul(height).div_ceil(width))
        } else {
            (rows.saturating_mul(width).div_ceil(height), rows)
        };
        columns.saturating_mul(rows).min(most)
    }

    /// Number of squares of `side` that cover the image after it was scaled. The longer side is then the largest whole
    /// number of squares, at most `edge` long, at which the image has at most `most` squares.
    fn steps_within(self, edge: u64, side: u64, most: u64) -> u64 {
        let (longer, shorter) = (self.width.max(self.height), self.width.min(self.height));
        if longer <= edge && self.squares(side) <= most {
            return self.squares(side);
        }
        let first = longer.min(edge).checked_div(side).unwrap_or(1);
        (1..=first)
            .rev()
            .map(|columns| {
                columns.saturating_mul(scale(shorter, columns.saturating_mul(side), longer).div_ceil(side))
            })
            .find(|squares| *squares <= most)
            .unwrap_or(most)
    }
}

/// `side` times `to` over `from`, rounded to the nearest, at least one pixel. It uses a division of 32 bits, because
/// one of 64 bits takes 900 bytes of a small device. The result is exact for products of 32 bits, and for larger ones
/// to a pixel in so many thousands.
fn scale(side: u64, to: u64, from: u64) -> u64 {
    let product = side.saturating_mul(to).saturating_add(from / 2);
    let beyond = u32::BITS.saturating_sub((product | from).leading_zeros());
    let bits = |number: u64| (number >> beyond) as u32;
    bits(product).checked_div(bits(from)).unwrap_or(1).max(1).into()
}

const fn seconds(millis: u32) -> u32 {
    millis.div_ceil(1_000)
}

/// The side of a square, in pixels, by [`ImageRule::Patches`].
const PATCH: u64 = 32;
/// Extent of an image of unknown extent: that of an ordinary screenshot, once it is scaled.
const PIXELS_DEFAULT: (u32, u32) = (1_024, 1_024);
/// Length of a sound or video of unknown length.
const SECONDS_DEFAULT: u32 = 60;

#[cfg(test)]
mod tests;
