//! A server for tests that imitates vendors with a compaction of their own. It follows the documentation of the
//! vendors, and is strict: it refuses the requests that the documentation forbids.
//!
//! It listens on a free port, prints its address in one line, and ends when its standard input is closed.
//!
//! Each vendor has a file. The headers of a request can select a fault: see [`fault`].

#![expect(clippy::print_stdout, reason = "a program: the address is its output")]

use std::io::Read;

use axum::{Router, serve};
use tokio::net::TcpListener;

mod anthropic;
mod fault;
mod openai;

fn main() -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("http://{}", listener.local_addr()?);
        std::thread::spawn(|| {
            // The program that started the server holds the other end of standard input, and closes it when it ends.
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            std::process::exit(0);
        });
        serve(listener, Router::new().merge(anthropic::routes()).merge(openai::routes())).await
    })
}
