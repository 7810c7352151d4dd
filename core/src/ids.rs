//! Positions and counters, each its own type so that one cannot stand for another.

use core::fmt;

macro_rules! number {
    ($(#[$meta:meta])* $name:ident($repr:ty)) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[expect(clippy::exhaustive_structs, reason = "a number with a name: its one field is its meaning")]
        pub struct $name(pub $repr);

        impl $name {
            /// The number after this one. The largest number is returned unchanged.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0.saturating_add(1))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number! {
    /// The sequence number of a message in a session's log. The first is 0; a number is never used twice.
    Seq(u64)
}
number! {
    /// The number of changes to the visible messages of a session. Commits increase it, and so does an answer to a call
    /// of an earlier turn; no other append does.
    Revision(u64)
}
number! {
    /// The ordinal of a turn. A turn runs from a user message to the last message before the next one. Messages before
    /// the first user message are turn 0.
    Turn(u32)
}

/// The sequence number that the next appended message will get.
pub type Head = Seq;
