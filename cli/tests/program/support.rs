//! Helpers that run the program, and transcripts for the tests.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// A part of the message texts in tests: it must never occur in an error.
pub(crate) const SECRET: &str = "hunter2-SECRET-text";

/// Result of a run.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// The program with `args`, without standard input and without the settings of the user.
pub(crate) fn program<S: AsRef<str>>(args: &[S]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_epitome"));
    command.args(args.iter().map(AsRef::as_ref)).stdin(Stdio::null());
    // Settings of the user who runs the tests do not reach the program.
    for name in ["NO_COLOR", "EPITOME_STORE", "EPITOME_SESSION"] {
        command.env_remove(name);
    }
    command.env("EPITOME_CONFIG", "");
    command
}

/// Runs the program with `args`, within this process, which has already loaded the token tables.
pub(crate) fn run<S: AsRef<str>>(args: &[S]) -> Done {
    run_with(args, b"")
}

/// Runs this command, and returns its result.
pub(crate) fn done(command: &mut Command) -> Done {
    Done::of(command.output().unwrap())
}

/// Runs the program with `input` as its standard input, within this process. A command that never ends by itself, or
/// that reads the input of its process, runs in its own process.
pub(crate) fn run_with<S: AsRef<str>>(args: &[S], input: &[u8]) -> Done {
    let mut args: Vec<_> = args.iter().map(AsRef::as_ref).collect();
    // Tests write the same file several times.
    if args.contains(&"-o") {
        args.push("--force");
    }
    if args.iter().any(|arg| ["mcp", "inspect", "--follow", "/dev/stdin"].contains(arg)) {
        return piped(&mut program(&args), input);
    }
    let answer = epitome_cli::call(args, input);
    Done::new(answer.exit_code.into(), answer.output, answer.diagnostics)
}

/// Runs this command with `input` as its standard input.
pub(crate) fn piped(command: &mut Command, input: &[u8]) -> Done {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // The program may end before it has read all of the input.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Done::of(output)
}

impl Done {
    fn of(output: Output) -> Self {
        let code = output.status.code().unwrap_or_else(|| panic!("{:?}", output.status));
        Self::new(code, output.stdout, output.stderr)
    }

    fn new(code: i32, out: Vec<u8>, err: Vec<u8>) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let done = Self { code, out: text(out), err: text(err) };
        assert!(!done.err.contains(SECRET), "message text in an error: {}", done.err);
        assert!(!done.err.contains("panicked"), "{}", done.err);
        done
    }

    /// Standard output of a successful run.
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, 0, "{}", self.err);
        self.out
    }

    /// Standard output of a successful run, as JSON.
    pub(crate) fn json(self) -> Value {
        serde_json::from_str(&self.ok()).unwrap()
    }

    /// The error message of a run with this exit code and no other output.
    pub(crate) fn fails(self, code: i32) -> String {
        assert_eq!((self.code, self.out.as_str()), (code, ""), "{}", self.err);
        self.err
    }
}

/// The report of `compact` with these further arguments, as JSON.
pub(crate) fn report<S: AsRef<str>>(file: &Path, args: &[S]) -> Value {
    let mut all = vec!["compact", text(file), "--json"];
    all.extend(args.iter().map(AsRef::as_ref));
    run(&all).json()
}

/// A file of `cli/tests/fixtures`.
pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// A file of `examples`.
pub(crate) fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name)
}

/// A path as an argument.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

pub(crate) fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

pub(crate) fn json_of(path: &Path) -> Value {
    serde_json::from_str(&read(path)).unwrap()
}

/// A folder for the files of one test.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path
    }

    /// The names of the files in the folder, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// A valid conversation of this many turns, with parallel calls, unknown fields and secrets.
pub(crate) fn messages(turns: usize) -> Vec<Value> {
    let mut all = vec![json!({"role": "system", "content": format!("Be brief. {SECRET}")})];
    for turn in 0..turns {
        let (left, right) = (format!("call_{turn}_a"), format!("call_{turn}_b"));
        let call = |id: &str| {
            let function = json!({"name": "look", "arguments": format!("{{\"at\": \"{SECRET} {turn}\"}}")});
            json!({"id": id, "type": "function", "function": function})
        };
        let said = |what: &str| format!("{what} number {turn}, 日本語 and \"quotes\" {SECRET}");
        all.push(json!({"role": "user", "content": said("question"), "cost": 1.5, "n": turn}));
        let calls = [call(&left), call(&right)];
        all.push(json!({"role": "assistant", "content": null, "tool_calls": calls}));
        // The results are in the other order than their calls.
        all.push(json!({"role": "tool", "tool_call_id": right, "content": said("right").repeat(3)}));
        all.push(json!({"role": "tool", "tool_call_id": left, "content": said("left").repeat(3)}));
        all.push(json!({"role": "assistant", "content": said("answer")}));
    }
    all
}

/// `messages` as the lines of a JSONL file, with a line break after the last one.
pub(crate) fn jsonl(messages: &[Value]) -> String {
    messages.iter().map(|message| format!("{message}\n")).collect()
}
