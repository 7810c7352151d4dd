//! Names on the command line, each list from the table of the library.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use epitome::compactors::StrategySpec;
use epitome::core::Profile;
use epitome::wire::{CONVERSION_TARGETS, Format};

/// The format from the command line; `None` for a detection of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct From(pub(crate) Option<Format>);

/// The formats to read, and `auto`.
pub(super) fn from() -> impl TypedValueParser<Value = From> {
    let names = core::iter::once(AUTO).chain(Format::readable().map(Format::as_str));
    PossibleValuesParser::new(names).map(|name| From(Format::by_name(&name)))
}

/// The formats to convert to.
pub(super) fn target() -> impl TypedValueParser<Value = Format> {
    let names = CONVERSION_TARGETS.map(Format::as_str);
    PossibleValuesParser::new(names).try_map(|name| Format::by_name(&name).ok_or("there is no such format"))
}

/// The profiles.
pub(super) fn profile() -> impl TypedValueParser<Value = Profile> {
    let names = Profile::ALL.map(Profile::as_str);
    PossibleValuesParser::new(names).try_map(|name| Profile::by_name(&name).ok_or("there is no such profile"))
}

/// The strategies with their parameters.
pub(super) fn strategies() -> String {
    let rows = StrategySpec::known().map(|(name, parameters)| {
        let parameters = parameters.map(|parameter| format!("[:{parameter}=..]")).collect::<String>();
        format!("{name}{parameters}")
    });
    rows.collect::<Vec<_>>().join(", ")
}

/// The name that asks for a detection of the format.
const AUTO: &str = "auto";
