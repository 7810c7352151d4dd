//! Services that compact conversations themselves, to test against. They do what the vendors document, and are strict: what
//! the documents say is refused is refused.
//!
//! It listens on a free port, prints its address in one line, and ends when its standard input is closed.
//!
//! Each vendor has a file. A request may say what is to go wrong with it: see [`fault`].

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
            // Whoever has started the server holds the other end: when that is closed, nobody asks any more.
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            std::process::exit(0);
        });
        serve(listener, Router::new().merge(anthropic::routes()).merge(openai::routes())).await
    })
}
