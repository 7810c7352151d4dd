//! Drawings as SVG: the context over time, strips of verdicts, origins of the tokens.

mod points;
mod tiles;

use core::fmt::Write as _;

use maud::{Markup, html};

use super::context::Context;
use super::kind::{ByKind, Kind};
use super::origin::Origin;
use super::strip::Group;
use crate::amount::{counted, grouped};
use crate::report::share;
use crate::visible::line;

use points::{Point, points};
use tiles::{Rect, tiles};

/// The width of all drawings, in the units of their view boxes.
const WIDTH: f64 = 960.0;

/// The context over time, with its compactions.
pub(super) fn context(context: &Context) -> Markup {
    const HEIGHT: f64 = 260.0;
    const LEFT: f64 = 64.0;
    const TOP: f64 = 8.0;
    const BOTTOM: f64 = 24.0;
    /// The base line of a label, below its line.
    const LABEL: f64 = 13.0;
    let (points, largest) = (points(context), context.largest());
    // A line far above the conversation is left out: it would make the drawing flat.
    let lines = [(context.trigger, "trigger"), (context.window, "window")];
    let lines: Vec<_> = lines.into_iter().filter(|(tokens, _)| largest >= tokens / 2).collect();
    let top = lines.iter().map(|(tokens, _)| *tokens).max().unwrap_or(0).max(largest).max(1);
    let last = context.requests.len().saturating_sub(1).max(1) as f64;
    let x = |at: usize| LEFT + at as f64 / last * (WIDTH - LEFT);
    let y = |tokens: u64| TOP + (1.0 - tokens as f64 / top as f64) * (HEIGHT - TOP - BOTTOM);
    let said = format!(
        "The size of {}; the largest has {} before it is compacted, {} of the window; {}",
        counted(context.requests.len() as u64, "request"),
        counted(largest, "token"),
        share(largest, context.window),
        counted(context.compactions.len() as u64, "compaction")
    );
    html! {
        svg.context viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(said) {
            @for tokens in ticks(top) {
                line.grid x1=(LEFT) x2=(WIDTH) y1=(one(y(tokens))) y2=(one(y(tokens))) {}
                text.tick x=(LEFT - 6.0) y=(one(y(tokens) + 4.0)) text-anchor="end" { (grouped(tokens)) }
            }
            @for (number, kind) in Kind::ALL.into_iter().enumerate() {
                path class=(kind.class()) d=(area(&points, number, x, y)) { title { (kind.name()) } }
            }
            @for (tokens, name) in lines {
                line.limit x1=(LEFT) x2=(WIDTH) y1=(one(y(tokens))) y2=(one(y(tokens))) {}
                text.tick x=(LEFT + 4.0) y=(one(y(tokens) + LABEL)) { (name) }
            }
            text.tick x=(LEFT) y=(HEIGHT - 6.0) { "first request" }
            text.tick x=(WIDTH) y=(HEIGHT - 6.0) text-anchor="end" { "request " (grouped(context.requests.len() as u64)) }
        }
    }
}

/// The context over time as a line, for a table.
pub(super) fn spark(context: &Context) -> Markup {
    const HEIGHT: f64 = 24.0;
    const SPARK: f64 = 160.0;
    let (points, top) = (points(context), context.largest().max(1) as f64);
    let last = context.requests.len().saturating_sub(1).max(1) as f64;
    let mut path = String::new();
    for point in &points {
        let (x, tokens) = (point.at as f64 / last * SPARK, point.tokens.total() as f64);
        push(&mut path, x, 1.0 + (1.0 - tokens / top) * (HEIGHT - 2.0));
    }
    let said = format!(
        "{} in the largest request, {}",
        counted(context.largest(), "token"),
        counted(context.compactions.len() as u64, "compaction")
    );
    html! {
        svg.spark viewBox=(format!("0 0 {SPARK} {HEIGHT}")) role="img" aria-label=(said) { path d=(path) {} }
    }
}

/// The area of the kind `number`, above the areas of the kinds before it.
fn area(points: &[Point], number: usize, x: impl Fn(usize) -> f64, y: impl Fn(u64) -> f64) -> String {
    let below =
        |tokens: &ByKind, kinds: usize| tokens.rows().take(kinds).map(|(_, tokens)| tokens).sum::<u64>();
    if points.iter().all(|point| below(&point.tokens, number) == below(&point.tokens, number + 1)) {
        return String::new();
    }
    let mut path = String::new();
    points.iter().for_each(|point| push(&mut path, x(point.at), y(below(&point.tokens, number + 1))));
    points.iter().rev().for_each(|point| push(&mut path, x(point.at), y(below(&point.tokens, number))));
    path + "z"
}

fn push(path: &mut String, x: f64, y: f64) {
    // Writing into a text does not fail.
    let _ = write!(path, "{}{} {}", if path.is_empty() { "M" } else { "L" }, one(x), one(y));
}

/// A coordinate, rounded to a tenth.
fn one(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

/// Some round numbers up to `top`.
fn ticks(top: u64) -> impl Iterator<Item = u64> {
    let rough = (top / 4).max(1);
    let magnitude = 10_u64.pow(rough.ilog10());
    let step = [1, 2, 5, 10].map(|times| times * magnitude).into_iter().find(|step| *step >= rough);
    let step = step.unwrap_or(rough);
    (0..=top / step).map(move |times| times * step)
}

/// The drawn verdicts of a strip, from the bottom up, with the class of each.
pub(super) const VERDICTS: [(char, &str, &str); 4] = [
    ('K', "v-kept", "kept"),
    ('E', "v-shortened", "shortened"),
    ('R', "v-replaced", "replaced"),
    ('D', "v-dropped", "dropped"),
];

/// A conversation from its first token to its last, with the verdicts. A column with several groups is divided between
/// their verdicts.
pub(super) fn strip(groups: &[Group], verdicts: &str, name: &str) -> Markup {
    const HEIGHT: f64 = 24.0;
    let all: u64 = groups.iter().map(|group| u64::from(group.tokens)).sum();
    let columns = columns(groups, verdicts, all);
    let mut paths = [const { String::new() }; VERDICTS.len()];
    let width = WIDTH / columns.len().max(1) as f64;
    for (number, shares) in columns.iter().enumerate() {
        let total: f64 = shares.iter().sum();
        let mut top = HEIGHT;
        for (share, path) in shares.iter().zip(&mut paths).filter(|(share, _)| **share > 0.0) {
            let height = share / total * HEIGHT;
            top -= height;
            let (x, y, w, h) = (one(number as f64 * width), one(top), one(width), one(height));
            // Writing into a text does not fail.
            let _ = write!(path, "M{x} {y}h{w}v{h}h-{w}z");
        }
    }
    html! {
        svg.strip viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) preserveAspectRatio="none" role="img" aria-label=(name) {
            @for ((_, class, _), path) in VERDICTS.iter().zip(paths) {
                @if !path.is_empty() { path class=(class) d=(path) {} }
            }
        }
    }
}

/// Maximum number of columns of a strip.
const COLUMNS: u64 = 320;

/// The tokens of each verdict in each column.
fn columns(groups: &[Group], verdicts: &str, all: u64) -> Vec<[f64; VERDICTS.len()]> {
    let count = COLUMNS.min(all);
    let mut columns = vec![[0.0; VERDICTS.len()]; count as usize];
    let mut start = 0;
    for (group, verdict) in groups.iter().zip(verdicts.chars()) {
        let end = start + u64::from(group.tokens);
        let scale = count as f64 / all.max(1) as f64;
        let (from, to) = (start as f64 * scale, end as f64 * scale);
        let row = VERDICTS.iter().position(|(letter, ..)| *letter == verdict).unwrap_or_default();
        let touched =
            columns.iter_mut().enumerate().skip(from as usize).take_while(|(at, _)| (*at as f64) < to);
        for (at, column) in touched {
            let within = (at as f64 + 1.0).min(to) - (at as f64).max(from);
            column.iter_mut().skip(row).take(1).for_each(|tokens| *tokens += within.max(0.0));
        }
        start = end;
    }
    columns
}

/// Maximum number of areas of a drawing, and of files of one area.
const AREAS_MAX: usize = 100;

/// Origins of the tokens: kinds of messages, tools, and the files that tools were called with.
pub(super) fn origins(by_kind: &ByKind, by_tool: &[Origin], all: u64) -> Markup {
    const HEIGHT: f64 = 300.0;
    /// Minimum width and height of a rectangle with a label.
    const LABEL: (f64, f64) = (48.0, 16.0);
    let mut areas: Vec<(String, &str, u64, Vec<&Origin>)> = Vec::new();
    for (kind, tokens) in by_kind.rows().filter(|(kind, _)| !matches!(kind, Kind::Calls | Kind::Results)) {
        areas.push((kind.name().to_owned(), kind.class(), tokens, Vec::new()));
    }
    for row in by_tool {
        let name = row.tool.as_deref().map_or_else(|| "(no call)".to_owned(), line);
        let known =
            areas.iter_mut().find(|(other, class, ..)| *other == name && *class == Kind::Results.class());
        match known {
            Some((_, _, tokens, rows)) => {
                *tokens += row.tokens;
                rows.extend(Some(row).filter(|_| rows.len() < AREAS_MAX));
            }
            None => areas.push((name, Kind::Results.class(), row.tokens, vec![row])),
        }
    }
    areas.retain(|(_, _, tokens, _)| *tokens > 0);
    areas.sort_by_key(|(_, _, tokens, _)| core::cmp::Reverse(*tokens));
    let small = areas.split_off(AREAS_MAX.min(areas.len()));
    if !small.is_empty() {
        let tokens = small.iter().map(|(_, _, tokens, _)| tokens).sum();
        areas.push((
            format!("{} more", grouped(small.len() as u64)),
            Kind::Other.class(),
            tokens,
            Vec::new(),
        ));
        areas.sort_by_key(|(_, _, tokens, _)| core::cmp::Reverse(*tokens));
    }
    let sizes: Vec<_> = areas.iter().map(|(_, _, tokens, _)| *tokens).collect();
    let whole = Rect { x: 0.0, y: 0.0, width: WIDTH, height: HEIGHT };
    html! {
        svg.origins viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label="Tokens by kind, tool and file; the tables below have the figures" {
            @for ((name, class, tokens, rows), rect) in areas.iter().zip(tiles(&sizes, whole)) {
                g {
                    title { (name) ": " (counted(*tokens, "token")) ", " (share(*tokens, all)) }
                    rect class=(class) x=(one(rect.x)) y=(one(rect.y)) width=(one(rect.width)) height=(one(rect.height)) {}
                    @for (row, rect) in rows.iter().zip(tiles(&sizes_in(*tokens, rows), rect)) {
                        @if let Some(file) = &row.file {
                            rect.file x=(one(rect.x)) y=(one(rect.y)) width=(one(rect.width)) height=(one(rect.height)) {
                                title { (name) " " (line(file)) ": " (counted(row.tokens, "token")) ", " (share(row.tokens, all)) }
                            }
                        }
                    }
                    @if rect.width > LABEL.0 && rect.height > LABEL.1 {
                        text.label x=(one(rect.x + 5.0)) y=(one(rect.y + 14.0)) { (fitting(name, rect.width)) }
                    }
                }
            }
        }
    }
}

/// The sizes of these rows, and the rest of an area of `tokens`.
fn sizes_in(tokens: u64, rows: &[&Origin]) -> Vec<u64> {
    let mut sizes: Vec<_> = rows.iter().map(|row| row.tokens).collect();
    sizes.push(tokens.saturating_sub(sizes.iter().sum()));
    sizes
}

/// The beginning of a name that fits in `width`.
fn fitting(name: &str, width: f64) -> String {
    let most = (width / 7.0) as usize;
    match name.chars().count() > most {
        true => name.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
        false => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use epitome::core::GroupKind;
    use proptest::prelude::*;

    use super::*;

    fn group(tokens: u32) -> Group {
        Group { first: 0, last: 0, kind: GroupKind::User, tokens }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

        #[test]
        fn each_verdict_has_its_share_of_a_strip(rows in prop::collection::vec((0_u32..5_000, prop::sample::select(vec!['K', 'E', 'R', 'D'])), 1..60)) {
            let groups: Vec<_> = rows.iter().map(|(tokens, _)| group(*tokens)).collect();
            let verdicts: String = rows.iter().map(|(_, verdict)| *verdict).collect();
            let all: u64 = rows.iter().map(|(tokens, _)| u64::from(*tokens)).sum();
            let columns = columns(&groups, &verdicts, all);
            for (number, (letter, ..)) in VERDICTS.iter().enumerate() {
                let drawn: f64 = columns.iter().map(|column| column[number]).sum();
                let tokens: u64 = rows.iter().filter(|(_, verdict)| verdict == letter).map(|(tokens, _)| u64::from(*tokens)).sum();
                let expected = tokens as f64 / all.max(1) as f64 * columns.len() as f64;
                prop_assert!((drawn - expected).abs() < 1e-6, "{letter}: {drawn} {expected}");
            }
            prop_assert!(columns.iter().all(|column| column.iter().sum::<f64>() < 1.0 + 1e-6));
        }

        #[test]
        fn ticks_are_round_and_few(top in 1_u64..u64::MAX / 20) {
            let ticks: Vec<_> = ticks(top).collect();
            prop_assert!((2..=9).contains(&ticks.len()), "{ticks:?}");
            prop_assert!(ticks.iter().all(|tick| *tick <= top));
        }
    }

    #[test]
    fn a_conversation_without_a_token_has_no_strip() {
        assert!(!strip(&[], "", "none").into_string().contains("path"));
        assert!(!strip(&[group(0)], "K", "none").into_string().contains("path"));
    }
}
