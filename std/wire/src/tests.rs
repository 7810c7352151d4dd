//! Properties of any conversation, tested on each recorded one that is available.

mod answers;
mod cleared;
mod conversions;
mod formats;
mod generate;
mod hosted;
mod nasty;
mod outlines;
mod properties;
mod recorded;
mod sessions;
mod slotted;
pub(crate) mod support;
