//! Requests to services, for providers over them: with a key, a limit of time, repetitions where these do no harm, and errors that hold
//! neither a key nor a text. It runs on tokio.

mod address;
mod endpoint;
mod key;
#[cfg(test)]
mod tests;

pub use address::Address;
pub use endpoint::{Endpoint, Repeat};
pub use key::{Key, KeyHeader};
