//! A conversation in one line: a cell for each group, or for several groups in a row.

use super::GroupDetail;
use crate::streams::{is_out_colored, is_out_terminal};

/// Settings of a drawing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Picture {
    colour: bool,
    width: usize,
}

/// Bars from the lowest to the highest.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

fn bars(amounts: &[u64], width: usize) -> String {
    let (cells, top) = (amounts.len().min(width), amounts.iter().copied().max().unwrap_or(0).max(1));
    let bar = |cell: usize| {
        let run = amounts.get(cell * amounts.len() / cells..(cell + 1) * amounts.len() / cells);
        let amount = run.unwrap_or_default().iter().copied().max().unwrap_or(0);
        let height = u128::from(amount) * (BARS.len() as u128 - 1) / u128::from(top);
        BARS.get(height as usize).copied().unwrap_or_default()
    };
    (0..cells).map(bar).collect()
}

/// The width without a terminal.
const WIDTH: usize = 72;

impl Picture {
    /// A picture with the colours and the width of standard output.
    pub(crate) fn for_stdout() -> Self {
        let colour = is_out_colored();
        let width = if is_out_terminal() { console::Term::stdout().size().1 } else { 0 };
        Self {
            colour,
            width: if width == 0 { WIDTH } else { usize::from(width).clamp(20, 160).saturating_sub(2) },
        }
    }

    /// The picture and its legend.
    pub(crate) fn draw(&self, groups: &[GroupDetail]) -> String {
        let cells = groups.len().clamp(1, self.width);
        let mut line = String::new();
        for cell in 0..cells {
            let run = cell * groups.len() / cells..(cell + 1) * groups.len() / cells;
            line.push_str(self.cell(groups.get(run).unwrap_or_default()));
        }
        let shortened = match (groups.iter().any(|group| group.verdict == 'E'), self.colour) {
            (false, _) => "",
            (true, true) => "  \x1b[36m▓\x1b[0m shortened",
            (true, false) => "  ~ shortened",
        };
        let legend = match self.colour {
            true => "\x1b[32m█\x1b[0m kept  \x1b[31m░\x1b[0m dropped",
            false => "# kept  . dropped",
        };
        let replaced = match (groups.iter().any(|group| group.verdict == 'R'), self.colour) {
            (false, _) => "",
            (true, true) => "  \x1b[35m▚\x1b[0m replaced",
            (true, false) => "  = replaced",
        };
        let mixed = match (cells < groups.len(), self.colour) {
            (false, _) => "",
            (true, true) => "  \x1b[33m▒\x1b[0m some of each",
            (true, false) => "  + some of each",
        };
        let scale = match groups.len().div_ceil(cells) {
            0 | 1 => "a cell is a group".to_owned(),
            most => format!("a cell is up to {most} groups"),
        };
        format!("{line}\n{legend}{shortened}{replaced}{mixed}; {scale}")
    }

    /// Amounts over time as a line of bars. Each bar is one amount, or the largest of several. `None` without a
    /// terminal.
    pub(crate) fn bars(&self, amounts: &[u64]) -> Option<String> {
        is_out_terminal().then(|| bars(amounts, self.width))
    }

    fn cell(&self, run: &[GroupDetail]) -> &'static str {
        let with = |letter| run.iter().filter(|group| group.verdict == letter).count();
        let (dropped, replaced) = (with('D'), with('R'));
        let (plain, coloured) = match run.len() {
            all if dropped == all && all > 0 => (".", "\x1b[31m░\x1b[0m"),
            all if replaced == all && all > 0 => ("=", "\x1b[35m▚\x1b[0m"),
            _ if dropped + replaced > 0 => ("+", "\x1b[33m▒\x1b[0m"),
            _ if with('E') > 0 => ("~", "\x1b[36m▓\x1b[0m"),
            _ => ("#", "\x1b[32m█\x1b[0m"),
        };
        if self.colour { coloured } else { plain }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_stand_for_the_largest_of_their_amounts() {
        assert_eq!(bars(&[], 10), "");
        assert_eq!(bars(&[0, 0], 10), "▁▁");
        assert_eq!(bars(&[0, 1, 2, 3, 4, 5, 6, 7], 10), "▁▂▃▄▅▆▇█");
        assert_eq!(bars(&[7, 0, 0, 0, 3, 1], 3), "█▁▄");
        assert_eq!(bars(&[u64::MAX, u64::MAX / 2, 0], 3), "█▄▁");
    }
}
