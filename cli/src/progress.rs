//! A progress bar for inputs that take a while.

#[cfg(target_family = "wasm")]
mod none;
#[cfg(not(target_family = "wasm"))]
mod terminal;

#[cfg(target_family = "wasm")]
pub(crate) use none::{BinaryBytes, DecimalBytes, Progress};
#[cfg(not(target_family = "wasm"))]
pub(crate) use terminal::{BinaryBytes, DecimalBytes, Progress};
