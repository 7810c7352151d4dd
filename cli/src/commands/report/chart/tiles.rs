//! A rectangle divided into rectangles of given sizes.

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rect {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// Rectangles with areas in proportion to `sizes`, which are in descending order. The list is cut into two parts of
/// about equal size, and the rectangle along its longer side, until each part has one element.
pub(super) fn tiles(sizes: &[u64], rect: Rect) -> Vec<Rect> {
    let mut out = Vec::with_capacity(sizes.len());
    divide(sizes, rect, &mut out);
    out
}

fn divide(sizes: &[u64], rect: Rect, out: &mut Vec<Rect>) {
    let [first, rest @ ..] = sizes else { return };
    if rest.is_empty() {
        out.push(rect);
        return;
    }
    let all: u64 = sizes.iter().sum();
    let (mut cut, mut before) = (1, *first);
    // The second half has at least one element.
    for size in rest.iter().take(rest.len() - 1) {
        if (before + size) * 2 > all || cut * 2 >= sizes.len() {
            break;
        }
        before += size;
        cut += 1;
    }
    let share = if all == 0 { cut as f64 / sizes.len() as f64 } else { before as f64 / all as f64 };
    let Rect { x, y, width, height } = rect;
    let (one, other) = match width >= height {
        true => {
            let cut = width * share;
            (Rect { width: cut, ..rect }, Rect { x: x + cut, width: width - cut, ..rect })
        }
        false => {
            let cut = height * share;
            (Rect { height: cut, ..rect }, Rect { y: y + cut, height: height - cut, ..rect })
        }
    };
    let (sizes, others) = sizes.split_at_checked(cut).unwrap_or((sizes, &[]));
    divide(sizes, one, out);
    divide(others, other, out);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

        #[test]
        fn each_size_has_its_share_of_the_area(mut sizes in prop::collection::vec(1_u64..100_000, 0..80)) {
            sizes.sort_by_key(|size| core::cmp::Reverse(*size));
            let whole = Rect { x: 0.0, y: 0.0, width: 960.0, height: 300.0 };
            let all: u64 = sizes.iter().sum();
            let rects = tiles(&sizes, whole);
            prop_assert_eq!(rects.len(), sizes.len());
            for (size, rect) in sizes.iter().zip(&rects) {
                let expected = *size as f64 / all as f64 * 960.0 * 300.0;
                prop_assert!((rect.width * rect.height - expected).abs() < 1e-3, "{rect:?} {expected}");
                prop_assert!(rect.x >= 0.0 && rect.x + rect.width < 960.0 + 1e-6);
                prop_assert!(rect.y >= 0.0 && rect.y + rect.height < 300.0 + 1e-6);
            }
            for (at, one) in rects.iter().enumerate() {
                for other in rects.iter().skip(at + 1) {
                    let beside = |a: f64, b: f64, c: f64, d: f64| a + b <= c + 1e-6 || c + d <= a + 1e-6;
                    prop_assert!(
                        beside(one.x, one.width, other.x, other.width) || beside(one.y, one.height, other.y, other.height),
                        "{one:?} {other:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn sizes_of_nothing_are_halves() {
        let whole = Rect { x: 0.0, y: 0.0, width: 4.0, height: 1.0 };
        assert_eq!(tiles(&[0, 0], whole).iter().map(|rect| rect.width).collect::<Vec<_>>(), [2.0, 2.0]);
        assert_eq!(tiles(&[], whole), []);
    }
}
