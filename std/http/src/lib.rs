//! HTTP requests to services, for providers: with a key, a time limit, safe retries, and errors that contain neither a
//! key nor a text. Runs on tokio.

mod address;
mod endpoint;
mod key;
#[cfg(test)]
mod tests;

pub use address::Address;
pub use endpoint::{Endpoint, Repeat};
pub use key::{Key, KeyHeader};
