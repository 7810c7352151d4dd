//! The reasons why there is no plan.

use core::cmp::Reverse;
use core::fmt;

use crate::Tokens;
use crate::draft::Draft;
use crate::index::GroupKind;

/// The reason why there is no plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanError {
    /// The protected messages exceed the limit: the window less the reserve.
    Infeasible(Infeasible),
    /// The caller provided too few cells.
    CellsTooFew {
        /// The number of cells that are needed.
        needed: usize,
    },
}

/// The protected messages exceed the limit, and cutting the tool results in them is not enough: no compaction helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Infeasible {
    /// The size of the protected messages, in tokens: [`Floors::hard`](crate::Floors::hard), with its results whole.
    pub floor: u64,
    /// The largest size of a request: the window less the reserve.
    pub limit: u64,
    /// The largest groups that are protected, largest first.
    pub largest: [Option<Contributor>; 3],
}

/// A protected group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Contributor {
    /// The position of its first message.
    pub position: u32,
    /// The kind of the group.
    pub kind: GroupKind,
    /// The size of the group.
    pub tokens: Tokens,
}

impl Contributor {
    /// The larger group ranks higher, and of equal groups the first.
    const fn rank(&self) -> (Tokens, Reverse<u32>) {
        (self.tokens, Reverse(self.position))
    }
}

impl Infeasible {
    pub(super) fn new(draft: &Draft<'_>) -> Self {
        let mut largest: [Option<Contributor>; 3] = [None; 3];
        for group in draft.index().groups().filter(|group| draft.is_protected(group)) {
            let position = draft.index().span(group.leader()).map_or(0, |span| span.first);
            let mut rest = Contributor { position, kind: group.kind(), tokens: group.tokens() };
            for place in &mut largest {
                match place {
                    Some(there) if there.rank() >= rest.rank() => {}
                    Some(there) => core::mem::swap(there, &mut rest),
                    None => {
                        *place = Some(rest);
                        break;
                    }
                }
            }
        }
        Self { floor: draft.floors().hard, limit: draft.budget().limit(), largest }
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CellsTooFew { needed } => write!(f, "a plan needs {needed} cells"),
            Self::Infeasible(Infeasible { floor, limit, largest }) => {
                write!(
                    f,
                    "what is protected has {floor} tokens, and a request may have {limit}; the largest:"
                )?;
                for Contributor { position, kind, tokens } in largest.iter().flatten() {
                    write!(f, " {} of {tokens} tokens at message {position};", kind.as_str())?;
                }
                f.write_str(" raise the window, or shorten these")
            }
        }
    }
}

impl core::error::Error for PlanError {}
