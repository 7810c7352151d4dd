//! Changes some elements of an array, or some members of an object, and leaves the rest of the text unchanged.

use core::convert::Infallible;
use core::ops::Range;

use super::{offset_of, quote, range_of, raw_members, trim};
use crate::WireError;

/// The places of a container's elements in `text`, and the separator between them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ElementPlaces<'a> {
    /// The text to which all ranges belong.
    pub(crate) text: &'a str,
    /// The first byte after the opening bracket.
    pub(crate) start: usize,
    /// The closing bracket.
    pub(crate) end: usize,
    /// The elements, in order.
    pub(crate) elements: &'a [Range<usize>],
    /// The separator of two elements, if the text has no example of it.
    pub(crate) separator: &'a str,
}

impl<'a> ElementPlaces<'a> {
    /// Emits the text between the brackets of a container that holds `pieces`. Each piece is a text, with the index of
    /// the element that it replaces, if any. A piece has the separator that was before this element.
    pub(crate) fn emit<'p, E>(
        &self,
        pieces: impl IntoIterator<Item = (Option<usize>, &'p str)>,
        emit: &mut impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut pieces = pieces.into_iter();
        let Some((_, first)) = pieces.next() else {
            return if self.elements.is_empty() { emit(self.between(self.start, self.end)) } else { Ok(()) };
        };
        emit(self.leading())?;
        emit(first)?;
        for (place, piece) in pieces {
            self.emit_separator(place, emit)?;
            emit(piece)?;
        }
        emit(self.elements.last().map_or("", |last| self.between(last.end, self.end)))
    }

    fn emit_separator<E>(
        &self,
        place: Option<usize>,
        emit: &mut impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        let index = place.filter(|index| *index > 0).unwrap_or(1);
        match (self.elements.get(index.saturating_sub(1)), self.elements.get(index)) {
            (Some(before), Some(after)) => emit(self.between(before.end, after.start)),
            _ => {
                emit(self.separator)?;
                emit(self.leading())
            }
        }
    }

    fn leading(&self) -> &'a str {
        self.elements.first().map_or("", |first| self.between(self.start, first.start))
    }

    fn between(&self, start: usize, end: usize) -> &'a str {
        self.text.get(start..end).unwrap_or_default()
    }
}

/// The container `text`, `[..]` or `{..}`, with `pieces` instead of `elements`.
pub(crate) fn rebuild<'p>(
    text: &str,
    elements: &[Range<usize>],
    pieces: impl IntoIterator<Item = (Option<usize>, &'p str)>,
) -> String {
    let inner = trim(text);
    let start = offset_of(text, inner).saturating_add(1);
    let end = start.saturating_add(inner.len().saturating_sub(2));
    let places = ElementPlaces { text, start, end, elements, separator: "," };
    let mut out = String::with_capacity(text.len());
    out.push_str(text.get(..start).unwrap_or_default());
    let Ok(()) = places.emit(pieces, &mut |piece| {
        out.push_str(piece);
        Ok::<(), Infallible>(())
    });
    out.push_str(text.get(end..).unwrap_or_default());
    out
}

/// The array `text` with the results of `written` as its elements. `written` gets the index and the text of an element.
/// The text between the elements stays.
pub(crate) fn map_items(
    text: &str,
    mut written: impl FnMut(usize, &str) -> Result<String, WireError>,
) -> Result<String, WireError> {
    let (mut out, mut done, mut at) = (String::with_capacity(text.len()), 0, 0_usize);
    super::items(text, |element| {
        let range = range_of(text, element);
        out.push_str(text.get(done..range.start).unwrap_or_default());
        out.push_str(&written(at, element)?);
        (done, at) = (range.end, at.saturating_add(1));
        Ok(())
    })?;
    out.push_str(text.get(done..).unwrap_or_default());
    Ok(out)
}

/// The array `text`, with only the elements for which `stays` returns true.
pub(crate) fn retain_items(
    text: &str,
    mut stays: impl FnMut(&str) -> Result<bool, WireError>,
) -> Result<String, WireError> {
    let (mut elements, mut kept) = (Vec::new(), Vec::new());
    super::items(text, |element| {
        if stays(element)? {
            kept.push((Some(elements.len()), element));
        }
        elements.push(range_of(text, element));
        Ok(())
    })?;
    Ok(rebuild(text, &elements, kept))
}

/// The object `text` with other values for some keys. `None` removes a key, and a new key is appended. The rest of the
/// text stays unchanged.
pub(crate) fn patch(text: &str, changes: &[(&str, Option<String>)]) -> Result<String, WireError> {
    let mut elements = Vec::new();
    let mut pieces: Vec<(Option<usize>, String)> = Vec::new();
    let mut colon = ":".to_owned();
    let mut seen = Vec::new();
    raw_members(text, |key, value| {
        let (key_range, value_range) = (range_of(text, key), range_of(text, value));
        let between = text.get(key_range.end..value_range.start).unwrap_or_default();
        let name = super::decode(key);
        let place = Some(elements.len());
        match changes.iter().find(|(changed, _)| *changed == name) {
            None => pieces.push((place, format!("{key}{between}{value}"))),
            Some((_, Some(new))) => pieces.push((place, format!("{key}{between}{new}"))),
            Some((_, None)) => {}
        }
        between.clone_into(&mut colon);
        elements.push(key_range.start..value_range.end);
        seen.push(name);
        Ok(())
    })?;
    for (key, value) in changes {
        if let Some(value) = value.as_ref().filter(|_| !seen.iter().any(|name| name == key)) {
            pieces.push((None, format!("{}{colon}{value}", quote(key))));
        }
    }
    Ok(rebuild(text, &elements, pieces.iter().map(|(place, piece)| (*place, piece.as_str()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patched_object_keeps_order_numbers_and_layout() {
        let text = "{\n  \"b\": 1.0e2,\n  \"role\": \"user\",\n  \"a\": {}\n}";
        let same = patch(text, &[]).unwrap();
        assert_eq!(same, text);
        let changes = [("role", Some("\"tool\"".to_owned())), ("b", None), ("new", Some("[]".to_owned()))];
        let changed = patch(text, &changes).unwrap();
        assert_eq!(changed, "{\n  \"role\": \"tool\",\n  \"a\": {},\n  \"new\": []\n}");
        assert_eq!(patch("{}", &[("a", Some("1".to_owned()))]).unwrap(), "{\"a\":1}");
        assert_eq!(patch(" { \"a\" : 1 } ", &[("a", None)]).unwrap(), " {} ");
    }
}
