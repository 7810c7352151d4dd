//! One level of a value: its members or elements, as slices of the text.

use std::borrow::Cow;

use crate::WireError;
use crate::json;

/// Calls `visit` with every key, decoded, and value of `object`, in order. Values are as they are written.
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
/// What `visit` says; for what is no object `Empty`, or `Truncated`, `NotJson` or `Shape` with an offset.
pub fn members<'a>(
    object: &'a str,
    visit: impl FnMut(Cow<'a, str>, &'a str) -> Result<(), WireError>,
) -> Result<(), WireError> {
    json::members(object, visit)
}

/// The values of these keys of `object`, as they are written: one look at a text that may be long.
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
/// `DuplicateKey` for one of these keys that is there twice; as [`members`] for what is no object.
pub fn fields<'a, const N: usize>(
    object: &'a str,
    names: &[&'static str; N],
) -> Result<[Option<&'a str>; N], WireError> {
    json::fields(object, names)
}

/// An element of an array, and the values of some of its keys.
pub type ElementFields<'a, const N: usize> = (&'a str, Result<[Option<&'a str>; N], WireError>);

/// The elements of `array`, as they are written, each with what [`fields`] finds in it: nothing, where it is no object. One
/// look at all of them.
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
/// As [`members`], for what is no array.
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
