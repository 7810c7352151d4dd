//! One level of a value: its members or elements, as slices of the text.

use std::borrow::Cow;

use crate::WireError;
use crate::json;

/// Calls `visit` with every decoded key and its value of `object`, in order. Values are unchanged.
///
/// ```
/// use epitome_wire::document::members;
///
/// let mut found = Vec::new();
/// members(r#"{"a": 1.0, "b": [2]}"#, |key, value| {
///     found.push(format!("{key}: {value}"));
///     Ok(())
/// })?;
/// assert_eq!(found, ["a: 1.0", "b: [2]"]);
/// # Ok::<(), epitome_wire::WireError>(())
/// ```
///
/// # Errors
/// Errors of `visit`. For a text that is no object, `Empty`, or `Truncated`, `NotJson` or `Shape` with an offset.
pub fn members<'a>(
    object: &'a str,
    visit: impl FnMut(Cow<'a, str>, &'a str) -> Result<(), WireError>,
) -> Result<(), WireError> {
    json::members(object, visit)
}

/// The unchanged values of these keys of `object`, from a single scan of a text that may be long.
///
/// ```
/// use epitome_wire::document::fields;
///
/// let answer = r#"{"id": "msg_1", "content": [], "stop_reason": null}"#;
/// let [content, reason, usage] = fields(answer, &["content", "stop_reason", "usage"])?;
/// assert_eq!((content, reason, usage), (Some("[]"), Some("null"), None));
/// # Ok::<(), epitome_wire::WireError>(())
/// ```
///
/// # Errors
/// `DuplicateKey` if one of these keys appears twice. As [`members`] for a text that is no object.
pub fn fields<'a, const N: usize>(
    object: &'a str,
    names: &[&'static str; N],
) -> Result<[Option<&'a str>; N], WireError> {
    json::fields(object, names)
}

/// An element of an array, and the values of some of its keys.
pub type ElementFields<'a, const N: usize> = (&'a str, Result<[Option<&'a str>; N], WireError>);

/// The unchanged elements of `array`, each with the values that [`fields`] finds in it: none for an element that is no
/// object. It needs a single scan of the array.
///
/// ```
/// use epitome_wire::document::elements_and_fields;
///
/// let found = elements_and_fields(r#"[{"role": "user"}, 7]"#, &["role"])?;
/// let roles: Result<Vec<_>, _> = found.into_iter().map(|(_, fields)| fields.map(|[role]| role)).collect();
/// assert_eq!(roles?, [Some("\"user\""), None]);
/// # Ok::<(), epitome_wire::WireError>(())
/// ```
///
/// # Errors
/// As [`members`], for a text that is no array.
pub fn elements_and_fields<'a, const N: usize>(
    array: &'a str,
    names: &[&'static str; N],
) -> Result<Vec<ElementFields<'a, N>>, WireError> {
    let mut found = Vec::new();
    json::items_and_fields(array, names, |item, fields| {
        found.push((item, fields));
        Ok(())
    })?;
    Ok(found)
}
