//! Keep the newest of several results of one thing.

use core::fmt;

use epitome_core::{Draft, IndexedPart, PartKind, Strategy, Tokens, Verdict};

use crate::tool_result_clearing::PLACEHOLDER_TOKENS;

/// Lets a note stand in the place of tool results that a newer one of the same thing has made stale: a file that was read
/// again, a list that was asked for again.
///
/// *Keeps*: all groups, and the newest result of each thing, whatever its age. *Clears*: the older ones. *Cost*: one pass
/// over the parts, each found by a binary search. *Stable prefix*: up to the first result that it clears.
///
/// What a result is about is the caller's knowledge, because a strategy sees no text: `key` gives the same number for two
/// results of the same thing, by their positions for example, and none for a result that no other makes stale. A result
/// that says that the tool failed makes none stale. The newest `THINGS` are known, in memory on the stack (8 bytes each);
/// results of more are left alone.
///
/// ```
/// use epitome_compactors::Supersede;
/// use epitome_core::{IndexedPart, Strategy};
///
/// /// What was read, by position: known to whoever has the messages.
/// const READ: [Option<u64>; 6] = [None, Some(7), None, Some(8), None, Some(7)];
/// let by_file = |part: &IndexedPart<'_>| READ.get(part.position() as usize).copied().flatten();
/// let supersede = Supersede::<_>::new(by_file);
/// assert_eq!(supersede.name(), "supersede");
/// ```
#[derive(Clone, Copy)]
pub struct Supersede<K, const THINGS: usize = 256> {
    key: K,
    placeholder: Tokens,
}

impl<K, const THINGS: usize> Supersede<K, THINGS>
where
    K: Fn(&IndexedPart<'_>) -> Option<u64>,
{
    /// Tells results apart by `key`.
    pub const fn new(key: K) -> Self {
        Self { key, placeholder: PLACEHOLDER_TOKENS }
    }

    /// Sets the largest size of the note for a result; at most [`ELIDED_TOKENS_MAX`](epitome_core::ELIDED_TOKENS_MAX).
    #[must_use]
    pub fn placeholder(mut self, tokens: Tokens) -> Self {
        self.placeholder = tokens;
        self
    }
}

impl<K, const THINGS: usize> fmt::Debug for Supersede<K, THINGS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Supersede").field("placeholder", &self.placeholder).finish_non_exhaustive()
    }
}

impl<K, const THINGS: usize> Strategy for Supersede<K, THINGS>
where
    K: Fn(&IndexedPart<'_>) -> Option<u64>,
{
    fn name(&self) -> &'static str {
        "supersede"
    }

    fn plan(&self, draft: &mut Draft<'_>) {
        let (index, mut seen) = (draft.index(), Seen::<THINGS>::default());
        // From the newest on.
        for at in (0..u32::try_from(index.part_count()).unwrap_or(u32::MAX)).rev() {
            let Some(part) = index.part(at).filter(|part| is_seen(draft, part)) else { continue };
            let Some(key) = (self.key)(&part) else { continue };
            if seen.holds(key) {
                // What is protected, or no larger than its note, stays.
                let _ = draft.elide(&part, self.placeholder);
            } else if !part.is_error() {
                seen.add(key);
            }
        }
    }
}

/// Whether a part is a tool result that will be seen.
fn is_seen(draft: &Draft<'_>, part: &IndexedPart<'_>) -> bool {
    part.kind() == PartKind::ToolResult
        && part.group().is_some_and(|group| draft.verdict(&group) == Verdict::Keep)
}

/// A set of keys in a table with open addressing.
struct Seen<const THINGS: usize> {
    slots: [Option<u64>; THINGS],
}

impl<const THINGS: usize> Default for Seen<THINGS> {
    fn default() -> Self {
        Self { slots: [None; THINGS] }
    }
}

impl<const THINGS: usize> Seen<THINGS> {
    /// The slot of a key, or the first that is free behind its place; none if the table is full of others.
    fn slot(&mut self, key: u64) -> Option<&mut Option<u64>> {
        let things = u64::try_from(THINGS).ok()?;
        // Keys may be small numbers, or differ in the upper bits only (Fibonacci hashing).
        let start = (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32).checked_rem(things)?;
        let start = usize::try_from(start).ok()?;
        let order = (start..THINGS).chain(0..start);
        let own = |at: &usize| self.slots.get(*at).is_some_and(|slot| slot.is_none_or(|known| known == key));
        let at = order.into_iter().find(own)?;
        self.slots.get_mut(at)
    }

    fn holds(&mut self, key: u64) -> bool {
        self.slot(key).is_some_and(|slot| *slot == Some(key))
    }

    fn add(&mut self, key: u64) {
        if let Some(slot) = self.slot(key) {
            *slot = Some(key);
        }
    }
}
