//! Times that tests wait for a server, and the start of one: the machine may be busy with much else.

use core::time::Duration;
use std::net::TcpListener;

use epitome_std::history::RemoteOptions;
use uuid::Uuid;

/// Time limit of an attempt that must not fail: a disk that others write to as well may take many seconds.
pub(crate) fn patient() -> RemoteOptions {
    RemoteOptions::default().with_timeout(Duration::from_secs(60))
}

/// A port that nobody listens on. It is below those that Linux gives to clients: one of them could have it otherwise while
/// a server is down.
pub(crate) fn port() -> u16 {
    // Of a random UUID these bits are random.
    let random = || 20_000 + Uuid::new_v4().as_fields().1 % 10_000;
    core::iter::repeat_with(random).find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).unwrap()
}
