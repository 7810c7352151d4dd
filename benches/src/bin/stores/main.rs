//! Proofs and measurements of history stores, for any store that has a URL.
//!
//! ```text
//! stores crash URL [--kills 200]
//! stores writers URL [--seconds 30] [--processes 1] [--writers 16] [--compactors 4]
//! stores flat URL [--sizes 1000,10000,100000] [--rounds 50] [--most 1.2]
//! stores beside URL [--turns 500]
//! stores search URL [--messages 1000000] [--appends 5000]
//! ```
//!
//! `encrypted:URL` is the store with encryption. Each command works in sessions of its own, and deletes them after
//! success. A failed proof ends with a panic that states the reason, and leaves its sessions.

#![expect(clippy::print_stdout, reason = "a command-line tool: its lines are its output")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a proof that fails ends the run"
)]

mod beside;
mod crash;
mod flat;
mod meter;
mod search;
mod sessions;
mod writers;

use core::str::FromStr;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["crash", url, options @ ..] => crash::prove(url, option(options, "--kills", 200)),
        ["crash-child", url, session] => crash::child(url, session),
        ["writers", url, options @ ..] => writers::prove(url, &writers::Options::of(options)),
        ["writers-child", url, session, options @ ..] => {
            writers::child(url, session, &writers::Options::of(options));
        }
        ["flat", url, options @ ..] => {
            let sizes = option(options, "--sizes", "1000,10000,100000".to_owned());
            let sizes: Vec<u64> = sizes.split(',').map(|size| size.parse().expect("a number")).collect();
            let most = option(options, "--most", f64::INFINITY);
            flat::measure(url, &sizes, option(options, "--rounds", 50), most);
        }
        ["peak", url, session] => flat::peak(url, session),
        ["stream", url, session] => flat::stream(url, session),
        ["beside", url, options @ ..] => beside::measure(url, option(options, "--turns", 500)),
        ["search", url, options @ ..] => {
            search::measure(
                url,
                option(options, "--messages", 1_000_000),
                option(options, "--appends", 5_000),
            );
        }
        _ => {
            println!(
                "usage: stores crash|writers|flat|beside|search URL [OPTIONS]; what they are stands in its source"
            );
            std::process::exit(2);
        }
    }
}

/// The value that follows the option `name`; `default` if the option is absent.
fn option<T: FromStr>(options: &[&str], name: &str, default: T) -> T {
    let Some(at) = options.iter().position(|option| *option == name) else { return default };
    let value = options.get(at + 1).and_then(|value| value.parse().ok());
    value.unwrap_or_else(|| panic!("{name} wants a value"))
}
