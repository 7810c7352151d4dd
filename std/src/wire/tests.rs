//! What holds for any conversation, and for every recorded one that is at hand.

mod generate;
mod properties;
mod recorded;
