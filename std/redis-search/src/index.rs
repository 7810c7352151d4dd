//! The index: created if it does not exist, and otherwise checked before it is used.

use std::collections::BTreeMap;

use epitome_std::memory::cut;
use epitome_std::session::{SessionError, SessionErrorKind};
use redis::{Cmd, Value, cmd};

use crate::answer::{list, text};
use crate::service::{Service, invalid};
use crate::vectors::VectorSearch;

/// Name of the field for the text.
pub(crate) const CONTENT: &str = "content";

/// The other fields, in the order of Agent Framework, which uses the same index.
const TAGS: [&str; 9] = [
    "role",
    "mime_type",
    "conversation_id",
    "message_id",
    "author_name",
    "application_id",
    "agent_id",
    "user_id",
    "thread_id",
];

/// Maximum number of schema differences that an error names, and maximum length of each in bytes.
const DIFFERENCES_MAX: usize = 4;
const DIFFERENCE_BYTES_MAX: usize = 160;

/// The expected definition of the index.
#[derive(Debug, Clone)]
pub(crate) struct Index {
    pub(crate) name: Box<str>,
    pub(crate) prefix: Box<str>,
    pub(crate) vectors: Option<VectorSearch>,
}

impl Index {
    /// Creates the index, or checks the definition of an existing index.
    pub(crate) async fn ensure(&self, service: &Service) -> Result<(), SessionError> {
        self.check_names()?;
        let names = service.ask("list of indexes", &cmd("FT._LIST")).await?;
        let names = list(&names).ok_or_else(|| invalid("the list of indexes has another form"))?;
        if !names.iter().filter_map(text).any(|name| *name == *self.name) {
            match service.ask("new index", &self.create()).await {
                // Another client has created the index meanwhile, perhaps with another schema.
                Err(error) if error.kind() == SessionErrorKind::Conflict => (),
                made => return made.map(|_| ()),
            }
        }
        let description = service.ask("index", cmd("FT.INFO").arg(&*self.name)).await?;
        self.check(&description)
    }

    fn check_names(&self) -> Result<(), SessionError> {
        let is_field = |name: &str| {
            let letters = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            letters && name.bytes().next().is_some_and(|first| !first.is_ascii_digit())
        };
        let is_taken = |name: &str| name == CONTENT || name == "vector_distance" || TAGS.contains(&name);
        match &self.vectors {
            _ if self.name.is_empty() || self.prefix.is_empty() => {
                Err(invalid("the index and the prefix need a name"))
            }
            Some(vectors) if !is_field(&vectors.field) || is_taken(&vectors.field) => Err(invalid(
                "the vector field has a name of ASCII letters, digits and underscores, which no other field has",
            )),
            _ => Ok(()),
        }
    }

    fn create(&self) -> Cmd {
        let mut command = cmd("FT.CREATE");
        command.arg(&*self.name).arg("ON").arg("HASH").arg("PREFIX").arg(1).arg(&*self.prefix);
        command.arg("SCORE").arg("1.0").arg("SCHEMA");
        for (at, tag) in TAGS.iter().enumerate() {
            // The text is the third field, as in Agent Framework.
            if at == 2 {
                command.arg(CONTENT).arg("TEXT").arg("WEIGHT").arg(1);
            }
            command.arg(tag).arg("TAG").arg("SEPARATOR").arg(",");
        }
        if let Some(vectors) = &self.vectors {
            let (algorithm, distance) = vectors.words();
            let graph: &[&str] = match algorithm {
                "HNSW" => &["M", "16", "EF_CONSTRUCTION", "200", "EF_RUNTIME", "10", "EPSILON", "0.01"],
                _ => &[],
            };
            let (field, dimensions) = (&*vectors.field, vectors.dimensions.get());
            command.arg(field).arg("VECTOR").arg(algorithm).arg(graph.len().saturating_add(6));
            command.arg("TYPE").arg("FLOAT32").arg("DIM").arg(dimensions);
            command.arg("DISTANCE_METRIC").arg(distance).arg(graph);
        }
        command
    }

    /// Compares the description of the existing index with the expected definition.
    fn check(&self, description: &Value) -> Result<(), SessionError> {
        let (is, must) = (described(description), self.must());
        let names: Vec<_> = is.keys().chain(must.keys().filter(|name| !is.contains_key(*name))).collect();
        let difference = |name: &&String| {
            let [is, must] =
                [is.get(*name), must.get(*name)].map(|value| value.map_or("nothing", String::as_str));
            (is != must)
                .then(|| cut(&format!("{name} is {is}, not {must}"), DIFFERENCE_BYTES_MAX).into_owned())
        };
        let differences: Vec<_> = names.iter().filter_map(difference).take(DIFFERENCES_MAX).collect();
        match differences.is_empty() {
            true => Ok(()),
            false => Err(invalid(&format!(
                "the index `{}` has another schema: {}. Give another name by with_index and with_prefix, or drop this one: FT.DROPINDEX \
                 keeps what is stored",
                cut(&self.name, DIFFERENCE_BYTES_MAX),
                differences.join("; ")
            ))),
        }
    }

    fn must(&self) -> BTreeMap<String, String> {
        let field = |name: &str| format!("field {name}");
        let mut must: BTreeMap<_, _> = TAGS.iter().map(|tag| (field(tag), "TAG ,".to_owned())).collect();
        must.insert(field(CONTENT), "TEXT 1".to_owned());
        must.insert("storage".to_owned(), "HASH".to_owned());
        must.insert("prefix".to_owned(), self.prefix.to_string());
        if let Some(vectors) = &self.vectors {
            let (algorithm, distance) = vectors.words();
            let dimensions = vectors.dimensions;
            let what = format!("VECTOR {algorithm} FLOAT32 {dimensions} {distance}");
            must.insert(field(&vectors.field), what);
        }
        must
    }
}

/// The parts of `FT.INFO` that matter, by their names.
fn described(description: &Value) -> BTreeMap<String, String> {
    let parts = list(description).unwrap_or_default();
    let definition = list_after(parts, "index_definition");
    let fields = list_after(parts, "attributes").iter().filter_map(list).filter_map(field);
    let prefixes: Vec<_> = list_after(definition, "prefixes").iter().filter_map(text).collect();
    let storage = after(definition, "key_type").and_then(text).unwrap_or_default();
    let around = [("storage".to_owned(), storage), ("prefix".to_owned(), prefixes.join(", "))];
    fields.chain(around).collect()
}

/// A field and its type, in the form of [`Index::must`]. The description has the form
/// `identifier X attribute X type TAG SEPARATOR ,`.
fn field(parts: &[Value]) -> Option<(String, String)> {
    let (head, rest) = parts.split_at_checked(6)?;
    let kind = after(head.get(4..)?, "type").and_then(text)?.to_uppercase();
    let name = after(head.get(2..)?, "attribute").and_then(text)?;
    let more: &[&str] = match kind.as_str() {
        "TAG" => &["separator"],
        "TEXT" => &["weight"],
        "VECTOR" => &["algorithm", "data_type", "dim", "distance_metric"],
        _ => &[],
    };
    let value = |name: &&str| after(rest, name).and_then(text).unwrap_or_default();
    let is_set = |flag: &&str| rest.iter().filter_map(text).any(|part| part.eq_ignore_ascii_case(flag));
    let values = more.iter().map(value).map(|value| value.to_uppercase());
    let flags = ["CASESENSITIVE", "WITHSUFFIXTRIE", "NOSTEM", "NOINDEX"].into_iter().filter(is_set);
    let all: Vec<_> = core::iter::once(kind).chain(values).chain(flags.map(str::to_owned)).collect();
    Some((format!("field {name}"), all.join(" ")))
}

/// The value that follows this name in a list.
fn after<'v>(parts: &'v [Value], name: &str) -> Option<&'v Value> {
    let is_name = |part: &Value| text(part).is_some_and(|part| part.eq_ignore_ascii_case(name));
    parts.get(parts.iter().position(is_name)?.saturating_add(1))
}

fn list_after<'v>(parts: &'v [Value], name: &str) -> &'v [Value] {
    after(parts, name).and_then(list).unwrap_or_default()
}
