//! Runs the measuring program and reads its output.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The model whose prices are used: it has a price for cache writes, and its tokens are those of the default counter.
const MODEL: &str = "gpt-5.6-sol";

/// The window for the compaction of requests, small enough that recorded conversations fill it.
const WINDOW: &str = "16000";

/// The measuring program, and the rivals that are measured too.
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    /// The rivals, as values of the option `--command`.
    rivals: Vec<String>,
}

impl Program {
    /// The program `epitome` in the folder of this program.
    pub(crate) fn beside() -> Self {
        let here = std::env::current_exe().unwrap();
        Self {
            path: here.with_file_name(format!("epitome{}", std::env::consts::EXE_SUFFIX)),
            rivals: Vec::new(),
        }
    }

    /// Adds the rivals that a script lists if it is called without the name of a rival.
    pub(crate) fn add_rivals(&mut self, python: &str, script: &str) {
        let listed = Command::new(python).arg(script).output();
        let listed = listed.unwrap_or_else(|error| panic!("--rivals {python}: {error}"));
        assert!(listed.status.success(), "{script}: {}", String::from_utf8_lossy(&listed.stderr));
        let names = String::from_utf8(listed.stdout).unwrap();
        self.rivals.extend(names.lines().map(|name| format!("{name}=\"{python}\" \"{script}\" \"{name}\"")));
    }

    /// The arguments for these strategies, and the rivals.
    pub(crate) fn rows(&self, strategies: &[&str]) -> Vec<String> {
        let strategies = strategies.iter().flat_map(|name| ["--strategy".to_owned(), (*name).to_owned()]);
        let rivals = self.rivals.iter().flat_map(|rival| ["--command".to_owned(), rival.clone()]);
        strategies.chain(rivals).collect()
    }

    /// Measures the kept part of the information that the model needed next, and the price of the requests.
    pub(crate) fn eval(&self, files: &[PathBuf], rows: &[String], more: &[&str]) -> Value {
        let priced = ["--model", MODEL, "--window", WINDOW];
        self.run(files, rows, &[&priced, more].concat()).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Measures the kept information after each round; `None` if no conversation is long enough.
    pub(crate) fn rounds(
        &self,
        files: &[PathBuf],
        rows: &[String],
        [rounds, keep]: [&str; 2],
    ) -> Option<Value> {
        match self.run(files, rows, &["--rounds", rounds, "--keep", keep]) {
            Ok(measured) => Some(measured),
            Err(error) if error.contains("enough messages") => None,
            Err(error) => panic!("{error}"),
        }
    }

    fn run(&self, files: &[PathBuf], rows: &[String], more: &[&str]) -> Result<Value, String> {
        let mut command = Command::new(&self.path);
        command.arg("eval").args(files).args(rows).args(more).arg("--json");
        let path: &Path = &self.path;
        let output = command.output().unwrap_or_else(|error| {
            panic!("{}: {error}; build it with `cargo build --release -p epitome-cli`", path.display())
        });
        match output.status.success() {
            true => Ok(serde_json::from_slice(&output.stdout).unwrap()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }
}

/// Asserts that all results are shares, that a ceiling is not below a floor, and that a strategy within the budget does
/// not exceed it.
pub(crate) fn check(measured: &Value) {
    for share in measured["shares"].as_array().unwrap() {
        let keep: f64 = share["keep"].as_str().unwrap().trim_end_matches('%').parse().unwrap();
        let rows = share["rows"].as_array().unwrap();
        for row in rows {
            for metric in
                ["identifiers", "identifiers_weighted", "copied_text", "tokens_left", "stable_prefix"]
            {
                let figure = row[metric].as_f64();
                assert!(figure.is_none_or(|figure| (0.0..=100.0).contains(&figure)), "{metric} of {row}");
            }
            let left = row["tokens_left"].as_f64().unwrap();
            assert!(row["missed"].as_u64() > Some(0) || left <= keep + 0.05, "{row}");
        }
        let of = |name: &str, metric: &str| {
            rows.iter().find(|row| row["strategy"] == name).unwrap()[metric].as_f64()
        };
        for (oracle, metric) in
            [("(oracle: identifiers)", "identifiers"), ("(oracle: copied text)", "copied_text")]
        {
            assert!(of(oracle, metric) >= of("(newest)", metric), "{oracle} at {keep} %");
        }
    }
}
