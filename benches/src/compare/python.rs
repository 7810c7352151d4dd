//! Runs the Python packages in a separate process: it gets its task on its command line and answers with JSON.

use core::time::Duration;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::clock::Times;
use super::contender::{Keeping, Limits, Unit};
use super::judge::Given;
use super::loops::Looped;
use super::said::Said;
use super::sizes::{Measured, Outcome, Row};
use super::sweep::Swept;

/// Paths of the interpreter and of `compare.py`.
#[derive(Debug, Clone)]
pub struct Python {
    interpreter: PathBuf,
    script: PathBuf,
}

impl Python {
    /// Uses this script and this interpreter, which must find the packages.
    #[must_use]
    pub fn new(interpreter: impl Into<PathBuf>, script: impl Into<PathBuf>) -> Self {
        Self { interpreter: interpreter.into(), script: script.into() }
    }

    /// Measures every package at one size of history, each for as many rounds as fit into `most`.
    #[must_use]
    pub fn rows(&self, given: &Given, limits: Limits, rounds: usize, most: Duration) -> Vec<Row> {
        let arguments = [limits.tokens, limits.messages, limits.tool_uses, rounds as u64, most.as_secs()];
        let answers = self.ask("plan", given.said(), &arguments.map(|number| number.to_string()));
        answers.iter().map(|answer| row(answer, given)).collect()
    }

    /// Runs the validity sweep of every package, at every `step`th limit.
    #[must_use]
    pub fn sweep(&self, given: &Given, step: usize) -> Vec<(String, String, Unit, Swept)> {
        let (first, last) = (super::sweep::LIMITS.start(), super::sweep::LIMITS.end());
        let arguments = [first.to_string(), last.to_string(), step.to_string()];
        let answers = self.ask("sweep", given.said(), &arguments);
        let swept = |answer: &Value| {
            let (mut swept, unit) = (Swept::default(), unit(answer));
            for run in answer["runs"].as_array().unwrap() {
                let over = (unit != Unit::ToolUses).then(|| run["own"].as_u64() > run["limit"].as_u64());
                swept.add(&given.judge(&messages(&run["returned"])), over);
            }
            (text(answer, "name"), text(answer, "call"), unit, swept)
        };
        answers.iter().map(swept).collect()
    }

    /// Runs the loop of every package, each for at most `most`.
    #[must_use]
    pub fn loops(&self, turns: &[Vec<Said>], limits: Limits, most: Duration) -> Vec<Looped> {
        let arguments = [limits.tokens, limits.messages, limits.tool_uses, most.as_secs()];
        let answers = self.ask("loop", &turns.concat(), &arguments.map(|number| number.to_string()));
        let looped = |answer: &Value| Looped {
            name: text(answer, "name"),
            call: text(answer, "call"),
            unit: unit(answer),
            keeping: Keeping::Whole,
            turns: answer["turns"].as_u64().unwrap() as usize,
            time: seconds(&answer["seconds"]),
            course: answer["course"]
                .as_array()
                .unwrap()
                .iter()
                .map(|point| (point[0].as_u64().unwrap() as usize, seconds(&point[1])))
                .collect(),
            bytes: answer["bytes"].as_u64().unwrap(),
        };
        answers.iter().map(looped).collect()
    }

    fn ask(&self, what: &str, said: &[Said], arguments: &[String]) -> Vec<Value> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history.json");
        write(said, &file).unwrap();
        let mut command = Command::new(&self.interpreter);
        command.arg(&self.script).arg(what).arg(&file).args(arguments).stderr(Stdio::inherit());
        let ran = command.output().unwrap();
        assert!(ran.status.success(), "{command:?} failed");
        serde_json::from_slice(&ran.stdout).unwrap()
    }
}

fn write(said: &[Said], file: &Path) -> std::io::Result<()> {
    let mut out = BufWriter::new(File::create(file)?);
    let json: Value = said.iter().map(Said::to_json).collect();
    serde_json::to_writer(&mut out, &json)?;
    out.flush()
}

fn row(answer: &Value, given: &Given) -> Row {
    let outcome = match answer["not_run"].as_str() {
        Some(why) => Outcome::NotRun(why.to_owned()),
        None => Outcome::Returned(Box::new(Measured {
            own_given: answer["own_given"].as_u64(),
            own_returned: answer["own_returned"].as_u64(),
            verdict: given.judge(&messages(&answer["returned"])),
            kept: times(&answer["seconds"]),
            given_away: Times::default(),
            bare: times(&answer["bare"]),
        })),
    };
    Row { name: text(answer, "name"), call: text(answer, "call"), unit: unit(answer), outcome }
}

fn times(answer: &Value) -> Times {
    answer.as_array().into_iter().flatten().map(seconds).collect()
}

fn seconds(answer: &Value) -> Duration {
    Duration::from_secs_f64(answer.as_f64().unwrap())
}

fn messages(answer: &Value) -> Vec<Said> {
    answer.as_array().unwrap().iter().map(Said::of_json).collect()
}

fn text(answer: &Value, key: &str) -> String {
    answer[key].as_str().unwrap().to_owned()
}

fn unit(answer: &Value) -> Unit {
    let units = [Unit::Tokens, Unit::Messages, Unit::ToolUses];
    units.into_iter().find(|unit| answer["unit"] == unit.as_str()).unwrap()
}
