//! Plots as SVG, written without a library: a few lines, axes and names.

use core::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

/// A line: its name and its points.
type Line = (String, Vec<(f64, f64)>);

/// Lines over a horizontal and a vertical axis; the vertical axis is in percent.
pub(crate) struct Plot {
    title: String,
    across: &'static str,
    /// The ends of the horizontal axis, and the distance of its marks.
    from: f64,
    to: f64,
    step: f64,
    lines: Vec<Line>,
}

/// The area of the lines, in pixels.
const LEFT: f64 = 60.0;
const TOP: f64 = 50.0;
const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 420.0;
/// Size of the whole drawing, in pixels.
const SIZE: [f64; 2] = [1_000.0, 540.0];
/// Colours that are dark enough on white and distinguishable with colour blindness: Okabe and Ito, 2008.
const COLOURS: [&str; 8] =
    ["#000000", "#e69f00", "#56b4e9", "#009e73", "#cc79a7", "#0072b2", "#d55e00", "#969696"];

impl Plot {
    /// Plot of a metric over the number of tokens that were really left.
    pub(crate) fn of_needs(measured: &Value, metric: &str, title: &str) -> Self {
        let mut lines: Vec<Line> = Vec::new();
        for share in measured["shares"].as_array().unwrap() {
            for row in share["rows"].as_array().unwrap() {
                let (Some(left), Some(figure)) = (row["tokens_left"].as_f64(), row[metric].as_f64()) else {
                    continue;
                };
                add(&mut lines, row, (left, figure));
            }
        }
        let across = "tokens left, in percent";
        Self { title: title.to_owned(), across, from: 0.0, to: 60.0, step: 10.0, lines }
    }

    /// Plot of the needed identifiers by round.
    pub(crate) fn of_rounds(measured: &Value) -> Self {
        let degradation = &measured["degradation"];
        let mut lines = Vec::new();
        for row in degradation["shares"][0]["rows"].as_array().unwrap() {
            for after in row["after"].as_array().unwrap() {
                let (round, figure) = (after["compactions"].as_f64().unwrap(), after["identifiers"].as_f64());
                figure.into_iter().for_each(|figure| add(&mut lines, row, (round, figure)));
            }
        }
        let title =
            "Needed identifiers that are still shown after so many compactions, in percent".to_owned();
        let rounds = degradation["rounds"].as_f64().unwrap();
        Self { title, across: "compactions", from: 1.0, to: rounds, step: 1.0, lines }
    }

    pub(crate) fn write(&self, file: &Path) {
        fs::write(file, self.to_svg()).unwrap();
    }

    fn to_svg(&self) -> String {
        let [width, height] = SIZE;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"14\">\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
        );
        label(&mut svg, (LEFT, 28.0), "start", &self.title);
        self.axes(&mut svg);
        let mut order: Vec<&Line> = self.lines.iter().collect();
        let end = |line: &Line| line.1.last().map_or(0.0, |point| point.1);
        order.sort_by(|one, other| end(other).total_cmp(&end(one)));
        for (at, line) in order.into_iter().enumerate() {
            self.line(&mut svg, line, at);
        }
        svg + "</svg>\n"
    }

    fn axes(&self, svg: &mut String) {
        for mark in 0..=5 {
            let percent = f64::from(mark) * 20.0;
            let y = self.at((0.0, percent)).1;
            rule(svg, (LEFT, y), (LEFT + WIDTH, y));
            label(svg, (LEFT - 8.0, y + 5.0), "end", &format!("{percent:.0}"));
        }
        let mut mark = self.from;
        while mark <= self.to {
            let x = self.at((mark, 0.0)).0;
            rule(svg, (x, TOP), (x, TOP + HEIGHT));
            label(svg, (x, TOP + HEIGHT + 20.0), "middle", &format!("{mark:.0}"));
            mark += self.step;
        }
        label(svg, (LEFT + WIDTH / 2.0, TOP + HEIGHT + 44.0), "middle", self.across);
    }

    /// Draws a line with its points, and its name at position `at` of the list.
    fn line(&self, svg: &mut String, (name, points): &Line, at: usize) {
        let mut same = self.lines.iter().position(|(other, _)| other == name).unwrap_or(0);
        let dashes = if same < COLOURS.len() { "none" } else { "6 3" };
        same %= COLOURS.len();
        let stroke = if name == "agent" { 4 } else { 2 };
        let style = format!(
            "stroke=\"{}\" stroke-width=\"{stroke}\" stroke-dasharray=\"{dashes}\" fill=\"none\"",
            COLOURS[same]
        );
        let places: Vec<_> = points.iter().map(|point| self.at(*point)).collect();
        let path: Vec<_> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(svg, "<polyline points=\"{}\" {style}/>", path.join(" "));
        for (x, y) in places {
            let _ = writeln!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{}\" fill=\"{}\"/>",
                stroke + 1,
                COLOURS[same]
            );
        }
        let y = TOP + 6.0 + 20.0 * at as f64;
        let x = LEFT + WIDTH + 20.0;
        let _ = writeln!(svg, "<polyline points=\"{x},{y} {},{y}\" {style}/>", x + 26.0);
        label(svg, (x + 34.0, y + 5.0), "start", name);
    }

    /// Position of a point in the drawing.
    fn at(&self, (x, percent): (f64, f64)) -> (f64, f64) {
        let share = (x - self.from) / (self.to - self.from);
        (LEFT + WIDTH * share, TOP + HEIGHT * (1.0 - percent / 100.0))
    }
}

fn add(lines: &mut Vec<Line>, row: &Value, point: (f64, f64)) {
    let name = row["strategy"].as_str().unwrap();
    match lines.iter_mut().find(|(there, _)| there == name) {
        Some((_, points)) => points.push(point),
        None => lines.push((name.to_owned(), vec![point])),
    }
}

fn label(svg: &mut String, (x, y): (f64, f64), anchor: &str, text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>");
}

fn rule(svg: &mut String, from: (f64, f64), to: (f64, f64)) {
    let (from, to) = (
        format!("x1=\"{:.1}\" y1=\"{:.1}\"", from.0, from.1),
        format!("x2=\"{:.1}\" y2=\"{:.1}\"", to.0, to.1),
    );
    let _ = writeln!(svg, "<line {from} {to} stroke=\"#dddddd\"/>");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn measured() -> Value {
        let row = |name: &str, left: f64, figure: f64| json!({"strategy": name, "tokens_left": left, "identifiers": figure});
        json!({"shares": [
            {"rows": [row("a & <b>", 10.0, 50.0), row("agent", 0.0, 100.0)]},
            {"rows": [row("a & <b>", 30.0, 75.0), row("agent", 60.0, 0.0)]},
        ]})
    }

    #[test]
    fn each_row_is_a_line_through_its_points_and_a_name() {
        let svg = Plot::of_needs(&measured(), "identifiers", "title").to_svg();
        // Ten percent of sixty are a sixth of the width, and half of the height is in the middle.
        assert!(
            svg.contains(
                "<polyline points=\"153.3,260.0 340.0,155.0\" stroke=\"#000000\" stroke-width=\"2\""
            ),
            "{svg}"
        );
        assert!(
            svg.contains("<polyline points=\"60.0,50.0 620.0,470.0\" stroke=\"#e69f00\" stroke-width=\"4\""),
            "{svg}"
        );
        // One more line for each name in the list of names.
        assert_eq!((svg.matches("<polyline").count(), svg.matches("<circle").count()), (4, 4));
        assert!(svg.contains("a &amp; &lt;b&gt;</text>") || svg.contains("a &amp; &lt;b></text>"), "{svg}");
    }

    #[test]
    fn rounds_are_drawn_from_the_first_to_the_last() {
        let after = |round: u64, figure: Option<f64>| json!({"compactions": round, "identifiers": figure});
        let row = json!({"strategy": "agent", "after": [after(1, Some(100.0)), after(2, None), after(3, Some(0.0))]});
        let svg =
            Plot::of_rounds(&json!({"degradation": {"rounds": 3, "shares": [{"rows": [row]}]}})).to_svg();
        assert!(svg.contains("<polyline points=\"60.0,50.0 620.0,470.0\""), "{svg}");
    }
}
