//! Measures the peak memory of the program `epitome`.

use core::error::Error;
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use epitome_benches::generated::{Messages, Pool, write_json, write_jsonl};
use wait4::Wait4;

use crate::table::Table;
use crate::{SEED, Sizes};

const MIB: f64 = 1_048_576.0;
/// Approximate size of a message in Chat Completions JSON, in bytes.
const MESSAGE_BYTES: u64 = 700;
const WHY_JSON: &str = "shows the largest resident set of a compaction of one JSON document, as a multiple of the file; matters \
     because a transcript that fits in memory should not need several times that";
const WHY_JSONL: &str =
    "shows that JSONL is compacted without being held; matters because logs outgrow memory";

pub(crate) fn run(pool: &Pool, sizes: &Sizes, table: &mut Table) -> Result<(), Box<dyn Error>> {
    let Some(program) = program()? else {
        table.row("memory of `epitome compact`", SKIPPED, None, WHY_JSON);
        return Ok(());
    };
    let folder = tempfile::tempdir()?;
    let json = folder.path().join("history.json");
    write(&json, |out| write_json(Messages::new(pool, SEED).take(sizes.messages), out))?;
    document(&program, &json, table)?;
    let jsonl = folder.path().join("history.jsonl");
    let messages = usize::try_from(sizes.jsonl / MESSAGE_BYTES)?;
    write(&jsonl, |out| write_jsonl(Messages::new(pool, SEED).take(messages), out))?;
    let (peak, file) = (peak_of(&program, &jsonl)?, jsonl.metadata()?.len());
    table.row(
        &format!("peak memory, JSONL of {:.0} MiB", file as f64 / MIB),
        &format!("{:.0} MiB", peak as f64 / MIB),
        Some(("<= 256 MiB", peak <= 256 << 20)),
        WHY_JSONL,
    );
    Ok(())
}

/// Measures the memory for one very large JSON document.
pub(crate) fn giant(bytes: u64, table: &mut Table) -> Result<(), Box<dyn Error>> {
    let Some(program) = program()? else {
        table.row("memory of `epitome compact`", SKIPPED, None, WHY_JSON);
        return Ok(());
    };
    let folder = tempfile::tempdir()?;
    let json = folder.path().join("history.json");
    let messages = usize::try_from(bytes / MESSAGE_BYTES)?;
    write(&json, |out| write_json(Messages::new(&Pool::new(), SEED).take(messages), out))?;
    document(&program, &json, table)
}

fn document(program: &Path, file: &Path, table: &mut Table) -> Result<(), Box<dyn Error>> {
    let (peak, bytes) = (peak_of(program, file)?, file.metadata()?.len());
    let times = peak as f64 / bytes as f64;
    table.row(
        &format!("peak memory, JSON of {:.0} MiB", bytes as f64 / MIB),
        &format!("{:.0} MiB, {times:.2}x the file", peak as f64 / MIB),
        // The program itself takes about 6 MiB; a small file is not significant beside that.
        (bytes >= 10 << 20).then_some(("<= 3x, aim 1.6x", times <= 3.0)),
        WHY_JSON,
    );
    Ok(())
}

/// Runs a program and prints its largest resident set in bytes. This runs in a separate process, because the count of a
/// child includes the memory of its parent at the fork.
pub(crate) fn peak(program: &str, arguments: &[&str]) -> Result<ExitCode, Box<dyn Error>> {
    let child = Command::new(program).args(arguments).stdout(Stdio::null()).spawn()?;
    let used = child.wait4()?;
    println!("{}", used.rusage.maxrss);
    Ok(if used.status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The peak memory of a compaction of `file` into another file, in bytes.
fn peak_of(program: &Path, file: &Path) -> Result<u64, Box<dyn Error>> {
    let out = file.with_extension("out");
    let arguments: [OsString; 8] = [
        "--peak".into(),
        program.into(),
        "compact".into(),
        file.into(),
        "-o".into(),
        out.clone().into(),
        "--force".into(),
        "--json".into(),
    ];
    let ran = Command::new(std::env::current_exe()?).args(arguments).stderr(Stdio::inherit()).output()?;
    if !ran.status.success() {
        return Err(format!("{} failed on {}", program.display(), file.display()).into());
    }
    let (before, after) = (file.metadata()?.len(), out.metadata()?.len());
    assert!(after > 0 && after < before, "the file is compacted, and not empty");
    Ok(String::from_utf8(ran.stdout)?.trim().parse()?)
}

/// The program `epitome` in the folder of this program, if it exists.
fn program() -> Result<Option<PathBuf>, Box<dyn Error>> {
    let beside = std::env::current_exe()?.with_file_name(format!("epitome{}", std::env::consts::EXE_SUFFIX));
    Ok(Some(beside).filter(|path| path.is_file()))
}

fn write(
    path: &Path,
    messages: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    messages(&mut out)?;
    out.flush()
}

const SKIPPED: &str = "skipped: build with `cargo build --release -p epitome-cli`";
