//! The process of an external program: a request is a line of its input, an answer a line of its output.

use core::time::Duration;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Instant;

use crate::amount::{counted, grouped};
use crate::failure::{Failure, Result, code};

/// A running program.
#[derive(Debug)]
pub(super) struct Process {
    name: String,
    child: Child,
    /// Requests to the program; `None` after its input is closed.
    requests: Option<Sender<String>>,
    /// Lines of its output.
    answers: Receiver<Vec<u8>>,
    asked: u64,
    /// Time limit of an answer.
    limit: Duration,
}

impl Process {
    /// Starts a program. Its standard error is passed through.
    pub(super) fn start(name: &str, words: &[String], limit: Duration) -> Result<Self> {
        let (program, arguments) =
            words.split_first().ok_or_else(|| Failure::input("--command: no program"))?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let failed = |why: String| {
            let what = format!(
                "--command {name}: {program} cannot be started: {why}; give a program and its arguments"
            );
            Failure::new(code::IO, what)
        };
        let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed("it has no pipes".to_owned()));
        };
        let ((requests, to_write), (read, answers)) = (channel(), channel());
        // Separate threads: a program that does not read or write must not block this one.
        thread::spawn(move || write_all(&to_write, stdin));
        thread::spawn(move || read_all(stdout, &read));
        Ok(Self { name: name.to_owned(), child, requests: Some(requests), answers, asked: 0, limit })
    }

    /// Sends a request, and waits for the answer.
    pub(super) fn ask(&mut self, request: String) -> Result<Vec<u8>> {
        if self.answers.try_recv().is_ok() {
            let next = grouped(self.asked + 1);
            return Err(self.failure(
                code::INPUT,
                &format!("it has written line {next} before it was asked; one line answers one request"),
            ));
        }
        self.asked += 1;
        let number = grouped(self.asked);
        if let Some(requests) = &self.requests {
            // If the program has stopped reading, the wait below reports the reason.
            drop(requests.send(request));
        }
        match self.answers.recv_timeout(self.limit) {
            Ok(line) if line.len() as u64 > ANSWER_BYTES_MAX => {
                Err(self.nonsense(&format!("it has more than {} bytes", grouped(ANSWER_BYTES_MAX))))
            }
            Ok(line) => Ok(line),
            Err(RecvTimeoutError::Timeout) => {
                drop(self.child.kill());
                let seconds = counted(self.limit.as_secs(), "second");
                Err(self.failure(
                    code::IO,
                    &format!("no answer to request {number} within {seconds}: raise --command-timeout, or mend the program"),
                ))
            }
            Err(RecvTimeoutError::Disconnected) => {
                let how = self.ended();
                Err(self.failure(
                    code::IO,
                    &format!("the program has ended ({how}) without an answer to request {number}"),
                ))
            }
        }
    }

    /// The failure of an answer that cannot be used.
    pub(super) fn nonsense(&self, why: &str) -> Failure {
        self.failure(code::INPUT, &format!("line {} of its output: {why}", grouped(self.asked)))
    }

    fn failure(&self, code: u8, what: &str) -> Failure {
        Failure::new(code, format!("--command {}: {what}", self.name))
    }

    /// The exit status of a program that has closed its output.
    #[expect(
        clippy::disallowed_methods,
        reason = "no executor runs here, and no channel tells that a process has ended"
    )]
    fn ended(&mut self) -> String {
        let since = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return status.to_string(),
                Ok(None) if since.elapsed() < PATIENCE => thread::sleep(GLANCE),
                _ => return "its output is closed".to_owned(),
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.requests = None;
        self.ended();
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn write_all(requests: &Receiver<String>, mut stdin: ChildStdin) {
    for request in requests {
        let written = stdin.write_all(request.as_bytes()).and_then(|()| stdin.write_all(b"\n"));
        if written.and_then(|()| stdin.flush()).is_err() {
            return;
        }
    }
}

fn read_all(stdout: ChildStdout, answers: &Sender<Vec<u8>>) {
    let mut stdout = BufReader::new(stdout);
    loop {
        let mut line = Vec::new();
        let read = stdout.by_ref().take(ANSWER_BYTES_MAX + 1).read_until(b'\n', &mut line);
        if !matches!(read, Ok(1..)) || answers.send(line).is_err() {
            return;
        }
    }
}

/// The longest answer, in bytes: as long as the longest line of a transcript.
const ANSWER_BYTES_MAX: u64 = 256 << 20;

/// Time that a program has to exit after its output is closed.
const PATIENCE: Duration = Duration::from_secs(2);

/// Time between two checks of the exit status.
const GLANCE: Duration = Duration::from_millis(5);
