//! A strategy of the caller's own type, or one that a text describes.

use core::fmt;
use core::str::FromStr;
use std::boxed::Box;

use epitome_core::Strategy;
use epitome_std::message::Message;

use crate::{SpecError, StrategySpec};

/// The strategy of an [`Engine`](crate::Engine) or of [`compact_messages`](crate::compact_messages).
///
/// It is any type that implements [`Strategy`] and is `Send + Sync + 'static`, or a [`StrategySpec`]. If a specification
/// needs the texts of the messages, its strategy is made anew for each pass.
///
/// A [`Pipeline`](crate::Pipeline) borrows its stages, so that it is no such type. To run a strategy of your own before
/// another one, write a strategy that owns both and makes the pipeline in its methods: `docs/adding-a-strategy.md` has one.
///
/// ```
/// use epitome_compactors::{AnyStrategy, StrategySpec, Truncation};
/// use epitome_core::Strategy;
///
/// let of_a_type = AnyStrategy::from(Truncation::new());
/// let of_a_spec = AnyStrategy::from("supersede | truncate".parse::<StrategySpec>()?);
/// assert_eq!((of_a_type.name(), of_a_spec.name()), ("truncate", "pipeline"));
/// // A strategy that is chosen at run time.
/// let chosen: Box<dyn Strategy + Send + Sync> = Box::new(Truncation::new());
/// assert_eq!(AnyStrategy::from(chosen).name(), "truncate");
/// // The same, read as an `AnyStrategy` at once.
/// assert_eq!("supersede | truncate".parse::<AnyStrategy>()?.name(), of_a_spec.name());
/// # Ok::<(), epitome_compactors::SpecError>(())
/// ```
pub struct AnyStrategy(Made);

enum Made {
    /// A strategy that needs no texts.
    Once(Box<dyn Strategy + Send + Sync>),
    /// A specification. Its strategy is made anew for the messages of each pass.
    PerPass(StrategySpec),
}

impl AnyStrategy {
    /// The name of the strategy, for display and for compaction records.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match &self.0 {
            Made::Once(strategy) => strategy.name(),
            Made::PerPass(spec) => spec.strategy(spec.texts()).name(),
        }
    }

    /// The strategy for an index of `messages`, in their order.
    pub(crate) fn for_messages<'m>(
        &self,
        messages: impl Iterator<Item = &'m Message>,
    ) -> Box<dyn Strategy + Send + Sync + '_> {
        match &self.0 {
            Made::Once(strategy) => Box::new(&**strategy),
            Made::PerPass(spec) => {
                let mut texts = spec.texts();
                for (position, message) in (0_u32..).zip(messages) {
                    texts.look_through(position, message);
                }
                Box::new(spec.strategy(texts))
            }
        }
    }
}

impl<S: Strategy + Send + Sync + 'static> From<S> for AnyStrategy {
    fn from(strategy: S) -> Self {
        Self(Made::Once(Box::new(strategy)))
    }
}

impl From<StrategySpec> for AnyStrategy {
    fn from(spec: StrategySpec) -> Self {
        Self(match spec.needs_texts() {
            true => Made::PerPass(spec),
            false => Made::Once(Box::new(spec.strategy(spec.texts()))),
        })
    }
}

impl FromStr for AnyStrategy {
    type Err = SpecError;

    /// Reads a [`StrategySpec`].
    fn from_str(text: &str) -> Result<Self, SpecError> {
        text.parse::<StrategySpec>().map(Self::from)
    }
}

impl fmt::Debug for AnyStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AnyStrategy").field(&self.name()).finish()
    }
}
