//! Plots as SVG.

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use epitome_benches::compare::clock::Times;
use epitome_benches::compare::loops::Looped;
use epitome_benches::compare::report::Report;
use epitome_benches::compare::sizes::{Measured, Outcome, Sized};
use plotters::prelude::*;

const SIZE: (u32, u32) = (1_240, 640);
/// Points of a line are marked as long as they are few.
const MARKED_MAX: usize = 8;
/// Dark enough on white, and told apart with any eyes: Okabe and Ito's, 2008.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 0, 0),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(150, 150, 150),
];

/// One line: its name and its points.
type Line = (String, Vec<(f64, f64)>);

/// Draws the charts of the report into `folder`.
pub(crate) fn draw(report: &Report, folder: &Path) -> Result<(), Box<dyn Error>> {
    std::fs::create_dir_all(folder)?;
    let kept = |measured: &Measured| measured.kept.clone();
    let bare = |measured: &Measured| measured.bare.clone();
    let lines = by_size(&report.sizes, kept);
    chart(&folder.join("as-called.svg"), "One call, the history stays", "messages", "seconds", &lines)?;
    let lines = by_size(&report.sizes, bare);
    let title = "One call without cloning and dropping";
    chart(&folder.join("without-cloning.svg"), title, "messages", "seconds", &lines)?;
    let lines: Vec<Line> = report.loops.iter().map(course).collect();
    let title = "A loop with compaction: time until a turn";
    chart(&folder.join("loop.svg"), title, "turns", "seconds", &lines)
}

fn by_size(sizes: &[Sized], times: impl Fn(&Measured) -> Times) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for sized in sizes {
        for row in &sized.rows {
            let Outcome::Returned(measured) = &row.outcome else { continue };
            let Some(median) = times(measured).median() else { continue };
            let name = plain(&row.name, &row.call);
            let point = (sized.messages as f64, seconds(median));
            match lines.iter_mut().find(|(there, _)| *there == name) {
                Some((_, points)) => points.push(point),
                None => lines.push((name, vec![point])),
            }
        }
    }
    lines
}

fn course(looped: &Looped) -> Line {
    let keeping = match looped.keeping {
        epitome_benches::compare::contender::Keeping::Whole => "",
        epitome_benches::compare::contender::Keeping::Result => ", given away",
    };
    let points = looped.course.iter().filter(|(turns, _)| *turns > 0);
    let points = points.map(|(turns, time)| (*turns as f64, seconds(*time))).collect();
    (plain(&looped.name, &looped.call) + keeping, points)
}

fn plain(name: &str, call: &str) -> String {
    format!("{name}: {call}").replace('`', "")
}

fn seconds(time: Duration) -> f64 {
    time.as_secs_f64().max(1e-9)
}

/// A chart with two logarithmic axes, and the names beside it, in the order of the lines' ends.
fn chart(file: &Path, title: &str, x: &str, y: &str, lines: &[Line]) -> Result<(), Box<dyn Error>> {
    let points = || lines.iter().flat_map(|(_, points)| points);
    let (Some(left), Some(right)) =
        (points().map(|point| point.0).reduce(f64::min), points().map(|point| point.0).reduce(f64::max))
    else {
        return Ok(());
    };
    let (Some(low), Some(high)) =
        (points().map(|point| point.1).reduce(f64::min), points().map(|point| point.1).reduce(f64::max))
    else {
        return Ok(());
    };
    let area = SVGBackend::new(file, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let (area, names) = area.split_horizontally(660);
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 24))
        .margin(16)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d((left..right * 1.05).log_scale(), (low / 2.0..high * 2.0).log_scale())?;
    chart
        .configure_mesh()
        .x_desc(x)
        .y_desc(y)
        .label_style(("sans-serif", 16))
        .axis_desc_style(("sans-serif", 18))
        .y_label_formatter(&|seconds| short(*seconds))
        .x_label_formatter(&|number| format!("{number:.0}"))
        .light_line_style(RGBColor(240, 240, 240))
        .draw()?;
    let mut libraries: Vec<_> = Vec::new();
    for (name, _) in lines {
        if !libraries.contains(&library(name)) {
            libraries.push(library(name));
        }
    }
    let mut order: Vec<_> = lines.iter().collect();
    let end = |line: &Line| line.1.last().map_or(0.0, |point| point.1);
    order.sort_by(|one, other| end(other).total_cmp(&end(one)));
    for (place, (name, points)) in order.into_iter().enumerate() {
        let library = libraries.iter().position(|there| *there == library(name)).unwrap_or(0);
        let colour = COLOURS[library % COLOURS.len()];
        let width = if name.starts_with("epitome") { 3 } else { 1 };
        let style = colour.stroke_width(width);
        chart.draw_series(LineSeries::new(points.iter().copied(), style))?;
        if points.len() <= MARKED_MAX {
            let mark = |point: &(f64, f64)| Circle::new(*point, 2 + width as i32 / 2, colour.filled());
            chart.draw_series(points.iter().map(mark))?;
        }
        let y = 50 + 20 * place as i32;
        names.draw(&PathElement::new(vec![(4, y), (24, y)], style))?;
        names.draw(&Text::new(name.clone(), (30, y - 6), ("sans-serif", 16).into_font()))?;
    }
    area.present()?;
    Ok(())
}

/// All calls of a library have its colour.
fn library(name: &str) -> &str {
    name.split(": ").next().unwrap_or(name)
}

fn short(seconds: f64) -> String {
    match seconds {
        ..1e-6 => format!("{:.0} ns", seconds * 1e9),
        ..1e-3 => format!("{:.0} us", seconds * 1e6),
        ..1.0 => format!("{:.0} ms", seconds * 1e3),
        _ => format!("{seconds:.0} s"),
    }
}
