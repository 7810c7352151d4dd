//! What holds for any conversation, and for every recorded one that is at hand.

mod answers;
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
