//! Time limits of tests for a server, and a port for the start of one: the machine may be busy.

use core::time::Duration;
use std::net::TcpListener;

use epitome_std::history::RemoteOptions;
use uuid::Uuid;

/// Time limit of an attempt that must not fail: a disk with other writers may take many seconds.
pub(crate) fn patient() -> RemoteOptions {
    RemoteOptions::default().with_timeout(Duration::from_secs(60))
}

/// A free port. It is below the ports that Linux gives to clients: a client could otherwise take it while a server is
/// down.
pub(crate) fn port() -> u16 {
    // These bits of a random UUID are random.
    let random = || 20_000 + Uuid::new_v4().as_fields().1 % 10_000;
    core::iter::repeat_with(random).find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).unwrap()
}
