//! Search in an index: by words, by vectors if the index has them, and by meaning if it has a semantic configuration.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use epitome_http::{Endpoint, Repeat};
use epitome_std::memory::{Embedder, cut};
use epitome_std::session::{SessionError, SessionErrorKind};
use serde_json::{Map, Value, json};

use crate::provider::{API_VERSION, TEXT_BYTES_MAX};

/// Minimum number of neighbours of a vector search whose results a semantic configuration ranks again: the number of
/// documents that the ranking takes.
const NEIGHBOURS_RANKED: usize = 50;

/// Maximum length of the id of a document in bytes. A longer id is cut, and a mark shows the cut.
const ID_BYTES_MAX: usize = 512;

/// Fields for the text of a document. The first field that the document has is shown.
const TEXT_FIELDS: [&str; 5] = ["content", "text", "description", "body", "chunk"];

#[derive(Debug, Clone)]
pub(crate) struct Index {
    pub(crate) name: Box<str>,
    pub(crate) top: usize,
    pub(crate) semantic_configuration: Option<Box<str>>,
    pub(crate) filter: Option<Box<str>>,
    pub(crate) embedder: Option<Arc<dyn Embedder>>,
    pub(crate) vector_field: Option<Box<str>>,
    /// The vector field from the definition of the index; `None` before the definition was read.
    pub(crate) discovered: Arc<Mutex<Option<VectorField>>>,
}

/// The field that is searched by vectors, if there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum VectorField {
    None,
    /// The service makes the vector of the query.
    ByService(Box<str>),
    /// The embedder of the caller makes the vector of the query.
    ByCaller(Box<str>),
}

impl Index {
    pub(crate) fn new(name: Box<str>, top: usize) -> Self {
        Self {
            name,
            top,
            semantic_configuration: None,
            filter: None,
            embedder: None,
            vector_field: None,
            discovered: Arc::default(),
        }
    }

    /// Returns the documents that are nearest to `query`, as texts.
    pub(crate) async fn search(&self, endpoint: &Endpoint, query: &str) -> Result<Vec<String>, SessionError> {
        let path = format!("/indexes('{}')/docs/search.post.search?{API_VERSION}", self.name);
        let body = self.body(query, self.vector_query(endpoint, query).await?);
        let mut answer = endpoint.post(&path, &body, Repeat::Always).await?;
        let Some(Value::Array(documents)) = answer.get_mut("value").map(Value::take) else {
            tracing::warn!(index = &*self.name, "azure ai search: the answer to a search has another form");
            return Ok(Vec::new());
        };
        Ok(documents.iter().filter_map(Value::as_object).filter_map(text_of).take(self.top).collect())
    }

    fn body(&self, query: &str, vector_query: Option<Value>) -> Value {
        let mut body = json!({"search": query, "top": self.top});
        let more = [
            ("vectorQueries", vector_query.map(|vector_query| json!([vector_query]))),
            ("queryType", self.semantic_configuration.as_ref().map(|_| json!("semantic"))),
            ("semanticConfiguration", self.semantic_configuration.as_deref().map(Value::from)),
            ("captions", self.semantic_configuration.as_ref().map(|_| json!("extractive"))),
            ("filter", self.filter.as_deref().map(Value::from)),
        ];
        if let Some(body) = body.as_object_mut() {
            body.extend(more.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        }
        body
    }

    async fn vector_query(&self, endpoint: &Endpoint, query: &str) -> Result<Option<Value>, SessionError> {
        let neighbours = match self.semantic_configuration {
            Some(_) => self.top.max(NEIGHBOURS_RANKED),
            None => self.top,
        };
        Ok(match (self.field(endpoint).await, &self.embedder) {
            (VectorField::ByService(field), _) => {
                Some(json!({"kind": "text", "text": query, "k": neighbours, "fields": field}))
            }
            (VectorField::ByCaller(field), Some(embedder)) => {
                let vector = embedder.embed(query).await?;
                Some(json!({"kind": "vector", "vector": vector, "k": neighbours, "fields": field}))
            }
            _ => None,
        })
    }

    /// The field of a vector search: the field that the caller set, or the only vector field of the index. If the
    /// definition of the index cannot be read, the index is searched by words.
    async fn field(&self, endpoint: &Endpoint) -> VectorField {
        if let Some(field) = &self.vector_field {
            return match self.embedder {
                Some(_) => VectorField::ByCaller(field.clone()),
                None => VectorField::ByService(field.clone()),
            };
        }
        if let Some(known) = self.known().clone() {
            return known;
        }
        let found = match endpoint.get(&format!("/indexes('{}')?{API_VERSION}", self.name)).await {
            Ok(definition) => vector_field_of(&definition, self.embedder.is_some()),
            Err(error) => {
                tracing::warn!(index = &*self.name, %error, "azure ai search: the index is searched by words only");
                // After a transient error, the definition is read again before the next search.
                let is_final = error.kind() != SessionErrorKind::Unavailable;
                *self.known() = is_final.then_some(VectorField::None);
                return VectorField::None;
            }
        };
        *self.known() = Some(found.clone());
        found
    }

    fn known(&self) -> MutexGuard<'_, Option<VectorField>> {
        self.discovered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The only vector field of an index. If the service makes the vectors of some fields, only these fields count.
fn vector_field_of(definition: &Value, has_embedder: bool) -> VectorField {
    let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    let is_set =
        |value: &Value, name| value.get(name).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    let fields = list(definition.get("fields"));
    let profiles = list(definition.get("vectorSearch").and_then(|search| search.get("profiles")));
    let vectors = || {
        fields
            .iter()
            .filter(|field| field.get("dimensions").and_then(Value::as_u64).is_some_and(|count| count > 0))
    };
    let by_service = |field: &&Value| {
        let profile = field.get("vectorSearchProfile");
        profile.is_some_and(|profile| {
            profiles.iter().any(|it| it.get("name") == Some(profile) && is_set(it, "vectorizer"))
        })
    };
    let name = |field: &Value| field.get("name").and_then(Value::as_str).map(Box::from);
    let (all, of_service): (Vec<_>, Vec<_>) = (vectors().collect(), vectors().filter(by_service).collect());
    match (of_service.as_slice(), all.as_slice()) {
        ([only], _) => name(only).map_or(VectorField::None, VectorField::ByService),
        ([], [only]) if has_embedder => name(only).map_or(VectorField::None, VectorField::ByCaller),
        ([], []) => VectorField::None,
        _ => {
            tracing::warn!(
                "azure ai search: with_vector_field says which vectors are searched, with_embedder makes them"
            );
            VectorField::None
        }
    }
}

/// The text of a document with its id, so that the model can cite it; `None` if the document has no text.
fn text_of(document: &Map<String, Value>) -> Option<String> {
    let plain = |value: &Value| match value {
        Value::Null | Value::Bool(false) => None,
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        other => Some(other.to_string()),
    };
    let named = TEXT_FIELDS.iter().find_map(|field| document.get(*field).and_then(plain));
    let text = named.unwrap_or_else(|| {
        let texts = document.iter().filter(|(key, _)| !key.starts_with('@') && *key != "id");
        let texts = texts.filter_map(|(key, value)| Some((key, value.as_str()?)));
        let texts =
            texts.filter(|(_, text)| !text.trim().is_empty()).map(|(key, text)| format!("{key}: {text}"));
        texts.collect::<Vec<_>>().join(" | ")
    });
    let text = Some(text).filter(|text| !text.trim().is_empty())?;
    let text = cut(&text, TEXT_BYTES_MAX);
    let id = ["id", "@search.id"].iter().find_map(|name| document.get(*name).and_then(plain));
    Some(id.map_or_else(|| text.to_string(), |id| format!("[Source: {}] {text}", cut(&id, ID_BYTES_MAX))))
}
