//! Detects the shape of a file with labelled questions by the names of its fields.

use std::io::Read;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A form of files with labelled questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// The form that docs/program.md describes.
    Neutral,
    Locomo,
    Beam,
    LongMemEval,
}

impl Shape {
    /// The name of the shape in error messages.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Neutral => "a conversation with labelled questions",
            Self::Locomo => "LoCoMo",
            Self::Beam => "BEAM",
            Self::LongMemEval => "LongMemEval",
        }
    }

    /// The shape of the first JSON object of a file: the file itself, or the first element of its array. `None` for any
    /// other content. Reads no more than that object.
    pub(super) fn detect(mut file: impl Read) -> Option<Self> {
        let mut begin = [0_u8; 3];
        let read = file.read(&mut begin).ok()?;
        let begin = begin.get(..read).unwrap_or_default();
        let begin = begin.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(begin);
        let mut fields = Fields::default();
        let mut json = serde_json::Deserializer::from_reader(begin.chain(file));
        // The rest of an array is not read, which the JSON reader reports as an error.
        let _ = FieldsOf(&mut fields).deserialize(&mut json);
        fields.shape()
    }
}

/// The fields that distinguish the shapes.
const FIELDS: [&str; 8] =
    ["messages", "questions", "conversation", "qa", "batch_number", "turns", "haystack_sessions", "question"];

/// The names of [`FIELDS`] that an object has.
#[derive(Debug, Default)]
struct Fields {
    found: Vec<&'static str>,
}

impl Fields {
    fn has(&self, names: &[&str]) -> bool {
        names.iter().all(|name| self.found.contains(name))
    }

    fn shape(&self) -> Option<Shape> {
        let shapes: [(Shape, &[&str]); 4] = [
            (Shape::Neutral, &["messages", "questions"]),
            (Shape::Locomo, &["conversation", "qa"]),
            (Shape::Beam, &["batch_number", "turns"]),
            (Shape::LongMemEval, &["haystack_sessions", "question"]),
        ];
        shapes.into_iter().find(|(_, names)| self.has(names)).map(|(shape, _)| shape)
    }
}

/// Collects the fields of an object, or of the first element of an array.
struct FieldsOf<'f>(&'f mut Fields);

impl<'de> DeserializeSeed<'de> for FieldsOf<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for FieldsOf<'_> {
    type Value = ();

    fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("an object, or an array of objects")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            self.0.found.extend(FIELDS.iter().find(|known| **known == name));
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        seq.next_element_seed(self).map(|_| ())
    }
}
