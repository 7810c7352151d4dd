//! Compaction as a run sees it: its trigger, and the compactor to call.
//!
//! A [`Compactor`] is anything that can shrink a history. The strategies, and the engine that runs
//! them, are in `epitome-compactors`.

mod auto;
mod compactor;
mod costs;
mod early;
mod groups;
mod hook;
mod kept;
mod live_request;
mod messages;
mod outcome;
mod payback;
mod tool;

pub use auto::{AutoCompaction, Compaction, CompactionOptions, Condition, RunPoints};
pub use compactor::{CompactionCx, Compactor};
pub use costs::Costs;
pub use early::{Began, Begun, Discarded};
pub(crate) use groups::DropGroups;
pub use hook::{BeforeCompaction, CompactionHook};
pub use kept::KeptSession;
pub use live_request::LiveRequest;
pub use messages::{Held, MessagesCompactor};
pub use outcome::{CompactionOutcome, CompactionResult, FellBack, UnchangedReason};
pub use payback::{Payback, PaybackRule};
pub use tool::CompactTool;
pub(crate) use tool::OWN_TOOLS;
