//! What results are about.

use core::hash::{BuildHasher as _, BuildHasherDefault};
use std::collections::BTreeMap;
use std::hash::DefaultHasher;
use std::string::String;

use epitome_core::IndexedPart;
use epitome_core::message::{PartView, Parts};

/// What tool results are about, for [`Supersede`](crate::Supersede): the tool and the arguments of their call. Two results
/// are about the same thing if both are equal.
///
/// It is made by going through the messages of an index, in their order.
#[derive(Debug, Clone, Default)]
pub struct Things {
    /// The latest call with an id.
    calls: BTreeMap<String, u64>,
    /// By the position of the message and the part's place in it.
    results: BTreeMap<(u32, u32), u64>,
}

impl Things {
    /// Looks through the message at `position`.
    pub fn look_through<M: Parts + ?Sized>(&mut self, position: u32, message: &M) {
        let mut ordinal = 0_u32;
        message.for_each_part(&mut |part| {
            match part {
                PartView::ToolCall(call) => {
                    // Only compared within one pass, so that it need not be the same elsewhere.
                    let hash =
                        BuildHasherDefault::<DefaultHasher>::new().hash_one((call.name, call.arguments));
                    self.calls.insert(call.id.into(), hash);
                }
                PartView::ToolResult(result) => {
                    if let Some(thing) = self.calls.get(result.call_id) {
                        self.results.insert((position, ordinal), *thing);
                    }
                }
                _ => {}
            }
            ordinal = ordinal.saturating_add(1);
        });
    }

    /// What a part is about.
    #[must_use]
    pub fn of(&self, part: &IndexedPart<'_>) -> Option<u64> {
        self.results.get(&(part.position(), part.ordinal())).copied()
    }
}
