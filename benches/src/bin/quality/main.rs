//! The information that a compacted conversation keeps of the model's next needs: each strategy is compared with
//! floors, ceilings and, if they are installed, libraries of Python, at three budgets. Also the price of the requests,
//! and the kept information after five compactions.
//!
//! ```text
//! quality [--smoke] [--program EPITOME] [--rivals PYTHON SCRIPT] [--data FOLDER] [--plots FOLDER] [FILE..]
//! ```
//!
//! It runs the program `epitome` (in its own folder, or `--program`), so that its results are those that users get.
//! Without files, the conversations are the examples of the repository and, if the folder exists, the conversations in
//! `../shared/data` (or `--data`) that [`sets`] names. `--smoke` takes only the examples and checks the assertions.

#![expect(clippy::print_stdout, reason = "a command-line tool: its tables are its output")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a measurement that cannot be made ends the run"
)]

mod eval;
mod plot;
mod sets;
mod table;

use std::path::PathBuf;

use eval::Program;
use plot::Plot;
use sets::Set;

/// The strategies of the tables and plots.
const STRATEGIES: &[&str] = &[
    "truncate",
    "tool-results | truncate",
    "supersede | tool-results | truncate",
    "tool-digest",
    "truncate:walk=newest-first",
    "agent",
    "salience",
    "chat",
];

/// Number of successive compactions, and the share that each keeps, in percent.
const ROUNDS: [&str; 2] = ["5", "25"];

struct Asked {
    smoke: bool,
    data: Option<PathBuf>,
    program: Program,
    plots: Option<PathBuf>,
    files: Vec<PathBuf>,
}

fn main() {
    let asked = Asked::new(std::env::args().skip(1));
    let sets = match asked.files.as_slice() {
        [] => Set::all(asked.smoke, asked.data.as_deref()),
        files => vec![Set::of_files(files)],
    };
    let rows = asked.program.rows(STRATEGIES);
    for set in sets {
        println!("## {}\n\n{}\n", set.name, set.about);
        let measured = asked.program.eval(&set.files, &rows, &["--lost", "0"]);
        eval::check(&measured);
        print!("{}", table::needs(&measured));
        if let Some(rounds) = asked.program.rounds(&set.files, &rows, ROUNDS) {
            print!("{}", table::rounds(&rounds, ROUNDS[1]));
            if let (Some(folder), true) = (&asked.plots, set.is_plotted) {
                Plot::of_rounds(&rounds).write(&folder.join("quality-rounds.svg"));
            }
        }
        if let (Some(folder), true) = (&asked.plots, set.is_plotted) {
            let identifiers = Plot::of_needs(
                &measured,
                "identifiers",
                "Needed identifiers that are still shown, in percent",
            );
            identifiers.write(&folder.join("quality-identifiers.svg"));
            let text =
                Plot::of_needs(&measured, "copied_text", "Copied text that is still shown, in percent");
            text.write(&folder.join("quality-copied-text.svg"));
        }
    }
}

impl Asked {
    fn new(mut arguments: impl Iterator<Item = String>) -> Self {
        let mut asked =
            Self { smoke: false, data: None, program: Program::beside(), plots: None, files: Vec::new() };
        while let Some(argument) = arguments.next() {
            let mut next = || arguments.next().unwrap_or_else(|| panic!("{argument} needs a value"));
            match &*argument {
                "--smoke" => asked.smoke = true,
                "--program" => asked.program.path = next().into(),
                "--data" => asked.data = Some(next().into()),
                "--plots" => asked.plots = Some(next().into()),
                "--rivals" => {
                    let (python, script) = (next(), next());
                    asked.program.add_rivals(&python, &script);
                }
                option if option.starts_with("--") => panic!("there is no option {option}"),
                file => asked.files.push(file.into()),
            }
        }
        asked
    }
}
