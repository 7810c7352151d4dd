//! Keep the newest of several results with the same subject.

use core::fmt;

use epitome_core::{Draft, IndexedPart, PartKind, Strategy, Tokens, Verdict};

use crate::tool_result_clearing::PLACEHOLDER_TOKENS;

/// Replaces outdated tool results by a note: a result is outdated if a newer one has the same subject, for example
/// the same file or the same list.
///
/// *Keeps*: all groups, and the newest result of each subject, of any age. *Clears*: the older results. *Cost*: one
/// pass over the parts, each found by a binary search. *Stable prefix*: up to the first result that it clears.
///
/// The caller knows the subjects, because a strategy sees no text. `key` returns the same number for results with
/// the same subject, for example by their positions, and `None` for a result that is never outdated. A failed
/// result makes no other outdated. The newest `THINGS` subjects are stored on the stack, with 8 bytes each; results
/// of further subjects stay.
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
    /// A stage with a function that returns the subject of a result.
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
        // From the newest part on.
        for at in (0..u32::try_from(index.part_count()).unwrap_or(u32::MAX)).rev() {
            let Some(part) = index.part(at).filter(|part| is_seen(draft, part)) else { continue };
            let Some(key) = (self.key)(&part) else { continue };
            if seen.holds(key) {
                // A protected part stays, and so does a part that is not larger than its note.
                let _ = draft.elide(&part, self.placeholder);
            } else if !part.is_error() {
                seen.add(key);
            }
        }
    }
}

/// Whether a part is a tool result in a kept group.
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
    /// The slot of a key, or the first free slot from its place on; `None` if other keys fill the table.
    fn slot(&mut self, key: u64) -> Option<&mut Option<u64>> {
        let things = u64::try_from(THINGS).ok()?;
        // Fibonacci hashing, because keys may be small numbers, or differ only in the upper bits.
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
