//! Measurements that need a new process: the time to load a vocabulary, its memory, and the first pass over texts.

use core::error::Error;
use std::process::Command;

use epitome::tokens::counter_by_name;
use epitome_benches::generated::Pool;

use crate::clock::{median, timed};
use crate::table::Table;
use crate::{Sizes, texts};

/// The results of a child process.
#[derive(Debug, Clone, Copy)]
struct Fresh {
    load_ms: f64,
    /// Resident memory that loading has added; 0 if the system does not report it.
    load_mib: f64,
    first_pass_ms: f64,
    tokens: u64,
}

pub(crate) fn run(sizes: &Sizes, table: &mut Table) -> Result<(), Box<dyn Error>> {
    for encoding in ["o200k_base", "cl100k_base"] {
        let (mut fast, mut reference) = (Vec::new(), Vec::new());
        for _ in 0..sizes.rounds {
            fast.push(measure(encoding, sizes)?);
            reference.push(measure(&format!("{encoding}@tiktoken-rs"), sizes)?);
        }
        assert!(fast.iter().chain(&reference).all(|fresh| fresh.tokens == fast[0].tokens));
        let middle =
            |all: &[Fresh], value: fn(&Fresh) -> f64| median(&mut all.iter().map(value).collect::<Vec<_>>());
        let both = |value| (middle(&fast, value), middle(&reference, value));
        let (load, memory) = (both(|fresh| fresh.load_ms), both(|fresh| fresh.load_mib));
        table.row(
            &format!("{encoding}: load the vocabulary"),
            &format!(
                "{:.0} ms, {:.0} MiB; tiktoken-rs {:.0} ms, {:.0} MiB",
                load.0, memory.0, load.1, memory.1
            ),
            Some(("<= 150 ms, <= 50 MiB", load.0 <= 150.0 && memory.0 <= 50.0)),
            "shows the first use in a process; matters because command-line tools and functions start often",
        );
        let first = both(|fresh| fresh.first_pass_ms);
        let mut ratios: Vec<_> =
            reference.iter().zip(&fast).map(|(slow, fast)| slow.first_pass_ms / fast.first_pass_ms).collect();
        let cold = median(&mut ratios);
        table.row(
            &format!("{encoding}: first pass over the texts"),
            &format!("{:.0} ms; {cold:.1}x tiktoken-rs", first.0),
            Some((">= 3x", cold >= 3.0)),
            "shows counting with empty caches; matters for the first request",
        );
    }
    Ok(())
}

fn measure(name: &str, sizes: &Sizes) -> Result<Fresh, Box<dyn Error>> {
    let arguments = ["--fresh", name, &sizes.counted.to_string()];
    let ran = Command::new(std::env::current_exe()?).args(arguments).output()?;
    let said = String::from_utf8(ran.stdout)?;
    let numbers: Vec<&str> = said.split_whitespace().collect();
    let [load, memory, pass, tokens] = numbers.as_slice() else {
        return Err(format!("the process for {name} failed").into());
    };
    Ok(Fresh {
        load_ms: load.parse()?,
        load_mib: memory.parse()?,
        first_pass_ms: pass.parse()?,
        tokens: tokens.parse()?,
    })
}

/// Measures the counter `name` in this process.
pub(crate) fn child(name: &str, messages: usize) -> Result<(), Box<dyn Error>> {
    let pool = Pool::new();
    let texts = texts(&pool, messages);
    let counter = counter_by_name(name)?;
    let before = resident_mib();
    let load = timed(|| assert_eq!(counter.count("hello world").0, 2));
    let memory = resident_mib() - before;
    let mut tokens = 0_u64;
    let pass = timed(|| tokens = texts.iter().map(|text| counter.count(text).as_u64()).sum());
    println!("{} {memory} {} {tokens}", load.as_secs_f64() * 1e3, pass.as_secs_f64() * 1e3);
    Ok(())
}

/// Resident memory of this process, if the system reports it.
fn resident_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1024.0
}
