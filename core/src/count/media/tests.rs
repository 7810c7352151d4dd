//! The published examples, and the bounds.

use super::*;

const GPT_4O: ImageRule = ImageRule::Tiles { base: 85, tile: 170 };
const O4_MINI: ImageRule = ImageRule::Patches { edge_max: 2_048, patches_max: 1_536, per_mille: 1_720 };
const ONE_TO_ONE: ImageRule = ImageRule::Patches { edge_max: u32::MAX, patches_max: 1_536, per_mille: 1_000 };
const CLAUDE: ImageRule = ImageRule::Squares { edge_max: 1_568, tokens_max: 1_568 };
const CLAUDE_HIGH: ImageRule = ImageRule::Squares { edge_max: 2_576, tokens_max: 4_784 };
const CLAUDE_3: ImageRule = ImageRule::Area { edge_max: 1_568, tokens_max: 1_600 };
const GEMINI: ImageRule = ImageRule::Crops { tokens: 258 };

#[test]
fn images_count_by_the_published_examples() {
    for (rule, width, height, tokens) in [
        (GPT_4O, 1_024, 1_024, 765),
        (GPT_4O, 2_048, 4_096, 1_105),
        (ONE_TO_ONE, 1_024, 1_024, 1_024),
        (ONE_TO_ONE, 1_800, 2_400, 1_452),
        (ONE_TO_ONE, 2_049, 513, 1_105),
        (CLAUDE, 1_920, 1_080, 1_560),
        (CLAUDE, 1_080, 1_920, 1_560),
        (CLAUDE_HIGH, 1_920, 1_080, 2_691),
        (CLAUDE_HIGH, 3_840, 2_160, 4_784),
        (CLAUDE_HIGH, 3_024, 1_964, 4_760),
        (CLAUDE_HIGH, 4_032, 3_024, 4_740),
        (CLAUDE_3, 200, 200, 54),
        (CLAUDE_3, 1_000, 1_000, 1_334),
        (GEMINI, 384, 384, 258),
        (GEMINI, 385, 10, 516),
        (GEMINI, 960, 540, 1_548),
        (GEMINI, 1_000, 1_000, 1_032),
    ] {
        assert_eq!(rule.tokens((width, height), false), Tokens(tokens), "{rule:?} {width} x {height}");
    }
}

#[test]
fn low_detail_is_cheap() {
    assert_eq!(GPT_4O.tokens((4_000, 4_000), true), Tokens(85));
    assert_eq!(O4_MINI.tokens((4_000, 4_000), true), Tokens(441));
    assert_eq!(O4_MINI.tokens((64, 32), true), O4_MINI.tokens((64, 32), false));
}

/// Side lengths in headers, false ones included.
const SIDES: [u32; 14] =
    [0, 1, 27, 28, 29, 512, 513, 769, 1_568, 4_096, 65_535, 1 << 20, u32::MAX - 1, u32::MAX];

#[test]
fn no_header_leads_past_what_the_provider_looks_at() {
    let largest =
        [(GPT_4O, 1_445), (O4_MINI, 2_642), (CLAUDE, 1_568), (CLAUDE_HIGH, 4_784), (CLAUDE_3, 1_600)];
    for (rule, most) in largest.into_iter().chain([(GEMINI, 24 * 258)]) {
        for (width, height) in SIDES.into_iter().flat_map(|width| SIDES.map(|height| (width, height))) {
            let tokens = rule.tokens((width, height), false).0;
            assert!((1..=most).contains(&tokens), "{rule:?} {width} x {height}: {tokens}");
        }
    }
}

#[test]
fn sides_are_scaled_as_by_a_division_of_64_bits() {
    for (from, to) in SIDES.into_iter().flat_map(|from| [768, 1_568, 2_048].map(|to| (u64::from(from), to))) {
        for side in SIDES.map(u64::from).into_iter().filter(|side| *side <= from && to <= from) {
            let (scaled, exact) = (scale(side, to, from), ((side * to + from / 2) / from).max(1));
            let fits = side * to + from / 2 <= u32::MAX.into();
            assert!(
                scaled == exact || !fits && scaled.abs_diff(exact) == 1,
                "{side} * {to} / {from}: {scaled}"
            );
        }
    }
}

#[test]
fn a_larger_image_of_the_same_shape_counts_nearly_as_much_or_more() {
    for rule in [GPT_4O, O4_MINI, CLAUDE, CLAUDE_HIGH, CLAUDE_3, GEMINI] {
        let tokens = |side: u32| rule.tokens((side * 4, side * 3), false).0;
        // Scaling rounds to squares, so the count may fall a little where scaling begins.
        assert!((1..600).all(|side| tokens(side * 2) * 10 >= tokens(side) * 9), "{rule:?}");
    }
}

#[test]
fn what_is_not_known_is_an_estimate() {
    let of = |kind, extent| MediaRules::GEMINI.measure(MediaView::new(kind, "").with_extent(extent));
    let mut known = MediaExtent::UNKNOWN;
    (known.pixels, known.millis, known.pages) = (Some((0, 10)), Some(1_500), Some(3));
    assert_eq!(of(MediaKind::Image, known).basis, Basis::Estimated);
    assert_eq!(of(MediaKind::Audio, known), Amount::new(Tokens(64), Basis::Counted));
    assert_eq!(of(MediaKind::Video, known), Amount::new(Tokens(526), Basis::Estimated));
    assert_eq!(of(MediaKind::Document, known), Amount::new(Tokens(774), Basis::Estimated));
    for kind in [MediaKind::Image, MediaKind::Audio, MediaKind::Video, MediaKind::Document] {
        assert_eq!(of(kind, MediaExtent::UNKNOWN).basis, Basis::Estimated);
    }
    (known.millis, known.pages) = (Some(u32::MAX), Some(u32::MAX));
    assert_eq!(of(MediaKind::Document, known).tokens, Tokens::MAX);
    assert!(of(MediaKind::Video, known).tokens > Tokens(1_000_000_000));
}

#[test]
fn what_is_published_as_approximate_is_an_estimate() {
    let of = |kind, extent| MediaRules::GEMINI_3.measure(MediaView::new(kind, "").with_extent(extent));
    let mut known = MediaExtent::UNKNOWN;
    (known.pixels, known.millis, known.pages) = (Some((640, 480)), Some(10_000), Some(3));
    assert_eq!(of(MediaKind::Image, known), Amount::new(Tokens(1_120), Basis::Estimated));
    assert_eq!(of(MediaKind::Audio, known), Amount::new(Tokens(320), Basis::Counted));
    assert_eq!(of(MediaKind::Video, known), Amount::new(Tokens(1_020), Basis::Estimated));
    assert_eq!(of(MediaKind::Document, known), Amount::new(Tokens(1_680), Basis::Estimated));
}
